# SPDX-License-Identifier: MIT
"""The systems in which packages are tested: root file systems that mmdebstrap makes from the
archives of this machine's apt.

Fixtures:
  packages          the directory in which contrib/package has built everything
  arm64             a directory with what is needed to compile and link for arm64, not installed
  bare, full        archives of root file systems: with only glibc and the essential tools; with the
                    libraries of kxfs, and man, bash completion, systemd and rpm
  bookworm, trixie  archives of root file systems of Debian 12 and 13, with fuse3 and Python
  in_root           run a script in a root file system, in its own namespaces and on a tmpfs, so that
                    nothing remains
  booted            the same in a service of systemd, which is the first process

KXFS_PACKAGE_DIR names a directory that keeps these for the next run. It is for people who work on
these tests."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import harness
import pytest
from harness import ROOT
from lacking import need

# what is made for all tests must survive the end of a test with mounts
MARK = f"{harness.RUN}/packages"
LIMIT = 1800  # in seconds; far more than expected, even if another stage compiles at the same time
LIBRARIES = ["fuse3", "libjson-c5", "libyaml-0-2", "libuv1", "libcurl4"]
DEVELOPMENT = ["libc6-dev", "libcmocka-dev", "libcurl4-openssl-dev", "libfuse3-dev", "libjson-c-dev", "libuv1-dev", "libyaml-dev",
               "uthash-dev"]
PYTHON = ["fuse3", "mount", "python3-venv", "passwd"]
TOOLS = ["at", "bash-completion", "cron", "man-db", "mount", "rpm", "systemd"]

# How each root file system is used: $1 is the directory where it is mounted, $2 its archive, and
# the rest is copied to /kx. The PID namespace kills all remaining processes. The mount namespace
# removes every mount and the tmpfs itself.
ENTER = """set -eu
root=$1 archive=$2
shift 2
mount -t tmpfs -o mode=755 root "$root"
tar -C "$root" -xf "$archive"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom tty fuse; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/kx"
cp -- "$@" "$root/kx/"
ip link set lo up 2>/dev/null || :
"""
# pivot_root, because user namespaces can't be created inside a chroot.
SCRIPT = """
cd "$root"
mkdir old
pivot_root . old
umount -l old
rmdir old
exec /bin/bash -eux /kx/script
"""
# systemd ends with the script, and with its status. The output of both goes to the console.
SYSTEMD = """
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 run "$root/run"
touch "$root/dev/console"
mount --bind "$root/../console" "$root/dev/console"
cat >"$root/etc/systemd/system/script.service" <<'END'
[Unit]
SuccessAction=exit-force
FailureAction=exit-force
FailureActionExitStatus=1

[Service]
Type=oneshot
ExecStart=/bin/bash -eux /kx/script
StandardOutput=append:/dev/console
StandardError=inherit
END
container=test exec chroot "$root" /lib/systemd/systemd --unit=script.service --log-target=console --show-status=no
"""
NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts"]


def archives(release):
    """Return the sources.list lines for the Debian archives that apt uses here, without third
    parties. For another RELEASE, return only the main archive."""
    text = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) $(COMPONENT)|$(ORIGIN)"
    out = subprocess.run(["apt-get", "indextargets", "--format", text, "Created-By: Packages"], stdout=subprocess.PIPE,
                         check=True, text=True).stdout
    found = sorted({line.rsplit("|", 1)[0] for line in out.splitlines() if line.endswith("|Debian")})
    assert found, f"apt-get update has not been run, or apt knows no archive of Debian:\n{out}"
    if release != codename():
        found = [re.sub(rf" {codename()} ", f" {release} ", line) for line in found if f" {codename()} " in line]
    return "\n".join(found) + "\n"


def apt_options():
    """Return apt's proxy options of this machine, for the apt of mmdebstrap."""
    out = subprocess.run(["apt-config", "dump"], stdout=subprocess.PIPE, check=True, text=True).stdout
    proxies = [line for line in out.splitlines() if line.startswith("Acquire::") and "proxy" in line.lower()]
    return [f"--aptopt={line}" for line in [*proxies, 'Acquire::Retries "8";']]


