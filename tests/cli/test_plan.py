"""weir plan: the examples of docs/plan.md are what it prints, and what planmath.py computes."""
import json
import re
import shlex
import subprocess
import xml.etree.ElementTree as xml
from fractions import Fraction as F

import planmath
import pytest

from conftest import BIN, ROOT

DOC = (ROOT / "docs/plan.md").read_text()
EXAMPLES = re.findall(r"^```console\n\$ (weir plan .*)\n((?:.*\n)*?)```$", DOC, re.M)
PLAN, = re.findall(r"^```json\n((?:.*\n)*?)```$", DOC, re.M)
CASES = [command for command, _ in EXAMPLES if command != "weir plan catalog"]
# What else is worth an independent calculation: other states, limits and sides of each formula.
CASES += r"""
weir plan read --gpus 513 --samples-per-s 3.5 --sample-bytes 2.83MB --efficiency 0.9 \
    --read-rate 1GB/s
weir plan read --gpus 4 --batches-per-s 2 --batch-bytes 1GB --latency 3s --step 0.5s --depth 7
weir plan read --gpus 512 --corpus 2TB --over 30d --epochs 3.5 --network-rate 1kB/s
weir plan checkpoint --parameters 7B --state gradients --interval 60s --gpus 64 --write-rate 1GB/s
weir plan checkpoint --parameters 405B --state fp32 --interval 1h --gpus 16 --write-rate 1TB/s
weir plan interval --checkpoint 1.75TB --write-rate 100GB/s --mtbf 6h --interval 2h
weir plan interval --gpus 8 --parameters 70B --write-rate 1000GB/s
weir plan interval --stall 1min --mtbf 10min --restart 10min
weir plan interval --stall 30min --mtbf 2h --restart 1h
weir plan raid --device nvme --devices 3 --pcie gen3 --read-rate 100GB/s --afr 0.5
weir plan raid --device hdd --devices 12 --device-size 20TB
weir plan cliff --checkpoint 50GB --slc-cache 100GB --fast-rate 6GB/s --native-rate 1GB/s \
    --interval 40s
weir plan cliff --parameters 70B --devices 4 --slc-cache 100GB --fast-rate 6GB/s --native-rate 1GB/s
weir plan endurance --parameters 70B --interval 1h --device nvme-enterprise --devices 8
weir plan endurance --checkpoint 10GB --interval 1min --over 5y --tbw 1PB --amplification 12
weir plan durability --afr 0.2 --copies 1 --data 4 --parity 0 --repair 30d
weir plan durability --copies 2 --data 17 --parity 3 --repair 7d --groups 1000 --afr 0.013
weir plan cost --egress 1TB --egress-usd 0.05
weir plan cost --egress 1TB --egress-usd 0
weir plan cost --size 1GB --egress 1TB --egress-usd 0
weir plan cost --size 1GB --glacier 1PB --ebs 3TB
weir plan format --kind text --samples 1B --sample-bytes 4K --iops 5000 \
    --read-rate 1GB/s --shard 64M
weir plan cluster --gpus 100 --parameters 7B --corpus 1TB --tokens-per-s 10K \
    --interval 1s --write-rate 1GB/s
weir plan cluster --gpus 64 --parameters 7B --corpus 1TB --state weights
weir plan cluster --gpus 64 --parameters 7B --corpus 1TB --checkpoint 1GB
weir plan cluster --gpus 8 --parameters 1B --corpus 1PB --tokens-per-s 3B --token-bytes 4 --mtbf 1d
""".replace("\\\n   ", "").strip().splitlines()


@pytest.fixture
def plan(weir):
    weir.file("plan.json", PLAN)
    return weir


@pytest.fixture(scope="module")
def options():
    """By command, as help --json has them; read once."""
    commands = json.loads(subprocess.check_output([BIN, "--json", "help"]))["commands"]
    return {c["name"]: c["options"] for c in commands}


def told(command, options):
    """The command's name, and what its line and its plan file tell."""
    words = shlex.split(command)[1:]
    name, given = " ".join(words[:2]), dict(zip((w[2:] for w in words[2::2]), words[3::2]))
    if "file" in given:
        for section in json.loads(PLAN).values():
            for key, text in section.items():
                given.setdefault(key.replace("_", "-"), str(text))
    return name, planmath.Told(options[name], given)


