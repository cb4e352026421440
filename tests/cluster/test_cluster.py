# SPDX-License-Identifier: MIT
"""Our own cluster: its user `limited` has the rights of contrib/rbac.yaml, its parts can be
restarted, it leaves nothing behind, and its API server replies as the recorded one."""

import json
import os
import pathlib
import signal
import ssl
import subprocess
import sys
import tempfile

import api
import pytest
from cluster import Cluster
from process import processes_of, wait_for
from story import text_of

IMAGE = "docker.io/library/busybox:1.35"


def run_pod(cluster, namespace, script):
    cluster.apply({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
            {"name": "main", "image": IMAGE, "command": ["sh", "-c", script]}]},
    }, namespace=namespace)


def wait_pod(cluster, namespace):
    """Wait until the pod runs, and return it."""
    def reached():
        pod = cluster.client.get(api.path_of("pods", namespace, "one"))
        return pod if pod["status"].get("phase") == "Running" else None

    return wait_for(reached, "the pod to run")


def can(cluster, user, namespace, verb, resource):
    """Return whether USER has the right, also for resources that this cluster does not serve."""
    resource, _, sub = resource.partition("/")
    resource, _, group = resource.partition(".")
    return cluster.client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {
        "user": user, "resourceAttributes": {"namespace": namespace, "verb": verb, "group": group,
                                             "resource": resource, "subresource": sub}}})["status"]["allowed"]


@pytest.mark.usefixtures("limited")
def test_limited_user(cluster, namespace):
    """contrib/rbac.yaml grants the documented rights, and no others."""
    user = f"system:serviceaccount:{namespace}:kxfs"
    for verb, resource in (("create", "jobs.batch.volcano.sh"), ("watch", "pods"), ("get", "pods/log"),
                           ("create", "commands.bus.volcano.sh"), ("patch", "workloads.kueue.x-k8s.io"),
                           ("get", "localqueues.visibility.kueue.x-k8s.io/pendingworkloads"),
                           ("list", "podgroups.scheduling.volcano.sh"), ("watch", "events")):
        assert can(cluster, user, namespace, verb, resource), (verb, resource)
    for verb, resource in (("get", "pods"), ("delete", "pods"), ("get", "secrets"),
                           ("patch", "jobs.batch.volcano.sh"), ("list", "nodes")):
        assert not can(cluster, user, namespace, verb, resource), (verb, resource)
    assert not can(cluster, user, "default", "list", "pods")


def accepted(cluster, job):
    try:
        return cluster.client.post(api.path_of("jobs", "default"), job)
    except api.Refused as e:
        # When etcd restarts, the server may have stored the object and still report an error.
        return e.status.get("reason") == "AlreadyExists"


def phase_of(cluster, namespace, name):
    job = cluster.client.get(api.path_of("jobs", namespace, name))
    return job.get("status", {}).get("state", {}).get("phase")


def test_restart_parts(own_cluster, load_job):
    """Parts stop and start one by one. Running pods continue to run, and jobs continue."""
    run_pod(own_cluster, "default", "sleep 1000")
    uid = wait_pod(own_cluster, "default")["metadata"]["uid"]
    own_cluster.parts["apiserver"].stop()
    with pytest.raises(OSError):
        own_cluster.client.send("GET", "/readyz")
    own_cluster.parts["apiserver"].start()
    own_cluster.wait_apiserver()
    assert wait_pod(own_cluster, "default")["metadata"]["uid"] == uid
    # The server has forgotten earlier changes, and reports that in the stream.
    event = next(own_cluster.client.watch(api.path_of("pods", "default"), "1"))
    wanted = json.loads(text_of("410-watch-too-old.jsonl").splitlines()[0])
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
        wanted["type"], wanted["object"]["code"], wanted["object"]["reason"])
    for name in ("volcano", "etcd", "scheduler", "controller-manager"):
        own_cluster.parts[name].stop()
        own_cluster.parts[name].start()
    own_cluster.node.kubelet.stop()
    own_cluster.node.containerd.stop()
    own_cluster.node.start_containerd()
    own_cluster.node.kubelet.start()
    own_cluster.wait_apiserver()
    wait_for(lambda: accepted(own_cluster, load_job("fail")), "the job to be taken")
    wait_for(lambda: phase_of(own_cluster, "default", load_job("fail")["metadata"]["name"]) == "Failed",
             "the job to end")
    assert wait_pod(own_cluster, "default")["metadata"]["uid"] == uid


