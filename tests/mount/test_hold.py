# SPDX-License-Identifier: MIT
"""Jobs that are held until a user releases them, until a time, or until other jobs have ended.

KXFS_TEST_HELD_JOBS is how many test_kills holds (default 60), KXFS_TEST_HELD_KILLS how often kxfs is killed
meanwhile (6)."""

import datetime
import json
import os
import random
import signal
import subprocess
import time

import pytest
import records
import yaml
from harness import actions, app, err_of, popen, remove, run, wait_for, write_ctl
from preload import Clock

JOBS = int(os.environ.get("KXFS_TEST_HELD_JOBS", "60"))
KILLS = int(os.environ.get("KXFS_TEST_HELD_KILLS", "6"))


def held(script="true", name="app", **args):
    return json.dumps({**json.loads(app(script, name=name)), "scheduler_args": args}, indent=1)


def reason(job):
    return job.status()["reason"]


def forgotten(kx, n=0):
    """Jobs that were launched or removed are not held any more."""
    wait_for(lambda: sum("hold" in records.head_of(record) or records.head_of(record)["state"]["state"] != "LIVE"
                         for record in records.files(kx)) == n, what="the records to go")


def test_release(kx):
    """A held job appears immediately, shows its condition, and runs once when released, under the same name."""
    text = held("echo began; echo $KXFS_JOB >> began", hold=True)
    job = kx.submit(text)
    status = job.status()
    assert (status["state"], status["phase"], status["reason"]) == ("PENDING", "Held", "Held")
    assert job.read("why") == "The job waits to be released. Write release to its ctl to release it.\n"
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
    """Removing it discards it, immediately and over a crash."""
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
    """Its `wait` and `follow` continue over the launch."""
    job = kx.submit(held("echo one; echo two", hold=True))
    readers = [popen(["cat", str(job.dir / "live" / name)], stdout=subprocess.PIPE, text=True)
               for name in ("wait", "follow")]
    readers.append(popen(["cat", str(job.dir / "main-0/live/follow")], stdout=subprocess.PIPE, text=True))
    write_ctl(job, "release")
    assert [reader.communicate()[0] for reader in readers] == [
        "SUCCEEDED\n", "main/0 one\nmain/0 two\n", "one\ntwo\n"]


def test_begin(kx):
    """A duration from now, or a time of this machine; then it runs automatically."""
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
    """A begin is a time of the wall clock: setting the clock back delays it; setting it forward, or suspending the
    machine, launches it immediately. Each job runs once."""
    clock = Clock(tmp_path, time.CLOCK_REALTIME)
    kx = make_kx(env=clock.env)
    first = kx.submit(held("echo first >> began", begin="+1h"))
    clock.set(-86400)
    second = kx.submit(held("echo second >> began", begin="+1h"))
    soon = kx.submit(held("echo soon >> began", begin="+1s"))
    soon.finish()  # so the clock was looked at since it was put back
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
    """A job may wait for success, failure or any end of another; it is cancelled if that becomes impossible."""
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
    ended = {"ok": "has succeeded", "failed": "has failed"}[end]
    assert second.status()["reason"] == third.status()["reason"] == "DependencyNeverSatisfied"
    assert second.read("why") == (f"The job was cancelled: it waited for {first.id} {words[wish]}, "
                                  f"which {ended}.\n")
    assert third.read("why").endswith(f"it waited for {second.id} to succeed, which was cancelled.\n")
    assert second.read("live", "wait") == "CANCELLED\n" and second.read("live", "follow") == ""
    kx.restart(signal.SIGKILL)
    assert second.state() == third.state() == "CANCELLED"
    remove(second.dir)
    assert kx.ls("jobs") == [first.id] and kx.history() == [third.id] and not (kx.work / "began").exists()


def test_after_names(kx):
    """A name means the job that its file launched last, even one that has ended; a name without a job is refused."""
    first = kx.submit(app("exit 1", name="prep"), "prep.yaml")
    first.finish("FAILED")
    newest = kx.submit(app("true", name="prep"), "prep.yaml")
    for name in ("prep", "prep.yaml", newest.id):
        kx.submit(held(after=f"ok:{name}")).finish()
    kx.submit(held(after=[f"failed:{first.id}", "ok:prep"])).finish()
    for name in ("nobody", "self"):
        assert err_of(kx.write, "submit/self.yaml", held(after=[f"ok:{name}"])) == "EINVAL"
        text = kx.read("submit", "self.yaml.error")
        assert text.startswith("self.yaml:") and f"{name} is neither a job of jobs/ or history/, nor a file" in text
    # After itself: after the previous job of the same file.
    kx.submit(app("true", name="self"), "self.yaml").finish()
    kx.submit(held("true", name="self", after=["ok:self"]), "self.yaml").finish()


def test_after_removed(kx):
    """A removed job was cancelled; a job that is gone when kxfs restarts has an unknown end."""
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
    assert [reason(job) for job in late] == ["BeginTime"] * 2  # that was known before
    lost[1].finish()
    for job in (lost[0], lost[2]):
        job.never()
        assert "was removed, and its result is not known" in job.read("why")


def test_all_of_them(kx):
    """With several conditions, all must be met; `why` names the missing ones."""
    first = kx.submit(held(hold=True))
    job = kx.submit(held(hold=True, begin="+1s", after=[f"ok:{first.id}", f"any:{first.id}"]))
    assert job.status()["message"].startswith(
        f"waits to be released, and for {first.id} to succeed, and for 1 more, and until ")
    write_ctl(job, "release")
    assert reason(job) == "Dependency" and job.read("ctl") == ""
    write_ctl(first, "release")
    job.finish()