def check(said, exact, what):
    if exact is planmath.NEVER:
        assert said is None, what
        return
    assert said is not None, what
    exact = F(exact)
    assert abs(F(said) - exact) <= F(1, 10**8) * abs(exact) + F(1, 10**12), (what, float(exact))


# ---- the document ----

@pytest.mark.parametrize("command, text", EXAMPLES, ids=[c[10:60] for c, _ in EXAMPLES])
def test_the_document_says_what_is_printed(plan, command, text):
    """Parts that are left out are marked with a line of one …."""
    out, at = plan(*shlex.split(command)[1:]).out, 0
    for part in re.split(r"^…\n", text, flags=re.M):
        found = out.find(part, at)
        assert found >= 0 and (at or not found), f"{part}\nis not in\n{out[at:]}"
        at = found + len(part)
    assert at == len(out) or text.endswith("…\n")


@pytest.mark.parametrize("command", CASES, ids=[c[10:60] for c in CASES])
def test_every_figure_is_right(plan, options, command):
    name, t = told(command, options)
    doc = plan.json(*shlex.split(command)[1:])
    exact = getattr(planmath, name.split()[1])(t)
    if name == "plan cluster":
        exact, flows, tiers, rooms = exact
        assert [f["name"] for f in doc["flows"]] == list(flows)
        for flow in doc["flows"]:
            check(flow["need_bytes_per_s"], flows[flow["name"]][0], flow["name"])
            check(flow["have_bytes_per_s"], flows[flow["name"]][1], flow["name"])
        assert [tier["name"] for tier in doc["tiers"]] == list(tiers)
        for tier in doc["tiers"]:
            check(tier["need_bytes"], tiers[tier["name"]][0], tier["name"])
            check(tier["have_bytes"], tiers[tier["name"]][1], tier["name"])
        assert len(rooms) == len(doc["limits"])
        for limit, room in zip(doc["limits"], rooms):
            check(limit["headroom"], room, limit["name"])
    assert set(doc["figures"]) == set(exact)
    for key, said in doc["figures"].items():
        check(said, exact[key], key)
    assert doc["bottleneck"] and doc["assumptions"] and isinstance(doc["changes"], list)


def test_examples_show_what_they_are_for(plan):
    """The figures this page was written for."""
    def figure(command, key):
        assert any(command == c for c in CASES)
        return plan.json(*command.split()[1:])["figures"][key]
    read = "weir plan read --gpus 512 --tokens-per-s 100K --read-rate 100GB/s --tflops 989"
    assert figure(read, "read_bytes_per_s") == 102.4e6
    assert round(figure("weir plan read --gpus 512 --corpus 2TB --over 30d", "read_bytes_per_s"),
                 -4) == 0.77e6
    assert figure("weir plan checkpoint --parameters 70B --state weights",
                  "checkpoint_bytes") == 140e9
    assert figure("weir plan checkpoint --checkpoint 1.4TB --interval 100s",
                  "average_bytes_per_s") == 14e9
    big = "weir plan checkpoint --parameters 1T --state weights --interval 10s"
    assert (figure(big, "average_bytes_per_s"), figure(big, "average_servers")) == (200e9, 50)
    wear = "weir plan endurance --checkpoint 140GB --interval 30min --over 90d"
    assert round(figure(wear, "wear_bytes") / 1e12) == 907
    assert figure("weir plan cost --size 10PB", "all_s3_usd_per_month") == 230e3
    assert figure("weir plan cost --size 10PB", "all_lustre_usd_per_month") == pytest.approx(1.4e6)


def test_what_is_free_costs_nothing(plan):
    for args in ["--egress", "1TB"], ["--egress", "1TB", "--size", "1GB"]:
        out = plan("plan", "cost", *args, "--egress-usd", "0").out
        assert "free" in out and "nan" not in out and "null" not in out


