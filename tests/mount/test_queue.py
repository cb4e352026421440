# SPDX-License-Identifier: MIT
"""The queue of one machine: -o jobs=N and -o gpus=N of local:. The GPUs are pretended; the jobs check that none has two
users.

KXFS_TEST_GPU_JOBS is how many jobs the randomized tests run (default 24), KXFS_TEST_GPU_CRASHES how often kxfs is
killed (4)."""

import os
import random
import resource
import signal

import pytest
import yaml
from harness import app, err_of, remove, run, wait_for, write_ctl
from starting import background

JOBS = int(os.environ.get("KXFS_TEST_GPU_JOBS", "24"))
CRASHES = int(os.environ.get("KXFS_TEST_GPU_CRASHES", "4"))


@pytest.fixture
def rng(pytestconfig):
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    print(f"seed {seed}, {JOBS} jobs in a queue")
    return random.Random(seed)


def held(name, last="", **fields):
    """A job that writes to the file `order` when it begins, and waits for the file NAME."""
    return app(f"echo {name} >> order; while [ ! -e {name} ]; do sleep 0.02; done; {last}", name=name, **fields)


def order(kx):
    path = kx.work / "order"
    return path.read_text().split() if path.exists() else []


def gpus(n):
    return {"cpu": 1, "gpu": n, "memMB": 1}


def line_up(kx, *names):
    """One job that runs, and others queued behind it."""
    jobs = {name: kx.submit(held(name)) for name in names}
    jobs[names[0]].until("RUNNING")
    wait_for(lambda: order(kx) == list(names[:1]), what=f"{names[0]} to say that it begins")
    for name in names[1:]:
        assert jobs[name].state() == "PENDING"
    return jobs


def places(*jobs):
    return [job.status()["queue_position"] for job in jobs]


def finish_in_order(kx, jobs, *names):
    """End each job as soon as it runs; those behind it must not have begun."""
    for i, name in enumerate(names):
        wait_for(lambda n=i: len(order(kx)) > n, what=f"{name} to begin")
        assert order(kx) == list(names[:i + 1])
        (kx.work / name).touch()
    for name in names:
        jobs[name].finish()


def test_program_that_the_job_before_makes(make_kx):
    """Whether a program exists is checked when it is started, so one job may build the program of the next one."""
    kx = make_kx("jobs=1")
    build = kx.submit(held("build", "printf '#!/bin/sh\\necho built\\n' > tool; chmod +x tool"))
    ran = kx.submit(app("", roles=[{"name": "main", "image": "none", "entrypoint": "./tool"}]))
    assert ran.status()["queue_position"] == 1
    (kx.work / "build").touch()
    build.finish()
    ran.finish()
    assert ran.log() == b"built\n"


def test_jobs(make_kx):
    """Jobs run one after the other, in order; waiting ones show their reason and their position."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b", "c")
    b, c = jobs["b"].status(), jobs["c"].status()
    assert (b["reason"], b["queue_position"], b["message"]) == ("Resources", 1, "waits for a slot: 1 of 1 is in use")
    assert (c["reason"], c["queue_position"]) == ("Resources", 2)
    assert jobs["c"].read("why") == ("The job waits for a slot: 1 of 1 is in use, 1 job before it. "
                                     "Its position in the queue is 2.\n")
    assert jobs["a"].status()["queue_position"] is None
    lines = {line.split()[0]: line for line in kx.read("list").splitlines()}
    assert lines[jobs["c"].id].endswith("  Resources (2 in local)") and lines[jobs["a"].id].endswith("  -")
    assert jobs["b"].read("ctl").split() == ["suspend", "terminate"]
    text = yaml.safe_load(kx.read("queues", "local", "status"))
    assert (text["places"], text["gpus"], text["pending"], text["running"]) == (1, 0, 2, 1)
    assert [(j["id"], j["state"], j.get("queue_position")) for j in text["jobs"]] == [
        (jobs["a"].id, "RUNNING", None), (jobs["b"].id, "PENDING", 1), (jobs["c"].id, "PENDING", 2)]
    finish_in_order(kx, jobs, "a", "b", "c")


def test_no_queue(kx):
    """Without the options there is no queue, and a gpu in a resource is recorded, not enforced."""
    assert "queues" not in kx.ls()
    kx.submit(app("echo .${CUDA_VISIBLE_DEVICES-unset}.", resource=gpus(1000))).finish()


def test_requests(make_kx):
    """Removing, suspending and ending a waiting job."""
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
    """A suspended job keeps its slot, since its processes still exist and use memory."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b")
    write_ctl(jobs["a"], "suspend")
    assert places(jobs["b"]) == [1]
    write_ctl(jobs["a"], "resume")
    finish_in_order(kx, jobs, "a", "b")


