# SPDX-License-Identifier: MIT
"""What the tests with mounts of a real cluster share: jobs whose end the test decides, the mount,
and a fake node.

A pod of HOLD waits until the test decides its exit code with release(namespace, pod, code). So no
test depends on how long something takes."""

import contextlib
import json
import pathlib
import re
import threading
import time
import uuid

import api
import harness
from cluster import Running
from process import wait_for

# --- Jobs and mounts --------------------------------------------------------------------------
# What the tests with mounts of a real cluster share: jobs whose end the test decides, and the
# mount.
#
# A pod of HOLD waits until the test decides its exit code with release(namespace, pod, code). So no
# test depends on how long something takes.

IMAGE = "docker.io/library/busybox:1.35"
SMALL = {"cpu": 0.1, "memMB": 64, "gpu": 0}
HOLD = ("trap 'exit 143' TERM; echo begin; while [ ! -s /code ]; do sleep 0.1; done; echo end; "
        "exit $(cat /code)")


def role(script, name="main", **fields):
    """Return a role of an AppDef that runs SCRIPT. `$` is escaped, so that it does not start a
    macro."""
    return {"name": name, "image": IMAGE, "entrypoint": "sh", "args": ["-c", script.replace("$", "$$")],
            "resource": SMALL, **fields}


def app(script="", name="app", roles=None, args=None, **fields):
    """Return an AppDef as JSON, with a role that runs SCRIPT, or with ROLES. ARGS are its
    scheduler_args."""
    return json.dumps({"name": name, "roles": roles or [role(script, **fields)],
                       **({"scheduler_args": args} if args else {})}, indent=1)


def manifest(replicas=1, **spec):
    """Return a Volcano job of REPLICAS that start together and run HOLD. SPEC contains fields of
    the pods' spec."""
    pod = {"restartPolicy": "Never", "containers": [{
        "name": "main", "image": IMAGE, "command": ["sh", "-c", HOLD], **spec.pop("container", {})}], **spec}
    return json.dumps({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
                       "metadata": {"name": f"made-{uuid.uuid4().hex[:8]}"},
                       "spec": {"schedulerName": "volcano", "queue": "default", "minAvailable": replicas, "tasks": [
                           {"name": "main", "replicas": replicas, "template": {"spec": pod}}]}})


