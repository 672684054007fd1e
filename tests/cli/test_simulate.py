"""weir plan simulate: what the formulas say where they hold, by exact fractions; the same for a
seed; told as text, JSON, page and charts; what is wrong is named, and it can be stopped."""
import json
import math
import re
import signal
import subprocess
import xml.etree.ElementTree as xml
from fractions import Fraction

import pytest

from conftest import PATIENCE_S, ROOT, is_polite, wait_for

SVG, HTML = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xhtml}"
GB = 10**9
# 64 nodes; 640 GB are written to the shared storage at 100 GB/s: 6.4 s.
JOB = ["--gpus", "512", "--step", "1s", "--over", "10d", "--no-failures"]
SAVES = ["--checkpoint", "640GB", "--write-rate", "100GB/s", "--save-to", "shared"]
PARTS = ["goodput", "lost_share", "read_share", "checkpoint_share", "restart_share"]


def simulate(weir, *args, **more):
    doc = weir.json("plan", "simulate", *args, **more)
    if "goodput" in doc:
        assert sum(doc[part] for part in PARTS) == pytest.approx(1)
        for one in doc["over_time"]:
            assert sum(one[part] for part in PARTS) == pytest.approx(1, abs=1e-6)
        for tier, name in enumerate(one["name"] for one in doc["tiers"]):
            for way in ("read_bytes", "written_bytes"):
                if doc["runs"] == 1:
                    over_time = sum(one[way][tier] for one in doc["over_time"])
                    assert over_time == pytest.approx(doc["tiers"][tier][way]), name
    return doc


def near(value, expected, relative=1e-3):
    assert value == pytest.approx(float(expected), rel=relative)


# ---- formulas ----

def test_synchronous(weir):
    """size / bandwidth, after every interval."""
    doc = simulate(weir, *JOB, *SAVES, "--sync", "--interval", "100s")
    stall = Fraction(640, 100) + Fraction(1, 1000)  # and a latency of 1 ms
    near(doc["checkpoint_share"], stall / (100 + stall))
    near(doc["shares"]["save_write"], stall / (100 + stall))
    near(doc["tiers"][1]["written_bytes"], doc["saves"] * 640 * GB)
    assert doc["formula_interval_s"] is None  # nothing fails


@pytest.mark.parametrize("queue, interval", [(1, 100), (1, 4), (2, 100), (2, 4), (3, 4)])
def test_asynchronous(weir, queue, interval):
    """snapshot + max(0, write time - interval); with a queue, a snapshot is taken meanwhile, so
    that it is part of the interval."""
    doc = simulate(weir, *JOB, *SAVES, "--interval", f"{interval}s", "--snapshot-rate", "2.5GB/s",
                   "--queue", str(queue))
    copy, write = Fraction(10, 20), Fraction(6401, 1000)
    stall = copy + max(0, write - interval - (copy if queue > 1 else 0))
    near(doc["checkpoint_share"], stall / (interval + stall))
    near(doc["shares"]["save_copy"] * doc["simulated_s"], copy * int(doc["saves"]), 1e-2)


def test_readers_share(weir):
    """512 x 100 MB at 25.6 GB/s take 2 s, for steps that compute for 1."""
    args = [*JOB, "--save-to", "none", "--batch-bytes", "100MB"]
    doc = simulate(weir, *args, "--read-rate", "25.6GB/s")
    near(doc["read_share"], 0.5)
    near(doc["steps"], 10 * 86400 / 2)
    near(doc["tiers"][1]["read_bytes"], doc["steps"] * 512 * 10**8)
    doc = simulate(weir, *args, "--read-rate", "102.4GB/s", "--depth", "0", "--latency", "1ns")
    near(doc["read_share"], Fraction(1, 3))
    doc = simulate(weir, *args, "--read-rate", "102.4GB/s", "--network-rate", "400MB/s")
    near(doc["steps"], 10 * 86400 / 2)  # 800 MB of each node
    tokens = simulate(weir, *JOB, "--save-to", "none", "--tokens-per-s", "100K", "--read-rate",
                      "1TB/s")
    near(tokens["tiers"][1]["read_bytes"], 10 * 86400 * 512 * 200000)


