# SPDX-License-Identifier: MIT
"""Watches and connections that end, break or are refused, and a server that is unreachable."""

import os
import random
import re
import signal
import time

import harness
import pytest
import replies
import store as st
import watching
from faults import Fault
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
    return [name for name in kx.ls("jobs")]


def in_step(server, kx):
    """Wait until the mount shows exactly the jobs of the cluster."""
    harness.wait_for(lambda: names(kx) == [obj.name for obj in server.store.objects(st.JOBS)[0]],
                     what="jobs/ to be right")


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


def test_jobs_come_and_go(server, make_mount):
    kx = up(server, make_mount(server))
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: names(kx) == ["one"])
    server.store.remove(st.JOBS, "test", "one")
    harness.wait_for(lambda: names(kx) == [])
    # A new object of the same name is another job.
    server.store.add(st.JOBS, watching.job("one", phase="Completed"))
    harness.wait_for(lambda: names(kx) == ["one"] and harness.Job(kx, "one").state() == "SUCCEEDED")


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


@pytest.mark.concurrent
def test_list_removes_what_is_gone(server, make_mount):
    """Objects are deleted while the server is unreachable, and the server no longer knows of these deletions. The
    next list removes them."""
    for i in range(20):
        job = server.store.add(st.JOBS, watching.job(f"job-{i:02}", phase="Running"))
        server.store.add(st.PODS, watching.pod(job, "main", 0, phase="Running"))
    kx = up(server, make_mount(server))
    server.away()
    for i in range(0, 20, 2):
        server.store.forget_object(st.JOBS, "test", f"job-{i:02}")
        server.store.forget_object(st.PODS, "test", f"job-{i:02}-main-0")
    server.back()
    harness.wait_for(lambda: names(kx) == [f"job-{i:02}" for i in range(1, 20, 2)])
    assert all(harness.Job(kx, name).state() == "RUNNING" for name in names(kx))


def test_restored(server, make_mount):
    """The server's etcd was restored from a backup. Its versions continue at a lower number, and a watch from a
    future version is accepted but silent."""
    server.store.add(st.JOBS, watching.job("before"))
    kx = up(server, make_mount(server))
    harness.wait_for(lambda: names(kx) == ["before"])
    server.away()
    server.store.forget_object(st.JOBS, "test", "before")
    server.store.restore(500)
    server.store.add(st.JOBS, watching.job("after"))
    server.back()
    harness.wait_for(lambda: names(kx) == ["after"])
    assert server.store.version < 600
    server.store.add(st.JOBS, watching.job("later"))
    harness.wait_for(lambda: names(kx) == ["after", "later"])


def test_confirmed(server, make_mount):
    """When a server is reachable again, kxfs requests a list of a single object, which shows
    whether the version is still valid. kxfs does not list all objects again."""
    kx = up(server, make_mount(server))
    for i in range(3):
        server.away()
        harness.wait_for(lambda: "connected: false" in kx.read(".kxfs/info"))
        server.back()
        up(server, kx)
        server.store.add(st.JOBS, watching.job(f"job-{i}"))
        harness.wait_for(lambda i=i: f"job-{i}" in names(kx))
    for resource in ("jobs", "pods"):
        asked = server.seen(verb="list", resource=resource, is_metadata=True)
        # At the start, a list of one object of each kind of jobs shows whether the user may list them.
        assert 1 <= len(asked) - (resource == "jobs") <= 3
        assert all(req.query["limit"] == "1" for req in asked)
        assert server.count(verb="list", resource=resource, is_metadata=False) == 1


def test_bookmark_is_where_it_goes_on(server, make_mount):
    kx = up(server, make_mount(server))
    server.store.add(st.PODS, {"metadata": {"name": "x", "namespace": "other"}, "spec": {"containers": []}})
    server.send_bookmarks()
    version = server.store.version
    server.end_streams("end")
    harness.wait_for(lambda: server.count(verb="watch", resource="jobs") == 2)
    assert server.seen(verb="watch", resource="jobs")[1].query["resourceVersion"] == str(version)
    assert names(kx) == []


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


def test_watches_that_end_at_once(server, make_mount):
    """A proxy ends each stream right after its beginning. kxfs does not send requests in a loop, and the mount still
    agrees with the cluster."""
    kx = up(server, make_mount(server))
    server.faults.add("close", times=10**6, amount=1, verb="watch")
    server.end_streams("reset")
    before = len(server.requests)
    time.sleep(5)
    assert len(server.requests) - before <= 60
    server.faults.clear()
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: names(kx) == ["one"])


