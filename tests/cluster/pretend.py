# SPDX-License-Identifier: MIT
"""A node on which nothing runs: what a kubelet would say of its pods is said at once, so a thousand of them cost no more
than the words. Pods come to it by the resource that it alone has: one nvidia.com/gpu each."""

import threading
import time

import api
from process import wait_for

NAME = "pretend"
NODES, LEASES = "/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ROOM = {"cpu": "1000", "memory": "1000Gi", "pods": "5000", "nvidia.com/gpu": "5000"}
HEARTBEAT = 5


def now(form="%Y-%m-%dT%H:%M:%SZ"):
    return time.strftime(form, time.gmtime())


class PretendNode(threading.Thread):
    """While it is entered the node is there. `code(pod)` is how a pod ends: its exit code; None: it runs on."""

    def __init__(self, cluster, code):
        super().__init__(daemon=True)
        self.client = api.from_kubeconfig(cluster.kubectl_path, cluster.admin)  # a thread's own connection
        self.code = code
        self.over = threading.Event()
        self.most = 0  # pods that have run at once

    def __enter__(self):
        self.client.post(NODES, {"metadata": {"name": NAME}})
        self.client.post(LEASES, {"metadata": {"name": NAME}, "spec": {"holderIdentity": NAME, "leaseDurationSeconds": 40}})
        self.beat()
        self.start()
        wait_for(lambda: "taints" not in self.client.get(f"{NODES}/{NAME}")["spec"], "the node to be ready")
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.client.delete(f"{NODES}/{NAME}")
        self.client.delete(f"{LEASES}/{NAME}")

    def beat(self):
        self.client.merge(f"{NODES}/{NAME}/status", {"status": {"capacity": ROOM, "allocatable": ROOM, "conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is", "lastHeartbeatTime": now(),
             "lastTransitionTime": now()}]}})
        self.client.merge(f"{LEASES}/{NAME}", {"spec": {"renewTime": now("%Y-%m-%dT%H:%M:%S.000000Z")}})

    def run(self):
        due = 0
        while not self.over.wait(0.2):
            try:
                if time.monotonic() >= due:
                    self.beat()
                    due = time.monotonic() + HEARTBEAT
                self.look()
            except (api.Refused, OSError) as e:  # a pod that has gone; or a server that has too much to do
                print(f"{NAME}: {e}", flush=True)

    def look(self):
        pods = self.client.items(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NAME}")
        running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
        self.most = max(self.most, len(running))
        for pod in pods:
            meta, phase = pod["metadata"], pod["status"]["phase"]
            path = api.path_of("pods", meta["namespace"], meta["name"])
            if "deletionTimestamp" in meta:
                self.client.delete(path + "?gracePeriodSeconds=0")
            elif phase == "Pending":
                self.say(pod, path, None)
            elif phase == "Running" and (code := self.code(pod)) is not None:
                self.say(pod, path, code)

    def say(self, pod, path, code):
        """That it runs, or has ended with CODE."""
        began = pod["status"].get("startTime", now())
        state = {"running": {"startedAt": began}} if code is None else {"terminated": {
            "exitCode": code, "reason": "Error" if code else "Completed", "startedAt": began, "finishedAt": now()}}
        phase = "Running" if code is None else "Failed" if code else "Succeeded"
        self.client.merge(path + "/status", {"status": {
            "phase": phase, "startTime": began, "podIP": "10.0.0.1", "hostIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": str(code is None), "lastTransitionTime": now()}],
            "containerStatuses": [{"name": c["name"], "image": c["image"], "imageID": "", "ready": code is None,
                                   "containerID": f"pretend://{pod['metadata']['uid']}", "restartCount": 0,
                                   "started": code is None, "state": state} for c in pod["spec"]["containers"]]}})