def test_cliff(weir):
    """10 GB of each node: 4 at 4 GB/s, 6 at 1."""
    doc = simulate(weir, *JOB, "--checkpoint", "640GB", "--save-to", "nvme", "--sync",
                   "--interval", "100s", "--slc-cache", "4GB", "--fast-rate", "4GB/s",
                   "--native-rate", "1GB/s")
    near(doc["checkpoint_share"], Fraction(7, 107))
    near(doc["cliff_s"], 6 * doc["saves"], 1e-2)


def test_cliff_under_a_limit(weir):
    """Where weir plan cliff says a limit avoids it, it does; one that is higher does not."""
    drive = ["--slc-cache", "100GB", "--fast-rate", "6.5GB/s", "--native-rate", "1.5GB/s"]
    avoids = weir.json("plan", "cliff", "--checkpoint", "140GB", *drive)["figures"][
        "limit_bytes_per_s"]
    near(avoids, 5.25 * GB)
    args = ["--gpus", "8", "--over", "1d", "--no-failures", "--checkpoint", "140GB", "--save-to",
            "nvme", "--sync", "--interval", "10min", *drive]
    doc = simulate(weir, *args, "--save-rate", f"{int(avoids * 0.999)}")
    assert doc["cliff_s"] == 0 and doc["saves"] > 100
    near(doc["checkpoint_share"] / doc["goodput"], 140 / 5.25 / 0.999 / 600, 1e-2)
    assert simulate(weir, *args, "--save-rate", f"{int(avoids * 1.001)}")["cliff_s"] > 0


def test_young(weir):
    """Of the intervals around sqrt(2 C M), that one wastes the least; and what is lost, saved and
    waited is what formulas say."""
    doc = simulate(weir, "--gpus", "512", "--checkpoint", "6TB", "--write-rate", "100GB/s",
                   "--read-rate", "200GB/s", "--save-to", "shared", "--sync", "--mtbf", "2h",
                   "--detect", "20s", "--restart", "70s", "--spares", "1000", "--node-repair", "1s",
                   "--over", "400d", "--runs", "4", "--intervals", "auto")
    cost, mtbf, restart = 60.001, 7200, 120.001
    best = math.sqrt(2 * cost * mtbf)
    near(doc["formula_interval_s"], best, 1e-9)
    near(doc["interval_s"], best, 0.42)  # or one of its neighbours, which are nearly as good
    assert len(doc["intervals"]) == 9
    for one in doc["intervals"]:
        period = one["interval_s"] + cost
        needed = mtbf * math.exp(restart / mtbf) * math.expm1(period / mtbf)
        near(one["goodput"], one["interval_s"] / needed, 0.01)
        assert one["goodput_min"] <= one["goodput"] <= one["goodput_max"]
        assert 0 < one["goodput_sd"] < 0.02
        assert one["goodput"] <= doc["goodput"]
    by_interval = {round(one["interval_s"] / best, 3): one for one in doc["intervals"]}
    assert by_interval[1]["goodput"] > by_interval[0.25]["goodput"] > by_interval[0.125]["goodput"]
    assert by_interval[1]["goodput"] > by_interval[4]["goodput"] > by_interval[8]["goodput"]
    near(by_interval[1]["failures"], 400 * 86400 / mtbf, 0.05)
    near(by_interval[1]["restart_share"], restart / mtbf, 0.05)


