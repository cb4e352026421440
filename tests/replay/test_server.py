# SPDX-License-Identifier: MIT
"""Tests of the tests' API server, with curl and plain sockets: what the tests of kxfs rely on, but
would not notice if it were missing."""

import json
import select
import socket
import subprocess
import threading
import time

import pytest
import replies
import store as st
from fakes import FakeVolcano
from faults import Fault

pytestmark = pytest.mark.plain
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/test/jobs"
PODS = "/api/v1/namespaces/test/pods"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/test/commands"
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "one"},
    "spec": {"tasks": [{"name": "main", "replicas": 2, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}}]},
}


class Answer:
    """The result of a curl P: its exit status, and the HTTP status, headers and body."""

    def __init__(self, p):
        self.exit = p.returncode
        head, _, self.body = p.stdout.partition(b"\r\n\r\n")
        words = head.split()
        self.code = int(words[1]) if words and words[0].startswith(b"HTTP/") else 0
        self.headers = head.decode(errors="replace").lower()

    @property
    def tree(self):
        return json.loads(self.body)

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]


def curl(server, path, *args, timeout=60, data=None):
    cmd = ["curl", "-sgi", "--max-time", str(timeout), "--noproxy", "*",
           "-H", "Authorization: Bearer test-token", *args]
    if data is not None:
        cmd += ["-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary", "@-"]
    return Answer(subprocess.run([*cmd, server.url + path], input=json.dumps(data).encode(),
                                 stdout=subprocess.PIPE, check=False))


def post(server, tree, path=JOBS):
    return curl(server, f"{path}?fieldValidation=Strict", data=tree)


def pod(name, **labels):
    return {"metadata": {"name": name, "namespace": "test", "labels": labels},
            "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "main", "restartCount": 0, "state": {"running": {}}}]}}


def until(cond, timeout=60):
    end = time.monotonic() + timeout
    while not cond():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.01)


class Background:
    """A curl that reads a stream while the test continues."""

    def __init__(self, server, path):
        self.thread = threading.Thread(target=self._run, args=(server, path), daemon=True)
        self.answer = None
        self.thread.start()
        until(lambda: server.open_streams() or self.answer)

    def _run(self, server, path):
        self.answer = curl(server, path)

    def result(self):
        self.thread.join(60)
        assert self.answer is not None, "curl still runs"
        return self.answer


# --- lists and watches -------------------------------------------------------------------------


def test_list_in_pages(server):
    """The pages of a list show one state. Long pages are compressed."""
    for i in range(300):
        server.store.add(st.PODS, pod(f"p{i:03}", label="x" * 900))
    first = curl(server, f"{PODS}?limit=200", "--compressed")
    assert "content-encoding: gzip" in first.headers
    server.store.add(st.PODS, pod("later"))
    second = curl(server, f"{PODS}?limit=200&continue={first.tree['metadata']['continue']}").tree
    names = [item["metadata"]["name"] for item in first.tree["items"] + second["items"]]
    assert names == [f"p{i:03}" for i in range(300)]
    assert second["metadata"] == {"resourceVersion": first.tree["metadata"]["resourceVersion"]}


@pytest.mark.parametrize("selector,names", [
    ("labelSelector=a", "xy"), ("labelSelector=!a", "z"), ("labelSelector=a=1", "x"),
    ("labelSelector=a%20in%20(1,2),b", "y"), ("labelSelector=a!=1", "yz"),
    ("fieldSelector=metadata.name=z", "z"),
])
def test_selectors(server, selector, names):
    for name, labels in (("x", {"a": "1"}), ("y", {"a": "2", "b": ""}), ("z", {})):
        server.store.add(st.PODS, pod(name, **labels))
    items = curl(server, f"{PODS}?{selector}").tree["items"]
    assert "".join(item["metadata"]["name"] for item in items) == names


