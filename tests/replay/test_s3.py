# SPDX-License-Identifier: MIT
"""kxfs capture -o archive=s3://BUCKET/PREFIX on a server that verifies signatures: what test_archive.py shows of a directory,
and what a server of S3 and the way to it can do wrong."""

import json
import pathlib
import random
import re
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import gateway as gw
import harness
import pytest
import store as st
import watching
from archiving import Archive, finish
from harness import wait_for
# The same tests, of objects that are files of the server.
from test_archive import (test_another_cluster, test_ends_with_all_tails, test_killed_again_and_again,  # noqa: F401
                          test_namespace_hidden, test_plain_files, test_removed_with_nothing_printed, test_second_of_a_name,
                          test_state_lost)

from test_archive_mount import show, test_jobs_of_others  # noqa: F401

pytestmark = pytest.mark.s3
PLACE = "s3://bucket/pre/fix"


@pytest.fixture
def gateway(tmp_path):
    with gw.Gateway(tmp_path / "gateway") as found:
        (found.data / "bucket/pre").mkdir(parents=True)
        wait_for(found.is_up)
        yield found


@pytest.fixture
def make_archive(make_mount, server, volcano):
    del volcano
    server.install(st.NAMESPACES)
    server.store.add(st.NAMESPACES, {"metadata": {"name": "test"}})
    made = []

    def make(gateway, url=None, env=gw.KEYS):
        kx = make_mount(server, start=False, env=env)
        made.append(Archive(kx, gateway.data / "bucket/pre/fix", PLACE, f"endpoint={url or gateway.url}"))
        return made[-1]

    yield make
    for archive in made:
        if archive.proc:
            arguments = pathlib.Path(f"/proc/{archive.proc.pid}/cmdline").read_bytes()
            assert gw.SECRET.encode() not in arguments
            archive.proc.kill()
            archive.proc.wait(harness.LIMIT)
        assert gw.SECRET not in archive.kx.said()
        kept = [path for path in archive.state.rglob("*") if path.is_file() and gw.SECRET.encode() in path.read_bytes()]
        assert not kept


@pytest.fixture
def archive(make_archive, gateway):
    return make_archive(gateway)


def is_whole(archive, job, text, state="SUCCEEDED"):
    return (archive.log(job) == text.encode() and archive.status(job).get("state") == state
            and archive.lines().get(job, {}).get("state") == state)


def test_over_tls(make_archive, server, volcano, tmp_path, pki):
    """The bytes are not signed then; the authority of the server is a file of the user's."""
    with gw.Gateway(tmp_path / "tls", pki) as gateway:
        (gateway.data / "bucket/pre").mkdir(parents=True)
        wait_for(gateway.is_up)
        archive = make_archive(gateway, env={**gw.KEYS, "AWS_CA_BUNDLE": str(pki.ca)})
        archive.up()
        finish(server, volcano, archive, "works", "line\n" * 100000)
        wait_for(lambda: is_whole(archive, "works", "line\n" * 100000), what=archive.kx.said)


def test_others_read_it(archive, gateway, server, volcano, tmp_path):
    """With another client of S3 the same bytes are had under the same names."""
    archive.up()
    text = "".join(f"line {i} {'x' * 100}\n" for i in range(100000))
    finish(server, volcano, archive, "works", text)
    wait_for(lambda: is_whole(archive, "works", text), what=archive.kx.said)
    env = harness.base_env(RCLONE_CONFIG_GW_TYPE="s3", RCLONE_CONFIG_GW_PROVIDER="Other", RCLONE_CONFIG_GW_ACCESS_KEY_ID=gw.KEY,
                           RCLONE_CONFIG_GW_SECRET_ACCESS_KEY=gw.SECRET, RCLONE_CONFIG_GW_ENDPOINT=gateway.url,
                           RCLONE_CONFIG_GW_REGION=gw.REGION)
    copy = tmp_path / "copy"
    subprocess.run(["rclone", "--config", "/dev/null", "copy", "gw:bucket/pre/fix", copy], env=env, check=True, timeout=120)
    (log,) = copy.glob("test/*/works/main-0/log.0")
    assert b"".join(part.read_bytes() for part in sorted(log.iterdir())) == text.encode()
    (lines,) = copy.glob("test/*/list.jsonl")
    assert json.loads(lines.read_text())["id"] == "works"


def error(status, code, message="", **headers):
    return status, headers, f"<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>"


