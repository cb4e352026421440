# SPDX-License-Identifier: MIT
"""Simulates MCAD, the controller of AppWrapper v1beta1: mcad.py KUBECTL KUBECONFIG.

It handles AppWrappers as the real controller does in the recording mcad_success: they are queued
and dispatched, and remain Running. There is always capacity. Not simulated: requeuing."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import api  # noqa: E402
import loop  # noqa: E402
from loop import now  # noqa: E402

api.GROUPS["appwrappers"] = "/apis/workload.codeflare.dev/v1beta1"
LABEL = "appwrapper.mcad.ibm.com"


class Controller(loop.WrapperController):
    def process(self, wrapper):
        state = (wrapper.get("status") or {}).get("state", "")
        if not state:
            self.say(wrapper, "Pending", "Queueing", "AwaitingHeadOfLine")
        elif state == "Pending" and not self.pods_of(wrapper):
            for item in wrapper["spec"]["resources"]["GenericItems"]:
                self.create(wrapper, item["generictemplate"])
            self.say(wrapper, "Running", "Dispatched", "AppWrapperRunnable")

    def say(self, wrapper, state, kind, reason):
        old = wrapper.get("status") or {}
        self.write(wrapper, {**old, "state": state, "queuejobstate": kind, "conditions": [
            *old.get("conditions", ()),
            {"type": kind, "status": "True", "reason": reason, "lastTransitionMicroTime": now()[:-1] + ".000000Z"}]})

    def labels(self, name, item):
        return {LABEL: name, "resourceName": item}


loop.main(Controller)
