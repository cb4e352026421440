# SPDX-License-Identifier: MIT
"""Submitting to a cluster, held jobs, and launches whose result is unknown."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import harness
import pytest
import records
import replies
import store as st
from faults import common_faults
from preload import Clock
from submitting import error_of, job_of

# --- Submitting -------------------------------------------------------------------------------
# A submission creates exactly one object, whatever the network does. Every refusal reaches the writer: an errno, and
# NAME.error.

GOOD = harness.app("true", num_replicas=2)


def launched_objects(server):
    """Return the jobs in the cluster."""
    return server.store.objects(st.JOBS)[0]


def posts(server):
    return [req for req in server.seen(verb="create", resource="jobs") if "dryRun" not in req.query]


def put(kx, text=GOOD, name="app.yaml"):
    """Write TEXT to submit/NAME. Return the name of the errno, or "" if it was accepted."""
    return harness.err_of(kx.write, f"submit/{name}", text)


def accepted_once(kx, server):
    """Check that app.yaml was launched once, and that all requests were for the same submission."""
    assert error_of(kx, "app.yaml") is None
    (obj,) = launched_objects(server)
    assert job_of(kx, "app.yaml") == obj.name
    assert kx.ls("jobs") == [obj.name]
    sent = {json.loads(req.body)["metadata"]["annotations"]["kxfs/submission"]
            for req in posts(server) if req.body}
    assert sent == {obj.tree()["metadata"]["annotations"]["kxfs/submission"]}
    return obj


def test_submit(kx, server):
    """When cp returns, the job exists and its object has the requested contents."""
    (kx.base / "app.yaml").write_text(GOOD)
    harness.run(["cp", str(kx.base / "app.yaml"), str(kx / "submit/app.yaml")])
    (name,) = kx.ls("jobs")
    obj = accepted_once(kx, server)
    tree = obj.tree()
    assert obj.name == name and harness.Job(kx, name).state() in ("SUBMITTED", "PENDING")
    assert [task["name"] for task in tree["spec"]["tasks"]] == ["main-0", "main-1"]
    notes = tree["metadata"]["annotations"]
    assert notes["kxfs/appdef"] == GOOD and "@" in notes["kxfs/submitter"]
    assert kx.read("jobs", name, "app.yaml") == GOOD
    (post,) = posts(server)
    assert post.query["fieldValidation"] == "Strict"
    assert harness.Job(kx, name).status()["submitter"] == notes["kxfs/submitter"]


@pytest.mark.parametrize("fault,amount", [
    ("reset", 0), ("lose", 0), ("cut", 150), ("cut", 700), ("close", 40), ("close", 700), ("longer", 10), ("junk", 0)])
def test_broken_connection(kx, server, fault, amount):
    """The connection breaks, so kxfs does not know whether the request took effect. It finds out, and the job runs
    once."""
    server.faults.add(fault, amount=amount, verb="create")
    assert put(kx) == "", error_of(kx, "app.yaml")
    assert server.seen(verb="create")[0].fault is not None
    accepted_once(kx, server)


@pytest.mark.parametrize("reply", [replies.too_many(1), replies.unavailable({"Retry-After": "1"}),
                                   replies.unavailable()], ids=["429", "503 later", "503"])
def test_not_now(kx, server, reply):
    """The reply guarantees that the server did nothing. kxfs retries, but not before the time that the server
    requests."""
    server.faults.add("reply", times=2, reply=reply, verb="create")
    assert put(kx) == ""
    accepted_once(kx, server)
    at = [req.at for req in posts(server)]
    assert len(at) == 3
    if "Retry-After" in reply.headers:
        assert at[1] - at[0] >= 0.9 and at[2] - at[1] >= 0.9


def test_reply_that_is_lost_of_a_job_that_is_gone(kx, server):
    """A job is launched, but no reply arrives. When the server is reachable again, the job has ended and its ttl has
    removed it, and no watch has reported it. kxfs does not launch it again, and reports an unknown result."""
    text = json.dumps({**json.loads(GOOD), "scheduler_args": {"ttl": "1s"}})
    harness.wait_for(lambda: server.hold(resource="jobs"), what="the watch of jobs")
    server.faults.add("lose", verb="create")
    cut = server.faults.add("reset", times=10000, verb="create")
    answers = []
    writer = threading.Thread(target=lambda: answers.append(put(kx, text)))
    writer.start()
    harness.wait_for(lambda: launched_objects(server), what="the job")
    (obj,) = launched_objects(server)
    server.store.remove(st.JOBS, "test", obj.name)
    server.expire(resource="jobs")
    writer.join()
    server.faults.clear(cut)
    assert answers == ["ETIMEDOUT"] and "could not find out whether it was launched" in error_of(kx, "app.yaml")
    assert "may have removed the job since then" in error_of(kx, "app.yaml")
    assert server.count(verb="get", resource="jobs") == 1
    assert [req.fault.kind for req in posts(server)][:1] == ["lose"] and not launched(server)
    assert put(kx) == "" and len(launched_objects(server)) == 1


@pytest.mark.concurrent
def test_at_random(kx, server, pytestconfig):
    """Twenty submissions through a bad network. Each result is true, and no job is launched twice."""
    seed = pytestconfig.getoption("--seed") or int(time.time())
    server.faults.at_random(seed, 0.3, common_faults(replies))
    results = {f"app-{i}.yaml": put(kx, name=f"app-{i}.yaml") for i in range(20)}
    server.faults.clear()
    ids = {}
    for name, err in results.items():
        if err == "ETIMEDOUT":  # a result that was not known in time becomes known later
            harness.wait_for(lambda name=name: error_of(kx, name) or job_of(kx, name), what=f"the verdict on {name}")
        elif err:
            assert error_of(kx, name) or job_of(kx, name)
        else:
            ids[name] = job_of(kx, name)
    found = {obj.name for obj in launched_objects(server)}
    assert set(ids.values()) <= found and len(set(ids.values())) == len(ids)
    submissions = [obj.tree()["metadata"]["annotations"]["kxfs/submission"] for obj in launched_objects(server)]
    assert len(set(submissions)) == len(submissions)
    # Each job in the cluster has a link.
    harness.wait_for(lambda: {job_of(kx, name) for name in results} - {None} == {obj.name for obj in launched_objects(server)},
                     what="the outcome of all submissions")


REFUSALS = {
    "strict": (replies.recorded("400-strict-unknown-field.json"), "EINVAL", 'unknown field "spec.maxRetryy"'),
    "webhook": (replies.recorded("400-webhook-no-such-queue.json"), "EINVAL", 'no queue "nosuch"'),
    "invalid": (replies.invalid(st.JOBS, "x", ("spec.tasks", "FieldValueInvalid", "Invalid value: 3")), "EINVAL", "spec.tasks"),
    "token": (replies.recorded("401-bad-token.json"), "EACCES", "(401)"),
    "forbidden": (replies.forbidden("ada", "create", st.JOBS, "test"), "EACCES", "ada may not create jobs.batch.volcano.sh"),
    "quota": (replies.recorded("403-quota-exceeded.json"), "EDQUOT", "quota q1"),
    "not served": (replies.not_served(), "ENOTSUP", ""),
    "413": (replies.body_too_large(), "EFBIG", "bytes"),
    "etcd": (replies.too_large_for_etcd(), "EFBIG", "bytes"),
    "message": (replies.too_large_to_send(2865147), "EFBIG", "2097152"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(kx, server, name):
    """A refusal is shown in cp's message, and in full in NAME.error. Nothing is launched, and kxfs does not retry."""
    reply, code, text = REFUSALS[name]
    server.faults.add("reply", times=100, reply=reply, verb="create")
    (kx.base / "app.yaml").write_text(GOOD)
    p = harness.run(["cp", str(kx.base / "app.yaml"), str(kx / "submit/")], check=False)
    assert p.returncode == 1
    assert put(kx) == code
    assert text.lower() in error_of(kx, "app.yaml").lower()
    assert job_of(kx, "app.yaml") is None and kx.ls("jobs") == []
    assert len(posts(server)) == 2 or name == "token"  # kxfs may retry once after a 401
    server.faults.clear()
    assert put(kx) == ""
    assert error_of(kx, "app.yaml") is None


