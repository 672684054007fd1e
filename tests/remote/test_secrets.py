"""Nothing of a secret is ever told: not in errors (of a server that repeats whatever it was sent,
either), not with --json, not in process titles; and what was freed is wiped.
"""
import os
import re
import subprocess
import threading
import time

import pytest
from conftest import BUILD, WEIR
from proxy import MemoryS3
from services import SECRET, Service, keys

TOKEN = f"{SECRET}TokenFwoGZXIvYXdzEBYaDKeyFwoGZXIvYXdzEBYaDKey+/=="
ENV = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": f"{SECRET}+KeyOfTheEnvironment",
       "AWS_SESSION_TOKEN": TOKEN}
COMMANDS = [["init"], ["ls"], ["--json", "ls"], ["put", "--json", "file", "k"], ["get", "k", "-"],
            ["--json", "stat", "k"], ["gc"], ["--stats", "ls"], ["verify"], ["ckpt", "ls"],
            ["rm", "k"], ["version", "--verbose"]]


def environment(**more):
    base = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "WEIR_"))}
    return {**base, "AWS_EC2_METADATA_DISABLED": "true", **more}


def told(text):
    """What of a secret is in it: of ours, or a signature."""
    found = re.search(SECRET + "|Signature=[0-9a-f]{8}|[0-9a-f]{64}", text)
    return found and text[max(0, found.start() - 80):found.end() + 80]


def weir(tmp_path, url, *command, **env):
    (tmp_path / "file").write_bytes(b"some bytes")
    done = subprocess.run([WEIR, "--store", url, *command], cwd=tmp_path, env=environment(**env),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=300)
    text = done.stdout.decode(errors="replace")
    assert not told(text), (command, told(text))
    return done.returncode, text


def echo(status, code, place):
    """A server that puts all that it was sent into its error."""
    def answer(request):
        sent = "\n".join(f"{name}: {value}" for name, value in request.headers.items())
        sent = sent.replace("&", "&amp;").replace("<", "&lt;")
        words = {"Code": code, "Message": "no", "StringToSign": sent, "Token-0": TOKEN}
        words[place] = sent
        return status, "<Error>" + "".join(f"<{k}>{v}</{k}>" for k, v in words.items()) + "</Error>"
    return answer


@pytest.mark.parametrize("status, code, place", [
    (403, "SignatureDoesNotMatch", "Message"), (400, "InvalidToken", "Message"),
    (400, "Odd", "Code"), (501, "NotImplemented", "Region"), (403, "AccessDenied", "Message"),
])
def test_a_server_that_repeats_what_it_was_sent(tmp_path, status, code, place):
    with Service(echo(status, code, place)) as server:
        url = f"s3://box/p?endpoint={server.url}&timeout=2s"
        for command in COMMANDS[:4]:
            rc, text = weir(tmp_path, url, *command, **ENV)
            assert rc == 1, text


def test_a_server_that_answers_other_things(tmp_path):
    """Not XML, a redirect, nothing at all, a header that does not end."""
    answers = [(403, TOKEN), (301, "", {"Location": f"http://x/?X-Amz-Signature={SECRET}"}), None,
               (200, "<Error>" + TOKEN), (403, "", {"x-amz-bucket-region": TOKEN})]
    for answer in answers:
        with Service(lambda r: answer) as server:
            url = f"s3://box/p?endpoint={server.url}&timeout=1s"
            for command in (["ls"], ["--json", "put", "file", "k"]):
                assert weir(tmp_path, url, *command, **ENV)[0] == 1


def test_what_works_tells_nothing_either(tmp_path):
    with MemoryS3() as server:
        url = f"s3://box/p?endpoint={server.url}"
        for command in COMMANDS:
            rc, text = weir(tmp_path, url, *command, **ENV)
            assert rc == 0, (command, text)


@pytest.mark.parametrize("url", [
    f"s3://box/p?secret={SECRET}", f"s3://AKID:{SECRET}@box/p", f"s3://box?session_token={SECRET}",
    f"s3://box?endpoint=http://AKID:{SECRET}@127.0.0.1:1", f"mem:?commit=s3://AKID:{SECRET}@box",
    f"s3://box?aws_secret_access_key={SECRET}&nonsense=1",
])
def test_secrets_in_urls_are_refused(tmp_path, url):
    for command in COMMANDS[:4]:
        rc, text = weir(tmp_path, url, *command)
        assert rc in (1, 2) and "must not hold a secret" in text and "AWS_SECRET_ACCESS_KEY" in text


def test_process_titles(tmp_path):
    """What others see of it while it runs: its words, and the names of its threads."""
    seen_enough = threading.Event()

    def slow(request):
        seen_enough.wait(60)
        return echo(403, "AccessDenied", "Message")(request)
    with Service(slow) as server:
        url = f"s3://box/p?endpoint={server.url}&timeout=60s"
        process = subprocess.Popen([WEIR, "--store", url, "ls"], env=environment(**ENV),
                                   cwd=tmp_path, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        while not server.requests and process.poll() is None:
            time.sleep(0.01)
        seen = open(f"/proc/{process.pid}/cmdline").read()
        for task in os.listdir(f"/proc/{process.pid}/task"):
            seen += open(f"/proc/{process.pid}/task/{task}/comm").read()
        seen_enough.set()
        process.wait()
        assert "--store" in seen and not told(seen)


# ---- what is left in memory ----

def memory_of(pid):
    """All that the process could be robbed of: its heap, stacks and anonymous memory."""
    out = bytearray()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, mode, _, _, _, *path = line.split()
            if not mode.startswith("rw") or (path and path[0] in ("[vvar]", "[vsyscall]")):
                continue
            begin, end = (int(word, 16) for word in span.split("-"))
            if end - begin > 1 << 30:
                continue  # a sanitizer's own
            try:
                memory.seek(begin)
                out += memory.read(end - begin)
            except OSError:
                pass
    return bytes(out)


def left_behind(tmp_path, config, **env):
    """Whether the secret is in memory while it is used, and after."""
    (tmp_path / "config").write_text(config)
    process = subprocess.Popen([BUILD / "tests/remote/keys"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True,
                               env=environment(HOME=str(tmp_path), **env))

    def ask(*words):
        process.stdin.write("\t".join(words) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer == "ok\n", answer
        return f"{SECRET}+InTheFile".encode() in memory_of(process.pid)
    during = ask("open", "profile=p", f"config_file={tmp_path}/config")
    after = ask("close")
    process.communicate("")
    return during, after


@pytest.mark.skipif("asan" in str(BUILD), reason="the sanitizer keeps what was freed")
def test_freed_secrets_are_wiped(tmp_path):
    file_keys = (f"[profile p]\naws_access_key_id=AKID\naws_secret_access_key={SECRET}+InTheFile\n"
                 f"aws_session_token={SECRET}+InTheFile\n")
    try:
        assert left_behind(tmp_path, file_keys) == (True, False)
    except PermissionError:
        pytest.skip("the memory of another process may not be read here")
    made = str({"Version": 1, **keys("AKID", token="SessionToken"),
                "SecretAccessKey": f"{SECRET}+InTheFile"}).replace("'", '"')
    (tmp_path / "made").write_text(made)
    process_keys = f"[profile p]\ncredential_process = cat {tmp_path}/made\n"
    assert left_behind(tmp_path, process_keys) == (True, False)
