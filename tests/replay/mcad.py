# SPDX-License-Identifier: MIT
"""A small MCAD for the tests' API server: AppWrappers of v1beta1 get MCAD's status, and are dispatched when the test
requests it. Nothing runs: the test drives the pods."""

import copy
import uuid

import store as st
from volcano import FakeVolcano, set_containers


class FakeMcad(FakeVolcano):
    """The same methods for tests as FakeVolcano (start, run, log, finish ...), on AppWrappers."""

    job_label = "appwrapper.mcad.ibm.com"

    def say(self, job, state, condition=None, reason="", message="", namespace="test", **status):
        """Set JOB's status as MCAD would. A condition is added once, and some get a new time."""
        def edit(tree):
            old = tree.setdefault("status", {})
            old.update(state=state, **status)
            conditions = old.setdefault("conditions", [])
            for c in conditions:
                if c["type"] == condition and condition in ("Dispatched", "PreemptCandidate"):
                    c["lastTransitionMicroTime"] = st.now()[:-1] + ".000000Z"
            if condition and condition not in [c["type"] for c in conditions]:
                conditions.append({"type": condition, "status": "True", "reason": reason, "message": message,
                                   "lastTransitionMicroTime": st.now()[:-1] + ".000000Z"})
        self.store.change(st.APPWRAPPERS, namespace, job, edit)

    def dispatch(self, job, namespace="test"):
        """Create its generic items. Return the names of its pods."""
        wrapper = self.store.find(st.APPWRAPPERS, namespace, job)
        for item in wrapper.tree()["spec"]["resources"]["GenericItems"]:
            if item["generictemplate"].get("kind") == "Pod":
                self.store.put(st.PODS, make_pod(wrapper, item["generictemplate"]))
        self.say(job, "Running", "Dispatched", "AppWrapperRunnable", namespace=namespace)
        return self.pods(job, namespace)

    def requeue(self, job, namespace="test"):
        """Delete its pods, and put it back into the queue."""
        count = self.store.find(st.APPWRAPPERS, namespace, job).tree()["status"].get("numberOfRequeueings", 0)
        self.say(job, "Pending", "PreemptCandidate", "MinPodsNotRunning", "Insufficient number of pods.",
                 namespace, numberOfRequeueings=count + 1)
        self.remove_pods(job, namespace)

    def _changed(self, change):
        obj = change.after or change.before
        if obj.resource is not st.APPWRAPPERS or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        if change.before is None and "status" not in obj.tree():
            self.say(obj.name, "Pending", "Queueing", "AwaitingHeadOfLine", namespace=obj.namespace)
        elif change.after is None and not self.keep_pods:
            self.remove_pods(obj.name, obj.namespace)
        self._busy.now = False


def make_pod(wrapper, template):
    pod = copy.deepcopy(template)
    meta = pod["metadata"]
    meta.update(namespace=wrapper.namespace, uid=str(uuid.uuid4()), creationTimestamp=st.now(), ownerReferences=[
        {"apiVersion": st.APPWRAPPERS.api_version, "kind": "AppWrapper", "name": wrapper.name, "uid": wrapper.uid,
         "controller": True, "blockOwnerDeletion": True}])
    meta.setdefault("labels", {}).update({"appwrapper.mcad.ibm.com": wrapper.name, "resourceName": meta["name"]})
    pod["spec"]["nodeName"] = "node-1"
    pod["status"] = {"phase": "Pending"}
    set_containers(pod, "Pending", lambda c: {"waiting": {"reason": "ContainerCreating"}})
    return pod