def test_loads_are_never_for_free(weir):
    """What was not told of the shared storage is as weir plan cluster has it, and is said."""
    args = ["--gpus", "512", "--over", "10d", "--mtbf", "1h", *SAVES]
    doc = simulate(weir, *args)
    told = simulate(weir, *args, "--read-rate", "100GB/s")
    text, = doc.pop("assumptions")
    assert text == ("checkpoints are read from the shared storage at 100 GB/s (--read-rate was not "
                    "told)")
    assert told.pop("assumptions") == [] and doc == told
    near(doc["shares"]["load"] * doc["simulated_s"], 6.401 * doc["levels"][0]["restarts"], 1e-2)
    assert f"\nassumed       {text}\n" in weir("plan", "simulate", *args, "--html", "s.html").out
    assert f"Assumed: {text}." in (weir.cwd / "s.html").read_text()
    for more in ["--no-failures"], ["--save-to", "nvme"], ["--save-to", "none"]:
        assert simulate(weir, *args, *more)["assumptions"] == []
    copied = simulate(weir, *args, "--no-failures", "--save-to", "shared,object")
    assert copied["assumptions"] == [text]


# ---- the same answer ----

BIG = ["--gpus", "16384", "--parameters", "405B", "--write-rate", "200GB/s", "--batch-bytes", "8MB",
       "--read-rate", "40GB/s", "--step", "4s", "--node-mtbf", "256d", "--over", "21d"]


def test_seeds(weir):
    """2,048 nodes for three weeks."""
    first, again = (simulate(weir, *BIG, "--seed", "7") for _ in range(2))
    other = simulate(weir, *BIG, "--seed", "8")
    assert first == again and first["seed"] == 7
    assert first["lost_share"] != other["lost_share"]
    assert 100 < first["failures"] < 250 and first["nodes_lost"] < first["failures"]
    assert {level["tier"] for level in first["levels"]} == {"nvme", "shared"}
    assert sum(level["restarts"] for level in first["levels"]) <= first["failures"]
    many = simulate(weir, *BIG, "--seed", "7", "--runs", "3")
    assert many["over_time"] == first["over_time"]
    assert many["goodput_min"] < many["goodput"] < many["goodput_max"]


def test_document(weir):
    doc = simulate(weir, *BIG)
    assert list(doc) == [
        "gpus", "nodes", "seed", "runs", "formula_interval_s", "interval_s", "goodput",
        "lost_share", "read_share", "checkpoint_share", "restart_share", "goodput_min",
        "goodput_max", "goodput_sd", "shares", "simulated_s", "steps", "saves", "failures",
        "nodes_lost", "restarts_from_nothing", "cliff_s", "levels", "tiers", "events",
        "assumptions", "intervals", "bin_s", "over_time"]
    assert (doc["gpus"], doc["nodes"], doc["interval_s"]) == (16384, 2048, 1800)
    assert sum(doc["shares"].values()) == pytest.approx(1)
    assert len(doc["over_time"]) <= 240 and doc["intervals"] == []


def test_until_steps_are_done(weir):
    doc = simulate(weir, *JOB[:4], "--no-failures", "--save-to", "none", "--steps", "1000")
    assert doc["steps"] == pytest.approx(1000) and doc["simulated_s"] == pytest.approx(1000)
    assert doc["interval_s"] is None
    doc = simulate(weir, *JOB[:4], "--no-failures", *SAVES, "--steps", "1000", "--every", "100",
                   "--sync")
    near(doc["simulated_s"], 1000 + 9 * 6.401, 1e-2)  # the last one comes too late


# ---- where it comes from ----

def test_plan_file(weir):
    plan = {"model": {"checkpoint": "640GB"}, "data": {"step": "1s"}, "cluster": {"gpus": 512},
            "storage": {"write_rate": "100GB/s", "interval": "100s"},
            "simulate": {"save_to": "shared", "sync": "yes", "no_failures": "yes", "seed": 3}}
    weir.file("plan.json", json.dumps(plan))
    told = simulate(weir, "--file", "plan.json", "--over", "10d")
    assert told == simulate(weir, *JOB, *SAVES, "--sync", "--interval", "100s", "--seed", "3")
    more = simulate(weir, "--file", "plan.json", "--over", "10d", "--interval", "50s")
    near(more["checkpoint_share"], Fraction(6401, 56401))
    plan["simulate"]["sede"] = 1
    weir.file("plan.json", json.dumps(plan))
    assert "did you mean 'seed'" in weir.fails("plan", "simulate", "--file", "plan.json")


