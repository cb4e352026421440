# SPDX-License-Identifier: MIT
"""The tree of a mount: its files, list and list.jsonl, stamped output, `why`."""

import errno
import json
import os
import pathlib
import re
import stat
import time

import harness
import pytest
import yaml
from harness import app, err_of, permissions, popen, python_app, remove, rmdir, run, sh_role, wait_for
from metrics import Metrics

# --- All files --------------------------------------------------------------------------------
# The tree that kxfs-layout(5) describes: its files, their contents, and operations that fail.

JOB_FILES = {"app.yaml", "ctl", "log", "manifest.yaml", "stamped", "state", "status", "status.json", "usage", "why"}
JOB_LINKS = ("wait", "follow")
HISTORY_FILES = JOB_FILES - {"ctl"}
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")


@pytest.fixture(scope="module")
def text():
    return app("echo hello; echo oops >&2", name="tree", num_replicas=2)


@pytest.fixture
def job(kx, text):
    job = kx.submit(text, "tree.yaml")
    job.finish()
    return job


def walk(top):
    """Return all paths below TOP, relative to it, without following links."""
    found = []
    for where, dirs, files in os.walk(top):
        found += [os.path.relpath(os.path.join(where, name), top) for name in dirs + files]
    return found


def test_root(kx):
    assert kx.ls() == [".kxfs", "dryrun", "history", "jobs", "list", "list.jsonl", "live", "submit"]
    assert kx.ls("live") == ["changes"]
    assert os.readlink(kx / "changes") == ".kxfs/.live/changes"
    assert os.path.samefile(kx / "live/changes", kx / "changes")
    assert kx.ls(".kxfs") == ["help", "info", "log", "metrics"]
    assert kx.ls("submit") == kx.ls("jobs") == []
    assert kx.ls("history") == ["list", "list.jsonl"]


def test_job_directory(kx, job):
    assert set(kx.ls("jobs", job.id)) == JOB_FILES | {"live", "logs", "main-0", "main-1"}
    assert set(os.listdir(job / "live")) == set(JOB_LINKS)
    for name in JOB_LINKS:
        assert os.readlink(job / name) == f".live/{name}" and os.readlink(job / "live" / name) == f"../.live/{name}"
        assert os.path.samefile(job / name, job / "live" / name)
        assert stat.S_ISREG(os.stat(job / name).st_mode)
    for name in JOB_FILES:
        assert stat.S_ISREG(os.lstat(job / name).st_mode), name
    for top in (kx / ".kxfs", job.dir, job / "main-0"):  # .live is found, but not listed
        assert ".live" not in os.listdir(top)
        assert stat.S_ISDIR(os.stat(top / ".live").st_mode)
    assert sorted(os.listdir(job / "logs")) == ["main-0.log", "main-1.log"]
    assert os.readlink(job / "logs/main-1.log") == "../main-1/log"
    assert sorted(os.listdir(job / "main-1")) == ["live", "log", "stamped", "state", "status", "usage"]
    assert os.listdir(job / "main-1/live") == ["follow"] and os.readlink(job / "main-1/follow") == ".live/follow"


def test_what_a_star_takes_along_ends(kx):
    """`cat *` terminates in the directory of a running job, in that of a replica, and in the root."""
    job = kx.submit(app("echo here; sleep 1000"))
    job.until_logged("here")
    for where in (kx.mnt, job.dir, job / "main-0"):
        for command in ("cat *", "wc -l *", "head -n1 *", "grep -l here *", "md5sum *"):
            run(["sh", "-c", command], cwd=where, check=False)
    rmdir(job.dir)


def test_contents(kx, job, text):
    assert job.read("state") == "SUCCEEDED\n"
    assert kx.read("submit", "tree.yaml") == job.read("app.yaml") == text
    assert job.read("why") == ""
    assert job.read("ctl") in ("", "restart\n")
    assert job.read("main-0", "state") == "SUCCEEDED\n"
    assert job.read("main-0", "log") == "hello\noops\n"
    merged = job.read("log").splitlines()
    assert sorted(merged) == ["main/0 hello", "main/0 oops", "main/1 hello", "main/1 oops"]
    assert job.read("wait") == "SUCCEEDED\n"
    assert job.read("follow") == job.read("log")
    assert job.read("main-1", "follow") == "hello\noops\n"
    assert job.id.startswith("tree-")


OF_CLUSTERS = ["kind", "owner", "cluster_queue", "flavors", "priority_class", "priority", "namespace", "queue",
               "queue_position", "evictions", "stale_since", "pending_command", "ignored_command", "logs_waiting", "pod", "node"]


