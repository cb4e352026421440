# SPDX-License-Identifier: MIT
"""Held jobs and the queue of this machine."""

import datetime
import json
import os
import random
import resource
import signal
import subprocess
import time

import pytest
import records
import yaml
from harness import actions, app, err_of, popen, remove, run, wait_for, write_ctl
from preload import Clock
from starting import background

# --- Held jobs --------------------------------------------------------------------------------
# Jobs that are held until a user releases them, until a time, or until other jobs have ended.
#
# KXFS_TEST_HELD_JOBS is the number of jobs that test_kills holds (default 60). KXFS_TEST_HELD_KILLS is how often it
# kills kxfs meanwhile (6).

JOBS = int(os.environ.get("KXFS_TEST_HELD_JOBS", "60"))
KILLS = int(os.environ.get("KXFS_TEST_HELD_KILLS", "6"))


def held(script="true", name="app", **args):
    return json.dumps({**json.loads(app(script, name=name)), "scheduler_args": args}, indent=1)


def reason(job):
    return job.status()["reason"]


def forgotten(kx, n=0):
    """Wait until only N held jobs are still held, according to their records."""
    wait_for(lambda: sum("hold" in records.head_of(record) or records.head_of(record)["state"]["state"] != "LIVE"
                         for record in records.files(kx)) == n, what="the records to go")


def test_release(kx):
    """A held job appears immediately and shows its condition. When a user releases it, it runs once, under the same
    name."""
    text = held("echo began; echo $KXFS_JOB >> began", hold=True)
    job = kx.submit(text)
    status = job.status()
    assert (status["state"], status["phase"], status["reason"]) == ("PENDING", "Held", "Held")
    assert job.read("why") == "The job waits to be released. To release the job, write \"release\" to its file ctl.\n"
    assert job.read("ctl") == "release\n" and job.read("app.yaml") == text
    assert yaml.safe_load(job.read("manifest.yaml"))["id"] == job.id
    assert job.log() == b"" and job.read("log") == ""
    assert "Held" in kx.read("list")
    line = json.loads(kx.read("list.jsonl"))
    assert (line["id"], line["reason"]) == (job.id, "Held")
    assert run(f"grep -r none {job.dir}", check=False).stderr == ""
    assert err_of(write_ctl, job, "suspend") == "EINVAL"
    write_ctl(job, "release")
    job.finish()
    assert job.log() == b"began\n"
    assert (kx.work / "began").read_text().split() == [job.id]
    assert err_of(write_ctl, job, "release") == "EINVAL"
    forgotten(kx)
    assert kx.ls("jobs") == [job.id]


def test_release_cancels_nothing(make_kx):
    kx = make_kx("cancel=none")
    job = kx.submit(held(hold=True))
    assert actions(job) == ["release"]
    write_ctl(job, "release")
    job.finish()


def test_removed(kx):
    """A held job that a user removes is never launched, even after a crash."""
    jobs = [kx.submit(held("touch began", hold=True)) for _ in range(2)]
    remove(jobs[0].dir)
    assert kx.ls("jobs") == [jobs[1].id]
    forgotten(kx, 1)
    kx.restart(signal.SIGKILL)
    assert kx.ls("jobs") == [jobs[1].id]
    remove(jobs[1].dir)
    kx.restart(signal.SIGKILL)
    assert kx.ls("jobs") == kx.history() == [] and not (kx.work / "began").exists()


def test_readers(kx):
    """`wait` and `follow` of a held job continue when it is launched."""
    job = kx.submit(held("echo one; echo two", hold=True))
    readers = [popen(["cat", str(job.dir / "live" / name)], stdout=subprocess.PIPE, text=True)
               for name in ("wait", "follow")]
    readers.append(popen(["cat", str(job.dir / "main-0/live/follow")], stdout=subprocess.PIPE, text=True))
    write_ctl(job, "release")
    assert [reader.communicate()[0] for reader in readers] == [
        "SUCCEEDED\n", "main/0 one\nmain/0 two\n", "one\ntwo\n"]