@pytest.mark.parametrize("more, waits, limit", [
    (["--depth", "1"], 0.6, "the latency: a batch takes 150 ms"),
    (["--depth", "20"], 0, "computing"),
    (["--depth", "1", "--read-rate", "232MB/s"], 0.9, "the shared storage"),
    (["--depth", "1", "--read-rate", "2.2GB/s"], 0.6, "the latency"),
])
def test_a_gpu_that_is_not_busy_waits(plan, more, waits, limit):
    """For what limits it more: the rate, or batches that were asked for too late."""
    doc = plan.json("plan", "read", "--gpus", "8", "--batches-per-s", "10", "--batch-bytes", "29MB",
                    "--latency", "150ms", "--step", "100ms", *more)
    assert doc["figures"]["stall_share"] == pytest.approx(waits, abs=1e-9)
    assert doc["figures"]["stall_usd_per_month"] == pytest.approx(waits * 8 * 2 * 730, abs=1e-4)
    assert doc["bottleneck"].startswith(limit)
    assert any("a prefetch depth of 6" in text for text in doc["changes"]) == ("latency" in limit)


def test_the_interval_is_for_the_stall_of_a_checkpoint(plan):
    """The network of one node is the limit of both."""
    job = ["--gpus", "8", "--parameters", "70B", "--write-rate", "1000GB/s"]
    stall = plan.json("plan", "checkpoint", *job)["figures"]["sync_stall_s"]
    doc = plan.json("plan", "interval", *job)
    assert doc["figures"]["stall_s"] == stall == 19.6
    assert any("the nodes' network" in text for text in doc["assumptions"])


def test_parts_are_no_more_than_the_whole(plan):
    doc = plan.json("plan", "interval", "--stall", "1min", "--mtbf", "10min", "--restart", "10min")
    parts = [doc["figures"][f"{part}_share"] for part in ("save", "rework", "restart")]
    assert sum(parts) == pytest.approx(doc["figures"]["waste_share"]) and sum(parts) < 1
    assert min(parts) > 0


@pytest.mark.parametrize("rate, says", [
    ("40GB/s", "twice the write rate: waited for, 19.6 s instead of 24.5 s"),  # then the network
    ("1000GB/s", "twice the network rate: waited for, 9.8 s instead of 19.6 s"),
    ("60GB/s", "twice the network rate: waited for, 16.33 s instead of 19.6 s"),  # then storage
])
def test_what_is_doubled_is_the_limit(plan, rate, says):
    doc = plan.json("plan", "checkpoint", "--gpus", "8", "--parameters", "70B", "--write-rate",
                    rate)
    assert doc["changes"][0] == says


def published(doc):
    return {p["what"]: (p["said"], p["is"]) for p in doc["published"]}


def test_published_figures_stand_beside_the_right_ones(plan):
    doc = published(plan.json("plan", "checkpoint", "--parameters", "175B", "--state", "moments",
                              "--interval", "30min"))
    assert doc["FP16 weights of 175B parameters"] == (700e9, 350e9)
    said, right = doc["1.75 TB every 30 min needs"]
    assert said == 100e9 and round(right / 1e9, 2) == 0.97
    doc = published(plan.json("plan", "read", "--gpus", "512", "--corpus", "2TB", "--over", "30d"))
    said, right = doc["a corpus over its time, taken for each GPU"]
    assert said == pytest.approx(512 * right)
    doc = published(plan.json("plan", "read", "--gpus", "8", "--samples-per-s", "1",
                              "--sample-bytes", "1MB", "--tflops", "2000", "--latency", "3s",
                              "--step", "2s"))
    assert doc["the rule 1 GB/s for each 100 TFLOP/s"] == (160e9, 8e6)
    shares = [doc[f"GPU busy, prefetch depth {d}"] for d in (1, 4, 10, 20)]
    assert [said for said, _ in shares] == [0.4, 0.75, 0.95, 0.98]
    for (_, ours), depth in zip(shares, (1, 4, 10, 20)):
        check(ours, planmath.erlang_busy(depth, F(3, 2)), depth)
    said, right = published(plan.json("plan", "durability"))["the textbook's p^r"]
    assert said == pytest.approx(0.04**3) and right < said / 10000


# ---- where it comes from ----

