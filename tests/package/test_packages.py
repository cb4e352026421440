# SPDX-License-Identifier: MIT
"""The packages for Debian: their contents, how they are installed, a build for arm64, a release."""

import filecmp
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import tarfile

import harness
import pytest
from harness import ROOT

# --- Packages ---------------------------------------------------------------------------------
# contrib/package: what it builds is installed, used and removed in new root file systems, and
# checked by linters.

VERSION = re.search(r"^    version: '(.*)',$", (ROOT / "meson.build").read_text(), re.M)[1]
ARCH = os.uname().machine

# As an administrator would do: a job on a mount made by mount(8), then by a line of fstab.
USE = """
kxfs --version | grep -x "kxfs {version}"
mkdir /mnt/kx
mount -t kxfs local: /mnt/kx -o cancel=all
grep ' /mnt/kx .* fuse.kxfs local: ' /proc/self/mountinfo
cp {examples}/hello.yaml /mnt/kx/submit/
test "$(cat /mnt/kx/submit/hello.yaml.job/wait)" = SUCCEEDED
umount /mnt/kx
while pgrep_kxfs; do sleep 0.1; done
echo 'local: /mnt/kx kxfs linger,nofail 0 0' >>/etc/fstab
mount /mnt/kx
test "$(cat /mnt/kx/jobs/*/state)" = SUCCEEDED
umount /mnt/kx
while pgrep_kxfs; do sleep 0.1; done
"""
# If a process ends meanwhile, grep reports an error, whatever it finds. With -q it does not.
PRELUDE = """
pgrep_kxfs() {
	grep -qsxE 'kxfs|mount.kxfs' /proc/[0-9]*/comm
}
"""
# The files beside the program: pages, completion, units.
BESIDE = """
MANPAGER=cat man kxfs | grep 'mount batch jobs as a directory'
for page in kxfs-layout kxfs-status kxfs-submit appdef mount.kxfs; do man -w $page; done
bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader kxfs; complete -p kxfs' | grep _kxfs
systemd-analyze verify --man=no kxfs@mnt-kx.service 2>&1 | grep kxfs && exit 1
systemctl --root=/ enable kxfs@mnt-kx.service
systemctl --root=/ disable kxfs@mnt-kx.service
"""
# Nothing of the package remains, except the jobs, which belong to the user.
GONE = r"""
find / -xdev -path /proc -prune -o -path /kx -prune -o -path /var/lib/kxfs -prune -o -name '*kxfs*' -print |
	grep -v '^/var/log\|^/var/cache/man/' && exit 1
test -d /var/lib/kxfs/local
"""


def script(*parts, examples="/usr/share/doc/kxfs/examples"):
    return PRELUDE + "".join(parts).replace("{version}", VERSION).replace("{examples}", examples)


def check(tmp_path, *cmd):
    """Return a linter's status and output. Such tools create caches and databases in HOME."""
    p = harness.run([*cmd], check=False, timeout=900, env={"HOME": str(tmp_path)})
    return p.returncode, p.stdout


def built(packages, pattern):
    found = sorted(packages.glob(pattern))
    assert len(found) == 1, (pattern, sorted(p.name for p in packages.iterdir()))
    return found[0]


def test_deb(packages, full, in_root):
    deb = built(packages, "kxfs_*.deb")
    in_root(full, script(f"dpkg -i /kx/{deb.name}\n", USE, BESIDE, "dpkg -P kxfs\n", GONE), deb)


UPGRADE = r"""
dpkg -i /kx/older.deb
mkdir /mnt/kx
mount -t kxfs local: /mnt/kx -o linger
cat >/mnt/kx/submit/long.yaml <<'END'
name: long
roles:
- {name: main, image: none, entrypoint: sh, args: [-c, 'echo begun; until test -e /kx/go; do sleep 0.1; done; echo ended']}
END
job=$(readlink -f /mnt/kx/submit/long.yaml.job)
until grep -x begun $job/main-0/log; do sleep 0.1; done
dpkg -i /kx/{newer}
grep -x begun $job/main-0/log
cp {examples}/hello.yaml /mnt/kx/submit/
test "$(cat /mnt/kx/submit/hello.yaml.job/wait)" = SUCCEEDED
umount /mnt/kx
until mount -t kxfs local: /mnt/kx -o linger; do sleep 0.5; done # the old one may still be writing its state
test "$(cat $job/state)" = RUNNING
touch /kx/go
test "$(cat $job/wait)" = SUCCEEDED
test "$(grep -o 'begun\|ended' $job/main-0/log | tr '\n' ' ')" = 'begun ended '
test -e /mnt/kx/submit/long.yaml -a -e /mnt/kx/submit/hello.yaml.job/log
umount /mnt/kx
"""


