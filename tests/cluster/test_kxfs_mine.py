# SPDX-License-Identifier: MIT
"""The option `mine` on a real API server: two users of one namespace, of whom each sees what is his."""

import pathlib

import harness
from mounted import HOLD, app, running

USER = "kxfs/user"


def labelled(world, resource, user):
    """The names of the objects of a resource that have the label of USER, as the server chooses them."""
    found = world.kubectl("get", resource, "-l", f"{USER}={user}", "-o", "name").stdout.split()
    return {name.partition("/")[2] for name in found}


def test_two_users(mount, cluster, world, top):
    config = pathlib.Path(top) / "mine-config"
    config.write_text(pathlib.Path(cluster.kubeconfig("token")).read_text())
    config.chmod(0o644)
    everything = mount()
    mounts = {user: mount(kubeconfig=config, options="queue=default,mine", user=None if user == "root" else user)
              for user in ("root", harness.USER)}
    shown = {}
    for user, kx in mounts.items():
        kx.call(f"cat > submit/app.yaml <<'END'\n{app(HOLD)}\nEND")
        (shown[user],) = kx.call("ls jobs").stdout.split()  # at once
    assert shown["root"] != shown[harness.USER]
    for user, kx in mounts.items():
        name = shown[user]
        harness.wait_for(lambda n=name: n in everything.ls("jobs"), what="the job in the mount of all")
        pod = running(harness.Job(everything, name))
        assert labelled(world, "jobs.batch.volcano.sh", user) == {name}
        assert labelled(world, "pods", user) == {pod}
        (group,) = labelled(world, "podgroups.scheduling.volcano.sh", user)
        assert group.startswith(name)

        def has_log(kx=kx, name=name):
            return "begin" in kx.call(f"cat jobs/{name}/main-0/log 2>&1", check=False).stdout

        harness.wait_for(has_log, what=f"the output of {name}")
        world.release(pod)
        assert kx.call(f"cat jobs/{name}/wait").stdout == "SUCCEEDED\n"
        assert kx.call("ls jobs").stdout.split() == [name]
        kx.restart()
        assert kx.call("ls jobs").stdout.split() == [name]
    harness.wait_for(lambda: set(everything.ls("jobs")) == set(shown.values()), what="the jobs of both")