def without(status):
    """Return a status.json without the keys that only jobs of a cluster have."""
    return {key: value for key, value in status.items() if key not in OF_CLUSTERS}


def test_status(kx, job):
    """`status` lacks the keys that only jobs of a cluster have. status.json has every key."""
    status = yaml.safe_load(job.read("status"))
    as_json = json.loads(job.read("status.json"))
    assert list(as_json) == ["id", "app", "state", "phase", "reason", "message", "last_words", "backend",
                             "kind", "owner", "namespace", "queue", "cluster_queue", "flavors", "priority_class", "priority",
                             "queue_position", "submitter", "retries", "max_retries", "evictions",
                             "time_limit", "deadline", "created", "started", "finished", "stale_since", "pending_command",
                             "ignored_command", "logs_waiting", "transitions", "roles", "usage"]
    del as_json["usage"]  # the file `usage` has it, see test_usage.py
    assert list(status) == list(without(as_json)), "in the same order"
    # PyYAML converts times to datetime, but here their text matters.
    lines = dict(re.findall(r"^(created|started|finished): (\S+)$", job.read("status"), re.M))
    for when in lines.values():
        assert TIME.match(when.strip('"')), when
    assert (status["id"], status["app"], status["state"]) == (job.id, "tree", "SUCCEEDED")
    assert status["backend"] == "local" and as_json["stale_since"] is None
    assert re.match(r"^root@.+", status["submitter"])
    [role] = status["roles"]
    assert (role["name"], role["desired"], len(role["replicas"])) == ("main", 2, 2)
    replica = as_json["roles"][0]["replicas"][1]
    assert list(replica) == ["id", "state", "pod", "node", "attempt", "exit_code", "signal", "reason", "message"]
    assert (replica["id"], replica["state"], replica["attempt"]) == (1, "SUCCEEDED", 0)
    assert (replica["exit_code"], replica["signal"]) == (0, None)
    assert role["replicas"] == [without(one) for one in as_json["roles"][0]["replicas"]]

    lines["transitions"] = lines["roles"] = None  # these keys contain times, which were compared above
    assert {k: v for k, v in without(as_json).items() if k not in lines} == {
        k: v for k, v in status.items() if k not in lines}
    one = yaml.safe_load(job.read("main-1", "status"))
    assert list(one) == [*without(replica), "started", "finished", "deadline", "gap"]
    assert {k: one[k] for k in without(replica)} == without(replica)


def test_info_log_help(kx, job):
    info = yaml.safe_load(kx.read(".kxfs", "info"))
    assert info["backend"] == "local"
    assert info["version"] == run([kx.binary, "--version"]).stdout.split()[1]
    for line in kx.read(".kxfs", "log").splitlines():
        assert re.match(r"^\d{4}-\d\d-\d\dT\S+Z \w+ ", line), line
    text = kx.read(".kxfs", "help")
    for name in JOB_FILES | {"wait", "follow", "logs", "submit", "jobs", "history", "changes",
                             "list", "list.jsonl", "metrics", "info"}:
        assert re.search(rf"\b{re.escape(name)}\b", text), name


def test_metrics(kx, job):
    """The metrics count each event exactly once."""
    wait_for(lambda: Metrics(kx)("captured_lines_total") == 4)
    metrics = Metrics(kx)
    assert metrics("captured_bytes_total") == 2 * len("hello\noops\n") <= metrics("spool_bytes")
    assert metrics("jobs", state="SUCCEEDED") == metrics.sum("jobs") == 1 and metrics("history_jobs") == 0
    assert metrics("requests_total", request="submit", result="ok") == 1
    assert metrics("local_starts_total") == 2 and metrics("local_processes") == 0
    assert metrics("parked_requests", kind="read") == 0
    reader = popen(["cat", str(kx / "changes")], stdout=-3)
    wait_for(lambda: Metrics(kx)("parked_requests", kind="read") == 1)
    assert Metrics(kx)("streams") == 1
    assert Metrics(kx)("fuse_requests_total") > metrics("fuse_requests_total") > 0
    reader.terminate()
    reader.wait()
    wait_for(lambda: Metrics(kx)("streams") == 0)
    job.cancel()
    assert Metrics(kx)("history_jobs") == 1 and Metrics(kx).sum("jobs") == 0


