"""The dataset benchmark's page and picture, and what it aims at."""
import panels

NAMES = {
    "weir": "Weir", "weir_mds": "Weir, Streaming's shards",
    "weir_files": "Weir, files", "streaming": "MosaicML Streaming",
    "webdataset": "WebDataset", "litdata": "LitData", "files": "files, DataLoader",
}
PEERS = ("streaming", "webdataset", "litdata", "files")
SIZE_NAMES = {1024: "1 KiB", 16384: "16 KiB", 112640: "110 KiB"}
# How much faster than the fastest peer, warm, by the size of a sample.
WARM = {1024: 5.0, 16384: 5.0, 112640: 2.0}
COLD, TOKENS = 0.85, 0.8
SEQ_LENS = (2048, 8192)


def ratios(median, sizes, cold_sizes):
    found = {}
    for size in sizes:
        best = max(median[f"warm_{peer}_{size}_per_s"] for peer in PEERS)
        found[f"warm_{size}"] = median[f"warm_weir_{size}_per_s"] / best
    for size in cold_sizes:
        for name in ("weir", "weir_long", "weir_fresh"):
            found[f"cold_{name}_{size}"] = (median[f"cold_{name}_{size}_gb_s"]
                                            / median[f"cold_fio_{size}_gb_s"])
    for seq_len in SEQ_LENS:
        found[f"tokens_{seq_len}"] = median[f"tokens_{seq_len}_gb_s"] / median["memcpy_gb_s"]
    return found


def targets(result):
    """What is aimed at: (what, sign, bound, measured)."""
    ratio = result["ratio"]
    rows = [(f"warm, samples of {SIZE_NAMES[size]}, to the fastest peer", "≥", bound,
             ratio[f"warm_{size}"]) for size, bound in WARM.items()]
    rows += [(f"cold, samples of {SIZE_NAMES[size]}, {epochs}, to fio's direct read", "≥", COLD,
              ratio[f"cold_{name}_{size}"]) for size in result["cold_sizes"]
             for name, epochs in (("weir_long", f"{result['cold_epochs']} epochs after the first"),
                                  ("weir", "one epoch with its beginning"),
                                  ("weir_fresh", "the same in memory not touched before"))]
    rows += [(f"tokens of mapped files, warm, sequences of {seq_len:,}, to memcpy", "≥", TOKENS,
              ratio[f"tokens_{seq_len}"]) for seq_len in SEQ_LENS]
    for name, (halfway, end) in result["memory"].items():
        size = int(name.rsplit("_", 1)[1])
        rows.append((f"memory from the middle of an epoch to its end, {SIZE_NAMES[size]}",
                     "≤", 1.05, end / halfway))
    return rows


def more_of(result):
    """What was read cold, if it is another dataset."""
    return "".join(f" (of samples of {SIZE_NAMES[int(size)]}, {bytes_ >> 20} MiB: nobody else is "
                   "measured there)" for size, bytes_ in result["cold_total"].items())


def cold_rows(result, size, names):
    """[(name, GB/s)] of those that read it cold."""
    m = result["median"]
    return [(name, m[f"cold_{key}_{size}_gb_s"]) for key, name in names
            if f"cold_{key}_{size}_gb_s" in m]


def intro(result):
    v = result["versions"]
    total = ", ".join(f"{bytes_ >> 20} MiB of {SIZE_NAMES[int(size)]}"
                      for size, bytes_ in result["sizes"].items())
    return (
        f"Written by `make bench`; do not edit. Shuffled epochs over the same samples ({total}), "
        "each library reading what it wrote itself (Weir: MDS shards in a store, by `weir "
        f"data pack`), in batches of 256 samples' bytes; medians of {result['rounds']} rounds in "
        "which all take turns, another one first in each round, each in a process of its own, with "
        "the number of workers that was fastest here. Warm, the rate is that from the first batch "
        "on, over whole epochs that take two seconds at least, with workers that stay; cold, it is "
        "that of one epoch, from before its first batch, Weir reading around the page cache with "
        f"its default threads{more_of(result)}. Just before, every contender's process touches "
        "1 GiB more memory than there are samples, or half of what is available, and frees it: a "
        "virtual machine has memory from its host when it is touched first, and may lose what is "
        "free for two seconds, so that those who take longer have it less. That went at "
        f"{result['median']['touched_gb_s']:.1f} GB/s (median); fio needs next to none. Weir is "
        "also shown without that (in fresh memory), and over "
        f"{result['cold_epochs']} more epochs, which all come from the device, of a loader that "
        "reads on beyond them. These three and fio, and tokens and memcpy, take turns three times "
        f"in each round. torch {v['torch']}, mosaicml-streaming "
        f"{v['mosaicml-streaming']}, webdataset {v['webdataset']}, litdata {v['litdata']}, Python "
        f"{v['python']}; fio: `{' '.join(result['fio_read_setup'])}`. Machine: "
        f"{result['machine']['cores']} cores, Linux {result['machine']['kernel']}"
        f"{'' if result['caches_dropped'] else '; caches could not be dropped, files were'}.")


