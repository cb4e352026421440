# SPDX-License-Identifier: MIT
"""Access, ownership and permissions: private mounts, allow_other, uid, gid, umask."""

import os
import pathlib
import pwd
import re
import signal
import stat

import records
from harness import USER, alive, app, run, wait_for
from preload import USERS, preload


def started(kx):
    job = kx.submit(app("echo $$; exec sleep 1000"))
    job.until_logged("\n")
    job.until("RUNNING")  # output may be there first
    return job, int(job.log())


def test_private(kx):
    """Without allow_other, other users have no access."""
    p = run(["ls", str(kx.mnt)], user=USER, check=False)
    assert p.returncode != 0 and "Permission denied" in p.stderr


def test_allow_other(make_kx):
    kx = make_kx("allow_other,umask=022")
    assert "default_permissions" in pathlib.Path("/proc/self/mountinfo").read_text().split(f" {kx.mnt} ")[1].split("\n")[0]
    job, pid = started(kx)
    who = {"user": USER}
    assert run(["cat", str(job / "state")], **who).stdout == "RUNNING\n"
    for command in (f"rmdir {job.dir}", f"rm -r {job.dir}", f"echo terminate > {job.dir}/ctl",
                    f"mv {job.dir} {kx.mnt}/history/", f"rmdir {job.dir}/main-0"):
        assert run(command, check=False, **who).returncode != 0, command
    assert alive(pid) and job.state() == "RUNNING"
    job.cancel()
    wait_for(lambda: not alive(pid))


def test_allow_other_in_submit(make_kx):
    """submit/ is like /tmp: every user creates files, owns them, and can't remove others'. Only the owner of jobs/,
    and root, may end the jobs that they launch."""
    kx = make_kx("allow_other,umask=077")
    sub, uid = kx / "submit", pwd.getpwnam(USER).pw_uid
    assert stat.S_IMODE(os.stat(sub).st_mode) == 0o1777
    assert os.stat(sub).st_uid == os.stat(kx / "jobs").st_uid == 0
    kx.end()
    kx.options = "allow_other,umask=022"
    kx.start()
    as_user = {"user": USER, "cwd": str(sub)}
    text = app("id -u; exec sleep 1000")
    run("cat > theirs.yaml; test -s theirs.yaml.job/state", input=text, **as_user)
    run("cat > bad.yaml; rm bad.yaml; test -s bad.yaml.error", input="bad", **as_user)
    job = kx.job_of("theirs.yaml")
    job.until_logged(f"{os.getuid()}\n")  # it runs as who mounts
    job.until("RUNNING")
    for name in ("theirs.yaml", "theirs.yaml.job", "bad.yaml.error"):
        assert os.lstat(sub / name).st_uid == uid, name
    assert os.stat(job.dir).st_uid == 0
    assert run(["cat", str(job / "main-0/log")], **as_user).stdout == f"{os.getuid()}\n"
    for command in (f"rm -r {job.dir}", "rmdir theirs.yaml.job/", f"echo suspend > {job.dir}/ctl",
                    f"find {job.dir} -delete"):
        assert run(command, check=False, **as_user).returncode != 0, command
    assert job.state() == "RUNNING"

    kx.write("submit/ours.yaml", app("true"))
    kx.write("submit/scratch", "ours")
    for command in ("rm -f ours.yaml", "rm -f ours.yaml.job", "mv theirs.yaml ours.yaml", "mv scratch mine",
                    "echo x >> scratch", "chmod 777 scratch", "touch scratch"):
        p = run(command, check=False, **as_user)
        assert p.returncode != 0 and re.search("denied|not permitted", p.stderr), command
    assert kx.read("submit", "scratch") == "ours"
    run("chmod 600 theirs.yaml; mv theirs.yaml again.yaml", **as_user)
    assert kx.ls("submit") == ["again.yaml", "bad.yaml.error", "ours.yaml", "ours.yaml.job", "scratch", "scratch.error",
                               "theirs.yaml.job"]
    assert kx.ls("jobs") == sorted([job.id, kx.job_of("ours.yaml").id])
    kx.restart(signal.SIGKILL)
    assert os.lstat(sub / "theirs.yaml.job").st_uid == os.lstat(sub / "again.yaml").st_uid == uid
    run("rm again.yaml theirs.yaml.job", **as_user)
    job.cancel()
    assert (job.old / "state").read_text() == "CANCELLED\n"


# An ordinary user's mount with allow_other, on a machine that allows it, in which root creates two files; then the next
# mount.
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
cat $MNT/submit/a.yaml.job/wait  # root's writers can't be watched, but hear the verdict at their close
end
kxfs "$@"
stat -c %u $MNT/submit/a.yaml $MNT/submit/a.yaml.job $MNT/submit/scratch
chown 0 $MNT/submit/scratch || echo refused
end
"""


def test_names_that_cannot_be_looked_up(make_kx, tmp_path):
    """The directory service does not answer: a user other than the mounter submits under a number, nothing else
    waits for it, nor does the end of the mount, and the name is shown when it answers again."""
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
    """A kxfs without root can't change owners on disk, and remembers them anyway."""
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
    """Files that may hold secrets are not more readable below jobs/ than below submit/, also after a remount."""
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
    """The umask of the mount that wrote the file counts, not that of a later one."""
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
