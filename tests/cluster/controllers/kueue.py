# SPDX-License-Identifier: MIT
"""Simulates Kueue and the controller of AppWrapper v1beta2: kueue.py KUBECTL KUBECONFIG PORT
CERTIFICATES.

It handles AppWrappers with a queue as the real ones do in the recordings kueue_*, and serves the
visibility API on PORT. There is one resource, cpu, with one flavor. Kueue's webhook suspends a job
when it is created. Here both are one program, and Kueue acts first."""

import http.server
import json
import pathlib
import re
import ssl
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import api  # noqa: E402
import appwrapper  # noqa: E402
from appwrapper import find, put  # noqa: E402
from loop import Cache, key_of  # noqa: E402

QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
GROUP, VERSION = "visibility.kueue.x-k8s.io", "v1beta2"


def milli(text):
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def requests(wrapper):
    """Return [(name of a pod set, its CPU in millicores)]."""
    pods = [c["template"] for c in wrapper["spec"]["components"] if c["template"]["kind"] == "Pod"]
    return [(f"{wrapper['metadata']['name']}-{i}",
             sum(milli(c.get("resources", {}).get("requests", {}).get("cpu", "0")) for c in pod["spec"]["containers"]))
            for i, pod in enumerate(pods)]


def is_stopped(queue):
    return queue["spec"].get("stopPolicy", "None") != "None"


def is_true(status, kind):
    return (find(status, kind) or {}).get("status") == "True"


