# SPDX-License-Identifier: MIT
"""How a mount connects to a real API server, and what it does while the server is away."""

import os
import time

from harness import err_of, wait_for
from mounted import HOLD, World, app, running


def test_client_certificate(mount, world, cluster):
    """All other tests use tokens."""
    kx = mount(kubeconfig=cluster.kubeconfig("cert"))
    job = kx.submit(app(HOLD))
    world.release(running(job))
    job.finish()
    assert "connected: true" in kx.read(".kxfs/info")


def test_server_away(own_cluster, mount):
    """While the server is away, known jobs remain readable and are marked stale, and writes fail
    within a minute. Everything recovers automatically."""
    world = World(own_cluster, "default")
    wait_for(lambda: world.kubectl("auth", "can-i", "list", "pods", check=False,
                                   kubeconfig=own_cluster.kubeconfig("token")).stdout == "yes\n",
             what="the user's rights")
    kx = mount(kubeconfig=own_cluster.kubeconfig("token"), namespace="default")
    short, job = kx.submit(app(HOLD), "short.yaml"), kx.submit(app(HOLD), "long.yaml")
    short_pod, pod = running(short), running(job)
    job.until("RUNNING")
    container = world.container(short_pod)
    own_cluster.parts["apiserver"].stop()
    wait_for(lambda: job.status()["stale_since"], what="the job to be stale")
    assert world.write_code(short_pod, None, container, 0)
    assert job.state() == "RUNNING" and "connected: false" in kx.read(".kxfs/info")
    assert job.read("manifest.yaml") and kx.ls("jobs") == sorted([short.id, job.id])
    begin = time.monotonic()
    assert err_of(kx.write, "submit/new.yaml", app(HOLD)) in ("EHOSTUNREACH", "EIO", "ETIMEDOUT")
    assert kx.read("submit/new.yaml.error")
    assert err_of(os.rmdir, job.dir) == "EHOSTUNREACH" and job.state() == "RUNNING"
    assert time.monotonic() - begin < 60
    own_cluster.parts["apiserver"].start()
    own_cluster.wait_apiserver()
    short.finish()
    wait_for(lambda: not job.status()["stale_since"] and "connected: true" in kx.read(".kxfs/info"),
             what="the job to be confirmed")
    assert sorted(world.jobs()) == sorted([short.id, job.id]), "what was refused was not launched"
    world.release(pod)
    job.finish()
    assert kx.submit(app(HOLD)).id in world.jobs()
