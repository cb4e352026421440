# SPDX-License-Identifier: MIT
"""Watches and connections that end, break or are refused, and a server that is unreachable."""

import re
import time

import harness
import pytest
import replies
import store as st
import watching
from metrics import Metrics

# --- Watches ----------------------------------------------------------------------------------
# Whatever ends a watch, the mount agrees with the cluster again later. It normally needs only one list and one watch
# per resource.


def up(server, kx):
    """Wait until both watches are open, and return KX."""
    harness.wait_for(lambda: server.open_streams(verb="watch", resource="jobs")
                     and server.open_streams(verb="watch", resource="pods"), what="both watches")
    return kx


def names(kx):
    return kx.ls("jobs")


def test_one_list_and_one_watch(server, make_mount):
    """kxfs sends one list and one watch for each resource, however many jobs there are and whatever processes read."""
    for i in range(300):
        job = server.store.add(st.JOBS, watching.job(f"job-{i:03}", phase="Running"))
        server.store.add(st.PODS, watching.pod(job, "main", 0, phase="Running"))
    kx = up(server, make_mount(server))
    for resource in ("podgroups", "queues", "events"):
        harness.wait_for(lambda resource=resource: server.open_streams(verb="watch", resource=resource))
    assert len(names(kx)) == 300
    before = len(server.requests)
    harness.run(f"cd {kx.mnt} && cat jobs/*/state jobs/*/status jobs/*/status.json jobs/*/why "
                "jobs/*/manifest.yaml jobs/*/main-0/status && ls -lR jobs && cat .kxfs/info .kxfs/metrics",
                stdout=-3)
    assert [req.path for req in server.requests[before:]] == [], "reading causes no requests"
    for resource in ("jobs", "pods"):
        pages = server.seen(verb="list", resource=resource, is_metadata=False)
        assert all("limit" in page.query for page in pages)
        assert sum("continue" not in page.query for page in pages) == 1
        (watch,) = server.seen(verb="watch", resource=resource)
        assert watch.query["allowWatchBookmarks"] == "true"
        assert int(watch.query["timeoutSeconds"]) >= 60
    assert "volcano.sh/job-name" in server.seen(verb="watch", resource="pods")[0].query["labelSelector"]


def test_list_in_pages(server, make_mount):
    """The server returns smaller pages than kxfs requests. If a continue token has expired, kxfs begins the list
    again."""
    server.api.max_page = 7
    for i in range(50):
        job = server.store.add(st.JOBS, watching.job(f"job-{i:03}"))
        server.store.add(st.PODS, watching.pod(job, "main", 0, phase="Running"))
    for resource in ("jobs", "pods"):
        # kxfs requests the next page of pods in advance, and retries if that early request fails.
        server.faults.add("reply", reply=replies.continue_expired(), resource=resource, verb="list",
                          is_continued=True, times=3 if resource == "pods" else 1)
    kx = up(server, make_mount(server))
    assert len(names(kx)) == 50
    assert [(kx / f"jobs/job-{i:03}/main-0/state").read_text() for i in range(50)] == ["RUNNING\n"] * 50
    for resource in ("jobs", "pods"):
        assert server.count(verb="list", resource=resource) > 8


def test_pod_is_named(server, make_mount):
    """The file `pod` has the name for kubectl exec. It does not exist while there is no pod."""
    job = server.store.add(st.JOBS, watching.job("job-000", phase="Running"))
    kx = up(server, make_mount(server))
    replica = kx / "jobs/job-000/main-0"
    harness.wait_for(replica.is_dir)
    assert not (replica / "pod").exists()
    pod = server.store.add(st.PODS, watching.pod(job, "main", 0, phase="Running"))
    harness.wait_for((replica / "pod").exists, what="the pod's name")
    assert (replica / "pod").read_text() == pod.name + "\n" and "pod" in kx.ls("jobs/job-000/main-0")


