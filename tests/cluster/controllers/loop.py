# SPDX-License-Identifier: MIT
"""Common code of the simulated controllers: objects cached by watches, events, a loop that checks
each object after changes, and the creation of wrapped objects for AppWrappers."""

import datetime
import sys
import threading
import time
import traceback
import uuid

import api

# --- Objects ----------------------------------------------------------------------------------
# The API server's objects of all namespaces, cached by watches on threads.


class Cache:
    """The objects of one resource: (namespace, name) -> object. CHANGED(old, new) is called for
    each change, on the watch's thread; either may be None. A thread that holds WORLD sees no change
    for which CHANGED was not called yet."""

    def __init__(self, client, resource, changed, world):
        self.world = world
        self.client = client
        self.path = api.path_of(resource)
        self.changed = changed
        self.items = {}
        self.gone = set()  # uids
        self.lock = threading.Lock()
        self.filled = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                listed = self.client.get(self.path)
                self.replace(listed["items"])
                self.filled.set()
                self.follow(listed["metadata"]["resourceVersion"])
            except (OSError, ValueError, api.Refused) as e:
                print(f"{self.path}: {e}", flush=True)
                time.sleep(0.3)

    def follow(self, version):
        while True:
            begin = time.monotonic()
            for event in self.client.watch(self.path, version, timeout=300):
                item = event["object"]
                if event["type"] == "ERROR":
                    return
                version = item["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self.put(item, gone=event["type"] == "DELETED")
            if time.monotonic() - begin < 1:
                return  # If a server ends watches immediately, a LIST shows why.

    def replace(self, items):
        names = {key_of(item) for item in items}
        for item in self.all():
            if key_of(item) not in names:
                self.put(item, gone=True)
        for item in items:
            self.put(item)

    def put(self, item, gone=False):
        """Store an object of a watch event. It may be older than what a reply has shown."""
        uid = item["metadata"]["uid"]
        with self.world:
            with self.lock:
                old = self.items.get(key_of(item))
                if gone:
                    self.gone.add(uid)
                    if old and old["metadata"]["uid"] == uid:
                        del self.items[key_of(item)]
                elif uid not in self.gone and (old is None or version_of(old) < version_of(item)):
                    self.items[key_of(item)] = item
            self.changed(item if gone else old, None if gone else item)

    def learn(self, item):
        """Store ITEM, from the reply to our own request, and return it."""
        with self.lock:
            old = self.items.get(key_of(item))
            if item["metadata"]["uid"] not in self.gone and (old is None or version_of(old) < version_of(item)):
                self.items[key_of(item)] = item
        return item

    def forget(self, item):
        """Remove an object that we have deleted, before the watch reports that."""
        with self.lock:
            self.gone.add(item["metadata"]["uid"])
            self.items.pop(key_of(item), None)

    def get(self, namespace, name):
        with self.lock:
            return self.items.get((namespace, name))

    def all(self):
        with self.lock:
            return list(self.items.values())


def key_of(item):
    return item["metadata"].get("namespace"), item["metadata"]["name"]


def version_of(item):
    return int(item["metadata"]["resourceVersion"])


# --- Events -----------------------------------------------------------------------------------
# Events about objects, counted as client-go's recorder does: one event object per message.


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Recorder:
    def __init__(self, client, component):
        self.client = client
        self.component = component
        self.known = {}
        self.lock = threading.Lock()

    def record(self, item, kind, reason, message, limit=25):
        """Record an Event of type KIND about ITEM. A repeated event increases the count, up to
        LIMIT."""
        meta = item["metadata"]
        key = (meta["uid"], reason, message)
        with self.lock:
            name, count = self.known.get(key, (f"{meta['name'][:200]}.{uuid.uuid4().hex[:16]}", 0))
            if count >= limit:
                return
            self.known[key] = (name, count + 1)
        try:
            if count:
                self.client.merge(api.path_of("events", meta["namespace"], name),
                                  {"count": count + 1, "lastTimestamp": now()})
            else:
                self.client.post(api.path_of("events", meta["namespace"]), self.make(
                    item, name, kind, reason, message))
        except (api.Refused, OSError) as e:
            print(f"event {reason}: {e}", flush=True)
            with self.lock:
                # create a new event next time: this one may not exist any more
                self.known.pop(key, None)

    def make(self, item, name, kind, reason, message):
        meta, time = item["metadata"], now()
        return {
            "apiVersion": "v1", "kind": "Event", "type": kind, "reason": reason, "message": message,
            "metadata": {"name": name, "namespace": meta["namespace"]}, "count": 1,
            "firstTimestamp": time, "lastTimestamp": time,
            "source": {"component": self.component}, "reportingComponent": self.component,
            "involvedObject": {
                "apiVersion": item["apiVersion"], "kind": item["kind"], "name": meta["name"],
                "namespace": meta["namespace"], "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"]},
        }


