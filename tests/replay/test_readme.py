# SPDX-License-Identifier: MIT
"""The examples for a cluster in README.md and docs/cluster.md, and the picture in README."""

import os
import pathlib
import re
import threading
import time
import xml.etree.ElementTree as ET

import kubeconfig
import pytest
import store as st
from harness import ROOT, is_mounted, marked_pids, run, wait_for
from test_docs import play, readme
from test_volcano_why import FULL, event, group

# --- Examples ---------------------------------------------------------------------------------
# The examples for a cluster in README.md and docs/cluster.md.


class Beside:
    """A context manager that runs `_work` in a thread. It ends when `over` is set."""

    def __init__(self, server, volcano):
        self.server, self.volcano = server, volcano
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._work)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *exc):
        self.over.set()
        self.thread.join(60)


class Trainer(Beside):
    """Simulates the jobs of README's train.yaml: each worker prints three epochs."""

    namespace = "training"

    def _work(self):
        done = set()
        while not self.over.wait(0.02):
            jobs, _ = self.server.store.objects(st.JOBS)
            for job in jobs:
                pods = self.volcano.pods(job.name, self.namespace)
                if job.name not in done and len(pods) == 2:
                    done.add(job.name)
                    self._run(pods)

    def _run(self, pods):
        self.volcano.run(*pods, namespace=self.namespace)
        for rank, pod in enumerate(pods):
            log = self.volcano.log(pod, namespace=self.namespace)
            for epoch in (1, 2, 3):
                log.append(f"epoch {epoch} of worker {rank}\n".encode())
            self.volcano.finish(pod, namespace=self.namespace)


@pytest.mark.parametrize("page", ["README.md", "docs/cluster.md"])
def test_examples(make_kx, server, volcano, page):
    text = readme()[1] if page == "README.md" else (ROOT / page).read_text()
    server.api.queues["research"] = "Open"
    kx = make_kx(start=False)
    config = kubeconfig.write(kx.base / "config", kubeconfig.config(server))
    with Trainer(server, volcano):
        mount_point = play(kx, text, KUBECONFIG=str(config))
    wait_for(lambda: not is_mounted(mount_point) and not marked_pids(), what="the umount")


def test_quickstart_refuses_a_cluster(kx):
    """contrib/quickstart does not launch its example on a cluster."""
    p = run([ROOT / "contrib/quickstart", kx.mnt], env={"KXFS_BUILD_DIR": "/dev/null/build"}, check=False)
    assert p.returncode == 1 and f"quickstart: {kx.mnt} is a mount of a cluster" in p.stderr and not kx.ls("jobs")


# --- The picture ------------------------------------------------------------------------------
# README's picture shows a real session: contrib/picture draws the commands and what kxfs prints. Only the cluster is
# simulated: a Volcano that has capacity for two pods.
#
# `KXFS_PICTURE=docs pytest test_readme.py` draws the pictures of README again.

SVG = "{http://www.w3.org/2000/svg}"


class Busy(Beside):
    """Lets the first job print line by line. The second job waits, because there is no capacity for it."""

    def _named(self, name):
        jobs, _ = self.server.store.objects(st.JOBS, lambda job: job.name.startswith(name))
        return jobs[0] if jobs else None

    def _as_in_life(self, job, age):
        """Make JOB look as if another user had submitted it AGE seconds ago."""
        def edit(tree):
            tree["metadata"]["annotations"]["kxfs/submitter"] = "ada@login1"
            tree["metadata"]["creationTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age))

        self.server.store.change(st.JOBS, "test", job.name, edit)

    def _await(self, name):
        while not self.over.wait(0.05):
            job = self._named(name)
            if job and self.volcano.pods(job.name):
                return job
        return None

    def _work(self):
        train = self._await("train")
        if not train:
            return
        self._as_in_life(train, 3 * 3600)
        pods = self.volcano.start(train.name)
        sweep = self._await("sweep")
        if not sweep:
            return
        self._as_in_life(sweep, 12 * 60)
        waiting = group(sweep)
        waiting["spec"].update(minMember=8, minResources={"cpu": "800m"})
        self.server.store.put(st.PODGROUPS, waiting)
        about = self.server.store.find(st.PODGROUPS, "test", waiting["metadata"]["name"])
        self.server.store.put(st.EVENTS, event(about, "PodGroup", FULL))
        for epoch, loss in enumerate(("2.31", "1.78", "1.42", "1.18"), 1):
            for pod in pods:
                self.volcano.log(pod).append(f"epoch {epoch} loss {loss}\n".encode())
            self.over.wait(0.3)


def lines_of(path):
    return ["".join(text.itertext()) for text in ET.fromstring(path.read_text()).iter(f"{SVG}text")]


def test_picture(kx, server, volcano, tmp_path):
    where = pathlib.Path(ROOT, os.environ["KXFS_PICTURE"]) if "KXFS_PICTURE" in os.environ else tmp_path
    with Busy(server, volcano):
        run([str(ROOT / "contrib/picture"), str(kx.mnt), str(where)])
    lines = lines_of(where / "session-light.svg")
    assert lines == lines_of(where / "session-dark.svg")
    said = "\n".join(lines)
    assert re.search(r"^train-\w+ +RUNNING +3h .* 2/2 .* ada@login1 ", said, re.M)
    assert re.search(r"^sweep-\w+ +PENDING +12m ", said, re.M) and "the cluster has no capacity for it now" in said
    assert said.count("epoch 4 loss 1.18") == 2 and lines[-1] == "epoch 4 loss 1.18"


def test_the_picture_is_of_today():
    """README's pictures show the current commands of the script."""
    script = (ROOT / "contrib/picture").read_text()
    for name in ("light", "dark"):
        typed = [line[2:] for line in lines_of(ROOT / f"docs/session-{name}.svg") if line.startswith("$ ")]
        assert len(typed) >= 6 and all(f'"{command}"' in script for command in typed)
