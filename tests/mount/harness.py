# SPDX-License-Identifier: MIT
"""The base of the mounted tests: private mounts, jobs, tools run with a timeout, clean-up.

Every process that a test starts has KXFS_TEST_MARK in its environment, and so have all its children, jobs too. So
the tests find and end everything that a failing test leaves, by its process id. `python3 harness.py --clean RUN DIR`
does that for a whole run (tests/run).

KXFS_BINARY names the program to test (default: build/fs/kxfs). KXFS_TEST_DIR is where the temporary directory is
made; an ordinary user must be able to reach it."""

import contextlib
import errno
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = os.environ.get("KXFS_TEST_RUN", "alone")
MARK = f"{RUN}/{uuid.uuid4()}"  # the mark of this pytest process and of everything that it starts
LIMIT = 120  # the seconds that a condition or a tool gets; usually they need far less
FINAL = ("SUCCEEDED", "FAILED", "CANCELLED")
USER = "nobody"  # the ordinary user
TOOL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def wait_for(cond, timeout=LIMIT, what=None, step=0.02):
    """Poll COND until it is true, and return its value. After TIMEOUT seconds, fail with the message WHAT, or WHAT()
    if it is a function."""
    end = time.monotonic() + timeout
    while True:
        value = cond()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what() if callable(what) else what or cond}")
        time.sleep(step)


# --- processes -------------------------------------------------------------------------------


def base_env(**more):
    """Return the environment of all processes that tests start: small, always the same, and with the mark."""
    env = {
        "PATH": TOOL_PATH,
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "HOME": "/nonexistent",
        "KXFS_TEST_MARK": MARK,
    }
    if "LLVM_PROFILE_FILE" in os.environ:  # a build of `tests/run coverage`
        env["LLVM_PROFILE_FILE"] = os.environ["LLVM_PROFILE_FILE"]
    env.update(more)
    return env


def marked_pids(mark=MARK, entries=None):
    """Return the ids of the processes whose mark begins with MARK, among ENTRIES or all processes. pytest itself has
    no mark."""
    needle = f"\0KXFS_TEST_MARK={mark}".encode()
    found = []
    for entry in entries or filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if needle in b"\0" + pathlib.Path(f"/proc/{entry}/environ").read_bytes():
                found.append(int(entry))
    return found


def alive(pid):
    """True if process PID runs; false for a zombie."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def kill(pid, sig=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)


def kill_marked(pid, mark):
    """Kill process PID if it has MARK. Check the mark, because another process may have the same number by now."""
    with contextlib.suppress(OSError):
        fd = os.pidfd_open(pid)
        try:
            if pid in marked_pids(mark, [str(pid)]):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        finally:
            os.close(fd)


def describe(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "(gone)"


def end_marked(mark=MARK, patience=10):
    """End the processes with MARK. Those that block in a mount end with the mount, but may need a moment. After
    PATIENCE seconds, kill those that still run, and their new children. Return the list of the killed."""
    found = {}
    end = time.monotonic() + patience
    while marked_pids(mark) and time.monotonic() < end:
        time.sleep(0.05)
    end = time.monotonic() + LIMIT / 4
    while (pids := marked_pids(mark)) and time.monotonic() < end:
        for pid in pids:
            found.setdefault(pid, f"process {pid} still ran: {describe(pid)}")
            kill_marked(pid, mark)
        time.sleep(0.05)
    return list(found.values())


def run(cmd, check=True, timeout=LIMIT, text=True, user=None, **kwargs):
    """Run a list or a shell line as subprocess.run does, with a timeout, captured output, and the mark."""
    shell = isinstance(cmd, str)
    if shell:
        cmd = ["/bin/bash", "-c", cmd]
    env = base_env(**kwargs.pop("env", {}))
    if user:
        kwargs.update(user=user, group=pwd.getpwnam(user).pw_gid, extra_groups=[])
    if "input" not in kwargs:
        kwargs.setdefault("stdin", subprocess.DEVNULL)
    kwargs.setdefault("stdout", subprocess.PIPE)
    kwargs.setdefault("stderr", subprocess.PIPE)
    p = subprocess.run(cmd, env=env, timeout=timeout, text=text, errors="replace" if text else None,
                       check=False, **kwargs)
    if check and p.returncode != 0:
        raise AssertionError(f"{cmd}: status {p.returncode}\n{p.stdout}\n{p.stderr}")
    return p


def popen(cmd, user=None, **kwargs):
    """Start a list or a shell line as subprocess.Popen does, with the mark. The clean-up after the test ends it if it
    still runs."""
    if isinstance(cmd, str):
        cmd = ["/bin/bash", "-c", cmd]
    env = base_env(**kwargs.pop("env", {}))
    if user:
        kwargs.update(user=user, group=pwd.getpwnam(user).pw_gid, extra_groups=[])
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(cmd, env=env, **kwargs)


def run_tty(cmd, user=None):
    """Run a shell line on a terminal of its own, without input. Return (status, output)."""
    p = run(["script", "-qec", cmd, "/dev/null"], check=False, user=user)
    return p.returncode, p.stdout.replace("\r\n", "\n")


# --- mounts ----------------------------------------------------------------------------------


def mounts(kind="fuse.kxfs"):
    """Return the mount points of file system type KIND (None: any) on this machine, in the order of their mounts."""
    found = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        left, _, right = line.partition(" - ")
        if kind in (None, right.split()[0]):
            path = left.split()[4]
            found.append(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), path))
    return found


def is_mounted(path):
    return os.path.realpath(os.path.dirname(path)) + "/" + os.path.basename(path) in mounts()


def fuse_connection(path):
    """Return the directory of PATH's FUSE connection in /sys/fs/fuse, or None if PATH is not mounted."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        fields = line.split()
        if fields[4] == str(path):
            return f"/sys/fs/fuse/connections/{fields[2].partition(':')[2]}"
    return None


