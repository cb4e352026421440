# SPDX-License-Identifier: MIT
"""The node: containerd and a kubelet that run real pods, in their own namespaces.

Both share a mount namespace and a PID namespace, so that nothing of theirs outlives the first
process (node_init.py). containerd also has its own network namespace, so bridge names, addresses
and forwarding do not collide with other clusters. The kubelet listens on the machine's loopback
interface, where the API server reaches it for logs. The disadvantages: `kubectl exec`, attach and
port-forward do not work, because they use containerd's own port. Neither do HTTP and TCP probes."""

import json
import signal
import subprocess
import sys

from process import Part, wait_for

NODE = "localhost"
# containerd's messages when it is ready
SERVES = ("containerd successfully booted", "Start streaming server")
# nsenter can enter a cgroup namespace, but not a cgroup.
IN_GROUP = ["sh", "-c", """for group in /sys/fs/cgroup/node /sys/fs/cgroup/*/node; do
[ ! -d $group ] || echo 0 >$group/cgroup.procs; done; exec "$@" """, "sh"]

CONTAINERD = """version = 2
root = "{base}/containerd"
state = "{base}/containerd-state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{base}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{base}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{base}/cni"
"""

NETWORK = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [{
        "type": "bridge", "bridge": "pods", "isGateway": True, "ipMasq": False,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/16"}]],
                 "routes": [{"dst": "0.0.0.0/0"}]},
    }],
}


def kubelet_config(cluster):
    pki, base = cluster.ca.dir, cluster.base
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": cluster.ports["kubelet"],
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": cluster.ports["kubelet-health"],
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                           "x509": {"clientCAFile": str(cluster.ca.ca)}},
        "authorization": {"mode": "AlwaysAllow"},
        "tlsCertFile": str(pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{base}/containerd.sock",
        "podLogsDir": str(base / "pod-logs"),
        "resolvConf": str(base / "resolv.conf"),
        # This machine may lack cgroups v2, or the permission to change OOM scores.
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "oomScoreAdj": 0,
        "localStorageCapacityIsolation": False,
        "featureGates": {"KubeletInUserNamespace": True},
        # Don't evict pods because a developer's machine has a full disk or little memory.
        "evictionHard": {"memory.available": "10Mi", "nodefs.available": "0.1%",
                         "nodefs.inodesFree": "0.1%", "imagefs.available": "0.1%"},
        "imageGCHighThresholdPercent": 100,
        # Small, so that a test can make a log rotate within seconds.
        "containerLogMaxSize": cluster.log_size,
        "containerLogMaxFiles": 3,
        "containerLogMonitorInterval": "3s",
        "maxPods": 250,
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "nodeStatusUpdateFrequency": "5s",
        "shutdownGracePeriod": "0s",
    }


class Node:
    """`init`, `containerd` and `kubelet` of one cluster."""

    def __init__(self, cluster, group):
        self.base = cluster.base
        self.init = Part("node-init", self.base, [
            "unshare", "--mount", "--pid", "--net", "--fork", "--kill-child=SIGKILL",
            "--mount-proc", "--propagation", "private",
            sys.executable, cluster.here / "node_init.py", self.base / "node", group])
        self.cluster = cluster
        self.containerd = self.kubelet = None

    def write_files(self):
        cluster, base = self.cluster, self.base
        cluster.ca.make("kubelet", f"system:node:{NODE}", ["system:nodes"], [NODE, "127.0.0.1"])
        (base / "containerd.toml").write_text(
            CONTAINERD.format(base=base, pause=cluster.images["pause"]))
        (base / "cni").mkdir()
        (base / "cni/10-pods.conflist").write_text(json.dumps(NETWORK))
        (base / "resolv.conf").write_text("options ndots:1\n")
        (base / "kubelet.json").write_text(json.dumps(kubelet_config(cluster)))

    def start(self):
        base, cluster = self.base, self.cluster
        self.init.start()

        def ready():
            self.init.check()
            return (base / "node/ready").exists()

        wait_for(ready, "the node's namespaces")
        children = f"/proc/{self.init.proc.pid}/task/{self.init.proc.pid}/children"
        with open(children, encoding="ascii") as file:
            first = file.read().split()[0]
        enter = ["nsenter", "--target", first, "--mount", "--pid", "--cgroup"]
        self.containerd = Part("containerd", base, [
            *IN_GROUP, "containerd", "--config", base / "containerd.toml"], enter=[*enter, "--net"])
        self.kubelet = Part("kubelet", base, [
            *IN_GROUP, cluster.parts_dir / "kubelet", f"--config={base}/kubelet.json",
            f"--kubeconfig={cluster.kubeconfig('kubelet')}", f"--root-dir={base}/kubelet",
            # the name under which cadvisor knows it
            f"--hostname-override={NODE}", f"--containerd={base}/containerd.sock"], enter=enter)
        self.start_containerd()
        self.ctr("-n", "k8s.io", "images", "import", cluster.parts_dir / "images.tar")
        self.kubelet.start()

    def start_containerd(self):
        """Start containerd and wait until it serves a kubelet. Otherwise the kubelet would exit
        immediately."""
        log = self.containerd.log

        def times():
            said = log.read_text(errors="replace") if log.exists() else ""
            return min(said.count(text) for text in SERVES)

        before = times()
        self.containerd.start()

        def serves():
            self.containerd.check()
            return times() > before

        wait_for(serves, "containerd")

    def ctr(self, *args):
        return subprocess.run(["ctr", "-a", self.base / "containerd.sock", *map(str, args)],
                              check=True, capture_output=True, text=True, timeout=120)

    def stop(self):
        """Stop immediately: when the first process of a PID namespace ends, the kernel kills all
        others."""
        self.init.stop(signal.SIGKILL)
        for part in (self.kubelet, self.containerd):
            if part:
                part.stop()
