"""A store on a real RGW, through a proxy that misbehaves: what was acknowledged reads back exactly,
nothing is lost, no wrong byte is given, and no wait is longer than its budget, which is seen by
commands that end with a clear text, and by the number of requests.
"""
import os
import subprocess
import threading

import pytest
from client import PATIENCE_S, Client
from conftest import BUILD
from processes import peak_bytes
from proxy import MemoryS3, Proxy, Rule, faults

LONG = bool(os.environ.get("WEIR_TEST_LONG"))
BRIEF = "asan" in BUILD.name  # looks at code, not at every fault
LARGE = 20 << 20  # more than one part
SMALL = 70000
DATA, SEAL = ".weir/data/", ".weir/seal/"


class Place:
    """A store behind a proxy of its own."""

    def __init__(self, rgw, proxy, tmp_path, prefix):
        self.rgw, self.proxy, self.prefix = rgw, proxy, prefix
        self.tmp_path = tmp_path

    def url(self, **options):
        options = {"timeout": "60s", **options}
        words = "".join(f"&{name}={value}" for name, value in options.items())
        return f"s3://{self.rgw.bucket}/{self.prefix}?endpoint={self.proxy.url}{words}"

    def client(self, **options):
        return Client(self.tmp_path, self.url(**options), self.rgw.s3_env, [self.rgw.secret_key])

    def uploads(self):
        """Multipart uploads that are neither complete nor aborted, as the server tells."""
        status, _, body = self.rgw.s3().request("GET", f"/{self.rgw.bucket}",
                                                {"uploads": "", "prefix": self.prefix})
        assert status == 200
        return body.count(b"<Upload>")


@pytest.fixture
def place(rgw, tmp_path, request):
    name = request.node.name.translate(str.maketrans("[]", "__"))
    prefix = f"faults/{os.getpid()}/{name}"
    with Proxy(("127.0.0.1", rgw.rgw_port)) as proxy:
        yield Place(rgw, proxy, tmp_path, prefix)


def first_of_each(fault, **what):
    """A rule: the fault comes for the first request of each kind to each name."""
    seen = set()

    def is_first(head):
        key = head.method, head.target
        if key in seen:
            return False
        seen.add(key)
        return True
    return Rule(fault, test=is_first, **what)


def everything(weir):
    """What people do with a store; all of it must work."""
    weir("init")
    small, large = weir.put("small", SMALL), weir.put("large", LARGE, 2)
    assert weir.has("small", small) and weir.has("large", large)
    assert weir.keys() == ["large", "small"]
    weir("rm", "small")
    assert weir.keys() == ["large"]
    again = weir.put("small", SMALL, 3)
    assert weir.has("small", again)
    weir("gc", "--now")
    assert "2 objects verified" in weir("verify").out


ONCE = {
    "500": faults.Error(500), "503": faults.Error(503, "SlowDown"),
    "lost": faults.Lose(), "lost_500": faults.LoseByError(500),
    "lost_503": faults.LoseByError(503, "ServiceUnavailable"),
    "two_lengths": faults.TwoLengths(), "truncated": faults.Truncate(1),
    "closed": faults.ResetAnswer("between", politely=True),
    **{f"reset_{where}": faults.ResetAnswer(where) for where in faults.PLACES},
    **{f"upload_{where}": faults.ResetUpload(where) for where in faults.PLACES},
}
# All of them when there is time; in each run, one of each sort.
OFTEN = ["500", "lost", "lost_503", "reset_head", "reset_first", "reset_middle", "reset_last",
         "upload_middle", "truncated", "two_lengths"]
SOME = list(ONCE) if LONG else ["lost", "two_lengths"] if BRIEF else OFTEN


@pytest.mark.parametrize("name", SOME)
def test_what_fails_once_is_done_again(place, name):
    place.proxy.add(first_of_each(ONCE[name]))
    everything(place.client())
    assert place.proxy.rules[0].fired > 10