@contextlib.contextmanager
def tmpfs(path, size):
    """Put a small disk on the directory PATH during a `with` block."""
    run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "kxfs-test", str(path)])
    try:
        yield
    finally:
        run(["umount", "-l", str(path)])


def remove_tree(path):
    """Remove a directory tree, even if tests have changed the modes of its directories."""
    for top, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            os.chmod(top, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def clean(mark, directory):
    """End every process with MARK, unmount everything below DIRECTORY, and remove DIRECTORY. Return a list of what
    was left there."""
    left = []
    directory = os.path.realpath(directory)
    for path in reversed(mounts(None)):  # also the small disks that tests make
        if path.startswith(directory + "/"):
            left.append(f"mount {path}")
            subprocess.run(["umount", "-l", path], check=False)
    left += end_marked(mark, patience=0)
    if os.path.isdir(directory):
        left += [f"directory {path}" for path in pathlib.Path(directory).glob("kx-*")]
        remove_tree(directory)
    return left


SANITIZER = re.compile(rb"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|runtime error:")
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "second_deadlock_stack=1:history_size=4",
}


class Kxfs:
    """One mount with its own state directory. It runs in the foreground, so that it is a child of pytest."""

    def __init__(self, binary, top, options="", source="local:", user=None, args=(), env=None):
        self.binary = binary
        self.user = user
        self.options = options
        self.source = source
        self.args = list(args)
        self.more_env = dict(env or {})
        self.proc = None
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="kx-", dir=top))
        self.base.chmod(0o755)
        self.mnt = self.base / "mnt"
        self.state = self.base / "state"
        self.work = self.base / "work"  # jobs run here
        self.messages = self.base / "stderr"
        for path in (self.mnt, self.state, self.work, self.base / "san"):
            path.mkdir(mode=0o700)
        if user:
            uid = pwd.getpwnam(user).pw_uid
            for path in (self.base, *self.base.iterdir()):
                os.chown(path, uid, pwd.getpwnam(user).pw_gid)

    def __truediv__(self, name):
        return self.mnt / name

    def folder(self, job):
        """Return the folder of JOB's output in STATE/output. If there is none, return a path that does not exist."""
        disk = self.base / "disk"  # the directory behind a slow disk (disk.py)
        return self.state / "output" / folder(disk if disk.exists() else self.state, job).name

    def record(self, job):
        """Return the path of JOB's record. If there is none, return a path that does not exist."""
        return self.state / "jobs" / self.folder(job).name

    def env(self):
        """Return the environment in which kxfs runs."""
        env = {k: f"{v}:log_path={self.base}/san/report" for k, v in SANITIZER_ENV.items()}
        env["TSAN_OPTIONS"] += f":suppressions={self.base.parent}/tsan.supp"
        return base_env(**{**env, **self.more_env})

    def command(self, *args):
        """Return the command line of kxfs, with ARGS in front of its arguments."""
        opts = f"state={self.state}" + ("," + self.options if self.options else "")
        return [self.binary, *args, *self.args, "-o", opts, self.source, str(self.mnt)]

    def identity(self):
        """Return the arguments of subprocess.Popen that start a child as the user of the mount."""
        if not self.user:
            return {}
        return {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []}

    def start(self):
        """Mount; return when the mount answers."""
        assert self.proc is None
        if self.user and not os.stat("/dev/fuse").st_mode & 0o002:
            os.chmod("/dev/fuse", 0o666)  # as udev does; without udev, only root may open it
        with open(self.messages, "ab") as err:
            self.proc = subprocess.Popen(self.command("-f"), stdin=subprocess.DEVNULL, stdout=err,
                                         stderr=err, env=self.env(), cwd=self.work,
                                         start_new_session=True, **self.identity())

        def up():
            if self.proc.poll() is not None:
                code, self.proc = self.proc.returncode, None
                raise AssertionError(f"kxfs ended with {code}:\n{self.said()}")
            # is_mounted() is not enough: a dead mount of the last run may still exist.
            with contextlib.suppress(FileNotFoundError):
                return (self.state / "lock").read_text().startswith(f"pid {self.pid}\nphase mounted\n")
            return False

        wait_for(up, what="the mount")
        # kxfs may be mounted before its FUSE loop serves requests, so wait for an answer.
        self.call("test -e .kxfs/info")
        return self

    def call(self, line, **kwargs):
        """Run a shell line in the mount point as the user of the mount."""
        return run(f"cd {self.mnt} && {line}", user=self.user, **kwargs)

    @property
    def pid(self):
        return self.proc.pid

    def said(self):
        """Return what the program printed."""
        return self.messages.read_text(errors="replace") if self.messages.exists() else ""

    def end(self, sig=signal.SIGTERM, timeout=60):
        """End kxfs with SIG and return its status. After SIGKILL, its dead mount remains."""
        proc, self.proc = self.proc, None
        # Unlike os.kill(), this does nothing if the process has ended, when its id may be reused.
        proc.send_signal(sig)
        try:
            return proc.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            stacks = self.stacks(proc.pid)
            self.abort()
            kill(proc.pid)
            proc.wait(timeout=LIMIT)
            raise AssertionError(f"kxfs still ran {timeout} s after signal {sig}\n{stacks}") from None

    @staticmethod
    def stacks(pid):
        """Return the stacks of all threads of PID, for the report of a failure."""
        if not shutil.which("gdb"):
            return ""
        p = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, check=False, timeout=LIMIT)
        return p.stdout.decode(errors="replace")

    def helpers(self):
        """Return the helper processes of this mount's jobs."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                name = pathlib.Path(f"/proc/{entry}/comm").read_text().strip()
                if name in ("job-helper", "job-guard") and os.readlink(f"/proc/{entry}/cwd").startswith(str(self.state)):
                    found.append(int(entry))
        return found

    def restart(self, sig=signal.SIGTERM, options=None):
        """End kxfs with SIG, and mount again with the same state directory, and with OPTIONS if they are given."""
        code = self.end(sig)
        assert code == (-sig if sig == signal.SIGKILL else 0), self.said()
        if options is not None:
            self.options = options
        return self.start()

    def abort(self):
        """Unmount, no matter what kxfs does."""
        conn = fuse_connection(self.mnt)
        if conn:
            with contextlib.suppress(OSError):
                pathlib.Path(conn, "abort").write_text("1")
        if is_mounted(self.mnt):
            subprocess.run(["umount", "-l", str(self.mnt)], check=False)

    def close(self):
        """Clean up after a test. Return a list of everything that went wrong."""
        wrong = []
        if self.proc is not None and self.proc.poll() is not None:
            wrong.append(f"kxfs ended by itself with {self.proc.returncode}:\n{self.said()}")
            self.proc = None
        if self.proc is not None:
            try:
                code = self.end()
                if code != 0:
                    wrong.append(f"kxfs ended with {code} on SIGTERM:\n{self.said()}")
            except AssertionError as e:
                wrong.append(str(e))
            if is_mounted(self.mnt):
                wrong.append("the mount is still there after kxfs has ended")
        self.abort()
        wrong += self.sanitizer_reports()
        remove_tree(self.base)
        return wrong

    def sanitizer_reports(self):
        reports = [p.read_text(errors="replace") for p in sorted((self.base / "san").iterdir())]
        if SANITIZER.search(self.said().encode()):
            reports.append(self.said())
        return reports

    # --- what users do ---

    def read(self, *names, binary=False):
        path = self.mnt.joinpath(*names)
        return path.read_bytes() if binary else path.read_text()

    def ls(self, *names):
        return sorted(os.listdir(self.mnt.joinpath(*names)))

    def history(self):
        """Return the jobs in history/, without its lists."""
        return [name for name in self.ls("history") if name not in ("list", "list.jsonl")]

    def write(self, name, text):
        """Open NAME, write TEXT and close, as cp does. Raise the OSError of close()."""
        data = text.encode() if isinstance(text, str) else text
        fd = os.open(self.mnt / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
        except OSError:
            with contextlib.suppress(OSError):
                os.close(fd)
            raise
        os.close(fd)

    def submit(self, text, name=None):
        """Write TEXT to a file in submit/, and return the job that was launched from it."""
        name = name or f"app-{uuid.uuid4().hex[:8]}.yaml"
        self.write(f"submit/{name}", text)
        return self.job_of(name)

    def job_of(self, name):
        target = os.readlink(self.mnt / "submit" / f"{name}.job")
        assert target.startswith("../jobs/"), target
        return Job(self, os.path.basename(target))

    def jobs(self):
        return [Job(self, name) for name in self.ls("jobs")]


class Job:
    """A job of a mount, known by its id."""

    def __init__(self, kx, ident):
        self.kx = kx
        self.id = ident
        self.place = "jobs"

    def __truediv__(self, name):
        return self.dir / name

    def __repr__(self):
        return f"Job({self.id})"

    @property
    def dir(self):
        return self.kx.mnt / self.place / self.id

    @property
    def old(self):
        """The job's directory in history/."""
        return self.kx.mnt / "history" / self.id

    def read(self, *names, binary=False):
        path = self.dir.joinpath(*names)
        return path.read_bytes() if binary else path.read_text()

    def state(self):
        return (self.dir / "state").read_text().strip()

    def status(self):
        return json.loads((self.dir / "status.json").read_text())

    def replica(self, name="main-0"):
        """Return the status of the replica whose directory is NAME."""
        for role in self.status()["roles"]:
            for rep in role["replicas"]:
                if f"{role['name']}-{rep['id']}" == name:
                    return rep
        raise KeyError(name)

    def gap(self, replica="main-0", where=None):
        """Return the number of gaps in the output of REPLICA, according to its status. WHERE is the job's directory
        if that is not in jobs/."""
        text = ((where or self.dir) / replica / "status").read_text()
        return int(re.search(r"^gap: (\d+)$", text, re.MULTILINE)[1])

    def log(self, replica="main-0", name="log"):
        return (self.dir / replica / name).read_bytes()

    def never(self, state="CANCELLED"):
        """Wait until the job is in history/ in STATE. Such a job was not launched, and never will
        be."""
        self.place = "history"
        wait_for(self.old.exists, what=f"{self.id} in history")
        return self.until(state)

    def until(self, *states, timeout=LIMIT):
        """Wait until the job is in one of STATES. Fail immediately if it reaches another final state."""

        def reached():
            state = self.state()
            if state in states:
                return state
            if state in FINAL:
                raise AssertionError(f"{self.id} is {state}, not {states}:\n{self.explain()}")
            return None

        return wait_for(reached, timeout, f"{self.id} in {states}")

    def finish(self, *states, timeout=LIMIT):
        """Wait until the job has ended in one of STATES (default: SUCCEEDED)."""
        return self.until(*(states or ("SUCCEEDED",)), timeout=timeout)

    def until_logged(self, text, replica="main-0", timeout=LIMIT):
        """Wait until REPLICA has printed TEXT."""
        data = text.encode() if isinstance(text, str) else text

        def logged():
            # Opening the log fails with a timeout if no output arrives for 10 s.
            with contextlib.suppress(FileNotFoundError, TimeoutError):
                return data in self.log(replica)
            return False

        wait_for(logged, timeout, f"{text!r} in the log of {replica}")

    def pid(self, replica="main-0"):
        """Return the number in the first line that REPLICA prints."""
        self.until_logged("\n", replica)
        return int(self.log(replica).split()[0])

    def explain(self):
        with contextlib.suppress(OSError):
            return "\n".join([self.read("status"), self.read("why"),
                              self.read("log", binary=True)[-2000:].decode(errors="replace")])
        return "(gone)"

    def cancel(self):
        remove(self.dir)


