# SPDX-License-Identifier: MIT
"""Simulates the controller of AppWrapper v1beta2: appwrapper.py KUBECTL KUBECONFIG.

It handles AppWrappers as the real controller does in the recordings appwrapper_*, without Kueue. It
waits seconds where the real one waits minutes."""

import datetime
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import api  # noqa: E402
import loop  # noqa: E402
from loop import key_of, now  # noqa: E402

LABEL = "workload.codeflare.dev/appwrapper"
RETRIES = "workload.codeflare.dev.appwrapper/retryLimit"
FINALIZER = "workload.codeflare.dev/finalizer"
PAUSE = 2  # seconds between a failure and the reaction to it, and between two attempts


class Controller(loop.WrapperController):
    def process(self, wrapper):
        status = {"conditions": [], **(wrapper.get("status") or {})}
        status["conditions"] = [dict(condition) for condition in status["conditions"]]
        if "deletionTimestamp" in wrapper["metadata"]:
            self.delete(wrapper, status)
            return
        phase = status.get("phase", "")
        getattr(self, f"in_{phase.lower() or 'nothing'}")(wrapper, status)
        if status != wrapper.get("status"):
            if status.get("phase") != phase:
                print(f"{key_of(wrapper)}: {phase} -> {status['phase']}", flush=True)
            self.write(wrapper, status)

    # --- phases ---------------------------------------------------------------------------

    def in_nothing(self, _wrapper, status):
        status["phase"] = "Suspended"

    def in_suspended(self, wrapper, status):
        if wrapper["spec"].get("suspend"):
            return
        if FINALIZER not in wrapper["metadata"].get("finalizers", ()):
            changed = {"metadata": {"finalizers": [FINALIZER],
                                    "resourceVersion": wrapper["metadata"]["resourceVersion"]}}
            self.wrappers.learn(self.client.merge(self.path(wrapper), changed))
            return
        for kind, value in (("QuotaReserved", "True"), ("ResourcesDeployed", "True"),
                            ("PodsReady", "False"), ("Unhealthy", "False")):
            put(status, kind, value, "Resuming", "Suspend is false")
        status["phase"] = "Resuming"

    def in_resuming(self, wrapper, status):
        if wrapper["spec"].get("suspend"):
            status["phase"] = "Suspending"
            return
        for component in wrapper["spec"]["components"]:
            try:
                self.create(wrapper, component["template"])
            except api.Refused as e:
                put(status, "Unhealthy", "True", "CreateFailed", f"error creating components: {e.message}")
                status["phase"] = "Failed"
                return
        status["phase"] = "Running"

    def in_running(self, wrapper, status):
        if wrapper["spec"].get("suspend"):
            status["phase"] = "Suspending"
            return
        phases = [pod["status"].get("phase") for pod in self.pods_of(wrapper)]
        wanted = sum(c["template"]["kind"] == "Pod" for c in wrapper["spec"]["components"])
        if "Failed" in phases:
            put(status, "Unhealthy", "True", "FoundFailedPods", "")
            if age(status, "Unhealthy") >= PAUSE:
                self.try_again(wrapper, status)
            return
        put(status, "Unhealthy", "False", "FoundNoFailedPods", "")
        if phases == ["Succeeded"] * wanted:
            put(status, "QuotaReserved", "False", "Succeeded", f"{wanted} pods succeeded")
            status["phase"] = "Succeeded"
        elif sum(phase in ("Running", "Succeeded") for phase in phases) == wanted:
            put(status, "PodsReady", "True", "SufficientPodsReady", f"{wanted} pods")

    @staticmethod
    def try_again(wrapper, status):
        limit = int((wrapper["metadata"].get("annotations") or {}).get(RETRIES, 3))
        if status.get("resettingCount", 0) < limit:
            status["resettingCount"] = status.get("resettingCount", 0) + 1
            status["phase"] = "Resetting"
        else:
            status["phase"] = "Failed"

    def in_suspending(self, wrapper, status):
        if self.drop(wrapper):
            for kind in ("ResourcesDeployed", "QuotaReserved"):
                put(status, kind, "False", "Suspended", "Suspend is true")
            status["phase"] = "Suspended"

    def in_resetting(self, wrapper, status):
        if not self.drop(wrapper):
            return
        put(status, "ResourcesDeployed", "False", "Resetting", "Resources deleted for resetting AppWrapper")
        if age(status, "ResourcesDeployed") >= PAUSE:
            put(status, "ResourcesDeployed", "True", "Resuming", "Reset complete; resuming")
            status["phase"] = "Resuming"

    def in_failed(self, wrapper, status):
        if self.drop(wrapper):
            put(status, "ResourcesDeployed", "False", "Failed", "Resources deleted for failed AppWrapper")
            put(status, "QuotaReserved", "False", "Failed", "No resources deployed")

    def in_succeeded(self, _wrapper, _status):
        pass

    def delete(self, wrapper, status):
        if not wrapper["metadata"].get("finalizers"):
            return
        if not self.drop(wrapper):
            if status.get("phase") != "Terminating":
                self.write(wrapper, {**status, "phase": "Terminating"})
            return
        self.client.merge(self.path(wrapper), {"metadata": {"finalizers": []}})
        self.wrappers.forget(wrapper)

    # --- wrapped objects ------------------------------------------------------------------

    def labels(self, name, _item):
        return {LABEL: name}

    def drop(self, wrapper):
        """Delete the wrapped objects. Return whether all of them are gone."""
        namespace = wrapper["metadata"]["namespace"]
        for component in wrapper["spec"]["components"]:
            template = component["template"]
            if template["kind"] != "Pod":
                self.client.delete(api.path_of(loop.PLURALS[template["kind"]], namespace,
                                               template["metadata"]["name"]))
        left = self.pods_of(wrapper)
        for pod in left:
            if "deletionTimestamp" not in pod["metadata"]:
                self.client.delete(api.path_of("pods", namespace, pod["metadata"]["name"]))
        return not left


def find(status, kind):
    return next((condition for condition in status["conditions"] if condition["type"] == kind), None)


def put(status, kind, value, reason, message):
    """Set a condition. Its time changes only with its status."""
    old = find(status, kind)
    if old is None:
        old = {"type": kind, "status": None}
        status["conditions"].append(old)
    if old["status"] != value:
        old["lastTransitionTime"] = now()
    old.update(status=value, reason=reason, message=message)


def age(status, kind):
    """Return the seconds since a condition changed."""
    began, at = (datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
                 for text in (find(status, kind)["lastTransitionTime"], now()))
    return (at - began).total_seconds()


if __name__ == "__main__":
    loop.main(Controller)
