# SPDX-License-Identifier: MIT
"""Tests of the tests' API server, with curl and plain sockets."""

import json
import select
import shutil
import socket
import subprocess
import threading
import time

import kubeconfig
import podlog
import pytest
import recordings
import replies
import store as st
from apiserver import ApiServer
from fakes import FakeVolcano
from faults import Fault
from frontend import Http2Frontend

pytestmark = pytest.mark.plain
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/test/jobs"
PODS = "/api/v1/namespaces/test/pods"
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "one"},
    "spec": {"tasks": [{"name": "main", "replicas": 2, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}}]},
}


class Answer:
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


def curl(server, path, *args, token="test-token", timeout=60, data=None, pki=None):
    """Return curl's exit status, and the HTTP status, headers and body."""
    cmd = ["curl", "-sgi", "--max-time", str(timeout), "--noproxy", "*", *args]
    if pki:
        cmd += ["--cacert", str(pki.ca)]
    if token:
        cmd += ["-H", f"Authorization: Bearer {token}"]
    if data is not None:
        cmd += ["-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary", "@-"]
    return Answer(subprocess.run([*cmd, server.url + path], input=json.dumps(data).encode(),
                                 stdout=subprocess.PIPE, check=False))


def post(server, tree, query="?fieldValidation=Strict", path=JOBS, **kwargs):
    return curl(server, path + query, data=tree, **kwargs)


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

    def __init__(self, server, path, *args, via=None):
        self.thread = threading.Thread(target=self._run, args=(via or server, path, args), daemon=True)
        self.answer = None
        before = len(server.open_streams())
        self.thread.start()
        until(lambda: len(server.open_streams()) > before or self.answer)

    def _run(self, server, path, args):
        self.answer = curl(server, path, *args)

    def result(self):
        self.thread.join(60)
        assert self.answer is not None, "curl still runs"
        return self.answer


# --- discovery and lists -----------------------------------------------------------------------


def test_discovery(server):
    assert curl(server, "/version").tree["gitVersion"].startswith("v1.")
    assert "v1" in curl(server, "/api").tree["versions"]
    groups = [group["name"] for group in curl(server, "/apis").tree["groups"]]
    assert "batch.volcano.sh" in groups
    kinds = curl(server, "/apis/batch.volcano.sh/v1alpha1").tree["resources"]
    assert [(kind["name"], kind["kind"]) for kind in kinds] == [("jobs", "Job")]
    server.uninstall(*st.VOLCANO)
    answer = curl(server, "/apis/batch.volcano.sh/v1alpha1")
    assert (answer.code, answer.body) == (404, b"404 page not found\n")
    assert curl(server, JOBS).code == 404
    assert "batch.volcano.sh" not in curl(server, "/apis").body.decode()


def test_list_in_pages(server):
    for i in range(7):
        server.store.add(st.PODS, pod(f"p{i}"))
    names, token, version = [], "", None
    while True:
        page = curl(server, f"{PODS}?limit=3" + (f"&continue={token}" if token else "")).tree
        assert version in (None, page["metadata"]["resourceVersion"])
        version = page["metadata"]["resourceVersion"]
        names += [item["metadata"]["name"] for item in page["items"]]
        assert "kind" not in page["items"][0]
        server.store.add(st.PODS, pod(f"later{len(names)}"))  # a list in pages does not contain later objects
        token = page["metadata"].get("continue")
        if not token:
            break
    assert names == [f"p{i}" for i in range(7)]
    token = curl(server, f"{PODS}?limit=3").tree["metadata"]["continue"]
    server.api.expire_pages()
    answer = curl(server, f"{PODS}?limit=3&continue={token}")
    assert answer.code == 410 and answer.tree["reason"] == "Expired"


def test_list_of_custom_resources(server):
    for _ in server.play("success"):
        pass
    answer = curl(server, JOBS)
    assert list(answer.tree) == ["apiVersion", "items", "kind", "metadata"]
    (item,) = answer.tree["items"]
    assert item["kind"] == "Job" and item["status"]["state"]["phase"] == "Completed"
    assert item["metadata"]["namespace"] == "test"


def test_long_lists_are_compressed(server):
    for i in range(300):
        server.store.add(st.PODS, pod(f"p{i}", label="x" * 500))
    assert "content-encoding" not in curl(server, PODS).headers
    answer = curl(server, PODS, "--compressed")
    assert "content-encoding: gzip" in answer.headers
    assert len(answer.tree["items"]) == 300


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