def test_ready_manifest(kx, server):
    """The unchanged manifest of a job in the tree runs the job again, under a new name."""
    put(kx)
    (first,) = launched_objects(server)
    manifest = kx.read("jobs", first.name, "manifest.yaml")
    assert put(kx, manifest, "again.yaml") == ""
    assert job_of(kx, "again.yaml") != first.name
    assert {obj.name for obj in launched_objects(server)} == {first.name, job_of(kx, "again.yaml")}


def test_dry_run(kx, server):
    """The server checks a document in dryrun/ and launches nothing. Reading the file returns the manifest."""
    kx.write("dryrun/app.yaml", GOOD)
    assert "kind: Job" in kx.read("dryrun", "app.yaml")
    (post,) = server.seen(verb="create")
    assert post.query["dryRun"] == "All" and post.query["fieldValidation"] == "Strict"
    assert not launched(server) and kx.ls("jobs") == []
    server.faults.add("reply", times=9, reply=replies.recorded("403-quota-exceeded.json"), verb="create")
    assert harness.err_of(kx.write, "dryrun/app.yaml", GOOD) == "EDQUOT"
    assert "q1" in kx.read("dryrun", "app.yaml.error")


@pytest.mark.parametrize("fault", ["reset", "lose", "cut"])
def test_opinion_is_asked_again(kx, server, fault):
    """If the connection breaks during a dry run, or during the check of a held job, kxfs retries, because these
    requests change nothing."""
    server.faults.add(fault, amount=60, verb="create")
    kx.write("dryrun/app.yaml", GOOD)
    assert "kind: Job" in kx.read("dryrun", "app.yaml")
    server.faults.add(fault, amount=60, verb="create")
    assert kx.submit(json.dumps({**json.loads(GOOD), "scheduler_args": {"hold": True}})).status()["reason"] == "Held"
    assert server.count(verb="create", resource="jobs") == 4 and not launched(server)