def test_an_error_within_a_good_answer(place):
    """As CompleteMultipartUpload may say it: 200, and then that it failed."""
    weir = place.client()
    weir("init")
    place.proxy.add(Rule(faults.ErrorInside(), method="POST", query="uploadId", times=2))
    large = weir.put("large", LARGE)
    assert place.proxy.rules[0].fired == 2
    assert weir.has("large", large)


def test_a_storm_of_slow_down(place):
    """For a while half of the requests are told to slow down."""
    weir = place.client()
    weir("init")
    place.proxy.add(Rule(faults.Error(503, "SlowDown"), chance=0.5, times=40, seed=5))
    large = weir.put("large", LARGE)
    assert weir.has("large", large)
    assert place.proxy.count(status=503) > 10


def test_only_slow_down(place):
    """For ever: it ends with what the server said."""
    weir = place.client()
    weir("init")
    large = weir.put("large", SMALL)
    place.proxy.add(Rule(faults.Error(503, "SlowDown")))
    short = place.client(timeout="10s")
    text = short.fails("get", "large", "x")
    assert "503" in text or "SlowDown" in text, text
    assert place.proxy.count(status=503) < 200
    place.proxy.clear()
    assert weir.has("large", large)


# Wrong bytes


WRONG = {"one_short": faults.Shorten(1), "first": faults.Flip(0), "last": faults.Flip(-1),
         "many_short": faults.Shorten(5000)}


@pytest.mark.parametrize("name", list(WRONG)[:1] if BRIEF else WRONG)
@pytest.mark.parametrize("where", [DATA, SEAL])
def test_wrong_bytes_are_never_given(place, name, where):
    weir = place.client()
    weir("init")
    source = weir.put("a", 3 << 20)
    place.proxy.add(Rule(WRONG[name], method="GET", path=where,
                         test=lambda head: head.path.count("/") > 3))
    result = place.client(timeout="5s")("get", "a", "out-wrong", rc=None)
    assert place.proxy.rules[0].fired
    if result.rc == 0:
        assert (weir.cwd / "out-wrong").read_bytes() == source.read_bytes()
    else:
        assert not (weir.cwd / "out-wrong").exists()
    place.proxy.clear()
    assert weir.has("a", source)


def test_wrong_bytes_on_their_way_to_the_server(place):
    """The server notices by the signature of what it gets, and has it sent again."""
    weir = place.client()
    weir("init")
    place.proxy.add(Rule(faults.FlipUpload(), method="PUT", times=3))
    source = weir.put("a", LARGE)
    assert place.proxy.rules[0].fired == 3
    assert weir.has("a", source)


# Stalls


STALLS = {
    "before_the_answer": (faults.Stall(faults.HEAD), "GET"),
    "in_an_answer": (faults.Stall(faults.MIDDLE), "GET"),
    "after_an_upload": (faults.Stall(faults.HEAD), "PUT"),
    "in_an_upload": (faults.Stall(faults.MIDDLE, upload=True), "PUT"),
}


@pytest.mark.parametrize("name", list(STALLS)[-1:] if BRIEF else STALLS)
def test_a_stalled_socket_is_given_up(place, name):
    fault, method = STALLS[name]
    weir, hasty = place.client(), place.client(timeout="4s")
    weir("init")
    source = weir.put("a", 1 << 20)
    place.proxy.add(Rule(fault, method=method, path=DATA))
    result = hasty(*(["get", "a", "x"] if method == "GET" else ["put", str(source), "b"]), rc=None)
    assert place.proxy.stalled, "nothing was stalled"
    place.proxy.clear()
    if name == "after_an_upload":  # it was done, and a look tells
        assert result.rc == 0 and weir.has("b", source)
    else:
        assert result.rc == 1 and "timeout=" in result.err, result.err
        assert weir.keys() == ["a"]
    assert weir.has("a", source)