class World:
    """A namespace of a cluster, accessed without the mount."""

    def __init__(self, cluster, namespace):
        self.cluster = cluster
        self.namespace = namespace

    def kubectl(self, *args, **kwargs):
        return self.cluster.kubectl(*args, "-n", self.namespace, **kwargs)

    def path(self, resource, name=None):
        return api.path_of(resource, self.namespace, name)

    def jobs(self):
        """Return the existing Volcano jobs by name."""
        return {job["metadata"]["name"]: job for job in self.cluster.client.items(self.path("jobs"))}

    def pods(self, job):
        """Return the pods of the job with the id JOB that are not being deleted."""
        return [pod for pod in self.cluster.client.items(self.path("pods"))
                if (pod["metadata"].get("labels") or {}).get("volcano.sh/job-name") == job
                and "deletionTimestamp" not in pod["metadata"]]

    def release(self, pod, code=0, container=None):
        """Let a pod of HOLD exit with CODE."""
        def told():
            ident = self.container(pod, container)
            return ident and self.write_code(pod, container, ident, code)

        wait_for(told, f"pod {pod} to take its code")

    def container(self, pod, name=None):
        """Return the container runtime's id of a pod's container (by default the first), or "" if
        it does not exist yet."""
        for one in self.cluster.client.get(self.path("pods", pod))["status"].get("containerStatuses", ()):
            if name in (None, one["name"]):
                return one.get("containerID", "").rpartition("/")[2]
        return ""

    def write_code(self, pod, container, ident, code):
        """Write the exit code through /proc of this machine. This works while the cluster is
        unreachable."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cgroup"):
            with contextlib.suppress(OSError):
                if ident in path.read_text():
                    (path.parent / "root/code").write_text(f"{code}\n")
                    return True
        if not isinstance(self.cluster, Running):
            args = ["-c", container] if container else []
            return self.kubectl("exec", pod, *args, "--", "sh", "-c", f"echo {code} >/code",
                                check=False).returncode == 0
        return False

    def release_all(self, job, code=0):
        """Let all pods exit with CODE. When the end of one pod ends the job, other pods may be gone
        before they get their code."""
        for pod in self.pods(job):
            try:
                self.release(pod["metadata"]["name"], code)
            except api.Refused as e:
                if e.code != 404:
                    raise


PROBES = {
    "pods": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
             "spec": {"containers": [{"name": "one", "image": IMAGE}]}},
    "jobs": json.loads(manifest()),
}


def probe(world, resource):
    """Return why the API server would refuse one more of the pods or jobs, or ""."""
    try:
        world.cluster.client.post(world.path(resource) + "?dryRun=All", PROBES[resource])
    except api.Refused as e:
        return e.message
    return ""


def quota(world, resource, n=1):
    """Limit the namespace to N pods or jobs. It must not have a limit yet. The API server's
    admission sees a quota and its usage slightly later than other clients, and until then its
    decisions are wrong. So wait until it refuses, and then until it admits again."""
    counted = {"pods": "pods", "jobs": "count/jobs.batch.volcano.sh"}[resource]
    for hard in (0, n) if n else (0,):
        world.cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
                             "spec": {"hard": {counted: str(hard)}}}, namespace=world.namespace)
        wait_for(lambda h=hard: not probe(world, resource) if h else "exceeded quota: few" in probe(world, resource),
                 f"the quota of {hard} to count")


def running(job, replica="main-0"):
    """Wait until the replica is running. Return the name of its pod."""
    harness.wait_for(lambda: job.replica(replica)["state"] == "RUNNING", what=f"{replica} to run")
    return job.replica(replica)["pod"]


def begun(job, replica="main-0", attempt=0):
    """Wait until the replica is running in this attempt and has printed. Return its pod."""
    harness.wait_for(lambda: job.replica(replica)["attempt"] == attempt, what=f"attempt {attempt} of {replica}")
    pod = running(job, replica)
    job.until_logged("begin", replica)
    return pod


def phase(job, wanted):
    harness.wait_for(lambda: job.status()["phase"] == wanted, what=f"the job to be {wanted}")


def ended(job, *states):
    """Wait for the end of the job, and then for those of its replicas, which come from another
    watch."""
    job.finish(*states)
    harness.wait_for(lambda: all(replica["state"] in harness.FINAL for role in job.status()["roles"]
                                 for replica in role["replicas"]), what="the ends of the replicas")


def says(job, text, reason=None):
    """Wait until `why` is TEXT. TEXT is a regular expression if it contains `\\`. Assert that
    status has the REASON."""
    pattern = re.compile((text if "\\" in text else re.escape(text)) + "\n")

    def said():
        said.last = job.read("why")
        return pattern.fullmatch(said.last)

    try:
        harness.wait_for(said, what="why")
    except AssertionError:
        raise AssertionError(f"wanted: {text}\nsaid:   {said.last}\n{job.read('status')}") from None
    if reason:
        assert job.status()["reason"] == reason


def refused(kx, text, name="app.yaml", where="submit"):
    """Write TEXT, which must be refused. Return (name of the errno, text of NAME.error)."""
    err = harness.err_of(kx.write, f"{where}/{name}", text)
    with contextlib.suppress(FileNotFoundError):
        return err, kx.read(where, f"{name}.error")
    return err, ""


# --- A fake node ------------------------------------------------------------------------------
# A node on which nothing runs. It immediately reports what a kubelet would report of its pods, so a
# thousand pods cost only the requests. Pods get scheduled there by a resource that only this node
# has: one nvidia.com/gpu each.

NAME = "pretend"
NODES, LEASES = "/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ROOM = {"cpu": "1000", "memory": "1000Gi", "pods": "5000", "nvidia.com/gpu": "5000"}
HEARTBEAT = 5


def now(form="%Y-%m-%dT%H:%M:%SZ"):
    return time.strftime(form, time.gmtime())


class PretendNode(threading.Thread):
    """The node exists inside its `with` block. `code(pod)` returns the pod's exit code, or None if
    it continues to run."""

    def __init__(self, cluster, code):
        super().__init__(daemon=True)
        # this thread's own connection
        self.client = api.from_kubeconfig(cluster.kubectl_path, cluster.admin)
        self.code = code
        self.over = threading.Event()
        self.most = 0  # the most pods that ran at the same time

    def __enter__(self):
        self.client.post(NODES, {"metadata": {"name": NAME}})
        self.client.post(LEASES, {"metadata": {"name": NAME}, "spec": {"holderIdentity": NAME, "leaseDurationSeconds": 40}})
        self.beat()
        self.start()
        wait_for(lambda: "taints" not in self.client.get(f"{NODES}/{NAME}")["spec"], "the node to be ready")
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.client.delete(f"{NODES}/{NAME}")
        self.client.delete(f"{LEASES}/{NAME}")

    def beat(self):
        self.client.merge(f"{NODES}/{NAME}/status", {"status": {"capacity": ROOM, "allocatable": ROOM, "conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is", "lastHeartbeatTime": now(),
             "lastTransitionTime": now()}]}})
        self.client.merge(f"{LEASES}/{NAME}", {"spec": {"renewTime": now("%Y-%m-%dT%H:%M:%S.000000Z")}})

    def run(self):
        due = 0
        while not self.over.wait(0.2):
            try:
                if time.monotonic() >= due:
                    self.beat()
                    due = time.monotonic() + HEARTBEAT
                self.look()
            except (api.Refused, OSError) as e:  # the pod is gone, or the server is overloaded
                print(f"{NAME}: {e}", flush=True)

    def look(self):
        pods = self.client.items(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NAME}")
        running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
        self.most = max(self.most, len(running))
        for pod in pods:
            meta, phase = pod["metadata"], pod["status"]["phase"]
            path = api.path_of("pods", meta["namespace"], meta["name"])
            if "deletionTimestamp" in meta:
                self.client.delete(path + "?gracePeriodSeconds=0")
            elif phase == "Pending":
                self.say(pod, path, None)
            elif phase == "Running" and (code := self.code(pod)) is not None:
                self.say(pod, path, code)

    def say(self, pod, path, code):
        """Report that the pod is running, or has exited with CODE."""
        began = pod["status"].get("startTime", now())
        state = {"running": {"startedAt": began}} if code is None else {"terminated": {
            "exitCode": code, "reason": "Error" if code else "Completed", "startedAt": began, "finishedAt": now()}}
        phase = "Running" if code is None else "Failed" if code else "Succeeded"
        self.client.merge(path + "/status", {"status": {
            "phase": phase, "startTime": began, "podIP": "10.0.0.1", "hostIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": str(code is None), "lastTransitionTime": now()}],
            "containerStatuses": [{"name": c["name"], "image": c["image"], "imageID": "", "ready": code is None,
                                   "containerID": f"pretend://{pod['metadata']['uid']}", "restartCount": 0,
                                   "started": code is None, "state": state} for c in pod["spec"]["containers"]]}})
