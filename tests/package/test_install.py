# SPDX-License-Identifier: MIT
"""meson install and ninja uninstall put each file in its place, for any prefix and DESTDIR."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from harness import ROOT, run

BUILT = pathlib.Path(os.environ.get("KXFS_BINARY", ROOT / "build/fs/kxfs")).resolve().parents[1]

FILES = {
    "bin/kxfs",
    "sbin/mount.kxfs",
    "share/bash-completion/completions/kxfs",
    "share/doc/kxfs/CHANGELOG.md",
    "share/doc/kxfs/README.md",
    "share/doc/kxfs/SECURITY.md",
    "share/doc/kxfs/docs/cluster.md",
    "share/doc/kxfs/docs/deviations.md",
    "share/doc/kxfs/docs/install.md",
    "share/doc/kxfs/docs/known-limits.md",
    "share/doc/kxfs/docs/pods.md",
    "share/doc/kxfs/docs/scripts.md",
    "share/doc/kxfs/docs/session-dark.svg",
    "share/doc/kxfs/docs/session-light.svg",
    "share/doc/kxfs/docs/slurm.md",
    "share/doc/kxfs/docs/versions.md",
    "share/doc/kxfs/docs/your-kind.md",
    "share/doc/kxfs/contrib/rbac.yaml",
    "share/fish/vendor_completions.d/kxfs.fish",
    "share/licenses/kxfs/LICENSE",
    *(f"share/kxfs/kinds/{p.name}" for p in (ROOT / "share/kinds").glob("*.yaml")),
    "share/zsh/site-functions/_kxfs",
    *(f"share/doc/kxfs/{p.relative_to(ROOT)}" for p in (ROOT / "contrib/kubernetes").rglob("*.yaml")),
    "share/doc/kxfs/contrib/torchx/README.md",
    *(f"share/doc/kxfs/examples/{p.name}" for p in (ROOT / "contrib/examples").iterdir()),
    *(f"share/man/man{p.suffix[1:]}/{p.name}" for p in (ROOT / "docs").glob("*.[0-9]")),
}
UNITS = {"lib/systemd/system/kxfs@.service", "lib/systemd/user/kxfs@.service"}
# A unit with one of these settings has its own mount namespace, and its mounts are invisible
# elsewhere.
OWN_VIEW = re.compile(r"^(Private(Devices|IPC|Mounts|Tmp|Users)|Protect(ControlGroups|Home|Kernel\w+|Proc|System)|ProcSubset|"
                      r"(ReadOnly|ReadWrite|Inaccessible|Exec|NoExec|Bind\w*)Paths|TemporaryFileSystem|Root\w+|MountFlags|"
                      r"DynamicUser)=", re.M)


def found(top):
    return {str(p.relative_to(top)) for p in top.rglob("*") if not p.is_dir() or p.is_symlink()}


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Build the tested program with a prefix that is not the default."""
    dir_ = tmp_path_factory.mktemp("install") / "build"
    prefix = dir_.parent / "prefix"
    # meson uses ccache if it exists, and ccache has its cache in HOME. So HOME must be a directory,
    # not /nonexistent as for other programs.
    env = {"HOME": str(dir_.parent), "CCACHE_DIR": os.environ.get("CCACHE_DIR", ""), "PATH": os.environ["PATH"]}
    run(["meson", "setup", dir_, ROOT, f"--prefix={prefix}", "-Dtests=false", "--buildtype=plain"], env=env)
    run(["ninja", "-C", dir_], env=env, timeout=1200)
    return dir_, prefix


def test_prefix_and_uninstall(build):
    dir_, prefix = build
    run(["meson", "install", "-C", dir_, "--no-rebuild"])
    assert found(prefix) == FILES | UNITS
    assert run([prefix / "sbin/mount.kxfs"], check=False).stderr.startswith("kxfs: the mount point is missing")
    for unit in UNITS:
        text = (prefix / unit).read_text()
        assert f"ExecStart={prefix}/bin/kxfs -f " in text and "@BINDIR@" not in text
    run(["ninja", "-C", dir_, "uninstall"])
    assert found(prefix) == set()


def test_destdir(build, tmp_path):
    """Installing with DESTDIR works, and each link of the README leads to a file."""
    dir_, prefix = build
    run(["meson", "install", "-C", dir_, "--no-rebuild"], env={"DESTDIR": str(tmp_path)})
    assert found(tmp_path / str(prefix)[1:]) == FILES | UNITS and found(prefix) == set()
    assert os.readlink(tmp_path / str(prefix)[1:] / "sbin/mount.kxfs") == "../bin/kxfs"
    docs = tmp_path / str(prefix)[1:] / "share/doc/kxfs"
    links = re.findall(r'(?:\]\(|src(?:set)?=")(?!https:)([^)"]+)', (docs / "README.md").read_text())
    assert len(links) > 5 and [link for link in links if not (docs / link).exists()] == []
    run(["ninja", "-C", dir_, "uninstall"], env={"DESTDIR": str(tmp_path)})
    assert found(tmp_path) == set()


