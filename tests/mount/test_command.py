# SPDX-License-Identifier: MIT
"""The command line: starts that fail, kxfs doctor, shell completion."""

import errno
import os
import pathlib
import pty
import re
import resource
import select
import signal
import subprocess
import time

import harness
import pytest
import records
import yaml
from disk import started as on_slow_disk
from harness import (ROOT, TOOL_PATH, alive, app, base_env, err_of, is_mounted, kill, remove, rmdir, run, sh_role,
                     tmpfs, wait_for)
from starting import refused, started

# --- Starts that fail -------------------------------------------------------------------------
# A start changes nothing before its mount is up. Jobs that a crash or `linger` has left running continue, whether the
# start succeeds or fails.

NO_RIGHT = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--no-new-privs"]


def crashed(kx):
    """Kill kxfs, and remove its dead mount."""
    kx.end(signal.SIGKILL)
    run(["umount", "-l", str(kx.mnt)])


def is_left(kx, job, pid):
    """Check that the job still runs, and that the next mount shows it."""
    assert alive(pid)
    kx.start()
    job.until("RUNNING")
    assert alive(pid)


@pytest.mark.parametrize("how", ["crash", "linger"])
def test_refused(make_kx, how):
    """mount(2) fails, and kxfs notices only after all other preparations."""
    kx = make_kx("linger,grace=1" if how == "linger" else "grace=1")
    job, pid = started(kx)
    if how == "linger":
        kx.end()
        kx.options = "grace=1"
    else:
        crashed(kx)
    assert f"can't mount on {kx.mnt}" in refused(kx, command=[*NO_RIGHT, *kx.command()])
    is_left(kx, job, pid)