def test_log_reports_events(kx):
    """.kxfs/log has one line for each event: launched, suspended, ended, removed. A remount does not report old jobs
    again."""
    job = kx.submit(app("exec sleep 1000"), "long.yaml")
    job.until("RUNNING")
    (job / "ctl").write_text("suspend")
    (job / "ctl").write_text("resume")
    job.cancel()
    failed = kx.submit(app("exit 3"), "short.yaml")
    failed.finish("FAILED")
    failed.cancel()
    remove(failed.old)

    def said(ident):
        lines = [re.match(r"^\S+ (\w+) (.*)$", line).groups() for line in kx.read(".kxfs", "log").splitlines()]
        return [text.removeprefix(f"{ident}: ") for level, text in lines if level == "info" and ident in text]

    assert said(job.id) == ["launched from long.yaml", "suspend", "resume",
                            "CANCELLED, Cancelled: its directory was removed", "removed from jobs/"]
    assert said(failed.id) == ["launched from short.yaml", "FAILED, Error: main-0: exit code 3",
                               "removed from jobs/", "removed from history/"]
    kx.restart()
    assert said(job.id) == []


def test_sizes_are_true(kx, job):
    for path in walk(kx.mnt):
        st = os.stat(kx / path)
        if stat.S_ISREG(st.st_mode) and "metrics" not in path and os.path.basename(path) not in (
                "wait", "follow", "changes"):
            # An age in a list may change between the two calls.
            wait_for(lambda path=path: os.stat(kx / path).st_size == len((kx / path).read_bytes()), 10, f"the size of {path}")
    for path in walk(kx.mnt):
        if stat.S_ISLNK(os.lstat(kx / path).st_mode):
            assert os.lstat(kx / path).st_size == len(os.readlink(kx / path)), path


def test_modes_let_rm_pass(kx, job):
    """All files are writable for their owner, because rm asks before it removes a file that is not."""
    for path in walk(kx.mnt):
        st = os.lstat(kx / path)
        if stat.S_ISREG(st.st_mode):
            assert permissions(kx / path) & 0o600 == 0o600, path
        assert st.st_uid == os.getuid(), path
        assert not st.st_mode & 0o022 or stat.S_ISLNK(st.st_mode), path


def test_times(kx, text):
    before = time.time()
    job = kx.submit(app("sleep 1.2; exit 3"))
    job.finish("FAILED")
    # mtime is the last change of the state and ctime the creation, here at least a second earlier. The kernel may cache
    # older times for a second.
    wait_for(lambda: os.stat(job.dir).st_mtime - os.stat(job.dir).st_ctime >= 1)
    st = os.stat(job.dir)
    assert before - 1 <= st.st_ctime <= st.st_mtime <= time.time() + 1
    log = os.stat(job / "main-0/log")
    assert before - 1 <= log.st_mtime <= time.time() + 1
    later = kx.submit(app("true"))
    later.finish()
    assert run(f"ls -t {kx.mnt}/jobs").stdout.split() == [later.id, job.id]


def test_listing_of_running_jobs_asks_once(kx):
    """A listing contains the attributes of all jobs, so ls -l does not request them again for each job."""
    jobs = [kx.submit(app("exec sleep 1000", name="listed")) for _ in range(20)]
    for job in jobs:
        job.until("RUNNING")

    def asked():
        before = Metrics(kx)("fuse_requests_total")
        assert len(run(["ls", "-l", str(kx / "jobs")]).stdout.splitlines()) == 21
        return Metrics(kx)("fuse_requests_total") - before

    wait_for(lambda: asked() < len(jobs))  # if ls takes more than a second, the kernel requests the attributes again
    # A change of a job still shows.
    before = os.stat(jobs[0].dir).st_mtime_ns
    run(["ls", "-l", str(kx / "jobs")])
    (jobs[0] / "ctl").write_text("terminate")
    jobs[0].finish("FAILED")
    wait_for(lambda: os.stat(jobs[0].dir).st_mtime_ns > before)


@pytest.mark.parametrize("name", sorted(JOB_FILES - {"ctl"}) + ["main-0/log", "main-0/state", "main-0/status",
                                                                "logs/main-0.log"])
def test_read_only_files(job, name):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
        assert err_of(os.open, job / name, flags) == "EPERM"
    assert err_of(os.truncate, job / name, 0) == "EPERM"
    assert err_of(os.chmod, job / name, 0o600) == err_of(os.chown, job / name, 1, 1) == "EPERM"
    os.utime(job / name)  # cp -p and tar only set the times


