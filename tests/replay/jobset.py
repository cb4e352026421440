# SPDX-License-Identifier: MIT
"""A small JobSet controller for the tests' API server: JobSets get their status and the pods of their Jobs as in the
recordings. Nothing runs: the test drives the pods."""

import uuid

import store as st
from job import make_indexed
from volcano import FakeVolcano

LABEL = "jobset.sigs.k8s.io/"


class FakeJobSet(FakeVolcano):
    """The same methods for tests as FakeVolcano (start, run, log, finish ...), on JobSets."""

    job_label = LABEL + "jobset-name"

    def say(self, job, *conditions, namespace="test", **status):
        """Set JOB's status as the controller would. CONDITIONS: types that are true."""
        def edit(tree):
            old = tree.setdefault("status", {"restarts": 0})
            old.update(status, conditions=[{
                "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": st.now()}
                for kind in conditions])
        self.store.change(st.JOBSETS, namespace, job, edit)

    def restart(self, job, namespace="test"):
        """Recreate all pods of JOB. Return their names."""
        restarts = self.store.find(st.JOBSETS, namespace, job).tree()["status"]["restarts"] + 1
        self.say(job, namespace=namespace, restarts=restarts)
        self.remove_pods(job, namespace)
        return self._make_pods(self.store.find(st.JOBSETS, namespace, job), restarts)

    def _make_pods(self, jobset, restarts):
        for job in jobset.tree()["spec"]["replicatedJobs"]:
            spec = job["template"]["spec"]
            for index in range(spec["completions"]):
                self.store.put(st.PODS, make_pod(jobset, job["name"], spec["template"], index, restarts))
        return self.pods(jobset.name, jobset.namespace)

    def _changed(self, change):
        obj = change.after or change.before
        if obj.resource is not st.JOBSETS or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        if change.before is None and "status" not in obj.tree():
            self.say(obj.name, namespace=obj.namespace)
            if not obj.tree()["spec"].get("suspend"):
                self._make_pods(obj, 0)
        elif change.after is None and not self.keep_pods:
            self.remove_pods(obj.name, obj.namespace)
        self._busy.now = False


def make_pod(jobset, name, template, index, restarts):
    labels = {LABEL + "jobset-name": jobset.name, LABEL + "jobset-uid": jobset.uid, LABEL + "replicatedjob-name": name,
              LABEL + "replicatedjob-replicas": "1", LABEL + "job-index": "0", LABEL + "restart-attempt": str(restarts)}
    return make_indexed(template, f"{jobset.name}-{name}-0", str(uuid.uuid4()), jobset.namespace, index, labels, {})
