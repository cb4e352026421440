# SPDX-License-Identifier: MIT
"""Simulates how Volcano's job controller handles jobs, according to the recordings."""

import datetime
import json

import api
import objects
from loop import now

# --- Rules ------------------------------------------------------------------------------------
# Pure functions: which action an event causes, and to which phase the counts of pods lead.


class Request:
    """Something that happened to a job. VERSION is that of the job when its pods were created."""

    def __init__(self, key, event=None, task=None, pod=None, exit_code=0, version=0, action=None):
        self.key = key  # (namespace, name)
        self.event = event
        self.task = task
        self.pod = pod
        self.exit_code = exit_code
        self.version = version
        self.action = action


def action_of(job, request):
    """Return the command's action, or else that of the first policy that matches, or else SyncJob.
    """
    if request.action:
        return request.action
    if request.event is None or request.version < job.get("status", {}).get("version", 0):
        return "SyncJob"  # about pods of an earlier version
    for task in job["spec"]["tasks"]:
        if task["name"] == request.task:
            for policy in task.get("policies") or ():
                if fits(policy, request):
                    return policy["action"]
    for policy in job["spec"].get("policies") or ():
        if fits(policy, request):
            return policy["action"]
    return "SyncJob"


def fits(policy, request):
    events = [policy.get("event"), *(policy.get("events") or ())]
    if request.event in events or "*" in events:
        return True
    return bool(request.exit_code) and policy.get("exitCode") == request.exit_code


def count(job, pods):
    """Return status fields with the number of pods in each phase."""
    counts = {name: 0 for name in ("pending", "running", "succeeded", "failed", "terminating", "unknown")}
    tasks = {}
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"]:
            counts["terminating"] += 1
            continue
        phase = pod["status"].get("phase", "Pending")
        counts[phase.lower()] += 1
        phases = tasks.setdefault(pod["metadata"]["annotations"]["volcano.sh/task-spec"], {"phase": {}})["phase"]
        phases[phase] = phases.get(phase, 0) + 1
    status = {name: number for name, number in counts.items() if number}
    if tasks:
        status["taskStatusCount"] = tasks
    return status


def phase_of_pending(job, status):
    """Return Running if enough pods of the gang exist."""
    there = sum(status.get(name, 0) for name in ("running", "succeeded", "failed"))
    return "Running" if there >= job["spec"]["minAvailable"] else "Pending"


def phase_of_running(job, status):
    """Return Completed or Failed if all pods have ended."""
    spec, succeeded = job["spec"], status.get("succeeded", 0)
    if succeeded + status.get("failed", 0) < sum(task["replicas"] for task in spec["tasks"]):
        return "Running"
    if spec["minAvailable"] >= sum(task["minAvailable"] for task in spec["tasks"]):
        for task in spec["tasks"]:
            phases = status.get("taskStatusCount", {}).get(task["name"], {"phase": {}})["phase"]
            if phases.get("Succeeded", 0) < task["minAvailable"]:
                return "Failed"
    return "Completed" if succeeded >= spec["minAvailable"] else "Failed"


def conditions(old, phase, time):
    """Return the history of phases: each once, the latest last."""
    kept = [condition for condition in old if condition["status"] != phase]
    return [*kept, {"status": phase, "lastTransitionTime": time}]


# --- The controller ---------------------------------------------------------------------------
# How Volcano's job controller handles jobs, according to the recordings.

COUNTS = ("pending", "running", "succeeded", "failed", "terminating", "unknown", "taskStatusCount",
          "controlledResources", "runningDuration")
# action: (phase that it leads to, whether finished pods are kept, whether it costs a retry)
KILLS = {
    "RestartJob": ("Restarting", False, True), "AbortJob": ("Aborting", True, False),
    "CompleteJob": ("Completing", True, False), "TerminateJob": ("Terminating", True, False),
}
TARGETS = ("RestartTask", "RestartPod")
ENDS = {"Aborting": "Aborted", "Completing": "Completed", "Terminating": "Terminated"}