FAULTS = {
    "403": (error(403, "AccessDenied", "Not \x1b[1myou."), r"AccessDenied: Not \\x1b\[1myou\."),
    "503": (error(503, "SlowDown", "Reduce your rate.", **{"Retry-After": "2"}), "SlowDown: Reduce your rate."),
    "500": (error(500, "InternalError"), "InternalError"),
    "429": (error(429, "TooManyRequests"), "TooManyRequests"),
    "507": ((507, {}, ""), "HTTP status 507, with no word of S3"),
    "skew": (error(403, "RequestTimeTooSkewed", "x", Date="Thu, 26 Nov 2026 00:00:00 GMT"),
             r"the clock of this machine is \d+ s (before|behind) that of the server; set it right"),
    "region": (error(301, "PermanentRedirect", "x", **{"x-amz-bucket-region": "eu-west-1"}),
               "the bucket is in another region: -o region=eu-west-1"),
    "bucket": (error(404, "NoSuchBucket", "Gone."), r"NoSuchBucket: Gone\."),
    "html": ((502, {"Content-Type": "text/html"}, "<html><p>Bad Gateway</html>"), "HTTP status 502, with no word of S3: is http"),
    "cut": ("cut", "Empty reply|Recv failure|broke"),
    "lost": ("lost", "Empty reply|Recv failure|broke"),
    "slow": ("slow", "no answer within 60.0 s"),
}


@pytest.mark.parametrize("fault", [pytest.param(name, marks=pytest.mark.waits if name == "slow" else ()) for name in FAULTS])
def test_server_takes_nothing(make_archive, gateway, server, volcano, fault):
    """It is told why, all is kept meanwhile, also over a kill, and in the end all is there."""
    what, words = FAULTS[fault]
    with gw.Front(gateway) as front:
        archive = make_archive(gateway, front.url)
        archive.up()
        finish(server, volcano, archive, "before", "before\n")
        wait_for(lambda: is_whole(archive, "before", "before\n"), what=archive.kx.said)
        front.fault = lambda method, path: what
        text = "".join(f"line {i}\n" for i in range(100000))
        server.store.add(st.JOBS, watching.job("during"))
        (pod,) = volcano.start("during")
        volcano.log(pod).append(text)
        volcano.finish(pod)
        record = archive.state / "jobs/during/job.json"
        wait_for(lambda: record.exists() and '"exit_code":0' in record.read_text(), what=archive.kx.said)
        server.store.remove(st.JOBS, "test", "during")
        wait_for(lambda: re.search(f"archive: {PLACE}/test/.*({words})", archive.kx.said()), what=archive.kx.said)
        wait_for(lambda: (archive.metric("archive_failures_total") or 0) >= 1, what=archive.kx.said)
        assert archive.metric("archive_waiting_jobs") >= 1
        uid = json.loads(record.read_text())["uid"]
        wait_for(lambda: (archive.state / f"archive/{uid}.left").exists(), what="its end to be noted")
        archive.end(signal.SIGKILL)
        front.fault = lambda method, path: None
        front.go_on.set()
        archive.up()
        wait_for(lambda: is_whole(archive, "during", text), what=archive.kx.said)
        assert archive.log("before") == b"before\n"
        archive.end()


def test_bad_way(make_archive, gateway, server, volcano, request):
    """Each third request meets something: it is asked again, nothing is there twice, and nothing is missing."""
    rand = random.Random(request.config.getoption("seed") or 1)
    faults = [what for name, (what, _) in FAULTS.items() if name != "slow"] + ["half"]
    with gw.Front(gateway) as front:
        archive = make_archive(gateway, front.url)
        archive.up()
        front.fault = lambda method, path: rand.choice(faults) if rand.random() < 0.3 else None
        texts = {f"job-{i}": "".join(f"{rand.random()}\n" for _ in range(rand.randrange(50000))) for i in range(5)}
        for job, text in texts.items():
            server.store.add(st.JOBS, watching.job(job))
            (pod,) = volcano.start(job)
            volcano.log(pod).append(text)
            volcano.finish(pod)
        end = time.monotonic() + 20
        wait_for(lambda: time.monotonic() > end or all(is_whole(archive, job, text) for job, text in texts.items()))
        front.fault = lambda method, path: None
        for job, text in texts.items():
            wait_for(lambda job=job, text=text: is_whole(archive, job, text), what=archive.kx.said)
            assert not list(archive.folder(job).glob("main-0/log.1*"))


