# SPDX-License-Identifier: MIT
"""Submitting to a cluster: exactly one object, whatever the network does, and every refusal reaches the writer: an
errno, and NAME.error."""

import json
import os
import signal
import threading
import time

import harness
import pytest
import replies
import store as st
import watching
from faults import common_faults
from submitting import error_of, job_of

GOOD = harness.app("true", num_replicas=2)


def launched(server):
    """Return the jobs in the cluster."""
    return server.store.objects(st.JOBS)[0]


def posts(server):
    return [req for req in server.seen(verb="create", resource="jobs") if "dryRun" not in req.query]


def put(kx, text=GOOD, name="app.yaml"):
    """Return the errno name of writing TEXT; "" if it was accepted."""
    return harness.err_of(kx.write, f"submit/{name}", text)


def accepted_once(kx, server):
    """app.yaml was launched, once, and all requests were the same submission."""
    assert error_of(kx, "app.yaml") is None
    (obj,) = launched(server)
    assert job_of(kx, "app.yaml") == obj.name
    assert kx.ls("jobs") == [obj.name]
    sent = {json.loads(req.body)["metadata"]["annotations"]["kxfs/submission"]
            for req in posts(server) if req.body}
    assert sent == {obj.tree()["metadata"]["annotations"]["kxfs/submission"]}
    return obj


def test_submit(kx, server):
    """The job exists when cp returns, and the object has the requested contents."""
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


def test_submit_again_is_another_job(kx, server):
    put(kx)
    first = job_of(kx, "app.yaml")
    put(kx)
    assert job_of(kx, "app.yaml") != first
    assert len(launched(server)) == 2 and len(posts(server)) == 2


@pytest.mark.parametrize("fault,amount", [
    ("reset", 0), ("lose", 0), ("cut", 150), ("cut", 700), ("close", 40), ("close", 700), ("longer", 10), ("junk", 0)])
def test_broken_connection(kx, server, fault, amount):
    """It is unknown whether the request took effect: kxfs finds out, and the job runs once."""
    server.faults.add(fault, amount=amount, verb="create")
    assert put(kx) == "", error_of(kx, "app.yaml")
    assert server.seen(verb="create")[0].fault is not None
    accepted_once(kx, server)


@pytest.mark.parametrize("reply", [replies.too_many(1), replies.unavailable({"Retry-After": "1"}),
                                   replies.unavailable()], ids=["429", "503 later", "503"])
def test_not_now(kx, server, reply):
    """The reply guarantees that the server did nothing: kxfs retries, not before the requested time."""
    server.faults.add("reply", times=2, reply=reply, verb="create")
    assert put(kx) == ""
    accepted_once(kx, server)
    at = [req.at for req in posts(server)]
    assert len(at) == 3
    if "Retry-After" in reply.headers:
        assert at[1] - at[0] >= 0.9 and at[2] - at[1] >= 0.9


def test_reply_that_is_lost_and_server_that_is_away(kx, server):
    """Created, then the server is unreachable for longer than a close waits."""
    server.faults.add("lose", verb="create")
    server.faults.add("reset", times=3)
    assert put(kx) == ""
    accepted_once(kx, server)


def test_reply_that_is_lost_of_a_job_that_is_gone(kx, server):
    """It was launched, no reply arrives, and when one does the job has ended and its ttl has removed it, unseen by
    any watch. It is not launched again: the unknown outcome is reported."""
    text = json.dumps({**json.loads(GOOD), "scheduler_args": {"ttl": "1s"}})
    harness.wait_for(lambda: server.hold(resource="jobs"), what="the watch of jobs")
    server.faults.add("lose", verb="create")
    cut = server.faults.add("reset", times=10000, verb="create")
    answers = []
    writer = threading.Thread(target=lambda: answers.append(put(kx, text)))
    writer.start()
    harness.wait_for(lambda: launched(server), what="the job")
    (obj,) = launched(server)
    server.store.remove(st.JOBS, "test", obj.name)
    server.expire(resource="jobs")
    writer.join()
    server.faults.clear(cut)
    assert answers == ["ETIMEDOUT"] and "could not be found out" in error_of(kx, "app.yaml")
    assert "may have been removed by now" in error_of(kx, "app.yaml")
    assert server.count(verb="get", resource="jobs") == 1
    assert [req.fault.kind for req in posts(server)][:1] == ["lose"] and not launched(server)
    assert put(kx) == "" and len(launched(server)) == 1


