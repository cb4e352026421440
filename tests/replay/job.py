# SPDX-License-Identifier: MIT
"""A small controller of batch Jobs for the tests' API server: Indexed Jobs get their status and pods as in the
recordings. Nothing runs: the test drives the pods."""

import copy
import uuid

import store as st
from volcano import FakeVolcano, set_containers

LABEL = "batch.kubernetes.io/"


class FakeJob(FakeVolcano):
    """The same methods for tests as FakeVolcano (start, run, log, finish ...), on Jobs."""

    job_label = LABEL + "job-name"

    def say(self, job, *conditions, namespace="test", reason="", message="", **status):
        """Set JOB's status as the controller would. CONDITIONS: types that are true."""
        def edit(tree):
            tree.setdefault("status", {}).update(status, conditions=[{
                "type": kind, "status": "True", "reason": reason or kind, "message": message,
                "lastTransitionTime": st.now()} for kind in conditions])
        self.store.change(st.BATCH_JOBS, namespace, job, edit)

    def retry(self, job, index, namespace="test"):
        """Make another pod of that index, whose last one has failed; return its name."""
        obj = self.store.find(st.BATCH_JOBS, namespace, job)
        pod = make_pod(obj, index, 1)
        self.store.put(st.PODS, pod)
        return pod["metadata"]["name"]

    def _changed(self, change):
        obj = change.after or change.before
        if obj.resource is not st.BATCH_JOBS or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        if change.before is None and not obj.tree().get("status"):
            spec = obj.tree()["spec"]
            self.say(obj.name, *(["Suspended"] if spec.get("suspend") else []), namespace=obj.namespace, active=1)
            for index in range(0 if spec.get("suspend") else min(spec["completions"], spec["parallelism"])):
                self.store.put(st.PODS, make_pod(obj, index, 0))
        elif change.after and change.before:
            self._obey(obj, change.before.tree()["spec"], obj.tree()["spec"])
        elif change.after is None and not self.keep_pods:
            self.remove_pods(obj.name, obj.namespace)
        self._busy.now = False

    def _obey(self, obj, old, new):
        if new.get("suspend", False) != old.get("suspend", False):
            self.say(obj.name, *(["Suspended"] if new["suspend"] else []), namespace=obj.namespace)
        if new.get("activeDeadlineSeconds") == 0 != old.get("activeDeadlineSeconds"):
            self.say(obj.name, "Failed", reason="DeadlineExceeded", message="m", namespace=obj.namespace)


def make_pod(job, index, failures):
    return make_indexed(job.tree()["spec"]["template"], job.name, job.uid, job.namespace, index,
                        {LABEL + "job-name": job.name}, {LABEL + "job-index-failure-count": str(failures)})


def make_indexed(template, job, uid, namespace, index, labels, annotations):
    """Return a pod of the Indexed Job JOB, with these labels and annotations besides its own."""
    pod = copy.deepcopy(template)
    meta = pod.get("metadata", {})
    pod["metadata"] = {**meta, "name": f"{job}-{index}-{uuid.uuid4().hex[:5]}", "namespace": namespace,
                       "uid": str(uuid.uuid4()), "creationTimestamp": st.now(),
                       "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid,
                                            "controller": True}],
                       "labels": {**meta.get("labels", {}), **labels},
                       "annotations": {**meta.get("annotations", {}), LABEL + "job-completion-index": str(index),
                                       **annotations}}
    pod["spec"]["nodeName"] = "node-1"
    pod["status"] = {"phase": "Pending"}
    set_containers(pod, "Pending", lambda c: {"waiting": {"reason": "ContainerCreating"}})
    return pod