ENDS = {
    "clean": lambda server: server.end_streams("end", verb="watch"),
    "closed": lambda server: server.end_streams("close", verb="watch"),
    "reset": lambda server: server.end_streams("reset", verb="watch"),
    "torn": lambda server: (server.inject(b'{"type":"ADDED","obj', verb="watch"),
                            server.end_streams("close", verb="watch")),
    "torn at a clean end": lambda server: (server.inject(b'{"type":"ADDED","obj', verb="watch"),
                                           server.end_streams("end", verb="watch")),
    "no JSON": lambda server: (server.inject(b"<html>bad gateway</html>\n", verb="watch"),
                               server.end_streams("end", verb="watch")),
    "410 in the stream": lambda server: server.expire(),
    "410 recorded": lambda server: (server.store.compact(), server.inject(
        replies.recorded_events("410-watch-too-old.jsonl")[0] + b"\n", verb="watch"),
        server.end_streams("end", verb="watch")),
    "410 as status": lambda server: (
        server.faults.add("reply", times=2, reply=replies.expired(1, 2), verb="watch"),
        server.end_streams("end", verb="watch")),
    "504 in the stream": lambda server: (server.inject(replies.recorded_events(
        "504-watch-too-large-resource-version.jsonl")[0] + b"\n", verb="watch"),
        server.end_streams("end", verb="watch")),
    "500 in the stream": lambda server: server.inject_error(replies.internal()),
    "429": lambda server: (server.faults.add("reply", times=2, reply=replies.too_many(1), verb="watch"),
                           server.end_streams("end", verb="watch")),
    "503": lambda server: (server.faults.add("reply", times=3, reply=replies.unavailable(), verb="watch"),
                           server.end_streams("reset", verb="watch")),
    "junk": lambda server: (server.faults.add("junk", times=2, verb="watch"),
                            server.end_streams("reset", verb="watch")),
    "restarted": lambda server: (server.away(), server.back()),
    "restarted, knowing nothing of the past": lambda server: (
        server.away(), server.store.compact(), server.back()),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.concurrent
def test_watch_that_ends(server, make_mount, how):
    """Whatever ends a watch, kxfs misses no object that is created, changed or deleted meanwhile."""
    for name in ("old", "changing", "staying"):
        server.store.add(st.JOBS, watching.job(name, phase="Running"))
    kx = up(server, make_mount(server))
    for _ in range(2):
        up(server, kx)
        ENDS[how](server)
        server.store.remove(st.JOBS, "test", "old")
        server.store.add(st.JOBS, watching.job("new"))
        server.store.change(st.JOBS, "test", "changing", lambda tree: tree["status"]["state"].update(
            phase="Failed"))
        harness.wait_for(lambda: names(kx) == ["changing", "new", "staying"])
        harness.wait_for(lambda: harness.Job(kx, "changing").state() == "FAILED")
        server.store.remove(st.JOBS, "test", "new")
        server.store.add(st.JOBS, watching.job("old"))
        server.store.change(st.JOBS, "test", "changing", lambda tree: tree["status"]["state"].update(
            phase="Running"))
        harness.wait_for(lambda: names(kx) == ["changing", "old", "staying"])
        harness.wait_for(lambda: harness.Job(kx, "changing").state() == "RUNNING")
    if how in ("clean", "closed", "reset", "restarted"):
        # The watch has resumed at its version.
        assert server.count(verb="list", resource="jobs", is_metadata=False) == 1


def test_no_storm(server, make_mount):
    """While a server refuses everything, kxfs pauses between its requests."""
    kx = up(server, make_mount(server))
    server.faults.add("reply", times=10**6, reply=replies.internal())
    server.end_streams("reset")

    def asked():
        return sum(1 for req in server.requests if req.code == 500)

    harness.wait_for(lambda: asked() >= 2, what="the first refusals")
    time.sleep(5)
    assert asked() <= 40
    server.faults.clear()
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: names(kx) == ["one"])


def test_huge_objects(server, make_mount, sanitized):
    """Lists and watches with lines of several MiB, and objects of absurd sizes."""
    big = watching.job("big", phase="Running", annotations={"note": "x" * (3 << 20)})
    server.store.add(st.JOBS, big)
    kx = up(server, make_mount(server))
    assert names(kx) == ["big"]
    server.store.add(st.JOBS, watching.job("bigger", annotations={"note": "x" * (6 << 20)}))
    harness.wait_for(lambda: "bigger" in names(kx))
    line = b'{"type":"ADDED","object":{"kind":"Job","metadata":{"name":"absurd","a":"'
    server.inject(line + b"x" * (200 << 20) + b'"}}}\n', verb="watch", resource="jobs")
    server.store.add(st.JOBS, watching.job("after"))
    harness.wait_for(lambda: "after" in names(kx))
    assert memory(kx, sanitized) < 300


def memory(kx, sanitized=""):
    """Return the maximum memory of kxfs in MiB, or 0 for a build whose sanitizer needs memory itself."""
    text = (harness.pathlib.Path("/proc") / str(kx.pid) / "status").read_text()
    return 0 if sanitized else int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) // 1024


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "x" * 300, "new\nline", "-rf"])
def test_names_that_are_no_file_names(server, make_mount, name):
    """A hostile server sends objects whose names can't be file names. kxfs omits them and shows all others."""
    kx = up(server, make_mount(server))
    tree = watching.job("x", phase="Running")
    tree["metadata"]["name"] = name
    server.store.put(st.JOBS, tree)
    server.store.add(st.JOBS, watching.job("good"))
    harness.wait_for(lambda: "good" in names(kx))
    assert set(names(kx)) <= {"good", "-rf"}


