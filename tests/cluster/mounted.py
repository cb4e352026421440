# SPDX-License-Identifier: MIT
"""What the tests of mounts of a real cluster share: jobs whose end the test decides, the mount, and a node on which nothing runs.

A pod of HOLD waits until the test says with which code it is to end, so no test depends on how
long anything takes: release(namespace, pod, code)."""

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
# What the tests of mounts of a real cluster share: jobs whose end the test decides, and the mount.
#
# A pod of HOLD waits until the test says with which code it is to end, so no test depends on how
# long anything takes: release(namespace, pod, code).

IMAGE = "docker.io/library/busybox:1.35"
SMALL = {"cpu": 0.1, "memMB": 64, "gpu": 0}
HOLD = ("trap 'exit 143' TERM; echo begin; while [ ! -s /code ]; do sleep 0.1; done; echo end; "
        "exit $(cat /code)")


def role(script, name="main", **fields):
    """A role of an AppDef that runs SCRIPT (`$` protected from macros)."""
    return {"name": name, "image": IMAGE, "entrypoint": "sh", "args": ["-c", script.replace("$", "$$")],
            "resource": SMALL, **fields}


def app(script="", name="app", roles=None, args=None, **fields):
    """An AppDef as JSON: a role that runs SCRIPT, or ROLES; ARGS are its scheduler_args."""
    return json.dumps({"name": name, "roles": roles or [role(script, **fields)],
                       **({"scheduler_args": args} if args else {})}, indent=1)


def manifest(replicas=1, **spec):
    """A job of REPLICAS that start together and run HOLD, as Volcano takes it, with these fields in the pods' spec."""
    pod = {"restartPolicy": "Never", "containers": [{
        "name": "main", "image": IMAGE, "command": ["sh", "-c", HOLD], **spec.pop("container", {})}], **spec}
    return json.dumps({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
                       "metadata": {"name": f"made-{uuid.uuid4().hex[:8]}"},
                       "spec": {"schedulerName": "volcano", "queue": "default", "minAvailable": replicas, "tasks": [
                           {"name": "main", "replicas": replicas, "template": {"spec": pod}}]}})


class World:
    """A namespace of a cluster, for the side of a test that is not the mount."""

    def __init__(self, cluster, namespace):
        self.cluster = cluster
        self.namespace = namespace

    def kubectl(self, *args, **kwargs):
        return self.cluster.kubectl(*args, "-n", self.namespace, **kwargs)

    def path(self, resource, name=None):
        return api.path_of(resource, self.namespace, name)

    def jobs(self):
        """The Volcano jobs that there are, by name."""
        return {job["metadata"]["name"]: job for job in self.cluster.client.items(self.path("jobs"))}

    def pods(self, job):
        """Those of job JOB (its id) that are not on their way out."""
        return [pod for pod in self.cluster.client.items(self.path("pods"))
                if (pod["metadata"].get("labels") or {}).get("volcano.sh/job-name") == job
                and "deletionTimestamp" not in pod["metadata"]]

    def release(self, pod, code=0, container=None):
        """Let a pod of HOLD end with CODE."""
        def told():
            ident = self.container(pod, container)
            return ident and self.write_code(pod, container, ident, code)

        wait_for(told, f"pod {pod} to take its code")

    def container(self, pod, name=None):
        """The runtime's name of a container (the first one) of a pod; "": there is none yet."""
        for one in self.cluster.client.get(self.path("pods", pod))["status"].get("containerStatuses", ()):
            if name in (None, one["name"]):
                return one.get("containerID", "").rpartition("/")[2]
        return ""

    def write_code(self, pod, container, ident, code):
        """On a node of this machine without asking the cluster, which may be away."""
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
        """A pod whose end is the job's may take the others with it before they have their code."""
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
    """Why the API server would refuse one more of the pods or jobs; "": it would not."""
    try:
        world.cluster.client.post(world.path(resource) + "?dryRun=All", PROBES[resource])
    except api.Refused as e:
        return e.message
    return ""


def quota(world, resource, n=1):
    """Limit the namespace, which has none yet, to N pods or jobs. The API server's admission learns of a quota, and
    of what is used of it, a moment after everybody else, and until then admits or refuses what it should not: it has
    to refuse first, and then to admit again."""
    counted = {"pods": "pods", "jobs": "count/jobs.batch.volcano.sh"}[resource]
    for hard in (0, n) if n else (0,):
        world.cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
                             "spec": {"hard": {counted: str(hard)}}}, namespace=world.namespace)
        wait_for(lambda h=hard: not probe(world, resource) if h else "exceeded quota: few" in probe(world, resource),
                 f"the quota of {hard} to count")


def running(job, replica="main-0"):
    """Wait until the replica runs; the name of its pod."""
    harness.wait_for(lambda: job.replica(replica)["state"] == "RUNNING", what=f"{replica} to run")
    return job.replica(replica)["pod"]


def begun(job, replica="main-0", attempt=0):
    """Wait until the replica runs in this attempt and has printed; its pod."""
    harness.wait_for(lambda: job.replica(replica)["attempt"] == attempt, what=f"attempt {attempt} of {replica}")
    pod = running(job, replica)
    job.until_logged("begin", replica)
    return pod


def phase(job, wanted):
    harness.wait_for(lambda: job.status()["phase"] == wanted, what=f"the job to be {wanted}")


def ended(job, *states):
    """Wait for the end of the job, and for those of its replicas, which are told by another watch."""
    job.finish(*states)
    harness.wait_for(lambda: all(replica["state"] in harness.FINAL for role in job.status()["roles"]
                                 for replica in role["replicas"]), what="the ends of the replicas")


def says(job, text, reason=None):
    """Wait until `why` is TEXT, a regular expression when it holds `\\`; status has the same REASON."""
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
    """Write TEXT, which is to be refused: (name of the errno, what NAME.error says)."""
    err = harness.err_of(kx.write, f"{where}/{name}", text)
    with contextlib.suppress(FileNotFoundError):
        return err, kx.read(where, f"{name}.error")
    return err, ""


# --- A pretended node -------------------------------------------------------------------------
# A node on which nothing runs: what a kubelet would say of its pods is said at once, so a thousand of them cost no more
# than the words. Pods come to it by the resource that it alone has: one nvidia.com/gpu each.

NAME = "pretend"
NODES, LEASES = "/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ROOM = {"cpu": "1000", "memory": "1000Gi", "pods": "5000", "nvidia.com/gpu": "5000"}
HEARTBEAT = 5


def now(form="%Y-%m-%dT%H:%M:%SZ"):
    return time.strftime(form, time.gmtime())


class PretendNode(threading.Thread):
    """While it is entered the node is there. `code(pod)` is how a pod ends: its exit code; None: it runs on."""

    def __init__(self, cluster, code):
        super().__init__(daemon=True)
        self.client = api.from_kubeconfig(cluster.kubectl_path, cluster.admin)  # a thread's own connection
        self.code = code
        self.over = threading.Event()
        self.most = 0  # pods that have run at once

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
            except (api.Refused, OSError) as e:  # a pod that has gone; or a server that has too much to do
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
        """That it runs, or has ended with CODE."""
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