def test_deb_over_a_running_mount(packages, full, in_root, tmp_path):
    """As docs/install.md describes: the mount continues with the old program, and everything is
    there after the next mount."""
    deb = built(packages, "kxfs_*.deb")
    harness.run(["dpkg-deb", "-R", deb, tmp_path / "older"])
    control = tmp_path / "older/DEBIAN/control"
    control.write_text(re.sub("^Version: ", "Version: 0~", control.read_text(), flags=re.M))
    harness.run(["dpkg-deb", "-b", tmp_path / "older", tmp_path / "older.deb"])
    in_root(full, script(UPGRADE.replace("{newer}", deb.name)), deb, tmp_path / "older.deb")


def test_deb_debug_symbols(packages, tmp_path):
    """Debug symbols are in a separate package, for exactly this build."""
    for name in ("kxfs_", "kxfs-dbgsym_"):
        harness.run(["dpkg-deb", "-x", built(packages, f"{name}*.deb"), tmp_path])
    build_id = re.search(r"Build ID: (\w\w)(\w+)", harness.run(["readelf", "-n", tmp_path / "usr/bin/kxfs"]).stdout)
    debug = tmp_path / f"usr/lib/debug/.build-id/{build_id[1]}/{build_id[2]}.debug"
    assert ".debug_info" in harness.run(["readelf", "-S", "-W", debug]).stdout
    assert ".debug_info" not in harness.run(["readelf", "-S", "-W", tmp_path / "usr/bin/kxfs"]).stdout


def test_lintian(packages, tmp_path):
    said = check(tmp_path, "lintian", "--allow-root", "--fail-on", "error,warning", built(packages, "*.changes"))
    assert said == (0, "")


def test_they_are_reproducible(packages, tmp_path):
    """Another directory, hour, time zone, language and umask produce the same bytes, except in
    files that contain the hour. Each run builds one kind again, at random. A release builds all of
    them twice."""
    kind = random.choice(["deb", "rpm", "tarball", "image", "wheel"])
    env = {**os.environ, "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "HOME": str(tmp_path),
           "KXFS_TEST_MARK": harness.MARK, "TMPDIR": str(tmp_path), "KXFS_SYSROOTS": str(packages.parent / "sysroots")}
    env.pop("DEB_BUILD_OPTIONS", None)
    again = tmp_path / "again"
    p = subprocess.run(["bash", "-c", f"umask 077; {ROOT}/contrib/package {kind} {again}"], env=env, check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1500)
    assert p.returncode == 0, p.stdout
    names = sorted(p.name for p in again.iterdir())
    assert set(names) <= {p.name for p in packages.iterdir()}
    same = [name for name in names if filecmp.cmp(packages / name, again / name, shallow=False)]
    assert {pathlib.Path(name).suffix for name in names if name not in same} <= {".buildinfo", ".changes", ""}


def test_rpm(packages, full, in_root):
    """In a Debian root, rpm's own database is empty. So the package's requirements are not checked."""
    rpm = built(packages, f"kxfs-{VERSION}-1*.{ARCH}.rpm")
    rpm_ = "rpm --force-debian"
    in_root(full, script(f"{rpm_} -i --nodeps /kx/{rpm.name}\n{rpm_} -V --nodeps kxfs\n", USE, BESIDE, f"{rpm_} -e kxfs\n",
                         GONE), rpm)


def test_rpm_says_what_it_is(packages, tmp_path):
    rpm = built(packages, f"kxfs-{VERSION}-1*.{ARCH}.rpm")
    _, requires = check(tmp_path, "rpm", "-qp", "--requires", rpm)
    assert "libfuse3.so.3" in requires and "libcurl.so.4" in requires and "\nfuse3\n" in "\n" + requires
    assert check(tmp_path, "rpm", "-qp", "--qf", "%{VERSION} %{LICENSE}", rpm) == (0, f"{VERSION} MIT")


