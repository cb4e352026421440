# SPDX-License-Identifier: MIT
"""Simulates Volcano's scheduler for PodGroups, and Volcano's queues. Every queue and the cluster
have enough capacity. kube-scheduler binds the pods to the node."""

import uuid

import api
from loop import now

QUEUES = ("default", "root")


class Gangs:
    def __init__(self, client, caches, recorder):
        self.client = client
        self.pods, self.groups = caches["pods"], caches["podgroups"]
        self.recorder = recorder

    # --- queues --------------------------------------------------------------------------

    def make_queues(self):
        for name in QUEUES:
            try:
                self.client.post(api.path_of("queues"), {
                    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                    "metadata": {"name": name}, "spec": {"weight": 1, "reclaimable": True}})
            except api.Refused as e:
                if e.code != 409:
                    raise
            self.client.merge(api.path_of("queues", None, name, "status"), {"status": {"state": "Open"}})

    def state_of(self, name):
        """Return the state of a queue for the admission of jobs, or None if there is no such queue.
        """
        try:
            return self.client.get(api.path_of("queues", None, name)).get("status", {}).get("state", "Open")
        except api.Refused:
            return None

    # --- groups --------------------------------------------------------------------------

    def members(self, group):
        name = group["metadata"]["name"]
        return [pod for pod in self.pods.all()
                if (pod["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name") == name
                and pod["metadata"]["namespace"] == group["metadata"]["namespace"]]

    def look(self, group):
        """Update the status of one PodGroup."""
        if not is_admitted(group):
            self.write(group, {"phase": "Inqueue"})
            return
        pods, needed = self.members(group), group["spec"]["minMember"]
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        status = dict(group["status"])
        if len(bound) >= needed:
            running = sum(pod["status"].get("phase") == "Running" for pod in pods)
            status.update(phase="Running", conditions=self.condition(group, "Scheduled", {
                "reason": "tasks in gang are ready to be scheduled"}))
            status.pop("running", None)
            status.update({"running": running} if running else {})
        elif 0 < len(pods) < needed or any(is_unschedulable(pod) for pod in pods):
            message = (f"{needed - len(bound)}/{len(pods)} tasks in gang unschedulable: pod group is not ready, "
                       f"{len(pods) - len(bound)} Pending, {needed} minAvailable")
            status["conditions"] = self.condition(group, "Unschedulable", {
                "reason": "NotEnoughResources", "message": message})
            self.recorder.record(group, "Warning", "Unschedulable", message)
        self.write(group, status)

    @staticmethod
    def condition(group, kind, fields):
        """Return the conditions after setting the one of type KIND. It does not change if its
        fields are the same."""
        old = (group.get("status") or {}).get("conditions", [])
        for condition in old:
            if condition["type"] == kind and all(condition.get(k) == v for k, v in fields.items()):
                return old
        return [c for c in old if c["type"] != kind] + [{
            "type": kind, "status": "True", "lastTransitionTime": now(), "transitionID": str(uuid.uuid4()),
            **fields}]

    def write(self, group, status):
        if (group.get("status") or {}) == status:
            return
        meta = group["metadata"]
        path = api.path_of("podgroups", meta["namespace"], meta["name"])
        self.groups.learn(self.client.put(path, {**group, "status": status}))


def is_admitted(group):
    return (group.get("status") or {}).get("phase", "Pending") != "Pending"


def is_unschedulable(pod):
    return any(condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable"
               for condition in pod["status"].get("conditions", ()))