def test_begin(kx):
    """`begin` is a duration from now, or a local time of this machine. At that time, the job starts automatically."""
    late = kx.submit(held(begin="2099-01-02T03:04"))
    soon = kx.submit(held("date +%s > began", begin="+2s"))
    began = datetime.datetime.fromisoformat(soon.status()["created"].replace("Z", "+00:00")).timestamp()
    local = datetime.datetime(2099, 1, 2, 3, 4).astimezone(datetime.timezone.utc)
    assert reason(late) == reason(soon) == "BeginTime"
    assert late.read("why") == f"The job waits until {local:%Y-%m-%dT%H:%M:%SZ}.\n"
    assert late.read("ctl") == ""
    soon.finish()
    assert int((kx.work / "began").read_text()) >= began + 2
    kx.restart(signal.SIGKILL)
    assert reason(late) == "BeginTime"
    past = kx.submit(held(begin="2001-01-01"))
    past.finish()


def test_clock_steps(make_kx, tmp_path):
    """`begin` is a time of the wall clock. If the clock is set back, the job is delayed. If the clock is set forward
    or the machine was suspended, the job is launched immediately. Each job runs once."""
    clock = Clock(tmp_path, time.CLOCK_REALTIME)
    kx = make_kx(env=clock.env)
    first = kx.submit(held("echo first >> began", begin="+1h"))
    clock.set(-86400)
    second = kx.submit(held("echo second >> began", begin="+1h"))
    soon = kx.submit(held("echo soon >> began", begin="+1s"))
    soon.finish()  # kxfs has now read the clock that was set back
    assert reason(first) == reason(second) == "BeginTime"
    clock.set(-80000)
    second.finish()
    assert reason(first) == "BeginTime"
    clock.set(7200)
    first.finish()
    assert (kx.work / "began").read_text().split() == ["soon", "second", "first"]


ENDS = {"ok": "true", "failed": "exit 1"}


@pytest.mark.parametrize("wish, end, begins", [
    ("ok", "ok", True), ("ok", "failed", False), ("failed", "failed", True), ("failed", "ok", False),
    ("any", "ok", True), ("any", "failed", True)])
def test_after(kx, wish, end, begins):
    """A job may wait until another one has succeeded, has failed, or has ended in any way. If that becomes
    impossible, the waiting job is cancelled."""
    first = kx.submit(held(ENDS[end], name="first", hold=True), "first.yaml")
    second = kx.submit(held("touch began", after=[f"{wish}:first"]))
    third = kx.submit(held("touch third", after=[f"ok:{second.id}"]))
    words = {"ok": "to succeed", "any": "to end", "failed": "to fail"}
    assert (reason(second), reason(third)) == ("Dependency", "Dependency")
    assert second.read("why") == f"The job waits for {first.id} {words[wish]}.\n"
    write_ctl(first, "release")
    if begins:
        second.finish()
        third.finish()
        return
    for job in (second, third):
        job.never()
    ended = {"ok": "succeeded", "failed": "failed"}[end]
    assert second.status()["reason"] == third.status()["reason"] == "DependencyNeverSatisfied"
    assert second.read("why") == (f"The job was cancelled: it waited for {first.id} {words[wish]}, "
                                  f"but {first.id} {ended}.\n")
    assert third.read("why").endswith(f"it waited for {second.id} to succeed, but {second.id} was cancelled.\n")
    assert second.read("live", "wait") == "CANCELLED\n" and second.read("live", "follow") == ""
    kx.restart(signal.SIGKILL)
    assert second.state() == third.state() == "CANCELLED"
    remove(second.dir)
    assert kx.ls("jobs") == [first.id] and kx.history() == [third.id] and not (kx.work / "began").exists()


def test_after_names(kx):
    """In `after`, a name means the job that was launched last from a file of this name, even if it has ended. A name
    without a job is refused."""
    first = kx.submit(app("exit 1", name="prep"), "prep.yaml")
    first.finish("FAILED")
    newest = kx.submit(app("true", name="prep"), "prep.yaml")
    for name in ("prep", "prep.yaml", newest.id):
        kx.submit(held(after=f"ok:{name}")).finish()
    kx.submit(held(after=[f"failed:{first.id}", "ok:prep"])).finish()
    for name in ("nobody", "self"):
        assert err_of(kx.write, "submit/self.yaml", held(after=[f"ok:{name}"])) == "EINVAL"
        text = kx.read("submit", "self.yaml.error")
        assert text.startswith("self.yaml:") and f"{name} is neither a job in jobs/ or history/, nor a file" in text
    # A job that waits for its own name waits for the previous job of the same file.
    kx.submit(app("true", name="self"), "self.yaml").finish()
    kx.submit(held("true", name="self", after=["ok:self"]), "self.yaml").finish()


