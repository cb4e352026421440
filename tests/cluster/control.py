# SPDX-License-Identifier: MIT
"""Command lines and files of the control plane: etcd, API server, controllers, scheduler."""

import json

from process import Part

SERVICE_RANGE = "10.96.0.0/16"
# Pods that ask for Volcano's scheduler get one; what a gang needs is for the test controllers.
SCHEDULERS = ("default-scheduler", "volcano")


def write_files(cluster):
    base, ca = cluster.base, cluster.ca
    ca.key("accounts")
    ca.make("apiserver", "kube-apiserver", hosts=("127.0.0.1", "localhost", "kubernetes", "10.96.0.1"))
    ca.make("front-proxy", "front-proxy-client")
    ca.make("kubelet-client", "kube-apiserver-kubelet-client", ["system:masters"])
    (base / "audit-policy.json").write_text(json.dumps({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    }))
    (base / "scheduler.json").write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig("kube-scheduler")), "qps": 200, "burst": 400},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2,
        "profiles": [{"schedulerName": name} for name in SCHEDULERS],
    }))


def etcd(cluster):
    url, peer = (f"http://127.0.0.1:{cluster.ports[name]}" for name in ("etcd", "etcd-peer"))
    return Part("etcd", cluster.base, [
        cluster.parts_dir / "etcd", "--data-dir", cluster.base / "etcd", "--name", "kxfs",
        "--listen-client-urls", url, "--advertise-client-urls", url,
        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        "--initial-cluster", f"kxfs={peer}", "--unsafe-no-fsync", "--log-level", "warn",
    ])


def apiserver(cluster):
    base, pki = cluster.base, cluster.ca.dir
    return Part("apiserver", base, [
        cluster.parts_dir / "kube-apiserver", "--bind-address=127.0.0.1",
        f"--secure-port={cluster.ports['apiserver']}",
        # Must not be loopback; nobody connects to it.
        "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
        f"--etcd-servers=http://127.0.0.1:{cluster.ports['etcd']}",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key",
        f"--service-account-key-file={pki}/accounts.key",
        f"--service-account-signing-key-file={pki}/accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICE_RANGE}", "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--token-auth-file={base}/tokens.csv",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        "--kubelet-preferred-address-types=Hostname", "--allow-privileged=true",
        # Who asks is told to servers behind it, as metrics-server.
        f"--requestheader-client-ca-file={pki}/ca.crt", "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki}/front-proxy.crt", f"--proxy-client-key-file={pki}/front-proxy.key",
        f"--audit-policy-file={base}/audit-policy.json", f"--audit-log-path={cluster.audit_log}",
        "--audit-log-maxsize=1000", "--shutdown-delay-duration=0s",
    ])


def controller_manager(cluster):
    pki, kubeconfig = cluster.ca.dir, cluster.kubeconfig("kube-controller-manager")
    return Part("controller-manager", cluster.base, [
        cluster.parts_dir / "kube-controller-manager", "--bind-address=127.0.0.1",
        f"--secure-port={cluster.ports['controller-manager']}", f"--kubeconfig={kubeconfig}",
        f"--root-ca-file={pki}/ca.crt", f"--service-account-private-key-file={pki}/accounts.key",
        "--use-service-account-credentials", "--leader-elect=false",
        "--kube-api-qps=200", "--kube-api-burst=400",  # a Job of a thousand pods is no matter of minutes
        f"--cert-dir={cluster.base}/controller-manager",
    ])


def scheduler(cluster):
    return Part("scheduler", cluster.base, [
        cluster.parts_dir / "kube-scheduler", "--bind-address=127.0.0.1",
        f"--secure-port={cluster.ports['scheduler']}", f"--config={cluster.base}/scheduler.json",
        f"--cert-dir={cluster.base}/scheduler",
    ])


def metrics_server(cluster):
    """Looks at the kubelet every 15 s, as its own manifests say."""
    pki, kubeconfig = cluster.ca.dir, cluster.kubeconfig("volcano")
    cluster.ca.make("metrics", "metrics", hosts=("localhost",))
    return Part("metrics-server", cluster.base, [
        cluster.parts_dir / "metrics-server", "--bind-address=127.0.0.1", f"--secure-port={cluster.ports['metrics']}",
        f"--tls-cert-file={pki}/metrics.crt", f"--tls-private-key-file={pki}/metrics.key",
        *(f"--{what}kubeconfig={kubeconfig}" for what in ("", "authentication-", "authorization-")),
        f"--kubelet-certificate-authority={pki}/ca.crt", "--kubelet-preferred-address-types=Hostname",
        "--kubelet-use-node-status-port", "--metric-resolution=15s",
    ])