def test_what_is_not_allowed(kx, job):
    """test_submit.py::test_what_can_not_be_made has what submit/ refuses."""
    for where in (kx.mnt, kx / "jobs", kx / "history", job.dir, job / "main-0", job / "logs",
                  kx / ".kxfs"):
        assert err_of(os.mkdir, where / "new") == "EPERM", where
        assert err_of(os.open, where / "new", os.O_CREAT | os.O_WRONLY) == "EPERM", where
        assert err_of(os.symlink, "x", where / "new") == "EPERM", where
    assert err_of(os.rename, job.dir, kx / "jobs/other") == "EPERM"
    assert err_of(os.rename, job / "state", job / "other") == "EPERM"
    for new in ("other", "submit/jobs.yaml"):
        assert err_of(os.rename, kx / "jobs", kx / new) == "EPERM"
    assert err_of(os.rmdir, kx / "jobs") == "EPERM"
    assert err_of(os.rmdir, kx / "jobs/nothing") == "ENOENT"
    assert err_of(os.rmdir, kx / "changes") == "ENOTDIR"
    for name in (".kxfs/info", "list"):
        assert err_of(os.unlink, kx / name) == "EPERM"
    assert err_of(os.open, kx / "list", os.O_WRONLY) == "EPERM"
    assert err_of(os.link, job / "state", kx / "submit/state") in ("EPERM", "EXDEV", "ENOSYS")
    assert err_of(os.readlink, job / "state") == "EINVAL"


def test_removing_a_file_of_a_job_changes_nothing(kx, job):
    for name in ("state", "status", "wait", "live/wait", "main-0/log", "logs/main-0.log", "ctl"):
        os.unlink(job / name)
    for name in ("main-0/live", "main-0", "live", "logs"):
        os.rmdir(job / name)
    assert err_of(os.unlink, job / "no-such-file") == "ENOENT"
    wait_for(lambda: os.path.exists(job / "state"), what="the file to be there again")
    assert set(kx.ls("jobs", job.id)) == JOB_FILES | {"live", "logs", "main-0", "main-1"}
    assert wait_for(lambda: os.listdir(job / "main-0"), what="the directory to be whole again")
    assert job.log() == b"hello\noops\n"
    assert job.state() == "SUCCEEDED"


def test_names_that_are_not_there(kx, job):
    for path in ("nothing", "jobs/nothing", f"jobs/{job.id}/nothing", f"jobs/{job.id}/main-2",
                 f"jobs/{job.id}/main-0/log.0", f"jobs/{job.id}/main-0/log.", "submit/x.yaml",
                 f"jobs/{job.id}/logs/main-0", f"jobs/{job.id}/logs/.log", f"history/{job.id}",
                 "jobs/..hidden", f"jobs/{job.id}/events", "queues"):
        assert err_of(os.lstat, kx / path) == "ENOENT", path
    assert err_of(os.lstat, kx / "jobs" / ("x" * 256)) in ("ENOENT", "ENAMETOOLONG")
    assert err_of(os.open, job / "state/below", os.O_RDONLY) == "ENOTDIR"


def test_statfs(kx):
    st = os.statvfs(kx.mnt)
    assert st.f_bsize > 0 and st.f_blocks > 0 and 0 < st.f_bavail <= st.f_blocks
    assert st.f_namemax >= 255
    assert run(["df", "-P", str(kx.mnt)]).stdout.splitlines()[1].endswith(str(kx.mnt))


def test_no_extended_attributes(kx, job):
    for path in (kx.mnt, job / "state"):
        # EOPNOTSUPP has two names
        assert err_of(os.listxattr, path) == err_of(os.setxattr, path, "user.x", b"1") == errno.errorcode[errno.EOPNOTSUPP]


def test_history(kx, job):
    log = job.log()
    rmdir(job.dir)
    assert kx.ls("jobs") == [] and kx.history() == [job.id]
    assert set(os.listdir(job.old)) == HISTORY_FILES | {"live", "logs", "main-0", "main-1"}
    assert sorted(os.listdir(job.old / "main-0")) == ["live", "log", "stamped", "state", "status", "usage"]
    assert set(os.listdir(job.old / "live")) == set(JOB_LINKS) and os.listdir(job.old / "main-0/live") == ["follow"]
    for name in ("live/wait", "wait"):
        assert (job.old / name).read_text() == "SUCCEEDED\n"
    for where in (job.old, job.old / "main-0", job.old / "main-1"):
        for name in ("live/follow", "follow"):
            assert (where / name).read_bytes() == (where / "log").read_bytes() != b""
    assert (job.old / "state").read_text() == "SUCCEEDED\n"
    assert (job.old / "logs/main-0.log").read_bytes() == log
    # The link NAME.job leads to the job's current directory.
    assert os.readlink(kx / "submit/tree.yaml.job") == f"../history/{job.id}"
    assert kx.read("submit", "tree.yaml.job", "state") == "SUCCEEDED\n"
    folder = kx.folder(job.id)
    assert folder.exists()
    remove(job.old)
    assert kx.history() == []
    assert not folder.exists() and not any(job.id in path for path in walk(kx.state / "output"))