def test_after_removed(kx):
    """A removed job counts as cancelled. If a job is gone when kxfs restarts, its result is unknown."""
    first = kx.submit(held(hold=True))
    ok, failed = (kx.submit(held(after=[f"{wish}:{first.id}"])) for wish in ("ok", "failed"))
    remove(first.dir)
    ok.never()
    failed.finish()
    second = kx.submit(app("true"))
    second.finish()
    late = [kx.submit(held(after=[f"{wish}:{second.id}"], begin="+1h")) for wish in ("ok", "any")]
    other = kx.submit(held(hold=True))
    lost = [kx.submit(held(after=[f"{wish}:{other.id}"])) for wish in ("ok", "any", "failed")]
    kx.end(signal.SIGKILL)
    for record in records.files(kx):
        if records.head_of(record)["job"]["id"] == other.id:
            record.unlink()
    kx.start()
    assert [reason(job) for job in late] == ["BeginTime"] * 2  # their `after` was met before
    lost[1].finish()
    for job in (lost[0], lost[2]):
        job.never()
        assert "was removed, and its result is unknown" in job.read("why")


def test_all_of_them(kx):
    """If a job has several conditions, all must be met. `why` names those that are not met yet."""
    first = kx.submit(held(hold=True))
    job = kx.submit(held(hold=True, begin="+1s", after=[f"ok:{first.id}", f"any:{first.id}"]))
    assert job.status()["message"].startswith(
        f"waits to be released, and for {first.id} to succeed, and for 1 more job, and until ")
    write_ctl(job, "release")
    assert reason(job) == "Dependency" and job.read("ctl") == ""
    write_ctl(first, "release")
    job.finish()


def test_refused(kx):
    """At the close, kxfs checks the whole document of a held job, as for a launch. In dryrun/ too."""
    for text, said in ((held(hold="yes"), "scheduler_args.hold: must be true or false"),
                       (held(begin="tomorrow"), "scheduler_args.begin: must be a time, like 2026-12-01T08:00"),
                       (held(begin="+2"), "scheduler_args.begin: must be a time"),
                       (held(after=["prep"]), "scheduler_args.after: must be a list of jobs to wait for"),
                       (held(after=["never:prep"]), "scheduler_args.after: must be a list of jobs to wait for"),
                       (held(hold=True, cwd="/nowhere"), "/nowhere: No such file or directory"),
                       (held(hol=True), "did you mean hold?"),
                       (held(after=["ok:prep"]), "prep is neither a job")):
        for place in ("submit", "dryrun"):
            assert err_of(kx.write, f"{place}/a.yaml", text) == "EINVAL", text
            assert said in kx.read(place, "a.yaml.error"), text
    kx.write("dryrun/b.yaml", held(hold=True))
    assert "work_dir" in yaml.safe_load(kx.read("dryrun", "b.yaml"))
    assert kx.ls("jobs") == [] and records.files(kx) == []


def test_launch_refused(kx):
    """If a held job can't be launched when its conditions are met, it fails and reports the reason."""
    place = kx.work / "place"
    place.mkdir()
    job = kx.submit(held(hold=True, cwd=str(place)))
    place.rmdir()
    write_ctl(job, "release")
    job.never("FAILED")
    assert reason(job) == "LaunchFailed" and "/place: No such file or directory" in job.read("why")


def test_read_only(make_kx):
    """A read-only mount neither launches nor cancels held jobs."""
    kx = make_kx()
    jobs = [kx.submit(held(begin="+2s")), kx.submit(held(hold=True)), kx.submit(held(begin="+1h"))]
    kx.restart(signal.SIGKILL, options="ro")
    time.sleep(2)  # the test expects that nothing happens, so it can't wait for an event
    for job in jobs:
        assert job.state() == "PENDING" and job.read("ctl") == ""
        assert "this mount is read-only" in job.read("why") and "ctl" not in job.read("why")
    kx.restart(options="")
    jobs[0].finish()