def app(script, name="app", role="main", roles=None, **fields):
    """Return an AppDef as JSON. Its roles are ROLES, or one role that runs SCRIPT with /bin/sh. Each `$` of SCRIPT
    is protected from macros."""
    return json.dumps({"name": name, "roles": roles or [sh_role(script, role, **fields)]}, indent=1)


def sh_role(script, role="main", **fields):
    return {"name": role, "image": "none", "entrypoint": "/bin/sh",
            "args": ["-c", script.replace("$", "$$")], **fields}


def python_app(script, **fields):
    """Like app(), for a Python script."""
    return app("", roles=[{"name": fields.pop("role", "main"), "image": "none",
                           "entrypoint": "/usr/bin/python3",
                           "args": ["-u", "-c", script.replace("$", "$$")], **fields}])


def record(state, job):
    """Return the path of JOB's record in STATE/jobs. If there is none, return a path that does not exist."""
    for _ in range(3):  # a listing may miss a file that is replaced at that moment
        for path in (state / "jobs").glob("[!.]*"):
            with contextlib.suppress(OSError):
                if path.is_file() and f'"id":"{job}"' in path.read_text(errors="replace"):
                    return path
    return state / "jobs" / "none"


def folder(state, job):
    """Return the folder of JOB in STATE/output. If there is none, return a path that does not exist."""
    return state / "output" / record(state, job).name


