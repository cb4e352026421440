# SPDX-License-Identifier: MIT
"""Staying in sync with a cluster: whatever ends a watch, the mount becomes right again, and needs only one list and
one watch per resource."""

import random
import re
import time

import harness
import pytest
import replies
import store as st
import watching


def up(server, kx):
    """Wait for the watches."""
    harness.wait_for(lambda: server.open_streams(verb="watch", resource="jobs")
                     and server.open_streams(verb="watch", resource="pods"), what="both watches")
    return kx


def names(kx):
    return [name for name in kx.ls("jobs")]


def in_step(server, kx):
    """The mount shows the jobs of the cluster."""
    harness.wait_for(lambda: names(kx) == [obj.name for obj in server.store.objects(st.JOBS)[0]],
                     what="jobs/ to be right")


def test_one_list_and_one_watch(server, make_mount):
    """However many jobs there are, and whatever is read of them."""
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
    # Reading causes no requests, except one for the usage of all, which has no answer here.
    assert [req.path for req in server.requests[before:]] in ([], ["/apis/metrics.k8s.io"])
    for resource in ("jobs", "pods"):
        pages = server.seen(verb="list", resource=resource, is_metadata=False)
        assert all("limit" in page.query for page in pages)
        assert sum("continue" not in page.query for page in pages) == 1
        (watch,) = server.seen(verb="watch", resource=resource)
        assert watch.query["allowWatchBookmarks"] == "true"
        assert int(watch.query["timeoutSeconds"]) >= 60
    assert "volcano.sh/job-name" in server.seen(verb="watch", resource="pods")[0].query["labelSelector"]


def test_list_in_pages(server, make_mount):
    """The server returns smaller pages than requested; an expired token restarts the list."""
    server.api.max_page = 7
    for i in range(50):
        job = server.store.add(st.JOBS, watching.job(f"job-{i:03}"))
        server.store.add(st.PODS, watching.pod(job, "main", 0, phase="Running"))
    for resource in ("jobs", "pods"):
        # Pages of pods are requested one ahead, and again if the early request failed.
        server.faults.add("reply", reply=replies.continue_expired(), resource=resource, verb="list",
                          is_continued=True, times=3 if resource == "pods" else 1)
    kx = up(server, make_mount(server))
    assert len(names(kx)) == 50
    assert [(kx / f"jobs/job-{i:03}/main-0/state").read_text() for i in range(50)] == ["RUNNING\n"] * 50
    for resource in ("jobs", "pods"):
        assert server.count(verb="list", resource=resource) > 8


def test_pod_is_named(server, make_mount):
    """`pod` has the name for kubectl exec; it is empty while there is no pod."""
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
    # The same name again is another job.
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
    """Nothing that happens meanwhile is missed: created, changed, and deleted."""
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
        # It has resumed at its version.
        assert server.count(verb="list", resource="jobs", is_metadata=False) == 1


@pytest.mark.concurrent
def test_list_removes_what_is_gone(server, make_mount):
    """Objects deleted while the server was unreachable, even if the server no longer knows of them."""
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
    """The server's etcd was restored from a backup: its versions continue lower, and a watch from a future one is
    accepted and silent."""
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


def test_confirmed_seldom(server, make_mount):
    """A server that becomes unreachable repeatedly gets one request for its version, for one object."""
    kx = up(server, make_mount(server))
    for i in range(3):
        server.away()
        harness.wait_for(lambda: "connected: false" in kx.read(".kxfs/info"))
        server.back()
        up(server, kx)
        server.store.add(st.JOBS, watching.job(f"job-{i}"))
        harness.wait_for(lambda i=i: f"job-{i}" in names(kx))
    for resource in ("jobs", "pods"):
        # At the start, one object of each kind of jobs shows that it may be listed.
        *start, asked = server.seen(verb="list", resource=resource, is_metadata=True)
        assert len(start) == (resource == "jobs")
        assert asked.query["limit"] == "1"
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
    """A server that refuses everything for a while gets no requests without a pause."""
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
    """A proxy that ends every stream as soon as it began: no storm of requests, and the mount stays in sync."""
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
    """Jobs are created, change and are deleted while requests fail now and then; in the end all is right."""
    seed = pytestconfig.getoption("--seed") or int(time.time())
    rand = random.Random(seed)
    from faults import Fault, common_faults
    kx = make_mount(server)  # which a fault of the first list ends
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
    """Several MiB in a line, in lists and watches; absurd sizes are survived."""
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
    """Return the maximum memory of the program, in MiB; 0 for a build whose sanitizer uses more itself."""
    text = (harness.pathlib.Path("/proc") / str(kx.pid) / "status").read_text()
    return 0 if sanitized else int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) // 1024


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "x" * 300, "new\nline", "-rf"])
def test_names_that_are_no_file_names(server, make_mount, name):
    """A hostile server's objects are omitted; the others are shown."""
    kx = up(server, make_mount(server))
    tree = watching.job("x", phase="Running")
    tree["metadata"]["name"] = name
    server.store.put(st.JOBS, tree)
    server.store.add(st.JOBS, watching.job("good"))
    harness.wait_for(lambda: "good" in names(kx))
    assert set(names(kx)) <= {"good", "-rf"}


def test_without_volcano(server, make_mount):
    """kxfs reports it immediately, with an explanation; after the installation its jobs appear automatically."""
    server.uninstall(*st.VOLCANO)
    kx = make_mount(server, start=False)
    p = harness.run(kx.command(), check=False, env=kx.env())
    said = p.stdout + p.stderr
    if p.returncode != 0:  # refused to mount
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
    """3 000 jobs and 6 000 pods: in bounded memory, and in sync. (tests/bench has more.)"""
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
    """Pods like those of a job of a thousand tasks, which contain the names of all others: 60 MB of lists."""
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
