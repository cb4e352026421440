# SPDX-License-Identifier: MIT
"""Stand-in for MCAD, the controller of AppWrapper v1beta1: mcad.py KUBECTL KUBECONFIG.

Does to AppWrappers what the recordings mcad_* show a real one to do: they are queued and dispatched, and go
on being Running. Requeuing comes after seconds where its own comes after minutes.
"""

import pathlib
import sys
import threading
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import api  # noqa: E402
from cache import Cache, key_of  # noqa: E402
from events import now  # noqa: E402

api.GROUPS["appwrappers"] = "/apis/workload.codeflare.dev/v1beta1"
LABEL = "appwrapper.mcad.ibm.com"
PLURALS = {"Pod": "pods", "Service": "services"}


class Controller:
    def __init__(self, client):
        self.client = client
        self.changed = threading.Event()
        world = threading.RLock()
        self.wrappers, self.pods = (Cache(client, resource, lambda *_: self.changed.set(), world)
                                    for resource in ("appwrappers", "pods"))

    def work(self):
        while True:
            self.changed.wait(timeout=0.5)
            self.changed.clear()
            for wrapper in self.wrappers.all():
                try:
                    self.process(wrapper)
                except (api.Refused, OSError) as e:
                    print(f"{key_of(wrapper)}: {e}", flush=True)
                except Exception:  # a test's odd object must not end the others'
                    traceback.print_exc()

    def process(self, wrapper):
        status = dict(wrapper.get("status") or {})
        state = status.get("state", "")
        if not state:
            self.say(wrapper, "Pending", "Queueing", "AwaitingHeadOfLine")
        elif state == "Pending" and not self.pods_of(wrapper):
            # Given room: a test that wants a job to wait says so by an annotation.
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
        """Requeue what has too few pods that run or have succeeded."""
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
        if not any((c["type"], c.get("reason")) == (kind, reason) for c in conditions):
            conditions.append({"type": kind, "status": "True", "reason": reason, "message": message,
                               "lastTransitionMicroTime": now()[:-1] + ".000000Z"})
        status["conditions"] = conditions
        if status != wrapper.get("status"):
            path = api.path_of("appwrappers", *key_of(wrapper), "status")
            self.wrappers.learn(self.client.put(path, {**wrapper, "status": status}))
            self.changed.set()

    def pods_of(self, wrapper):
        uid = wrapper["metadata"]["uid"]
        return [pod for pod in self.pods.all()
                if any(ref["uid"] == uid for ref in pod["metadata"].get("ownerReferences", ()))]

    def create(self, wrapper, template):
        name, meta = wrapper["metadata"]["name"], dict(template["metadata"])
        meta["labels"] = {**(meta.get("labels") or {}), LABEL: name, "resourceName": meta["name"]}
        meta["ownerReferences"] = [{"apiVersion": wrapper["apiVersion"], "kind": "AppWrapper", "name": name,
                                    "uid": wrapper["metadata"]["uid"], "controller": True,
                                    "blockOwnerDeletion": True}]
        place = api.path_of(PLURALS[template["kind"]], wrapper["metadata"]["namespace"])
        try:
            self.client.post(place, {**template, "metadata": meta})
        except api.Refused as e:
            if e.code != 409:
                raise


def main():
    kubectl, kubeconfig = sys.argv[1:]
    Controller(api.from_kubeconfig(kubectl, kubeconfig)).work()


main()
