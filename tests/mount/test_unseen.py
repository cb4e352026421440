# SPDX-License-Identifier: MIT
"""Writers that kxfs can't inspect. So at each close it decides whether to launch the file. The
tests run the tools of test_submit_tools.py, and check what is different."""

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess

import harness
import pytest
import submitting
import yaml
from lacking import need
from submitting import BAD, GOOD
from test_submit_tools import CHANGE, HALF, REPORT, SILENT, WAIT, programs, run_line, script  # noqa: F401

# Mounts whose users kxfs can't inspect, because kxfs runs in another pid namespace or as another
# user.

NOBODY = pwd.getpwnam(harness.USER).pw_uid


class Mount(harness.Kxfs):
    """A mount whose users kxfs can't inspect. PREFIX is a command in front of kxfs's own that puts kxfs into another
    environment; kxfs is then the started process or its child. With DEVICE, the test mounts, and kxfs gets
    /dev/fd/N."""

    def __init__(self, *args, prefix=(), device=False, **kwargs):
        super().__init__(*args, **kwargs)
        self.prefix = list(prefix)
        self.passed = device
        self.device = os.open("/dev/fuse", os.O_RDWR) if device else None

    def env(self):
        """Disable LeakSanitizer in a container: it looks for the threads of its process in /proc, which shows the
        numbers of our namespace."""
        env = super().env()
        if self.prefix == CONTAINER:
            env["ASAN_OPTIONS"] += ":detect_leaks=0"
        return env

    def command(self, *args):
        command = super().command(*args)
        if self.device is not None:
            command[-1] = f"/dev/fd/{self.device}"
        return [*self.prefix, *command]

    def start(self):
        if self.device is not None:
            options = (f"fd={self.device},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other,"
                       "default_permissions")
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.mount(b"kxfs", bytes(self.mnt), b"fuse.kxfs", 0, options.encode()) != 0:
                raise OSError(ctypes.get_errno(), "mount")
        with open(self.messages, "ab") as err:
            self.proc = subprocess.Popen(self.command("-f"), stdin=subprocess.DEVNULL, stdout=err, stderr=err,
                                         env=self.env(), cwd=self.work, start_new_session=True,
                                         pass_fds=[] if self.device is None else [self.device])
        ready = self.state / "ready"
        harness.wait_for(lambda: ready.exists() or self.proc.poll() is not None, what="the mount")
        assert self.proc.poll() is None, self.said()
        self.let_go()
        os.listdir(self.mnt)
        return self

    def let_go(self):
        """Close our descriptor, which would keep the mount alive."""
        if self.device is not None:
            os.close(self.device)
            self.device = None

    def end(self, sig=signal.SIGTERM, timeout=60):
        """Signal the child of unshare(1), because unshare does not pass signals on to it."""
        found = [self.proc.pid]
        with contextlib.suppress(OSError):
            with open(f"/proc/{found[0]}/task/{found[0]}/children") as f:
                found = [int(pid) for pid in f.read().split()] if self.prefix[:1] == ["unshare"] else found
        for pid in found:
            harness.kill(pid, sig)
        proc, self.proc = self.proc, None
        status = proc.wait(timeout)
        if self.passed:
            self.abort()  # the program that has mounted also unmounts
        return status

    def close(self):
        self.let_go()
        return super().close()


# kxfs is the first process of a pid namespace, like the only program in a container.
CONTAINER = ["unshare", "--pid", "--fork"]
# kxfs runs as an ordinary user without any rights, who may not inspect processes of other users.
OTHER = ["setpriv", f"--reuid={harness.USER}", "--regid=nogroup", "--clear-groups", "--bounding-set=-all",
         "--inh-caps=-all", "--no-new-privs"]


# --- Closes -----------------------------------------------------------------------------------

# A process that has the file open twice, by open or dup, is considered done at its first close.
TWICE = ("python two handles", "python dup")
NAMESPACE = "in a different pid namespace"