# --- watches -----------------------------------------------------------------------------------


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
    assert answer.lines[0]["object"]["kind"] == "Pod"
    assert not server.open_streams()


def test_watch_ends_in_time(server):
    answer = curl(server, f"{PODS}?watch=1&resourceVersion={server.store.version}&timeoutSeconds=1")
    assert answer.exit == 0 and answer.code == 200 and answer.body == b""


def test_watch_without_version(server):
    server.store.add(st.PODS, pod("a"))
    answer = curl(server, f"{PODS}?watch=1&timeoutSeconds=1")
    assert [e["type"] for e in answer.lines] == ["ADDED"]


def test_watch_too_old(server):
    version = server.store.add(st.PODS, pod("a")).version
    watch = Background(server, f"{PODS}?watch=1&resourceVersion={version}")
    server.store.add(st.PODS, pod("b"))
    server.expire()
    (*_, last) = watch.result().lines
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
    answer = curl(server, f"{PODS}?watch=1&resourceVersion={version}")
    assert answer.code == 200 and answer.lines[0]["object"]["reason"] == "Expired"
    assert curl(server, f"{PODS}?resourceVersion={server.store.version + 5}").code == 504
    answer = curl(server, f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion={server.store.version + 5}")
    assert answer.code == 200 and not answer.body
    server.faults.add("reply", reply=replies.expired(version, 5), verb="watch")
    assert curl(server, f"{PODS}?watch=1&resourceVersion={version}").code == 410


def test_watch_error_in_the_stream(server):
    watch = Background(server, f"{PODS}?watch=1&resourceVersion={server.store.version}")
    (line,) = replies.recorded_events("504-watch-too-large-resource-version.jsonl")
    server.inject(line + b"\n", verb="watch")
    server.end_streams()
    assert watch.result().lines[0]["object"]["code"] == 504


# --- creating and deleting ---------------------------------------------------------------------


def test_create(server):
    assert post(server, JOB, "?fieldValidation=Strict&dryRun=All").code == 201
    assert server.store.find(st.JOBS, "test", "one") is None
    answer = post(server, JOB)
    assert answer.code == 201
    assert answer.tree["spec"]["minAvailable"] == 2 and answer.tree["metadata"]["uid"]
    answer = post(server, JOB)
    assert answer.code == 409 and answer.tree["reason"] == "AlreadyExists"
    live = server.store.find(st.JOBS, "test", "one").tree()
    assert "resourceVersion should not be set" in post(server, live).tree["message"]


@pytest.mark.parametrize("edit,code,text", [
    (lambda t: t["spec"].update(maxRetryy=1), 400, 'strict decoding error: unknown field "spec.maxRetryy"'),
    (lambda t: t["spec"].update(queue="nosuch"), 400, "unable to find job queue"),
    (lambda t: t["spec"].update(queue="shut"), 400, "status is `Closed`"),
    (lambda t: t["spec"].update(maxRetry="many"), 422, "must be of type integer"),
    (lambda t: t["metadata"].update(annotations={"a": "x" * 262144}), 422, "Too long"),
    (lambda t: t["metadata"].update(name="Big"), 422, "RFC 1123"),
    (lambda t: t["metadata"].update(namespace="elsewhere"), 400, "does not match the namespace"),
    (lambda t: t.update(kind="Jobb"), 400, "does not match"),
], ids=["field", "queue", "closed", "type", "annotations", "name", "namespace", "kind"])
def test_refused(server, edit, code, text):
    server.api.queues["shut"] = "Closed"
    tree = json.loads(json.dumps(JOB))
    edit(tree)
    answer = post(server, tree)
    assert answer.code == code and text in answer.tree["message"]
    assert not server.store.objects(st.JOBS)[0]


def test_too_large(server):
    tree = json.loads(json.dumps(JOB))
    container = tree["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    for size, code, text in ((1600000, 500, "etcdserver: request is too large"),
                             (2200000, 500, "ResourceExhausted"), (3200000, 413, "")):
        container["image"] = "x" * size
        answer = post(server, tree)
        assert answer.code == code and text in answer.body.decode()
        if code == 413:
            assert answer.body == b""


def test_delete(server):
    uid = server.store.add(st.PODS, pod("a")).uid

    def delete(wanted):
        return curl(server, f"{PODS}/a", "-X", "DELETE", data={
            "preconditions": {"uid": wanted}, "propagationPolicy": "Background"})

    answer = delete("other")
    assert answer.code == 409 and "the UID in the precondition" in answer.tree["message"]
    assert delete(uid).tree["status"] == "Success"
    assert delete(uid).code == 404


# --- permissions ---


def test_credentials(pki):
    with ApiServer(pki) as server:
        server.passwords["ada"] = "secret"
        cert, key = pki.issue("ada", "ada")

        def ask(*args, token=None):
            return curl(server, PODS, *args, token=token, pki=pki).code

        assert ask(token="test-token") == 200
        assert ask() == 403
        assert ask(token="old") == 401
        assert ask("-u", "ada:secret") == 200
        assert ask("-u", "ada:wrong") == 401
        assert ask("--cert", str(cert), "--key", str(key)) == 200
        assert server.requests[-1].user == "ada"
        assert ask("-H", "Impersonate-User: bob", token="test-token") == 200
        assert server.requests[-1].user == "bob"
        assert curl(server, PODS).exit == 60  # curl refuses the server without the CA


def test_forbidden(server):
    server.forbidden.append({"verb": "create", "resource": "jobs"})
    assert curl(server, JOBS).code == 200
    answer = post(server, JOB)
    assert answer.code == 403
    assert 'User "tester" cannot create resource "jobs" in API group "batch.volcano.sh"' in answer.tree["message"]


def check_kubectl(pki, tmp_path):
    """kubectl accepts the server as an API server. kubectl sends a token only over TLS."""
    with ApiServer(pki) as server:
        path = kubeconfig.write(tmp_path / "config", kubeconfig.config(server))
        FakeVolcano(server)
        assert post(server, JOB, pki=pki).code == 201

        def kubectl(*args):
            p = subprocess.run(["kubectl", f"--kubeconfig={path}", f"--cache-dir={tmp_path}/cache", *args],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False, timeout=120, text=True)
            assert p.returncode == 0, p.stdout
            return p.stdout

        assert "job.batch.volcano.sh/one" in kubectl("get", "jobs.batch.volcano.sh", "-o", "name")
        assert len(kubectl("get", "pods", "--chunk-size=1", "-o", "name").splitlines()) == 2
        assert "deleted" in kubectl("delete", "jobs.batch.volcano.sh", "one", "--wait=false")
        assert kubectl("get", "pods", "-o", "name") == ""


if shutil.which("kubectl"):  # Debian does not package kubectl, so test with it only if it is installed.
    def test_kubectl(pki, tmp_path):
        check_kubectl(pki, tmp_path)


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


def test_fault_reply(server):
    server.faults.add("reply", times=2, reply=replies.too_many(3), resource="pods")
    answer = curl(server, PODS)
    assert answer.code == 429 and "retry-after: 3" in answer.headers
    assert curl(server, PODS).code == 429
    assert curl(server, PODS).code == 200
    assert [req.code for req in server.seen(resource="pods")] == [429, 429, 200]


def test_faults_at_random(server):
    internal = [lambda rand: Fault("reply", reply=replies.internal())]
    server.faults.at_random(7, 0.5, internal, resource="pods")
    codes = [curl(server, PODS).code for _ in range(20)]
    assert set(codes) == {200, 500}
    server.faults.at_random(7, 0.5, internal, resource="pods")
    assert [curl(server, PODS).code for _ in range(20)] == codes


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


def test_watch_cut_and_torn(server):
    path = f"{PODS}?watch=1&resourceVersion={server.store.version}"
    watch = Background(server, path)
    server.inject(b'{"type":"ADDED","object":{"kind":"Po', verb="watch")
    server.end_streams("close", verb="watch")
    answer = watch.result()
    assert answer.exit == 18 and answer.body.endswith(b'"Po')
    watch = Background(server, path)
    server.end_streams("reset")
    assert watch.result().exit == 56


def test_client_that_goes_is_noticed(server):
    with socket.create_connection((server.host, server.port)) as s:
        s.sendall(f"GET {PODS}?watch=1&resourceVersion={server.store.version} HTTP/1.1\r\nHost: x\r\n"
                  "Authorization: Bearer test-token\r\n\r\n".encode())
        until(lambda: server.open_streams(verb="watch"))
    until(lambda: not server.open_streams())


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


def test_log_followed(server):
    obj = server.store.add(st.PODS, pod("a"))
    log = server.api.log(obj, "main")
    log.append(b"one\n")
    stream = Background(server, f"{PODS}/a/log?container=main&follow=true&timestamps=true")
    log.append(b"x" * (podlog.PIECE + 10))
    log.append(b"\nend")
    log.end()
    text = stream.result().body.split(b"\n")
    assert text[0].endswith(b"Z one")
    assert text[1].endswith(b"Z " + b"x" * (podlog.PIECE + 10))
    assert text[2].endswith(b"Z end") and len(text) == 3


def test_log_refused(server):
    tree = pod("a")
    tree["spec"] = {"containers": [{"name": "x"}, {"name": "y"}], "initContainers": [{"name": "prep"}]}
    tree["status"] = {"phase": "Pending"}
    server.store.add(st.PODS, tree)
    assert "choose one of: [prep x y]" in curl(server, f"{PODS}/a/log").tree["message"]
    assert "is not valid" in curl(server, f"{PODS}/a/log?container=z").tree["message"]
    answer = curl(server, f"{PODS}/a/log?container=x")
    assert (answer.code, answer.body) == (204, b"")
    server.store.change(st.PODS, "test", "a", lambda t: t["spec"].update(nodeName="n"))
    answer = curl(server, f"{PODS}/a/log?container=x")
    assert answer.code == 400 and answer.tree["message"].endswith("waiting to start: ContainerCreating")
    answer = curl(server, f"{PODS}/a/log?container=x&previous=true")
    assert answer.code == 400 and "previous terminated container" in answer.tree["message"]
    assert curl(server, f"{PODS}/b/log").code == 404


# --- recordings and the fake Volcano -----------------------------------------------------------


@pytest.mark.parametrize("scenario", recordings.SCENARIOS)
def test_recording(server, scenario):
    """A watch gets all recorded events, in order."""
    recording = recordings.Recording(scenario, resources=(st.JOBS,))
    watch = Background(server, f"{JOBS}?watch=1&resourceVersion={server.store.version}")
    for step in recording.steps:
        recordings.apply(server.store, step)
    server.store.add(st.PODS, pod("a"))
    until(lambda: server.send_bookmarks())
    server.end_streams()
    seen = [e for e in watch.result().lines if e["type"] != "BOOKMARK"]
    assert [e["type"] for e in seen] == [step.kind for step in recording.steps]
    assert [e["object"].get("status") for e in seen if e["type"] != "DELETED"] == [
        step.tree.get("status") for step in recording.steps if step.kind != "DELETED"]


def phases(server, name="one"):
    changes = server.store.changes(st.JOBS, 0)
    found = [c.after.tree().get("status", {}).get("state", {}).get("phase") for c in changes
             if c.after and c.after.name == name]
    return [phase for i, phase in enumerate(found) if i == 0 or phase != found[i - 1]]


def test_fake_volcano(server):
    volcano = FakeVolcano(server)
    assert post(server, JOB).code == 201
    assert volcano.pods("one") == ["one-main-0", "one-main-1"]
    for name in volcano.start("one"):
        volcano.log(name).append(f"hello from {name}\n")
        volcano.finish(name)
    assert phases(server) == [None, "Pending", "Running", "Completed"]
    assert "succeeded" not in volcano.job("one")["status"]  # Volcano drops these numbers when the job has ended
    assert curl(server, f"{PODS}/one-main-1/log?container=main&follow=1").body == b"hello from one-main-1\n"


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
        assert post(server, command, path="/apis/bus.volcano.sh/v1alpha1/namespaces/test/commands").code == 201
    assert phases(server)[2:] == ["Running", "Aborting", "Aborted", "Restarting", "Pending", "Terminating",
                                  "Terminated"]
    assert volcano.pods("one") == []


# --- HTTP/2 ------------------------------------------------------------------------------------


def test_http2(pki, tmp_path):
    with ApiServer() as server, Http2Frontend(server, pki, tmp_path) as front:
        server.store.add(st.PODS, pod("a"))
        answer = curl(front, PODS, "--http2", pki=pki)
        assert answer.headers.startswith("http/2 200") and answer.tree["items"]
        stream = Background(server, f"{PODS}?watch=1&resourceVersion={server.store.version}", "--http2",
                            "--cacert", str(pki.ca), via=front)
        server.store.add(st.PODS, pod("b"))
        until(lambda: server.send_bookmarks())
        server.end_streams()
        assert stream.result().lines[0]["type"] == "ADDED"
