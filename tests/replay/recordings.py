# SPDX-License-Identifier: MIT
"""Recordings of a real cluster in data/recordings, in a file for each controller. A line {"scenario": NAME} begins a
recording. In it, a line {"recorded": RESOURCE} precedes the watch events of a resource. Each event is one line, as
the API server sent it.

recordings.py SCENARIO FILE... stores the events in each FILE, called RESOURCE.jsonl, as the recording SCENARIO."""

import functools
import json
import pathlib
import sys

import replies
import store as st

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The resources that each file may have. If there are several, the apiVersion of an object decides.
FILES = {"volcano-jobs": (st.JOBS,), "pods": (st.PODS,), "podgroups": (st.PODGROUPS,), "events": (st.EVENTS,),
         "appwrappers": (st.APPWRAPPERS, st.NEW_APPWRAPPERS), "jobsets": (st.JOBSETS,),
         "jobs": (st.BATCH_JOBS,),
         "workloads": (st.KUEUE[0], st.OLD_KUEUE[0]),
         "localqueues": (st.KUEUE[1], st.OLD_KUEUE[1]),
         "clusterqueues": (st.KUEUE[2], st.OLD_KUEUE[2])}
DIRECTORY = replies.DATA / "recordings"
CONTROLLERS = ("kueue_v014", "kueue", "job", "appwrapper", "mcad")  # all other recordings are of Volcano


def path_of(scenario):
    return DIRECTORY / (next((one for one in CONTROLLERS if scenario.startswith(f"{one}_")), "volcano") + ".jsonl")


@functools.cache
def read(path):
    """Return {scenario: {resource: its lines}} of the file PATH."""
    found = {}
    for line in path.read_text().splitlines():
        if line.startswith('{"scenario": '):
            recorded = found[json.loads(line)["scenario"]] = {}
        elif line.startswith('{"recorded": '):
            lines = recorded[json.loads(line)["recorded"]] = []
        else:
            lines.append(line)
    return found


def parts(scenario):
    """Return {resource: its lines} of SCENARIO."""
    return read(path_of(scenario))[scenario]


def scenarios(resource, controllers=("volcano",)):
    """Return the scenarios of CONTROLLERS in which RESOURCE was recorded."""
    return sorted(name for one in controllers for name, recorded in read(DIRECTORY / f"{one}.jsonl").items() if resource in recorded)


SCENARIOS = scenarios("volcano-jobs")


class Step:
    """One event of a recording."""

    def __init__(self, resource, kind, tree):
        self.resource = resource
        self.kind = kind  # ADDED, MODIFIED or DELETED
        self.tree = tree
        self.version = int(tree["metadata"]["resourceVersion"])

    def __repr__(self):
        meta = self.tree["metadata"]
        return f"{self.version} {self.kind} {self.resource.plural}/{meta['name']}"


class Recording:
    """All events of a scenario, in the order in which they happened. The objects are moved to NAMESPACE."""

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
        """Return the names of the objects of RESOURCE, in the order of their appearance."""
        return list(dict.fromkeys(s.tree["metadata"]["name"] for s in self.steps if s.resource is resource))


def story(kind, name, resources):
    """Return the steps of the story NAME in tests/kinds/recordings/KIND.jsonl, in the namespace test. RESOURCES maps
    kinds of objects to resources; objects of other kinds are omitted."""
    found = False
    for line in (ROOT / f"tests/kinds/recordings/{kind}.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "story" in row:
            found = row["story"] == name
        elif found and row["object"]["kind"] in resources:
            row["object"]["metadata"]["namespace"] = "test"
            yield Step(resources[row["object"]["kind"]], row["type"], row["object"])


def apply(store, step):
    """Apply STEP to STORE."""
    meta = step.tree["metadata"]
    if step.kind == "DELETED":
        store.remove(step.resource, meta.get("namespace", ""), meta["name"])
    else:
        store.put(step.resource, step.tree)


def main():
    name, recorded = sys.argv[1], {}
    for file in map(pathlib.Path, sorted(sys.argv[2:])):
        recorded[file.stem] = file.read_text().splitlines()
        assert all(json.loads(line) for line in recorded[file.stem])
    found = {**read(path_of(name)), name: recorded}
    with path_of(name).open("w", encoding="utf-8") as out:
        for scenario in sorted(found):
            print(json.dumps({"scenario": scenario}), file=out)
            for resource, lines in found[scenario].items():
                print(json.dumps({"recorded": resource}), *lines, sep="\n", file=out)


if __name__ == "__main__":
    main()
