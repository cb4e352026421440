# SPDX-License-Identifier: MIT
"""Who mounts: kxfs itself, or another program that passes the descriptor to kxfs. And what other users may do."""

import contextlib
import ctypes
import os
import pathlib
import pwd
import re
import signal
import stat
import subprocess

import pytest
import records
from harness import LIMIT, ROOT, TOOL_PATH, USER, alive, app, mounts, run, wait_for
from preload import USERS, preload
from starting import background, lock_file

# --- kxfs mounts ------------------------------------------------------------------------------
# mount(8), fstab, options that no other file tests, and the lists of options in the documents.

# --- mount(8), fstab, other options -------------------------------------------------------------


# mount(8) finds kxfs and mount.kxfs only in the directories of the system. So the test runs it in a mount namespace in
# which these directories have our programs; /sbin is overlaid. MNT is the mount point, OPTS the options. The namespace
# begins with a copy of each mount of other tests. These copies would keep the mounts alive, so the script unmounts them
# first.
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
    # mount -a skips what is already mounted, so the second call does nothing.
    out = by_mount(kx, f"mount -a -T {fstab}; mount -a -T {fstab}").stdout
    assert out.endswith("SUCCEEDED\nmain/0 1 hello\n") and out.count("allow_other") == 1


def test_mount_helper_refuses(make_kx):
    """`mount -f` only pretends to mount. kxfs refuses that, because success would be misleading."""
    kx = make_kx(start=False)
    p = by_mount(kx, f"mount -f -t kxfs local: $MNT -o state={kx.state}", check=False)
    assert p.returncode == 1 and p.stderr == "kxfs: -f: kxfs does not support fake mounts\n"
    assert not list(kx.state.iterdir())


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
    """Return the options that --help lists: {"-V, --version", "state=DIR", ...}."""
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
    words = {word for line in re.findall(r"^\.Cm (.*)$", section, re.M) for word in re.findall(r"\w+", line)}
    assert len(words) > 30
    kx = make_kx(start=False)
    kx.options = ",".join(sorted(words - {"ro"})) + ",x-systemd.automount"
    assert kx.start()


def test_man_page_examples(make_kx):
    """Each example of kxfs(1) works unchanged, except for the mount points."""
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


# --- Another program mounts -------------------------------------------------------------------
# Another program mounts and passes the descriptor to kxfs, with the mount point /dev/fd/N.

NOBODY = pwd.getpwnam(USER).pw_uid
# A mount namespace without /dev/fuse, and a process without capabilities. If THERE is set, the test mounts after the
# unshare, so the mount is not visible in this namespace.
RESTRICTED = ["unshare", "-m", "sh", "-c", f"""mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 || exit 9
if [ "$THERE" ]; then touch "$THERE"; read line; fi
exec setpriv --reuid={USER} --regid=nogroup --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "$@" """, "sh"]


class Passed:
    """The program that mounts. FD is the descriptor of the mount."""

    def __init__(self, kx):
        self.kx = kx
        self.proc = None
        self.fd = os.open("/dev/fuse", os.O_RDWR)

    def command(self, *more, number=None):
        opts = ",".join([f"state={self.kx.state}", *more])
        return [*RESTRICTED, self.kx.binary, "-f", "-o", opts, "local:", f"/dev/fd/{number or self.fd}"]

    def start(self, *more):
        options = f"fd={self.fd},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other,default_permissions"
        there = self.kx.base / "there"
        libc = ctypes.CDLL(None, use_errno=True)
        with open(self.kx.messages, "ab") as err:
            self.proc = subprocess.Popen(self.command(*more), pass_fds=[self.fd], stdin=subprocess.PIPE, stdout=err,
                                         stderr=err, env={**self.kx.env(), "THERE": str(there)}, cwd=self.kx.work)
        wait_for(there.exists)
        if libc.mount(b"kxfs", bytes(self.kx.mnt), b"fuse.kxfs", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        self.proc.stdin.write(b"\n")
        self.proc.stdin.close()
        wait_for(lambda: (self.kx.state / "ready").exists() or self.proc.poll() is not None, what="the mount")
        assert self.proc.poll() is None, self.kx.said()

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self.fd)

    def refused(self, command, **kwargs):
        p = run(command, check=False, env=self.kx.env(), cwd=self.kx.work, **kwargs)
        assert p.returncode == 1
        return p.stderr