def test_one_stall_is_survived(place):
    weir = place.client(timeout="120s", stall="1s")
    weir("init")
    place.proxy.add(Rule(faults.Stall(faults.MIDDLE, upload=True), method="PUT", path=DATA,
                         times=1),
                    Rule(faults.Stall(faults.MIDDLE), method="GET", path=DATA, times=1))
    source = weir.put("a", LARGE)
    assert weir.has("a", source)
    assert place.proxy.stalled == 2


# Lost answers of commits


def test_a_lost_commit_that_cannot_be_settled(place):
    """Nothing answers any more when the seal was put: unknown, and the next look tells."""
    weir = place.client()
    weir("init")
    lost = place.proxy.add(Rule(faults.Lose(), method="PUT", path=SEAL))
    place.proxy.add(Rule(faults.Error(503, "SlowDown"), test=lambda h: lost.fired > 0))
    source = weir.file("a", SMALL)
    result = place.client(timeout="8s")("--json", "put", str(source), "a", rc=1)
    assert "EUNKNOWN" in result.out, result.out
    place.proxy.clear()
    assert weir.keys() == ["a"] and weir.has("a", source)
    assert "unchanged" in weir("put", str(source), "a").out
    assert weir.keys() == ["a"]


@pytest.mark.parametrize("fault", [faults.Lose(), faults.LoseByError(500),
                                   faults.LoseByError(503, "SlowDown")],
                         ids=["reset", "500", "503"])
def test_lost_commits_are_told_apart(place, fault):
    """Its own write is no other's; and another's is not its own."""
    weir = place.client()
    weir("init")
    place.proxy.add(Rule(fault, method="PUT", path=SEAL, times=2))
    source = weir.put("a", SMALL)
    assert place.proxy.rules[0].fired == 2
    place.proxy.clear()
    other = weir.file("other", SMALL, 9)
    place.proxy.add(Rule(fault, method="PUT", path=SEAL, times=2))
    assert "exists" in weir.fails("put", str(other), "a")
    place.proxy.add(Rule(fault, method="PUT DELETE POST", times=4))
    weir("rm", "a")
    assert weir.keys() == []
    assert source.exists()


# What the server says


def lie(change):
    return Rule(faults.Rewrite(change), method="GET", query="list-type")