def test_damaged(kx):
    """kxfs moves a damaged record to aside/ and never launches its job. The other jobs remain."""
    bad, flipped, cut, good = (kx.submit(held("touch began", hold=True)) for _ in range(4))
    kx.end()
    for record in records.files(kx):
        data = record.read_bytes()
        ident = records.head_of(record)["job"]["id"]
        if ident == bad.id:
            record.write_bytes(data.replace(b"touch", b"hctou"))
        elif ident == flipped.id:
            record.write_bytes(data.replace(b'"hold":true', b'"hold":null'))
        elif ident == cut.id:
            record.write_bytes(data[:40])
    kx.start()
    assert kx.ls("jobs") == [good.id]
    assert kx.read(".kxfs/log").count("is damaged; kxfs neither shows nor launches its job, and ") == 3
    assert len(records.files(kx)) == 1 and len(list((kx.state / "aside").iterdir())) == 3
    kx.restart()
    assert kx.ls("jobs") == [good.id] and "is damaged" not in kx.read(".kxfs/log")
    assert not (kx.work / "began").exists()


def test_chain(kx):
    """A hundred jobs run in order, because each waits for the previous one."""
    jobs = [kx.submit(held("echo 0 >> order", hold=True))]
    for i in range(1, 100):
        jobs.append(kx.submit(held(f"echo {i} >> order", after=[f"ok:{jobs[-1].id}"])))
    write_ctl(jobs[0], "release")
    jobs[-1].finish(timeout=600)
    assert (kx.work / "order").read_text().split() == [str(i) for i in range(100)]
    forgotten(kx)


def test_queue(make_kx):
    """A held job does not count in the queue of the machine until it is launched."""
    kx = make_kx("jobs=1")
    job = kx.submit(held(hold=True))
    kx.submit(app("true")).finish()
    assert queue(kx)["pending"] == 0
    write_ctl(job, "release")
    job.finish()


def test_kills(kx, pytestconfig):
    """Many held jobs are launched while kxfs is killed repeatedly. Each is launched exactly once."""
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    print(f"seed {seed}, {KILLS} kills")
    rng = random.Random(seed)
    jobs = []
    for i in range(JOBS):
        how = {"begin": f"+{rng.randint(1, 3)}s"} if i % 2 or i < 3 else {"after": [f"any:{rng.choice(jobs).id}"]}
        jobs.append(kx.submit(held("echo $KXFS_JOB >> began", **how)))
    for _ in range(KILLS):
        time.sleep(rng.random())  # at a random moment
        kx.restart(signal.SIGKILL)
    for job in jobs:
        job.finish(timeout=600)
    assert sorted((kx.work / "began").read_text().split()) == sorted(job.id for job in jobs) == kx.ls("jobs")
    forgotten(kx)


# --- The queue --------------------------------------------------------------------------------
# The queue of one machine: -o jobs=N and -o gpus=N of local:. The GPUs don't exist; the jobs check that each has only
# one user.
#
# KXFS_TEST_GPU_JOBS is the number of jobs in randomized tests (default 24). KXFS_TEST_GPU_CRASHES is how often these
# kill kxfs (4).

QUEUE_JOBS = int(os.environ.get("KXFS_TEST_GPU_JOBS", "24"))
CRASHES = int(os.environ.get("KXFS_TEST_GPU_CRASHES", "4"))


@pytest.fixture
def rng(pytestconfig):
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    print(f"seed {seed}, {QUEUE_JOBS} jobs in a queue")
    return random.Random(seed)


def held_job(name, last="", **fields):
    """Return an AppDef whose job writes NAME to the file `order` when it begins, and then waits for a file called
    NAME."""
    return app(f"echo {name} >> order; while [ ! -e {name} ]; do sleep 0.02; done; {last}", name=name, **fields)


def order(kx):
    path = kx.work / "order"
    return path.read_text().split() if path.exists() else []


def gpus(n):
    return {"cpu": 1, "gpu": n, "memMB": 1}


def line_up(kx, *names):
    """Submit jobs of which the first runs and the others wait in the queue. Return them by name."""
    jobs = {name: kx.submit(held_job(name)) for name in names}
    jobs[names[0]].until("RUNNING")
    wait_for(lambda: order(kx) == list(names[:1]), what=f"{names[0]} to say that it begins")
    for name in names[1:]:
        assert jobs[name].state() == "PENDING"
    return jobs


def queue(kx):
    return yaml.safe_load(kx.read("queues/local/status"))


def places(*jobs):
    return [job.status()["queue_position"] for job in jobs]


