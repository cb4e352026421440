# SPDX-License-Identifier: MIT
"""The API server is unreachable: all known data remains readable at full speed and is marked stale, writes fail with
the right errno in time, and everything recovers automatically."""

import time

import harness
import pytest
import store as st
import watching
from metrics import Metrics

APP = harness.app("true")


def stale(kx, name):
    return harness.Job(kx, name).status()["stale_since"]


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.concurrent
def test_reading(kx, server, volcano, how):
    for i in range(50):
        server.store.add(st.JOBS, watching.job(f"theirs-{i:02}"))
    job = kx.submit(APP)
    pods = volcano.start(job.id)
    volcano.log(pods[0]).append("hello\n")
    job.until_logged("hello\n")
    watching.until_runs(job)
    harness.wait_for(lambda: len(kx.ls("jobs")) == 51)
    assert stale(kx, job.id) is None
    begin = time.time()
    server.away(how)
    harness.wait_for(lambda: stale(kx, job.id), what="it to be marked stale")
    harness.wait_for(lambda: all(stale(kx, name) for name in kx.ls("jobs")), what="all to be marked")
    assert job.state() == "RUNNING" and job.log() == b"hello\n"
    assert "stale" in watching.known(kx) or "since" in watching.known(kx)
    started = time.monotonic()
    out = harness.run(f"cd {kx.mnt} && cat jobs/*/state jobs/*/status jobs/*/manifest.yaml && ls -lR jobs "
                      "&& df . && cat .kxfs/info .kxfs/metrics").stdout
    assert out.count("stale_since: 20") == 51 + 1  # of each job, and in .kxfs/info
    assert time.monotonic() - started < 20
    server.store.remove(st.JOBS, "test", "theirs-00")
    server.back()
    harness.wait_for(lambda: stale(kx, job.id) is None, what="it not to be stale")
    harness.wait_for(lambda: len(kx.ls("jobs")) == 50)
    volcano.log(pods[0]).append("world\n")
    job.until_logged("world\n")
    assert job.log() == b"hello\nworld\n"
    assert begin < time.time()


@pytest.mark.parametrize("how", ["reset", "close"])
def test_first_failure_is_reported(kx, server, how):
    """The first request that fails after the connections have ended marks everything stale, and later submissions
    fail immediately; no request is repeated before that."""
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    server.away(how)
    found = harness.wait_for(lambda: "connected: false" in kx.read(".kxfs/info") and Metrics(kx))
    assert found.sum("server_requests_total", resource="jobs.batch.volcano.sh", code="none") <= 2
    assert found.sum("server_retries_total") == 0
    assert stale(kx, "one")
    harness.wait_for(lambda: server.url.partition("//")[2] in kx.read(".kxfs/info"))
    assert harness.err_of(kx.write, "submit/app.yaml", APP) == "EHOSTUNREACH"
    assert Metrics(kx).sum("server_retries_total") == 0


def test_since_when(kx, server):
    """stale_since is the time of the last confirmation, not of the read."""
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    server.away()
    since = harness.wait_for(lambda: stale(kx, "one"))
    time.sleep(2.1)
    assert stale(kx, "one") == since


def test_writing(kx, server):
    """Submissions while the server is known to be unreachable fail immediately, with an errno and a message that
    explain it."""
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    server.away()
    harness.wait_for(lambda: stale(kx, "one"), what="stale")
    begin = time.monotonic()
    for where in ("submit", "dryrun"):
        assert harness.err_of(kx.write, f"{where}/app.yaml", APP) == "EHOSTUNREACH"
        said = kx.read(where, "app.yaml.error")
        assert said.startswith("app.yaml: ") and server.url.partition("//")[2] in said
        assert said.endswith("; nothing was launched\n")
        assert kx.read(where, "app.yaml") == APP  # to be sent again
    assert time.monotonic() - begin < 15  # a request that is sent again and again takes 19 s or more
    server.back()
    harness.wait_for(lambda: stale(kx, "one") is None)
    kx.write("submit/app.yaml", APP)
    assert kx.job_of("app.yaml").id in kx.ls("jobs")
    assert len(server.store.objects(st.JOBS)[0]) == 2