def test_retries(make_kx):
    """Attempts of a job follow each other: it keeps its slot and its GPUs until it is over."""
    kx = make_kx("gpus=3")
    jobs = {"first": kx.submit(app("echo first >> order", resource=gpus(1))),
            "a": kx.submit(held("a", "echo $CUDA_VISIBLE_DEVICES; [ -e twice ] || { touch twice; exit 1; }",
                                resource=gpus(2), max_retries=1))}
    jobs["first"].finish()
    jobs["a"].until("RUNNING")
    jobs["b"] = kx.submit(held("b", resource=gpus(2)))
    (kx.work / "a").touch()
    jobs["a"].finish()
    assert jobs["a"].log(name="log.0") == jobs["a"].log() != b""
    (kx.work / "b").touch()
    jobs["b"].finish()
    assert [name for name in order(kx) if name != "first"] == ["a", "a", "b"]


@pytest.mark.parametrize("options, sig", [("jobs=1", signal.SIGKILL), ("jobs=1,linger", signal.SIGTERM)])
def test_remount(make_kx, options, sig):
    """Running and waiting jobs continue in the same order, over a crash and with linger."""
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
    """A job whose slot becomes free while no kxfs runs starts with the next mount; without jobs= all waiting ones
    do."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b", "c")
    kx.end(signal.SIGKILL)
    (kx.work / "a").touch()
    wait_for(lambda: not kx.helpers(), what="the helper to end")
    kx.start()
    jobs["a"].finish()
    jobs["b"].until("RUNNING")
    assert jobs["c"].state() == "PENDING"
    kx.end(signal.SIGKILL)
    kx.options = ""
    kx.start()
    jobs["c"].until("RUNNING")
    for name in ("b", "c"):
        (kx.work / name).touch()
        jobs[name].finish()
    assert order(kx) == ["a", "b", "c"]


def test_read_only(make_kx):
    """A read-only mount starts nothing and forgets nothing: waiting jobs remain in order until a mount without ro."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b", "c")
    kx.end(signal.SIGKILL)
    (kx.work / "a").touch()
    kx.options = "ro,jobs=1"
    kx.start()
    wait_for(lambda: jobs["a"].state() == "SUCCEEDED", what="the end of a")
    for name in ("b", "c"):
        wait_for(lambda n=name: "read-only: it starts no job" in jobs[n].read("why"), what=f"why of {name}")
        assert jobs[name].state() == "PENDING" and jobs[name].read("ctl") == ""
    assert order(kx) == ["a"]
    kx.end()
    (kx.work / "order").unlink()
    kx.options = "jobs=1"
    kx.start()
    finish_in_order(kx, jobs, "b", "c")


def test_unmounted(make_kx):
    """Without linger, unmounting ends waiting jobs like running ones."""
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b")
    kx.restart()
    assert [job.state() for job in jobs.values()] == ["CANCELLED", "CANCELLED"]
    assert order(kx) == ["a"]


STUBBORN = """
stop() { trap "" TERM; echo term >> order; while [ ! -e let-go ]; do sleep 0.02; done; echo over >> order; exit; }
trap stop TERM
echo a >> order
while :; do sleep 0.02; done
"""


@pytest.mark.parametrize("how", ["terminate", "remove"])
def test_ending(make_kx, how):
    """A job's slot and GPUs become free only when its processes have ended, however long that takes, also over a
    crash."""
    kx = make_kx("gpus=1,grace=1m")
    a = kx.submit(app(STUBBORN, resource=gpus(1)))
    wait_for(lambda: order(kx) == ["a"], what="a to begin")
    b = kx.submit(held("b", resource=gpus(1)))
    if how == "terminate":
        write_ctl(a, "terminate")
    else:
        remove(a.dir)
    wait_for(lambda: order(kx) == ["a", "term"], what="a to be told")
    kx.restart(signal.SIGKILL)
    c = kx.submit(held("c", resource=gpus(1)))
    wait_for(lambda: places(b, c) == [1, 2], what="the queue")
    assert b.state() == "PENDING" and order(kx) == ["a", "term"]
    for name in ("let-go", "b", "c"):
        (kx.work / name).touch()
    b.finish()
    c.finish()
    assert order(kx) == ["a", "term", "over", "b", "c"]


