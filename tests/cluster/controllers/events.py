# SPDX-License-Identifier: MIT
"""Events about objects, counted as client-go's recorder counts them: one object a message."""

import datetime
import threading
import uuid

import api


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Recorder:
    def __init__(self, client, component):
        self.client = client
        self.component = component
        self.known = {}
        self.lock = threading.Lock()

    def record(self, item, kind, reason, message, limit=25):
        """An Event of type KIND about ITEM; the same again raises its count, up to LIMIT."""
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
                self.known.pop(key, None)  # the next one is another event: who knows whether this one is there

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