class JobController:
    def __init__(self, client, caches, recorder):
        self.client = client
        self.jobs, self.pods, self.groups = caches["jobs"], caches["pods"], caches["podgroups"]
        self.recorder = recorder
        self.killed = set()  # uids of pods that we have deleted, which are not evicted

    def process(self, request):
        job = self.jobs.get(*request.key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        if not job.get("status", {}).get("state"):
            self.write(job, {"minAvailable": job["spec"]["minAvailable"]}, "Pending")
            return
        action = action_of(job, request)
        if action != "SyncJob":
            self.recorder.record(job, "Normal", "CommandIssued" if request.action else "ExecuteAction",
                                 f"Start to execute action {action} ")
        getattr(self, f"in_{job['status']['state']['phase'].lower()}")(job, action, request)

    # --- phases --------------------------------------------------------------------------

    def in_pending(self, job, action, request):
        if action in KILLS:
            self.kill_for(job, action)
        elif action in TARGETS:
            self.kill_target(job, action, request)
        else:
            self.sync(job, phase_of_pending)

    def in_running(self, job, action, request):
        if action in KILLS:
            self.kill_for(job, action)
        elif action in TARGETS:
            self.kill_target(job, action, request)
        else:
            self.sync(job, phase_of_running)

    def in_restarting(self, job, _action, _request):
        spec, status = job["spec"], job["status"]
        if status.get("retryCount", 0) >= spec["maxRetry"]:
            self.group_of(job)
            self.write(job, {**self.lasting(job), "runningDuration": age(job)}, "Failed")
            return
        terminating = sum("deletionTimestamp" in pod["metadata"] for pod in self.pods_of(job))
        if sum(task["replicas"] for task in spec["tasks"]) - terminating >= spec["minAvailable"]:
            self.sync(job, lambda *_: "Pending")
        else:
            self.write(job, {**self.lasting(job), "terminating": terminating}, "Restarting")

    def in_aborting(self, job, action, _request):
        if action == "ResumeJob":
            self.kill(job, "Restarting", retry=True)
        else:
            self.end(job)

    def in_aborted(self, job, action, _request):
        if action == "ResumeJob":
            self.kill(job, "Restarting", retry=True)

    def in_terminating(self, job, _action, _request):
        self.end(job)

    in_completing = in_terminating

    def in_completed(self, job, _action, _request):
        """Remove what the job still has. Finished pods remain."""
        if self.groups.get(job["metadata"]["namespace"], objects.group_name(job)):
            self.kill(job, job["status"]["state"]["phase"])

    in_failed = in_terminated = in_completed

    # --- actions -------------------------------------------------------------------------

    def kill_for(self, job, action):
        phase, keep, retry = KILLS[action]
        last = job["status"].get("retryCount", 0) >= job["spec"]["maxRetry"] - 1
        self.kill(job, phase, keep or last, retry)

    def kill(self, job, phase, keep=True, retry=False):
        """Delete the job's pods and other objects. With KEEP, do not delete finished pods."""
        terminating = 0
        for pod in self.pods_of(job):
            if not (keep and pod["status"].get("phase") in ("Succeeded", "Failed")):
                terminating += 1
                self.delete_pod(pod)
        status = self.lasting(job)
        status["version"] = status.get("version", 0) + 1
        status["runningDuration"] = age(job)
        if retry:
            status["retryCount"] = status.get("retryCount", 0) + 1
        if terminating:
            status["terminating"] = terminating
        self.write(job, status, phase)
        self.drop_resources(job)

    def end(self, job):
        """End a job: set its last phase once no pod can run any more."""
        left = any("deletionTimestamp" in pod["metadata"]
                   or pod["status"].get("phase") not in ("Succeeded", "Failed")
                   for pod in self.pods_of(job))
        phase = job["status"]["state"]["phase"]
        self.kill(job, phase if left else ENDS[phase])

    def kill_target(self, job, action, request):
        """Restart one task, or one pod of it."""
        for pod in self.pods_of(job):
            if (pod["metadata"]["name"] == request.pod if action == "RestartPod" else
                    pod["metadata"]["annotations"]["volcano.sh/task-spec"] == request.task):
                self.delete_pod(pod)
        status = {**self.lasting(job), "retryCount": job["status"].get("retryCount", 0) + 1}
        self.write(job, {**status, **count(job, self.pods_of(job))}, "Restarting")

    def sync(self, job, next_phase):
        """Create missing pods, count all pods, and derive the phase."""
        group = self.group_of(job)
        if group.get("status", {}).get("phase", "Pending") != "Pending":
            self.make_pods(job)
        pods = self.pods_of(job)
        status = {**self.lasting(job), **count(job, pods)}
        if objects.controlled(job) and pods:
            status["controlledResources"] = objects.controlled(job)
        self.write(job, status, next_phase(job, status))

    # --- the objects of a job -------------------------------------------------------------

    def pods_of(self, job):
        uid = job["metadata"]["uid"]
        return [pod for pod in self.pods.all() if objects.owner_uid(pod) == uid]

    def make_pods(self, job):
        have = {pod["metadata"]["name"]: pod for pod in self.pods_of(job)}
        for task in job["spec"]["tasks"]:
            for index in range(task["replicas"]):
                if not have.pop(objects.pod_name(job, task, index), None):
                    self.make(job, "pods", objects.make_pod(job, task, index), self.pods)
        for pod in have.values():  # the job was scaled down
            self.delete_pod(pod)

    def make(self, job, resource, item, cache=None):
        try:
            made = self.client.post(api.path_of(resource, item["metadata"]["namespace"]), item)
        except api.Refused as e:
            if e.code != 409:  # 409: the object exists, or one with its name is being deleted
                self.recorder.record(job, "Warning", "FailedCreate", dump(item["metadata"]["name"], e))
            return item
        return cache.learn(made) if cache else made

    def delete_pod(self, pod):
        uid = pod["metadata"]["uid"]
        if "deletionTimestamp" in pod["metadata"]:
            return
        self.killed.add(uid)
        try:
            gone = self.client.call("DELETE", api.path_of(
                "pods", pod["metadata"]["namespace"], pod["metadata"]["name"]),
                {"preconditions": {"uid": uid}})
        except api.Refused:
            return
        if gone.get("kind") == "Pod":
            self.pods.learn(gone)

    def group_of(self, job):
        """Return the job's PodGroup. If it is missing, create it, and the objects that the job's
        plugins need."""
        namespace = job["metadata"]["namespace"]
        group = self.groups.get(namespace, objects.group_name(job))
        if group:
            return group
        # The watch of PodGroups may be ahead of that of jobs: the PodGroup is gone because its job
        # is. Then this request raises an error.
        self.client.get(api.path_of("jobs", namespace, job["metadata"]["name"]))
        for resource, item in objects.make_resources(job):
            self.make(job, resource, item)
        return self.make(job, "podgroups", objects.make_group(job), self.groups)

    def drop_resources(self, job):
        namespace = job["metadata"]["namespace"]
        for resource, item in objects.make_resources(job):
            self.client.delete(api.path_of(resource, namespace, item["metadata"]["name"]))
        group = self.groups.get(namespace, objects.group_name(job))
        if group:
            self.client.delete(api.path_of("podgroups", namespace, group["metadata"]["name"]))
            self.groups.forget(group)

    # --- status --------------------------------------------------------------------------

    @staticmethod
    def lasting(job):
        """Return the status without the fields that describe only the current moment."""
        return {key: value for key, value in job["status"].items() if key not in COUNTS}

    def write(self, job, status, phase):
        """Write the status if it differs. If the job has changed meanwhile, this raises a conflict.
        """
        old = job.get("status", {})
        if (phase == old.get("state", {}).get("phase")
                and without_times(status) == without_times(old)):
            return
        time = now()
        status = {**status, "state": {"phase": phase, "lastTransitionTime": time},
                  "conditions": conditions(old.get("conditions", ()), phase, time)}
        path = api.path_of("jobs", job["metadata"]["namespace"], job["metadata"]["name"], "status")
        self.jobs.learn(self.client.put(path, {**job, "status": status}))


def dump(name, refused):
    """Return an error as Volcano prints it: with Go's %#v, which quotes texts as JSON does."""
    fields = ", ".join(f"{key.capitalize()}:{json.dumps(refused.status.get(key, ''), ensure_ascii=False)}"
                       for key in ("status", "message", "reason"))
    return (f"Error creating pods: [failed to create pod {name}, err: &errors.StatusError{{ErrStatus:v1.Status{{"
            f'TypeMeta:v1.TypeMeta{{Kind:"", APIVersion:""}}, {fields}, Code:{refused.code}}}}}]')


def without_times(status):
    return {key: value for key, value in status.items() if key not in ("state", "conditions")}


def age(job):
    made = datetime.datetime.strptime(job["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ")
    return f"{(datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - made).total_seconds():.0f}s"