def test_never_fits(make_kx):
    """A job that needs more GPUs than exist is refused at the close, and in dryrun/ too."""
    kx = make_kx("gpus=4")
    text = app("true", resource=gpus(2), num_replicas=3)
    for name in ("submit", "dryrun"):
        assert err_of(kx.write, f"{name}/a.yaml", text) == "EINVAL"
        assert "the replicas need 6 GPUs together, and this mount has 4" in kx.read(name, "a.yaml.error")
    assert kx.jobs() == []


def test_fewer(make_kx):
    """A mount with fewer GPUs than before: a job that no longer fits reports that, and blocks nothing."""
    kx = make_kx("gpus=4,jobs=1")
    a, b, c = (kx.submit(held(name, resource=gpus(n))) for name, n in (("a", 1), ("b", 4), ("c", 1)))
    a.until("RUNNING")
    kx.end(signal.SIGKILL)
    kx.options = "gpus=2"
    kx.start()
    c.until("RUNNING")
    assert b.read("why") == ("The job waits for 4 GPUs, but there are only 2. "
                             "Mount again with more (-o gpus=N), or remove its directory.\n")
    remove(b.dir)
    for job, name in ((a, "a"), (c, "c")):
        (kx.work / name).touch()
        job.finish()


def test_why(make_kx):
    kx = make_kx("gpus=8")
    env = {"CUDA_VISIBLE_DEVICES": "0"}  # what is given counts
    a = kx.submit(held("a", "echo $CUDA_VISIBLE_DEVICES $HIP_VISIBLE_DEVICES", resource=gpus(1), num_replicas=7, env=env))
    others = [kx.submit(held("a", resource=gpus(2))) for _ in range(4)]
    a.until("RUNNING")
    assert others[3].read("why").startswith("The job waits for 2 GPUs: 1 of 8 is free, 3 jobs before it.")
    text = yaml.safe_load(kx.read("queues", "local", "status"))
    assert text["gpus_free"] == "7"
    assert text["jobs"][0]["gpus"] == {f"main-{k}": str(k) for k in range(7)}
    (kx.work / "a").touch()
    for job in (a, *others):
        job.finish()
    assert [a.log(f"main-{k}") for k in range(7)] == [f"{k} {k}\n".encode() for k in range(7)]


# Use each assigned GPU; a directory can only be made once.
USE = """
echo $KXFS_JOB/$KXFS_REPLICA >> started
n=0
for i in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do mkdir gpu-$i || touch overlap; n=$((n + 1)); done
[ $n = %d ] || touch wrong
sleep 0.%d
for i in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do rmdir gpu-$i; done
"""


def test_places(make_kx, rng):
    """At most as many jobs run as there are slots, and none is started twice, although kxfs is killed repeatedly."""
    kx = make_kx("jobs=3")
    jobs = []
    for _ in range(JOBS):
        jobs.append(kx.submit(app("echo $KXFS_JOB >> started; mkdir run-$KXFS_JOB; [ $(ls -d run-* | wc -l) -le 3 ] || touch overlap; "
                                  f"sleep 0.{rng.randint(1, 5)}; rmdir run-$KXFS_JOB")))
        if rng.random() < CRASHES / JOBS:
            kx.restart(signal.SIGKILL)
    for job in jobs:
        job.finish()
    assert not (kx.work / "overlap").exists()
    assert sorted((kx.work / "started").read_text().split()) == sorted(job.id for job in jobs)