def finish_in_order(kx, jobs, *names):
    """End each of the jobs NAMES as soon as it runs. Check that the next one begins only after
    that."""
    for i, name in enumerate(names):
        wait_for(lambda n=i: len(order(kx)) > n, what=f"{name} to begin")
        assert order(kx) == list(names[:i + 1])
        (kx.work / name).touch()
    for name in names:
        jobs[name].finish()


def test_program_that_the_job_before_makes(make_kx):
    """kxfs checks whether a program exists only when it starts the job. So a job may create the program of the next
    job."""
    kx = make_kx("jobs=1")
    build = kx.submit(held_job("build", "printf '#!/bin/sh\\necho built\\n' > tool; chmod +x tool"))
    ran = kx.submit(app("", roles=[{"name": "main", "image": "none", "entrypoint": "./tool"}]))
    assert ran.status()["queue_position"] == 1
    (kx.work / "build").touch()
    build.finish()
    ran.finish()
    assert ran.log() == b"built\n"


def test_jobs(make_kx):
    """With jobs=1, jobs run one after the other, in order. Waiting jobs show their reason and their position."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b", "c")
    b, c = jobs["b"].status(), jobs["c"].status()
    assert (b["reason"], b["queue_position"], b["message"]) == ("Resources", 1, "waits for a slot: 1 of 1 is in use")
    assert (c["reason"], c["queue_position"]) == ("Resources", 2)
    assert jobs["c"].read("why") == ("The job waits for a slot: 1 of 1 is in use, 1 job ahead of it. "
                                     "Its position in the queue is 2.\n")
    assert jobs["a"].status()["queue_position"] is None
    lines = {line.split()[0]: line for line in kx.read("list").splitlines()}
    assert lines[jobs["c"].id].endswith("  Resources (2 in local)") and lines[jobs["a"].id].endswith("  -")
    assert jobs["b"].read("ctl").split() == ["suspend", "terminate"]
    text = queue(kx)
    assert (text["slots"], text["gpus"], text["pending"], text["running"]) == (1, 0, 2, 1)
    assert [(j["id"], j["state"], j.get("queue_position")) for j in text["jobs"]] == [
        (jobs["a"].id, "RUNNING", None), (jobs["b"].id, "PENDING", 1), (jobs["c"].id, "PENDING", 2)]
    finish_in_order(kx, jobs, "a", "b", "c")


def test_no_queue(kx):
    """Without the options jobs= and gpus= there is no queue. A gpu in `resource` is then recorded,
    but not enforced."""
    assert "queues" not in kx.ls()
    kx.submit(app("echo .${CUDA_VISIBLE_DEVICES-unset}.", resource=gpus(1000))).finish()


def test_requests(make_kx):
    """Users can remove, suspend and terminate waiting jobs."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b", "c", "d", "e")
    remove(jobs["c"].dir)
    wait_for(lambda: places(jobs["b"], jobs["d"], jobs["e"]) == [1, 2, 3], what="the others to move up")
    write_ctl(jobs["b"], "suspend")
    assert (jobs["b"].state(), jobs["b"].status()["reason"]) == ("CANCELLED", "Suspended")
    wait_for(lambda: places(jobs["d"], jobs["e"]) == [1, 2], what="the others to move up")
    write_ctl(jobs["b"], "resume")
    wait_for(lambda: places(jobs["d"], jobs["e"], jobs["b"]) == [1, 2, 3], what="the last place")
    write_ctl(jobs["e"], "terminate")
    jobs["e"].finish("FAILED")
    assert jobs["e"].status()["reason"] == "Terminated"
    assert err_of(write_ctl, jobs["b"], "restart") == "EINVAL"
    finish_in_order(kx, jobs, "a", "d", "b")