def test_thousands(server, make_mount, sanitized):
    """3 000 jobs and 6 000 pods need limited memory, and the mount agrees with the cluster. tests/bench has more of
    this."""
    for i in range(3000):
        job = server.store.add(st.JOBS, watching.job(f"job-{i:05}", phase="Running", tasks={"main": 2}))
        for k in range(2):
            server.store.add(st.PODS, watching.real_pod(job, "main", k))
    kx = up(server, make_mount(server))
    assert memory(kx, sanitized) < 100
    assert len(names(kx)) == 3000
    assert harness.Job(kx, "job-02999").replica("main-1")["state"] == "RUNNING"
    server.store.remove(st.JOBS, "test", "job-01500")
    harness.wait_for(lambda: "job-01500" not in names(kx))
    server.expire()
    server.store.add(st.JOBS, watching.job("last"))
    harness.wait_for(lambda: "last" in names(kx))
    assert memory(kx, sanitized) < 100


# --- The server is away -----------------------------------------------------------------------
# The API server is unreachable. All known data can be read at full speed and are marked as stale. Writes fail in time
# with the right errno. Later everything recovers automatically.

APP = harness.app("true")


def stale(kx, name):
    return harness.Job(kx, name).status()["stale_since"]


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.concurrent
def test_reading(kx, server, volcano, how):
    """All known data can be read, and are marked as stale until the server is back."""
    for i in range(50):
        server.store.add(st.JOBS, watching.job(f"theirs-{i:02}"))
    job = kx.submit(APP)
    pods = volcano.start(job.id)
    volcano.log(pods[0]).append("hello\n")
    job.until_logged("hello\n")
    watching.until_runs(job)
    harness.wait_for(lambda: len(kx.ls("jobs")) == 51)
    assert stale(kx, job.id) is None
    server.away(how)
    harness.wait_for(lambda: stale(kx, job.id), what="it to be marked stale")
    harness.wait_for(lambda: all(stale(kx, name) for name in kx.ls("jobs")), what="all to be marked")
    assert job.state() == "RUNNING" and job.log() == b"hello\n"
    started = time.monotonic()
    out = harness.run(f"cd {kx.mnt} && cat jobs/*/state jobs/*/status jobs/*/manifest.yaml && ls -lR jobs "
                      "&& df . && cat .kxfs/info .kxfs/metrics").stdout
    assert out.count("stale_since: 20") == 51 + 1  # in the status of each job, and in .kxfs/info
    assert time.monotonic() - started < 20
    server.store.remove(st.JOBS, "test", "theirs-00")
    server.back()
    harness.wait_for(lambda: stale(kx, job.id) is None, what="it not to be stale")
    harness.wait_for(lambda: len(kx.ls("jobs")) == 50)
    volcano.log(pods[0]).append("world\n")
    job.until_logged("world\n")
    assert job.log() == b"hello\nworld\n"


@pytest.mark.parametrize("how", ["reset", "close"])
def test_first_failure_is_reported(kx, server, how):
    """Once the connections have ended, the first request that fails marks everything as stale, without a retry. Later
    submissions then fail immediately."""
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


def test_writing(kx, server):
    """While the server is known to be unreachable, submissions fail immediately, with an errno and a message that
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
        assert kx.read(where, "app.yaml") == APP  # the file remains, so that the user can submit it again
    assert time.monotonic() - begin < 15  # requests with retries would take 19 s or more
    server.back()
    harness.wait_for(lambda: stale(kx, "one") is None)
    kx.write("submit/app.yaml", APP)
    assert kx.job_of("app.yaml").id in kx.ls("jobs")
    assert len(server.store.objects(st.JOBS)[0]) == 2


@pytest.mark.waits
def test_server_that_is_silent(kx, server, volcano):
    """The server accepts connections and does not reply. Reads work, and a write ends at its deadline. After a late
    reply nothing has run twice."""
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
    """An unmount ends in time, even with requests in progress."""
    kx = make_mount(server)
    server.away()
    server.freeze()
    server.back()
    harness.popen(["cp", "/dev/stdin", str(kx / "submit/app.yaml")], stdin=-3)
    assert kx.end(timeout=30) == 0


def test_since_when(kx, server):
    """stale_since is the time of the last confirmation, not of the read."""
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    server.away()
    since = harness.wait_for(lambda: stale(kx, "one"))
    time.sleep(2.1)
    assert stale(kx, "one") == since


@pytest.mark.waits
def test_one_success_is_enough(kx, server):
    """After many failures, a watch waits long before its next retry. It is retried as soon as any other request
    succeeds."""
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    before = server.count(verb="watch", resource="pods")
    fault = server.faults.add("reset", times=99, verb="watch", resource="pods")
    server.end_streams("reset", verb="watch", resource="pods")
    harness.wait_for(lambda: server.count(verb="watch", resource="pods") - before >= 8, what="eight tries")
    server.faults.clear(fault)  # the next retry comes after 12 s or more
    begin = time.monotonic()
    assert stale(kx, "one")
    kx.write("submit/app.yaml", APP)
    harness.wait_for(lambda: stale(kx, "one") is None, what="it not to be stale")
    assert time.monotonic() - begin < 10


@pytest.mark.waits
def test_network_that_flaps(kx, server):
    """Watches break repeatedly. Between them nothing is confirmed, and kxfs reports that. Submissions are sent
    anyway, because the server may be reachable."""
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