@pytest.mark.concurrent
def test_at_random(kx, server, pytestconfig):
    """Twenty submissions through a bad network: each result is true, none launches twice."""
    seed = pytestconfig.getoption("--seed") or int(time.time())
    server.faults.at_random(seed, 0.3, common_faults(replies))
    results = {f"app-{i}.yaml": put(kx, name=f"app-{i}.yaml") for i in range(20)}
    server.faults.clear()
    ids = {}
    for name, err in results.items():
        if err == "ETIMEDOUT":  # what was not known in time is known later
            harness.wait_for(lambda name=name: error_of(kx, name) or job_of(kx, name), what=f"the verdict on {name}")
        elif err:
            assert error_of(kx, name) or job_of(kx, name)
        else:
            ids[name] = job_of(kx, name)
    found = {obj.name for obj in launched(server)}
    assert set(ids.values()) <= found and len(set(ids.values())) == len(ids)
    submissions = [obj.tree()["metadata"]["annotations"]["kxfs/submission"] for obj in launched(server)]
    assert len(set(submissions)) == len(submissions)
    # No job in the cluster without its link.
    harness.wait_for(lambda: {job_of(kx, name) for name in results} - {None} == {obj.name for obj in launched(server)},
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
    """In cp's message, and in full in NAME.error; nothing is launched, and kxfs does not retry."""
    reply, code, text = REFUSALS[name]
    server.faults.add("reply", times=100, reply=reply, verb="create")
    (kx.base / "app.yaml").write_text(GOOD)
    p = harness.run(["cp", str(kx.base / "app.yaml"), str(kx / "submit/")], check=False)
    assert p.returncode == 1
    assert put(kx) == code
    assert text.lower() in error_of(kx, "app.yaml").lower()
    assert job_of(kx, "app.yaml") is None and kx.ls("jobs") == []
    assert len(posts(server)) == 2 or name == "token"  # a 401 may be tried once more
    server.faults.clear()
    assert put(kx) == ""
    assert error_of(kx, "app.yaml") is None


@pytest.mark.parametrize("reply", [replies.too_many(1), replies.unavailable()], ids=["429", "503"])
@pytest.mark.waits
def test_never_now(kx, server, reply):
    server.faults.add("reply", times=10000, reply=reply, verb="create")
    begin = time.monotonic()
    assert put(kx) in ("EAGAIN", "ETIMEDOUT")
    assert time.monotonic() - begin < 60
    harness.wait_for(lambda: error_of(kx, "app.yaml"), what="the verdict, which may come after the deadline of the close")
    assert not launched(server)


@pytest.mark.waits
def test_no_answer(kx, server):
    """The deadline of a close; the outcome is found out in the background."""
    server.faults.add("deaf", verb="create")
    code = put(kx)
    assert code in ("", "ETIMEDOUT")
    harness.wait_for(lambda: job_of(kx, "app.yaml"), what="the verdict")
    accepted_once(kx, server)


def test_queue(kx, server):
    """The real webhook's messages."""
    for queue, text in (("nosuch", 'no queue "nosuch"'), ("shut", "Closed")):
        server.api.queues["shut"] = "Closed"
        doc = json.dumps({**json.loads(GOOD), "scheduler_args": {"queue": queue}})
        assert put(kx, doc) == "EINVAL"
        assert text in error_of(kx, "app.yaml")


def test_ready_manifest(kx, server):
    """A manifest from the tree, unchanged, runs the job again, under a new name."""
    put(kx)
    (first,) = launched(server)
    manifest = kx.read("jobs", first.name, "manifest.yaml")
    assert put(kx, manifest, "again.yaml") == ""
    assert job_of(kx, "again.yaml") != first.name
    assert {obj.name for obj in launched(server)} == {first.name, job_of(kx, "again.yaml")}


def test_dry_run(kx, server):
    """The server checks it, nothing is launched, and the file reads back as the manifest."""
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
    """A connection that breaks during a dry run, or during the check of a held job, refuses nothing: a retry is
    harmless."""
    server.faults.add(fault, amount=60, verb="create")
    kx.write("dryrun/app.yaml", GOOD)
    assert "kind: Job" in kx.read("dryrun", "app.yaml")
    server.faults.add(fault, amount=60, verb="create")
    assert kx.submit(json.dumps({**json.loads(GOOD), "scheduler_args": {"hold": True}})).status()["reason"] == "Held"
    assert server.count(verb="create", resource="jobs") == 4 and not launched(server)


def test_too_large_is_not_sent(kx, server):
    """The created object may have at most 1.4 MiB."""
    assert put(kx, harness.app("true", num_replicas=3000)) == "EFBIG"
    assert "bytes" in error_of(kx, "app.yaml")
    assert not posts(server)


def test_slow_server(kx, server):
    server.faults.add("slow", amount=20, delay=0.01, verb="create")
    assert put(kx) == ""
    accepted_once(kx, server)


def test_visible_before_any_watch(kx, server):
    """The reply alone makes the job visible: its watch may be much later."""
    harness.wait_for(lambda: server.open_streams(resource="jobs"))
    server.faults.add("silent", times=100, resource="jobs", verb="watch")
    server.faults.add("silent", times=100, resource="jobs", verb="list")
    server.end_streams("end", resource="jobs")
    assert put(kx) == ""
    accepted_once(kx, server)


def test_job_of_a_user_with_few_rights(make_mount, server, volcano):
    """Read-only rights: everything is shown, and submitting names the missing right."""
    del volcano
    server.forbidden.append({"verb": "create"})
    server.store.add(st.JOBS, watching.job("theirs"))
    kx = make_mount(server)
    assert kx.ls("jobs") == ["theirs"]
    assert put(kx) == "EACCES"
    text = error_of(kx, "app.yaml")
    assert "create" in text and "jobs" in text and "tester" in text


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_ended_in_the_middle(make_mount, server, volcano, sig):
    """kxfs ends during the request: the next mount knows the job as its own, and nothing runs twice."""
    kx = make_mount(server)
    server.faults.add("deaf", verb="create")
    writer = harness.popen(["cp", "/dev/stdin", str(kx / "submit/app.yaml")], stdin=open_text(kx))
    harness.wait_for(lambda: launched(server))
    kx.end(sig)
    writer.wait(harness.LIMIT)
    kx.start()
    (obj,) = launched(server)
    assert kx.ls("jobs") == [obj.name]
    assert kx.read("jobs", obj.name, "app.yaml") == GOOD
    volcano.start(obj.name)
    harness.Job(kx, obj.name).until("RUNNING")
    assert kx.read("submit", "app.yaml") == GOOD
    assert job_of(kx, "app.yaml") == obj.name and error_of(kx, "app.yaml") is None
    harness.run(["mv", str(kx / "submit/app.yaml"), str(kx / "submit/other.yaml")])
    assert len(posts(server)) == 1  # it has launched its job
    harness.Job(kx, obj.name).cancel()  # cancel=own
    assert not launched(server)


def test_ended_in_the_middle_of_a_rename(make_mount, server, volcano):
    """What was renamed is launched, once, though the file that is replaced still has the name."""
    del volcano
    kx = make_mount(server)
    assert put(kx, "roles: 1\n") == "EINVAL"
    kx.write("submit/v2.tmp", GOOD)
    server.faults.add("deaf", verb="create")
    writer = harness.popen(["mv", str(kx / "submit/v2.tmp"), str(kx / "submit/app.yaml")])
    harness.wait_for(lambda: launched(server))
    kx.end(signal.SIGKILL)
    writer.wait(harness.LIMIT)
    kx.start()
    (obj,) = launched(server)
    assert job_of(kx, "app.yaml") == obj.name and error_of(kx, "app.yaml") is None
    assert kx.read("submit", "app.yaml") == "roles: 1\n" and kx.read("submit", "v2.tmp") == GOOD
    os.rename(kx / "submit/v2.tmp", kx / "submit/app.yaml")
    assert launched(server) == [obj] and kx.read("submit", "app.yaml") == GOOD


def test_killed_before_it_was_sent(make_mount, server, volcano):
    """Killed before the server had it: NAME.job leads to the job, which is SUBMITTED until that is known, and no longer to an
    older one. The file may be written again."""
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
    assert [obj.name for obj in launched(server)] == [first]
    (sent,) = set(kx.ls("jobs")) - {first}
    assert job_of(kx, "app.yaml") == sent and harness.Job(kx, sent).state() == "SUBMITTED"
    assert error_of(kx, "app.yaml") is None
    put(kx)
    assert error_of(kx, "app.yaml") is None and job_of(kx, "app.yaml") not in (first, sent)
    kx.end(9)
    kx.start()
    assert error_of(kx, "app.yaml") is None and len(launched(server)) == 2


def test_in_flight_over_kill(kx, server):
    """A proxy still has the request when kxfs is killed, and passes it on when the next mount is up: the job is
    ours."""
    server.faults.add("silent", verb="create")
    writer = harness.popen(["cp", "/dev/stdin", str(kx / "submit/app.yaml")], stdin=open_text(kx))
    (sent,) = harness.wait_for(lambda: [req for req in posts(server) if req.body])
    kx.end(signal.SIGKILL)
    writer.wait(harness.LIMIT)
    kx.start()
    (name,) = kx.ls("jobs")
    assert harness.Job(kx, name).read("state") == "SUBMITTED\n" and "the server may still show it" in kx.read("jobs", name, "why")
    assert harness.err_of((kx / "jobs" / name).rmdir) == "EAGAIN" and error_of(kx, "app.yaml") is None
    server.pass_on(sent)
    harness.wait_for(lambda: job_of(kx, "app.yaml"), what="the verdict")
    assert kx.ls("jobs") == [name]
    (obj,) = launched(server)
    assert job_of(kx, "app.yaml") == obj.name and error_of(kx, "app.yaml") is None
    assert kx.read("jobs", obj.name, "app.yaml") == GOOD
    harness.Job(kx, obj.name).cancel()
    assert not launched(server)


def test_renamed_in_the_middle(make_mount, server):
    """NAME.job stays with the name that was submitted."""
    kx = make_mount(server)
    server.freeze()
    writer = harness.popen(["cp", "/dev/stdin", str(kx / "submit/app.yaml")], stdin=open_text(kx))
    harness.wait_for(lambda: [req for req in server.requests if req.method == "POST"])
    harness.run(["mv", str(kx / "submit/app.yaml"), str(kx / "submit/other.yaml")])
    server.thaw()
    assert writer.wait(harness.LIMIT) == 0
    (obj,) = launched(server)
    for _ in range(2):
        assert sorted(kx.ls("submit")) == ["app.yaml.job", "other.yaml"]
        assert job_of(kx, "app.yaml") == obj.name
        kx.end()
        kx.start()


def open_text(kx):
    path = kx.base / "app.yaml"
    path.write_text(GOOD)
    return path.open()


@pytest.mark.parametrize("reply", [replies.upstream_lost(), replies.unavailable(), replies.login_page()],
                         ids=["503 of a proxy", "503", "page"])
@pytest.mark.parametrize("later", [None, replies.recorded("403-quota-exceeded.json"),
                                   replies.recorded("400-webhook-no-such-queue.json")], ids=["same", "quota", "webhook"])
def test_answer_of_a_proxy(kx, server, reply, later):
    """It replaces the server's reply, which is lost; the next reply is not the answer either, or our own job is the
    reason for its refusal: kxfs finds out which job has the name, and the job runs once."""
    server.faults.add("instead", reply=reply, verb="create")
    server.faults.add("reply", times=10000, reply=later or reply, verb="create")
    assert put(kx) in ("", "ETIMEDOUT"), error_of(kx, "app.yaml")
    harness.wait_for(lambda: job_of(kx, "app.yaml") or error_of(kx, "app.yaml"), what="the verdict")
    accepted_once(kx, server)


def test_login_page(kx, server):
    """A proxy whose session has expired replies with success and its page: that is not a launch, and NAME.error
    quotes the page."""
    fault = server.faults.add("reply", times=10000, reply=replies.login_page(), verb="create")
    assert put(kx) == "EIO"
    assert "Please log in" in error_of(kx, "app.yaml")
    assert job_of(kx, "app.yaml") is None and kx.ls("jobs") == [] and not launched(server)
    assert harness.err_of(kx.write, "dryrun/app.yaml", GOOD) == "EIO"
    server.faults.clear(fault)
    server.faults.add("reply", times=10000, reply=replies.login_page(), resource="jobs")
    assert put(kx) == "EIO"
    text = error_of(kx, "app.yaml")
    assert "Please log in" in text and "could not be found out" in text and not launched(server)
    server.faults.clear()
    assert put(kx) == "" and len(launched(server)) == 1


@pytest.mark.parametrize("reply", [replies.login_page(), replies.Reply(200, b""), replies.json_reply({})],
                         ids=["page", "nothing", "{}"])
def test_cancel_answered_by_a_page(kx, server, volcano, reply):
    """A job that continues to run is shown."""
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
