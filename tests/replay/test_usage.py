# SPDX-License-Identifier: MIT
"""`usage` of a cluster's jobs: the values of metrics.k8s.io, and when kxfs requests them.
tests/unit/backend/kube/test-samples.c checks how often kxfs requests them, and what happens after a failure.
tests/unit/spec/view/test-snapshot.c checks the computation."""

import datetime
import json
import time

import harness
import pytest
import store as st
import watching
import yaml
from harness import app, rmdir

MIB = 1 << 20
GROUP = "/apis/metrics.k8s.io"
APP = app("true", num_replicas=2, resource={"cpu": 2, "memMB": 4000, "gpu": 1})


def asked(server):
    return [req for req in list(server.requests) if "metrics.k8s.io" in req.path]


def count(server):
    return len(asked(server))


def until_asked(server, n):
    harness.wait_for(lambda: count(server) == n, timeout=120, what=f"{n} requests for metrics")


def usage(job, *names, top=None):
    return yaml.load((top or job.dir).joinpath(*names, "usage").read_text(), yaml.BaseLoader)


def seen(job, check, *names):
    return harness.wait_for(lambda: (u := usage(job, *names)) and check(u) and u, timeout=120,
                            what=f"the usage of {job.id}")


def began(server, pod):
    tree = server.store.find(st.PODS, "test", pod).tree()
    return tree["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]


def later(when, seconds):
    """Return the time WHEN plus SECONDS, in Kubernetes' format."""
    form = "%Y-%m-%dT%H:%M:%SZ"
    return (datetime.datetime.strptime(when, form) + datetime.timedelta(seconds=seconds)).strftime(form)


def look(server, pod, when, cpu, memory):
    """Set the usage of the first container of POD. kxfs ignores other containers, such as "proxy"."""
    main = server.store.find(st.PODS, "test", pod).tree()["spec"]["containers"][0]["name"]
    server.api.metrics[pod] = (when, {"proxy": ("7", "7Gi"), main: (cpu, memory)})


@pytest.fixture
def server(server):
    server.install(st.METRICS)
    return server


def submit(server, volcano, kx):
    """Submit a job with two replicas, and let it run. Return the job, the names of its pods, and their start time."""
    job = kx.submit(APP)
    pods = volcano.start(job.id)
    return job, pods, began(server, pods[0])


def others(server, n=1, phase="Running"):
    """Return the name of a job of another user, whose output is not captured, and the names of its pods."""
    job = server.store.add(st.JOBS, watching.job("theirs", phase="Running", tasks={"main": n}))
    pods = [watching.pod(job, "main", i, phase=phase) for i in range(n)]
    for pod in pods:
        server.store.add(st.PODS, pod)
    return "theirs", [pod["metadata"]["name"] for pod in pods]


@pytest.mark.waits
def test_usage(server, make_mount, volcano):
    """kxfs computes sums from two samples. It keeps them as long as the job is known, even in the next mount. All files
    show the same values."""
    server.install(st.OLD_METRICS)
    kx = make_mount(server)
    job, (one, two), start = submit(server, volcano, kx)
    volcano.log(one).append("begun\n")
    job.until_logged("begun")
    # TorchX requests a little less than the limit: 1900 of 2000 millicores for each replica.
    asked_for = {"requested_millicores": "3802"}
    assert usage(job)["source"] == "null" and usage(job)["cpu"] == {
        **asked_for, "seconds": "null", "now_millicores": "null", "efficiency_percent": "null"}
    look(server, one, later(start, 20), "1500m", "200Mi")
    look(server, two, later(start, 15), "250000000n", "102400Ki")
    first = seen(job, lambda u: u["cpu"]["seconds"] != "null")
    assert first["cpu"] == {**asked_for, "seconds": "33", "now_millicores": "1750", "efficiency_percent": "51"}
    assert "1000000000" < first["memory"].pop("requested_bytes") < first["memory"].pop("limit_bytes") == "8000000000"
    assert first["memory"] == {"now_bytes": str(300 * MIB), "peak_bytes": str(300 * MIB), "kind": "working_set"}
    assert first["source"] == "metrics.k8s.io" and first["samples"] == "2" and first["gpu"] == {"requested": "2"}
    assert first["first"] == later(start, 15) and first["last"] == later(start, 20)
    assert yaml.safe_load(kx.read(".kxfs", "info"))["usage"] == "metrics.k8s.io/v1"

    look(server, one, later(start, 35), "1", "100Mi")
    second = seen(job, lambda u: u["last"] == later(start, 35), "main-0")
    assert second["cpu"]["seconds"] == "45" and second["cpu"]["now_millicores"] == "1000"
    assert second["memory"]["now_bytes"] == str(100 * MIB) and second["memory"]["peak_bytes"] == str(200 * MIB)
    assert usage(job)["samples"] == "3" and usage(job, "main-1")["samples"] == "1"

    for pod in (one, two):
        volcano.finish(pod, 137, reason="OOMKilled")
    job.until("FAILED")
    harness.wait_for(lambda: usage(job)["memory"]["now_bytes"] == "0", what="the end of the use of memory")
    last = usage(job)
    assert last["cpu"]["seconds"] == "48" and last["memory"]["peak_bytes"] == str(300 * MIB)
    why = job.read("why")
    assert "more memory than its limit of 3.7 GiB" in why and "kxfs measured up to 200 MiB of memory." in why, why
    whole = json.loads(kx.read("jobs", job.id, "status.json"))["usage"]
    assert [one["usage"] for line in kx.read("list.jsonl").splitlines() if (one := json.loads(line))] == [whole]
    assert yaml.safe_load(job.read("usage"))["memory"] == whole["memory"] and whole["cpu"]["seconds"] == 48
    rmdir(job.dir)
    harness.wait_for(lambda: job.old.exists(), what="the job in history/")
    text = (job.old / "usage").read_text()
    assert yaml.load(text, yaml.BaseLoader)["cpu"] == last["cpu"]
    kx.restart()
    assert (job.old / "usage").read_text() == text
    assert all(req.path == f"{GROUP}/v1/namespaces/test/pods" for req in asked(server))


@pytest.mark.waits
def test_next_mount(server, make_mount, volcano):
    """The next mount continues from the values that the last one wrote at its end, even if there was only one
    sample."""
    kx = make_mount(server)
    job, (one, two), start = submit(server, volcano, kx)
    volcano.log(one).append("begun\n")
    job.until_logged("begun")
    for pod in (one, two):
        look(server, pod, later(start, 15), "1", "1Mi")
    seen(job, lambda u: u["cpu"]["seconds"] == "30")
    server.api.metrics.clear()
    kx.restart()
    assert usage(job)["cpu"]["seconds"] == "30"
    for pod in (one, two):
        look(server, pod, later(start, 45), "1", "1Mi")
    assert seen(job, lambda u: u["samples"] == "4")["cpu"]["seconds"] == "90"


def test_old_version(server, make_mount):
    server.uninstall(st.METRICS)
    server.install(st.OLD_METRICS)
    name, (pod,) = others(server)
    look(server, pod, later(st.now(), 10), "1", "1Mi")
    kx = make_mount(server)
    job = harness.Job(kx, name)
    assert usage(job)["source"] == "null"
    assert seen(job, lambda u: u["source"] != "null")["memory"]["now_bytes"] == str(MIB)
    assert yaml.safe_load(kx.read(".kxfs", "info"))["usage"] == "metrics.k8s.io/v1beta1"
    assert asked(server)[0].path == f"{GROUP}/v1beta1/namespaces/test/pods"


@pytest.mark.parametrize("read", [("jobs", "theirs", "usage"), ("jobs", "theirs", "main-0", "usage"),
                                  ("jobs", "theirs", "status.json"), ("list.jsonl",)])
def test_who_asks(server, make_mount, read):
    """kxfs sends no requests for metrics while no process reads them, or while no pod runs."""
    name, (pod,) = others(server, phase="Pending")
    kx = make_mount(server)
    kx.read(*read)
    assert count(server) == 0
    kx.restart()
    server.store.change(st.PODS, "test", pod, lambda tree: tree.update(
        status=watching.pod(server.store.find(st.JOBS, "test", name), "main", 0, phase="Running")["status"]))
    harness.wait_for(lambda: kx.read("jobs", name, "main-0", "state") == "RUNNING\n", what="RUNNING")
    for other in ("jobs/theirs/status", "jobs/theirs/why", "jobs/theirs/main-0/status", "list", "history/list.jsonl"):
        kx.read(*other.split("/"))
    assert count(server) == 0
    kx.read(*read)
    until_asked(server, 1)


def test_captured(server, make_mount):
    """If output is captured, kxfs requests metrics even if no process reads them, because history/ shows them later."""
    others(server)
    make_mount(server, options="capture=all")
    until_asked(server, 1)


def info(kx, about):
    """Wait until ABOUT is true for .kxfs/info, and return the contents of .kxfs/info."""
    return harness.wait_for(lambda: (i := yaml.safe_load(kx.read(".kxfs", "info"))) and about(i) and i,
                            timeout=120, what=f"info, now {kx.read('.kxfs', 'info')}")


@pytest.mark.waits
@pytest.mark.parametrize("lacks", ["server", "right"])
def test_no_metrics(server, make_mount, lacks):
    """The cluster has no metrics-server, so kxfs requests nothing. Or the user has no right, so kxfs requests nothing
    for a long time after the first refusal. Neither is an error: `usage` shows the rest."""
    name, _ = others(server)
    if lacks == "server":
        server.uninstall(st.METRICS)
    else:
        server.forbidden.append({"group": "metrics.k8s.io"})
    kx = make_mount(server)
    job = harness.Job(kx, name)
    job.read("usage")
    if lacks == "server":
        said = info(kx, lambda i: "usage_failed" in i)
        assert said["usage_failed"] == "the cluster does not serve metrics.k8s.io, the API of metrics-server"
        assert said["usage"] is None and said["refused"] == []
    else:
        said = info(kx, lambda i: any(r["resource"] == "pods.metrics.k8s.io" for r in i["refused"]))
        assert said["usage"] is None and "usage_failed" not in said
        assert [r["cost"] for r in said["refused"]] == ["usage files show only what each replica requested"]
    begin = time.monotonic()
    assert usage(job)["source"] == usage(job)["cpu"]["seconds"] == "null"
    # Wait longer than the time between two samples.
    harness.wait_for(lambda: job.read("usage") and time.monotonic() - begin > 20, timeout=120, step=1,
                     what="time to pass")
    assert count(server) == (lacks == "right")
    assert "error" not in kx.read(".kxfs", "log").lower()