def test_watch(server):
    first = server.store.add(st.PODS, pod("old", a="1"))
    watch = Background(server, f"{PODS}?watch=true&resourceVersion={first.version}&labelSelector=a"
                               "&allowWatchBookmarks=true&timeoutSeconds=50")
    server.store.add(st.PODS, pod("new", a="1"))
    server.store.add(st.PODS, pod("other"))
    server.store.change(st.PODS, "test", "old", lambda tree: tree["metadata"].update(labels={}))
    server.store.change(st.PODS, "test", "new", lambda tree: tree["status"].update(phase="Failed"))
    server.store.remove(st.PODS, "test", "new")
    until(lambda: server.send_bookmarks(verb="watch"))
    server.inject(b'{"type":"ODD","object":{}}\n', resource="pods")
    server.end_streams(resource="pods")
    answer = watch.result()
    assert answer.exit == 0
    assert [(e["type"], e["object"].get("metadata", {}).get("name")) for e in answer.lines] == [
        ("ADDED", "new"), ("DELETED", "old"), ("MODIFIED", "new"), ("DELETED", "new"),
        ("BOOKMARK", None), ("ODD", None)]
    assert answer.lines[4]["object"]["metadata"]["resourceVersion"] == str(server.store.version)
    assert not server.open_streams()


def test_watch_too_old(server):
    version = server.store.add(st.PODS, pod("a")).version
    watch = Background(server, f"{PODS}?watch=1&resourceVersion={version}")
    server.store.add(st.PODS, pod("b"))
    server.expire()
    (*_, last) = watch.result().lines
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
    (line,) = curl(server, f"{PODS}?watch=1&resourceVersion={version}").lines
    assert line["object"]["reason"] == "Expired"
    assert curl(server, f"{PODS}?resourceVersion={server.store.version + 5}").code == 504


# --- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind,exits", [
    ("reset", {52, 56}), ("lose", {52, 56}), ("cut", {18, 52, 56}), ("close", {18, 52, 56}),
    ("longer", {18}), ("junk", {1, 8, 52}),
])
def test_fault(server, kind, exits):
    server.faults.add(kind, amount=400, verb="create")
    assert curl(server, JOBS).exit == 0  # the fault is not for this request
    assert post(server, JOB).exit in exits
    check_fault(server, kind, kind != "reset")


@pytest.mark.parametrize("kind", ["silent", "deaf"])
def test_fault_without_a_word(server, kind):
    """The connection remains open without a reply. The request takes effect with the fault "deaf",
    but not with the fault "silent"."""
    server.faults.add(kind, verb="create")
    body = json.dumps(JOB).encode()
    with socket.create_connection((server.host, server.port)) as s:
        s.sendall(f"POST {JOBS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer test-token\r\n"
                  f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: [req for req in server.seen(verb="create") if req.fault])
        until(lambda: kind == "silent" or server.store.find(st.JOBS, "test", "one"))
        assert not select.select([s], [], [], 1)[0]
    check_fault(server, kind, kind == "deaf")


def check_fault(server, kind, stored):
    """Check that the first request got the fault, and whether it has STORED the job. The next request gets no fault."""
    assert (server.store.find(st.JOBS, "test", "one") is not None) == stored
    assert server.seen(verb="create")[0].fault.kind == kind
    assert post(server, JOB).code == (409 if stored else 201)


def test_fault_slow(server):
    server.store.add(st.PODS, pod("a"))
    server.faults.add("slow", amount=100, delay=0.02, resource="pods")
    begin = time.monotonic()
    answer = curl(server, PODS)
    assert answer.exit == 0 and answer.tree["items"]
    assert time.monotonic() - begin > 0.08


def test_faults_at_random(server):
    """The seed determines which requests fail."""
    codes = []
    for _ in range(2):
        server.faults.at_random(7, 0.5, [lambda rand: Fault("reply", reply=replies.internal())],
                                resource="pods")
        codes.append([curl(server, PODS).code for _ in range(20)])
    assert codes[0] == codes[1] and set(codes[0]) == {200, 500}


def test_away_and_back(server):
    watch = Background(server, f"{PODS}?watch=1&resourceVersion={server.store.version}")
    url = server.url
    server.away()
    assert watch.result().exit in (18, 56)
    assert curl(server, PODS).exit == 7
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((server.host, server.port))  # no other process gets the port meanwhile
    server.back()
    assert server.url == url and curl(server, PODS).code == 200
    server.freeze()
    assert curl(server, PODS, timeout=1).exit == 28
    server.thaw()
    assert curl(server, PODS).code == 200