def test_visible_before_any_watch(kx, server):
    """The reply to the POST makes the job visible, even if the watch reports it much later."""
    harness.wait_for(lambda: server.open_streams(resource="jobs"))
    server.faults.add("silent", times=100, resource="jobs", verb="watch")
    server.faults.add("silent", times=100, resource="jobs", verb="list")
    server.end_streams("end", resource="jobs")
    assert put(kx) == ""
    accepted_once(kx, server)


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_ended_in_the_middle(make_mount, server, volcano, sig):
    """kxfs ends while the server has its request. The next mount knows that the job is its own, and nothing runs
    twice."""
    kx = make_mount(server)
    server.faults.add("deaf", verb="create")
    writer = harness.popen(["cp", "/dev/stdin", str(kx / "submit/app.yaml")], stdin=open_text(kx))
    harness.wait_for(lambda: launched_objects(server))
    kx.end(sig)
    writer.wait(harness.LIMIT)
    kx.start()
    (obj,) = launched_objects(server)
    assert kx.ls("jobs") == [obj.name]
    assert kx.read("jobs", obj.name, "app.yaml") == GOOD
    volcano.start(obj.name)
    harness.Job(kx, obj.name).until("RUNNING")
    assert kx.read("submit", "app.yaml") == GOOD
    assert job_of(kx, "app.yaml") == obj.name and error_of(kx, "app.yaml") is None
    harness.run(["mv", str(kx / "submit/app.yaml"), str(kx / "submit/other.yaml")])
    assert len(posts(server)) == 1  # the next mount sent no other request
    harness.Job(kx, obj.name).cancel()  # cancel=own
    assert not launched(server)


def test_ended_in_the_middle_of_a_rename(make_mount, server, volcano):
    """kxfs ends while a rename waits for its launch. The document is launched once, although the
    files still have their old names after that."""
    del volcano
    kx = make_mount(server)
    assert put(kx, "roles: 1\n") == "EINVAL"
    kx.write("submit/v2.tmp", GOOD)
    server.faults.add("deaf", verb="create")
    writer = harness.popen(["mv", str(kx / "submit/v2.tmp"), str(kx / "submit/app.yaml")])
    harness.wait_for(lambda: launched_objects(server))
    kx.end(signal.SIGKILL)
    writer.wait(harness.LIMIT)
    kx.start()
    (obj,) = launched_objects(server)
    assert job_of(kx, "app.yaml") == obj.name and error_of(kx, "app.yaml") is None
    assert kx.read("submit", "app.yaml") == "roles: 1\n" and kx.read("submit", "v2.tmp") == GOOD
    os.rename(kx / "submit/v2.tmp", kx / "submit/app.yaml")
    assert launched_objects(server) == [obj] and kx.read("submit", "app.yaml") == GOOD