LIES = {
    "no_xml": lambda body: b"hello",
    "empty": lambda body: b"",
    "cut": lambda body: body[:len(body) // 2],
    "deep": lambda body: b"<a>" * 100000,
    "outside": lambda body: body.replace(b"faults", b"elsewhere"),
    "up": lambda body: body.replace(b".weir", b"../../etc"),
    "control": lambda body: body.replace(b".weir", b"a&#10;&#0;b"),
    "long": lambda body: body.replace(b".weir", b"x" * 100000),
    "entity": lambda body: body.replace(b".weir", b"&lol;"),
    "no_token": lambda body: body.replace(b"<IsTruncated>false", b"<IsTruncated>true"),
}


@pytest.mark.parametrize("name", list(LIES)[2:4] if BRIEF else LIES)
def test_listings_that_lie(place, name):
    """Whatever a listing says, nothing breaks, and names are only below the store's own."""
    weir, hasty = place.client(), place.client(timeout="5s")
    weir("init")
    source = weir.put("a", SMALL)
    place.proxy.add(lie(LIES[name]))
    result = hasty("ls", "-r", rc=None)
    assert place.proxy.rules[0].fired and place.proxy.count() < 500
    assert set(result.out.split()) <= {"a", "b"}, result.out
    hasty("gc", "--now", rc=None)
    place.proxy.clear()
    assert weir.has("a", source)


def test_a_listing_that_never_ends(place):
    weir = place.client()
    weir("init")
    weir.put("a", SMALL)
    item = b"<Contents><Key>x</Key><Size>1</Size></Contents>"
    fault = faults.Endless(b"<ListBucketResult>", item)
    place.proxy.add(Rule(fault, method="GET", query="list-type"))
    place.client(timeout="10s").fails("ls", "-r")
    assert fault.sent < 512 << 20


def test_a_token_that_loops(place):
    """Each page says that there is more, with the same token."""
    weir = place.client()
    weir("init")
    weir.put("a", SMALL)

    def loop(body):
        return body.replace(b"<IsTruncated>false</IsTruncated>", b"<IsTruncated>true</IsTruncated>"
                            b"<NextContinuationToken>again</NextContinuationToken>")
    place.proxy.add(lie(loop))
    place.client(timeout="10s")("ls", "-r", rc=None)
    assert place.proxy.count(query="list-type") < 200


def test_a_redirect_to_itself(place):
    weir = place.client()
    weir("init")
    weir.put("a", SMALL)
    place.proxy.clear()
    place.proxy.add(Rule(faults.Redirect()))
    place.client(timeout="10s").fails("get", "a", "x")
    assert place.proxy.count() < 200


def test_another_region(place):
    """The server says which one it is; that is used, once."""
    weir = place.client(region="eu-nowhere-1")
    place.proxy.add(Rule(faults.WrongRegion("us-east-1"), test=lambda h: (
        "/eu-nowhere-1/" in (h.get("authorization") or ""))))
    weir("init")
    source = weir.put("a", SMALL)
    assert weir.has("a", source) and place.proxy.rules[0].fired
    place.proxy.clear()
    place.proxy.add(Rule(faults.WrongRegion("mars-1")))
    weir.fails("get", "a", "x")
    assert place.proxy.count() < 50


@pytest.mark.parametrize("ahead_s", [-7200, 86400])
def test_another_clock(tmp_path, ahead_s):
    """The server's time is learned from its answers, whatever ours is."""
    with MemoryS3(ahead_s=ahead_s) as server:
        server.buckets["weir"] = {}
        env = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "top-secret"}
        weir = Client(tmp_path, f"s3://weir/clock?endpoint={server.url}&timeout=60s", env,
                      ["top-secret"])
        weir("init")
        source = weir.put("a", SMALL)
        assert weir.has("a", source) and server.skewed


def test_a_trickle(place):
    """Too slow to be of use: it is given up, and done again."""
    weir = place.client(timeout="120s", stall="1s")
    weir("init")
    source = weir.put("a", 3 << 20)
    place.proxy.add(Rule(faults.Trickle(1, 0.5), method="GET", path=DATA, times=1))
    assert weir.has("a", source)


# Servers that die


@pytest.mark.parametrize("upload", [True, False], ids=["upload", "download"])
def test_rgw_killed(place, upload):
    weir = place.client(timeout="300s")
    weir("init")
    first, second = weir.put("first", LARGE), weir.file("second", LARGE, 2)
    killed = threading.Event()

    def kill():
        place.rgw.kill("rgw")
        killed.set()

    place.proxy.add(Rule(faults.Call(kill, upload=upload), path=DATA,
                         method="PUT" if upload else "GET", first=2, times=1))
    process = weir.start(*(["put", str(second), "second"] if upload else ["get", "first", "x"]))
    assert killed.wait(PATIENCE_S)
    place.rgw.need_rgw()  # not by the thread that killed it: it would end with that one
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    if upload:
        assert weir.has("second", second)
    else:
        assert (weir.cwd / "x").read_bytes() == first.read_bytes()
    assert weir.has("first", first)


# What crashed writers leave


def test_abandoned_uploads_are_collected(place):
    weir = place.client()
    weir("init")
    source = weir.file("source", LARGE)
    process = []
    place.proxy.add(Rule(faults.Call(lambda: process[0].kill(), upload=True), method="PUT",
                         query="partNumber", first=2, times=1))
    process.append(weir.start("put", str(source), "a"))
    process[0].communicate()
    place.proxy.clear()
    assert place.uploads() >= 1 and weir.keys() == []
    weir("gc", "--now")
    assert place.uploads() == 0
    weir("put", str(source), "a")
    assert weir.has("a", source)
    weir("gc", "--now")
    assert weir.has("a", source)