@pytest.mark.parametrize("how, status", [("close", 18), ("reset", 56)])
def test_watch_is_cut(server, how, status):
    watch = Background(server, f"{PODS}?watch=1&resourceVersion={server.store.version}")
    server.inject(b'{"type":"ADDED","object":{"kind":"Po', verb="watch")
    server.end_streams(how, verb="watch")
    answer = watch.result()
    assert answer.exit == status and (how == "reset" or answer.body.endswith(b'"Po'))


# --- logs --------------------------------------------------------------------------------------


def test_log(server):
    obj = server.store.add(st.PODS, pod("a"))
    log = server.api.log(obj, "main")
    second = 1700000000 * 10**9
    for i in range(4):
        log.append(f"line {i}\n", at=second + i * 400_000_000)
    path = f"{PODS}/a/log?container=main"
    assert curl(server, path).body == b"line 0\nline 1\nline 2\nline 3\n"
    assert curl(server, f"{path}&tailLines=1").body == b"line 3\n"
    assert curl(server, f"{path}&limitBytes=9").body == b"line 0\nli"
    stamped = curl(server, f"{path}&timestamps=true").body.splitlines()
    assert stamped[1] == b"2023-11-14T22:13:20.400000000Z line 1"
    # The server cuts sinceTime to whole seconds, so it returns older lines of that second again.
    assert curl(server, f"{path}&sinceTime=2023-11-14T22:13:20.9Z").body.startswith(b"line 0")
    assert curl(server, f"{path}&sinceTime=2023-11-14T22:13:21Z").body == b"line 3\n"
    log.rotate()
    log.append("after\n")
    assert curl(server, path).body == b"after\n"


def test_log_refused(server):
    tree = pod("a")
    tree["spec"] = {"containers": [{"name": "x"}, {"name": "y"}]}
    tree["status"] = {"phase": "Pending"}
    server.store.add(st.PODS, tree)
    assert "is not valid" in curl(server, f"{PODS}/a/log?container=z").tree["message"]
    answer = curl(server, f"{PODS}/a/log?container=x")
    assert (answer.code, answer.body) == (204, b"")
    server.store.change(st.PODS, "test", "a", lambda t: t["spec"].update(nodeName="n"))
    answer = curl(server, f"{PODS}/a/log?container=x")
    assert answer.code == 400 and answer.tree["message"].endswith("waiting to start: ContainerCreating")
    answer = curl(server, f"{PODS}/a/log?container=x&previous=true")
    assert answer.code == 400 and "previous terminated container" in answer.tree["message"]


# --- the fake Volcano --------------------------------------------------------------------------


def phases(server):
    """Return the phases of the job, without repetitions."""
    found = []
    for change in server.store.changes(st.JOBS, 0):
        phase = change.after.tree().get("status", {}).get("state", {}).get("phase")
        if found[-1:] != [phase]:
            found.append(phase)
    return found


def test_fake_volcano_restarts(server):
    tree = json.loads(json.dumps(JOB))
    tree["spec"].update(maxRetry=2, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    volcano = FakeVolcano(server)
    post(server, tree)
    for _ in range(2):
        volcano.finish(volcano.start("one")[0], 3)
    assert phases(server) == [None, "Pending", "Running", "Restarting", "Pending", "Running", "Restarting", "Failed"]
    assert volcano.pods("one") == ["one-main-0"]  # in the last attempt, finished pods remain
    assert volcano.job("one")["status"]["retryCount"] == 2


def test_fake_volcano_obeys_commands(server):
    volcano = FakeVolcano(server)
    uid = post(server, JOB).tree["metadata"]["uid"]
    volcano.start("one")
    for action in ("AbortJob", "ResumeJob", "TerminateJob"):
        command = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"generateName": "c-"},
                   "action": action, "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
                                                "name": "one", "uid": uid}}
        assert post(server, command, COMMANDS).code == 201
    assert phases(server)[2:] == ["Running", "Aborting", "Aborted", "Restarting", "Pending", "Terminating",
                                  "Terminated"]
    assert volcano.pods("one") == []