def test_refused(kx):
    """The whole file is checked at the close, as for a launch, and in dryrun/ too."""
    for text, said in ((held(hold="yes"), "scheduler_args.hold: must be true or false"),
                       (held(begin="tomorrow"), "scheduler_args.begin: must be a time, like 2026-12-01T08:00"),
                       (held(begin="+2"), "scheduler_args.begin: must be a time"),
                       (held(after=["prep"]), "scheduler_args.after: must be jobs to wait for"),
                       (held(after=["never:prep"]), "scheduler_args.after: must be jobs to wait for"),
                       (held(hold=True, cwd="/nowhere"), "/nowhere: No such file or directory"),
                       (held(hol=True), "did you mean hold?"),
                       (held(after=["ok:prep"]), "prep is neither a job")):
        for place in ("submit", "dryrun"):
            assert err_of(kx.write, f"{place}/a.yaml", text) == "EINVAL", text
            assert said in kx.read(place, "a.yaml.error"), text
    kx.write("dryrun/b.yaml", held(hold=True))
    assert yaml.safe_load(kx.read("dryrun", "b.yaml"))["state"] == "PENDING"
    assert kx.ls("jobs") == [] and records.files(kx) == []


def test_launch_refused(kx):
    """A job that can't be launched when its time comes has failed, and reports the reason."""
    place = kx.work / "place"
    place.mkdir()
    job = kx.submit(held(hold=True, cwd=str(place)))
    place.rmdir()
    write_ctl(job, "release")
    job.never("FAILED")
    assert reason(job) == "LaunchFailed" and "/place: No such file or directory" in job.read("why")


def test_read_only(make_kx):
    """A read-only mount launches nothing, and cancels nothing."""
    kx = make_kx()
    jobs = [kx.submit(held(begin="+2s")), kx.submit(held(hold=True)), kx.submit(held(begin="+1h"))]
    kx.end(signal.SIGKILL)
    kx.options = "ro"
    kx.start()
    time.sleep(2)  # nothing may happen, so there is nothing to wait for
    for job in jobs:
        assert job.state() == "PENDING" and job.read("ctl") == ""
        assert "this mount is read-only" in job.read("why") and "ctl" not in job.read("why")
    kx.end()
    kx.options = ""
    kx.start()
    jobs[0].finish()


@pytest.mark.parametrize("age", [7200, 600], ids=["older", "younger"])
def test_pause(kx, age):
    """Held jobs show since when no kxfs was running, at the earliest since their submission."""
    job = kx.submit(held(hold=True))
    kx.end()
    stamp = kx.state / "ran"
    assert time.time() - stamp.stat().st_mtime < 60
    [record] = records.files(kx)
    head = records.head_of(record)
    head["job"]["created"] -= age * 10**9
    records.rewrite(record, head)
    os.utime(stamp, (time.time() - 3600,) * 2)
    ran = datetime.datetime.fromtimestamp(max(int(stamp.stat().st_mtime), head["job"]["created"] // 10**9), datetime.timezone.utc)
    kx.start()
    assert f"No kxfs has run here from {ran:%Y-%m-%dT%H:%M:%SZ} to " in job.read("why")
    later = kx.submit(held(hold=True))
    assert "No kxfs" not in later.read("why")


def test_damaged(kx):
    """A damaged record is moved to aside/, and its job is never launched; the others remain."""
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
    assert kx.read(".kxfs/log").count("is damaged; its job is not shown, and never launched; the record is") == 3
    assert len(records.files(kx)) == 1 and len(list((kx.state / "aside").iterdir())) == 3
    kx.restart()
    assert kx.ls("jobs") == [good.id] and "is damaged" not in kx.read(".kxfs/log")
    assert not (kx.work / "began").exists()


def test_chain(kx):
    """A hundred jobs, each after the previous one."""
    jobs = [kx.submit(held("echo 0 >> order", hold=True))]
    for i in range(1, 100):
        jobs.append(kx.submit(held(f"echo {i} >> order", after=[f"ok:{jobs[-1].id}"])))
    write_ctl(jobs[0], "release")
    jobs[-1].finish(timeout=600)
    assert (kx.work / "order").read_text().split() == [str(i) for i in range(100)]
    forgotten(kx)


def test_queue(make_kx):
    """A held job is not in the queue of the machine until it is launched."""
    kx = make_kx("jobs=1")
    job = kx.submit(held(hold=True))
    kx.submit(app("true")).finish()
    assert yaml.safe_load(kx.read("queues", "local", "status"))["pending"] == 0
    write_ctl(job, "release")
    job.finish()


def test_kills(kx, pytestconfig):
    """Many held jobs are launched while kxfs is killed repeatedly: each is launched once."""
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    print(f"seed {seed}, {KILLS} kills")
    rng = random.Random(seed)
    jobs = []
    for i in range(JOBS):
        how = {"begin": f"+{rng.randint(1, 3)}s"} if i % 2 or i < 3 else {"after": [f"any:{rng.choice(jobs).id}"]}
        jobs.append(kx.submit(held("echo $KXFS_JOB >> began", **how)))
    for _ in range(KILLS):
        time.sleep(rng.random())  # at any moment
        kx.restart(signal.SIGKILL)
    for job in jobs:
        job.finish(timeout=600)
    assert sorted((kx.work / "began").read_text().split()) == sorted(job.id for job in jobs) == kx.ls("jobs")
    forgotten(kx)
