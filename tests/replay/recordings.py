# SPDX-License-Identifier: MIT
"""Recordings of a real cluster, as data/recordings holds them: a file for each scenario, in which a line
{"recorded": RESOURCE} stands before the watch events of that resource, a line each as the API server sent it.

	recordings.py SCENARIO FILE...     store what was recorded, RESOURCE.jsonl each, as that scenario
"""

import functools
import json
import pathlib
import sys

import replies
import store as st

# What is in each file; where there are several, it is told by the version.
FILES = {"volcano-jobs": (st.JOBS,), "pods": (st.PODS,), "podgroups": (st.PODGROUPS,), "events": (st.EVENTS,),
         "appwrappers": (st.APPWRAPPERS, st.NEW_APPWRAPPERS), "jobsets": (st.JOBSETS,),
         "jobs": (st.BATCH_JOBS,),
         "workloads": (st.KUEUE[0], st.OLD_KUEUE[0]),
         "localqueues": (st.KUEUE[1], st.OLD_KUEUE[1]),
         "clusterqueues": (st.KUEUE[2], st.OLD_KUEUE[2])}
DIRECTORY = replies.DATA / "recordings"


@functools.cache
def parts(scenario):
    """{resource: its lines}"""
    found = {}
    for line in (DIRECTORY / f"{scenario}.jsonl").read_text().splitlines():
        if line.startswith('{"recorded": '):
            lines = found[json.loads(line)["recorded"]] = []
        else:
            lines.append(line)
    return found


def scenarios(resource, pattern="*"):
    """The scenarios in which there is RESOURCE."""
    head = json.dumps({"recorded": resource}) + "\n"
    return sorted(path.stem for path in DIRECTORY.glob(f"{pattern}.jsonl") if head in path.read_text())


SCENARIOS = scenarios("volcano-jobs")


class Step:
    """One event of a recording."""

    def __init__(self, resource, kind, tree):
        self.resource = resource
        self.kind = kind  # ADDED, MODIFIED, DELETED
        self.tree = tree
        self.version = int(tree["metadata"]["resourceVersion"])

    def __repr__(self):
        meta = self.tree["metadata"]
        return f"{self.version} {self.kind} {self.resource.plural}/{meta['name']}"


class Recording:
    """All events of a scenario in the order in which they happened, as if in NAMESPACE."""

    def __init__(self, scenario, namespace="test", resources=(st.JOBS, st.APPWRAPPERS, st.NEW_APPWRAPPERS, st.PODS,
                                                                 st.PODGROUPS)):
        self.steps = []
        for name, found in FILES.items():
            wanted = {r.api_version: r for r in found if r in resources}
            if wanted and name in parts(scenario):
                self._load(parts(scenario)[name], wanted, namespace)
        self.steps.sort(key=lambda step: step.version)

    def _load(self, lines, wanted, namespace):
        for event in map(json.loads, lines):
            resource = wanted.get(event["object"]["apiVersion"])
            if not resource:
                continue
            if resource.namespaced:
                event["object"]["metadata"]["namespace"] = namespace
            self.steps.append(Step(resource, event["type"], event["object"]))

    def names(self, resource):
        """The names of its objects, in the order of their appearance."""
        return list(dict.fromkeys(s.tree["metadata"]["name"] for s in self.steps if s.resource is resource))

    def of(self, resource, name):
        return [s for s in self.steps if s.resource is resource and s.tree["metadata"]["name"] == name]


def apply(store, step):
    """Have STEP happen."""
    meta = step.tree["metadata"]
    if step.kind == "DELETED":
        store.remove(step.resource, meta.get("namespace", ""), meta["name"])
    else:
        store.put(step.resource, step.tree)


def main():
    text = ""
    for file in map(pathlib.Path, sorted(sys.argv[2:])):
        lines = file.read_text().splitlines()
        assert all(json.loads(line) for line in lines)
        text += json.dumps({"recorded": file.stem}) + "\n" + "".join(f"{line}\n" for line in lines)
    (DIRECTORY / f"{sys.argv[1]}.jsonl").write_text(text)


if __name__ == "__main__":
    main()