def decided(kx):
    """Return the ids in jobs/, except those of launches whose result is unknown because kxfs was killed."""
    jobs = map(json.loads, (kx / "list.jsonl").read_text().splitlines())
    return {job["id"] for job in jobs if job["reason"] != "Submitting"}


def write_ctl(job, word):
    """Write WORD to the job's ctl with a single write(). Raise its OSError."""
    fd = os.open(job / "ctl", os.O_WRONLY)
    try:
        os.write(fd, word.encode())
    finally:
        os.close(fd)


def grows(job):
    """True if JOB, which prints all the time, still prints."""
    before = len(job.log())
    time.sleep(0.3)
    return len(job.log()) != before


def actions(job):
    """Return the actions that JOB's ctl lists."""
    return job.read("ctl").splitlines()


def err_of(fn, *args, **kwargs):
    """Return the name of the errno with which FN fails, or "" if it succeeds."""
    try:
        fn(*args, **kwargs)
    except OSError as e:
        return errno.errorcode[e.errno]
    return ""


def rmdir(path):
    """Remove the directory of a job. rmdir waits up to 3 s for the disk; if it times out, the removal continues
    anyway."""
    try:
        os.rmdir(path)
    except TimeoutError:
        wait_for(lambda: not os.path.lexists(path), what=f"{path} to go")


def removed(p, *paths):
    """Check that the command P removed PATHS, directories of jobs. As in rmdir(), only a slow disk may delay a
    removal."""
    if p.returncode != 0:
        assert p.stderr and all("timed out" in line for line in p.stderr.splitlines()), p.stderr
        wait_for(lambda: not any(os.path.lexists(path) for path in paths), what=f"{paths} to go")


def remove(path):
    """Like rmdir(), but with rm -r."""
    removed(run(["rm", "-r", str(path)], check=False), path)


def permissions(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] != "--clean":
        sys.exit("usage: harness.py --clean RUN DIR")
    for thing in clean(sys.argv[2] + "/", sys.argv[3]):
        print("left behind:", thing)
