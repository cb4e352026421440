# SPDX-License-Identifier: MIT
"""Objects of all namespaces as the API server has them, kept by watches on threads."""

import threading
import time

import api


class Cache:
    """One resource: (namespace, name) -> object. CHANGED(old, new) is called for each change, on
    the watch's thread; either may be None. Who holds WORLD sees no change whose CHANGED has not
    been called."""

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
                return  # a server that ends watches at once; a LIST finds out why

    def replace(self, items):
        names = {key_of(item) for item in items}
        for item in self.all():
            if key_of(item) not in names:
                self.put(item, gone=True)
        for item in items:
            self.put(item)

    def put(self, item, gone=False):
        """What a watch tells; may be older than what we have learned."""
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
        """What the answer to a request of our own tells; ITEM."""
        with self.lock:
            old = self.items.get(key_of(item))
            if item["metadata"]["uid"] not in self.gone and (old is None or version_of(old) < version_of(item)):
                self.items[key_of(item)] = item
        return item

    def forget(self, item):
        """What we have deleted, before the watch tells so."""
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