def test_killed_before_it_was_sent(make_mount, server, volcano):
    """kxfs is killed before the server has the request. NAME.job leads to this job and no longer to an older one.
    The job is SUBMITTED until its result is known. The file can be written again."""
    del volcano
    kx = make_mount(server)
    put(kx)
    first = job_of(kx, "app.yaml")
    server.freeze()
    writer = harness.popen(["cp", "/dev/stdin", str(kx / "submit/app.yaml")], stdin=open_text(kx))
    harness.wait_for(lambda: len([req for req in server.requests if req.method == "POST"]) == 2)
    kx.end(9)
    writer.wait(harness.LIMIT)
    harness.wait_for(lambda: not server.connections, what="the server to know that nobody is there any more")
    server.thaw()
    kx.start()
    assert [obj.name for obj in launched_objects(server)] == [first]
    (sent,) = set(kx.ls("jobs")) - {first}
    assert job_of(kx, "app.yaml") == sent and harness.Job(kx, sent).state() == "SUBMITTED"
    assert error_of(kx, "app.yaml") is None
    put(kx)
    assert error_of(kx, "app.yaml") is None and job_of(kx, "app.yaml") not in (first, sent)
    kx.end(9)
    kx.start()
    assert error_of(kx, "app.yaml") is None and len(launched_objects(server)) == 2


def test_in_flight_over_kill(kx, server):
    """A proxy still has the request when kxfs is killed, and forwards it when the next mount is up. The mount
    recognizes the job as its own."""
    server.faults.add("silent", verb="create")
    writer = harness.popen(["cp", "/dev/stdin", str(kx / "submit/app.yaml")], stdin=open_text(kx))
    (sent,) = harness.wait_for(lambda: [req for req in posts(server) if req.body])
    kx.end(signal.SIGKILL)
    writer.wait(harness.LIMIT)
    kx.start()
    (name,) = kx.ls("jobs")
    assert harness.Job(kx, name).read("state") == "SUBMITTED\n" and "the server may have the job" in kx.read("jobs", name, "why")
    assert harness.err_of((kx / "jobs" / name).rmdir) == "EAGAIN" and error_of(kx, "app.yaml") is None
    server.pass_on(sent)
    harness.wait_for(lambda: "the server may have the job" not in kx.read("jobs", name, "why"), what="the verdict")
    assert kx.ls("jobs") == [name]
    (obj,) = launched_objects(server)
    assert job_of(kx, "app.yaml") == obj.name and error_of(kx, "app.yaml") is None
    assert kx.read("jobs", obj.name, "app.yaml") == GOOD
    harness.Job(kx, obj.name).cancel()
    assert not launched(server)


def open_text(kx):
    path = kx.base / "app.yaml"
    path.write_text(GOOD)
    return path.open()


@pytest.mark.parametrize("reply", [replies.upstream_lost(), replies.unavailable(), replies.login_page()],
                         ids=["503 of a proxy", "503", "page"])
@pytest.mark.parametrize("later", [None, replies.recorded("403-quota-exceeded.json"),
                                   replies.recorded("400-webhook-no-such-queue.json")], ids=["same", "quota", "webhook"])
def test_answer_of_a_proxy(kx, server, reply, later):
    """A proxy replaces the server's reply. A proxy also replies to the retry, or the server refuses the retry because
    our own job exists. kxfs finds out which job has the name, and the job runs once."""
    server.faults.add("instead", reply=reply, verb="create")
    server.faults.add("reply", times=10000, reply=later or reply, verb="create")
    assert put(kx) in ("", "ETIMEDOUT"), error_of(kx, "app.yaml")
    harness.wait_for(lambda: job_of(kx, "app.yaml") or error_of(kx, "app.yaml"), what="the verdict")
    accepted_once(kx, server)


