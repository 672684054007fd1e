"""Credentials are found where every AWS tool finds them, in that order, kept fresh, and never told:
small loopback services stand for the cloud's, and tests/remote/keys.c asks for the keys.
"""
import os
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest
import tls
from conftest import BUILD
from services import SECRET, Service, iso, keys

KEYS = BUILD / "tests/remote/keys"
NOWHERE = "http://127.0.0.1:1"  # nobody listens there


class Failed(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Keys:
    """The program, with an environment of its own; texts of failures are searched for secrets."""

    def __init__(self, home, env):
        base = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        self.process = subprocess.Popen(
            [KEYS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**base, "HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true", **env})

    def ask(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().rstrip("\n")
        status, *rest = line.split("\t")
        if status == "error":
            assert SECRET not in line
            raise Failed(os.strerror(int(rest[0])), rest[1])
        assert status == "ok", (line, self.process.stderr.read())
        return rest

    def open(self, **options):
        self.ask("open", *(f"{name}={value}" for name, value in options.items()))
        return self

    def get(self):
        return self.ask("get")

    def end(self):
        _, err = self.process.communicate("", timeout=300)
        assert self.process.returncode == 0, err
        assert "ERROR: " not in err and SECRET not in err, err


@pytest.fixture
def start(tmp_path):
    """start(env…, files={…}) -> Keys; files are below ~/.aws."""
    started = []

    def begin(files=None, **env):
        (tmp_path / ".aws").mkdir(exist_ok=True)
        for name, text in (files or {}).items():
            (tmp_path / ".aws" / name).write_text(text)
        started.append(Keys(tmp_path, env))
        return started[-1]
    yield begin
    for one in started:
        one.end()


def profile(name, key, more=""):
    return (f"[{name}]\naws_access_key_id = {key}\n"
            f"aws_secret_access_key = {SECRET}-of-{key}\n{more}\n")


def refused(program, *words, **options):
    with pytest.raises(Failed) as failed:
        program.open(**options)
    for word in words:
        assert word in str(failed.value), str(failed.value)


ENV = {"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": f"{SECRET}-env"}


# ---- the environment and files ----

def test_environment(start):
    assert start(**ENV).open().get() == ["ENV", f"{SECRET}-env", ""]
    assert start(**ENV, AWS_SESSION_TOKEN=f"{SECRET}-t").open().get()[2] == f"{SECRET}-t"
    refused(start(AWS_ACCESS_KEY_ID="ENV"), "AWS_SECRET_ACCESS_KEY")
    refused(start(AWS_SECRET_ACCESS_KEY=f"{SECRET}"), "AWS_ACCESS_KEY_ID")
    refused(start(**{**ENV, "AWS_SECRET_ACCESS_KEY": f"{SECRET} two words"}), "blanks")
    refused(start(**ENV, AWS_SESSION_TOKEN=SECRET * 4000), "AWS_SESSION_TOKEN")


def test_the_environment_cannot_change(start):
    program = start(**ENV).open()
    program.get()
    assert program.ask("refused") == ["0"]


def test_profiles(start):
    files = {"credentials": profile("default", "DEFAULT") + profile("other", "OTHER"),
             "config": "[default]\nregion = eu-west-1\n[profile other]\nregion=eu-north-1 # there\n"
                       "endpoint_url = http://127.0.0.1:9\n" + profile("profile both", "CONFIG")}
    assert start(files).open().get()[0] == "DEFAULT"
    assert start(files, AWS_PROFILE="other").open().get()[0] == "OTHER"
    assert start(files, AWS_PROFILE="both").open().get()[0] == "CONFIG"
    program = start(files, **ENV).open(profile="other")  # what is named counts more
    assert program.get()[0] == "OTHER"
    assert program.ask("about")[:2] == ["eu-north-1", "http://127.0.0.1:9"]
    assert "profile 'other'" in program.ask("about")[2]
    assert start(files, **ENV).open().get()[0] == "ENV"
    program = start(files, AWS_REGION="us-west-2", AWS_ENDPOINT_URL_S3="http://x").open()
    assert program.ask("about")[:2] == ["us-west-2", "http://x"]
    refused(start(files), "'none'", ".aws/credentials", "aws configure", profile="none")
    refused(start(files, AWS_PROFILE="none"), "'none'")


def test_files_that_are_named(start, tmp_path):
    (tmp_path / "mine").write_text(profile("default", "MINE"))
    assert start(**ENV).open(credentials_file=tmp_path / "mine").get()[0] == "MINE"
    assert start(AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "mine")).open().get()[0] == "MINE"
    assert start(AWS_SHARED_CREDENTIALS_FILE="~/mine").open().get()[0] == "MINE"
    refused(start(), "missing", credentials_file=tmp_path / "missing")
    (tmp_path / "huge").write_text("#" * (2 << 20))
    refused(start(), "larger", credentials_file=tmp_path / "huge")
    (tmp_path / "half").write_text(f"[default]\naws_secret_access_key={SECRET}\n")
    refused(start(), "aws_access_key_id", credentials_file=tmp_path / "half")


def test_a_changed_file_is_read_again(start, tmp_path):
    program = start({"credentials": profile("default", "ONE")}).open()
    assert program.get()[0] == "ONE"
    assert program.ask("refused") == ["1"]
    assert program.get()[0] == "ONE"  # looked again: they are all there is
    assert program.ask("refused") == ["0"]
    program = start({"credentials": profile("default", "ONE")}).open()
    program.get()
    (tmp_path / ".aws/credentials").write_text(profile("default", "TWO"))
    assert program.ask("refused") == ["1"]
    assert program.get()[0] == "TWO"
    assert program.ask("refused") == ["1"]
    (tmp_path / ".aws/credentials").unlink()
    with pytest.raises(Failed, match="any more"):
        program.get()


def test_logins_in_a_browser(start):
    for name in ("sso_session", "sso_start_url", "login_session"):
        refused(start({"config": f"[profile s]\n{name} = x\n"}), "credential_process",
                "export-credentials", profile="s")


def test_anonymous(start):
    program = start(**ENV).open(anonymous=1)
    assert program.get()[0] == "anonymous"
    assert program.ask("refused") == ["0"]


def test_nothing(start):
    refused(start(), "AWS_ACCESS_KEY_ID", ".aws/credentials", "anonymous=1")
    refused(start(AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=NOWHERE),
            "AWS_ACCESS_KEY_ID", "anonymous=1")


# ---- processes ----

def with_process(start, command, **options):
    config = f"[profile p]\ncredential_process = {command}\n"
    return start({"config": config}).open(profile="p", **options)


def process_text(**more):
    return str({"Version": 1, **keys("PROC", token="SessionToken"), **more}).replace("'", '"')


def test_process(start, tmp_path):
    (tmp_path / "out").write_text(process_text())
    assert with_process(start, f"cat '{tmp_path}/out' # and a comment").get() == [
        "PROC", f"{SECRET}-of-PROC", f"{SECRET}-token-of-PROC"]


@pytest.mark.parametrize("command, word", [
    ("exit 3", "status 3"), ("kill -9 $$", "signal 9"), ("echo no", "JSON"),
    ("cat out-huge", "65536"), ("/does/not/exist", "status 127"),
    ("cat out-version", "Version"), ("cat out-expired", "expired"), ("true", "JSON"),
])
def test_process_that_fails(start, tmp_path, command, word):
    (tmp_path / "out-huge").write_text(SECRET * 100000)
    (tmp_path / "out-version").write_text(process_text(Version=2))
    (tmp_path / "out-expired").write_text(process_text(Expiration=iso(-5)))
    with pytest.raises(Failed, match=word):
        with_process(start, f"cd '{tmp_path}'; {command}")


def test_process_that_does_not_end(start, tmp_path):
    """Nothing of it is left, however it was made."""
    with pytest.raises(Failed, match="in time"):
        with_process(start, f"sh -c 'echo $$ > {tmp_path}/pid; sleep 1000'; true", timeout_ms=5000)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(2000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("it still runs")


# ---- roles ----

def sts_answer(name, action="AssumeRole", life=3600):
    return (f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>'
            f"<Credentials><AccessKeyId>{name}</AccessKeyId><SecretAccessKey>{SECRET}-of-{name}"
            f"</SecretAccessKey><SessionToken>{SECRET}-token</SessionToken>"
            f"<Expiration>{iso(life)}</Expiration></Credentials></{action}Result>"
            f"</{action}Response>")


def sts_error(code):
    return (f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{SECRET}"
            "</Message></Error></ErrorResponse>")


def form(request):
    return dict(urllib.parse.parse_qsl(request[3].decode(), strict_parsing=True))


def test_role(start):
    config = ("[profile deep]\nrole_arn = arn:aws:iam::1:role/deep\nsource_profile = middle\n"
              "external_id = a&b=c\nrole_session_name = me\nduration_seconds = 900\n"
              "[profile middle]\nrole_arn = arn:aws:iam::1:role/middle\nsource_profile = base\n"
              "[profile self]\nrole_arn = arn:x\nsource_profile = self\n"
              "[profile round]\nrole_arn = arn:x\nsource_profile = round2\n"
              "[profile round2]\nrole_arn = arn:x\nsource_profile = round\n"
              "[profile bare]\nrole_arn = arn:x\n"
              "[profile env]\nrole_arn = arn:env\ncredential_source = Environment\n"
              "[profile mfa]\nrole_arn = arn:x\nsource_profile = base\nmfa_serial = m\n")
    files = {"config": config, "credentials": profile("base", "BASE") + profile("self", "SELF")}
    with Service(lambda r: (200, sts_answer("ROLE-" + str(len(sts.requests))))) as sts:
        program = start(files, AWS_REGION="eu-west-1").open(profile="deep", sts_endpoint=sts.url)
        assert program.get()[0] == "ROLE-2"
        first, second = sts.requests
        assert form(first)["RoleArn"] == "arn:aws:iam::1:role/middle"
        assert form(second) == {"Action": "AssumeRole", "Version": "2011-06-15",
                                "RoleArn": "arn:aws:iam::1:role/deep", "RoleSessionName": "me",
                                "ExternalId": "a&b=c", "DurationSeconds": "900"}
        assert "Credential=BASE/" in first[2]["Authorization"]
        assert "/eu-west-1/sts/aws4_request" in first[2]["Authorization"]
        assert "Credential=ROLE-1/" in second[2]["Authorization"]
        assert second[2]["x-amz-security-token"] == f"{SECRET}-token"
        env = {"AWS_ENDPOINT_URL_STS": sts.url, **ENV}
        assert start(files, **env).open(profile="self").get()[0] == "ROLE-3"
        assert "Credential=SELF/" in sts.requests[2][2]["Authorization"]
        assert start(files, **env).open(profile="env").get()[0] == "ROLE-4"
        assert "Credential=ENV/" in sts.requests[3][2]["Authorization"]
        refused(start(files, **env), "circle", profile="round")
        refused(start(files, **env), "source_profile", profile="bare")
        refused(start(files, **env), "MFA", profile="mfa")


@pytest.mark.parametrize("status, body, word", [
    (403, sts_error("AccessDenied"), "AccessDenied"), (200, sts_error("Odd"), "Odd"),
    (403, sts_error("x y z"), "'no'"), (200, "", "XML"), (200, "<a>", "XML"), (403, "no", "403"),
    (200, "<html/>", "access key id"), (200, sts_answer("R", life=-10), "expired"),
    (200, sts_answer("R").replace("SecretAccessKey", "Other"), "secret access key"),
    (200, sts_answer("R").replace("Expiration>20", "Expiration>x"), "expiration"),
    (200, sts_answer("R" * 300), "too long"), (200, "<a>" + "x" * 100000 + "</a>", "65536"),
    (404, sts_answer("R"), "404"),
])
def test_role_with_an_answer_that_lies(start, status, body, word):
    files = {"config": "[profile r]\nrole_arn = arn:x\nsource_profile = b\n",
             "credentials": profile("b", "BASE")}
    with Service(lambda r: (status, body)) as sts:
        refused(start(files), word, "arn:x", profile="r", sts_endpoint=sts.url)


def test_web_identity(start, tmp_path):
    (tmp_path / "token").write_text(f"{SECRET}.jwt/+=\n")
    env = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": "arn:web"}
    action = "AssumeRoleWithWebIdentity"
    with Service(lambda r: (200, sts_answer("WEB", action))) as sts:
        env["AWS_ENDPOINT_URL_STS"] = sts.url
        program = start(**env).open()
        assert program.get()[0] == "WEB"
        assert form(sts.requests[0]) == {"Action": action, "Version": "2011-06-15",
                                         "RoleArn": "arn:web", "RoleSessionName": "weir",
                                         "WebIdentityToken": f"{SECRET}.jwt/+="}
        assert "Authorization" not in sts.requests[0][2]
        config = ("[profile w]\nrole_arn = arn:web\nrole_session_name = s\n"
                  f"web_identity_token_file = {tmp_path}/token\n")
        program = start({"config": config}, AWS_ENDPOINT_URL_STS=sts.url).open(profile="w")
        assert program.get()[0] == "WEB" and form(sts.requests[1])["RoleSessionName"] == "s"
        refused(start(**{**env, "AWS_ROLE_ARN": ""}), "AWS_ROLE_ARN")
        refused(start(**{**env, "AWS_WEB_IDENTITY_TOKEN_FILE": "/none"}), "/none")
        (tmp_path / "token").write_text("\n")
        refused(start(**env), "empty")


# ---- containers and instances ----

def container(url, **env):
    return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": url, **env}


def test_container(start, tmp_path):
    with Service(lambda r: (200, keys("BOX"))) as box:
        url = box.url + "/creds"
        assert start(**container(url)).open().get() == ["BOX", f"{SECRET}-of-BOX",
                                                        f"{SECRET}-token-of-BOX"]
        assert "Authorization" not in box.requests[0][2]
        start(**container(url, AWS_CONTAINER_AUTHORIZATION_TOKEN=f"Basic {SECRET}")).open()
        assert box.requests[1][2]["Authorization"] == f"Basic {SECRET}"
        (tmp_path / "token").write_text(f"{SECRET}-file\n")
        token_file = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token")}
        start(**container(url, **token_file)).open()
        assert box.requests[2][2]["Authorization"] == f"{SECRET}-file"
        (tmp_path / "token").write_text(f"{SECRET}\nEvil: 1\n")
        refused(start(**container(url, **token_file)), "several lines")
        assert len(box.requests) == 3
        # Proxies are for the world outside.
        assert start(**container(url, http_proxy=NOWHERE)).open().get()[0] == "BOX"


@pytest.mark.parametrize("url", [
    "http://example.com/", "http://10.0.0.1/", "http://169.253.1.1/", "ftp://127.0.0.1/",
    "http://127.0.0.1@example.com/", "http://127.0.0.1:80@example.com/", "http://[::2]/",
    "http://localhost.example.com/", "file:///etc/passwd", "127.0.0.1", "http://127.0.0.1.example/",
])
def test_container_elsewhere_is_not_asked(start, url):
    refused(start(**container(url)), "AWS_CONTAINER_CREDENTIALS_FULL_URI")


def test_container_over_tls(start, tmp_path):
    tls.make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    with Service(lambda r: (200, keys("BOX")), tls=context) as box:
        refused(start(**container(box.url)), "certificate")
        env = container(box.url, AWS_CA_BUNDLE=str(tmp_path / "ca.pem"))
        assert start(**env).open().get()[0] == "BOX"
        assert start(**container(box.url)).open(ca_file=tmp_path / "ca.pem").get()[0] == "BOX"


LIES = [
    ("", "JSON"), ("no", "JSON"), ("[]", "JSON object"), ("{", "JSON"), ("{}", "access key id"),
    (b"\xff\xfe", "JSON"), ("null", "JSON object"), ('{"AccessKeyId": 1}', "access key id"),
    ({"AccessKeyId": "A"}, "secret access key"), (keys("A", life=-60), "expired"),
    ({**keys("A"), "SecretAccessKey": f"{SECRET}\r\nEvil: 1"}, "blanks"),
    ({**keys("A"), "Token": f"{SECRET}\x00"}, "NUL"),
    ({**keys("A"), "Token": SECRET * 5000}, "long"),
    ({**keys("A"), "Expiration": "soon"}, "expiration"),
    ({**keys("A"), "Code": "Failed"}, "Failed"),
    (keys("A" * 300), "too long"), ("x" * 100000, "65536"), ("[" * 1000, "JSON"),
    ('{"AccessKeyId": "a", "AccessKeyId": "b", "SecretAccessKey": "c"}', "twice"),
]


@pytest.mark.parametrize("body, word", LIES, ids=range(len(LIES)))
def test_container_with_an_answer_that_lies(start, body, word):
    with Service(lambda r: (200, body)) as box:
        refused(start(**container(box.url)), word, "the container")


@pytest.mark.parametrize("answer, word", [
    ((404, f"{SECRET}"), "404"), ((302, "", {"Location": "/other"}), "302"), (None, "container"),
    ((200, keys("A"), {"Content-Length": "5000"}), "container"),
], ids=range(4))
def test_container_that_does_not_answer(start, answer, word):
    with Service(lambda r: answer) as box:
        refused(start(**container(box.url)), word)
        assert all(path == "/" for _, path, *_ in box.requests)  # no redirect was followed


def test_container_that_stalls(start):
    with Service(lambda r: time.sleep(3)) as box:
        refused(start(**container(box.url)), "container", timeout_ms=300)


def test_container_that_is_busy_is_asked_again(start):
    def answer(_):
        return (503, "busy") if len(box.requests) < 3 else (200, keys("BOX"))
    with Service(answer) as box:
        assert start(**container(box.url)).open().get()[0] == "BOX"


def instance(request):
    """IMDSv2, by the book."""
    where, headers = request.path, request.headers
    if where == "/latest/api/token":
        if request.command != "PUT" or not headers["X-aws-ec2-metadata-token-ttl-seconds"]:
            return 405, ""
        return 200, f"{SECRET}-session"
    if headers["X-aws-ec2-metadata-token"] != f"{SECRET}-session":
        return 401, ""
    if where == "/latest/meta-data/iam/security-credentials/":
        return 200, "my role\n"
    if where == "/latest/meta-data/iam/security-credentials/my%20role":
        return 200, keys("EC2", Code="Success", Type="AWS-HMAC")
    return 404, ""


def imds(url, **env):
    return {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": url, **env}


def test_instance(start):
    with Service(instance) as ec2:
        assert start(**imds(ec2.url + "/")).open().get() == ["EC2", f"{SECRET}-of-EC2",
                                                             f"{SECRET}-token-of-EC2"]
        asked = len(ec2.requests)
        refused(start(**imds(ec2.url, AWS_EC2_METADATA_DISABLED="TRUE")), "AWS_ACCESS_KEY_ID")
        assert len(ec2.requests) == asked


@pytest.mark.parametrize("path, answer, word", [
    ("/latest/api/token", (403, ""), "403"), ("/latest/api/token", (200, ""), "token"),
    ("/latest/api/token", (200, "a\x01"), "token"), ("/latest/api/token", (200, "a\nb"), "token"),
    ("/latest/meta-data/iam/security-credentials/", (404, ""), "404"),
    ("/latest/meta-data/iam/security-credentials/", (200, ""), "no role"),
    ("/latest/meta-data/iam/security-credentials/", (200, "r" * 5000), "no role"),
    ("/latest/meta-data/iam/security-credentials/my%20role",
     (200, {"Code": "AssumeRoleUnauthorizedAccess"}), "AssumeRoleUnauthorizedAccess"),
])
def test_instance_that_lies(start, path, answer, word):
    with Service(lambda r: answer if r.path == path else instance(r)) as ec2:
        refused(start(**imds(ec2.url)), word, "this instance")


# ---- staying fresh ----

class Rotating:
    """Keys that live for some seconds; each answer has the next ones."""

    def __init__(self, life):
        self.life, self.number, self.broken = life, 0, False

    def __call__(self, _):
        if self.broken:
            return 400, f"{SECRET}"
        self.number += 1
        return 200, keys(f"KEY{self.number}", life=self.life)


def wait_for(condition):  # as long as it takes
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def test_keys_are_replaced_before_they_end(start):
    rotating = Rotating(life=12)
    with Service(rotating) as box:
        program = start(**container(box.url)).open()
        assert program.get()[0] == "KEY1"
        gets, failures, different = map(int, program.ask("many", 8, 12000))
        assert failures == 0 and different >= 2 and gets > 100
        assert box.busiest == 1  # one fetch at a time
        assert rotating.number <= 6


def test_long_lives_are_not_asked_for_again(start):
    rotating = Rotating(life=3600)
    with Service(rotating) as box:
        program = start(**container(box.url)).open()
        program.ask("many", 4, 500)
        assert rotating.number == 1


def test_failed_refresh_is_tried_again(start):
    """The old ones go on until they end; then it is an error, until the service is back."""
    rotating = Rotating(life=12)
    with Service(rotating) as box:
        program = start(**container(box.url)).open()
        rotating.broken = True
        wait_for(lambda: program.get()[0] == "KEY1" and len(box.requests) >= 3)
        with pytest.raises(Failed, match="400"):
            wait_for(lambda: program.get()[0] != "KEY1")
        rotating.broken = False

        def back():
            try:
                return program.get()[0] != "KEY1"
            except Failed:
                return False
        wait_for(back)


def test_refused_keys_are_replaced(start):
    rotating = Rotating(life=3600)
    with Service(rotating) as box:
        program = start(**container(box.url)).open()
        assert program.get()[0] == "KEY1"
        assert program.ask("refused") == ["1"]
        assert program.get()[0] == "KEY2"
        assert program.ask("refused") == ["1"]
        rotating.broken = True
        with pytest.raises(Failed, match="400"):
            program.get()


def test_nobody_waits_who_does_not_want_to(start):
    asked = threading.Event()

    def answer(_):
        if len(box.requests) > 1:
            asked.wait(20)
        return 200, keys(f"KEY{len(box.requests)}")
    with Service(answer) as box:
        program = start(**container(box.url)).open()
        program.get()
        program.ask("refused")
        with pytest.raises(Failed, match="being fetched"):
            program.ask("try")
        asked.set()
        assert program.get()[0] == "KEY2"
        assert program.ask("try")[0] == "KEY2"


def test_closing_does_not_wait_for_a_fetch(start):
    closed = threading.Event()

    def answer(_):
        if len(box.requests) > 1:
            closed.wait(20)
        return 200, keys("KEY")
    with Service(answer) as box:
        program = start(**container(box.url)).open()
        program.get()
        program.ask("refused")
        with pytest.raises(Failed):
            program.ask("try")
        program.ask("close")
        closed.set()


def test_lives_are_measured_by_the_clock_of_who_gives_them(start):
    """A service whose clock is a year off gives keys that are good all the same."""
    for date, end in (("Sat, 01 Jan 2000 00:00:00 GMT", "2000-01-01T01:00:00Z"),
                      ("Fri, 01 Jan 2100 00:00:00 GMT", "2100-01-01T01:00:00Z")):
        body = {**keys("BOX"), "Expiration": end}
        with Service(lambda r: (200, body, {"Date": date})) as box:
            program = start(**container(box.url)).open()
            assert program.get()[0] == "BOX"
            program.ask("many", 2, 200)
            assert len(box.requests) == 1
