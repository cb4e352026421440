# SPDX-License-Identifier: MIT
"""Simulates the controller of JobSet v1alpha2: jobset.py KUBECTL KUBECONFIG.

It handles JobSets as the real controller does in the recordings kueue_jobset_*. Kubernetes' own
controller runs their Jobs. Not simulated: failurePolicy rules, startup policies, successPolicy Any,
time to live."""

import copy
import hashlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import api  # noqa: E402
import loop  # noqa: E402
from appwrapper import find, put  # noqa: E402
from loop import Recorder, key_of  # noqa: E402

PREFIX = "jobset.sigs.k8s.io/"
FINAL = ("Completed", "Failed")


class Controller(loop.Controller):
    def __init__(self, client):
        super().__init__(client, "jobsets", "jobs.batch")
        self.jobs = self.caches["jobs.batch"]
        self.recorder = Recorder(client, "jobset-controller")

    def process(self, jobset):
        if "deletionTimestamp" in jobset["metadata"]:
            return  # its objects are deleted with it
        status = {"restarts": 0, **copy.deepcopy(jobset.get("status") or {})}
        status.setdefault("conditions", [])
        jobs = self.jobs_of(jobset)
        current = [job for job in jobs if attempt_of(job) == status["restarts"]]
        status["replicatedJobsStatus"] = [count(replicated["name"], current)
                                          for replicated in jobset["spec"]["replicatedJobs"]]
        if any(find(status, kind) for kind in FINAL):
            self.drop(job for job in current if not has(job, "Complete") and not has(job, "Failed"))
        else:
            self.drop(job for job in jobs if attempt_of(job) < status["restarts"])
            self.decide(jobset, status, current)
        if not status["conditions"]:
            del status["conditions"]
        if status != jobset.get("status"):
            path = api.path_of("jobsets", *key_of(jobset), "status")
            self.objects.learn(self.client.put(path, {**jobset, "status": status}))
            self.changed.set()

    def decide(self, jobset, status, current):
        """Handle an unfinished JobSet: let it fail or complete, or else create what is missing."""
        failed = sorted(job["metadata"]["name"] for job in current if has(job, "Failed"))
        if failed:
            self.fail(jobset, status, failed[0])
            return
        if len(current) == len(list(wanted(jobset))) and all(has(job, "Complete") for job in current):
            self.end(jobset, status, "Completed", "AllJobsCompleted", "jobset completed successfully")
            return
        self.make(jobset, status, bool(current))
        self.suspend(jobset, status, current)

    def fail(self, jobset, status, first):
        policy = jobset["spec"].get("failurePolicy")
        if policy and status["restarts"] < policy.get("maxRestarts", 0):
            status["restarts"] += 1
            status["restartsCountTowardsMax"] = status["restarts"]
        elif policy:
            self.end(jobset, status, "Failed", "ReachedMaxRestarts",
                     f"jobset failed due to reaching max number of restarts (first failed job: {first})")
        else:
            self.end(jobset, status, "Failed", "FailedJobs",
                     f"jobset failed due to one or more job failures (first failed job: {first})")

    def end(self, jobset, status, kind, reason, message):
        put(status, kind, "True", reason, message)
        status["terminalState"] = kind
        self.recorder.record(jobset, "Normal" if kind == "Completed" else "Warning", reason, message)

    def suspend(self, jobset, status, current):
        wish = bool(jobset["spec"].get("suspend"))
        for job in current:
            if bool(job["spec"].get("suspend")) != wish and not has(job, "Complete"):
                self.jobs.learn(self.client.merge(api.path_of("jobs.batch", *key_of(job)),
                                                  {"spec": {"suspend": wish}}))
        told = find(status, "Suspended")
        if wish != ((told or {}).get("status") == "True"):
            said = ("SuspendedJobs", "jobset is suspended") if wish else ("ResumeJobs", "jobset is resumed")
            put(status, "Suspended", str(wish), *said)
            self.recorder.record(jobset, "Normal", *said)

    # --- the objects of a JobSet ----------------------------------------------------------

    def jobs_of(self, jobset):
        """Return the Jobs that are not being deleted."""
        uid = jobset["metadata"]["uid"]
        return [job for job in self.jobs.all() if "deletionTimestamp" not in job["metadata"]
                and any(ref["uid"] == uid for ref in job["metadata"].get("ownerReferences", ()))]

    def drop(self, jobs):
        """Delete Jobs in the foreground. A Job is gone only after its pods are, and then another
        can be created with its name."""
        for job in jobs:
            self.client.delete(api.path_of("jobs.batch", *key_of(job)), {"propagationPolicy": "Foreground"})

    def make(self, jobset, status, begun):
        namespace = jobset["metadata"]["namespace"]
        if not begun:
            self.create("services", namespace, make_service(jobset))
        for replicated, index in wanted(jobset):
            item = make_job(jobset, replicated, index, status["restarts"])
            made = self.create("jobs.batch", namespace, item)
            if made:
                self.jobs.learn(made)

    def create(self, resource, namespace, item):
        """Create an object and return it, or None if it exists."""
        kept = self.caches.get(resource)
        if kept and kept.get(namespace, item["metadata"]["name"]):
            return None
        try:
            return self.client.post(api.path_of(resource, namespace), item)
        except api.Refused as e:
            if e.code != 409:
                raise
        return None