@pytest.fixture
def place():
    """Yield a directory with a short path, as sockets require."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="kxfs-", dir=os.environ.get("KXFS_TEST_DIR")))
    yield path
    path.rmdir()


def groups(base):
    return list(pathlib.Path("/sys/fs/cgroup").glob(f"*/{base.name}"))


def test_leaves_nothing(place):
    """Two clusters at the same time, then none: no process, mount, cgroup, file or interface
    remains."""
    links = set(os.listdir("/sys/class/net"))
    with Cluster(place) as one, Cluster(place) as two:
        assert one.server != two.server
        for cluster in (one, two):
            run_pod(cluster, "default", "trap '' TERM; while :; do sleep 1; done")
        for cluster in (one, two):
            wait_pod(cluster, "default")
            assert groups(cluster.base) and list(processes_of(cluster.base))
        assert set(os.listdir("/sys/class/net")) == links
    for cluster in (one, two):
        assert not list(processes_of(cluster.base))
        assert not groups(cluster.base)
    assert not list(place.iterdir())
    assert str(place) not in pathlib.Path("/proc/mounts").read_text()


KILLED = """
import sys
sys.path.insert(0, {here!r})
from cluster import Cluster
cluster = Cluster({directory!r}).start()
print(cluster.base, flush=True)
sys.stdin.read()
"""


def test_killed(place):
    """Nothing of a cluster remains if the process that started it is killed."""
    code = KILLED.format(here=str(pathlib.Path(__file__).parent), directory=str(place))
    p = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
    try:
        base = pathlib.Path(p.stdout.readline().strip())
        assert base.is_dir() and list(processes_of(base))
    finally:
        p.send_signal(signal.SIGKILL)
        p.communicate()
    wait_for(lambda: not base.exists(), "the directory to go")
    assert not list(processes_of(base))
    assert not groups(base)


def test_given(cluster, namespace):
    """The tests also run in a namespace of an existing cluster, and leave it empty."""
    env = {"PATH": f"{cluster.parts_dir}:/usr/bin:/bin", "KUBECONFIG": str(cluster.kubeconfig("admin")),
           "KXFS_CLUSTER_NAMESPACE": namespace, "HOME": os.environ.get("HOME", "/")}
    tests = pathlib.Path(__file__).resolve().parents[1]
    p = subprocess.run([sys.executable, "-m", "pytest", "-c", tests / "pytest.ini", f"--rootdir={tests}",
                        "-q", tests / "cluster/test_volcano.py", "-k", "several_replicas"],
                       env=env, check=False, capture_output=True, text=True, timeout=300)
    assert p.returncode == 0, p.stdout + p.stderr
    assert "1 passed" in p.stdout
    for resource in ("jobs", "pods"):
        assert not cluster.client.items(api.path_of(resource, namespace))


# --- Replies ----------------------------------------------------------------------------------
# The API server of this cluster replies exactly as in the recorded replies.


def recorded(name):
    return json.loads(text_of(name))


def job(name, queue="default", **task):
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "queue": queue, "tasks": [{"name": "one", "replicas": 1, **task, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{
                "name": "one", "image": "docker.io/library/busybox:1.35", "command": ["true"]}]}}}]}}


def refused(function, *args):
    with pytest.raises(api.Refused) as caught:
        function(*args)
    return caught.value


def test_no_such_queue(cluster, namespace):
    path = api.path_of("jobs", namespace)
    assert refused(cluster.client.post, path, job("t", "nosuch")).status == recorded("400-webhook-no-such-queue.json")


def test_unknown_field(cluster, namespace):
    wrong = job("t", maxRetryy=1)
    wrong["spec"]["maxRetryy"] = 1
    wrong["spec"]["tasks"].append({**wrong["spec"]["tasks"][0], "name": "two"})
    reply = refused(cluster.client.post, api.path_of("jobs", namespace) + "?fieldValidation=Strict", wrong)
    assert reply.status == recorded("400-strict-unknown-field.json")


def test_exists(cluster, namespace):
    path = api.path_of("jobs", namespace)
    cluster.client.post(path, job("t-abc"))
    assert refused(cluster.client.post, path, job("t-abc")).status == recorded("409-already-exists.json")


def test_quota(cluster, namespace):
    wanted = recorded("403-quota-exceeded.json")
    counted = "count/jobs.batch.volcano.sh"
    path = api.path_of("jobs", namespace)
    for name in ("one", "two"):
        cluster.client.post(path, job(name))
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q1"},
                   "spec": {"hard": {counted: "0"}}}, namespace=namespace)

    def answer():
        """Return the reply to a dry run. Admission sees the quota and its usage slightly late."""
        try:
            return cluster.client.post(path + "?dryRun=All", job("t-quota"))
        except api.Refused as e:
            return e.status

    wait_for(lambda: f"used: {counted}=2" in answer().get("message", ""), "the quota to be counted")
    assert refused(cluster.client.post, path, job("t-quota")).status == wanted


def test_no_log(cluster, namespace):
    reply = refused(cluster.client.send, "GET", api.path_of("pods", namespace, "nosuch", "log"))
    assert reply.status == recorded("404-pod-log.json")


def test_no_such_resource(cluster):
    reply = refused(cluster.client.send, "GET", "/apis/nosuch.volcano.sh/v1/jobs")
    assert reply.code == 404 and reply.body == text_of("404-no-such-resource.txt")


@pytest.mark.parametrize("token, file", [("wrong", "401-bad-token.json"), (None, "403-anonymous.json")])
def test_strangers(cluster, token, file):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = cluster.client.address
    stranger = api.Client(f"https://{host}:{port}", context, token)
    assert refused(stranger.send, "GET", "/api/v1/namespaces/default/pods").status == recorded(file)