def test_rpmlint(packages, tmp_path):
    config = ROOT / "contrib/rpm/rpmlint.toml"
    status, said = check(tmp_path, "rpmlint", "--config", config, *sorted(packages.glob("*.rpm")))
    assert status == 0 and "0 errors, 0 warnings" in said, said


LIBS = "libfuse3 libcurl libuv libjson-c libyaml"


@pytest.mark.parametrize("prefix", ["/usr/local", "/opt/kx"])
def test_tarball(packages, bare, in_root, prefix):
    """The tarball works with only glibc installed. Without fusermount3, it works as root."""
    tar = built(packages, f"kxfs-{VERSION}-linux-{ARCH}.tar.xz")
    top = f"/kx/{tar.name.removesuffix('.tar.xz')}"
    # The root has no xz.
    plain = packages.parent / "plain.tar"
    with plain.open("wb") as f:
        subprocess.run(["xz", "-dc", tar], stdout=f, check=True)
    in_root(bare, script(f"""
for lib in {LIBS}; do ls /usr/lib/*/$lib.so.* 2>/dev/null && exit 1; done
! command -v fusermount3
tar -C /kx -xf /kx/plain.tar
{top}/bin/kxfs --version
find / -xdev -type f -o -xdev -type l | grep -v ^/kx/ | sort >/kx/before
{top}/install.sh "{prefix}"
rm -r {top}/lib {top}/bin
test -x /sbin/mount.kxfs || ln -s "{prefix}/sbin/mount.kxfs" /sbin/
PATH="{prefix}/bin:$PATH"
ldd "{prefix}/bin/kxfs" | grep -v '^.linux-vdso\\|/ld-linux\\|/lib\\(c\\|m\\|dl\\|pthread\\|resolv\\).so\\|=> {prefix}/' && exit 1
grep -x 'ExecStart={prefix}/bin/kxfs .*' "{prefix}/lib/systemd/system/kxfs@.service"
test -f "{prefix}/share/man/man1/kxfs.1" -a -f "{prefix}/share/bash-completion/completions/kxfs"
""", USE, f"""
rm /sbin/mount.kxfs
{top}/install.sh --remove "{prefix}"
find / -xdev -type f -o -xdev -type l | grep -v '^/kx/\\|^/var/lib/kxfs/' | sort >/kx/after
diff /kx/before /kx/after
test ! -d "{prefix}/lib/kxfs"
""", examples=f'"{prefix}"/share/doc/kxfs/examples'), plain)


def test_tarball_asks_for_no_newer_glibc(packages, tmp_path):
    """Nothing in it, including the libraries, requires a newer glibc than docs/install.md states."""
    harness.run(["tar", "-C", tmp_path, "-xf", built(packages, f"kxfs-{VERSION}-linux-{ARCH}.tar.xz")])
    said = re.search(r"anywhere with glibc (\d+)\.(\d+) or newer", (ROOT / "docs/install.md").read_text())
    needed = {}
    for path in [*tmp_path.glob("*/bin/*"), *tmp_path.glob("*/lib/kxfs/*")]:
        for version in re.findall(r"\bGLIBC_(\d+)\.(\d+)", harness.run(["readelf", "-V", "-W", path]).stdout):
            needed.setdefault(tuple(map(int, version)), path.name)
    assert max(needed) == tuple(map(int, said.groups())), needed


def test_source_builds(packages, tmp_path):
    """The archive of a release contains everything that a build needs. Packages can be built from
    it as from the repository."""
    harness.run(["tar", "-C", tmp_path, "-xf", built(packages, f"kxfs-{VERSION}.tar.xz")])
    tree = tmp_path / f"kxfs-{VERSION}"
    listed = set(harness.run(["git", "-C", ROOT, "ls-files"]).stdout.splitlines()) if (ROOT / ".git").exists() else set()
    assert {p for p in listed if not (tree / p).is_symlink() and not (tree / p).exists()} == set()
    env = {"SOURCE_DATE_EPOCH": "1000000000", "HOME": str(tmp_path)}
    harness.run([tree / "contrib/package", "source", tmp_path / "out"], env=env, timeout=600)
    harness.run([tree / "contrib/package", "source", tmp_path / "again"], env=env, timeout=600)
    archive = f"kxfs-{VERSION}.tar.xz"
    assert filecmp.cmp(tmp_path / "out" / archive, tmp_path / "again" / archive, shallow=False)