@pytest.mark.parametrize("kind", ["system", "user"])
def test_units(build, kind):
    """systemd accepts each line of the units. None gives the service its own view of the file
    system."""
    dir_, prefix = build
    run(["meson", "install", "-C", dir_, "--no-rebuild"])
    try:
        unit = prefix / f"lib/systemd/{kind}/kxfs@.service"
        # The instance whose mount point is /mnt/kx. The manual is not checked, because it is not in
        # man's path.
        instance = unit.with_name("kxfs@mnt-kx.service")
        instance.write_text(unit.read_text())
        p = run(["systemd-analyze", "verify", "--man=no", f"--{kind}", instance], check=False,
                stderr=subprocess.STDOUT, env={"XDG_RUNTIME_DIR": str(prefix)})
        said = [line for line in p.stdout.splitlines() if instance.name in line or "kxfs" in line]
        assert p.returncode == 0 and said == []
        assert not OWN_VIEW.search(unit.read_text())
        instance.unlink()
    finally:
        run(["ninja", "-C", dir_, "uninstall"])


def test_unit_is_confined(build):
    """systemd-analyze rates the exposure on a scale of 10. A unit without confinement has 9.6."""
    dir_, _ = build
    unit = dir_ / "contrib/systemd/system-kxfs@.service"
    p = run(["systemd-analyze", "security", "--offline=true", "--threshold=67", "--no-pager", unit], check=False)
    assert p.returncode == 0, p.stdout[-3000:]


def test_removal_names_what_is_mounted(kx, tmp_path):
    """The removal scripts of both packages name the mounts. An update prints nothing."""
    spec = (ROOT / "contrib/rpm/kxfs.spec").read_text()
    (tmp_path / "preun").write_text(re.search(r"^%preun\n(.*?)^%files", spec, re.M | re.S)[1])
    for script, removed, updated in ((ROOT / "contrib/debian/kxfs.prerm", "remove", "upgrade"), (tmp_path / "preun", "0", "1")):
        assert run(["sh", script, updated]).stderr == ""
        said = run(["sh", script, removed]).stderr.splitlines()
        assert said[0].endswith("until it is unmounted:") and str(kx.mnt) in said[1:]


@pytest.fixture
def unpacked(tmp_path):
    """Return what install.sh expects beside itself in the archive, with a program that prints its
    version, or can't run."""
    top = tmp_path / "kxfs-1-linux"
    for name, text in (("bin/kxfs", "#!/bin/sh\n[ ! -e \"$0.old\" ] || { echo GLIBC_2.34 not found >&2; exit 1; }\necho kxfs 1\n"),
                       *((unit, "ExecStart=/usr/local/bin/kxfs\n") for unit in UNITS), ("share/doc/kxfs/files", "")):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    (top / "bin/kxfs").chmod(0o755)
    (top / "share/doc/kxfs/files").write_text("\n".join(sorted(found(top))) + "\n")
    shutil.copy(ROOT / "contrib/tarball/install.sh", top)
    return top


def test_archive_leaves_directories_as_they_were(unpacked, tmp_path):
    """Existing directories remain, even empty ones. Created directories are removed, except those
    that contain other files."""
    prefix = tmp_path / "usr"
    for name in ("bin", "lib", "sbin", "share/man"):
        (prefix / name).mkdir(parents=True)
    before = sorted(prefix.rglob("*"))
    for _ in range(2):  # installed again over itself
        assert run([unpacked / "install.sh", prefix]).stdout.startswith(f"Installed below {prefix}: kxfs 1\n")
    assert (prefix / "lib/systemd/system/kxfs@.service").read_text() == f"ExecStart={prefix}/bin/kxfs\n"
    run([unpacked / "install.sh", "--remove", prefix])
    assert sorted(prefix.rglob("*")) == before
    run([unpacked / "install.sh", prefix])
    (prefix / "lib/systemd/system/other.service").touch()
    run([unpacked / "install.sh", "--remove", prefix])
    assert found(prefix) == {"lib/systemd/system/other.service"}
    assert run([unpacked / "install.sh", "--remove", tmp_path / "none"], check=False).returncode == 1
    assert not (tmp_path / "none").exists()


def test_archive_where_it_can_not_run(unpacked, tmp_path):
    """If the program can't run, install.sh prints one line, returns 1, and installs nothing."""
    (unpacked / "bin/kxfs.old").touch()
    p = run([unpacked / "install.sh", tmp_path / "usr"], check=False)
    assert p.returncode == 1 and p.stdout == "" and not (tmp_path / "usr").exists()
    assert re.fullmatch(r"install.sh: kxfs can't run here: it needs glibc 2.34 or newer; here is glibc \d.*\n", p.stderr)
