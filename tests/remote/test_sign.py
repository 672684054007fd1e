"""Signatures beside those of a second implementation, which is written from the specification and
shares nothing with ours: names and values of every kind, in any order, repeated, empty.
"""
import hashlib
import hmac
import random
import subprocess
import time
import urllib.parse

from conftest import BUILD

SIGNER = BUILD / "tests/remote/signer"
WORDS = ["", "a", "A", "plain", "with blank", "a+b", "~tilde", "a/b", "é", "日本", "😀", "100%", "a=b",
         "a&b", "?", "#", "!*'()", "%41", "a-b", "a_b.c", ";,:@$", "\"quoted\"", "[]{}|\\^`<>"]


def encode(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-._~")


def expected(call):
    """(target, authorization), by the book."""
    query = "&".join(f"{name}={value}" for name, value in
                     sorted((encode(name), encode(value)) for name, value in call["query"]))
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(call["time"]))
    sent = [("host", call["host"]), *call["headers"], ("x-amz-date", stamp)]
    if call["service"] == "s3":
        sent.append(("x-amz-content-sha256", call["payload"]))
    if call["token"]:
        sent.append(("x-amz-security-token", call["token"]))
    merged = {}
    for name, value in sent:
        merged.setdefault(name.lower(), []).append(" ".join(value.split()))
    names = ";".join(sorted(merged))
    lines = "".join(f"{name}:{','.join(merged[name])}\n" for name in sorted(merged))
    path = encode(call["path"], "/")
    request = "\n".join([call["method"], path, query, lines, names, call["payload"]])
    scope = f"{stamp[:8]}/{call['region']}/{call['service']}/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = ("AWS4" + call["secret"]).encode()
    for step in [*scope.split("/"), f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"]:
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    return (path + ("?" + query if query else ""),
            f"Authorization: AWS4-HMAC-SHA256 Credential={call['id']}/{scope}, "
            f"SignedHeaders={names}, Signature={key.hex()}")


def line_of(call):
    words = [call[name] for name in ("method", "host", "path", "region", "service")]
    words += [str(call["time"]), call["payload"], call["id"], call["secret"], call["token"]]
    for name, value in call["query"]:
        words += ["q", name, value]
    for name, value in call["headers"]:
        words += ["h", name, value]
    return "\t".join(words) + "\n"


def check(calls):
    out = subprocess.run([SIGNER], input="".join(map(line_of, calls)).encode(),
                         stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    assert len(out) == 2 * len(calls)
    for i, call in enumerate(calls):
        assert tuple(out[2 * i:2 * i + 2]) == expected(call), call


def any_call(rng):
    headers = [(rng.choice(["Range", "x-amz-meta-A", "content-type", "If-Match", "x-Amz-meta-b"]),
                rng.choice(["bytes=0-9", "  two  blanks ", "\"abc\"", "*", "a,b", "é"]))
               for _ in range(rng.randrange(5))]
    return {
        "method": rng.choice(["GET", "PUT", "HEAD", "POST", "DELETE"]),
        "host": rng.choice(["127.0.0.1:7480", "bucket.s3.amazonaws.com", "[::1]:80"]),
        "path": "/" + "/".join(rng.choice(WORDS[1:]) for _ in range(rng.randrange(4))),
        "region": rng.choice(["us-east-1", "eu-west-3", "default"]),
        "service": rng.choice(["s3", "s3", "sts"]),
        "time": rng.randrange(0, 4102444800),
        "payload": rng.choice(["UNSIGNED-PAYLOAD", hashlib.sha256(b"").hexdigest()]),
        "id": "AKIDEXAMPLE",
        "secret": rng.choice(["wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "x", "y" * 200]),
        "token": rng.choice(["", "", "FwoGZX/+=" * 40]),
        "query": [(rng.choice(WORDS[1:]), rng.choice(WORDS)) for _ in range(rng.randrange(6))],
        "headers": headers,
    }


def test_same_signature():
    rng = random.Random(1)
    check([any_call(rng) for _ in range(500)])


def test_every_word_everywhere():
    rng = random.Random(99)
    check([{**any_call(rng), "path": f"/bucket/{word}/{word}x",
            "query": [("prefix", word), (word, ""), (word, word), ("a", "2"), ("a", "10")]}
           for word in WORDS[1:]])
