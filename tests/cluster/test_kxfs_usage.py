# SPDX-License-Identifier: MIT
"""The usage of jobs, as a real metrics-server reports it, and time limits, on a separate cluster
with nothing else installed. metrics-server samples every 15 s, and reports nothing of containers
younger than 10 s."""

import json
import re

import control
import pytest
import yaml
from cluster import Cluster
from harness import wait_for
from mounted import HOLD, app, begun, ended
from test_kxfs_batch import Batch, kx, namespace  # noqa: F401

MIB = 1 << 20
RESOURCE = {"cpu": 1, "memMB": 1000, "gpu": 0}
SAMPLE = 15  # seconds between samples of the metrics-server, and between lists of kxfs
# Uses 200 MiB and one core for a minute, then prints the CPU time of its processes.
BURN = f"""echo begin
(head -c {200 * MIB} /dev/zero; sleep 60) | tail -c {200 * MIB} >/dev/null &
awk 'BEGIN {{ t = systime() + 60; while (systime() < t) n++ }}'
wait
times"""


class Measured(Cluster):
    def start_parts(self):
        super().start_parts()
        self.parts["metrics-server"] = control.metrics_server(self).start()
        self.serve_behind("metrics.k8s.io", "v1beta1", "metrics-server", self.ports["metrics"])
        wait_for(lambda: self.is_served("/apis/metrics.k8s.io/v1beta1/nodes/localhost"), what="the first look")


@pytest.fixture(scope="module")
def cluster():
    with Measured(volcano=False) as own:
        yield own


@pytest.fixture
def world(cluster, namespace):  # noqa: F811
    return Batch(cluster, namespace)


def usage(job):
    return json.loads(job.read("status.json"))["usage"]


def info(mount):
    return yaml.safe_load(mount.read(".kxfs", "info"))


def test_usage(kx, world):  # noqa: F811
    """The peak of memory is right within 5 %. The CPU time lacks at most what the pod used before
    its first sample and after its last one. The usage of a pod that runs for 5 s is unknown. While
    metrics-server is away, .kxfs/info and one line of the log report that, and earlier figures
    remain."""
    mount = kx("capture=all")
    short = mount.submit(app("sleep 5", resource=RESOURCE), name="short.yaml")
    job = mount.submit(app(BURN, resource=RESOURCE), name="burn.yaml")
    ended(short)
    begun(job)
    wait_for(lambda: usage(job)["source"], what="the first look")
    assert info(mount)["usage"] == "metrics.k8s.io/v1beta1" and usage(job)["memory"]["kind"] == "working_set"
    ended(job)
    used = usage(job)
    assert abs(used["memory"]["peak_bytes"] - 200 * MIB) < 10 * MIB, used
    took = [int(m) * 60 + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", job.read("main-0", "log"))]
    assert len(took) == 4 and abs(used["cpu"]["seconds"] - sum(took)) <= 2 * SAMPLE + 2, (used, took)
    assert used["samples"] >= 2 and used["memory"]["limit_bytes"] == 10**9 and used["elapsed_seconds"] >= 60
    nothing = usage(short)
    assert (nothing["source"], nothing["cpu"]["seconds"], nothing["memory"]["peak_bytes"]) == (None, None, None)
    assert nothing["elapsed_seconds"] >= 5

    other = mount.submit(app(HOLD, resource=RESOURCE), name="other.yaml")
    begun(other)
    world.cluster.parts["metrics-server"].stop()
    assert other.read("usage")
    wait_for(lambda: "usage_failed" in info(mount), what="that nothing is told")
    assert info(mount)["usage"] is None and "metrics.k8s.io" in info(mount)["usage_failed"]
    assert mount.read(".kxfs", "log").count("the resource usage of pods is unknown") == 1
    assert usage(job) == used
    world.cluster.parts["metrics-server"].start()
    world.release(begun(other))
    ended(other)


def test_time_limit(kx, world):  # noqa: F811
    """The cluster ends a job that runs too long while no kxfs is running. The next kxfs reports
    that. A finished job is removed after its ttl."""
    mount = kx()
    job = mount.submit(app(HOLD, args={"time_limit": "10s"}, resource=RESOURCE))
    gone = mount.submit(app("true", args={"ttl": "1s"}, resource=RESOURCE), name="gone.yaml")
    begun(job)
    assert job.status()["time_limit"] == 10 and job.status()["deadline"]
    mount.end()
    wait_for(lambda: any(c["type"] == "Failed" for c in world.jobs()[job.id]["status"].get("conditions", ())), what="its end")
    wait_for(lambda: gone.id not in world.jobs(), what="the other to be removed")
    mount.start()
    wait_for(lambda: (job.state(), job.status()["reason"]) == ("FAILED", "DeadlineExceeded"), what="its end to be shown")
    assert "ran longer than its time limit of 10s" in job.read("why")
    assert job.read("main-0", "log").startswith("begin\n")
