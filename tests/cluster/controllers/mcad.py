# SPDX-License-Identifier: MIT
"""Simulates MCAD, the controller of AppWrapper v1beta1: mcad.py KUBECTL KUBECONFIG.

It handles AppWrappers as the real controller does in the recordings mcad_*: they are queued and
dispatched, and remain Running. It requeues after seconds where the real one takes minutes."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import api  # noqa: E402
import loop  # noqa: E402
from loop import key_of, now  # noqa: E402

api.GROUPS["appwrappers"] = "/apis/workload.codeflare.dev/v1beta1"
LABEL = "appwrapper.mcad.ibm.com"


class Controller(loop.WrapperController):
    def process(self, wrapper):
        status = dict(wrapper.get("status") or {})
        state = status.get("state", "")
        if not state:
            self.say(wrapper, "Pending", "Queueing", "AwaitingHeadOfLine")
        elif state == "Pending" and not self.pods_of(wrapper):
            # There is always capacity. A test that needs a waiting job sets an annotation.
            if "wait" in (wrapper["metadata"].get("annotations") or {}):
                self.say(wrapper, "Pending", "Backoff", "AppWrapperNotRunnable.",
                         "Insufficient resources to dispatch AppWrapper.")
            else:
                self.dispatch(wrapper)
        elif state == "Running":
            self.look(wrapper, status)

    def dispatch(self, wrapper):
        try:
            for item in wrapper["spec"]["resources"]["GenericItems"]:
                self.create(wrapper, item["generictemplate"])
        except api.Refused as e:
            self.say(wrapper, "Failed", "Failed", "ItemCreationFailure.", f"creation failure: {e.message}")
            return
        self.say(wrapper, "Running", "Dispatched", "AppWrapperRunnable")

    def look(self, wrapper, status):
        """Requeue the wrapper if too few of its pods are running or have succeeded."""
        wanted = wrapper["spec"].get("schedulingSpec", {}).get("minAvailable", 0)
        phases = [pod["status"].get("phase") for pod in self.pods_of(wrapper)]
        if "Failed" not in phases or sum(p in ("Running", "Succeeded") for p in phases) >= wanted:
            return
        limit = wrapper["spec"]["schedulingSpec"].get("requeuing", {}).get("maxNumRequeuings", 0)
        count = status.get("numberOfRequeueings", 0)
        if count < limit:
            self.say(wrapper, "Pending", "PreemptCandidate", "MinPodsNotRunning",
                     "Insufficient number of Running and Completed pods.", numberOfRequeueings=count + 1)
            for pod in self.pods_of(wrapper):
                self.client.delete(api.path_of("pods", *key_of(pod)))

    def say(self, wrapper, state, kind, reason, message="", **more):
        status = {**(wrapper.get("status") or {}), "state": state, "queuejobstate": kind, **more}
        conditions = list(status.get("conditions", ()))
        for c in conditions:
            if c["type"] == kind and kind in ("Dispatched", "PreemptCandidate"):
                c["lastTransitionMicroTime"] = now()[:-1] + ".000000Z"
        if not any((c["type"], c.get("reason")) == (kind, reason) for c in conditions):
            conditions.append({"type": kind, "status": "True", "reason": reason, "message": message,
                               "lastTransitionMicroTime": now()[:-1] + ".000000Z"})
        status["conditions"] = conditions
        if status != wrapper.get("status"):
            self.write(wrapper, status)

    def labels(self, name, item):
        return {LABEL: name, "resourceName": item}


loop.main(Controller)