# Many at once


def test_memory_of_many_uploads(place):
    """8 files of 16 MiB at once, to a server that is slow. Each has a part of 5 MiB that is being
    filled, whatever `memory` says; those that are under way wait for each other."""
    weir = place.client(timeout="300s", memory="16M", part="5M")
    weir("init")
    folder = weir.cwd / "files"
    for i in range(8):
        weir.file(f"files/{i}", 16 << 20, i)
    place.proxy.add(Rule(faults.Delay(0.05), method="PUT"))
    process = weir.start("-q", "put", "-r", "-j", "8", str(folder), "many")
    most = peak_bytes(process)
    out, err = process.communicate()
    assert process.returncode == 0, (out, err)
    if not BRIEF:  # a sanitizer keeps what was freed
        assert most < 125 << 20, f"{most >> 20} MiB"
    assert weir.has("many/7", folder / "7")


# Uploads begin while their first parts are made


def test_an_upload_that_begins_late(place):
    """Parts wait for it, but no more of them than there may be memory for."""
    weir = place.client(memory="16M", part="5M")
    weir("init")
    source = weir.file("source", 128 << 20)
    place.proxy.add(Rule(faults.Delay(3), method="POST", query="uploads"))
    process = weir.start("-q", "put", str(source), "late")
    most = peak_bytes(process)
    out, err = process.communicate()
    assert process.returncode == 0, (out, err)
    assert place.proxy.rules[0].fired == 1
    if not BRIEF:
        assert most < 80 << 20, f"{most >> 20} MiB"
    assert weir.has("late", source)


@pytest.mark.parametrize("late_s", [0, 1])
def test_an_upload_that_cannot_begin(place, late_s):
    """Whether parts are waiting by then or not."""
    weir = place.client()
    weir("init")
    source = weir.file("source", LARGE)
    place.proxy.add(Rule(faults.Error(403, "AccessDenied", after_s=late_s), method="POST",
                         query="uploads"))
    text = weir.fails("-q", "put", str(source), "a")
    assert f"{DATA}a~" in text and "AccessDenied" in text, text
    assert place.proxy.count(query="partNumber") == 0
    place.proxy.clear()
    assert place.uploads() == 0 and weir.keys() == []
    weir("-q", "put", str(source), "a")
    assert weir.has("a", source)


@pytest.mark.parametrize("seed", range(8 if LONG else 1))
def test_checkpoints(place, seed):
    """Saved and loaded while one request in ten fails in some way."""
    weir = place.client(timeout="300s")
    weir("init")
    for number, fault in enumerate(list(ONCE.values()) + [faults.Flip(7)]):
        place.proxy.add(Rule(fault, chance=0.006, seed=100 * seed + number))
    for step in (1, 2):
        done = subprocess.run([BUILD / "tests/cli/makeckpt", weir.store, "run", str(step), "2",
                               str(step), "{}", "20000"], env=weir.env, timeout=900, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
    weir("ckpt", "verify", "run")
    assert sum(rule.fired for rule in place.proxy.rules) > 3
    place.proxy.clear()
    weir("ckpt", "verify", "run")
    weir("ckpt", "export", "run", "--step", "2", "export", rc=None)


@pytest.mark.parametrize("seed", range(6 if LONG else 1))
def test_eight_processes_commit_through_faults(place, seed):
    """What failed did not happen, what was acknowledged did, at one instant."""
    for number, fault in enumerate(ONCE.values()):
        place.proxy.add(Rule(fault, chance=0.008, seed=100 * seed + number))
    done = subprocess.run([BUILD / "tests/remote/commits", place.url(), "faults"],
                          env={**os.environ, **place.rgw.s3_env, "WEIR_COMMITS": "24",
                               "WEIR_SEED": str(seed + 1)}, timeout=900, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-6000:]