def test_sums(packages):
    names = {p.name for p in packages.iterdir()} - {"SHA256SUMS"}
    sums = dict(reversed(line.split("  ")) for line in (packages / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == names
    for name in names:
        assert hashlib.sha256((packages / name).read_bytes()).hexdigest() == sums[name]


def test_bill_of_materials(packages, tmp_path):
    bill = json.loads(built(packages, "*.spdx.json").read_text())
    assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0"
    found = {p["name"]: p for p in bill["packages"]}
    assert found["kxfs"]["versionInfo"] == VERSION and found["kxfs"]["licenseDeclared"] == "MIT"
    assert set(found) >= {"libfuse3-3", "libcurl4", "libuv1", "libjson-c5", "libyaml-0-2", "uthash-dev", "libc6", "libssl3"}
    assert all(p["versionInfo"] and p["licenseDeclared"] != "NOASSERTION" for p in found.values())
    assert found["libuv1"]["versionInfo"] == harness.run(["dpkg-query", "-Wf", "${Version}", "libuv1"]).stdout
    ids = {p["SPDXID"] for p in found.values()} | {"SPDXRef-DOCUMENT"}
    assert len(ids) == len(found) + 1 and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids)
    assert all({r["spdxElementId"], r["relatedSpdxElement"]} <= ids for r in bill["relationships"])
    # Each library that the archive bundles is listed, with its licence.
    tar = built(packages, f"kxfs-*-linux-{ARCH}.tar.xz")
    names = harness.run(["tar", "-tf", tar]).stdout.splitlines()
    licences = {n.rsplit("/", 1)[1] for n in names if "/licenses/kxfs/" in n and not n.endswith("/")} - {"LICENSE"}
    assert licences == set(found) - {"kxfs", "libc6", "uthash-dev"}


# --- arm64 ------------------------------------------------------------------------------------
# kxfs for arm64: cross-built with Debian's compiler and arm64 libraries. qemu-user runs its unit
# tests.

CROSS = """[binaries]
c = ['aarch64-linux-gnu-gcc', '--sysroot={root}']
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64-static', '-L', '{root}']
[properties]
sys_root = '{root}'
pkg_config_libdir = '{root}/usr/lib/aarch64-linux-gnu/pkgconfig:{root}/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""
# Tests of how bytes are interpreted and stored. qemu-user does not emulate an arm64 kernel. So code
# that starts processes, connects to servers or is a file system is only tested natively.
SUITES = ("spec_", "backend_base_", "backend_output_", "backend_jobs_")


@pytest.fixture(scope="module")
def cross(arm64, tmp_path_factory):
    top = tmp_path_factory.mktemp("cross")
    # An absolute link leads to a library of this machine, or nowhere. Then the linker would use the
    # static library.
    for path in filter(pathlib.Path.is_symlink, arm64.rglob("*.so*")):
        if path.readlink().is_absolute():
            target = arm64 / path.readlink().relative_to("/")
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))
    (top / "cross.ini").write_text(CROSS.format(root=arm64))
    env = {"HOME": str(top), "CCACHE_DIR": os.environ.get("CCACHE_DIR", "")}
    harness.run(["meson", "setup", top / "build", ROOT, "--cross-file", top / "cross.ini", "--optimization=1"], env=env,
                timeout=600)
    targets = [os.path.relpath(cmd, top / "build") for cmd in unit_tests(top / "build").values()]
    harness.run(["ninja", "-C", top / "build", "fs/kxfs", "contrib/completion/kxfs", *targets], env=env, timeout=1500)
    return top / "build"


def unit_tests(build):
    """Return {name: program} of the tests that run here."""
    found = json.loads(harness.run(["meson", "introspect", "--tests", build]).stdout)
    return {test["name"]: test["cmd"][0] for test in found if "unit" in test["suite"][0] and test["name"].startswith(SUITES)}


def test_program(cross, arm64):
    assert "AArch64" in harness.run(["readelf", "-h", cross / "fs/kxfs"]).stdout
    out = harness.run(["qemu-aarch64-static", "-L", arm64, cross / "fs/kxfs", "--version"]).stdout
    assert re.match(r"kxfs \S+\nlibraries: libfuse 3", out)
    dry = harness.run(["qemu-aarch64-static", "-L", arm64, cross / "fs/kxfs", f"--dry-run={ROOT}/contrib/examples/training.yaml",
                       "volcano:x", "-o", "queue=q"]).stdout
    assert "kind: Job" in dry
    # The completion is generated by running the program.
    assert "history_keep=" in (cross / "contrib/completion/kxfs").read_text()


def test_unit_tests(cross):
    wanted = unit_tests(cross)
    assert len(wanted) > 40
    p = harness.run(["meson", "test", "-C", cross, "--no-rebuild", "--timeout-multiplier", "40", *wanted], check=False,
                    timeout=1500)
    failed = [row["name"] for row in map(json.loads, (cross / "meson-logs/testlog.json").read_text().splitlines())
              if row["result"] != "OK"]
    assert p.returncode == 0 and not failed, (failed, p.stdout[-3000:])


# --- A release --------------------------------------------------------------------------------
# Tries docs/releasing.md: the commands of its steps, in order, in a new clone of this tree.
#
# A repository of the test replaces the public one, and a key of the test signs. What other stages
# of tests/run do is skipped (`tests/run`, and `contrib/package all`, of which only `source` runs
# here).

RELEASED, DAY = "99.1.2", "2031-02-03"
STEPS = re.search(r"^## The steps\n(.*)^For the next version", (ROOT / "docs/releasing.md").read_text(), re.M | re.S)[1]
COMMANDS = [c.replace("VERSION", RELEASED) for c in re.findall(r"`((?:git|gpg|contrib/packages?|tests/run) [^`]*)`", STEPS)]
OTHERS_DO = {"tests/run all": "", "tests/run package": "", "contrib/package all": "contrib/package source"}


@pytest.fixture
def sh(tmp_path):
    """Return a function that runs a command in a directory, as a maintainer does, and returns its
    output."""
    env = {**os.environ, "GNUPGHOME": str(tmp_path / "gnupg"), "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"), "EMAIL": "m@example.org",
           "GIT_AUTHOR_NAME": "M", "GIT_COMMITTER_NAME": "M"}
    (tmp_path / "gnupg").mkdir(mode=0o700)

    def run(command, cwd):
        p = subprocess.run(["bash", "-euc", command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False, timeout=900)
        assert p.returncode == 0, f"{command}\n{p.stdout}"
        return p.stdout

    run("gpg --batch --passphrase '' --quick-gen-key 'M <m@example.org>' default default never", tmp_path)
    run("git config --global safe.directory '*'; git config --global user.email m@example.org", tmp_path)
    yield run
    run("gpgconf --kill gpg-agent", tmp_path)


def test_steps(sh, tmp_path):
    sh(f"git clone -q --bare {ROOT} published && git clone -q published tree && git -C tree checkout -q -B main", tmp_path)
    tree = tmp_path / "tree"
    (tree / "meson.build").write_text(re.sub(r"^    version: '.*',$", f"    version: '{RELEASED}',",
                                             (tree / "meson.build").read_text(), flags=re.M))
    (tree / "CHANGELOG.md").write_text(re.sub(r"^## .*$", f"## {RELEASED} - {DAY}", (tree / "CHANGELOG.md").read_text(), count=1,
                                              flags=re.M))
    sums = []
    for command in COMMANDS:
        for whole, instead in OTHERS_DO.items():
            command = command.replace(whole, instead)
        if "contrib/package " not in command:
            sh(command or ":", tree)
            continue
        for name in ("first", "second"):  # two clones of the tag, as the page requires
            sh(f"git clone -q --branch v{RELEASED} published {name}", tmp_path)
            sh(command, tmp_path / name)
            sums.append((tmp_path / name / "build-package/SHA256SUMS").read_text())
            tree = tmp_path / name
    assert sums[0] == sums[1] and f"kxfs-{RELEASED}.tar.xz" in sums[0]
    assert "Good signature" in sh(f"git tag -v v{RELEASED}", tmp_path / "first")
    assert "Good signature" in sh("cd build-package && gpg --verify SHA256SUMS.asc SHA256SUMS && sha256sum -c SHA256SUMS", tree)
    with tarfile.open(tree / f"build-package/kxfs-{RELEASED}.tar.xz") as tar:
        assert {sh(f"date -u -d @{member.mtime} +%F", tree).strip() for member in tar.getmembers()[:3]} == {DAY}