def files_picture(result):
    """Small files beside shards of the same samples."""
    m = result["median"]
    names = {"files": "files, DataLoader", "weir_files": "Weir, files", "weir": "Weir, shards"}
    parts, at = [], 10
    for size in result["sizes"]:
        rows = [(name, m[f"warm_{key}_{size}_per_s"] / 1000) for key, name in names.items()]
        part, at = panels.panel(at, f"{SIZE_NAMES[int(size)]}, warm: thousand samples/s", rows, [],
                                "k")
        parts.append(part)
    for size in result["cold_sizes"]:
        if str(size) in result["cold_total"]:
            continue
        rows = [(name, m[f"cold_{key}_{size}_gb_s"] * 1e6 / size) for key, name in names.items()]
        part, at = panels.panel(at, f"{SIZE_NAMES[size]}, cold: thousand samples/s", rows, [], "k")
        parts.append(part)
    return panels.drawing(parts, at)


def page(result):
    m = result["median"]
    text = ["# Reading datasets, measured", "", intro(result), "",
            "![samples a second, warm and cold](bench-data.svg)", "",
            "| warm, samples/s | " + " | ".join(SIZE_NAMES[int(s)] for s in result["sizes"]) + " |",
            "| --- |" + " --- |" * len(result["sizes"])]
    for key, name in NAMES.items():
        cells = [f"{m[f'warm_{key}_{size}_per_s']:,.0f} ({result['workers'][f'{key}_{size}']})"
                 for size in result["sizes"]]
        text.append(f"| {name} | " + " | ".join(cells) + " |")
    text += ["", "In brackets: workers, or threads.", "",
             "| cold, GB/s | " + " | ".join(SIZE_NAMES[s] for s in result["cold_sizes"]) + " |",
             "| --- |" + " --- |" * len(result["cold_sizes"])]
    long_name = f"Weir, {result['cold_epochs']} epochs after the first"
    for key, name in [("weir_long", long_name), *NAMES.items(),
                      ("weir_fresh", "Weir, in fresh memory"), ("fio", "fio, direct, its best")]:
        rates = [m.get(f"cold_{key}_{size}_gb_s") for size in result["cold_sizes"]]
        cells = ["-" if rate is None else f"{rate:.2f}" for rate in rates]
        text.append(f"| {name} | " + " | ".join(cells) + " |")
    text += ["", "The same samples as single files and as packed shards:", "",
             "![files and shards](bench-data-files.png)"]
    rates = " and ".join(f"{m[f'tokens_{n}_gb_s']:.2f} GB/s in sequences of {n:,}"
                         for n in SEQ_LENS)
    text += ["", "Tokens of a mapped file, shuffled, after an epoch in which blocks are checked: "
             f"{rates}; a memcpy of a gigabyte {m['memcpy_gb_s']:.2f} GB/s.", "",
             "| target | measured | held |", "| --- | --- | --- |"]
    for name, sign, bound, value in targets(result):
        text.append(f"| {name} {sign} {bound:.3g} | {value:.2f} | "
                    f"{'yes' if panels.is_held(sign, bound, value) else 'no'} |")
    return "\n".join(text + [""])


def picture(result):
    m = result["median"]
    parts, at = [], 10
    for size in result["sizes"]:
        rows = [(name, m[f"warm_{key}_{size}_per_s"] / 1000) for key, name in NAMES.items()]
        fastest = max(m[f"warm_{peer}_{size}_per_s"] for peer in PEERS) / 1000
        part, at = panels.panel(at, f"Warm, {SIZE_NAMES[int(size)]}, thousand samples/s", rows,
                         [(WARM[int(size)] * fastest, "target")], "k")
        parts.append(part)
    for size in result["cold_sizes"]:
        rows = cold_rows(result, size, [
            ("weir_long", f"Weir, {result['cold_epochs']} more epochs"), *NAMES.items(),
            ("weir_fresh", "Weir, in fresh memory"), ("fio", "fio")])
        part, at = panels.panel(at, f"Cold, {SIZE_NAMES[size]}, GB/s", rows,
                         [(COLD * m[f"cold_fio_{size}_gb_s"], "target")], "")
        parts.append(part)
    return panels.drawing(parts, at)
