"""Servers without conditional PUT, real and played: a store can be read there and plain objects can
be put, but nothing can be committed, unless seals and logs are kept elsewhere."""
import pytest
import s3
from client import Client
from proxy import MemoryS3

SIZE = 12 << 20


@pytest.fixture
def swift(running_swift):
    return running_swift.url, running_swift.env, running_swift.secret_key


@pytest.fixture(params=["swift", "refused", "ignored"])
def server(request):
    if request.param == "swift":
        yield request.getfixturevalue("swift")
        return
    with MemoryS3(request.param) as memory:
        memory.buckets["weir"] = {}
        env = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "top-secret"}
        yield memory.url, env, "top-secret"


def client_of(server, tmp_path, prefix, more=""):
    url, env, secret = server
    return Client(tmp_path, f"s3://weir/{prefix}?endpoint={url}&timeout=60s{more}", env, [secret])


def test_commits_are_refused(server, tmp_path):
    weir = client_of(server, tmp_path, "refused")
    source = weir.file("source", 1000)
    text = weir.fails("put", str(source), "a")
    assert "If-None-Match" in text and "commit=" in text, text


def test_with_commits_elsewhere_everything_works(server, tmp_path):
    weir = client_of(server, tmp_path, "split", f"&commit=file:{tmp_path}/commits")
    weir("init")
    small, large = weir.put("small", 1000), weir.put("large", SIZE, 2)
    assert weir.has("small", small) and weir.has("large", large)
    assert weir.keys() == ["large", "small"]
    weir("rm", "small")
    assert weir.keys() == ["large"]
    again = weir.put("small", 1000, 3)
    assert weir.has("small", again)
    weir("gc", "--now")
    assert "2 objects verified" in weir("verify").out


def test_plain_objects_can_be_read(server, tmp_path):
    """What others put there."""
    url, env, secret = server
    other = s3.Client(url, env["AWS_ACCESS_KEY_ID"], secret)
    weir = client_of(server, tmp_path, "plain")
    path = weir.file("source", 3 << 20)
    assert other.request("PUT", "/weir/plain/dir/a", body=path.read_bytes())[0] == 200
    assert weir.has("dir/a", path)
    assert weir.keys() == ["dir/a"]