@pytest.mark.concurrent
def test_at_random(server, make_mount, pytestconfig):
    """Jobs are created, change and are deleted while some requests fail. In the end the mount agrees with the
    cluster."""
    seed = pytestconfig.getoption("--seed") or int(time.time())
    rand = random.Random(seed)
    from faults import Fault, common_faults
    kx = make_mount(server)  # created before the faults, because a fault of the first list would end the start
    server.faults.at_random(seed, 0.4, [
        *common_faults(replies), lambda r: Fault("reply", reply=replies.expired(1, 2)),
        lambda r: Fault("cut", r.randrange(1, 20000)), lambda r: Fault("close", r.randrange(1, 20000))])
    for i in range(200):
        have = [obj.name for obj in server.store.objects(st.JOBS)[0]]
        action = rand.randrange(5)
        if action < 2 or not have:
            job = server.store.add(st.JOBS, watching.job(f"job-{i:03}", phase="Running"))
            server.store.add(st.PODS, watching.pod(job, "main", 0, phase="Running"))
        elif action == 2:
            server.store.remove(st.JOBS, "test", rand.choice(have))
        elif action == 3:
            server.store.change(st.JOBS, "test", rand.choice(have), lambda tree: tree["status"]["state"].update(
                phase=rand.choice(["Running", "Completed", "Failed", "Aborted"])))
        else:
            server.end_streams(rand.choice(["end", "close", "reset"]),
                               resource=rand.choice(["jobs", "pods"]))
        if rand.random() < 0.05:
            server.expire(resource=rand.choice(["jobs", "pods"]))
        time.sleep(rand.random() * 0.05)
    server.faults.clear()
    in_step(server, kx)
    want = {"Running": "RUNNING", "Completed": "SUCCEEDED", "Failed": "FAILED", "Aborted": "CANCELLED"}
    for obj in server.store.objects(st.JOBS)[0]:
        state = want[obj.tree()["status"]["state"]["phase"]]
        harness.wait_for(lambda obj=obj, state=state: harness.Job(kx, obj.name).state() == state,
                         what=f"{obj.name} {state}")


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


def test_without_volcano(server, make_mount):
    """In a cluster without Volcano, kxfs reports immediately that Volcano is missing."""
    server.uninstall(*st.VOLCANO)
    kx = make_mount(server, start=False)
    p = harness.run(kx.command(), check=False, env=kx.env())
    said = p.stdout + p.stderr
    if p.returncode != 0:  # kxfs has refused to mount
        assert "volcano" in said.lower()
    else:
        assert "volcano" in watching.known(kx).lower()


@pytest.mark.waits
def test_volcano_that_goes_and_comes_back(server, make_mount):
    kx = up(server, make_mount(server))
    server.uninstall(*st.VOLCANO)
    server.end_streams("end", resource="jobs")
    harness.wait_for(lambda: "not installed" in watching.known(kx) or "no such resource" in watching.known(kx).lower()
                     or "batch.volcano.sh" in watching.known(kx))
    server.install(*st.VOLCANO)
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: names(kx) == ["one"])


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


def test_job_with_large_pods(server, make_mount, sanitized):
    """Each pod contains the names of all others, as in a job of a thousand tasks, so that lists have 60 MB."""
    kx = up(server, make_mount(server))
    tree = watching.job("wide", phase="Running", tasks={f"w-{i}": 1 for i in range(300)})
    job = server.store.add(st.JOBS, tree)
    env = [{"name": f"VC_W_{i}_HOSTS", "valueFrom": {"configMapKeyRef": {"name": "x", "key": f"VC_W_{i}_HOSTS"}}}
           for i in range(2000)]
    server.away()
    for i in range(300):
        pod = watching.pod(job, f"w-{i}", 0, phase="Running")
        pod["spec"]["containers"][0]["env"] = env
        server.store.add(st.PODS, pod)
    server.expire()
    server.back()
    found = harness.Job(kx, "wide")
    harness.wait_for(lambda: "wide" in names(kx)
                     and sum(role["running"] for role in found.status()["roles"]) == 300)
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
    assert out.count("stale_since: 20") == 51 + 1  # in the status of each job, and in .kxfs/info
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


