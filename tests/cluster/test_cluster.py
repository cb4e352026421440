# SPDX-License-Identifier: MIT
"""Our own cluster: it runs pods, authenticates users, survives restarts, leaves nothing behind, and
replies like a real one."""

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

# --- Parts and users --------------------------------------------------------------------------
# The cluster itself: it runs pods, authenticates users, survives restarts, and leaves nothing
# behind.

IMAGE = "docker.io/library/busybox:1.35"


def run_pod(cluster, namespace, script, name="one"):
    cluster.apply({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
            {"name": "main", "image": IMAGE, "command": ["sh", "-c", script]}]},
    }, namespace=namespace)


def wait_pod(cluster, namespace, *phases, name="one"):
    def reached():
        pod = cluster.client.get(api.path_of("pods", namespace, name))
        return pod if pod["status"].get("phase") in phases else None

    return wait_for(reached, f"pod {name} to be {phases}")


def test_pod(cluster, namespace):
    """A pod is a real process with a real log and exit code."""
    run_pod(cluster, namespace, "echo to stdout; echo to stderr >&2; exit 3")
    pod = wait_pod(cluster, namespace, "Failed", "Succeeded")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    log = cluster.kubectl("logs", "-n", namespace, "one").stdout
    assert sorted(log.splitlines()) == ["to stderr", "to stdout"]


def test_follow(cluster, namespace):
    """A log arrives while the program is running. Waiting for its end would not show that."""
    run_pod(cluster, namespace, "echo first; while [ ! -e /tmp/stop ]; do sleep 0.1; done")
    wait_pod(cluster, namespace, "Running")
    p = subprocess.Popen([cluster.kubectl_path, f"--kubeconfig={cluster.kubeconfig('admin')}", "logs",
                          "-f", "-n", namespace, "one"], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "first\n"
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def test_rotation(cluster, namespace):
    """A log rotates within seconds. Then the server returns only its end."""
    run_pod(cluster, namespace, "i=0; while :; do i=$((i+1)); printf \"$i \"; "
            "head -c 25000 /dev/zero | tr '\\0' x; echo; sleep 0.2; done")
    path = api.path_of("pods", namespace, "one", "log")
    wait_pod(cluster, namespace, "Running")

    def rotated():
        try:
            log = cluster.client.send("GET", path)
        # just now there is no log: the old one was renamed, and the new one does not exist yet
        except api.Refused:
            return False
        return "xxx" in log and not log.startswith("1 x")

    wait_for(rotated, "the first line to be gone")


@pytest.mark.parametrize("user", ["token", "cert"])
def test_users(cluster, namespace, user):
    path = cluster.kubeconfig(user)
    assert cluster.kubectl("get", "pods,jobs.batch.volcano.sh", "-n", namespace, kubeconfig=path)
    nodes = cluster.kubectl("get", "nodes", kubeconfig=path, check=False)
    assert nodes.returncode == 1 and "forbidden" in nodes.stderr.lower()


def can(cluster, path, namespace, verb, resource):
    resource, _, sub = resource.partition("/")
    return cluster.kubectl("auth", "can-i", verb, resource, f"--subresource={sub}", "-n", namespace,
                           kubeconfig=path, check=False).stdout.strip() == "yes"


def test_limited_user(cluster, namespace, limited):
    """contrib/rbac.yaml grants the documented rights, and no others."""
    for verb, resource in (("create", "jobs.batch.volcano.sh"), ("watch", "pods"), ("get", "pods/log"),
                           ("create", "commands.bus.volcano.sh"),
                           ("list", "podgroups.scheduling.volcano.sh"), ("watch", "events")):
        assert can(cluster, limited, namespace, verb, resource), (verb, resource)
    for verb, resource in (("get", "pods"), ("delete", "pods"), ("get", "secrets"),
                           ("patch", "jobs.batch.volcano.sh"), ("list", "nodes")):
        assert not can(cluster, limited, namespace, verb, resource), (verb, resource)
    assert not can(cluster, limited, "default", "list", "pods")


def test_audit(cluster, namespace):
    if not hasattr(cluster, "audit"):
        pytest.fail("this cluster's audit log can't be read")
    cluster.kubectl("get", "configmaps", "-n", namespace, kubeconfig=cluster.kubeconfig("token"))

    def seen():
        return [entry for entry in cluster.audit("kxfs-token")
                if entry["requestURI"].startswith(f"/api/v1/namespaces/{namespace}/configmaps")]

    assert wait_for(seen, "the request in the audit log")[0]["verb"] == "list"


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
    uid = wait_pod(own_cluster, "default", "Running")["metadata"]["uid"]
    own_cluster.parts["apiserver"].stop()
    with pytest.raises(OSError):
        own_cluster.client.send("GET", "/readyz")
    own_cluster.parts["apiserver"].start()
    own_cluster.wait_apiserver()
    assert wait_pod(own_cluster, "default", "Running")["metadata"]["uid"] == uid
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
    assert wait_pod(own_cluster, "default", "Running")["metadata"]["uid"] == uid


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
            wait_pod(cluster, "default", "Running")
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


def test_closed_queue(cluster, namespace):
    """A queue that was closed by a command, as vcctl does."""
    name = f"q-{namespace}"
    cluster.client.post(api.path_of("queues"), {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name},
        "spec": {"weight": 1}})
    try:
        path = api.path_of("queues", None, name)
        wait_for(lambda: cluster.client.get(path).get("status", {}).get("state") == "Open", "the queue")
        queue = cluster.client.get(path)
        cluster.client.post(api.path_of("commands", "default"), {
            "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "action": "CloseQueue",
            "metadata": {"generateName": "test-", "namespace": "default"},
            "target": {"apiVersion": queue["apiVersion"], "kind": "Queue", "name": name,
                       "uid": queue["metadata"]["uid"]}})
        wait_for(lambda: cluster.client.get(path)["status"]["state"] == "Closed", "the queue to be closed")
        reply = refused(cluster.client.post, api.path_of("jobs", namespace), job("t", name))
        assert reply.code == 400
        assert (f"can only submit job to queue with state `Open`, queue `{name}` status is `Closed`"
                in reply.message)
    finally:
        cluster.client.delete(api.path_of("queues", None, name))


def test_long_name(cluster, namespace):
    name = "n" * 60
    reply = refused(cluster.client.post, api.path_of("jobs", namespace), job(name))
    assert reply.code == 400 and f"create pod with name {name}-one-0 validate failed" in reply.message


def test_dry_run_asks_the_webhook(cluster, namespace):
    path = api.path_of("jobs", namespace) + "?dryRun=All&fieldValidation=Strict"
    assert cluster.client.post(path, job("t"))["spec"]["minAvailable"] == 1
    assert refused(cluster.client.post, path, job("t", "nosuch")).code == 400
    assert not cluster.client.items(api.path_of("jobs", namespace))


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