def test_few_descriptors(make_kx):
    """`ulimit -n` is too low for a start, no matter which descriptor is the first to fail."""
    kx = make_kx("grace=1")
    job, pid = started(kx)
    crashed(kx)
    for limit in range(5, 19):
        said = refused(kx, preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        assert "Too many open files" in said, limit
    is_left(kx, job, pid)


def test_fewer_descriptors_than_replicas(make_kx):
    """A job has more replicas than the limit of descriptors allows. After a crash, a start with the same limit adopts
    the running ones, each once. With a lower limit the start fails, and all of them continue."""
    kx = make_kx("grace=1", start=False)
    limit, limited = kx.base / "limit", kx.base / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -n $(cat {limit}) && exec {kx.binary} "$@"\n')
    limited.chmod(0o755)
    kx.binary = str(limited)
    limit.write_text("64")
    kx.start()
    job = kx.submit(app("", roles=[sh_role("echo $$ >> pids; exec sleep 1000", num_replicas=30)]))
    wait_for(lambda: "StartDelayed" in job.read("status.json"), what="replicas that wait for descriptors")
    before = [int(pid) for pid in (kx.work / "pids").read_text().split()]
    assert 1 < len(before) < 30
    crashed(kx)
    limit.write_text("26")
    assert "Too many open files" in refused(kx)
    assert all(alive(pid) for pid in before)
    limit.write_text("64")
    kx.start()
    assert all(alive(pid) for pid in before) and job.status()["retries"] == 0
    pids = [int(pid) for pid in (kx.work / "pids").read_text().split()]
    assert len(pids) < 30
    kx.end()
    wait_for(lambda: not any(alive(pid) for pid in pids), what="the end of all")


@pytest.mark.parametrize("options", ["gpus=1", "jobs=1"])
def test_record_unread(make_kx, options):
    """The disk does not return the record of a running job. kxfs gives neither the job's GPU nor its slot to another
    job."""
    with on_slow_disk(make_kx(f"grace=1,{options}", start=False)) as (kx, disk):
        given = {"cpu": 1, "gpu": 1, "memMB": 1}
        job, pid = started(kx, resource=given)
        waits = kx.submit(app("touch began", resource=given))
        crashed(kx)
        record = records.of(kx, job.id)
        disk.hang("open", f"/jobs/{record.name}", errno.EIO)
        said = refused(kx)
        assert f"{record} can't be read: Input/output error" in said
        assert f"to start without that job, move {record} elsewhere" in said
        disk.go_on()
        is_left(kx, job, pid)
        assert waits.state() == "PENDING" and not (kx.work / "began").exists()
        remove(job.dir)
        waits.finish()
        assert kx.end() == 0


@pytest.mark.parametrize("options", ["gpus=2", "jobs=1"])
@pytest.mark.parametrize("how", ["damaged", "removed"])
def test_record_damaged(make_kx, options, how):
    """The record of a running job is damaged. Until its program has ended, kxfs gives neither the job's GPUs nor its
    slot to another job."""
    kx = make_kx(f"grace=1,{options}")
    given = {"cpu": 1, "gpu": 2, "memMB": 1}
    job, pid = started(kx, resource=given)
    waits = kx.submit(app("touch began", resource=given))
    crashed(kx)
    record = records.of(kx, job.id)
    for _ in range(2):
        if how == "damaged":
            record.write_text("kxfs job 1")
        elif record.exists():
            record.unlink()
        kx.start()
        assert kx.ls("jobs") == [waits.id]
        assert f"{kx.state}/output/{record.name}: a program is running, but its job has no record" in kx.read(".kxfs/log")
        late = kx.submit(app("touch late", resource=given))
        assert waits.state() == late.state() == "PENDING"
        if "gpus" in options:
            assert yaml.safe_load(kx.read("queues/local/status"))["gpus_free"] == ""
        rmdir(late.dir)
        assert alive(pid) and not (kx.work / "began").exists()
        crashed(kx)
    kx.start()
    kill(pid)
    waits.finish()
    assert kx.end() == 0
    kx.start()
    assert (kx.state / "aside" / record.name / "logs").exists() == (how == "damaged")


@pytest.mark.parametrize("how", ["foreground", "background", "parent"])
def test_ended_while_it_starts(make_kx, how):
    """Ctrl-C, or the end of the parent that waits for the mount, aborts the start while kxfs reads the state directory."""
    with on_slow_disk(make_kx("grace=1", start=False)) as (kx, disk):
        job, pid = started(kx)
        crashed(kx)
        disk.hang("open", f"/jobs/{kx.folder(job.id).name}")
        with subprocess.Popen(kx.command(*["-f"] * (how == "foreground")), env=kx.env(), cwd=kx.work,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
            wait_for(lambda: disk.hangs("/jobs/"), what="the start to read")
            daemon = int((kx.state / "lock").read_text().split()[1])
            kill(p.pid, signal.SIGKILL if how == "parent" else signal.SIGINT)
            disk.go_on()
            p.wait(timeout=60)
            wait_for(lambda: not alive(daemon), what="the daemon to end")
        assert not is_mounted(kx.mnt)
        is_left(kx, job, pid)
        remove(job.dir)
        assert kx.end() == 0


# Replica 0 fails. Replica 1 runs on, and answers a file `ping` with a file `pong`.
ONE_FAILS = """
echo $$
[ "$N" = 1 ] && while :; do [ ! -e ping ] || touch pong; sleep 0.02; done
while [ ! -e go ]; do sleep 0.02; done
exit 3
"""


@pytest.mark.parametrize("policy, retries", [("APPLICATION", 0), ("APPLICATION", 1), ("ROLE", 1)])
@pytest.mark.parametrize("how", ["refused", "before ro", "during ro"])
def test_other_replica_has_failed(make_kx, how, policy, retries):
    """If a replica has failed, kxfs ends the job's other replica only when a writable mount is up."""
    kx = make_kx("grace=1")
    job = kx.submit(app(ONE_FAILS, num_replicas=2, max_retries=retries, retry_policy=policy, env={"N": "${replica_id}"}))
    for name in ("main-0", "main-1"):
        job.until_logged("\n", name)
    pids = [int(job.log(name)) for name in ("main-0", "main-1")]
    crashed(kx)
    kx.options = "grace=1" if how == "refused" else "ro,grace=1"
    if how == "during ro":
        kx.start()
    (kx.work / "go").touch()
    wait_for(lambda: not alive(pids[0]), what="replica 0 to fail")
    if how == "refused":
        refused(kx, command=[*NO_RIGHT, *kx.command()])
    else:
        if how == "before ro":
            kx.start()
        wait_for(lambda: job.replica("main-0")["exit_code"] == 3, what="the failure to be shown")
        assert job.replica("main-1")["state"] == "RUNNING"
        assert kx.end() == 0
    (kx.work / "ping").touch()
    wait_for(lambda: (kx.work / "pong").exists(), what="replica 1 to answer")
    assert alive(pids[1])
    kx.options = "grace=1"
    kx.start()
    job.finish("FAILED")
    assert not alive(pids[1]) and job.status()["retries"] == retries
    assert "main-0 ended with exit code 3" in job.read("why")
    assert job.replica("main-1")["state"] == "CANCELLED"


def left_behind(kx):
    """Two jobs of an earlier mount: one in history/ with 5 MB of output, and one that still runs."""
    gone = kx.submit(app("head -c 5000000 /dev/zero"))
    gone.finish()
    remove(gone.dir)
    job, pid = started(kx)
    crashed(kx)
    return gone, job, pid


def test_full_disk(make_kx):
    """A mount on a full disk shows everything, and removing old output frees space for new jobs."""
    kx = make_kx("grace=1", start=False)
    with tmpfs(kx.state, "16m"):
        kx.start()
        gone, job, pid = left_behind(kx)
        run(f"head -c 99999999 /dev/zero > {kx.state}/fill", check=False)
        kx.start()
        assert f"kxfs: {kx.state}: no space for the state (No space left on device): nothing can be submitted" in kx.said()
        job.until("RUNNING")
        assert err_of(kx.write, "submit/b.yaml", app("true")) == "ENOSPC"
        remove(gone.old)
        assert not kx.history()
        kx.submit(app("true"), "c.yaml").finish()
        remove(job.dir)
        wait_for(lambda: not alive(pid), what="the end of its program")
        kx.end()


def test_read_only_disk(make_kx):
    """On a read-only disk, kxfs mounts read-only, shows everything, and ends no job."""
    kx = make_kx("grace=1", start=False)
    with tmpfs(kx.state, "16m"):
        kx.start()
        gone, job, pid = left_behind(kx)
        run(f"mount --bind {kx.state} {kx.state} && mount -o remount,bind,ro {kx.state}")
        with subprocess.Popen(kx.command("-f"), env=kx.env(), cwd=kx.work, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as p:
            try:
                assert f"kxfs: {kx.state}: the disk is read-only, so the mount is read-only, too" in p.stderr.readline()
                wait_for(lambda: is_mounted(kx.mnt), what="the mount")
                job.until("RUNNING")
                assert kx.history() == [gone.id] and (gone.old / "log").stat().st_size > 5000000
                assert err_of(kx.write, "submit/b.yaml", app("true")) == "EROFS"
                assert err_of(os.rmdir, job.dir) == "EROFS"
            finally:
                p.terminate()
                said = p.communicate(timeout=60)[1]
        assert p.returncode == 0 and said.count("\n") < 10, said
        assert alive(pid)
        run(["umount", str(kx.state)])
        is_left(kx, job, pid)
        remove(job.dir)
        kx.end()


# --- kxfs doctor ------------------------------------------------------------------------------
# kxfs doctor on a machine without a cluster reports on FUSE and on the state directory.


def doctor(kx, *words, **kwargs):
    p = harness.run([kx.binary, "doctor", *words], check=False, **kwargs)
    assert p.stderr == ""
    return p.returncode, p.stdout


def test_local(make_kx, tmp_path):
    kx = make_kx(start=False)
    status, said = doctor(kx, "-o", f"state={tmp_path}/not/yet/there", "local:")
    assert status == 0
    assert re.fullmatch(rf"""kxfs \S+
libraries: .*
features: .*
backends: .*
(missed, .*
)?This machine
  ok       Linux \S+ {os.uname().machine}
  ok       FUSE: root may mount
  ok       {re.escape(str(tmp_path))}/not/yet/there can be created, [\d.]+ GiB free
Mounting will work\.
""", said)
    assert not (tmp_path / "not").exists()


def test_no_cluster(make_kx, tmp_path):
    """If there is no kubeconfig and the command names no source, the report suggests local jobs."""
    kx = make_kx(start=False)
    env = {"KUBECONFIG": "", "HOME": str(tmp_path)}
    status, said = doctor(kx, "-o", f"state={tmp_path}/state", env=env)
    assert status == 1 and said.endswith(
        "Mounting will not work. Without a cluster, jobs can run as processes of this machine: kxfs local: MOUNTPOINT\n")
    status, said = doctor(kx, "-o", f"state={tmp_path}/state", "volcano:training", env=env)
    assert status == 1 and said.endswith("Mounting will not work.\n")


def test_while_mounted(kx):
    """doctor works while the state directory is in use, because users run it when a mount has a problem."""
    status, said = doctor(kx, "-o", f"state={kx.state}", "local:")
    assert status == 0 and f"  ok       {kx.state} can be written, " in said


def test_state_can_not_be_kept(kx, tmp_path):
    (tmp_path / "file").write_text("")
    status, said = doctor(kx, "-o", f"state={tmp_path}/file/state", "local:")
    assert status == 1 and said.endswith("Mounting will not work.\n")
    assert f"  wrong    {tmp_path}/file/state: kxfs can't store its state here: Not a directory" in said


# --- Completion -------------------------------------------------------------------------------
# Shell completion as a user types it: options of --help, sources of the kubeconfig, directories.

KUBECONFIG = """
contexts:
- context: {cluster: c, user: u, namespace: training}
  name: prod
- context: {cluster: c, user: u}
  name: arn:eks:1/test
"""
KIND_FILES = {f"{p.stem}:" for p in (ROOT / "share/kinds").glob("*.yaml")}
SOURCES = KIND_FILES | {"local:", "volcano:", "mcad:", "appwrapper:", "prod/training", "arn:eks:1/test/default"}


@pytest.fixture
def shell(binary, tmp_path):
    """A directory with a mount point, a kubeconfig and a kind file, and the environment for the completion."""
    (tmp_path / "mnt").mkdir()
    (tmp_path / "config").write_text(KUBECONFIG)
    (tmp_path / "kinds").mkdir()
    kind = (ROOT / "share/kinds/rayjob.yaml").read_text()
    (tmp_path / "kinds/own.yaml").write_text(kind.replace("name: rayjob", "name: own").replace("{api: ray.io/v1, kind: RayJob", "{api: ray.io/v1, kind: Own"))
    env = {"PATH": f"{os.path.dirname(binary)}:{TOOL_PATH}", "KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path)}
    return tmp_path, env


BUILT = pathlib.Path(os.environ.get("KXFS_BINARY", ROOT / "build/fs/kxfs")).resolve().parents[1]
SCRIPTS = BUILT / "contrib/completion"


def heads(binary):
    return re.findall(r"^  (\S.*?)  +\S", run([binary, "--help"]).stdout, re.M)


def words(binary):
    """Return the completions after -o. An option that takes a value ends with '='."""
    return {re.sub(r"=.*", "=", h) for h in heads(binary) if not h.startswith("-")}


def choices(binary):
    """Return {"cancel=": {"own", ...}} for the options that take one of several words."""
    return {h[:h.index("=") + 1]: set(h[h.index("=") + 1:].split("|")) for h in heads(binary) if "|" in h}


def flags(binary):
    return {f for h in heads(binary) if h.startswith("-") for f in re.findall(r"--?\w[\w-]*=?", h)}


def test_list_sources(binary, shell):
    base, env = shell
    assert set(run([binary, "--list-sources"], env=env).stdout.split()) == SOURCES
    assert set(run([binary, "--list-sources", "-o", f"kinds={base}/kinds"], env=env).stdout.split()) == SOURCES | {"own:"}
    p = run([binary, "--list-sources", "-o", "kubeconfig=/nowhere"], env=env, check=False)
    assert p.returncode == 1 and p.stderr == "kxfs: kubeconfig /nowhere: No such file or directory\n"
    assert set(run([binary, "--list-sources"], env={**env, "KUBECONFIG": ""}).stdout.split()) == {
        s for s in SOURCES if s.endswith(":")}
    assert "too many arguments" in run([binary, "--list-sources", "x"], check=False).stderr


def test_bash(binary, shell):
    base, env = shell
    script = f"""source {SCRIPTS}/kxfs
compopt() {{ :; }}
cd {base}
t() {{ COMP_LINE="$1" COMP_POINT=${{#1}} COMPREPLY=(); _kxfs; printf '%s\\n' "${{COMPREPLY[@]}}"; echo .; }}
"""

    def complete(line):
        out = run(script + f"t '{line}'", env=env).stdout
        return set(out.split("\n")) - {".", ""}

    assert complete("kxfs -o ") == words(binary)
    assert complete("kxfs -") == flags(binary)
    assert complete("kxfs -o ro,st") == {"ro,state="}
    for name, values in choices(binary).items():
        assert complete(f"kxfs -o {name}") == values
        # Readline replaces only the text after the last '='.
        assert complete(f"kxfs -o ro,{name}") == values
    assert complete("kxfs ") == SOURCES | {"doctor", "capture"} and complete("kxfs pr") == {"prod/training"}
    assert complete("kxfs volcano:pr") == {"prod/training"}
    assert complete("kxfs lo") == {"local:"} and complete("kxfs -o ro lo") == {"local:"}
    assert complete("kxfs mn") == {"mnt"}
    assert complete("kxfs -o kinds=kinds ow") == {"own:"} and complete("kxfs -o kinds=none loc") == {"local:"}
    assert complete("kxfs local: mn") == {"mnt"} == complete("kxfs -o ro prod/training mn")
    assert complete("kxfs doctor pr") == {"prod/training"} and complete("kxfs doctor ") == SOURCES
    assert complete("kxfs capture ") == SOURCES
    assert complete("kxfs --dry-run=con") == {"config"}
    assert complete("kxfs -o kubeconfig=con") == {"config"} and complete("kxfs -o state=m") == {"mnt"}


def test_fish(binary, shell):
    base, env = shell

    def complete(line):
        out = run(["fish", "--no-config", "-c", f"source {SCRIPTS}/kxfs.fish; complete -C '{line}'"], env=env,
                  cwd=base).stdout
        return {row.split("\t")[0] for row in out.splitlines()}

    assert complete("kxfs -o ") == words(binary)
    # For a long flag, fish itself adds the value.
    assert {f.rstrip("=") for f in complete("kxfs -") if len(f) < 3 or f.startswith("--")} == {
        f.rstrip("=") for f in flags(binary)}
    assert complete("kxfs -o ro,st") == {"ro,state="}
    for name, values in choices(binary).items():
        assert complete(f"kxfs -o ro,{name}") == {f"ro,{name}{value}" for value in values}
    assert complete("kxfs ") >= SOURCES | {"doctor", "capture"}
    assert complete("kxfs doctor pr") == {"prod/training"} == complete("kxfs capture pr")
    assert complete("kxfs volcano:pr") == {"volcano:prod/training"}
    assert "own:" in complete("kxfs -o kinds=kinds ow") and "local:" in complete("kxfs -o kinds=none loc")
    assert complete("kxfs local: mn") == {"mnt/"}


class Zsh:
    """zsh on a terminal, because its completion works only there."""

    def __init__(self, binary, base, env):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, cwd=base,
                                        env=base_env(**env, TERM="dumb", COLUMNS="4000"), start_new_session=True)
        os.close(slave)
        self.ask(f"stty -echo columns 4000; PS1=; unsetopt zle_bracketed_paste; fpath=({SCRIPTS} $fpath); "
                 f"autoload -Uz compinit; compinit -u -D; LISTMAX=0; zstyle ':completion:*' list-separator '|'; "
                 "show() { print -r -- \"<$BUFFER>\"; BUFFER=; zle reset-prompt }; zle -N show; bindkey '^X' show; "
                 "bindkey '^I' complete-word; echo re''ady\n", "ready")

    def ask(self, text, end):
        os.write(self.master, text.encode())
        got, limit = "", time.monotonic() + 60
        while end not in got:
            assert time.monotonic() < limit, got
            if select.select([self.master], [], [], 1)[0]:
                got += os.read(self.master, 65536).decode(errors="replace")
        return got

    def complete(self, line):
        """Return LINE after a press of Tab."""
        return re.search(r"<(.*?)>", self.ask(f"{line}\t\x18", ">"), re.S)[1]

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


def test_zsh(binary, shell):
    base, env = shell
    text = (SCRIPTS / "_kxfs").read_text()
    assert all(f"'{w.rstrip('=')}[" in text for w in words(binary))
    zsh = Zsh(binary, base, env)
    try:
        for line, completed in {
            "kxfs -o spo": "kxfs -o spool_limit=",
            "kxfs -o ro,capt": "kxfs -o ro,capture=",
            "kxfs -o ro,cancel=n": "kxfs -o ro,cancel=none,",
            "kxfs --dr": "kxfs --dry-run=",
            "kxfs --dry-run=con": "kxfs --dry-run=config",
            "kxfs loc": "kxfs local:",
            "kxfs prod": "kxfs prod/training",
            "kxfs doc": "kxfs doctor",
            "kxfs doctor do": "kxfs doctor do",
            "kxfs doctor prod": "kxfs doctor prod/training",
            "kxfs capture prod": "kxfs capture prod/training",
            "kxfs volcano:pr": "kxfs volcano:prod/training",
            "kxfs -o kinds=kinds ow": "kxfs -o kinds=kinds own:",
            "kxfs -o kinds=none loc": "kxfs -o kinds=none local:",
            "kxfs local: mn": "kxfs local: mnt/",
        }.items():
            assert zsh.complete(line).rstrip() == completed, line
    finally:
        zsh.end()