def test_since_when(kx, server):
    """stale_since is the time of the last confirmation, not of the read."""
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    server.away()
    since = harness.wait_for(lambda: stale(kx, "one"))
    time.sleep(2.1)
    assert stale(kx, "one") == since


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


@pytest.mark.waits
def test_started_without_a_server(make_mount, server):
    """If the server is unreachable, mounting fails with the reason."""
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
    """Captured output survives a crash of kxfs while the server is unreachable, because it is in the state
    directory."""
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


# --- Broken connections -----------------------------------------------------------------------
# Everything fails while pods print: streams, the server, the kubelets' files, kxfs itself. At the end each log has
# exactly the bytes that its program has printed.

MESSAGE = replies.Reply(200, b"unable to retrieve container logs for containerd://0123456789abcdef", "text/plain")


def begin(kx, volcano, n=1):
    """Submit a job and let its pods run. Return (job, its pods)."""
    job = kx.submit(harness.app("true", num_replicas=n))
    pods = sorted(volcano.start(job.id), key=lambda pod: int(pod.split("-")[-2]))
    assert len(pods) == n
    return job, pods


def size(job, replica="main-0"):
    try:
        return (job / replica / "log").stat().st_size
    except FileNotFoundError:
        return 0


def check(job, logs):
    """Wait until the log of each replica has exactly what it has printed."""
    for i, log in enumerate(logs):
        whole, name = log.data(), f"main-{i}"
        harness.wait_for(lambda name=name, whole=whole: size(job, name) >= len(whole), what=f"all of {name}")
        got = job.log(name)
        at = next((k for k, (a, b) in enumerate(zip(got, whole)) if a != b), min(len(got), len(whole)))
        assert got == whole, f"{name}: {len(got)} bytes, not {len(whole)}; they differ at {at}: {got[at:at + 100]}"
        assert job.gap(name) == 0, name


class Printer:
    """The output of one replica: lines of any sort. Each of WAYS makes it hard to follow the log."""

    WAYS = ("plain", "old kubelet", "one time", "clock goes back", "long lines")

    def __init__(self, log, number, seed):
        self.log = log
        self.way = self.WAYS[number % len(self.WAYS)]
        self.random = random.Random(f"{seed} {number}")
        self.log.old = self.way == "old kubelet"
        self.at = time.time_ns()

    def line(self):
        kind = self.random.random()
        if kind < 0.3:
            return b"the same line\n"
        if kind < 0.4:
            return b"\r".join(b"%d%%" % i for i in range(self.random.randrange(20)))
        if kind < 0.42 and self.way != "clock goes back":
            return self.random.randbytes(self.random.randrange(40000)).replace(b"\n", b"\0") + b"\n"
        return self.random.randbytes(self.random.randrange(150)).replace(b"\n", b"\xff") + b"\n"

    def print(self):
        for _ in range(self.random.randrange(8)):
            if self.way == "clock goes back" and len(self.log.data()) > 40000:
                return  # kxfs reads all of a short log again, and so notices each step of the clock
            data = self.line() * (self.random.randrange(1, 40) if self.way == "long lines" else 1)
            self.log.append(data, at=self.time())

    def time(self):
        if self.way == "one time":
            self.at = self.at if self.random.random() < 0.9 else max(self.at, time.time_ns())
            return self.at
        if self.way == "clock goes back" and self.random.random() < 0.2:
            return time.time_ns() - self.random.randrange(5 * 10**9)
        return None


def seed_of(pytestconfig):
    seed = pytestconfig.getoption("--seed") or int(time.time())
    print(f"seed {seed}")
    return seed