def test_options_count_more_than_the_plan(plan):
    assert plan.json("plan", "checkpoint", "--file", "plan.json")["figures"]["write_s"] == 19.6
    args = ["plan", "checkpoint", "--file", "plan.json", "--write-rate"]
    assert plan.json(*args, "98GB/s")["figures"]["write_s"] == 10
    # 8 is the default: told on the line, it still counts more than the plan.
    plan.file("p.json", '{"cluster": {"gpus": 64, "gpus_per_node": 4}}')
    args = ["plan", "read", "--file", "p.json", "--tokens-per-s", "1", "--token-bytes", "2"]
    assert plan.json(*args)["figures"]["node_bytes_per_s"] == 8
    assert plan.json(*args, "--gpus-per-node", "8")["figures"]["node_bytes_per_s"] == 16


@pytest.mark.parametrize("old, new, text", [
    ('"gpus"', '"gpu"', "line 3: cluster.gpu: there is no such key: did you mean 'gpus'?"),
    ("70B", "70 billion", "line 1: model.parameters: '70 billion' is not a number (try 512, 100K "
                          "or 70B)"),
    ('"write_rate": "50GB/s"', '"gpus": 5', "line 4: storage.gpus: 'gpus' belongs to the section "
                                           "'cluster'"),
    ('"cluster"', '"clutser"', "line 3: there is no section 'clutser': did you mean 'cluster'?"),
    ("512", "0", "line 3: cluster.gpus: '0' is out of range (1 to 10000000)"),
    ("512", "-512", "line 3: cluster.gpus: '-512' is not a number"),
    ("512", "1e30", "line 3: cluster.gpus: 1e30 is too large"),
    ("512", "NaN", "line 3: it is not JSON"),
    ('"50GB/s"', "true", "line 4: storage.write_rate is neither a text"),
    ("}}", "}", "line 5: it is not JSON"),
])
def test_a_wrong_plan_is_told_by_line_and_name(plan, old, new, text):
    assert PLAN.count(old) == 1
    plan.file("plan.json", PLAN.replace(old, new))
    said = plan.fails("plan", "checkpoint", "--file", "plan.json")
    assert said.startswith(f"plan.json: {text}"), said
    assert text in plan.json("plan", "cluster", "--file", "plan.json", rc=1)["error"]["text"]
    for line in re.findall(r"^weir: plan\.json: .*$", DOC, re.M):
        if text in line:
            assert line == f"weir: {said}"


def test_plans_that_cannot_be_read(plan):
    assert "cannot open the plan 'none.json'" in plan.fails("plan", "read", "--file", "none.json")
    plan.file("large.json", b" " * (1 << 20) + b"{}")
    assert "too large" in plan.fails("plan", "read", "--file", "large.json")
    said = plan.fails("plan", "read", "--file", str(plan.cwd))
    assert said == f"cannot read the plan '{plan.cwd}': Is a directory", said


def test_all_options_are_keys(plan, options):
    """A plan may tell whatever some command asks for, by the same name."""
    named = {o["name"] for name, table in options.items() if name.startswith("plan ")
             for o in table} - {"file", "profile", "html", "svg"}
    for name in sorted(named):
        plan.file("p.json", json.dumps({"model": {name.replace("-", "_"): {}}}))
        said = plan.fails("plan", "cost", "--file", "p.json")
        assert "belongs to the section" in said or "is neither a text" in said, (name, said)


PROFILE = {"weir_profile": 1, "url": "/data", "read_bytes_per_s": 3e9, "write_bytes_per_s": 2e9,
           "random_read_iops": 50000, "random_write_iops": 20000, "read_latency_s_p50": 0.02,
           "cliff_at_bytes": 100e9, "cliff_before_bytes_per_s": 6e9,
           "cliff_after_bytes_per_s": 1e9}


