# SPDX-License-Identifier: MIT
"""Simulates Volcano's scheduler for PodGroups: there is capacity, or a reason why not. Also sets
the states of queues.

kube-scheduler binds the pods to the node. This code has checked before that there is capacity."""

import uuid

import api
import objects
from loop import now

OVERCOMMIT = 1.2  # share of the cluster's capacity that may be admitted
QUEUES = ("default", "root")


class Gangs:
    def __init__(self, client, caches, recorder):
        self.client = client
        self.pods, self.groups, self.queues = caches["pods"], caches["podgroups"], caches["queues"]
        self.recorder = recorder
        self.total = {}

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

    def open_queue(self, queue, state=None):
        """Write the queue's state to its status. A new queue is open. Without STATE, keep the
        state, even if it has changed since QUEUE was read."""
        status = queue.get("status") or {}
        wanted = {"allocated": self.allocated(queue["metadata"]["name"]),
                  "reservation": {}, "state": state or status.get("state") or "Open"}
        if status != wanted:
            seen = {} if state else {"metadata": {"resourceVersion": queue["metadata"]["resourceVersion"]}}
            self.queues.learn(self.client.merge(api.path_of("queues", None, queue["metadata"]["name"], "status"),
                                                {**seen, "status": wanted}))

    def state_of(self, name):
        """Return the state of a queue for the admission of jobs, or None if there is no such queue.
        Ask the server, because the queue may just have been created or closed."""
        try:
            return self.client.get(api.path_of("queues", None, name)).get("status", {}).get("state", "Open")
        except api.Refused:
            return None

    def allocated(self, queue):
        total = {"cpu": 0.0, "memory": 0.0}
        for group in self.groups.all():
            if group["spec"].get("queue") == queue and is_admitted(group):
                for name, value in self.use_of(group).items():
                    total[name] += value
        return {"cpu": f"{total['cpu'] * 1000:.0f}m", "memory": f"{total['memory']:.0f}"}

    # --- capacity ------------------------------------------------------------------------

    def members(self, group):
        name = group["metadata"]["name"]
        return [pod for pod in self.pods.all()
                if (pod["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name") == name
                and pod["metadata"]["namespace"] == group["metadata"]["namespace"]]

    def use_of(self, group):
        """Return the resources of a group: the requests of its unfinished pods, or of the whole
        gang if it has no pods yet."""
        pods = self.members(group)
        if not pods:
            needs = group["spec"].get("minResources") or {}
            return {name: objects.quantity(needs.get(name, 0)) for name in ("cpu", "memory")}
        asked = [objects.requests(pod["spec"]) for pod in pods
                 if pod["status"].get("phase") in ("Pending", "Running")]
        return {name: sum(one[name] for one in asked) for name in ("cpu", "memory")}

    def why_not(self, group):
        """Return why the group can't be admitted now, or None."""
        if not self.total:
            for node in self.client.items(api.path_of("nodes")):
                for name in ("cpu", "memory"):
                    self.total[name] = (self.total.get(name, 0)
                                        + objects.quantity(node["status"]["allocatable"][name]))
        queue = self.queues.get(None, group["spec"].get("queue", "default")) or {"spec": {}}
        limit = queue["spec"].get("capability") or {}
        for name, need in self.use_of(group).items():
            admitted = [other for other in self.groups.all() if is_admitted(other)]
            used = sum(self.use_of(other)[name] for other in admitted)
            in_queue = sum(self.use_of(other)[name] for other in admitted
                           if other["spec"].get("queue") == group["spec"].get("queue"))
            if need + used > self.total[name] * OVERCOMMIT:
                return f"resource in cluster is overused: overused {name}"
            if need + in_queue > min(objects.quantity(limit.get(name, self.total[name])), self.total[name]):
                return f"queue resource quota insufficient: insufficient {name}"
        return None

    # --- groups --------------------------------------------------------------------------

    def look(self, group):
        """Update the status of one PodGroup."""
        if not is_admitted(group):
            why = self.why_not(group)
            if why:
                self.write(group, {"phase": "Pending"})
                self.recorder.record(group, "Normal", "Unschedulable", why)
                self.recorder.record(group, "Warning", "Unschedulable", "0/0 tasks in gang unschedulable: pod "
                                     f"group is not ready, {group['spec']['minMember']} minAvailable")
            else:
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