def test_inode_numbers(kx, job):
    """Each file has its own inode number, and keeps it after a remount."""
    def numbers():
        return {path: os.lstat(kx / path).st_ino for path in walk(kx.mnt)}

    first = numbers()
    assert len(set(first.values())) == len(first)
    kx.restart()
    again = numbers()
    assert {p: again[p] for p in first if "submit" not in p} == {
        p: n for p, n in first.items() if "submit" not in p}


def test_changes(kx):
    done = kx.submit(app("true", name="first"))
    done.finish()
    with open(kx / "changes", encoding="utf-8") as f:
        fields = f.readline().rstrip("\n").split("\t")
        assert TIME.match(fields[0]) and fields[1:3] == [done.id, "SUCCEEDED"]
        fields = f.readline().rstrip("\n").split("\t")
        assert TIME.match(fields[0]) and fields[1:3] == ["-", "SYNC"]
        job = kx.submit(app("exit 4", name="second"))
        seen = []
        while not seen or seen[-1][2] != "FAILED":
            seen.append(f.readline().rstrip("\n").split("\t"))
            assert TIME.match(seen[-1][0]) and seen[-1][1] == job.id, seen
        order = ["SUBMITTED", "PENDING", "RUNNING", "FAILED"]
        states = [order.index(line[2]) for line in seen]
        assert states == sorted(states)


def test_whole_mount_is_read(kx, job):
    """Tools that read the whole mount reach its end, because blocking files are only reachable through links."""
    waiting = kx.submit(app("echo started; sleep 1000"))
    waiting.until("RUNNING")
    waiting.until_logged("started\n")
    wait_for(lambda: waiting.read("log") == "main/0 started\n", what="the merged log")
    out = kx.base / "copy"
    run(f"grep -r . {kx.mnt} >/dev/null; find {kx.mnt} -type f -exec cat '{{}}' + >/dev/null")
    run(["cp", "-r", str(kx.mnt), str(out)])
    assert (out / "jobs" / job.id / "state").read_text() == "SUCCEEDED\n"
    assert os.readlink(out / "jobs" / job.id / "live/wait") == "../.live/wait"
    p = run(f"tar -cf {kx.base}/copy.tar -C {kx.mnt} .", check=False)
    # tar reports if a number or an age in a file gets one more digit while it reads.
    assert p.returncode == 0 or p.returncode == 1 and re.fullmatch(
        r"(tar: \./(list|list\.jsonl|history/list|\.kxfs/\w+): (file changed as we read it|File shrank by .*)\n)+", p.stderr), p
    run(f"rsync -a {kx.mnt}/jobs/ {kx.base}/synced/")
    assert (kx.base / "synced" / job.id / "main-0/log").read_bytes() == b"hello\noops\n"
    waiting.cancel()


def test_names_that_go_while_a_directory_is_read(kx):
    """While names are removed, a process that reads the directory gets all remaining names, and none twice, wherever a
    page of the listing ends."""
    names = [f"scratch-{i:03}" for i in range(400)]
    for name in names:
        kx.write(f"submit/{name}", "x")
    with os.scandir(kx / "submit") as entries:
        found = [next(entries).name]
        left = sorted(names)
        gone = left[100:110] + [name for i, name in enumerate(left) if i > 110 and i % 7 == 0]
        for name in gone:
            os.unlink(kx / "submit" / name)
        found += [entry.name for entry in entries]
    assert sorted(set(found) & set(names) - set(gone)) == sorted(set(names) - set(gone))
    assert len(found) == len(set(found))
    for name in set(names) - set(gone):
        os.unlink(kx / "submit" / name)


# --- list and list.jsonl ----------------------------------------------------------------------
# All jobs in a table: the lists in the root have the jobs of jobs/, those in history/ have the jobs that have left it.

TITLES = ["ID", "STATE", "AGE", "QUEUE", "READY", "RETRIES", "SUBMITTER", "REASON"]