@pytest.fixture
def passed(make_kx):
    found = Passed(make_kx(start=False, user=USER))
    yield found
    if found.proc and found.proc.poll() is None:
        found.proc.kill()
        found.proc.wait(LIMIT)
    found.close()


@pytest.mark.parametrize("how", ["signal", "umount"])
def test_passed(passed, how):
    """kxfs serves the mount as an ordinary user without any rights, and its jobs do not inherit the descriptor.
    After a signal it ends and the mount is dead. It also ends when the mount is removed."""
    kx = passed.kx
    passed.start("allow_other")
    wait_for(lambda: f"local: is mounted on /dev/fd/{passed.fd}" in kx.said(), what="what it says when it is up")
    text = app("ls -l /proc/self/fd; echo done")
    # Write as the user of kxfs, because kxfs can inspect only this user's descriptors.
    kx.call("cat > submit/a.yaml", input=text)
    job = kx.job_of("a.yaml")
    job.finish()
    assert job.read("main-0", "log").endswith("done\n") and "fuse" not in job.read("main-0", "log")
    # A shell that writes in several steps launches one job: kxfs can see the shell's descriptors, although it can't see
    # the path of the mount.
    kx.call("{ head -c 20; cat; } > submit/steps.yaml", input=text)
    assert len(kx.ls("jobs")) == 2
    said = passed.refused(passed.command(), pass_fds=[passed.fd])
    assert f"in use by process {passed.proc.pid}, which serves the mount on /dev/fd/{passed.fd}: use its mount" in said
    if how == "umount":
        run(["umount", str(kx.mnt)])
        assert passed.proc.wait(LIMIT) == 0, kx.said()
        return
    passed.close()
    passed.proc.terminate()
    assert passed.proc.wait(LIMIT) == 0, kx.said()
    with pytest.raises(OSError, match="not connected"):
        os.listdir(kx.mnt)


def test_refused(passed, tmp_path):
    """kxfs refuses descriptors that do not belong to a mount."""
    with open(tmp_path / "file", "wb") as f:
        number = f.fileno()
        said = passed.refused(passed.command(number=number), pass_fds=[number])
    wrong = (f"kxfs: /dev/fd/{number}: not an open descriptor of /dev/fuse: open this device, mount with fd={number}, "
             "and pass the descriptor to kxfs\n")
    assert said == wrong == passed.refused(passed.command(number=number))
    said = passed.refused(passed.command("ro"), pass_fds=[passed.fd])
    assert said.startswith(f"kxfs: -o ro: another program has already mounted /dev/fd/{passed.fd}: leave this option out")
    device = os.open("/dev/fuse", os.O_RDWR)
    try:
        said = passed.refused(passed.command(number=device), pass_fds=[device])
    finally:
        os.close(device)
    assert said.endswith(f"kxfs: /dev/fd/{device}: nothing is mounted with this descriptor, or the mount was "
                         "removed: Operation not permitted\n")


# --- Users ------------------------------------------------------------------------------------
# Access, ownership and permissions: private mounts, allow_other, uid, gid, umask.


def test_private(kx):
    """Without allow_other, other users have no access."""
    p = run(["ls", str(kx.mnt)], user=USER, check=False)
    assert p.returncode != 0 and "Permission denied" in p.stderr


