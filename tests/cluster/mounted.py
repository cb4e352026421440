# SPDX-License-Identifier: MIT
"""What the tests with mounts of a real cluster share: jobs whose end the test decides, and access
to their namespace without the mount.

A pod of HOLD waits until the test decides its exit code with release(namespace, pod, code). So no
test depends on how long something takes."""

import contextlib
import json
import pathlib
import re
import uuid

import api
import harness
from cluster import Running
from process import wait_for

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
    """A namespace of a cluster, accessed without the mount. Its jobs are objects of `resource`. The
    label `label` of a pod is the name of its job."""

    resource, label = "jobs", "volcano.sh/job-name"

    def __init__(self, cluster, namespace):
        self.cluster = cluster
        self.namespace = namespace

    def kubectl(self, *args, **kwargs):
        return self.cluster.kubectl(*args, "-n", self.namespace, **kwargs)

    def path(self, resource, name=None):
        return api.path_of(resource, self.namespace, name)

    def jobs(self):
        """Return the existing jobs by name."""
        return {job["metadata"]["name"]: job
                for job in self.cluster.client.items(self.path(self.resource))}

    def pods(self, job):
        """Return the pods of the job with the id JOB that are not being deleted."""
        return [pod for pod in self.cluster.client.items(self.path("pods"))
                if (pod["metadata"].get("labels") or {}).get(self.label) == job
                and "deletionTimestamp" not in pod["metadata"]]

    def until_none(self, *resources):
        """Wait until the namespace has no objects of RESOURCES."""
        for resource in resources:
            wait_for(lambda r=resource: not self.cluster.client.items(self.path(r)), f"{resource} to go")

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
