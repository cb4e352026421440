# SPDX-License-Identifier: MIT
"""tests/mount/test_every_call.py on the mount of a cluster."""

import functools
import threading

import harness
import pytest
import store as st
from every_call import PARTS, Day, Mounts, each


class Cluster(threading.Thread):
    """Runs the pods of all jobs: one counts until it may end, another hangs, all others print 1 and end."""

    def __init__(self, volcano):
        super().__init__(daemon=True)
        self.volcano = volcano
        self.let_go = set()
        self.counts = {}  # pod -> how far it has counted
        self.ended = {}  # job -> the same at its end
        self.made = []  # names of all jobs
        self.over = threading.Event()
        volcano.store.listeners.append(self.changed)
        self.start()

    def changed(self, change):
        if change.after and not change.before and change.after.resource is st.JOBS:
            self.made.append(change.after.name)

    def forget(self):
        """Another mount starts, which does not have the last one's jobs."""
        for name in self.made:
            self.volcano.store.remove(st.JOBS, "test", name)

    def run(self):
        while not self.over.wait(0.05):
            for name in list(self.made):
                for pod in self.volcano.pods(name):
                    self.step(name, pod)

    def step(self, name, pod):
        count = self.counts.get(pod, 0)
        if count is None:
            return
        if count == 0:
            self.volcano.run(pod)
        counting = name.startswith(("printed", "other"))
        if counting or count == 0:
            count += 1
            self.volcano.log(pod).append(f"{count}\n")
        self.counts[pod] = count
        if name in self.let_go or not (counting or name.startswith("cancelled")):
            self.ended[name] = count
            self.volcano.finish(pod)
            self.counts[pod] = None


class ClusterDay(Day):
    def __init__(self, cluster, *args):
        super().__init__(*args)
        self.cluster = cluster
        self.n_before = len(cluster.made)

    def text(self, name):
        return harness.app("true", name=name)

    def let_go(self, job):
        self.cluster.let_go.add(job.id)

    def count(self, job):
        return self.cluster.ended[job.id]

    def runs(self, name):
        return sum(made.startswith(f"{name}-") for made in self.cluster.made[self.n_before:])


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_each(make_mount, server, volcano, request, part):
    cluster = Cluster(volcano)

    def mount():
        cluster.forget()
        return make_mount(server, start=False)

    try:
        each(Mounts(mount, functools.partial(ClusterDay, cluster)), part, request.config.getoption("--seed"))
    finally:
        cluster.over.set()
        cluster.join()