def test_profile(weir):
    """What was measured is the NVMe of a node."""
    weir.file("p.json", json.dumps({"weir_profile": 1, "checkpoint_bytes_per_s": 2e9,
                                    "shards_bytes_per_s": 3e9, "read_latency_s_p50": 0.9,
                                    "lookup_latency_s_p50": 0.5}))
    args = [*JOB, "--checkpoint", "640GB", "--save-to", "nvme", "--sync", "--interval", "100s"]
    doc = simulate(weir, *args, "--profile", "p.json")
    near(doc["checkpoint_share"], Fraction(55, 1055))  # 5 s, and half a second before
    told = [*args, "--profile", "p.json", "--latency", "2s"]
    near(simulate(weir, *told)["checkpoint_share"], Fraction(55, 1055))  # that is of shared data
    near(simulate(weir, *told, "--data-on", "nvme")["checkpoint_share"], Fraction(7, 107))
    weir.file("p.json", json.dumps({"weir_profile": 1, "checkpoint_bytes_per_s": 2e9,
                                    "cliff_at_bytes": 4e9, "cliff_before_bytes_per_s": 4e9,
                                    "cliff_after_bytes_per_s": 1e9}))
    near(simulate(weir, *args, "--profile", "p.json")["checkpoint_share"], Fraction(7, 107))
    doc = simulate(weir, *args, "--profile", "p.json", "--slc-cache", "10GB")
    near(doc["checkpoint_share"], Fraction(25, 1025))


# ---- what people see ----

def test_text(weir):
    out = weir("plan", "simulate", *BIG, "--intervals", "10min,1h", "--runs", "2").out
    assert re.search(r"^job +16,384 GPUs on 2,048 nodes, steps of 4 s, a batch of 8 MB", out)
    assert re.search(r"^checkpoints +5.67 TB every 10 min, in the background to nvme, then shared$",
                     out, re.M)
    assert re.search(r"^training +\d\d\.\d\d % .*#{20}", out, re.M)
    assert len(re.findall(r"<- best$", out, re.M)) == 1
    assert re.search(r"^What costs the most: [a-z ]+, [\d.]+ % of the time; what helps: ", out,
                     re.M)
    assert "nan" not in out and "inf" not in out
    quiet = weir("--quiet", "plan", "simulate", *BIG)
    assert quiet.out == "" and quiet.err == ""
    nothing = weir("plan", "simulate", *JOB, "--save-to", "none").out
    assert "nothing costs more than 0.05 % of the time" in nothing


def test_page_and_charts(weir, tmp_path):
    weir("plan", "simulate", *BIG, "--intervals", "10min,1h", "--html", "s.html", "--svg", "s.svg")
    page = xml.parse(tmp_path / "s.html").getroot()
    charts = list(page.iter(SVG + "svg"))
    assert len(charts) == 4  # time, written, read, intervals
    texts = [node.text for chart in charts for node in chart.iter(SVG + "text")]
    for text in ("Where the time goes", "lost work", "restarts", "nvme", "Waste by interval"):
        assert text in texts
    headings = [node.text for node in page.iter(HTML + "h2")]
    assert headings == ["Over time", "How often to save", "Causes", "Tiers", "What was simulated"]
    raw = (tmp_path / "s.html").read_text()
    assert "<script" not in raw and not re.search(r"\b(nan|inf)\b", raw)
    svg = xml.parse(tmp_path / "s.svg").getroot()
    assert len([g for g in svg.iter(SVG + "g") if g.get("transform")]) == 4
    weir("plan", "simulate", *JOB, "--save-to", "none", "--svg", "t.svg")
    svg = xml.parse(tmp_path / "t.svg").getroot()
    assert len([g for g in svg.iter(SVG + "g") if g.get("transform")]) == 1


