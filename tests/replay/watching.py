# SPDX-License-Identifier: MIT
"""Common code of the tests with mounts of a cluster: objects as a cluster has them, and reading `changes`."""

import functools
import os
import select
import subprocess
import time
import uuid

import fakes
import harness
import recordings
import store as st


def job(name, phase=None, tasks=None, namespace="test", **meta):
    """Return a Volcano Job of another user. TASKS maps names of tasks to numbers of replicas."""
    tree = {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "uid": str(uuid.uuid4()), **meta},
        "spec": {"minAvailable": 1, "maxRetry": 3, "queue": "default", "schedulerName": "volcano",
                 "tasks": [{"name": task, "replicas": n, "minAvailable": 1, "template": {"spec": {
                     "restartPolicy": "Never",
                     "containers": [{"name": "main", "image": "busybox"}]}}}
                     for task, n in (tasks or {"main": 1}).items()]},
    }
    if phase:
        tree["status"] = {"minAvailable": 1, "state": {"phase": phase, "lastTransitionTime": st.now()}}
    return tree


def pod(owner, task, index, phase="Pending", containers=("main",), init=(), code=0):
    """Return a pod of OWNER (an Object) as Volcano creates it."""
    times = {"startedAt": st.now(), "finishedAt": st.now()}
    states = {"Pending": {"waiting": {"reason": "ContainerCreating"}},
              "Running": {"running": {"startedAt": st.now()}},
              "Succeeded": {"terminated": {"exitCode": 0, "reason": "Completed", **times}},
              "Failed": {"terminated": {"exitCode": code, "reason": "Error", **times}}}
    done = states["Succeeded"] if phase != "Pending" else states["Pending"]
    labels = {"volcano.sh/job-name": owner.name, "volcano.sh/task-spec": task,
              "volcano.sh/task-index": str(index), "volcano.sh/queue-name": "default",
              "volcano.sh/job-namespace": owner.namespace}
    template = {"spec": {"containers": [{"name": c, "image": "busybox"} for c in containers]}}
    tree = fakes.new_pod(template, f"{owner.name}-{task}-{index}", owner.namespace,
                         fakes.owner(owner), labels, {
                             **labels, "volcano.sh/job-retry-count": "0", "volcano.sh/job-version": "0"})
    fakes.set_containers(tree, phase, lambda c: states[phase])
    if init:
        tree["spec"]["initContainers"] = [{"name": c, "image": "busybox"} for c in init]
        tree["status"]["initContainerStatuses"] = [
            {"name": c, "restartCount": 0, "state": done} for c in init]
    return tree


@functools.lru_cache(maxsize=1)
def real_parts():
    """Return a running pod of a recording."""
    return next(s.tree for s in recordings.Recording("success").steps
                if s.resource is st.PODS and s.tree["status"]["phase"] == "Running")


def real_pod(owner, task, index):
    """Return a running pod of OWNER that is as large as in a real cluster (9 KB)."""
    tree = pod(owner, task, index, phase="Running")
    real = real_parts()
    tree["metadata"]["managedFields"] = real["metadata"]["managedFields"]
    tree["spec"] = {**real["spec"], "containers": [{**real["spec"]["containers"][0], "name": "main"}]}
    tree["status"] = {**real["status"], "containerStatuses": [
        {**real["status"]["containerStatuses"][0], "name": "main"}]}
    return tree


def until_runs(job):
    """Wait until JOB and all its replicas run, according to the watches of jobs and of pods. Otherwise the pods alone
    might show that the job runs, and an older event of the job that arrives later would change its state back."""
    def told():
        status = job.status()
        return status["phase"] == "Running" and all(
            rep["state"] == "RUNNING" for role in status["roles"] for rep in role["replicas"])

    harness.wait_for(told, what=f"the news of both watches that {job.id} runs")


def known(kx):
    """Return the current contents of .kxfs/info."""
    return kx.read(".kxfs", "info")


class Changes:
    """A process that reads `changes`."""

    def __init__(self, kx):
        self.proc = harness.popen(["cat", str(kx / "changes")], stdout=subprocess.PIPE)
        self.rest = b""
        self.lines = []
        self.until(lambda line: line[2] == "SYNC")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        harness.kill(self.proc.pid)
        self.proc.stdout.close()
        self.proc.wait(harness.LIMIT)

    def until(self, wanted, timeout=harness.LIMIT):
        """Wait for a line for which WANTED is true. Return all lines so far as [time, id, state, reason]."""
        end = time.monotonic() + timeout
        fd = self.proc.stdout.fileno()
        while not any(wanted(line) for line in self.lines):
            assert time.monotonic() < end, self.lines
            if select.select([fd], [], [], 1)[0]:
                data = os.read(fd, 65536)
                assert data, "`changes` has ended"
                *whole, self.rest = (self.rest + data).split(b"\n")
                self.lines += [(line.decode().split("\t") + [""] * 4)[:4] for line in whole]
        return self.lines
