# SPDX-License-Identifier: MIT
"""A job of each kind in share/kinds/, for tests that do the same with all kinds."""

import copy

import recordings
import store as st
import yaml
from harness import ROOT

FILES = {kind["name"]: kind for kind in (yaml.safe_load(path.read_text()) for path in sorted((ROOT / "share/kinds").glob("*.yaml")))}
IN_KUEUE = sorted(name for name, kind in FILES.items() if kind.get("kueue"))
_TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
_SPECS = {"job": {"completions": 1, "template": _TEMPLATE},
          "jobset": {"replicatedJobs": [{"name": "main", "template": {"spec": {"completions": 1, "template": _TEMPLATE}}}]}}


def _true(*types):
    return {"conditions": [{"type": kind, "status": "True", "reason": kind} for kind in types]}


class Kind:
    """How the controller of a kind reacts to the field that suspends a job. RUNS and SUSPENDED are the job's status
    while it runs and while it is suspended; SHOWN and STATE are what kxfs shows of a suspended job."""

    def __init__(self, name, runs, suspended, shown="Suspended", state="CANCELLED"):
        self.name = name
        self.resource = {"job": st.BATCH_JOBS, "jobset": st.JOBSETS}.get(name, st.KIND_FILES[name])
        self.runs = runs
        self.suspended = suspended
        self.shown = shown
        self.state = state
        self.path = FILES[name]["ctl"]["suspend"].split(".")[1:]

    def __repr__(self):
        return self.name

    def job(self, **labels):
        """Return a job without a status: a recorded one if there is one."""
        if self.name in _SPECS:
            return {"apiVersion": self.resource.api_version, "kind": self.resource.kind, "metadata": {
                "name": "app", "namespace": "test", "uid": "app-1", "creationTimestamp": st.now(), "labels": labels},
                "spec": copy.deepcopy(_SPECS[self.name])}
        story = "success-steps" if self.name == "workflow" else "success"
        tree = next(recordings.story(self.name, story, {self.resource.kind: self.resource})).tree
        tree["metadata"].setdefault("labels", {}).update(labels)
        tree.pop("status", None)
        return tree

    def value(self, tree):
        """Return the value in TREE of the field that suspends the job."""
        for key in self.path:
            tree = tree.get(key, {})
        return tree or False

    def set(self, tree, value):
        """Set the field in TREE that suspends the job, as Kueue does."""
        for key in self.path[:-1]:
            tree = tree.setdefault(key, {})
        tree[self.path[-1]] = value


KINDS = {kind.name: kind for kind in (
    *(Kind(name, _true("Running"), _true("Suspended"))
      for name in ("pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob", "mpijob")),
    *(Kind(name, {"active": 1}, _true("Suspended")) for name in ("job", "jobset")),
    Kind("trainjob", {"jobsStatus": [{"name": "node", "active": 1}]}, _true("Suspended")),
    Kind("rayjob", {"jobDeploymentStatus": "Running"}, {"jobDeploymentStatus": "Suspended"}),
    Kind("sparkapplication", {"applicationState": {"state": "RUNNING"}}, {"applicationState": {"state": "SUSPENDED"}}, "SUSPENDED"),
    Kind("workflow", {"phase": "Running"}, {"phase": "Running"}, "Paused", "PENDING"),
)}