def test_a_measured_profile(plan):
    plan.file("p.json", json.dumps(PROFILE))
    measured = ["--profile", "p.json"]

    def figures(*args):
        return plan.json("plan", *args, *measured)["figures"]
    doc = figures("read", "--gpus", "8", "--tokens-per-s", "1", "--step", "20ms", "--depth", "1")
    assert doc["available_bytes_per_s"] == 3e9 and doc["busy_share"] == pytest.approx(0.5)
    assert figures("checkpoint", "--checkpoint", "20GB")["write_s"] == 10
    assert figures("checkpoint", "--checkpoint", "20GB", "--write-rate", "1GB/s")["write_s"] == 20
    doc = figures("raid", "--devices", "4")
    assert doc["read_bytes_per_s"] == 12e9 and doc["write_iops_per_s"] == 80000
    assert figures("cliff", "--checkpoint", "140GB")["falls_after_s"] == pytest.approx(100 / 6)
    doc = figures("format", "--kind", "images", "--samples", "10", "--sample-bytes", "30kB")
    assert doc["raw_bytes_per_s"] == pytest.approx(0.5e9) and doc["shard_bytes_per_s"] == 3e9
    doc = plan.json("plan", "cluster", "--gpus", "16", "--parameters", "1B", "--corpus", "1TB",
                    *measured)
    assert {f["name"]: f["have_bytes_per_s"] for f in doc["flows"]}["read"] == 6e9
    plan.file("bad.json", "{}")
    assert "bad.json" in plan.fails("plan", "read", "--profile", "bad.json")


# ---- what is wrong, and what is missing ----

@pytest.mark.parametrize("args, text", [
    ("read", "--tokens-per-s is missing"),
    ("read --tokens-per-s 5", "--gpus is missing (in a plan file: cluster.gpus)"),
    ("read --tokens-per-s 5 --samples-per-s 5", "told more than once"),
    ("read --over 5d", "--corpus is missing"),
    ("read --gpus 5 --samples-per-s 5", "--sample-bytes is missing"),
    ("read --gpus 5 --batches-per-s 5", "--batch-bytes is missing"),
    ("checkpoint", "--parameters is missing: or --checkpoint, its size"),
    ("checkpoint --parameters 5 --state some", "'some' is not one of weights, moments, fp32"),
    ("interval", "--stall is missing"),
    ("interval --stall 5s", "--mtbf is missing"),
    ("raid --device nmve", "there is no 'nmve' in the catalog: did you mean nvme?"),
    ("raid --pcie gen9", "'gen9' is not one of gen3, gen4 and gen5"),
    ("cliff", "--slc-cache is missing"),
    ("cliff --slc-cache 1GB --fast-rate 1GB --native-rate 2GB --checkpoint 1", "no cliff"),
    ("endurance --checkpoint 1GB", "--interval is missing"),
    ("endurance --checkpoint 1GB --interval 1h --device hdd", "--tbw is missing"),
    ("cost", "--size is missing"),
    ("format --kind films", "'films' is not one of tokens, images"),
    ("format --kind images --access often", "'often' is not one of shuffled"),
    ("format --kind images", "--samples is missing"),
    ("cluster --gpus 5", "--parameters is missing (in a plan file: model.parameters)"),
    ("cluster --gpus 5 --parameters 5", "--corpus is missing"),
    # absurd ones
    ("read --gpus 0", "--gpus: '0' is out of range (1 to 10000000)"),
    ("read --gpus -5", "--gpus: '-5' is not a number"),
    ("read --gpus nan", "--gpus: 'nan' is not a number"),
    ("read --gpus 1.5", "--gpus: '1.5' is not a whole number"),
    ("read --gpus 70Q", "--gpus: '70Q' is not a number (try 512, 100K or 70B)"),
    ("read --corpus 1e30", "--corpus: '1e30' is not a size"),
    ("read --corpus 1000000000000000000000000000000", "is too large a size"),
    ("read --efficiency 0", "--efficiency: '0' is out of range (0.001 to 1)"),
    ("read --efficiency inf", "--efficiency: 'inf' is not a number"),
    ("read --read-rate 5GBps", "--read-rate: '5GBps' is not a rate (try 500MB/s"),
    ("durability --afr 1", "--afr: '1' is out of range"),
    ("durability --copies 21", "--copies: '21' is out of range (1 to 20)"),
    ("interval --stall 0s", "--stall: '0s' is out of range"),
    ("read extra", "'extra' is one too many"),
])
def test_what_is_wrong_is_told_by_name(plan, args, text):
    said = plan.fails("plan", *args.split(), rc=2)
    assert text in said, said
    error = plan.json("plan", *args.split(), rc=2)["error"]
    assert error["code"] == "USAGE" and text in error["text"]