def rows(text):
    """Return the rows of the table as dictionaries. Each row must have as many words as there are titles."""
    head, *lines = [line.split() for line in text.splitlines()]
    assert head == TITLES
    assert all(len(line) == len(head) for line in lines), text
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_list(kx):
    assert rows(kx.read("list")) == rows(kx.read("history/list")) == []
    assert kx.read("list.jsonl") == kx.read("history/list.jsonl") == ""
    runs = kx.submit(app("sleep 1000", name="runs", num_replicas=2))
    runs.until("RUNNING")
    wait_for(lambda: runs.status()["roles"][0]["running"] == 2)
    fails = kx.submit(app("exit 3", name="fails", num_replicas=2))
    fails.finish("FAILED")
    # The job that changed last comes first.
    assert [row["ID"] for row in rows(kx.read("list"))] == [fails.id, runs.id]
    by_id = {row["ID"]: row for row in rows(kx.read("list"))}
    assert re.fullmatch(r"\d+[sm]", by_id[runs.id].pop("AGE"))
    assert re.fullmatch(r"root@\S+", by_id[runs.id].pop("SUBMITTER"))
    assert by_id[runs.id] == {"ID": runs.id, "STATE": "RUNNING", "QUEUE": "-", "READY": "2/2", "RETRIES": "0",
                              "REASON": "-"}
    assert (by_id[fails.id]["STATE"], by_id[fails.id]["REASON"]) == ("FAILED", "Error")
    # Columns begin below their titles.
    head, *lines = kx.read("list").splitlines()
    for title in TITLES[1:]:
        at = head.index(title)
        assert all(line[at - 2:at] == "  " and line[at] != " " for line in lines), (title, lines)
    (runs / "ctl").write_text("suspend")
    runs.until("CANCELLED")
    assert [row["ID"] for row in rows(kx.read("list"))] == [runs.id, fails.id]


def test_jsonl(kx):
    """Each line is the current status.json of a job."""
    jobs = [kx.submit(app("true", name=f"job{i}")) for i in range(3)]
    for job in jobs:
        job.finish()
    lines = kx.read("list.jsonl").splitlines()
    assert {json.loads(line)["id"]: json.loads(line) for line in lines} == {job.id: job.status() for job in jobs}
    # Each line has the same keys as status.json, so a program that reads one can also read the
    # other.
    for line in lines:
        job = json.loads(line)["id"]
        assert list(json.loads(line)) == list(json.loads(kx.read("jobs", job, "status.json")))


def test_list_of_history(kx):
    """A job moves from one list to the other. Removing the list files of history/ has no effect."""
    job = kx.submit(app("true"))
    job.finish()
    job.cancel()
    assert rows(kx.read("list")) == [] and kx.read("list.jsonl") == ""
    assert [row["ID"] for row in rows(kx.read("history/list"))] == [job.id]
    assert [json.loads(line)["id"] for line in kx.read("history/list.jsonl").splitlines()] == [job.id]
    assert json.loads(kx.read("history/list.jsonl")) == json.loads((job.old / "status.json").read_text())
    kx.restart()
    assert [row["ID"] for row in rows(kx.read("history/list"))] == [job.id]
    run(f"rm -r {kx.mnt}/history/*")
    assert kx.ls("history") == ["list", "list.jsonl"]
    assert rows(kx.read("history/list")) == []


def test_made_anew_when_something_changed(kx):
    """While no job changes, a new reader gets the same file. An open file never changes."""
    first = kx.submit(app("true", name="first"))
    first.finish()
    times = {name: os.stat(kx / name).st_mtime_ns for name in ("list.jsonl", "history/list", "history/list.jsonl")}
    assert kx.read("list.jsonl") == kx.read("list.jsonl")
    assert {name: os.stat(kx / name).st_mtime_ns for name in times} == times
    with open(kx / "list.jsonl", encoding="utf-8") as held:
        second = kx.submit(app("true", name="second"))
        second.finish()
        assert [json.loads(line)["id"] for line in held] == [first.id]
    assert os.stat(kx / "list.jsonl").st_mtime_ns > times["list.jsonl"]
    assert os.stat(kx / "history/list").st_mtime_ns == times["history/list"]
    assert [json.loads(line)["id"] for line in kx.read("list.jsonl").splitlines()] == [second.id, first.id]


def test_age_goes_on(kx):
    """The age of a job is current even if no job has changed."""
    job = kx.submit(app("true"))
    job.finish()

    def age():
        [row] = rows(kx.read("list"))
        return row["AGE"]

    first = age()
    wait_for(lambda: age() != first)
    assert re.fullmatch(r"\d+[sm]", age())


# --- stamped ----------------------------------------------------------------------------------
# `stamped` has the lines of `log`, each after its time.