# --- The loop ---------------------------------------------------------------------------------
# Most simulated controllers share this: they check each of their objects after changes.


class Controller:
    """Calls `process` for each object of RESOURCE when an object of RESOURCE or WATCHED has
    changed."""

    def __init__(self, client, resource, *watched):
        self.client = client
        self.changed = threading.Event()
        world = threading.RLock()
        self.caches = {name: Cache(client, name, lambda *_: self.changed.set(), world)
                       for name in (resource, *watched)}
        self.objects = self.caches[resource]

    def work(self):
        while True:
            self.changed.wait(timeout=0.5)
            self.changed.clear()
            for item in self.objects.all():
                try:
                    self.process(item)
                except (api.Refused, OSError) as e:
                    print(f"{key_of(item)}: {e}", flush=True)
                except Exception:  # one test's strange object must not affect other tests
                    traceback.print_exc()

    def process(self, item):
        raise NotImplementedError


def main(controller):
    kubectl, kubeconfig = sys.argv[1:]
    controller(api.from_kubeconfig(kubectl, kubeconfig)).work()


# --- AppWrappers ------------------------------------------------------------------------------
# Common code of the simulated controllers of AppWrappers: they create the wrapped objects.

PLURALS = {"Pod": "pods", "Service": "services"}


class WrapperController(Controller):
    """A subclass for a version has `process`, which handles a wrapper, and `labels`."""

    def __init__(self, client):
        super().__init__(client, "appwrappers", "pods")
        self.wrappers, self.pods = self.objects, self.caches["pods"]

    def labels(self, name, item):
        """Return the labels that the controller sets on the object ITEM of the wrapper NAME."""
        raise NotImplementedError

    @staticmethod
    def path(wrapper, sub=None):
        return api.path_of("appwrappers", *key_of(wrapper), sub)

    def pods_of(self, wrapper):
        uid = wrapper["metadata"]["uid"]
        return [pod for pod in self.pods.all()
                if any(ref["uid"] == uid for ref in pod["metadata"].get("ownerReferences", ()))]

    def create(self, wrapper, template):
        """Create a wrapped object. An existing one counts as ours, although real controllers also
        check its owner."""
        name, meta = wrapper["metadata"]["name"], dict(template["metadata"])
        meta["labels"] = {**(meta.get("labels") or {}), **self.labels(name, meta["name"])}
        meta["ownerReferences"] = [{"apiVersion": wrapper["apiVersion"], "kind": "AppWrapper", "name": name,
                                    "uid": wrapper["metadata"]["uid"], "controller": True,
                                    "blockOwnerDeletion": True}]
        place = api.path_of(PLURALS[template["kind"]], wrapper["metadata"]["namespace"])
        try:
            self.client.post(place, {**template, "metadata": meta})
        except api.Refused as e:
            if e.code != 409:
                raise

    def write(self, wrapper, status):
        answer = self.client.put(self.path(wrapper, "status"), {**wrapper, "status": status})
        self.wrappers.learn(answer)
        self.changed.set()