def test_login_page(kx, server):
    """A proxy whose login session has expired replies with success and a login page. This does not count as a
    launch, and NAME.error quotes the page."""
    fault = server.faults.add("reply", times=10000, reply=replies.login_page(), verb="create")
    assert put(kx) == "EIO"
    assert "Please log in" in error_of(kx, "app.yaml")
    assert job_of(kx, "app.yaml") is None and kx.ls("jobs") == [] and not launched(server)
    assert harness.err_of(kx.write, "dryrun/app.yaml", GOOD) == "EIO"
    server.faults.clear(fault)
    server.faults.add("reply", times=10000, reply=replies.login_page(), resource="jobs")
    assert put(kx) == "EIO"
    text = error_of(kx, "app.yaml")
    assert "Please log in" in text and "could not find out whether it was launched" in text and not launched(server)
    server.faults.clear()
    assert put(kx) == "" and len(launched_objects(server)) == 1


@pytest.mark.parametrize("reply", [replies.login_page(), replies.Reply(200, b""), replies.json_reply({})],
                         ids=["page", "nothing", "{}"])
def test_cancel_answered_by_a_page(kx, server, volcano, reply):
    """A proxy replies to the DELETE. The job continues to run, so it is still shown."""
    job = kx.submit(GOOD)
    volcano.start(job.id)
    server.faults.add("reply", times=10000, reply=reply, verb="delete")
    assert harness.err_of(job.dir.rmdir) in ("EIO", "ETIMEDOUT")
    harness.wait_for(lambda: server.count(verb="delete") >= 4)
    assert kx.ls("jobs") == [job.id] and not kx.history()
    server.faults.clear()
    job.until("RUNNING")
    job.cancel()
    assert not launched(server)


# --- Held jobs --------------------------------------------------------------------------------
# Held jobs of a cluster. The server checks them at the close. kxfs launches them later, exactly once, even if kxfs or
# the network fails during the launch.


def held(name="app", **args):
    return json.dumps({**json.loads(harness.app("true", name=name)), "scheduler_args": args})


def launched(server):
    """Return the names of the jobs in the cluster."""
    return [obj.name for obj in server.store.objects(st.JOBS)[0]]


def run_to_end(volcano, name, code=0):
    pods = volcano.start(name)
    volcano.finish_all(pods, code)


def test_release(kx, server, volcano):
    """At the close the server only checks the job. When the user releases it, it is launched under the same name. A
    process that reads its `wait` continues to wait."""
    text = held(hold=True)
    job = kx.submit(text)
    assert launched(server) == [] and kx.ls("jobs") == [job.id]
    (asked,) = server.seen(verb="create", resource="jobs")
    assert asked.query["dryRun"] == "All"
    status = job.status()
    assert (status["state"], status["reason"], status["backend"]) == ("PENDING", "Held", "volcano")
    assert status["namespace"] == "test" and job.read("app.yaml") == text
    assert f"name: {job.id}" in job.read("manifest.yaml") and "events" not in kx.ls("jobs", job.id)
    assert job.log() == b""
    readers = [harness.popen(["cat", str(job.dir / "live" / name)], stdout=subprocess.PIPE, text=True)
               for name in ("wait", "follow")]
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: launched(server) == [job.id], what="the launch")
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("hello\n")
    job.until_logged("hello\n")
    volcano.finish_all([pod])
    assert [reader.communicate()[0] for reader in readers] == ["SUCCEEDED\n", "main/0 hello\n"]
    (sent,) = posts(server)
    assert json.loads(sent.body)["metadata"]["annotations"]["kxfs/appdef"] == text
    assert job.read("app.yaml") == text and job_of(kx, job.id) is None
    harness.wait_for(lambda: all(records.head_of(r)["state"]["state"] == "LIVE" for r in records.files(kx)), what="the record to be LIVE")
    job.cancel()  # cancel=own