def test_suspended(make_kx):
    """A suspended job keeps its slot, because its processes still exist and use memory."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b")
    write_ctl(jobs["a"], "suspend")
    assert places(jobs["b"]) == [1]
    write_ctl(jobs["a"], "resume")
    finish_in_order(kx, jobs, "a", "b")


def test_retries(make_kx):
    """A job keeps its slot and its GPUs between its attempts, until it has ended."""
    kx = make_kx("gpus=3")
    jobs = {"first": kx.submit(app("echo first >> order", resource=gpus(1))),
            "a": kx.submit(held_job("a", "echo $CUDA_VISIBLE_DEVICES; [ -e twice ] || { touch twice; exit 1; }",
                                resource=gpus(2), max_retries=1))}
    jobs["first"].finish()
    jobs["a"].until("RUNNING")
    jobs["b"] = kx.submit(held_job("b", resource=gpus(2)))
    (kx.work / "a").touch()
    jobs["a"].finish()
    assert jobs["a"].log(name="log.0") == jobs["a"].log() != b""
    (kx.work / "b").touch()
    jobs["b"].finish()
    assert [name for name in order(kx) if name != "first"] == ["a", "a", "b"]


@pytest.mark.parametrize("options, sig", [("jobs=1", signal.SIGKILL), ("jobs=1,linger", signal.SIGTERM)])
def test_remount(make_kx, options, sig):
    """After a crash or an unmount with linger, running and waiting jobs continue in the same order."""
    kx = make_kx(options)
    jobs = line_up(kx, "a", "b", "c", "d")
    write_ctl(jobs["b"], "suspend")
    write_ctl(jobs["b"], "resume")
    for _ in range(2):
        kx.restart(sig)
        wait_for(lambda: places(jobs["c"], jobs["d"], jobs["b"]) == [1, 2, 3], what="the order of before")
        assert jobs["a"].state() == "RUNNING" and order(kx) == ["a"]
    finish_in_order(kx, jobs, "a", "c", "d", "b")


def test_ended_meanwhile(make_kx):
    """If a slot becomes free while no kxfs runs, the next mount starts the next job. A mount without jobs= starts
    all waiting jobs."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b", "c")
    kx.end(signal.SIGKILL)
    (kx.work / "a").touch()
    wait_for(lambda: not kx.helpers(), what="the helper to end")
    kx.start()
    jobs["a"].finish()
    jobs["b"].until("RUNNING")
    assert jobs["c"].state() == "PENDING"
    kx.restart(signal.SIGKILL, options="")
    jobs["c"].until("RUNNING")
    for name in ("b", "c"):
        (kx.work / name).touch()
        jobs[name].finish()
    assert order(kx) == ["a", "b", "c"]


def test_queue_read_only(make_kx):
    """A read-only mount starts no job and forgets none. Waiting jobs remain in order until a mount without ro."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b", "c")
    kx.end(signal.SIGKILL)
    (kx.work / "a").touch()
    kx.options = "ro,jobs=1"
    kx.start()
    wait_for(lambda: jobs["a"].state() == "SUCCEEDED", what="the end of a")
    for name in ("b", "c"):
        wait_for(lambda n=name: "read-only and starts no jobs" in jobs[n].read("why"), what=f"why of {name}")
        assert jobs[name].state() == "PENDING" and jobs[name].read("ctl") == ""
    assert order(kx) == ["a"]
    kx.end()
    (kx.work / "order").unlink()
    kx.options = "jobs=1"
    kx.start()
    finish_in_order(kx, jobs, "b", "c")


def test_unmounted(make_kx):
    """Without linger, an unmount ends waiting jobs as it ends running ones."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b")
    kx.restart()
    assert [job.state() for job in jobs.values()] == ["CANCELLED", "CANCELLED"]
    assert "while the job ran" in jobs["a"].read("why") and "before the job started" in jobs["b"].read("why")
    assert order(kx) == ["a"]


STUBBORN = """
stop() { trap "" TERM; echo term >> order; while [ ! -e let-go ]; do sleep 0.02; done; echo over >> order; exit; }
trap stop TERM
echo a >> order
while :; do sleep 0.02; done
"""


@pytest.mark.parametrize("how", ["terminate", "remove"])
def test_ending(make_kx, how):
    """The GPUs of a job become free only when all its processes have ended, however long that takes, even after a
    crash. The queue and `why` of waiting jobs count them as used until then."""
    kx = make_kx("gpus=1,grace=1m")
    a = kx.submit(app(STUBBORN, resource=gpus(1)))
    wait_for(lambda: order(kx) == ["a"], what="a to begin")
    b = kx.submit(held_job("b", resource=gpus(1)))
    if how == "terminate":
        write_ctl(a, "terminate")
    else:
        remove(a.dir)
    wait_for(lambda: order(kx) == ["a", "term"], what="a to be told")
    assert "0 of 1 are free" in b.read("why") and queue(kx)["gpus_free"] == ""
    kx.restart(signal.SIGKILL)
    c = kx.submit(held_job("c", resource=gpus(1)))
    wait_for(lambda: places(b, c) == [1, 2], what="the queue")
    assert b.state() == "PENDING" and order(kx) == ["a", "term"]
    for name in ("let-go", "b", "c"):
        (kx.work / name).touch()
    b.finish()
    c.finish()
    assert order(kx) == ["a", "term", "over", "b", "c"]
    wait_for(lambda: queue(kx)["gpus_free"] == "0", what="the GPU to be free")