@pytest.mark.waits
def test_cut_and_cut(kx, server, volcano, pytestconfig):
    """The streams of a hundred logs break repeatedly, in all possible ways."""
    seed = seed_of(pytestconfig)
    rand = random.Random(seed)
    job, pods = begin(kx, volcano, 100)
    server.faults.at_random(seed, 0.6, [
        lambda r: Fault("cut", int(10 ** r.uniform(0, 6))), lambda r: Fault("cut", int(10 ** r.uniform(4, 6))),
        lambda r: Fault("close", int(10 ** r.uniform(2, 6))), lambda r: Fault("cut", int(10 ** r.uniform(4, 6))),
        lambda r: Fault("reset"), lambda r: Fault("reply", reply=replies.internal()),
        lambda r: Fault("reply", reply=MESSAGE)], subresource="log")
    printers = [Printer(volcano.log(pod), i, seed) for i, pod in enumerate(pods)]
    asked, end = 0, time.monotonic() + 45
    while (asked := server.count(subresource="log")) < 1200 and time.monotonic() < end:
        for printer in rand.sample(printers, 30):
            printer.print()
        if rand.random() < 0.08:
            server.end_streams(rand.choice(["end", "close", "reset"]), subresource="log")
        time.sleep(0.02)
    print(f"{asked} streams")
    server.faults.clear()
    volcano.finish_all(pods)
    job.finish()
    check(job, [printer.log for printer in printers])


@pytest.mark.waits
def test_killed_at_random(kx, server, volcano, pytestconfig):
    """kxfs is killed repeatedly while it writes, and the server is sometimes unreachable."""
    seed = seed_of(pytestconfig)
    rand = random.Random(seed)
    job, pods = begin(kx, volcano, 5)
    printers = [Printer(volcano.log(pod), i, seed) for i, pod in enumerate(pods)]
    for i in range(8):
        until = time.monotonic() + 1.5 * rand.random()
        while time.monotonic() < until:
            for printer in printers:
                printer.print()
            time.sleep(0.01)
        if i % 3 == 2:
            server.away()
            server.back()
        else:
            kx.end(signal.SIGKILL)
            for printer in printers:
                printer.print()
            kx.start()
    volcano.finish_all(pods)
    job.finish()
    check(job, [printer.log for printer in printers])


@pytest.mark.parametrize("lost", [1, 7, 5000])
def test_torn_write(kx, volcano, lost):
    """After a crash, the end of the spool file is missing. kxfs fetches it again."""
    job, (pod,) = begin(kx, volcano)
    log = volcano.log(pod)
    for i in range(1000):
        log.append(f"line {i}\n")
    harness.wait_for(lambda: size(job) == len(log.data()))
    harness.wait_for(lambda: len(job.read("log").splitlines()) == 1000)
    kx.end(signal.SIGKILL)
    (path,) = (kx.folder(job.id) / "logs").iterdir()
    os.truncate(path, path.stat().st_size - lost)
    log.append("more\n")
    kx.start()
    volcano.finish(pod)
    job.finish()
    check(job, [log])
    harness.wait_for(lambda: job.read("log").endswith("main/0 more\n"))
    assert job.read("log").splitlines() == [f"main/0 {line}" for line in job.log().decode().splitlines()]


def test_rotated_while_followed(kx, server, volcano):
    """The kubelet rotates the file repeatedly. An open stream continues. A broken stream resumes with the output
    that remains."""
    job, (pod,) = begin(kx, volcano)
    log = volcano.log(pod)
    for i in range(20):
        for k in range(50):
            log.append(f"line {i}.{k}\n")
        harness.wait_for(lambda: size(job) == len(log.data()))
        log.rotate(keep=10 * (i % 4))
        if i % 4 == 3:
            server.end_streams("reset", subresource="log")
    volcano.finish(pod)
    job.finish()
    check(job, [log])


@pytest.mark.concurrent
def test_terminating(kx, server, volcano):
    """The log of a terminating pod is fetched within its grace period, although its stream breaks and the server
    refuses requests."""
    volcano.keep_pods = True
    job, (pod,) = begin(kx, volcano)
    log = volcano.log(pod)
    log.append("working\n")
    job.until_logged("working\n")
    job.cancel()
    server.store.change(st.PODS, "test", pod, lambda tree: tree["metadata"].update(deletionTimestamp=st.now()))
    server.faults.add("reply", times=2, subresource="log", reply=replies.internal())
    server.end_streams("reset", subresource="log")
    log.append("saving\n")
    log.append("saved\n")
    harness.wait_for(lambda: (job.old / "main-0/log").read_bytes() == b"working\nsaving\nsaved\n")
    log.append("bye")
    volcano.remove_pods(job.id)
    harness.wait_for(lambda: (job.old / "main-0/log").read_bytes() == b"working\nsaving\nsaved\nbye")
    harness.wait_for(lambda: (job.old / "log").read_text().rstrip("\n").endswith("main/0 bye"))
    assert job.gap(where=job.old) == 0