def test_release_refused(kx, server):
    """A document that the server refuses is refused at the close, and not held."""
    server.faults.add("reply", verb="create", reply=replies.forbidden("tester", "create", st.JOBS, "test"))
    assert harness.err_of(kx.write, "submit/app.yaml", held(hold=True)) == "EACCES"
    assert kx.ls("jobs") == [] and "create" in error_of(kx, "app.yaml")
    assert harness.err_of(kx.write, "submit/app.yaml", held(hold=True, no_such="x")) == "EINVAL"
    assert not records.files(kx)


def test_after_foreign(kx, server, volcano):
    """A held job waits for another job. Another user removes this other job while it runs."""
    foreign = kx.submit(harness.app("true"))
    jobs = {wish: kx.submit(held(after=[f"{wish}:{foreign.id}"])) for wish in ("ok", "any")}
    volcano.start(foreign.id)
    foreign.until("RUNNING")
    server.store.remove(st.JOBS, "test", foreign.id)
    jobs["ok"].never()
    harness.wait_for(lambda: jobs["any"].id in launched(server), what="the launch")


@pytest.mark.parametrize("fault", ["lose", "reset", "cut", "junk"])
def test_release_over_broken_connection(kx, server, fault):
    """The connection breaks during the launch, so kxfs does not know whether it took effect. kxfs finds out, and the
    job is launched once."""
    job = kx.submit(held(hold=True))
    server.faults.add(fault, amount=150, verb="create")
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: all(records.head_of(r)["state"]["state"] == "LIVE" for r in records.files(kx)), what="the record to be LIVE")
    assert launched(server) == [job.id] == kx.ls("jobs")
    assert job.status()["phase"] != "Held"


def test_condition_is_met_for_good(make_mount, server, volcano):
    """The job for which a held job waits has succeeded and is deleted. Meanwhile the launch is delayed and kxfs is
    restarted. The condition still counts as met."""
    kx = make_mount(server, options="capture=none")
    first = kx.submit(harness.app("true"), "first.yaml")
    job = kx.submit(held(after=["ok:first"]))
    fault = server.faults.add("reply", times=100000, verb="create", reply=replies.forbidden("tester", "create", st.JOBS, "test"))
    run_to_end(volcano, first.id)
    first.finish()
    harness.wait_for(lambda: job.status()["reason"] == "LaunchDelayed", what="the refusal")
    server.store.remove(st.JOBS, "test", first.id)
    harness.wait_for(lambda: kx.ls("jobs") == [job.id], what="the first job to go")
    kx.restart(signal.SIGKILL)
    server.faults.clear(fault)
    harness.wait_for(lambda: launched(server) == [job.id], what="the launch")


def test_killed_after_the_server_has_it(kx, server, volcano):
    """kxfs is killed during the launch, and the server has the job. The next start finds the job and sends no
    request."""
    job = kx.submit(held(hold=True))
    server.faults.add("deaf", verb="create")
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: launched(server), what="the request")
    kx.end(signal.SIGKILL)
    kx.start()
    harness.wait_for(lambda: job.status()["phase"] != "Held", what="the job")
    assert kx.ls("jobs") == [job.id] == launched(server) and error_of(kx, "app.yaml") is None
    run_to_end(volcano, job.id)
    job.finish()
    assert job.status()["submitter"]
    job.cancel()
    kx.restart()
    assert launched(server) == kx.ls("jobs") == []


@pytest.mark.parametrize("gone", [False, True], ids=["never there", "gone again"])
def test_killed_and_not_found(kx, server, volcano, gone):
    """kxfs is killed during the launch, and the server does not have the job, or no longer has it. kxfs can't
    distinguish these cases, so it does not send the job again. It reports that, and the job can't be removed while
    it may still appear."""
    job = kx.submit(held(hold=True))
    harness.wait_for(lambda: server.hold(resource="jobs"), what="the watch of jobs")
    server.faults.add("deaf" if gone else "silent", verb="create")
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: launched(server) if gone else posts(server), what="the request")
    kx.end(signal.SIGKILL)
    if gone:
        run_to_end(volcano, job.id)
        server.store.remove(st.JOBS, "test", job.id)
    sent = len(posts(server))
    kx.start()
    harness.wait_for(lambda: job.status()["reason"] == "Submitting", what="the job")
    assert job.status()["state"] == "SUBMITTED" and "the server may have the job" in job.read("why") and job.read("ctl") == ""
    assert harness.err_of(os.rmdir, job.dir) == "EAGAIN"
    kx.restart()
    assert job.status()["reason"] == "Submitting"
    assert launched(server) == [] and len(posts(server)) == sent


