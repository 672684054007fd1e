"""The checkpoint benchmark's page and picture, and what it aims at."""
import panels

NAMES = {
    "weir": "Weir", "weir_first": "Weir, first save", "torch": "torch.save, fsync",
    "safetensors": "safetensors save_file, fsync", "dcp": "DCP save, sync_files",
    "dcp_threads": "the same, its best threads",
    "fio": "fio, direct, its best",
}
LOAD_NAMES = {
    "weir": "Weir, verified", "torch": "torch.load", "torch_mmap": "torch.load, mmap",
    "safetensors": "safetensors load_file", "safetensors_open": "safetensors safe_open",
    "dcp": "DCP load", "fio": "fio, direct, its best",
}
BLOCKED_NAMES = {
    "weir": "Weir save", "dcp": "DCP async_save", "dcp_kept": "DCP async_save, stager kept",
}
SAVE_PEERS = ("torch", "safetensors", "dcp", "dcp_threads")
LOAD_PEERS = ("torch", "torch_mmap", "safetensors", "safetensors_open", "dcp")
# Name of the ratio, what it says, whether it is a least or a most, and the bound.
TARGETS = [
    ("save_to_fio", "durable save to fio's direct write", "≥", 1.0),
    ("save_to_peer", "durable save to the best peer's", "≥", 2.5),
    ("blocked_to_memcpy", "trainer blocked, to a plain memcpy of the state", "≤", 1.3),
    ("blocked_to_dcp", "trainer blocked, to DCP's async_save", "≤", 1 / 3),
    ("load_to_fio", "cold verified load to fio's direct read", "≥", 0.9),
    ("load_to_peer", "cold verified load to the best peer's", "≥", 1.5),
    ("cap_over_mib", "memory of a save beyond its staging area, MiB", "≤", 64),
]


def ratios(median, cap_mib, cap_peak_mib):
    """What the targets speak of; DCP counts as it comes, its kept stager is told beside it."""
    def best(kind, peers):
        return max(median[f"{kind}_{peer}_gb_s"] for peer in peers)

    return {
        "save_to_fio": median["save_weir_gb_s"] / median["save_fio_gb_s"],
        "save_to_peer": median["save_weir_gb_s"] / best("save", SAVE_PEERS),
        "blocked_to_memcpy": median["blocked_weir_s"] / median["memcpy_s"],
        "blocked_to_dcp": median["blocked_weir_s"] / median["blocked_dcp_s"],
        "blocked_to_dcp_kept": median["blocked_weir_s"] / median["blocked_dcp_kept_s"],
        "load_to_fio": median["load_weir_gb_s"] / median["load_fio_gb_s"],
        "load_to_peer": median["load_weir_gb_s"] / best("load", LOAD_PEERS),
        "cap_over_mib": cap_peak_mib - cap_mib,
    }


# The page


def intro(result):
    v = result["versions"]
    return (
        "Written by `make bench`; do not edit. A transformer's state of "
        f"{result['state_bytes'] / 2**30:.2f} GiB (bf16 weights, fp32 master weights and Adam "
        f"moments, {result['tensors']} tensors); medians of {result['rounds']} rounds in which all "
        "take turns in the same directory, another one first in each round, each save in a process "
        "of its own. What was loaded was compared, bit for bit, in the first round. "
        f"torch {v['torch']}, safetensors {v['safetensors']}, Python {v['python']}; DCP is "
        f"torch.distributed.checkpoint, one process; its best number of writer threads is "
        f"{result['dcp_threads']}. fio is the best of a sweep "
        f"(write: `{' '.join(result['fio_write_setup'])}`, read: "
        f"`{' '.join(result['fio_read_setup'])}`). Machine: {result['machine']['cores']} cores, "
        f"Linux {result['machine']['kernel']}"
        f"{'' if result['caches_dropped'] else '; caches could not be dropped, files were'}.")