def test_keys_of_a_file(make_archive, gateway, server, volcano, tmp_path):
    """Keys that the server refuses are told of, and read again: what is right by then goes on."""
    file = tmp_path / "credentials"
    file.write_text(f"[other]\naws_access_key_id={gw.KEY}\naws_secret_access_key=wrong\n")
    archive = make_archive(gateway, env={"AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_PROFILE": "mine"})
    archive.up()
    wait_for(lambda: f"{file}: it has no profile mine (AWS_PROFILE)" in archive.kx.said(), what=archive.kx.said)
    file.write_text(f"[mine]\naws_access_key_id={gw.KEY}\naws_secret_access_key=wrong\n")
    archive.end(signal.SIGKILL)
    archive.up()
    wait_for(lambda: "SignatureDoesNotMatch" in archive.kx.said(), what=archive.kx.said)
    file.write_text(f"[mine]\naws_access_key_id = {gw.KEY}\naws_secret_access_key = {gw.SECRET}\n")
    finish(server, volcano, archive, "works", "line\n")
    wait_for(lambda: is_whole(archive, "works", "line\n"), what=archive.kx.said)


class TokenService(BaseHTTPRequestHandler):
    """Gives keys for a few seconds to who has the right token."""

    def log_message(self, *args):
        pass

    def do_POST(self):
        asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append(asked)
        if asked["WebIdentityToken"] != ["right+token"]:
            return self.answer(403, "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>No.</Message></Error></ErrorResponse>")
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 6))
        return self.answer(200, "<AssumeRoleWithWebIdentityResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'>"
                           f"<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{gw.KEY}</AccessKeyId>"
                           f"<SecretAccessKey>{gw.SECRET}</SecretAccessKey><SessionToken>{self.server.session}</SessionToken>"
                           f"<Expiration>{end}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
                           "</AssumeRoleWithWebIdentityResponse>")

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


def test_web_identity(make_archive, gateway, server, volcano, tmp_path):
    """A token of a file is given for keys, again and again before these expire; a refusal is told, and the file read anew."""
    token = tmp_path / "token"
    token.write_text("wrong\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), TokenService) as service:
        service.asked, service.session = [], ""
        threading.Thread(target=service.serve_forever, daemon=True).start()
        archive = make_archive(gateway, env={"AWS_WEB_IDENTITY_TOKEN_FILE": str(token), "AWS_ROLE_ARN": "arn:aws:iam::1:role/kxfs",
                                             "AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{service.server_address[1]}"})
        archive.up()
        wait_for(lambda: "the token service gives no keys for AWS_ROLE_ARN: 403 InvalidIdentityToken: No." in archive.kx.said(),
                 what=archive.kx.said)
        token.write_text("right+token\n")
        finish(server, volcano, archive, "first", "first\n")
        wait_for(lambda: is_whole(archive, "first", "first\n"), what=archive.kx.said)
        asked = len(service.asked)
        assert service.asked[-1]["RoleArn"] == ["arn:aws:iam::1:role/kxfs"] and service.asked[-1]["RoleSessionName"] == ["kxfs"]
        end = time.monotonic() + 4
        wait_for(lambda: time.monotonic() > end)
        finish(server, volcano, archive, "second", "second\n")
        wait_for(lambda: is_whole(archive, "second", "second\n"), what=archive.kx.said)
        assert len(service.asked) > asked
        assert "right+token" not in archive.kx.said()
        archive.end()
        service.shutdown()


def doctor(archive, *options, env=None):
    options = [f"state={archive.state}", *archive.options, *options]
    return subprocess.run([archive.kx.binary, "doctor", "-o", ",".join(options), "volcano:test"], stdout=subprocess.PIPE, check=False,
                          env={**archive.kx.env(), **(env or {})}, text=True, timeout=harness.LIMIT).stdout


def test_doctor(archive, gateway):
    assert f"  ok       archive {PLACE}: can be listed, written (the object doctor) and read\n" in doctor(archive)
    assert "SignatureDoesNotMatch" in doctor(archive, env={"AWS_SECRET_ACCESS_KEY": "wrong"})
    assert "the bucket is in another region: -o region=us-east-1" in doctor(archive, "region=eu-west-1")
    assert "archive: s3://none/: NoSuchBucket" in doctor(archive, "archive=s3://none")
    assert "Failed to connect" in doctor(archive, "endpoint=http://127.0.0.1:1")
    with gw.Front(gateway) as front:
        front.fault = lambda method, path: error(403, "AccessDenied", "Read only.") if method == "PUT" else None
        said = doctor(archive, f"endpoint={front.url}")
    assert "AccessDenied: Read only.; it can be listed, which is enough for a mount, not for kxfs capture" in said