def test_the_largest_of_everything(plan, options):
    """No figure becomes nonsense where all inputs are at their ends."""
    doc = plan.json("plan", "cluster", "--gpus", "10M", "--parameters", "10000T", "--corpus", "9EB",
                    "--state", "gradients", "--interval", "1ms", "--node-mtbf", "1s")
    assert doc["figures"]["lost_share"] == 1 and doc["figures"]["run_with_losses_s"] is None
    assert plan("plan", "cluster", "--gpus", "1", "--parameters", "1", "--corpus", "1").out
    assert plan("plan", "durability", "--afr", "0.999", "--copies", "20", "--repair", "290y").out


def test_nothing_is_said_quietly(plan):
    assert plan("plan", "cost", "--size", "1GB", "--quiet").out == ""
    assert plan("plan", "catalog", "--quiet").out == ""


# ---- the page and the catalog ----

def test_the_page(plan, tmp_path):
    out = plan("plan", "cluster", "--gpus", "512", "--parameters", "70B", "--corpus", "20TB",
               "--html", "deep/plan.html").out
    page = (tmp_path / "deep/plan.html").read_text()
    assert out.startswith("What do 512 GPUs, 70B parameters and 20 TB of data need?\n")
    assert not re.search(r"(src|href)=|<script|https?://(?!www\.w3\.org/)|@import|url\(", page)
    root = xml.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", page))
    texts = [t for t in root.itertext()]
    for name in "HBM", "DRAM", "NVMe", "shared storage", "object store", "checkpoints, shared":
        assert texts.count(name) >= 2, name  # in the picture and in a table
    picture = page[page.index("<svg"):page.index("</svg>") + 6] + "\n"
    assert (ROOT / "docs/plan.svg").read_text() == picture, "make docs/plan.svg anew"
    doc = plan.json("plan", "cluster", "--gpus", "512", "--parameters", "70B", "--corpus", "20TB",
                    "--html", "/dev/null")
    assert list(doc) == ["question", "figures", "bottleneck", "changes", "assumptions", "published",
                         "tiers", "flows", "limits"]
    said = plan.fails("plan", "cluster", "--gpus", "512", "--parameters", "70B", "--corpus", "20TB",
                      "--html", "deep/plan.html/x")
    assert "deep/plan.html" in said


@pytest.mark.parametrize("saved", [[], ["--state", "weights"], ["--state", "gradients"],
                                   ["--checkpoint", "1GB"]])
def test_what_is_saved_does_not_change_what_gpus_hold(plan, saved):
    """Weights, optimizer and gradients of mixed precision: 16 bytes."""
    doc = plan.json("plan", "cluster", "--gpus", "64", "--parameters", "7B", "--corpus", "1TB",
                    *saved)
    assert doc["tiers"][0]["name"] == "HBM" and doc["tiers"][0]["need_bytes"] == 16 * 7e9


def test_a_flow_that_is_too_small_is_red(plan, tmp_path):
    plan("plan", "cluster", "--gpus", "512", "--parameters", "70B", "--corpus", "20TB",
         "--interval", "10s", "--write-rate", "1GB/s", "--html", "plan.html")
    page = (tmp_path / "plan.html").read_text()
    assert page.count("<path class='less'") == 1 and page.count("<path class='save'") == 3


def test_catalog_is_what_the_figures_were_published_as(plan):
    doc = plan.json("plan", "catalog")
    assert {d["name"]: tuple(d[k] or 0 for k in ("read_bytes_per_s", "write_bytes_per_s",
                                                 "read_iops", "write_iops", "usd_per_tb",
                                                 "tbw_bytes")) for d in doc["devices"]} == {
        name: tuple(float(x) for x in row) for name, row in planmath.DEVICES.items()}
    assert doc["links"] == planmath.LINKS
    assert {k: tuple(v) for k, v in doc["states"].items()} == planmath.STATES
    assert doc["shared_bytes_per_s"]["DAOS"] == [1.4e12, 31e12]
    assert [b["s"] for b in doc["budgets"]] == [0.005, 0.01, 0.05]
    assert [v["bytes"] for v in doc["volumes"]] == [10e9, 50e9, 1e12]
    assert doc["usd_per_gb_month"] == {k: float(v) for k, v in planmath.PRICES.items()}