def test_allow_other_in_submit(make_kx):
    """submit/ is like /tmp: each user can create files there, owns them, and can't remove files of others. Jobs of
    such files can be ended only by the owner of jobs/ and by root."""
    kx = make_kx("allow_other,umask=077")
    sub, uid = kx / "submit", pwd.getpwnam(USER).pw_uid
    assert stat.S_IMODE(os.stat(sub).st_mode) == 0o1777
    assert os.stat(sub).st_uid == os.stat(kx / "jobs").st_uid == 0
    kx.restart(options="allow_other,umask=022")
    assert "default_permissions" in pathlib.Path("/proc/self/mountinfo").read_text().split(f" {kx.mnt} ")[1].split("\n")[0]
    as_user = {"user": USER, "cwd": str(sub)}
    text = app("id -u; exec sleep 1000")
    run("cat > theirs.yaml; test -s theirs.yaml.job/state", input=text, **as_user)
    run("cat > bad.yaml; rm bad.yaml; test -s bad.yaml.error", input="bad", **as_user)
    job = kx.job_of("theirs.yaml")
    job.until_logged(f"{os.getuid()}\n")  # the job runs as the user who mounts
    job.until("RUNNING")
    for name in ("theirs.yaml", "theirs.yaml.job", "bad.yaml.error"):
        assert os.lstat(sub / name).st_uid == uid, name
    assert os.stat(job.dir).st_uid == 0
    assert run(["cat", str(job / "main-0/log")], **as_user).stdout == f"{os.getuid()}\n"
    for command in (f"rm -r {job.dir}", "rmdir theirs.yaml.job/", f"echo suspend > {job.dir}/ctl",
                    f"find {job.dir} -delete", f"mv {job.dir} {kx.mnt}/history/", f"rmdir {job.dir}/main-0"):
        assert run(command, check=False, **as_user).returncode != 0, command
    assert job.state() == "RUNNING"

    kx.write("submit/ours.yaml", app("true"))
    kx.write("submit/scratch", "ours")
    kx.write("submit/private", "ours")
    os.chmod(kx / "submit/private", 0o600)
    for command in ("rm -f ours.yaml", "rm -f ours.yaml.job", "mv theirs.yaml ours.yaml", "mv scratch mine",
                    "echo x >> scratch", "cat private", "chmod 777 scratch", "touch scratch"):
        p = run(command, check=False, **as_user)
        assert p.returncode != 0 and re.search("denied|not permitted", p.stderr), command
    assert kx.read("submit", "scratch") == "ours"
    run("chmod 600 theirs.yaml; mv theirs.yaml again.yaml", **as_user)
    assert kx.ls("submit") == ["again.yaml", "bad.yaml.error", "ours.yaml", "ours.yaml.job", "private", "private.error",
                               "scratch", "scratch.error", "theirs.yaml.job"]
    assert kx.ls("jobs") == sorted([job.id, kx.job_of("ours.yaml").id])
    kx.restart(signal.SIGKILL)
    assert os.lstat(sub / "theirs.yaml.job").st_uid == os.lstat(sub / "again.yaml").st_uid == uid
    run("rm again.yaml theirs.yaml.job", **as_user)
    job.cancel()
    assert (job.old / "state").read_text() == "CANCELLED\n"


# An ordinary user mounts with allow_other, on a machine that permits it. root creates two files there. Then the user
# mounts again.
BY_A_USER = """
set -e
trap 'umount -l $MNT 2>/dev/null || :' EXIT
echo user_allow_other > {base}/fuse.conf
touch /etc/fuse.conf
mount --bind {base}/fuse.conf /etc/fuse.conf
kxfs() {{ setpriv --reuid={uid} --regid={gid} --clear-groups "$@"; }}
end() {{
    pid=$(sed -n 's/^pid //p' {state}/lock)
    umount $MNT
    while kill -0 $pid 2>/dev/null && ! grep -q '^State:.Z' /proc/$pid/status; do sleep 0.1; done
}}
kxfs "$@"
cp {app} $MNT/submit/
cp {app} $MNT/submit/scratch
cat $MNT/submit/a.yaml.job/wait  # kxfs can't inspect root's writers, so they get the result at their close
end
kxfs "$@"
stat -c %u $MNT/submit/a.yaml $MNT/submit/a.yaml.job $MNT/submit/scratch
chown 0 $MNT/submit/scratch || echo refused
end
"""