def mmdebstrap(target, variant, packages, *options, release=None):
    """Start to make TARGET, of this Debian or another RELEASE. Several may be under way."""
    release = release or codename()
    env = {**os.environ, "KXFS_TEST_MARK": MARK}
    process = subprocess.Popen(
        ["unshare", "--mount", "mmdebstrap", "--mode=root", f"--variant={variant}", f"--include={','.join(packages)}",
         *apt_options(), *options, release, target, "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    process.stdin.write(archives(release))
    process.stdin.close()
    process.stdin = None
    return process


def codename():
    for line in pathlib.Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=")[1]
    raise AssertionError("which Debian is this?")


def finish(process):
    out, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, out[-4000:]


def pytest_collection_modifyitems(items):
    """The first test that uses what is built for all waits for it."""
    for item in items:
        if "package" in item.path.parts:
            item.add_marker(pytest.mark.timeout(LIMIT + 300))


@pytest.fixture(scope="session")
def making(request, tmp_path_factory):
    """Start everything that takes long and that tests of this run need: {"bare": (path, process),
    ...}."""
    kept = os.environ.get("KXFS_PACKAGE_DIR")
    top = pathlib.Path(kept) if kept else tmp_path_factory.mktemp("package")
    env = {**os.environ, "KXFS_TEST_MARK": MARK, "KXFS_SYSROOTS": str(top / "sysroots")}
    env.pop("DEB_BUILD_OPTIONS", None)
    begin = {
        "bare.tar": lambda path: mmdebstrap(path, "essential", ["mount"]),
        "full.tar": lambda path: mmdebstrap(path, "apt", LIBRARIES + TOOLS),
        "bookworm.tar": lambda path: mmdebstrap(path, "apt", PYTHON, release="bookworm"),
        "trixie.tar": lambda path: mmdebstrap(path, "apt", PYTHON, release="trixie"),
        "arm64": lambda path: mmdebstrap(path, "extract", DEVELOPMENT, "--architectures=arm64"),
        "packages": lambda path: subprocess.Popen(
            [ROOT / "contrib/package", "all", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=env),
    }
    wanted = {name for item in request.session.items for name in item.fixturenames}
    wanted |= {value for item in request.session.items if hasattr(item, "callspec") for value in item.callspec.params.values()
               if isinstance(value, str)}
    made = {name.split(".")[0]: (top / name, None if (top / name).exists() else start(top / name))
            for name, start in begin.items() if name.split(".")[0] in wanted}
    yield made
    for _, process in made.values():
        if process and process.poll() is None:
            process.terminate()
            process.wait()
    if not kept:
        shutil.rmtree(top)


def made_by(name):
    @pytest.fixture(scope="session", name=name)
    def fixture(making):
        path, process = making[name]
        if process and not process.stdout.closed:
            finish(process)
        return path

    return fixture


arm64, bare, full, packages = made_by("arm64"), made_by("bare"), made_by("full"), made_by("packages")
bookworm, trixie = made_by("bookworm"), made_by("trixie")


@pytest.fixture
def enter(tmp_path):
    """Return enter(begin, end, archive, script, *files), which returns the output. BEGIN is the
    command that creates the namespaces, END the end of ENTER."""
    def run(begin, end, archive, script, *files):
        (tmp_path / "root").mkdir(exist_ok=True)
        (tmp_path / "script").write_text(script)
        (tmp_path / "console").write_text("")
        p = harness.run([*begin, "bash", "-c", ENTER + end, "enter", tmp_path / "root", archive, tmp_path / "script", *files],
                        check=False, timeout=LIMIT, stderr=subprocess.STDOUT,
                        env={"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
        said = p.stdout + (tmp_path / "console").read_text(errors="replace")
        assert p.returncode == 0, f"{shlex.quote(script)}\n{said[-6000:]}"
        assert not os.path.ismount(tmp_path / "root") and not list((tmp_path / "root").iterdir())
        return said

    return run


@pytest.fixture
def in_root(enter):
    return lambda *args: enter(NAMESPACES, SCRIPT, *args)


@pytest.fixture
def booted(enter):
    """systemd gets its own cgroup."""
    found = re.search(r"^(?:\S+ ){4}(\S+) .* - cgroup2 ", pathlib.Path("/proc/self/mountinfo").read_text(), re.M)
    need("cgroup2", found and os.access(found[1], os.W_OK))
    group = pathlib.Path(found[1], f"kxfs-test-{os.getpid()}")
    group.mkdir()
    yield lambda *args: enter(["bash", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group, *NAMESPACES, "--cgroup"], SYSTEMD, *args)
    harness.wait_for(lambda: "populated 0" in (group / "cgroup.events").read_text(), what="the processes of the group to end")
    for top, _, _ in os.walk(group, topdown=False):
        os.rmdir(top)
