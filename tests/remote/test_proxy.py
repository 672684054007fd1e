"""The proxy does what its rules say: else the tests of faults would show nothing."""
import http.client

import pytest
from proxy import MemoryS3, Proxy, Rule, faults

BODY = bytes(range(256)) * 1024


@pytest.fixture
def server():
    with MemoryS3() as server:
        server.buckets["box"] = {}
        yield server


@pytest.fixture
def proxy(server):
    with Proxy(("127.0.0.1", server.port)) as proxy:
        yield proxy


class Client:
    """One connection, until it breaks."""

    def __init__(self, proxy):
        self.port, self.connection = proxy.port, None

    def __call__(self, method, path, body=None, **headers):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self.connection.request(method, "/box/" + path, body, names)
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise


@pytest.fixture
def ask(proxy):
    return Client(proxy)


def test_what_has_no_rule_passes(ask, proxy):
    assert ask("PUT", "a", BODY) == (200, b"")
    assert ask("GET", "a") == (200, BODY)
    assert ask("GET", "a", Range="bytes=5-9") == (206, BODY[5:10])
    assert ask("HEAD", "a")[0] == 200
    assert ask("GET", "b")[0] == 404
    assert proxy.count() == 5 and proxy.connections_most == 1 and proxy.most == 1


def test_rules_choose_requests(ask, proxy):
    ask("PUT", "a", BODY)
    proxy.add(Rule(faults.Error(503, "SlowDown"), method="GET", first=2, times=2))
    assert [ask("GET", "a")[0] for _ in range(5)] == [200, 503, 503, 200, 200]
    proxy.add(Rule(faults.Error(500), method="PUT", path="/box/b"))
    assert ask("PUT", "b", BODY)[0] == 500 and ask("PUT", "c", BODY)[0] == 200
    assert proxy.count(method="GET", status=503) == 2


@pytest.mark.parametrize("where", faults.PLACES)
def test_resets_in_the_answer(ask, proxy, where):
    ask("PUT", "a", BODY)
    proxy.add(Rule(faults.ResetAnswer(where), method="GET", times=1))
    with pytest.raises((OSError, http.client.HTTPException)):
        ask("GET", "a")
    assert ask("GET", "a") == (200, BODY)


@pytest.mark.parametrize("where", faults.PLACES)
def test_resets_in_the_request(ask, proxy, server, where):
    proxy.add(Rule(faults.ResetUpload(where), method="PUT", times=1))
    with pytest.raises(OSError):
        ask("PUT", "a", BODY)
    assert "a" not in server.buckets["box"]


def test_an_answer_is_lost(ask, proxy, server):
    proxy.add(Rule(faults.Lose(), method="PUT", times=1))
    with pytest.raises((OSError, http.client.HTTPException)):
        ask("PUT", "a", BODY)
    assert server.buckets["box"]["a"].data == BODY
    proxy.add(Rule(faults.LoseByError(), method="PUT", times=1))
    assert ask("PUT", "b", BODY)[0] == 500 and server.buckets["box"]["b"].data == BODY


def test_bodies_change_on_their_way(ask, proxy, server):
    ask("PUT", "a", BODY)
    proxy.add(Rule(faults.Flip(-1), times=1), Rule(faults.Shorten(3), times=1),
              Rule(faults.Truncate(3), times=1))
    assert ask("GET", "a")[1][:-1] == BODY[:-1]
    assert ask("GET", "a") == (200, BODY[:-3])
    with pytest.raises(http.client.IncompleteRead):
        ask("GET", "a")
    proxy.clear()
    proxy.add(Rule(faults.FlipUpload(), method="PUT"))
    ask("PUT", "b", BODY)
    assert server.buckets["box"]["b"].data[0] == BODY[0] ^ 1


def test_conditional_puts(ask, server):
    assert ask("PUT", "a", b"1", If_None_Match="*")[0] == 200
    assert ask("PUT", "a", b"2", If_None_Match="*")[0] == 412
    server.conditional = "refused"
    assert ask("PUT", "a", b"2", If_None_Match="*")[0] == 501
    server.conditional = "ignored"
    assert ask("PUT", "a", b"2", If_None_Match="*")[0] == 200