def test_names_that_cannot_be_looked_up(make_kx, tmp_path):
    """The directory service does not answer. Jobs of other users show a number as submitter, and the name once the
    service answers again. Neither other requests nor the end of the mount wait for the service."""
    hangs = tmp_path / "hangs"
    kx = make_kx("allow_other,umask=022", env=preload(tmp_path, USERS, KXFS_TEST_HANGS=hangs))
    uid, as_user = pwd.getpwnam(USER).pw_uid, {"user": USER, "cwd": str(kx / "submit")}

    def submitter(name, user):
        run(f"cat > {name}", input=app("true"), **user)
        job = kx.job_of(name)
        job.finish()
        return job.status()["submitter"].split("@")[0]

    hangs.touch()
    assert [submitter(f"their{i}.yaml", as_user) for i in range(3)] == [f"uid-{uid}"] * 3
    ours = {"cwd": str(kx / "submit")}
    assert submitter("ours.yaml", ours) == pwd.getpwuid(os.getuid()).pw_name
    kx.end()
    hangs.unlink()
    kx.start()
    hangs.touch()
    assert submitter("late.yaml", as_user) == f"uid-{uid}"
    hangs.unlink()
    wait_for(lambda: submitter("again.yaml", as_user) == USER, what="the name")


def test_owners_over_a_remount(make_kx):
    """Without root, kxfs can't change the owners of files on disk. It remembers them anyway."""
    kx = make_kx("allow_other,umask=022", user=USER, start=False)
    (kx.base / "a.yaml").write_text(app("true"))
    user = pwd.getpwnam(USER)
    script = BY_A_USER.format(base=kx.base, uid=user.pw_uid, gid=user.pw_gid, app=kx.base / "a.yaml", state=kx.state)
    said = run(["unshare", "-m", "sh", "-c", script, "sh", *kx.command()], env={**kx.env(), "MNT": str(kx.mnt)},
               cwd=kx.work, check=False)
    assert said.stdout == f"SUCCEEDED\n0\n0\n{user.pw_uid}\nrefused\n", said.stderr


def test_owner_and_mask(make_kx):
    kx = make_kx("uid=12,gid=34,umask=027")
    for name, mode in (("jobs", 0o750), (".kxfs/info", 0o640)):
        st = os.stat(kx / name)
        assert (st.st_uid, st.st_gid) == (12, 34)
        assert st.st_mode & 0o777 & ~mode == 0


def test_app_yaml_is_as_private_as_the_file(make_kx):
    """A file that may hold secrets is not more readable below jobs/ than below submit/, even after a remount."""
    kx = make_kx("allow_other,umask=022")
    jobs = {}
    for mode in (0o600, 0o640, 0o644):
        source = kx.base / f"app-{mode:o}.yaml"
        source.write_text(app("true"))
        source.chmod(mode)
        run(["cp", "--preserve=mode", str(source), str(kx / "submit")])
        os.chmod(kx / "submit" / source.name, mode)
        kx.write(f"submit/{source.name}", app("true"))
        jobs[mode] = kx.job_of(source.name)
        jobs[mode].finish()
    for _ in range(2):
        for mode, job in jobs.items():
            for name in ("app.yaml", "manifest.yaml"):
                assert stat.S_IMODE(os.stat(job / name).st_mode) == mode, (name, oct(mode))
                p = run(["cat", str(job / name)], check=False, user=USER)
                assert (p.returncode == 0) == bool(mode & 0o004), (name, oct(mode))
            assert run(["cat", str(job / "status")], user=USER).stdout
        kx.restart()


def test_app_yaml_stays_as_private_as_the_file_was(make_kx):
    """The umask of the mount that wrote the file applies, not the umask of a later mount."""
    kx = make_kx("allow_other,umask=077")
    kx.write("submit/app.yaml", app("true"))
    job = kx.job_of("app.yaml")
    job.finish()
    kx.options = "allow_other,umask=022"
    kx.restart()
    for name in ("app.yaml", "manifest.yaml"):
        assert stat.S_IMODE(os.stat(job / name).st_mode) == 0o600, name
        assert run(["cat", str(job / name)], check=False, user=USER).returncode != 0
    assert stat.S_IMODE(os.stat(records.of(kx, job.id)).st_mode) == 0o600
