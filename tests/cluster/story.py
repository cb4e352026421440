# SPDX-License-Identifier: MIT
"""What happened to a job, as a watcher of its namespace saw it, in a form that can be compared
between runs.

A Story consists of watch events, either recorded or from a current cluster. Names and times differ
between runs; the sequence of states does not."""

import json
import pathlib
import sys
import threading

import api

REPLAY = pathlib.Path(__file__).resolve().parents[1] / "replay"
sys.path.append(str(REPLAY))

import recordings  # noqa: E402
from replies import text_of  # noqa: E402, F401

FILES = {"jobs": "volcano-jobs", "pods": "pods", "podgroups": "podgroups"}


class Story:
    """events[resource] is a list of (type, object)."""

    def __init__(self):
        self.events = {resource: [] for resource in FILES}

    def jobs(self):
        """Return the phases of the job in order, and "DELETED" if it was deleted."""
        return phases(self.events["jobs"], lambda item: item.get("status", {}).get("state", {}).get("phase"))

    def pods(self):
        """For each pod (name, attempt), return its phases, and those while it was being deleted."""
        told = {}
        for kind, item in self.events["pods"]:
            meta = item["metadata"]
            key = (meta["name"].split("-", 2)[2], meta["annotations"]["volcano.sh/job-retry-count"])
            told.setdefault(key, []).append((kind, item))
        return {key: phases(events, lambda item: item["status"]["phase"]) for key, events in told.items()}

    def groups(self):
        """Return the phases of the PodGroups, one group after the other."""
        told = {}
        for kind, item in self.events["podgroups"]:
            told.setdefault(item["metadata"]["uid"], []).append((kind, item))
        tales = [phases(events, lambda item: (item.get("status") or {}).get("phase"))
                 for events in told.values()]
        # The controller may or may not have handled a group that is deleted immediately.
        return [["DELETED"] if tale == ["Inqueue", "DELETED"] else tale for tale in tales]

    def last_status(self):
        """Return the job's last status, without times."""
        status = dict(self.events["jobs"][-1][1]["status"])
        status["state"] = status["state"]["phase"]
        status["conditions"] = [condition["status"] for condition in status.get("conditions", ())]
        if "runningDuration" in status:
            status["runningDuration"] = "some"
        return status


def phases(events, phase_of):
    told = []
    for kind, item in events:
        phase = "DELETED" if kind == "DELETED" else phase_of(item)
        if phase and (not told or told[-1] != phase):
            told.append(phase)
    return told


def recorded(scenario):
    """Return the story of a recording."""
    story = Story()
    for resource, name in FILES.items():
        for line in recordings.parts(scenario).get(name, ()):
            event = json.loads(line)
            story.events[resource].append((event["type"], event["object"]))
    return story


class Watcher(Story):
    """The story of a namespace from now on. It ends when the server ends the watches: see `done`."""

    def __init__(self, client, namespace):
        super().__init__()
        self.client = client
        self.done = threading.Event()
        for resource in FILES:
            path = api.path_of(resource, namespace)
            version = client.get(path)["metadata"]["resourceVersion"]
            threading.Thread(target=self.follow, args=(resource, path, version), daemon=True).start()

    def follow(self, resource, path, version):
        while not self.done.is_set():
            for event in self.client.watch(path, version, timeout=30):
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self.events[resource].append((event["type"], event["object"]))