def test_never_fits(make_kx):
    """A job that needs more GPUs than the machine has is refused at the close, and in dryrun/ too."""
    kx = make_kx("gpus=4")
    text = app("true", resource=gpus(2), num_replicas=3)
    for name in ("submit", "dryrun"):
        assert err_of(kx.write, f"{name}/a.yaml", text) == "EINVAL"
        assert "the replicas need 6 GPUs together, but this mount has only 4" in kx.read(name, "a.yaml.error")
    assert kx.jobs() == []


def test_fewer(make_kx):
    """If a later mount has fewer GPUs, a job that no longer fits reports that and does not block the queue."""
    kx = make_kx("gpus=4,jobs=1")
    a, b, c = (kx.submit(held_job(name, resource=gpus(n))) for name, n in (("a", 1), ("b", 4), ("c", 1)))
    a.until("RUNNING")
    kx.restart(signal.SIGKILL, options="gpus=2")
    c.until("RUNNING")
    assert b.read("why") == ("The job waits for 4 GPUs, but this mount has only 2. Mount again "
                             "with more GPUs (-o gpus=N), or remove the job's directory.\n")
    remove(b.dir)
    for job, name in ((a, "a"), (c, "c")):
        (kx.work / name).touch()
        job.finish()


def test_why(make_kx):
    kx = make_kx("gpus=8")
    env = {"CUDA_VISIBLE_DEVICES": "0"}  # kxfs overrides this value of the AppDef
    a = kx.submit(held_job("a", "echo $CUDA_VISIBLE_DEVICES $HIP_VISIBLE_DEVICES", resource=gpus(1), num_replicas=7, env=env))
    others = [kx.submit(held_job("a", resource=gpus(2))) for _ in range(4)]
    a.until("RUNNING")
    assert others[3].read("why").startswith("The job waits for 2 GPUs: 1 of 8 is free, 3 jobs ahead of it.")
    text = queue(kx)
    assert text["gpus_free"] == "7"
    assert text["jobs"][0]["gpus"] == {f"main-{k}": str(k) for k in range(7)}
    (kx.work / "a").touch()
    for job in (a, *others):
        job.finish()
    assert [a.log(f"main-{k}") for k in range(7)] == [f"{k} {k}\n".encode() for k in range(7)]


