# SPDX-License-Identifier: MIT
"""Build the parts of the tests' Kubernetes once, into a cache outside the repository.

`python3 build.py` prints the directory, and parts() returns it. It contains etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, kubelet, kubectl, metrics-server, helm and kustomize (from
the Go modules that parts/ names). It also contains images.tar with this machine's busybox and a
pause image. The directory's name depends on the inputs, so a change of parts/ or of this file
builds a new directory beside the old one. Directories that were unused for two weeks are removed.

KXFS_CACHE_DIR is the cache (default: $XDG_CACHE_HOME/kxfs-tests or ~/.cache/kxfs-tests). The build
requires Go 1.26. Any Go since 1.21 downloads that version itself. Without such a Go, install
Debian's Go, which then downloads the module golang.org/toolchain."""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLCHAIN = "go1.26.4"
KEEP = 14 * 86400  # seconds that another checkout's build is kept
PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server",
    "helm": "helm.sh/helm/v3/cmd/helm",
    "kustomize": "sigs.k8s.io/kustomize/kustomize/v5",
}
BUSYBOX = "docker.io/library/busybox:1.35"
PAUSE = "registry.k8s.io/pause:3.10.1"
PAUSE_C = """
#include <signal.h>
#include <unistd.h>
static void end(int signal) { (void)signal; _exit(0); }
int main(void) { signal(SIGTERM, end); signal(SIGINT, end); for (;;) pause(); }
"""


def cache_dir():
    given = os.environ.get("KXFS_CACHE_DIR")
    if given:
        return pathlib.Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(home) / "kxfs-tests"


def parts():
    """Return the directory of the parts. Build them if they are missing."""
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for path in (HERE / "parts/go.mod", HERE / "parts/go.sum", pathlib.Path(__file__).resolve()):
        digest.update(path.read_bytes())
    done = cache / f"parts-{digest.hexdigest()[:16]}"
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.is_dir():
            # An interrupted build leaves this behind. Go's own cache makes the next build fast.
            new = cache / "parts-new"
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            build_programs(new)
            build_images(new / "images.tar")
            new.rename(done)
        os.utime(done)
        for old in cache.glob("parts-*"):
            if old.stat().st_mtime < time.time() - KEEP:
                shutil.rmtree(old, ignore_errors=True)
    return done


# --- programs --------------------------------------------------------------------------------