LINE = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) ([^\n]*\n?)")
PRINTER = """
import os, time
for i in range(5):
    os.write(1, b"line %d\\n" % i)
    while not os.path.exists(f"seen-{i}"):
        time.sleep(0.01)
os.write(1, b"no end")
"""


def split(stamped):
    """Return the times and the lines of STAMPED, which must contain nothing else."""
    found = LINE.findall(stamped)
    assert b"".join(time + b" " + line for time, line in found) == stamped
    return [time.decode() for time, _ in found], b"".join(line for _, line in found)


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())


def test_replica(kx):
    begin = now()
    job = kx.submit(python_app(PRINTER))
    for i in range(5):
        job.until_logged(f"line {i}\n")
        (kx.work / f"seen-{i}").touch()
    job.finish()
    stamped = (job / "main-0/stamped").read_bytes()
    times, lines = split(stamped)
    assert lines == job.log() == b"".join(b"line %d\n" % i for i in range(5)) + b"no end"
    assert os.stat(job / "main-0/stamped").st_size == len(stamped)
    assert times == sorted(times) and begin <= times[0] and times[-1] <= now() + "Z"
    # Each line has its own time, so a reader can select the lines since some time.
    assert len(set(times[:5])) == 5
    since = run(["awk", f'$1 >= "{times[2]}"', str(job / "main-0/stamped")]).stdout
    assert "line 2" in since and "line 4" in since and "line 0" not in since


def test_merged(kx):
    job = kx.submit(app("echo a; echo b", num_replicas=2))
    job.finish()
    stamped = (job / "stamped").read_bytes()
    _, lines = split(stamped)
    assert lines == (job / "log").read_bytes()
    assert sorted(lines.splitlines()) == [b"main/0 a", b"main/0 b", b"main/1 a", b"main/1 b"]
    assert os.stat(job / "stamped").st_size == len(stamped)
    job.cancel()
    assert (job.old / "stamped").read_bytes() == stamped
    assert split((job.old / "main-0/stamped").read_bytes())[1] == b"a\nb\n"


def test_listing_reads_no_log(kx):
    """kxfs computes the size of `stamped` only when a process requests it. Listing the names does not read the log."""
    size, rounds = 50000, 300
    job = kx.submit(app(f"head -c {size} /dev/zero"))
    job.finish()

    def read_so_far():
        return int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{kx.pid}/io").read_text())[1])

    before = read_so_far()
    for _ in range(rounds):
        assert {"log", "stamped"} <= set(os.listdir(job / "main-0"))
    assert read_so_far() - before < rounds * size / 10
    assert os.stat(job / "main-0/stamped").st_size == size + len("2026-11-22T04:35:12.123456Z ")


def test_follow(kx):
    """The file exists before the program has printed anything, and tail -f shows new output."""
    job = kx.submit(app("while ! test -e go; do sleep 0.05; done; echo one; "
                        "while ! test -e on; do sleep 0.05; done; echo two"))
    path, got = job / "main-0/stamped", kx.base / "got"
    with got.open("wb") as f:
        tail = popen(["tail", "-n", "+1", "-f", "-s", "0.1", str(path)], stdout=f)
        try:
            (kx.work / "go").touch()
            wait_for(lambda: split(got.read_bytes())[1] == b"one\n")
            (kx.work / "on").touch()
            wait_for(lambda: split(got.read_bytes())[1] == b"one\ntwo\n")
        finally:
            tail.kill()
            tail.wait()
    assert got.read_bytes() == path.read_bytes()


# --- why --------------------------------------------------------------------------------------
# The advice that `why` gives if a local program can't be started.


@pytest.mark.parametrize("role, hint", [
    ({"entrypoint": "sh", "args": ["x" * 200000]},
     "Argument list too long. The args and env of role main are "
     "longer than the system allows: put long values into a file."),
    ({"entrypoint": "python3 train.py"},
     "Check the entrypoint of role main: it must be only a program, and the program's arguments belong in args."),
    ({"entrypoint": "nosuchprogram"},
     "Check the entrypoint of role main: it must be a program in PATH or the path of an executable file."),
])
def test_start_error(kx, role, hint):
    job = kx.submit(harness.app("", roles=[{"name": "main", "image": "none", **role}]))
    job.finish("FAILED")
    assert hint in job.read("why")


