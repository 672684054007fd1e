"""Data that is removed at once goes together (DeleteObjects), on real servers and through a proxy
that misbehaves: what was acknowledged is gone, and what failed says which it is and why.
"""
import json
import os
import subprocess

import pytest
from conftest import BUILD
from proxy import MemoryS3, Proxy, Rule, faults

COUNT = 120
PATIENCE_S = 300
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "top-secret"}


def name_of(i):
    return f".weir/data/{i % 7} <&> é~{i}"


class Place:
    """A prefix of a bucket, behind a proxy of its own."""

    def __init__(self, upstream, bucket, env, prefix):
        self.upstream, self.bucket, self.env, self.prefix = upstream, bucket, env, prefix
        self.proxy = Proxy(upstream)

    def remove(self, *more, count=COUNT, timeout="60s", rules=()):
        """Makes them and removes them, with the rules from then on: {name: (errno, text)} of those
        that failed, and the names of those that are left."""
        url = f"s3://{self.bucket}/{self.prefix}?endpoint={self.proxy.url}&timeout={timeout}"
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        with subprocess.Popen([BUILD / "tests/remote/removals", url, str(count), *more], text=True,
                              env={**env, "AWS_EC2_METADATA_DISABLED": "true", **self.env},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == "made\n"
            self.proxy.clear()
            if rules:
                self.proxy.add(*rules)
            out, _ = process.communicate("\n", timeout=PATIENCE_S)
        lines = [line.split("\t") for line in out.split("\n")[:-1]]
        assert process.returncode == 0 and lines.pop() == ["done"], out[-3000:]
        failed = {line[1]: (int(line[2]), line[3]) for line in lines if line[0] == "failed"}
        return failed, [line[1] for line in lines if line[0] == "left"]

    def together(self, **what):
        return self.proxy.count(method="POST", query="delete", **what)

    def alone(self):
        return self.proxy.count(method="DELETE")


@pytest.fixture
def place(rgw, request):
    name = request.node.name.translate(str.maketrans("[]", "__"))
    place = Place(("127.0.0.1", rgw.rgw_port), rgw.bucket, rgw.s3_env, f"deletes/{name}")
    with place.proxy:
        yield place


@pytest.fixture
def played():
    """The same on a server whose objects can be made undeletable."""
    with MemoryS3() as server:
        server.buckets["weir"] = {}
        place = Place(("127.0.0.1", server.port), "weir", KEYS, "a")
        place.server = server
        with place.proxy:
            yield place


def delete(fault, **what):
    return Rule(fault, method="POST", query="delete", **what)


def test_they_go_together(place):
    assert place.remove("odd", count=1100) == ({}, [])
    # Some go at once, and what XML cannot say goes alone; nobody looks before.
    assert 1 <= place.alone() <= 200
    assert 2 <= place.together() <= 200
    seen = place.proxy.log[:place.alone() + place.together()]
    assert {one.method for one in seen} == {"POST", "DELETE"}


def test_swift(running_swift):
    swift = running_swift
    host, _, port = swift.url.rpartition("/")[2].partition(":")
    place = Place((host, int(port)), swift.bucket, swift.env, "deletes")
    with place.proxy:
        assert place.remove() == ({}, [])
        assert place.together(status=200) > 1 and place.alone() < COUNT // 2


ONCE = {
    "lost": faults.Lose(), "lost_500": faults.LoseByError(500),
    "503": faults.Error(503, "SlowDown"), "reset": faults.ResetAnswer("middle"),
    "truncated": faults.Truncate(3), "cut": faults.Shorten(3), "empty": faults.Answer(200),
    "html": faults.Answer(200, b"<html><body>hello</body></html>"),
    "error_inside": faults.ErrorInside(),
    "flipped": faults.FlipUpload(), "upload": faults.ResetUpload("middle"),
    "others": faults.Answer(200, b"<DeleteResult><Error><Key>b</Key><Code>AccessDenied</Code>"
                                 b"</Error></DeleteResult>"),
}


@pytest.mark.parametrize("name", ONCE)
def test_what_goes_wrong_once_is_done_again(place, name):
    """Whether the server did it and nobody heard, or did not, or says what makes no sense."""
    rule = delete(ONCE[name], times=2)
    assert place.remove(rules=[rule]) == ({}, [])
    assert rule.fired == 2


@pytest.mark.parametrize("status, code", [(501, "NotImplemented"), (405, "MethodNotAllowed"),
                                          (400, "MalformedXML"), (400, "MissingContentMD5")])
def test_a_server_that_has_no_such_request(place, status, code):
    """It is not asked again, but for those that were under way."""
    assert place.remove(rules=[delete(faults.Error(status, code))]) == ({}, [])
    assert 1 <= place.together() <= 8
    assert place.alone() == COUNT


def test_a_server_that_always_fails_at_it(played):
    """Each then goes by itself, within the time there is, and soon nothing is tried together."""
    rules = [delete(faults.Error(500, "InternalError"))]
    assert played.remove(rules=rules, timeout="20s") == ({}, [])
    assert played.together() and played.alone() >= COUNT


def test_one_may_not_be_deleted(rgw, place):
    """RGW says so of the one key, and deletes the others."""
    kept = name_of(20)  # the first ones, and the last, may go alone
    where = f"{rgw.bucket}/{place.prefix}/{kept}"
    policy = {"Version": "2012-10-17", "Statement": [
        {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject",
         "Resource": f"arn:aws:s3:::{where}"}]}
    client = rgw.s3()
    assert client.request("PUT", f"/{rgw.bucket}", {"policy": ""},
                          body=json.dumps(policy).encode())[0] in (200, 204)
    try:
        failed, left = place.remove()
    finally:
        client.request("DELETE", f"/{rgw.bucket}", {"policy": ""})
    assert left == list(failed) == [kept]
    number, text = failed[kept]
    assert number == 13 and where in text and "access denied" in text, text
    assert place.alone() < COUNT // 2  # it was the common answer that said so


def test_errors_of_keys(played):
    """What passes is tried again; what does not is told to whom it belongs; gone is gone."""
    codes = {name_of(50): "AccessDenied", name_of(60): "InternalError", name_of(70): "NoSuchKey",
             name_of(80): "SomethingElse"}
    played.server.undeletable = {f"a/{name}": code for name, code in codes.items()}
    failed, left = played.remove()
    assert sorted(failed) == sorted([name_of(50), name_of(80)])
    assert failed[name_of(50)][0] == 13 and name_of(50) in failed[name_of(50)][1]
    assert failed[name_of(80)][0] == 5 and "SomethingElse" in failed[name_of(80)][1]
    assert sorted(left) == sorted([name_of(50), name_of(70), name_of(80)])
    assert played.proxy.count(method="DELETE", path="~60") == 1


def test_no_answer_at_all(played):
    """Every removal fails when its time is up, and says which it is."""
    rules = [Rule(faults.Lose(), method="POST DELETE")]
    failed, _ = played.remove(count=40, timeout="8s", rules=rules)
    assert sorted(failed) == sorted(name_of(i) for i in range(40))
    assert all(name in text and number == 110 for name, (number, text) in failed.items()), failed
