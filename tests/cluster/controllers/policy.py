# SPDX-License-Identifier: MIT
"""Pure rules of Volcano's jobs: which action an event asks for, and which phase counts lead to."""

FINAL = ("Completed", "Failed", "Terminated")


class Request:
    """Something that happened to a job. VERSION is that of the job's pods it happened to."""

    def __init__(self, key, event=None, task=None, pod=None, exit_code=0, version=0, action=None):
        self.key = key  # (namespace, name)
        self.event = event
        self.task = task
        self.pod = pod
        self.exit_code = exit_code
        self.version = version
        self.action = action


def action_of(job, request):
    """What to do: the command's action, or that of the first policy that fits, or SyncJob."""
    if request.action:
        return request.action
    if request.event is None or request.version < job.get("status", {}).get("version", 0):
        return "SyncJob"  # of pods that are no more
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
    """status fields that tell how many pods are in which phase."""
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
    """The gang is there: Running."""
    there = sum(status.get(name, 0) for name in ("running", "succeeded", "failed"))
    return "Running" if there >= job["spec"]["minAvailable"] else "Pending"


def phase_of_running(job, status):
    """All have ended: Completed or Failed."""
    spec, succeeded = job["spec"], status.get("succeeded", 0)
    min_success = spec.get("minSuccess")
    if min_success is not None and succeeded >= min_success:
        return "Completed"
    if succeeded + status.get("failed", 0) < sum(task["replicas"] for task in spec["tasks"]):
        return "Running"
    if spec["minAvailable"] >= sum(task["minAvailable"] for task in spec["tasks"]):
        for task in spec["tasks"]:
            phases = status.get("taskStatusCount", {}).get(task["name"], {"phase": {}})["phase"]
            if phases.get("Succeeded", 0) < task["minAvailable"]:
                return "Failed"
    wanted = spec["minAvailable"] if min_success is None else min_success
    return "Completed" if succeeded >= wanted else "Failed"


def conditions(old, phase, time):
    """The history of phases: each once, the newest last."""
    kept = [condition for condition in old if condition["status"] != phase]
    return [*kept, {"status": phase, "lastTransitionTime": time}]
