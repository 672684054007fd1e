"""The page and the picture of the benchmark of remote stores, and what it aims at."""
import statistics

import panels

GET_NAMES = {"weir": "Weir, verified", "boto3": "boto3, its best threads",
             "curl": "curl -Z, its best ranges"}
PUT_NAMES = {"weir": "Weir", "boto3": "boto3, its best threads", "awscli": "awscli s3 cp"}
RADOS_NAMES = {"weir": "Weir", "bench": "rados bench"}
# Name of the ratio, what it says, whether it is a least or a most, and the bound.
TARGETS = [
    ("get_to_boto3", "get to boto3's", "≥", 1.2),
    ("get_to_curl", "get to curl's", "≥", 0.95),
    ("put_to_peer", "put to the best of boto3 and awscli", "≥", 1.0),
    ("rados_get_to_bench", "RADOS: get to `rados bench seq`", "≥", 0.95),
    ("rados_put_to_bench", "RADOS: put to `rados bench write`", "≥", 0.95),
]


def ratio(runs, kind, peer):
    """The median of the ratios of runs that followed each other: how fast the machine is changes
    from one to the next."""
    return statistics.median(ours / theirs for ours, theirs in zip(
        runs[f"{kind}_weir_mb_s"], runs[f"{kind}_{peer}_mb_s"], strict=True))


def ratios(runs):
    return {
        "get_to_boto3": ratio(runs, "get", "boto3"),
        "get_to_curl": ratio(runs, "get", "curl"),
        "put_to_peer": min(ratio(runs, "put", "boto3"), ratio(runs, "put", "awscli")),
        "rados_get_to_bench": ratio(runs, "rados_get", "bench"),
        "rados_put_to_bench": ratio(runs, "rados_put", "bench"),
    }


def setup(result, name):
    at_once, chunk = result[name]
    return f"{at_once} at once of {chunk >> 20} MiB"


def intro(result):
    v = result["versions"]
    return (
        "Written by `make bench`; do not edit. An object of "
        f"{result['object_bytes'] / 2**30:.2f} GiB on a Ceph RGW {v['ceph']} with three OSDs, all "
        f"on the one machine that measures; medians of {result['rounds']} rounds in which all take "
        "turns, another one first in each round (S3 puts twice, the others three times), each in a "
        "process of its own that begins when the cluster is idle, or after 20 s. Ratios are the "
        "medians of those of runs that followed each other: the machine is not always as fast. "
        "What Weir gets "
        "is verified; the others' is not. boto3 gets into memory and puts from a file in memory "
        f"(get: {setup(result, 'boto3_get')}, put: {setup(result, 'boto3_put')}: the best of a "
        "sweep, each twice); curl gets ranges to nowhere, from a signed URL "
        f"({setup(result, 'curl_get')}: the best of such a sweep). `rados "
        "bench` has 16 objects of 4 MiB at once. Of awscli and curl the whole process is measured, "
        "of the others what comes after their start. The server takes most of the processors; "
        "what a client takes itself is the CPU column. "
        f"boto3 {v['boto3']}, awscli {v['awscli']}, curl {v['curl']}. Machine: "
        f"{result['machine']['cores']} cores, Linux {result['machine']['kernel']}.")


def rows(result, kind, names):
    m = result["median"]
    return [f"| {name} | {m[f'{kind}_{key}_mb_s']:.0f} MB/s | "
            f"{ratio(result['runs'], kind, key):.2f} | {m[f'{kind}_{key}_cpu_s_per_gb']:.2f} |"
            for key, name in names.items()]


def page(result):
    text = [
        "# Stores on S3 and RADOS, measured",
        "",
        intro(result),
        "",
        "![gets and puts](bench-remote.svg)",
        "",
        "| get | rate | Weir to it | CPU s/GB |",
        "| --- | --- | --- | --- |",
        *rows(result, "get", GET_NAMES),
        "",
        "| put | rate | Weir to it | CPU s/GB |",
        "| --- | --- | --- | --- |",
        *rows(result, "put", PUT_NAMES),
        "",
        "| RADOS, get | rate | Weir to it | CPU s/GB |",
        "| --- | --- | --- | --- |",
        *rows(result, "rados_get", RADOS_NAMES),
        "",
        "| RADOS, put | rate | Weir to it | CPU s/GB |",
        "| --- | --- | --- | --- |",
        *rows(result, "rados_put", RADOS_NAMES),
        "",
        "| target | measured | held |",
        "| --- | --- | --- |",
    ]
    for key, name, sign, bound in TARGETS:
        value = result["ratio"][key]
        text.append(f"| {name} {sign} {bound:.3g} | {value:.2f} | "
                    f"{'yes' if panels.is_held(sign, bound, value) else 'no'} |")
    return "\n".join(text + [""])


def picture(result):
    m = result["median"]
    parts, at = [], 10
    for kind, title, names, lines in (
            ("get", "Get, MB/s", GET_NAMES, [(1.2 * m["get_boto3_mb_s"], "target")]),
            ("put", "Put, MB/s", PUT_NAMES,
             [(max(m["put_boto3_mb_s"], m["put_awscli_mb_s"]), "target")]),
            ("rados_get", "RADOS, get, MB/s", RADOS_NAMES, []),
            ("rados_put", "RADOS, put, MB/s", RADOS_NAMES, [])):
        bars = [(name, m[f"{kind}_{key}_mb_s"]) for key, name in names.items()]
        part, at = panels.panel(at, title, bars, lines, "")
        parts.append(part)
    return panels.drawing(parts, at)
