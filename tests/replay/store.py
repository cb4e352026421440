# SPDX-License-Identifier: MIT
"""The data of the tests' API server: objects, their versions, and changes.

As in etcd, one counter assigns all resource versions. The store keeps every change, so a watch can begin at any
version until `compact` removes the changes. It keeps objects as the JSON text that is sent, so that 30 000 objects
are cheap. All methods can be called from any thread."""

import bisect
import datetime
import json
import threading
import uuid
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


class Resource:
    """A kind of object, as discovery describes it."""

    def __init__(self, group, version, plural, kind, namespaced=True, custom=True, verbs=None):
        self.group = group
        self.version = version
        self.plural = plural
        self.kind = kind
        self.namespaced = namespaced
        self.custom = custom  # defined by a CustomResourceDefinition, so the server sorts the keys
        self.verbs = verbs or ["create", "delete", "get", "list", "patch", "watch"]

    @property
    def api_version(self):
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self):
        """Return the resource's name in messages, such as jobs.batch.volcano.sh."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command")
PODGROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod", custom=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False, custom=False)
EVENTS = Resource("", "v1", "events", "Event", custom=False)
APPWRAPPERS = Resource("workload.codeflare.dev", "v1beta1", "appwrappers", "AppWrapper")
NEW_APPWRAPPERS = Resource("workload.codeflare.dev", "v1beta2", "appwrappers", "AppWrapper")
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
BATCH_JOBS = Resource("batch", "v1", "jobs", "Job")
# For the kinds in share/kinds/: kind -> its resource, and kind -> the resources of its watched parts.
_FILES = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "share/kinds").glob("*.yaml"))]
KIND_FILES = {kind["name"]: Resource(*kind["object"]["api"].split("/"), kind["object"]["plural"], kind["object"]["kind"])
              for kind in _FILES}
_KNOWN = {resource.kind: resource for resource in (BATCH_JOBS, JOBSETS)}
KIND_PARTS = {kind["name"]: [_KNOWN.get(part["kind"]) or Resource(*part["api"].split("/"), part["plural"], part["kind"])
                             for part in kind.get("parts", []) if "plural" in part] for kind in _FILES}
PYTORCHJOBS, MPIJOBS, RAYJOBS = (KIND_FILES[name] for name in ("pytorchjob", "mpijob", "rayjob"))
RAYCLUSTERS = next(part for part in KIND_PARTS["rayjob"] if part.kind == "RayCluster")
REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
                   namespaced=False, custom=False, verbs=["create"])


def kueue(version):
    """Return Kueue's resources of VERSION: Workloads, LocalQueues, ClusterQueues, LocalQueues of the visibility API
    (with positions), and priority classes."""
    return (Resource("kueue.x-k8s.io", version, "workloads", "Workload"),
            Resource("kueue.x-k8s.io", version, "localqueues", "LocalQueue"),
            Resource("kueue.x-k8s.io", version, "clusterqueues", "ClusterQueue", namespaced=False),
            Resource("visibility.kueue.x-k8s.io", version, "localqueues", "LocalQueue", verbs=["get"]),
            Resource("kueue.x-k8s.io", version, "workloadpriorityclasses", "WorkloadPriorityClass", namespaced=False))


KUEUE = WORKLOADS, LOCAL_QUEUES, CLUSTER_QUEUES, PLACES, CLASSES = kueue("v1beta2")
OLD_KUEUE = kueue("v1beta1")
METRICS, OLD_METRICS = (Resource("metrics.k8s.io", version, "pods", "PodMetrics", custom=False, verbs=["get", "list"])
                        for version in ("v1", "v1beta1"))
VOLCANO = (JOBS, COMMANDS, PODGROUPS, QUEUES)
CORE = (PODS, EVENTS, REVIEWS)


def encode(resource, obj):
    """Return the JSON text of OBJ. As on the real server, custom resources have sorted keys."""
    return json.dumps(obj, separators=(",", ":"), ensure_ascii=False,
                      sort_keys=resource.custom).encode()


class Object:
    """One version of an object. It never changes."""

    def __init__(self, resource, obj, version):
        meta = obj["metadata"]
        meta["resourceVersion"] = str(version)
        self.resource = resource
        self.name = meta["name"]
        self.namespace = meta.get("namespace", "")
        self.uid = meta["uid"]
        self.labels = meta.get("labels") or {}
        self.version = version
        self.phase = (obj.get("status") or {}).get("phase", "")  # the phase of a pod
        # The object's text in a list. In lists, objects of built-in kinds have no kind and apiVersion.
        self.item = encode(resource, obj if resource.custom else
                           {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")})

    @property
    def key(self):
        return (self.namespace, self.name)

    @property
    def text(self):
        """Return the object's text outside of lists."""
        if self.resource.custom:
            return self.item
        head = f'{{"kind":"{self.resource.kind}","apiVersion":"{self.resource.api_version}",'
        return head.encode() + self.item[1:]

    def tree(self):
        """Return a copy of the object as a tree, which the caller may change."""
        return json.loads(self.text)