# What torch's record decorator does for a main function that raises: it writes this error file, and the program ends
# with code 1.
RECORD = """
import json, os, sys
error = {"message": {"message": "RuntimeError: boom of rank 0",
                     "extraInfo": {"py_callstack": "Traceback (most recent call last):\\n"
                                                   "  File \\"boom.py\\", line 5, in main\\n"
                                                   "    raise RuntimeError(\\"boom of rank 0\\")\\n"
                                                   "RuntimeError: boom of rank 0\\n", "timestamp": "1763715600"}}}
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    json.dump(error, file)
print("[rank0] the log says less")
sys.exit(1)
"""
TRACEBACK = """Its last output:
    Traceback (most recent call last):
      File "boom.py", line 5, in main
        raise RuntimeError("boom of rank 0")
    RuntimeError: boom of rank 0
"""
WORDS = "\n".join(line[4:] for line in TRACEBACK.splitlines()[1:])


def test_structured_error(kx):
    """The error is in `why` when `wait` returns, and in `status`. It is the same after a remount and in history/."""
    job = kx.submit(harness.python_app(RECORD))
    assert job.read("wait") == "FAILED\n"
    assert job.read("why").startswith("main-0 ended with exit code 1. ")
    assert job.read("why").endswith("Its output is in main-0/log. " + TRACEBACK)
    assert job.status()["last_words"] == WORDS
    kx.restart()
    assert job.read("why").endswith(TRACEBACK)
    harness.rmdir(job.dir)
    assert (job.old / "why").read_text().endswith(TRACEBACK)


def test_last_lines(kx):
    """`why` shows the last five lines that a failed program has printed, without blank lines, and cleaned for a
    terminal. It cuts long lines. The last line may lack its newline."""
    job = kx.submit(harness.app(r"""for i in 1 2 3 4 5 6; do echo line $i; echo; done
                                    printf '50%%\r100%%\n\033[31mred\n%600d\nno end' 7; exit 3"""))
    assert job.read("wait") == "FAILED\n"
    assert job.status()["last_words"].splitlines() == ["50%", "100%", "\\x1b[31mred", " " * 500 + " ...", "no end"]
    assert job.read("why").endswith("Its output is in main-0/log. Its last output:\n    50%\n    100%\n    \\x1b[31mred\n    " +
                                    " " * 500 + " ...\n    no end\n")


@pytest.mark.parametrize("script, words", [
    ("exit 3", ""),
    ("echo said; kill -9 $$", "said"),
    ("echo said; echo no JSON > $TORCHELASTIC_ERROR_FILE; exit 3", "said"),
    ("echo said; mkfifo $TORCHELASTIC_ERROR_FILE; exit 3", "said"),
    ("echo said; ln -s /dev/zero $TORCHELASTIC_ERROR_FILE; exit 3", "said"),
    ("echo said; head -c 2000000 /dev/zero > $TORCHELASTIC_ERROR_FILE; exit 3", "said"),
    ("""echo said; echo '{"message": "in one piece"}' > $TORCHELASTIC_ERROR_FILE; exit 3""", "in one piece"),
    ("""echo said; echo '{"message": "of a job that went well"}' > $TORCHELASTIC_ERROR_FILE""", ""),
])
def test_last_words(kx, script, words):
    job = kx.submit(harness.app(script))
    job.read("wait")
    assert job.status()["last_words"] == words


def test_silent(kx):
    """`why` refers to no log if the program has printed nothing. A blank line counts as output."""
    job = kx.submit(harness.app("kill -SEGV $$"))
    job.read("wait")
    said = "main-0 was killed by signal 11 (SIGSEGV). There was no retry, because max_retries is 0. The replica has printed nothing.\n"
    assert job.read("why") == said
    kx.restart()
    assert job.read("why") == said
    job = kx.submit(harness.app("echo; exit 3"))
    job.read("wait")
    assert job.read("why").endswith("Its output is in main-0/log.\n")


def test_error_file_of_the_job(kx, tmp_path):
    """An AppDef may name its own error file, which kxfs does not read. Each retry has a new error file."""
    job = kx.submit(harness.app("", roles=[
        {**harness.sh_role("echo $TORCHELASTIC_ERROR_FILE; exit 3"), "env": {"TORCHELASTIC_ERROR_FILE": str(tmp_path / "e")}}]))
    job.read("wait")
    assert job.status()["last_words"] == str(tmp_path / "e")
    job = kx.submit(harness.app("", roles=[
        {**harness.sh_role('test -e "$TORCHELASTIC_ERROR_FILE" && echo left; echo "{" > "$TORCHELASTIC_ERROR_FILE"; exit 3'),
         "max_retries": 1}]))
    job.read("wait")
    assert job.status()["last_words"] == ""