def test_gpus(make_kx, rng):
    """No GPU has two users at a time, and no job is started twice, although kxfs is killed repeatedly."""
    kx = make_kx("gpus=8")
    jobs = []
    for i in range(JOBS):
        n = rng.randint(1, 4)
        jobs.append(kx.submit(app(USE % (n, rng.randint(1, 5)), resource=gpus(n), num_replicas=rng.randint(1, 8 // n))))
        if i % max(JOBS // CRASHES, 1) == 0:
            kx.restart(signal.SIGKILL)
    for job in jobs:
        job.finish()
    assert not (kx.work / "overlap").exists() and not (kx.work / "wrong").exists()
    started = (kx.work / "started").read_text().split()
    assert sorted(started) == sorted(f"{job.id}/{role['name']}-{rep['id']}" for job in jobs
                                     for role in job.status()["roles"] for rep in role["replicas"])
    assert run(f"ls -d {kx.work}/gpu-*", check=False).returncode != 0


def test_none_idle(make_kx, rng):
    """The first job in the queue runs if it fits, no job overtakes, and the free GPUs do not suffice for the first:
    after each end, and after each kill of kxfs."""
    kx = make_kx("gpus=8")
    needs = {f"j{i}": rng.randint(1, 4) * rng.randint(1, 2) for i in range(JOBS)}
    waiting, running, ids = list(needs), [], {}

    def as_it_should_be():
        while waiting and sum(needs[name] for name in running) + needs[waiting[0]] <= 8:
            running.append(waiting.pop(0))
        expected = ({ids[name] for name in running}, [ids[name] for name in waiting])

        def shown():
            jobs = yaml.safe_load(kx.read("queues", "local", "status"))["jobs"] or []
            return ({job["id"] for job in jobs if job["state"] == "RUNNING"},
                    [job["id"] for job in jobs if job["state"] == "PENDING"])
        wait_for(lambda: shown() == expected, what=f"{running} to run, {waiting} to wait")

    jobs = {}
    for name, n in needs.items():
        jobs[name] = kx.submit(held(name, resource=gpus(n)))
        ids[name] = jobs[name].id
    as_it_should_be()
    while running:
        name = running.pop(rng.randrange(len(running)))
        if rng.random() < CRASHES / JOBS:
            kx.restart(signal.SIGKILL)
        (kx.work / name).touch()
        jobs[name].finish()
        as_it_should_be()
    assert sorted(order(kx)) == sorted(needs)


def queue(kx):
    return yaml.safe_load(kx.read("queues/local/status"))


def test_gpu_of_a_job_that_is_being_ended(make_kx):
    """The queue and `why` of waiting jobs count equally: a GPU is not free before its job has ended."""
    kx = make_kx("gpus=1,grace=1m")
    a = kx.submit(app(STUBBORN, resource=gpus(1)))
    wait_for(lambda: order(kx) == ["a"], what="a to begin")
    b = kx.submit(app("true", resource=gpus(1)))
    assert queue(kx)["gpus_free"] == ""
    a.cancel()
    wait_for(lambda: order(kx) == ["a", "term"], what="SIGTERM")
    assert "0 of 1 are free" in b.read("why") and queue(kx)["gpus_free"] == ""
    (kx.work / "let-go").touch()
    b.finish()
    wait_for(lambda: queue(kx)["gpus_free"] == "0", what="the GPU to be free")


@pytest.mark.parametrize("visible,options,given", [("5,2", "gpus=2", "2,5"), ("7,3,6", "gpus=2", "3,6"), ("4,-1,5", "gpus=1", "4")])
def test_gpus_that_kxfs_was_given(make_kx, visible, options, given):
    kx = make_kx(options, env={"CUDA_VISIBLE_DEVICES": visible})
    job = kx.submit(app("echo $CUDA_VISIBLE_DEVICES", resource=gpus(given.count(",") + 1)))
    job.finish()
    assert job.log() == f"{given}\n".encode()
    wait_for(lambda: str(queue(kx)["gpus_free"]) == given, what="the GPUs to be free")


@pytest.mark.parametrize("visible,why", [("1,2", "gpus=3: CUDA_VISIBLE_DEVICES=1,2 leaves fewer to kxfs"),
                                         ("GPU-1b5", "CUDA_VISIBLE_DEVICES=GPU-1b5: name GPUs by their numbers")])
def test_gpus_that_kxfs_was_not_given(make_kx, visible, why):
    kx = make_kx("gpus=3", start=False, env={"CUDA_VISIBLE_DEVICES": visible})
    with pytest.raises(AssertionError, match=why):
        kx.start()


def test_unmounted_before_its_turn(make_kx):
    kx = make_kx("jobs=1")
    jobs = line_up(kx, "a", "b")
    kx.restart()
    assert "before the job started" in jobs["b"].read("why")
    assert "while the job ran" in jobs["a"].read("why")


def test_few_descriptors(make_kx):
    """Jobs wait while no descriptors are left, until others end."""
    kx = make_kx(start=False)
    with background(kx, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))):
        jobs = [kx.submit(app("while [ ! -e go ]; do sleep 0.1; done")) for _ in range(20)]
        wait_for(lambda: any("Too many open files" in job.read("why") for job in jobs), what="a job to wait")
        (kx.work / "go").touch()
        for job in jobs:
            job.finish()