@pytest.mark.waits
def test_one_success_is_enough(kx, server):
    """A watch in a long pause after many failures is retried as soon as any other request succeeds."""
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    before = server.count(verb="watch", resource="pods")
    fault = server.faults.add("reset", times=99, verb="watch", resource="pods")
    server.end_streams("reset", verb="watch", resource="pods")
    harness.wait_for(lambda: server.count(verb="watch", resource="pods") - before >= 8, what="eight tries")
    server.faults.clear(fault)  # the next try comes in 12 s or more
    begin = time.monotonic()
    assert stale(kx, "one")
    kx.write("submit/app.yaml", APP)
    harness.wait_for(lambda: stale(kx, "one") is None, what="it not to be stale")
    assert time.monotonic() - begin < 10


@pytest.mark.waits
def test_network_that_flaps(kx, server):
    """Watches break repeatedly: in the pauses between them nothing is confirmed, which is reported; submissions are
    sent anyway, since the server may be reachable."""
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    told = []
    for _ in range(6):  # the pauses grow to some seconds
        harness.wait_for(lambda: server.open_streams(verb="watch", resource="jobs") and not stale(kx, "one"),
                         what="a watch that stands")
        before = server.count(verb="watch", resource="jobs")
        server.end_streams("reset", verb="watch", resource="jobs")
        told.append(harness.wait_for(lambda n=before: "connected: false" in kx.read(".kxfs/info") or
                                     server.count(verb="watch", resource="jobs") > n and "the next watch"))
    assert True in told
    kx.write("submit/app.yaml", APP)
    assert kx.job_of("app.yaml").id in kx.ls("jobs")
    harness.wait_for(lambda: stale(kx, "one") is None, what="a watch that stands")


@pytest.mark.waits
def test_server_that_is_silent(kx, server, volcano):
    """Connections are accepted without a reply: reading works, a write ends by its deadline, and after a late reply
    nothing has run twice."""
    del volcano
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    server.away()
    server.freeze()
    server.back()
    begin = time.monotonic()
    assert harness.err_of(kx.write, "submit/app.yaml", APP) == "ETIMEDOUT"
    assert time.monotonic() - begin < 45
    assert harness.Job(kx, "one").state()
    harness.wait_for(lambda: stale(kx, "one"), what="it to be marked stale")
    server.thaw()
    harness.wait_for(lambda: stale(kx, "one") is None)
    harness.wait_for(lambda: (kx / "submit/app.yaml.error").exists()
                     or (kx / "submit/app.yaml.job").is_symlink())
    found = server.store.objects(st.JOBS)[0]
    assert len(found) <= 2
    harness.wait_for(lambda: len(kx.ls("jobs")) == len(server.store.objects(st.JOBS)[0]))


@pytest.mark.concurrent
def test_unmounting(make_mount, server):
    """It ends in time, also with requests in progress."""
    kx = make_mount(server)
    server.away()
    server.freeze()
    server.back()
    harness.popen(["cp", "/dev/stdin", str(kx / "submit/app.yaml")], stdin=-3)
    assert kx.end(timeout=30) == 0


@pytest.mark.waits
def test_started_without_a_server(make_mount, server):
    """The mount fails, with the reason."""
    server.away()
    kx = make_mount(server, start=False)
    p = harness.run(kx.command(), check=False, env=kx.env())
    assert p.returncode == 1
    assert server.url.partition("//")[2] in p.stderr or "connect" in p.stderr.lower()
    assert not harness.is_mounted(kx.mnt)
    server.back()
    kx.start()


@pytest.mark.concurrent
def test_restart_while_offline_keeps_what_is_here(kx, server, volcano):
    """Captured output is in the state directory, and not lost by any of this."""
    job = kx.submit(APP)
    pods = volcano.start(job.id)
    volcano.log(pods[0]).append("hello\n")
    job.until_logged("hello\n")
    server.away()
    harness.wait_for(lambda: stale(kx, job.id))
    kx.end(9)
    server.back()
    kx.start()
    assert job.log() == b"hello\n"
    assert kx.read("submit", kx.ls("submit")[0])
