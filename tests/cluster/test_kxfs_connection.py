# SPDX-License-Identifier: MIT
"""How a mount connects to a real API server, and what it does when it or the server is away for a
while."""

import json
import os
import random
import signal
import time

import pytest
from harness import decided, err_of, popen, run, wait_for
from mounted import HOLD, World, app, running


def edited(cluster, directory, change, base="token"):
    """Return a copy of the kubeconfig of the user BASE, after CHANGE has modified its dict."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json",
                                        kubeconfig=cluster.kubeconfig(base)).stdout)
    change(config)
    path = directory / "kubeconfig"
    path.write_text(json.dumps(config))
    path.chmod(0o644)
    return path


def works(kx, world):
    job = kx.submit(app(HOLD))
    world.release(running(job))
    job.finish()
    assert kx.read(".kxfs/info").count("connected: true") == 1


@pytest.mark.parametrize("user", ["token", "cert"])
def test_user(mount, world, cluster, user):
    works(mount(kubeconfig=cluster.kubeconfig(user)), world)


def plugin(directory, token, code=0):
    """Create an exec plugin whose token expires soon, and that records each run."""
    runs, script = directory / "runs", directory / "plugin"
    script.write_text(f"""#!/bin/sh
echo run >>{runs}
echo please log in >&2
cat <<END
{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{
  "token": "{token}", "expirationTimestamp": "$(date -u -d '+3 seconds' +%Y-%m-%dT%H:%M:%SZ)"}}}}
END
exit {code}
""")
    script.chmod(0o755)

    def change(config):
        config["users"][0]["user"] = {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": str(script),
            "interactiveMode": "Never"}}

    return runs, change


def token_of(cluster):
    return json.loads(cluster.kubeconfig("token").read_text())["users"][0]["user"]["token"]


def test_exec_plugin(mount, world, cluster, tmp_path):
    """An exec plugin runs again when its token has expired, not for each request."""
    runs, change = plugin(tmp_path, token_of(cluster))
    kx = mount(kubeconfig=edited(cluster, tmp_path, change))
    works(kx, world)
    n = len(runs.read_text().split())
    wait_for(lambda: not kx.write("dryrun/app.yaml", app(HOLD)) and len(runs.read_text().split()) > n,
             what="the plugin to be run again", step=1)
    assert token_of(cluster) not in kx.read(".kxfs/log") + kx.read(".kxfs/info")


def test_exec_plugin_fails(mount, cluster, tmp_path):
    """If the exec plugin fails, nothing is mounted. Its own message is shown."""
    _, change = plugin(tmp_path, "none", code=1)
    kx = mount(kubeconfig=edited(cluster, tmp_path, change), start=False)
    p = run(kx.command(), env=kx.env(), check=False)
    assert p.returncode == 1 and "please log in" in p.stderr


def test_token_file(mount, world, cluster, tmp_path):
    token = tmp_path / "token"
    token.write_text(token_of(cluster) + "\n")

    def change(config):
        config["users"][0]["user"] = {"tokenFile": str(token)}

    works(mount(kubeconfig=edited(cluster, tmp_path, change)), world)


def break_token(config):
    config["users"][0]["user"] = {"token": "nobody-has-this"}


def break_authority(config):
    del config["clusters"][0]["cluster"]["certificate-authority-data"]


def break_server(config):
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"


@pytest.mark.parametrize("change, said", [(break_token, "401"), (break_authority, "certificate"),
                                          (break_server, "127.0.0.1")])
def test_wrong(mount, cluster, tmp_path, change, said):
    """An error is reported, and nothing is mounted."""
    kx = mount(kubeconfig=edited(cluster, tmp_path, change), start=False)
    p = run(kx.command(), env=kx.env(), check=False)
    assert p.returncode == 1 and said in p.stderr, p.stderr
    assert not os.listdir(kx.mnt)


# --- away for a while --------------------------------------------------------------------------


def test_killed(kx, world):
    """After kill -9, the next start knows its jobs, and launches nothing."""
    text = app(HOLD)
    job = kx.submit(text, "app.yaml")
    pod = running(job)
    kx.restart(signal.SIGKILL)
    assert kx.job_of("app.yaml").id == job.id and job.replica()["state"] == "RUNNING"
    assert job.read("app.yaml") == text and kx.read("submit/app.yaml") == text
    world.release(pod)
    job.finish()
    assert list(world.jobs()) == [job.id]
    run(["rm", "-r", str(job.dir)])
    assert not world.jobs()


def test_killed_while_submitting(kx, world):
    """kxfs is killed at any moment of a submission. The job is launched once or not at all, and if
    so, kxfs knows that it is ours."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    launched = {}
    for k in range(8):
        # The server may handle the last request only after kxfs has restarted. The name shows which
        # launch it was.
        (kx.base / "app.yaml").write_text(app(HOLD, name=f"app{k}"))
        cp = popen(["cp", str(kx.base / "app.yaml"), str(kx / f"submit/{k}.yaml")])
        time.sleep(rng.random() * 0.06)
        kx.end(signal.SIGKILL)
        cp.wait(timeout=60)
        kx.start()
        for name in world.jobs():
            assert launched.setdefault(name.partition("-")[0], name) == name
            wait_for(lambda n=name: n in decided(kx), what="the job that was launched")
            assert "app.yaml" in kx.ls("jobs", name)
            run(["rm", "-r", str(kx / "jobs" / name)])
            assert name not in world.jobs()
        wait_for(lambda: decided(kx) == set(world.jobs()), what="the same jobs here and there")


def test_server_away(own_cluster, mount):
    """While the server is away, everything known remains readable and is marked stale. Writes fail
    soon. Everything recovers automatically."""
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