def rate_rows(result, kind, names):
    """Rows of a table of rates, to fio's."""
    m = result["median"]
    rows = []
    for key, name in names.items():
        rate = m[f"{kind}_{key}_gb_s"]
        cpu, peak = m.get(f"{kind}_{key}_cpu_s_per_gb"), m.get(f"{kind}_{key}_peak_mib")
        rows.append(f"| {name} | {rate:.2f} GB/s | {rate / m[f'{kind}_fio_gb_s']:.2f} | "
                    f"{'' if cpu is None else f'{cpu:.2f}'} | "
                    f"{'' if peak is None else f'{peak:.0f} MiB'} |")
    return rows


def blocked_rows(result):
    m = result["median"]
    rows = []
    for key, name in BLOCKED_NAMES.items():
        seconds = m[f"blocked_{key}_s"]
        rows.append(f"| {name} | {seconds * 1000:.0f} ms | {seconds / m['memcpy_s']:.2f} | "
                    f"{m[f'compute_{key}_ratio']:.2f} | {m[f'async_{key}_peak_mib']:.0f} MiB |")
    for key, name in (("memcpy_s", "memcpy of as many bytes, one call, one thread"),
                      ("memcpy_each_s", "memcpy of the state, a call for each tensor"),
                      ("torch_copy_s", "torch copy_ of the state, its threads")):
        rows.append(f"| {name} | {m[key] * 1000:.0f} ms | {m[key] / m['memcpy_s']:.2f} | | |")
    return rows


def page(result):
    text = [
        "# Checkpoints, measured",
        "",
        intro(result),
        "",
        "![durable saves, blocked trainers, cold loads](bench-ckpt.svg)",
        "",
        "| durable save | rate | to fio's | CPU s/GB | extra memory |",
        "| --- | --- | --- | --- | --- |",
        *rate_rows(result, "save", NAMES),
        "",
        "| save in the background, the second one | trainer blocked | to memcpy | compute loop "
        "beside it | extra memory |",
        "| --- | --- | --- | --- | --- |",
        *blocked_rows(result),
        "",
        "The compute loop multiplies matrices on one thread; the figure is its speed while the "
        "save goes on, to its speed alone. DCP's pinned staging needs an accelerator; a stager "
        "that is kept reuses its memory.",
        "",
        "| cold load into existing tensors | rate | to fio's | CPU s/GB | extra memory |",
        "| --- | --- | --- | --- | --- |",
        *rate_rows(result, "load", LOAD_NAMES),
        "",
        f"With a staging area of {result['cap_mib']:.0f} MiB a durable save took "
        f"{result['cap_peak_mib']:.0f} MiB of memory.",
        "",
        "| target | measured | held |",
        "| --- | --- | --- |",
    ]
    for key, name, sign, bound in TARGETS:
        value = result["ratio"][key]
        text.append(f"| {name} {sign} {bound:.3g} | {value:.2f} | "
                    f"{'yes' if panels.is_held(sign, bound, value) else 'no'} |")
    return "\n".join(text + [""])


# The picture


def picture(result):
    m = result["median"]
    bound = {key: value for key, _, _, value in TARGETS}
    shown = [
        ("Durable save, GB/s", [(name, m[f"save_{key}_gb_s"]) for key, name in NAMES.items()],
         [(bound["save_to_fio"] * m["save_fio_gb_s"], "target")], ""),
        ("Trainer blocked, s", [(name, m[f"blocked_{key}_s"])
                                for key, name in BLOCKED_NAMES.items()]
         + [("memcpy", m["memcpy_s"])], [(bound["blocked_to_memcpy"] * m["memcpy_s"], "target")],
         " s"),
        ("Cold load, GB/s", [(name, m[f"load_{key}_gb_s"]) for key, name in LOAD_NAMES.items()],
         [(bound["load_to_fio"] * m["load_fio_gb_s"], "target")], ""),
    ]
    parts, at = [], 10
    for title, rows, lines, unit in shown:
        part, at = panels.panel(at, title, rows, lines, unit)
        parts.append(part)
    return panels.drawing(parts, at)
