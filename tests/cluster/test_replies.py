# SPDX-License-Identifier: MIT
"""The API server of this cluster answers as the recorded replies say, to the letter."""

import json
import ssl

import api
import pytest
from process import wait_for
from story import text_of


def recorded(name):
    return json.loads(text_of(name))


def job(name, queue="default", **task):
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "queue": queue, "tasks": [{"name": "one", "replicas": 1, **task, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{
                "name": "one", "image": "docker.io/library/busybox:1.35", "command": ["true"]}]}}}]}}


def refused(function, *args):
    with pytest.raises(api.Refused) as caught:
        function(*args)
    return caught.value


def test_no_such_queue(cluster, namespace):
    path = api.path_of("jobs", namespace)
    assert refused(cluster.client.post, path, job("t", "nosuch")).status == recorded("400-webhook-no-such-queue.json")


def test_closed_queue(cluster, namespace):
    """Closed by a command, as vcctl does it."""
    name = f"q-{namespace}"
    cluster.client.post(api.path_of("queues"), {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name},
        "spec": {"weight": 1}})
    try:
        path = api.path_of("queues", None, name)
        wait_for(lambda: cluster.client.get(path).get("status", {}).get("state") == "Open", "the queue")
        queue = cluster.client.get(path)
        cluster.client.post(api.path_of("commands", "default"), {
            "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "action": "CloseQueue",
            "metadata": {"generateName": "test-", "namespace": "default"},
            "target": {"apiVersion": queue["apiVersion"], "kind": "Queue", "name": name,
                       "uid": queue["metadata"]["uid"]}})
        wait_for(lambda: cluster.client.get(path)["status"]["state"] == "Closed", "the queue to be closed")
        reply = refused(cluster.client.post, api.path_of("jobs", namespace), job("t", name))
        assert reply.code == 400
        assert (f"can only submit job to queue with state `Open`, queue `{name}` status is `Closed`"
                in reply.message)
    finally:
        cluster.client.delete(api.path_of("queues", None, name))


def test_long_name(cluster, namespace):
    name = "n" * 60
    reply = refused(cluster.client.post, api.path_of("jobs", namespace), job(name))
    assert reply.code == 400 and f"create pod with name {name}-one-0 validate failed" in reply.message


def test_dry_run_asks_the_webhook(cluster, namespace):
    path = api.path_of("jobs", namespace) + "?dryRun=All&fieldValidation=Strict"
    assert cluster.client.post(path, job("t"))["spec"]["minAvailable"] == 1
    assert refused(cluster.client.post, path, job("t", "nosuch")).code == 400
    assert not cluster.client.items(api.path_of("jobs", namespace))


def test_unknown_field(cluster, namespace):
    wrong = job("t", maxRetryy=1)
    wrong["spec"]["maxRetryy"] = 1
    wrong["spec"]["tasks"].append({**wrong["spec"]["tasks"][0], "name": "two"})
    reply = refused(cluster.client.post, api.path_of("jobs", namespace) + "?fieldValidation=Strict", wrong)
    assert reply.status == recorded("400-strict-unknown-field.json")


def test_exists(cluster, namespace):
    path = api.path_of("jobs", namespace)
    cluster.client.post(path, job("t-abc"))
    assert refused(cluster.client.post, path, job("t-abc")).status == recorded("409-already-exists.json")


def test_quota(cluster, namespace):
    wanted = recorded("403-quota-exceeded.json")
    counted = "count/jobs.batch.volcano.sh"
    path = api.path_of("jobs", namespace)
    for name in ("one", "two"):
        cluster.client.post(path, job(name))
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q1"},
                   "spec": {"hard": {counted: "0"}}}, namespace=namespace)

    def answer():
        """The API server's admission learns of the quota, and of what is used of it, a moment after it is there."""
        try:
            return cluster.client.post(path + "?dryRun=All", job("t-quota"))
        except api.Refused as e:
            return e.status

    wait_for(lambda: f"used: {counted}=2" in answer().get("message", ""), "the quota to be counted")
    assert refused(cluster.client.post, path, job("t-quota")).status == wanted


def test_no_log(cluster, namespace):
    reply = refused(cluster.client.send, "GET", api.path_of("pods", namespace, "nosuch", "log"))
    assert reply.status == recorded("404-pod-log.json")


def test_no_such_resource(cluster):
    reply = refused(cluster.client.send, "GET", "/apis/nosuch.volcano.sh/v1/jobs")
    assert reply.code == 404 and reply.body == text_of("404-no-such-resource.txt")


@pytest.mark.parametrize("token, file", [("wrong", "401-bad-token.json"), (None, "403-anonymous.json")])
def test_strangers(cluster, token, file):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = cluster.client.address
    stranger = api.Client(f"https://{host}:{port}", context, token)
    assert refused(stranger.send, "GET", "/api/v1/namespaces/default/pods").status == recorded(file)