# --- objects to create ------------------------------------------------------------------------


def wanted(jobset):
    """Yield (replicated job, index of one of its Jobs)."""
    for replicated in jobset["spec"]["replicatedJobs"]:
        for index in range(replicated.get("replicas", 1)):
            yield replicated, index


def owner(jobset):
    return [{"apiVersion": jobset["apiVersion"], "kind": "JobSet", "name": jobset["metadata"]["name"],
             "uid": jobset["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]


def network(jobset):
    """Return (whether pods have names, whether pods that are not ready have names, the subdomain).
    """
    asked = jobset["spec"].get("network") or {}
    return (asked.get("enableDNSHostnames", True), asked.get("publishNotReadyAddresses", True),
            asked.get("subdomain") or jobset["metadata"]["name"])


def make_service(jobset):
    _, early, subdomain = network(jobset)
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": subdomain, "ownerReferences": owner(jobset)},
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": early,
                     "selector": {PREFIX + "jobset-name": jobset["metadata"]["name"]}}}


def make_job(jobset, replicated, index, restarts):
    meta = jobset["metadata"]
    name = f"{meta['name']}-{replicated['name']}-{index}"
    every = [job["name"] for job, _ in wanted(jobset)]
    alike = [job["name"] for job, _ in wanted(jobset) if group(job) == group(replicated)]
    words = {
        "global-replicas": len(every), "group-name": group(replicated), "group-replicas": len(alike),
        "job-global-index": every.index(replicated["name"]) + index,
        "job-group-index": alike.index(replicated["name"]) + index, "job-index": index,
        "job-key": hashlib.sha1(f"{meta['namespace']}/{name}".encode()).hexdigest(),
        "jobset-name": meta["name"], "jobset-uid": meta["uid"],
        "replicatedjob-name": replicated["name"], "replicatedjob-replicas": replicated.get("replicas", 1),
        "restart-attempt": restarts,
    }
    words = {PREFIX + key: str(value) for key, value in words.items()}
    template = copy.deepcopy(replicated["template"])
    for item in (template, template["spec"]["template"]):
        place = item.setdefault("metadata", {})
        for field in ("labels", "annotations"):
            place[field] = {**(place.get(field) or {}), **words}
    template["metadata"].update(name=name, ownerReferences=owner(jobset))
    named, _, subdomain = network(jobset)
    if named:
        template["spec"]["template"]["spec"]["subdomain"] = subdomain
    template["spec"]["suspend"] = bool(jobset["spec"].get("suspend"))
    return {"apiVersion": "batch/v1", "kind": "Job", **template}


def group(replicated):
    return replicated.get("groupName", "default")


# --- states of Jobs ---------------------------------------------------------------------------


def attempt_of(job):
    return int(job["metadata"]["labels"][PREFIX + "restart-attempt"])


def has(job, kind):
    """Return whether a condition is true."""
    return any(condition["type"] == kind and condition["status"] == "True"
               for condition in job.get("status", {}).get("conditions", ()))


def count(name, jobs):
    """Return the status of the replicated job NAME."""
    ret = {"name": name, **dict.fromkeys(("active", "failed", "ready", "succeeded", "suspended"), 0)}
    for job in jobs:
        if job["metadata"]["labels"][PREFIX + "replicatedjob-name"] != name:
            continue
        status = job.get("status", {})
        if has(job, "Complete") or has(job, "Failed"):
            ret["succeeded" if has(job, "Complete") else "failed"] += 1
            continue
        ret["active"] += status.get("active", 0) > 0
        ret["ready"] += status.get("ready", 0) + status.get("succeeded", 0) >= job["spec"]["parallelism"]
        ret["suspended"] += bool(job["spec"].get("suspend"))
    return ret


if __name__ == "__main__":
    loop.main(Controller)