def test_examples_of_the_docs(weir):
    """Each command in docs/simulate.md prints what the page says it prints."""
    text = (ROOT / "docs/simulate.md").read_text()
    found = re.findall(r"^    \$ (weir plan simulate(?:.*\\\n)*.*)\n((?:    .*\n|\n(?=    ))*)",
                       text, re.M)
    assert len(found) >= 2
    for command, shown in found:
        args = command.replace("\\\n", " ").split()[1:]
        shown = re.sub(r"^    ", "", shown, flags=re.M).strip()
        assert weir(*args).out.strip() == shown, command


# ---- what is wrong ----

@pytest.mark.parametrize("args, text", [
    ([], "--gpus is missing"),
    (["--gpus", "8"], "--write-rate is missing: checkpoints go to the shared storage"),
    (["--gpus", "8", "--save-to", "nvme"], "--parameters is missing"),
    (["--gpus", "8", "--save-to", "tape"], "'tape' is none of nvme, shared and object"),
    (["--gpus", "8", "--save-to", "nvme,nvme"], "nvme is there twice"),
    (["--gpus", "8", "--save-to", "none", "--data-on", "moon"], "--data-on: 'moon' is none of"),
    (["--gpus", "8", "--save-to", "none", "--batch-bytes", "1"], "--read-rate is missing"),
    (["--gpus", "8", "--save-to", "none", "--intervals", "1h"], "nothing is saved"),
    (["--gpus", "0"], "gpus: '0' is out of range"),
    ([*JOB, *SAVES, "--every", "9", "--interval", "1h"], "--every and --interval are both there"),
    ([*JOB, *SAVES, "--intervals", "1h,x"], "'x' is not a duration"),
    ([*JOB, *SAVES, "--intervals", "0s"], "one is 0"),
    ([*JOB, *SAVES, "--intervals", "auto"], "needs failures"),
    ([*JOB, *SAVES, "--intervals", ",".join(["1h"] * 33)], "at most 32"),
    ([*JOB, *SAVES, "--queue", "65"], "queue: '65' is out of range"),
    ([*JOB, *SAVES, "--runs", "10001"], "out of range"),
    (["--gpus", "8", *SAVES, "--mtbf", "1us"], "a node would fail every"),
    ([*JOB, *SAVES, "--save-to", "nvme", "--slc-cache", "1GB", "--fast-rate", "1MB/s"],
     "tier nvme has a burst cache"),
])
def test_what_is_wrong_is_said(weir, args, text):
    assert text in weir.fails("plan", "simulate", *args, rc=2)


def test_files_are_tried_first(weir):
    weir.file("f", b"")
    assert "'f" in weir.fails("plan", "simulate", *JOB, "--save-to", "none", "--html", "f/x.html")
    assert weir("plan", "simulate", *JOB, "--save-to", "none", "--svg", "f/x", rc=1).out == ""


def test_bounded(weir):
    """A save each ten milliseconds, for a century; and many runs, of which some go."""
    args = [*JOB[:4], "--no-failures", "--checkpoint", "1kB", "--save-to", "nvme", "--interval",
            "10ms"]
    text = weir.fails("plan", "simulate", *args, "--over", "100y", "--events-max", "10K")
    assert re.match(r"after 10000 events only [\d.]+ days .* ask for a shorter time.*--events-max",
                    text)
    events = simulate(weir, *args, "--over", "10s")["events"]
    most = str(3 * events)
    assert simulate(weir, *args, "--over", "10s", "--runs", "3", "--events-max", most)["runs"] == 3
    assert "--events-max" in weir.fails("plan", "simulate", *args, "--over", "10s", "--runs", "4",
                                        "--events-max", most)


def test_stopped(weir):
    for form in (["--json"], []):
        process = weir.start(*form, "plan", "simulate", *BIG, "--runs", "10000",
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: is_polite(process), "the simulation")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130
        assert json.loads(out)["error"]["code"] == "EINTR" if form else b"stopped by SIGINT" in err