def build_programs(out):
    go, env = find_go()
    # Collect garbage less often, which needs more memory: about 1 GiB for each of the two
    # compilers.
    env.update(CGO_ENABLED="0", GOFLAGS="-mod=readonly", GOWORK="off", GOGC="400")
    command = [go, "build", "-p", str(min(2, os.cpu_count() or 1)), "-trimpath", "-buildvcs=false",
               "-ldflags=-s -w", "-o", f"{out}/"]
    print("Building Kubernetes for the tests; on two cores this takes about 5 minutes.",
          file=sys.stderr, flush=True)
    subprocess.run(["nice", *command, *PROGRAMS.values()], cwd=HERE / "parts", env=env,
                   check=True, timeout=3600, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    (out / "server").rename(out / "etcd")


def find_go():
    """Return (program, environment) of a Go that is new enough, or that downloads a newer one
    itself."""
    env = dict(os.environ)
    env.setdefault("HOME", str(cache_dir()))
    for go in (shutil.which("go"), "/usr/local/go/bin/go", "/usr/lib/go/bin/go"):
        if go and os.access(go, os.X_OK) and go_version(go) >= (1, 21):
            env["GOTOOLCHAIN"] = "auto"
            return go, env
    subprocess.run([ROOT / "contrib/packages", "go"], check=True, stdout=sys.stderr)
    return fetch_go(env), env


def go_version(go):
    """Return the version of the program itself, not of the toolchain that it would switch to."""
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    said = subprocess.run([go, "version"], env=env, check=False, capture_output=True, text=True,
                          cwd="/").stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def fetch_go(env):
    """Download a Go toolchain, which is published as a module, with a Go that is too old to switch."""
    machine = subprocess.run(["go", "env", "GOOS", "GOARCH"], env=env, check=True, text=True,
                             capture_output=True).stdout.split()
    module = f"golang.org/toolchain@v0.0.1-{TOOLCHAIN}.{'-'.join(machine)}"
    reply = subprocess.run(["go", "mod", "download", "-json", module], env=env, check=False,
                           text=True, capture_output=True, cwd="/", timeout=1800)
    if reply.returncode:
        raise RuntimeError("the tests' Kubernetes needs Go 1.26 or newer to be built, and it could "
                           f"not be fetched:\n{reply.stdout}{reply.stderr}")
    place = cache_dir() / "go"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(json.loads(reply.stdout)["Dir"], place)
    for program in (*place.glob("bin/*"), *place.glob("pkg/tool/*/*")):
        program.chmod(0o755)  # a module has no file modes
    return str(place / "bin/go")


# --- images ----------------------------------------------------------------------------------


def build_images(path):
    """Write both images to one archive, in the format of `docker save`."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        with tarfile.open(path, "w") as archive:
            manifest = [
                add_image(archive, BUSYBOX, busybox_layer(), ["sh"]),
                add_image(archive, PAUSE, pause_layer(pathlib.Path(scratch)), ["/pause"]),
            ]
            add_file(archive, "manifest.json", json.dumps(manifest).encode())


def add_image(archive, name, layer, command):
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine],
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/sbin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    add_file(archive, config_name, config)
    add_file(archive, f"{digest}.tar", layer)
    return {"Config": config_name, "RepoTags": [name], "Layers": [f"{digest}.tar"]}


def add_file(archive, name, data, mode=0o644):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    archive.addfile(info, io.BytesIO(data))


def add_directory(archive, name, mode=0o755):
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    archive.addfile(info)


def add_link(archive, name, target):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    archive.addfile(info)


@contextlib.contextmanager
def layer_of(buffer):
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        yield archive


def libraries(program):
    """Return the shared libraries that PROGRAM needs, including its loader. The list is empty if it
    is static."""
    said = subprocess.run(["ldd", program], check=False, text=True, capture_output=True).stdout
    return re.findall(r"(/\S+) \(0x", said)


def busybox_layer():
    """Return Debian's busybox, static or not, with a link for every applet."""
    program = pathlib.Path("/bin/busybox")
    applets = subprocess.run([program, "--list"], check=True, text=True,
                             capture_output=True).stdout.split()
    buffer = io.BytesIO()
    with layer_of(buffer) as archive:
        for name in ("bin", "dev", "etc", "proc", "root", "sys", "usr", "usr/bin", "var"):
            add_directory(archive, name)
        add_directory(archive, "tmp", 0o1777)
        for path in (str(program), *libraries(program)):
            add_file(archive, path[1:], pathlib.Path(path).read_bytes(), 0o755)
        for applet in applets:
            if applet != "busybox":
                add_link(archive, f"bin/{applet}", "busybox")
        add_link(archive, "usr/bin/env", "../../bin/busybox")
        add_link(archive, "sbin", "bin")
        add_file(archive, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
        add_file(archive, "etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    return buffer.getvalue()


def pause_layer(scratch):
    """Return the program that keeps a pod's namespaces open: it waits for SIGTERM."""
    (scratch / "pause.c").write_text(PAUSE_C)
    subprocess.run(["gcc", "-Os", "-static", "-s", "-o", scratch / "pause", scratch / "pause.c"],
                   check=True)
    buffer = io.BytesIO()
    with layer_of(buffer) as archive:
        add_file(archive, "pause", (scratch / "pause").read_bytes(), 0o755)
    return buffer.getvalue()


if __name__ == "__main__":
    print(parts())