class Change:
    """One change of an object. BEFORE is None if it was created, AFTER is None if it was deleted."""

    def __init__(self, version, before, after):
        self.version = version
        self.before = before
        self.after = after

    def seen_by(self, matches):
        """Return (type, object) of the event in a watch whose selection is MATCHES. Return None if MATCHES selects
        neither version."""
        before = self.before is not None and matches(self.before)
        after = self.after is not None and matches(self.after)
        if after:
            return ("MODIFIED" if before else "ADDED"), self.after
        if not before:
            return None
        last = self.before.tree()
        return "DELETED", Object(self.before.resource, last, self.version)


def own(tree):
    """Return a copy of TREE whose metadata may be changed. No deep copy is needed, because an Object keeps only the
    text of a tree."""
    return {**tree, "metadata": {**tree["metadata"]}}


def now():
    """Return the current time in Kubernetes' format."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    def __init__(self, first_version=1000):
        self.lock = threading.RLock()
        self.version = first_version
        self.oldest = {}  # resource -> the oldest version at which a watch can begin
        self._objects = {}
        self._changes = {}
        self.listeners = []  # called with each Change, while the lock is held

    # --- reading ---

    def objects(self, resource, matches=lambda obj: True):
        """Return all matching objects, in the order of a list, and the version of that state."""
        with self.lock:
            found = self._objects.get(resource, {})
            return [found[key] for key in sorted(found) if matches(found[key])], self.version

    def find(self, resource, namespace, name):
        with self.lock:
            return self._objects.get(resource, {}).get((namespace, name))

    def changes(self, resource, version):
        """Return the changes after VERSION, or None if some of them were removed."""
        with self.lock:
            if version < self.oldest.get(resource, 0):
                return None
            changes = self._changes.get(resource, [])
            return changes[bisect.bisect_right(changes, version, key=lambda c: c.version):]

    # --- changing ---

    def _apply(self, resource, key, tree):
        with self.lock:
            self.version += 1
            table = self._objects.setdefault(resource, {})
            before = table.pop(key, None)
            after = None
            if tree is not None:
                after = table[key] = Object(resource, tree, self.version)
            change = Change(self.version, before, after)
            self._changes.setdefault(resource, []).append(change)
            for listener in list(self.listeners):
                listener(change)
            return after or before

    def add(self, resource, tree):
        """Add an object. Set the members that a server sets (uid, times, kind), unless TREE has them."""
        tree = own(tree)
        tree.setdefault("apiVersion", resource.api_version)
        tree.setdefault("kind", resource.kind)
        meta = tree["metadata"]
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", now())
        meta.setdefault("generation", 1)
        key = (meta.get("namespace", ""), meta["name"])
        with self.lock:
            assert key not in self._objects.get(resource, {}), f"{key} exists"
            return self._apply(resource, key, tree)

    def put(self, resource, tree):
        """Add an object, or replace the object of this name."""
        meta = tree["metadata"]
        return self._apply(resource, (meta.get("namespace", ""), meta["name"]), own(tree))

    def change(self, resource, namespace, name, edit):
        """Let EDIT change the tree of an object. Return the new object, or None if there is no such object."""
        with self.lock:
            obj = self.find(resource, namespace, name)
            if obj is None:
                return None
            tree = obj.tree()
            edit(tree)
            return self._apply(resource, obj.key, tree)

    def remove(self, resource, namespace, name):
        """Remove an object. Return its last version, or None if there is no such object."""
        with self.lock:
            if self.find(resource, namespace, name) is None:
                return None
            return self._apply(resource, (namespace, name), None)

    def compact(self, *resources):
        """Remove all changes of RESOURCES, or of all resources. A watch that begins at an earlier version gets 410."""
        with self.lock:
            for resource in resources or list(self._objects):
                self.oldest[resource] = self.version
                self._changes[resource] = []