@pytest.fixture
def make_unseen(make_kx):
    def make(where):
        passed = where in ("other user", "driver")
        prefix = {"container": CONTAINER, "other user": OTHER, "driver": [*CONTAINER, "--mount-proc"]}
        kx = make_kx("allow_other" if passed else "", kind=Mount, user=harness.USER if where == "other user" else None,
                     prefix=prefix[where], device=passed)
        kx.user = None  # root writes, even if kxfs runs as another user
        return kx

    return make


@pytest.fixture
def kx(make_unseen):
    return make_unseen("container")


def writers(kx):
    return yaml.safe_load(kx.read(".kxfs/info"))["writers"]


@pytest.mark.parametrize("tool", [t for t in (*REPORT, *SILENT) if t not in TWICE])
def test_good(kx, tool):
    status, err = script(kx, {**REPORT, **SILENT}[tool], GOOD)
    assert status == 0, err
    submitting.launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == GOOD
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job"]


@pytest.mark.parametrize("tool", REPORT)
def test_bad_is_reported(kx, tool):
    status, err = script(kx, REPORT[tool], BAD)
    assert status != 0, err
    assert "Invalid argument" in err or "Bad message" in err
    submitting.refused(kx, "x.yaml")


@pytest.mark.parametrize("tool", SILENT)
def test_bad_leaves_an_error(kx, tool):
    script(kx, SILENT[tool], BAD)
    submitting.refused(kx, "x.yaml")


@pytest.mark.parametrize("tool", CHANGE)
def test_change(kx, tool):
    old = GOOD.replace('"true"', '"true old"')
    assert submitting.put(kx, "x.yaml", old) == ""
    before = submitting.launched(kx)
    assert len(before) == 1
    status, err = script(kx, CHANGE[tool], "")
    assert status == 0, err
    submitting.launched_once(kx, "x.yaml", before)


@pytest.mark.parametrize("where, why", [("container", NAMESPACE), ("driver", NAMESPACE),
                                        ("other user", "kxfs has no permission to inspect processes")])
def test_result_at_the_close(make_unseen, where, why):
    """The close of cp gets the result, no matter where kxfs runs. The next write gets a result of its own."""
    kx = make_unseen(where)
    assert (writers(kx) == "seen") == (where == "other user")
    assert submitting.put(kx, "bad.yaml", BAD) == "EINVAL"
    assert "nonsense" in submitting.error_of(kx, "bad.yaml") and not submitting.launched(kx)
    assert submitting.put(kx, "x.yaml", GOOD) == ""
    first = submitting.job_of(kx, "x.yaml")
    assert submitting.launched(kx) == {first}
    assert why in writers(kx)
    assert script(kx, SILENT["bash group"].replace("$F", "y.yaml"), GOOD)[0] == 0
    assert submitting.job_of(kx, "y.yaml") and submitting.error_of(kx, "y.yaml") is None
    assert len(submitting.launched(kx)) == 2


@pytest.mark.parametrize("line", ["{half} > $F & {wait}; kill -KILL $!; wait",
                                  "{{ {half} & {wait}; kill -KILL $!; wait; }} > $F"])
def test_killed_half_way(kx, line):
    """kxfs can't know that the writer was killed, but it refuses the incomplete document because it is invalid."""
    (kx.work / "doc.go").touch()
    script(kx, line.format(half=HALF, wait=WAIT), GOOD)
    submitting.refused(kx, "x.yaml", "x.yaml:")
    assert submitting.put(kx, "x.yaml", GOOD) == ""
    submitting.launched_once(kx, "x.yaml")


@pytest.mark.parametrize("line, launched", [
    ("$ENDS main write exit > x.yaml", True), ("$ENDS second write exit > x.yaml", True),
    ("$ENDS last write fail > x.yaml", True), ("$GO exit > x.yaml", True), ("$GO half > x.yaml", False),
    ("$ENDS main half KILL > x.yaml", False), ("$ENDS second half TERM > x.yaml", False),
])
@pytest.mark.parametrize("where", ["container", "other user"])
def test_threads(make_unseen, programs, where, line, launched):
    """kxfs can't see whether a signal has ended the threads. It does not launch contents that break off within a
    line."""
    kx = make_unseen(where)
    run_line(kx, line, programs)
    if launched:
        submitting.launched_once(kx, "x.yaml")
    else:
        submitting.refused(kx, "x.yaml", "so the file may be incomplete")


