# SPDX-License-Identifier: MIT
"""The examples of a cluster in README.md and docs/cluster.md."""

import threading

import kubeconfig
import pytest
import store as st
from harness import ROOT, is_mounted, marked_pids, wait_for
from transcript import play, readme
from volcano import FakeVolcano


class Trainer:
    """Simulates the jobs of README's train.yaml: three epochs a worker."""

    def __init__(self, server, namespace):
        self.server = server
        self.namespace = namespace
        self.volcano = FakeVolcano(server)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._work)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *exc):
        self.over.set()
        self.thread.join(60)

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
def test_examples(make_kx, server, page):
    text = readme()[1] if page == "README.md" else (ROOT / page).read_text()
    server.api.queues["research"] = "Open"
    kx = make_kx(start=False)
    config = kubeconfig.write(kx.base / "config", kubeconfig.config(server))
    with Trainer(server, "training"):
        mount_point = play(kx, text, KUBECONFIG=str(config))
    wait_for(lambda: not is_mounted(mount_point) and not marked_pids(), what="the umount")
