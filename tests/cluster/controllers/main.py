# SPDX-License-Identifier: MIT
"""Simulates Volcano's controllers, scheduler and webhooks: main.py KUBECTL KUBECONFIG PORT PKI.

It handles jobs as a real Volcano does in the recordings (test_volcano.py compares them). Watches
fill the caches. One thread handles what happened from a queue, job by job. Another one checks
PodGroups. PKI/volcano.crt and .key are for the webhook on PORT."""

import itertools
import pathlib
import queue
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import api  # noqa: E402
import objects  # noqa: E402
import webhook  # noqa: E402
from gangs import Gangs  # noqa: E402
from jobs import JobController, Request  # noqa: E402
from loop import Cache, Recorder, key_of  # noqa: E402


class Volcano:
    def __init__(self, client):
        self.client = client
        self.requests = queue.PriorityQueue()
        self.world = threading.RLock()
        self.order = itertools.count()
        self.waiting = set()  # jobs that are already in the queue for a plain check
        self.caches = {}
        for resource, changed in (
                ("jobs", self.job_changed), ("pods", self.pod_changed),
                ("podgroups", self.group_changed),
                ("commands", self.command_changed)):
            # Commands are last, so that their targets are already known.
            self.caches[resource] = Cache(client, resource, changed, self.world)
            self.caches[resource].filled.wait()
        self.jobs = JobController(client, self.caches, Recorder(client, "vc-controller-manager"))
        self.gangs = Gangs(client, self.caches, Recorder(client, "volcano"))

    # --- what happened -------------------------------------------------------------------

    def ask(self, request):
        """Queue a request. Events precede plain checks: a check that found a failed pod would end
        the job before its policies are applied."""
        plain = request.event is None and request.action is None
        self.requests.put((plain, next(self.order), request))

    def look_at(self, key):
        if key not in self.waiting:
            self.waiting.add(key)
            self.ask(Request(key))

    def job_changed(self, _old, new):
        if new:
            self.look_at(key_of(new))

    def group_changed(self, _old, new):
        for ref in (new or {"metadata": {}})["metadata"].get("ownerReferences", ()):
            self.look_at((new["metadata"]["namespace"], ref["name"]))

    def pod_changed(self, old, new):
        pod = new or old
        meta = pod["metadata"]
        if not objects.owner_uid(pod):
            return
        key = (meta["namespace"], meta["labels"]["volcano.sh/job-name"])
        event, code = None, 0
        before = (old or {"status": {}})["status"].get("phase")
        phase = (new or {"status": {}})["status"].get("phase")
        if new is None:
            if meta["uid"] not in self.jobs.killed:
                event = "PodEvicted"
            self.jobs.killed.discard(meta["uid"])
        elif phase == "Failed" and before != "Failed":
            event, code = "PodFailed", exit_code(new)
        elif phase == "Succeeded" and before != "Succeeded" and self.task_ended(key, new):
            event = "TaskCompleted"
        if not event:
            self.look_at(key)
            return
        self.ask(Request(
            key, event, meta["annotations"]["volcano.sh/task-spec"], meta["name"], code,
            int(meta["annotations"]["volcano.sh/job-version"])))

    def task_ended(self, key, pod):
        """Return whether all pods of the pod's task have succeeded."""
        job = self.caches["jobs"].get(*key)
        name = pod["metadata"]["annotations"]["volcano.sh/task-spec"]
        wanted = sum(task["replicas"] for task in (job or {"spec": {"tasks": []}})["spec"]["tasks"]
                     if task["name"] == name)
        ended = [other for other in self.jobs.pods_of(job or {"metadata": {"uid": ""}})
                 if other["metadata"]["annotations"]["volcano.sh/task-spec"] == name
                 and other["status"].get("phase") == "Succeeded"]
        return wanted and len(ended) == wanted

    def command_changed(self, _old, new):
        """Execute a command once, so delete it first. The target's uid is ignored, as in Volcano.
        """
        if new is None:
            return
        meta = new["metadata"]
        self.client.delete(api.path_of("commands", meta["namespace"], meta["name"]))
        self.ask(Request((meta["namespace"], new["target"]["name"]), action=new["action"]))

    # --- threads -------------------------------------------------------------------------

    def work(self):
        while True:
            first = self.requests.get()
            with self.world:
                self.requests.put(first)  # an event may have been queued before it meanwhile
                request = self.requests.get()[2]
                if request.event is None and request.action is None:
                    self.waiting.discard(request.key)
                try:
                    self.process(request)
                except (api.Refused, OSError) as e:
                    print(f"{request.key}: {e}", flush=True)
                    if not (isinstance(e, api.Refused) and e.code == 404):
                        threading.Timer(0.2, self.ask, [request]).start()
                except Exception:  # one test's strange job must not affect other tests
                    traceback.print_exc()

    def process(self, request):
        """Handle a request. Repeat it if somebody else has changed the job."""
        try:
            self.jobs.process(request)
        except api.Refused as e:
            if e.code != 409:
                raise
            self.caches["jobs"].learn(self.client.get(api.path_of("jobs", *request.key)))
            self.jobs.process(request)

    def schedule(self):
        """Check PodGroups about as often as the real scheduler does."""
        while True:
            for group in self.caches["podgroups"].all():
                try:
                    self.gangs.look(group)
                except (api.Refused, OSError) as e:
                    print(f"{key_of(group)}: {e}", flush=True)
                except Exception:
                    traceback.print_exc()
            time.sleep(0.5)


def exit_code(pod):
    for status in pod["status"].get("containerStatuses", ()):
        code = status["state"].get("terminated", {}).get("exitCode", 0)
        if code:
            return code
    return 0


def main():
    kubectl, kubeconfig, port, pki = sys.argv[1:]
    client = api.from_kubeconfig(kubectl, kubeconfig)
    volcano = Volcano(client)
    webhook.serve(int(port), f"{pki}/volcano.crt", f"{pki}/volcano.key", volcano.gangs.state_of)
    for item in webhook.configurations(port, f"{pki}/ca.crt"):
        path = f"/apis/admissionregistration.k8s.io/v1/{item['kind'].lower()}s"
        try:
            client.post(path, item)
        except api.Refused as e:
            if e.code != 409:
                raise
    volcano.gangs.make_queues()
    threading.Thread(target=volcano.schedule, daemon=True).start()
    volcano.work()


main()
