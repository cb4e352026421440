# SPDX-License-Identifier: MIT
"""mount(8), fstab, options without a test of their own, and the lists of options in documents."""

import os
import re

import pytest
from harness import ROOT, TOOL_PATH, alive, app, err_of, mounts, run, wait_for
from starting import background, lock_file

# --- mount(8), fstab, other options -------------------------------------------------------------


# mount(8) looks for the program, and for mount.kxfs, only in the system's own directories: in a mount namespace of its
# own, ours are in these. It execs what stands in /sbin, so that is laid over. MNT is the mount point, OPTS the options.
# The namespace has a copy of each mount of other tests, which would keep those alive when they are taken away: it lets go of them.
BY_MOUNT = """set -e
grep ' - fuse' /proc/self/mountinfo | cut -d ' ' -f 5 | while read -r at; do umount -c -n -l "$at" 2>/dev/null || :; done
mount --bind {bin} /usr/local/bin
mkdir {base}/sbin
mount --bind /usr/sbin {base}/sbin
mount -t tmpfs tmpfs /usr/sbin
for file in {base}/sbin/*; do ln -s "$file" /usr/sbin/; done
ln -s /usr/local/bin/kxfs /usr/sbin/mount.kxfs
{mount}
grep " $MNT " /proc/self/mountinfo
cp {app} $MNT/submit/
cat $MNT/submit/a.yaml.job/wait $MNT/submit/a.yaml.job/log
pid=$(sed -n 's/^pid //p' {state}/lock)
umount $MNT
while kill -0 $pid 2>/dev/null && ! grep -q '^State:.Z' /proc/$pid/status; do sleep 0.1; done
"""


def by_mount(kx, mount, **kwargs):
    (kx.base / "a.yaml").write_text(app("echo $(printenv PATH | grep -c /usr/bin) hello"))
    script = BY_MOUNT.format(bin=os.path.dirname(kx.binary), mount=mount, app=kx.base / "a.yaml", state=kx.state,
                             base=kx.base)
    return run(["unshare", "-m", "sh", "-c", script], env={**kx.env(), "MNT": str(kx.mnt)}, cwd=kx.work, **kwargs)


@pytest.mark.parametrize("kind", ["kxfs", "fuse.kxfs"])
def test_mount_type(make_kx, kind):
    kx = make_kx(start=False)
    (kx.work / "local").mkdir()
    out = by_mount(kx, f"mount -n -v -t {kind} local: $MNT -o state={kx.state},cancel=all,noatime").stdout
    assert " - fuse.kxfs local: " in out and "nosuid,nodev,noatime" in out
    assert out.endswith("SUCCEEDED\nmain/0 1 hello\n")


@pytest.mark.parametrize("kind", ["kxfs", "fuse.kxfs"])
def test_mount_type_fails(make_kx, kind):
    kx = make_kx(start=False)
    p = by_mount(kx, f"mount -t {kind} local: $MNT -o state={kx.state},cancle=all", check=False)
    assert p.returncode == 1 and p.stderr == (
        "kxfs: -o cancle: unknown option; did you mean cancel? kxfs --help lists all\n")


@pytest.mark.parametrize("kind", ["kxfs", "fuse.kxfs"])
def test_fstab(make_kx, kind):
    kx = make_kx(start=False)
    fstab = kx.base / "fstab"
    fstab.write_text(f"local:  {kx.mnt}  {kind}  state={kx.state},allow_other,nofail,_netdev,x-a.b=c  0  0\n")
    # mount -a mounts what is not mounted yet, so the second does nothing.
    out = by_mount(kx, f"mount -a -T {fstab}; mount -a -T {fstab}").stdout
    assert out.endswith("SUCCEEDED\nmain/0 1 hello\n") and out.count("allow_other") == 1


def test_mount_helper_refuses(make_kx):
    """mount(8) requests a pretended mount with -f, which kxfs refuses: pretending would be worse."""
    kx = make_kx(start=False)
    p = by_mount(kx, f"mount -f -t kxfs local: $MNT -o state={kx.state}", check=False)
    assert p.returncode == 1 and p.stderr == "kxfs: -f: a fake mount is not possible\n"
    assert not list(kx.state.iterdir())


def test_read_only(make_kx):
    kx = make_kx("ro")
    assert err_of(os.mkdir, kx / "submit/x") == "EROFS"
    assert err_of(kx.write, "submit/x.yaml", app("true")) == "EROFS"
    assert err_of(kx.write, "submit/scratch", "x") == "EROFS"
    assert kx.ls("jobs") == []


def test_mask_of_who_mounts(make_kx):
    kx = make_kx(start=False)
    with background(kx, preexec_fn=lambda: os.umask(0o077)):
        assert os.stat(kx / "jobs").st_mode & 0o077 == 0
        assert os.stat(kx / ".kxfs/info").st_mode & 0o077 == 0


def test_debug_messages(make_kx):
    kx = make_kx("log_level=error")
    assert kx.said() == ""
    kx.end()
    kx.args = ["-d"]
    kx.start()
    assert "is mounted on" in kx.said()


# --- the table of options and the documents ---


def listed(binary):
    """Return the options as --help lists them: {"-V, --version", "state=DIR", ...}."""
    heads = re.findall(r"^  (\S.*?)  +\S", run([binary, "--help"]).stdout, re.M)
    return set(heads)


def test_man_page(binary):
    text = (ROOT / "docs/kxfs.1").read_text()
    section = text[text.index(".Ss Flags"):text.index(".Ss Generic")]
    heads = set()
    for line in re.findall(r"^\.It (.*)$", section, re.M):
        line = re.sub(r"Fl (-?\w+) , -(\w+)", r"Fl \1, --\2", line)
        line = re.sub(r"\bFl ", "-", re.sub(r" Ns = Ns Ar ", "=", line)).replace("Cm ", "").replace("Ar ", "")
        heads.update(line.split(" , "))
    assert heads == listed(binary)


def test_generic_options_of_the_man_page(make_kx):
    text = (ROOT / "docs/kxfs.1").read_text()
    section = text[text.index(".Ss Generic"):text.index(".Ss Starting")]
    words = {w for line in re.findall(r"^\.Cm (.*)$", section, re.M) for w in line.split() if w not in (",", ".", ";")}
    assert len(words) > 30
    kx = make_kx(start=False)
    kx.options = ",".join(sorted(words - {"ro"})) + ",x-systemd.automount"
    assert kx.start()


def test_man_page_examples(make_kx):
    """Each example of kxfs(1) works unchanged, with the mount points of this test."""
    text = (ROOT / "docs/kxfs.1").read_text()
    examples = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text[text.index(".Sh EXAMPLES"):], re.M | re.S)
    shell = [e.replace("\\&", "") for e in examples if e.startswith("mkdir")]
    assert len(shell) == 3
    kx = make_kx(start=False)
    home = kx.base / "home"
    home.mkdir()
    env = {**kx.env(), "PATH": f"{os.path.dirname(kx.binary)}:{TOOL_PATH}", "HOME": str(home), "XDG_STATE_HOME": str(home / "xdg")}
    out = []
    try:
        for example in shell[:2]:
            out.append(run("set -e\n" + example, env=env, cwd=kx.work).stdout)
            wait_for(lambda: not alive(int(lock_file(home / "xdg/kxfs/local")["pid"])))
    finally:
        for path in mounts():
            if path.startswith(f"{home}/"):
                run(["umount", "-l", path])
    assert out[0] == "SUCCEEDED\nhello\n"