def test_part_that_is_right(kx):
    """Contents that break off within a line are not launched, even if they are valid. JSON may lack the last
    newline, because its bracket shows that it is complete."""
    text = "name: app\nroles:\n- name: main\n  image: x\n  entrypoint: 'true'\n  num_replicas: 1"
    assert submitting.put(kx, "x.yaml", text) == "EINVAL"
    submitting.refused(kx, "x.yaml", "so the file may be incomplete")
    assert submitting.put(kx, "x.yaml", text + "2\n") == ""
    submitting.launched_once(kx, "x.yaml")
    assert submitting.put(kx, "y.json", GOOD.rstrip("\n")) == ""


def test_two_descriptors(kx):
    """The first close ends a document. Later writes make a new document, which is launched or refused separately."""
    half = len(GOOD) // 2
    fd = os.open(kx / "submit/x.yaml", os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.write(fd, GOOD[:half].encode())
        with pytest.raises(OSError, match="Invalid argument"):
            os.close(os.dup(fd))
        submitting.refused(kx, "x.yaml")
        os.write(fd, GOOD[half:].encode())
        os.close(os.dup(fd))
        submitting.launched_once(kx, "x.yaml")
        before = submitting.launched(kx)
        os.close(os.dup(fd))  # nothing was written since the last close
        assert submitting.launched(kx) == before
        os.write(fd, b"\n")
        os.close(os.dup(fd))
        submitting.launched_once(kx, "x.yaml", before)
        os.write(fd, b"}\n")
    finally:
        with pytest.raises(OSError, match="Invalid argument"):
            os.close(fd)
    assert submitting.error_of(kx, "x.yaml")


def test_doctor(binary):
    """doctor reports that processes of other containers are invisible if and only if kxfs is process 1 of its pid
    namespace."""
    command = [binary, "doctor", "local:"]
    inside = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", *command], check=False, text=True,
                            stdout=subprocess.PIPE, timeout=harness.LIMIT, env=harness.base_env())
    assert "  missing  writers not seen: the processes that write to submit/ are in a different pid" in inside.stdout
    assert "set shareProcessNamespace: true in the pod" in inside.stdout
    outside = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, timeout=harness.LIMIT,
                             env=harness.base_env())
    assert "not seen" not in outside.stdout


# Mount, kxfs and its users are all in a user namespace of an ordinary user.
USERNS = """set -e
mount --bind "$BASE/dev/fuse" /dev/fuse
"$@" &
until test -e "$STATE/ready"; do kill -0 $!; sleep 0.05; done
cd "$MNT"
if cp "$BASE/bad.yaml" submit/; then exit 9; fi
cp "$BASE/good.yaml" submit/
{ head -n 2 "$BASE/good.yaml"; tail -n +3 "$BASE/good.yaml"; } > submit/steps.yaml
grep -qx SUCCEEDED submit/good.yaml.job/wait
grep writers: .kxfs/info
ls jobs | wc -l
cd /
umount "$MNT"
wait
"""


def test_user_namespace(make_kx):
    """In a pod with hostUsers: false, kxfs is root inside and an ordinary user outside. It only needs a device that
    it may open."""
    unprivileged = ["setpriv", *OTHER[1:4], "unshare", "-Urm"]
    need("user namespaces for ordinary users", harness.run([*unprivileged, "true"], check=False).returncode == 0)
    kx = make_kx(start=False, user=harness.USER)
    (kx.base / "dev").mkdir(mode=0o755)
    device = kx.base / "dev/fuse"
    os.mknod(device, 0o020666, os.makedev(10, 229))
    os.chmod(device, 0o666)
    for name, text in (("good", GOOD), ("bad", BAD)):
        (kx.base / f"{name}.yaml").write_text(text)
    p = harness.run([*unprivileged, "sh", "-c", USERNS, "sh", *kx.command("-f")], check=False, cwd=kx.work,
                    env={**kx.env(), "BASE": str(kx.base), "STATE": str(kx.state), "MNT": str(kx.mnt)})
    assert p.returncode == 0, p.stderr
    assert p.stdout.split("\n")[-3:] == ["writers: 'seen'", "2", ""]