def test_removed_while_it_is_launched(kx, server):
    """A removal during the launch waits for the launch and then ends the job. The job does not appear again."""
    job = kx.submit(held(hold=True))
    server.faults.add("slow", amount=200, delay=0.2, verb="create")
    harness.write_ctl(job, "release")
    harness.wait_for(lambda: posts(server), what="the request")
    harness.remove(job.dir)
    harness.wait_for(lambda: launched(server) == [] and kx.ls("jobs") == [], what="the end")
    kx.end(signal.SIGKILL)
    kx.start()
    assert launched(server) == kx.ls("jobs") == [] and len(posts(server)) == 1


# --- Launches with an unknown result ----------------------------------------------------------
# kxfs was killed during a launch, so the result is unknown. The job is in jobs/ as SUBMITTED, for all readers. After
# ten minutes it counts as not launched. If it was a held job, the user decides.

SENT = "kxfs ended or lost the connection while it sent the job"


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path, time.CLOCK_MONOTONIC)


@pytest.fixture
def clocked(make_mount, server, volcano, clock):
    del volcano
    return make_mount(server, env=clock.env)


def killed(clocked, server, send):
    """Let SEND cause a launch, and kill kxfs when the API server has read the request and not replied yet. Return
    the job of the next mount."""
    harness.wait_for(lambda: server.hold(resource="jobs"), what="the watch of jobs")
    server.faults.add("silent", verb="create")
    send()
    harness.wait_for(lambda: posts(server), what="the request")
    clocked.end(signal.SIGKILL)
    clocked.start()
    (name,) = harness.wait_for(lambda: clocked.ls("jobs"), what="the job")
    return harness.Job(clocked, name)


def undecided(clocked, server):
    """Copy a file to submit/, with an unknown result. Return the job."""
    (clocked.base / "app.yaml").write_text(harness.app("true"))
    copies = []
    job = killed(clocked, server, lambda: copies.append(harness.popen(["cp", clocked.base / "app.yaml", clocked / "submit/"], stderr=subprocess.PIPE)))
    assert copies[0].wait(harness.LIMIT) == 1
    return job


def listed(clocked, place, ident):
    """Return the state and the reason of the only job in PLACE. Check that list and list.jsonl agree."""
    _, line = clocked.read(place, "list").splitlines()
    (status,) = map(json.loads, clocked.read(place, "list.jsonl").splitlines())
    fields = line.split()
    assert fields[0] == status["id"] == ident
    assert (fields[1], fields[-1]) == (status["state"], status["reason"])
    return status["state"], status["reason"]


def read_all(top):
    """Check that stat and read work for every file of a job, as for cp -r."""
    for where, _, names in os.walk(top):
        for name in names:
            path = pathlib.Path(where, name)
            if not path.is_symlink():  # links lead to live/, or to a log that does not exist yet
                assert path.stat().st_size == len(path.read_bytes()), path


class Readers:
    """Processes that read `wait` of the job and `changes`."""

    def __init__(self, clocked, job):
        self.path = clocked.base / "changes"
        with open(self.path, "wb") as out:
            self.changes = harness.popen(["cat", str(clocked / "live/changes")], stdout=out)
        self.waits = [harness.popen(["cat", str(job.dir / "live" / name)], stdout=subprocess.PIPE, text=True)
                      for name in ("wait", "follow")]
        harness.wait_for(lambda: "SYNC" in self.path.read_text(), what="the beginning")

    def end(self):
        """Return the output of the readers of `wait`, and the states that `changes` has reported."""
        told = [reader.communicate(timeout=harness.LIMIT)[0] for reader in self.waits]
        harness.wait_for(lambda: told[0].strip() in self.path.read_text(), what="the last change")
        self.changes.kill()
        self.changes.wait(harness.LIMIT)
        return told, [line.split("\t")[2] for line in self.path.read_text().splitlines() if "SYNC" not in line]