@pytest.mark.parametrize("n", [0, 1])
def test_gpus_are_numbered_alike(make_kx, n):
    """The AppDef of a job can't change which GPU a number means."""
    kx = make_kx("gpus=1", env={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    names = ("CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
    job = kx.submit(app("echo " + " ".join(f"${{{name}-unset}}" for name in names),
                        env=dict.fromkeys(names, "mine"), resource=gpus(n)))
    job.finish()
    assert job.log() == (b"PCI_BUS_ID unset unset\n" if n else b"mine mine mine\n")


# Use each assigned GPU by creating its directory, which only one process can do.
USE = """
echo $KXFS_JOB/$KXFS_REPLICA >> started
n=0
for i in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do mkdir gpu-$i || touch overlap; n=$((n + 1)); done
[ $n = %d ] || touch wrong
sleep 0.%d
for i in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do rmdir gpu-$i; done
"""


def test_places(make_kx, rng):
    """kxfs is killed repeatedly. There are never more running jobs than slots, and no job is started twice."""
    kx = make_kx("jobs=3")
    jobs = []
    for _ in range(QUEUE_JOBS):
        jobs.append(kx.submit(app("echo $KXFS_JOB >> started; mkdir run-$KXFS_JOB; [ $(ls -d run-* | wc -l) -le 3 ] || touch overlap; "
                                  f"sleep 0.{rng.randint(1, 5)}; rmdir run-$KXFS_JOB")))
        if rng.random() < CRASHES / QUEUE_JOBS:
            kx.restart(signal.SIGKILL)
    for job in jobs:
        job.finish()
    assert not (kx.work / "overlap").exists()
    assert sorted((kx.work / "started").read_text().split()) == sorted(job.id for job in jobs)


def test_gpus(make_kx, rng):
    """kxfs is killed repeatedly. No GPU ever has two users, and no job is started twice."""
    kx = make_kx("gpus=8")
    jobs = []
    for i in range(QUEUE_JOBS):
        n = rng.randint(1, 4)
        jobs.append(kx.submit(app(USE % (n, rng.randint(1, 5)), resource=gpus(n), num_replicas=rng.randint(1, 8 // n))))
        if i % max(QUEUE_JOBS // CRASHES, 1) == 0:
            kx.restart(signal.SIGKILL)
    for job in jobs:
        job.finish()
    assert not (kx.work / "overlap").exists() and not (kx.work / "wrong").exists()
    started = (kx.work / "started").read_text().split()
    assert sorted(started) == sorted(f"{job.id}/{role['name']}-{rep['id']}" for job in jobs
                                     for role in job.status()["roles"] for rep in role["replicas"])
    assert run(f"ls -d {kx.work}/gpu-*", check=False).returncode != 0


def test_none_idle(make_kx, rng):
    """After each end of a job and each kill of kxfs, no GPU is idle needlessly: the first job in the queue waits
    only if the free GPUs do not suffice for it. No job overtakes another."""
    kx = make_kx("gpus=8")
    needs = {f"j{i}": rng.randint(1, 4) * rng.randint(1, 2) for i in range(QUEUE_JOBS)}
    waiting, running, ids = list(needs), [], {}

    def as_it_should_be():
        while waiting and sum(needs[name] for name in running) + needs[waiting[0]] <= 8:
            running.append(waiting.pop(0))
        expected = ({ids[name] for name in running}, [ids[name] for name in waiting])

        def shown():
            jobs = queue(kx)["jobs"] or []
            return ({job["id"] for job in jobs if job["state"] == "RUNNING"},
                    [job["id"] for job in jobs if job["state"] == "PENDING"])
        wait_for(lambda: shown() == expected, what=f"{running} to run, {waiting} to wait")

    jobs = {}
    for name, n in needs.items():
        jobs[name] = kx.submit(held_job(name, resource=gpus(n)))
        ids[name] = jobs[name].id
    as_it_should_be()
    while running:
        name = running.pop(rng.randrange(len(running)))
        if rng.random() < CRASHES / QUEUE_JOBS:
            kx.restart(signal.SIGKILL)
        (kx.work / name).touch()
        jobs[name].finish()
        as_it_should_be()
    assert sorted(order(kx)) == sorted(needs)


@pytest.mark.parametrize("visible,options,given", [("5,2", "gpus=2", "2,5"), ("7,3,6", "gpus=2", "3,6"), ("4,-1,5", "gpus=1", "4")])
def test_gpus_that_kxfs_was_given(make_kx, visible, options, given):
    kx = make_kx(options, env={"CUDA_VISIBLE_DEVICES": visible})
    job = kx.submit(app("echo $CUDA_VISIBLE_DEVICES", resource=gpus(given.count(",") + 1)))
    job.finish()
    assert job.log() == f"{given}\n".encode()
    wait_for(lambda: str(queue(kx)["gpus_free"]) == given, what="the GPUs to be free")


@pytest.mark.parametrize("visible,why", [("1,2", "gpus=3: CUDA_VISIBLE_DEVICES=1,2 lists fewer GPUs"),
                                         ("GPU-1b5", "CUDA_VISIBLE_DEVICES=GPU-1b5: list GPUs by number")])
def test_gpus_that_kxfs_was_not_given(make_kx, visible, why):
    kx = make_kx("gpus=3", start=False, env={"CUDA_VISIBLE_DEVICES": visible})
    with pytest.raises(AssertionError, match=why):
        kx.start()


def test_few_descriptors(make_kx):
    """If no descriptors are left, jobs wait until others end."""
    kx = make_kx(start=False)
    with background(kx, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))):
        jobs = [kx.submit(app("while [ ! -e go ]; do sleep 0.1; done")) for _ in range(20)]
        wait_for(lambda: any("Too many open files" in job.read("why") for job in jobs), what="a job to wait")
        (kx.work / "go").touch()
        for job in jobs:
            job.finish()