class Controller(appwrapper.Controller):
    def __init__(self, client):
        super().__init__(client)
        world = threading.RLock()
        self.workloads, self.queues, self.cluster_queues = (
            Cache(client, resource, lambda *_: self.changed.set(), world)
            for resource in ("workloads", "localqueues", "clusterqueues"))

    def process(self, wrapper):
        if QUEUE in (wrapper["metadata"].get("labels") or {}):
            self.kueue(wrapper)
            wrapper = self.wrappers.get(*key_of(wrapper))
        if wrapper:
            super().process(wrapper)

    # --- one Workload -----------------------------------------------------------------------

    def kueue(self, wrapper):
        workload = self.follow(wrapper, self.workload_of(wrapper) or self.make_workload(wrapper))
        status = {"conditions": [], **(workload.get("status") or {})}
        status["conditions"] = [dict(condition) for condition in status["conditions"]]
        self.decide(wrapper, workload, status)
        if status != workload.get("status"):
            path = api.path_of("workloads", *key_of(workload), "status")
            self.workloads.learn(self.client.put(path, {**workload, "status": status}))
        runs = is_true(status, "Admitted") and not is_true(status, "Evicted")
        if bool(wrapper["spec"].get("suspend")) == runs and "deletionTimestamp" not in wrapper["metadata"] and \
                (wrapper.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            self.wrappers.learn(self.client.merge(self.path(wrapper), {"spec": {"suspend": not runs}}))
        self.tell_queue(wrapper)

    def workload_of(self, wrapper):
        uid = wrapper["metadata"]["uid"]
        return next((w for w in self.workloads.all()
                     if w["metadata"]["ownerReferences"][0]["uid"] == uid), None)

    def make_workload(self, wrapper):
        meta = wrapper["metadata"]
        return self.workloads.learn(self.client.post(api.path_of("workloads", meta["namespace"]), {
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {"name": f"appwrapper-{meta['name']}-{meta['uid'][:5]}",
                         "labels": {"kueue.x-k8s.io/job-uid": meta["uid"]},
                         "ownerReferences": [{"apiVersion": wrapper["apiVersion"], "kind": "AppWrapper",
                                              "name": meta["name"], "uid": meta["uid"], "controller": True}]},
            "spec": {"active": True, "priority": 0, "queueName": meta["labels"][QUEUE], "podSets": [
                {"name": name, "count": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
                for name, _ in requests(wrapper)]}}))

    def follow(self, wrapper, workload):
        """Copy the labels of a waiting job to its Workload, and return the changed Workload."""
        labels = wrapper["metadata"]["labels"]
        wish = {"queueName": labels[QUEUE]}
        if PRIORITY in labels:
            found = self.client.get(api.path_of("workloadpriorityclasses", None, labels[PRIORITY]))
            wish.update(priority=found["value"], priorityClassRef={
                "group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": labels[PRIORITY]})
        if is_true(conditions(workload), "QuotaReserved") or wish.items() <= workload["spec"].items():
            return workload
        return self.workloads.learn(self.client.merge(api.path_of("workloads", *key_of(workload)), {"spec": wish}))

    def decide(self, wrapper, workload, status):
        phase = (wrapper.get("status") or {}).get("phase", "")
        cluster, why = self.look_at_queue(workload)
        if phase in ("Succeeded", "Failed"):
            put(status, "Finished", "True", phase, f"AppWrapper has {phase.lower()}")
            return
        if is_true(status, "QuotaReserved"):
            reason = ("Deactivated", "The workload is deactivated") if not workload["spec"].get("active", True) else \
                ("ClusterQueueStopped", "The ClusterQueue is stopped") \
                if cluster and cluster["spec"].get("stopPolicy") == "HoldAndDrain" else None
            if reason and not is_true(status, "Evicted"):
                put(status, "Evicted", "True", *reason)
            if is_true(status, "Evicted") and phase == "Suspended" and wrapper["spec"].get("suspend"):
                put(status, "QuotaReserved", "False", "Pending", find(status, "Evicted")["message"])
                put(status, "Admitted", "False", "NoReservation", "The workload has no reservation")
                status.pop("admission", None)
            return
        if not workload["spec"].get("active", True):
            return
        why = why or self.assign(wrapper, cluster)
        if why:
            put(status, "QuotaReserved", "False", *why)
            return
        name = cluster["metadata"]["name"]
        status["admission"] = {"clusterQueue": name, "podSetAssignments": [
            {"name": sets, "count": 1, "flavors": {"cpu": self.flavor(cluster)[0]},
             "resourceUsage": {"cpu": f"{cpu}m"}} for sets, cpu in requests(wrapper)]}
        if is_true(status, "Evicted"):
            put(status, "Evicted", "False", "QuotaReserved", f"Previously: {find(status, 'Evicted')['message']}")
        put(status, "QuotaReserved", "True", "QuotaReserved", f"Quota reserved in ClusterQueue {name}")
        put(status, "Admitted", "True", "Admitted", "The workload is admitted")

    def look_at_queue(self, workload):
        """Return (the ClusterQueue or None, why it admits no jobs or None)."""
        name = workload["spec"]["queueName"]
        queue = self.queues.get(workload["metadata"]["namespace"], name)
        if not queue:
            return None, ("Inadmissible", f"LocalQueue {name} doesn't exist")
        cluster = self.cluster_queues.get(None, queue["spec"]["clusterQueue"])
        if is_stopped(queue):
            return cluster, ("Inadmissible", f"LocalQueue {name} is inactive")
        if not cluster:
            return None, ("Inadmissible", f"ClusterQueue {queue['spec']['clusterQueue']} doesn't exist")
        if is_stopped(cluster):
            return cluster, ("Inadmissible", f"ClusterQueue {cluster['metadata']['name']} is inactive")
        return cluster, None

    @staticmethod
    def flavor(cluster):
        """Return (name, CPU quota in millicores)."""
        flavor = cluster["spec"]["resourceGroups"][0]["flavors"][0]
        return flavor["name"], milli(str(flavor["resources"][0]["nominalQuota"]))

    def used(self, matches):
        """Return the CPU of the Workloads with quota for which MATCHES is true."""
        return sum(milli(a["resourceUsage"]["cpu"]) for w in self.workloads.all()
                   if matches(w) and not is_true(conditions(w), "Finished")
                   for a in w.get("status", {}).get("admission", {}).get("podSetAssignments", ()))

    def assign(self, wrapper, cluster):
        """Assign quota to the job. Return why that is not possible, or None."""
        name, nominal = self.flavor(cluster)
        free = nominal - self.used(lambda w: w.get("status", {}).get("admission", {}).get("clusterQueue")
                                   == cluster["metadata"]["name"])
        wanted, lacks = 0, []
        for sets, cpu in requests(wrapper):
            text = f"couldn't assign flavors to pod set {sets}: "
            if wanted + cpu > nominal:
                lacks.append(f"{text}insufficient quota for cpu in flavor {name}, previously considered podsets "
                             f"requests ({wanted}m) + current podset request ({cpu}m) > maximum capacity ({nominal}m)")
                break
            wanted += cpu
            if wanted > free:
                lacks.append(f"{text}insufficient unused quota for cpu in flavor {name}, {wanted - free}m more needed")
        return ("Pending", "; ".join(lacks)) if lacks else None

    # --- queues -----------------------------------------------------------------------------

    def tell_queue(self, wrapper):
        namespace, name = wrapper["metadata"]["namespace"], wrapper["metadata"]["labels"][QUEUE]
        queue = self.queues.get(namespace, name)
        cluster = queue and self.cluster_queues.get(None, queue["spec"]["clusterQueue"])
        if not cluster:
            return
        mine = [w for w in self.workloads.all() if key_of(w)[0] == namespace and w["spec"]["queueName"] == name
                and not is_true(conditions(w), "Finished")]
        admitted = sum(is_true(conditions(w), "Admitted") for w in mine)
        used = self.used(lambda w: w in mine)
        amounts = [{"name": self.flavor(cluster)[0], "resources": [{"name": "cpu", "total": f"{used}m"}]}]
        status = {"conditions": [dict(c) for c in queue.get("status", {}).get("conditions", ())]}
        if is_stopped(queue):
            put(status, "Active", "False", "Stopped", "LocalQueue is stopped")
        elif is_stopped(cluster):
            put(status, "Active", "False", "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue")
        else:
            put(status, "Active", "True", "Ready", "Can submit new workloads to localQueue")
        status.update(pendingWorkloads=len(mine) - admitted, reservingWorkloads=admitted, admittedWorkloads=admitted,
                      flavorsUsage=amounts, flavorsReservation=amounts)
        if status != queue.get("status"):
            path = api.path_of("localqueues", namespace, name, "status")
            self.queues.learn(self.client.put(path, {**queue, "status": status}))

    def cluster_queue_of(self, workload):
        queue = self.queues.get(key_of(workload)[0], workload["spec"]["queueName"])
        return queue["spec"]["clusterQueue"] if queue else None

    def places(self, namespace, name):
        """Return the summary of the visibility API, or None if there is no such queue."""
        queue = self.queues.get(namespace, name)
        if not queue or not self.cluster_queues.get(None, queue["spec"]["clusterQueue"]):
            return None
        waiting = [w for w in self.workloads.all() if not is_true(conditions(w), "QuotaReserved")
                   and w["spec"].get("active", True) and self.cluster_queue_of(w) == queue["spec"]["clusterQueue"]]
        waiting.sort(key=lambda w: (-w["spec"]["priority"], w["metadata"]["creationTimestamp"], int(w["metadata"]["resourceVersion"])))
        items = [{"metadata": {key: w["metadata"][key] for key in ("name", "namespace", "creationTimestamp",
                                                                   "ownerReferences")},
                  "priority": w["spec"]["priority"], "localQueueName": w["spec"]["queueName"], "positionInClusterQueue": i}
                 for i, w in enumerate(waiting)]
        mine = [i for i in items if (i["metadata"]["namespace"], i["localQueueName"]) == (namespace, name)]
        return {"kind": "PendingWorkloadsSummary", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {},
                "items": [{**item, "positionInLocalQueue": i} for i, item in enumerate(mine)]}

    def serve(self, port, directory):
        controller = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = re.fullmatch(rf"/apis/{GROUP}/{VERSION}/namespaces/([^/]+)/localqueues/([^/]+)/"
                                    "pendingworkloads", self.path.partition("?")[0])
                tree = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}",
                        "resources": [{"name": "localqueues/pendingworkloads", "singularName": "", "namespaced": True,
                                       "kind": "PendingWorkloadsSummary", "verbs": ["get"]}]}
                if path:
                    tree = controller.places(*path.groups())
                body = json.dumps(tree or {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                           "reason": "NotFound", "code": 404, "message": "not found"}).encode()
                self.send_response(200 if tree else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, text, *args):
                print(text % args, flush=True)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "volcano.crt", directory / "volcano.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def conditions(workload):
    return {"conditions": workload.get("status", {}).get("conditions", [])}


if __name__ == "__main__":
    kubectl, kubeconfig, port, directory = sys.argv[1:]
    kueue = Controller(api.from_kubeconfig(kubectl, kubeconfig))
    kueue.serve(int(port), pathlib.Path(directory))
    kueue.work()