def test_not_launched(clocked, server, clock):
    """If the server does not have the job ten minutes after the kill, the job was not launched, and moves to
    history/."""
    job = undecided(clocked, server)
    assert listed(clocked, ".", job.id) == ("SUBMITTED", "Submitting")
    assert job.read("why") == f"The job waits: {SENT}; the server may have the job.\n"
    assert job.read("app.yaml") == harness.app("true") and job.read("ctl") == job.read("manifest.yaml") == ""
    read_all(job.dir)
    assert harness.err_of(os.rmdir, job.dir) == "EAGAIN" and clocked.history() == []
    readers = Readers(clocked, job)
    clock.set(601)
    assert job.never() == "CANCELLED"
    assert readers.end() == (["CANCELLED\n", ""], ["SUBMITTED", "CANCELLED"])
    assert clocked.ls("jobs") == [] and listed(clocked, "history", job.id) == ("CANCELLED", "NotLaunched")
    words = "either the job was never launched, or it was removed after its launch. To launch a new job, write the file again"
    assert clocked.read("history", job.id, "why") == f"The job was cancelled: {words}.\n"
    assert clocked.read("history", job.id, "app.yaml") == harness.app("true")
    read_all(clocked / "history" / job.id)
    assert os.readlink(clocked / "submit/app.yaml.job") == f"../history/{job.id}" and error_of(clocked, "app.yaml") is None
    clocked.restart()
    assert clocked.ls("jobs") == [] and listed(clocked, "history", job.id) == ("CANCELLED", "NotLaunched")
    assert len(posts(server)) == 1
    (clocked / "history" / job.id).rmdir()
    clocked.restart()
    assert clocked.ls("jobs") == clocked.history() == records.files(clocked) == []


def test_launched_after_all(clocked, server, volcano, clock):
    """The server shows the job later. Processes that read its files continue to read until its end."""
    job = undecided(clocked, server)
    readers = Readers(clocked, job)
    assert harness.decided(clocked) == set()
    server.pass_on([req for req in posts(server) if req.body][0])
    harness.wait_for(lambda: harness.decided(clocked) == {job.id}, what="the job")
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("hello\n")
    job.until_logged("hello\n")
    volcano.finish_all([pod])
    told, states = readers.end()
    assert told == ["SUCCEEDED\n", "main/0 hello\n"]
    assert states[0] == "SUBMITTED" and states[-1] == "SUCCEEDED"
    clock.set(601)
    assert clocked.ls("jobs") == [job.id] and job_of(clocked, "app.yaml") == job.id and error_of(clocked, "app.yaml") is None


@pytest.mark.parametrize("again", [True, False], ids=["release", "remove"])
def test_held(clocked, server, volcano, clock, again):
    """kxfs never decides that a held job was not launched. The user releases it again, or removes it."""
    job = clocked.submit(held(hold=True))
    assert killed(clocked, server, lambda: harness.write_ctl(job, "release")).id == job.id
    read_all(job.dir)
    clock.set(601)
    harness.wait_for(lambda: job.status()["reason"] == "LaunchUnknown", what="the ten minutes")
    assert listed(clocked, ".", job.id) == ("SUBMITTED", "LaunchUnknown")
    assert job.read("why") == f"The job waits: {SENT}; the server does not have the job now, but may have had it earlier. To send the job again, " \
                              "write \"release\" to its file ctl; to discard the job, remove its directory.\n"
    assert job.read("ctl").split() == ["release"]
    assert len(posts(server)) == 1 and launched(server) == []
    if again:
        readers = Readers(clocked, job)
        harness.write_ctl(job, "release")
        harness.wait_for(lambda: launched(server) == [job.id], what="the launch")
        run_to_end(volcano, job.id)
        assert readers.end()[0] == ["SUCCEEDED\n", ""]
    else:
        job.dir.rmdir()
        assert clocked.ls("jobs") == clocked.history() == []
    clocked.restart()
    assert clocked.ls("jobs") == launched(server) == ([job.id] if again else [])
    assert len(posts(server)) == 1 + again and len(records.files(clocked)) == again
