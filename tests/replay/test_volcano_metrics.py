# SPDX-License-Identifier: MIT
""".kxfs/metrics of a cluster's mount: how a list, a restarted watch, a log stream, a refusal and an unreachable
server change the counts. The man page names exactly these metrics."""

import re
import subprocess

import harness
import pytest
import replies
import store as st
import watching
from metrics import Metrics

JOBS = "jobs.batch.volcano.sh"
APP = harness.app("true", num_replicas=2)


def asked(metrics, verb, resource, code=None):
    """Return how many requests were answered with CODE, or at all."""
    more = {"code": str(code)} if code else {}
    return metrics.sum("server_requests_total", verb=verb, resource=resource, **more)


def until(kx, condition):
    harness.wait_for(lambda: condition(Metrics(kx)), what=f"metrics, now {kx.read('.kxfs', 'metrics')}")


def test_lists_and_watches(server, make_mount):
    """One for each page, one for each watch; and why a watch is restarted."""
    server.api.max_page = 3
    for i in range(7):
        job = server.store.add(st.JOBS, watching.job(f"job-{i}", phase="Running"))
        server.store.add(st.PODS, watching.pod(job, "main", 0, phase="Running"))
    kx = make_mount(server)
    until(kx, lambda now: asked(now, "watch", JOBS, 200) == 1 and asked(now, "watch", "pods", 200) == 1)
    until(kx, lambda now: now("jobs", state="RUNNING") == 7 and now("pods") == 7)  # jobs are shown in turns
    now = Metrics(kx)
    assert asked(now, "list", JOBS) == asked(now, "list", JOBS, 200) == 4  # and one, at the start, of a single object
    assert server.count(verb="list", resource="jobs", is_metadata=False) == 3
    assert now("view_unconfirmed_seconds") == 0
    assert now("watch_events_total") >= 14

    server.end_streams("end", verb="watch", resource="jobs")
    until(kx, lambda now: now("watch_restarts_total", resource=JOBS, reason="ended") == 1
          and asked(now, "watch", JOBS, 200) == 2)
    server.end_streams("reset", verb="watch", resource="pods")
    until(kx, lambda now: now("watch_restarts_total", resource="pods", reason="broken") == 1)
    assert asked(Metrics(kx), "list", JOBS) == 4  # they went on where they were
    until(kx, lambda now: server.open_streams(verb="watch", resource="jobs"))
    server.expire(resource="jobs")
    until(kx, lambda now: now("watch_restarts_total", resource=JOBS, reason="expired") == 1
          and asked(now, "list", JOBS, 200) == 7)
    server.store.remove(st.PODS, "test", "job-0-main-0")
    until(kx, lambda now: now("pods") == 6)


@pytest.mark.waits
def test_server_without_bookmarks(server, make_mount):
    """A silent watch of such a server is normal."""
    server.bookmark_every = 1e9
    kx = make_mount(server)
    until(kx, lambda now: asked(now, "watch", JOBS, 200) == 1 and asked(now, "watch", "pods", 200) == 1)
    harness.wait_for(lambda: server.count(verb="watch", resource="pods") == 2, timeout=200, what="the next watch")
    harness.wait_for(lambda: server.count(verb="watch", resource="jobs") == 2, what="that of the jobs")
    until(kx, lambda now: asked(now, "watch", JOBS, 200) == 2)
    assert not Metrics(kx).sum("watch_restarts_total", reason="silent")


def test_refused(server, make_mount):
    kx = make_mount(server)
    until(kx, lambda now: asked(now, "watch", JOBS, 200) == 1)
    server.faults.add("reply", reply=replies.forbidden("ada", "watch", st.JOBS, "test"), verb="watch", resource="jobs")
    server.end_streams("end", verb="watch", resource="jobs")
    until(kx, lambda now: asked(now, "watch", JOBS, 403) == 1
          and now("watch_restarts_total", resource=JOBS, reason="refused") == 1)
    server.faults.add("reply", reply=replies.forbidden("ada", "create", st.JOBS, "test"), times=9,
                      verb="create", resource="jobs")
    assert harness.err_of((kx / "submit/app.yaml").write_text, APP) == "EACCES"
    now = Metrics(kx)
    assert asked(now, "create", JOBS, 403) == asked(now, "create", JOBS) == 1
    assert now("requests_total", request="submit", result="error") == 1


def test_log_stream(kx, server, volcano):
    job = kx.submit(APP)
    (first, _) = volcano.start(job.id)
    until(kx, lambda now: now("log_streams") == 2 and asked(now, "get", "pods/log", 200) >= 2)
    assert asked(Metrics(kx), "create", JOBS, 201) == 1
    volcano.log(first).append("one\ntwo\nthr")
    until(kx, lambda now: now("captured_lines_total") == 2 and now("captured_bytes_total") == 8)
    volcano.log(first).append("ee\n")
    until(kx, lambda now: now("captured_lines_total") == 3 and now("captured_bytes_total") == 14)
    assert Metrics(kx)("spool_bytes") >= 14
    volcano.finish_all(volcano.pods(job.id))
    job.until("SUCCEEDED")
    until(kx, lambda now: now("log_streams") == 0)
    kx.restart()
    until(kx, lambda now: now("jobs", state="SUCCEEDED") == 1)
    assert Metrics(kx)("captured_bytes_total") == 0  # it was there


@pytest.mark.concurrent
def test_away(server, make_mount):
    kx = make_mount(server)
    server.away()
    until(kx, lambda now: now("view_unconfirmed_seconds") >= 1)
    until(kx, lambda now: asked(now, "list", JOBS, "none") >= 1)
    server.back()
    until(kx, lambda now: now("view_unconfirmed_seconds") == 0)


def test_man_page_has_them_all(server, make_mount, make_kx):
    page = subprocess.run(["mandoc", "-Tutf8", "-Owidth=200", str(harness.ROOT / "docs/kxfs-status.5")], check=True,
                          stdout=subprocess.PIPE, encoding="utf-8").stdout
    page = re.sub(".\b", "", page)  # bold
    told = dict(re.findall(r"\b(kxfs_[a-z_]+)(?:\{([a-z, ]+)\})?", page))
    there = {}
    for kx in (make_mount(server), make_kx()):
        there.update(Metrics(kx).labels)
    # Only a mount with an archive has its metrics (test_archive.py).
    assert {name for name in told if not name.startswith("kxfs_archive")} == set(there)
    for name, labels in there.items():
        assert labels is None or set(filter(None, told[name].split(", "))) == labels, name
