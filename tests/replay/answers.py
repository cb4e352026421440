# SPDX-License-Identifier: MIT
"""The replies of the tests' API server: discovery, lists, single objects, creating, patching, deleting.

Streams (watches and logs) are only prepared here. apiserver.py sends them."""

import base64
import binascii
import json

import admission
import podlog
import replies
import store as st
from replies import json_reply


class Watch:
    """An accepted watch: which objects it selects, its first objects, and the version after which its events begin."""

    def __init__(self, resource, matches, first, version, seconds, bookmarks, metadata=False):
        self.resource = resource
        self.metadata = metadata  # send only the metadata of objects
        self.matches = matches
        self.first = first
        self.version = version
        self.seconds = seconds  # None: the watch has no time limit
        self.bookmarks = bookmarks

    def lines(self, store):
        """Return (bytes of new events since the last call, true if the watch continues)."""
        out = [event("ADDED", obj, self.metadata) for obj in self.first]
        self.first = []
        with store.lock:
            if self.version > store.version:
                return b"".join(out), True  # the watch begins at a future version, and is silent until then
            changes = store.changes(self.resource, self.version)
            if changes is None:
                gone = replies.expired(self.version, store.oldest[self.resource])
                return b"".join(out) + error_event(gone), False
            self.version = store.version
        seen = [change.seen_by(self.matches) for change in changes]
        return b"".join([*out, *(event(*one, self.metadata) for one in seen if one)]), True

    def bookmark(self, store):
        if self.version > store.version:
            return b""
        tree = {"kind": self.resource.kind, "apiVersion": self.resource.api_version,
                "metadata": {"resourceVersion": str(self.version)}}
        if not self.resource.custom:
            tree["metadata"]["creationTimestamp"] = None
            tree.update(spec={"containers": None}, status={})
        return b'{"type":"BOOKMARK","object":%s}\n' % st.encode(self.resource, tree)


def metadata_of(obj):
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj.tree()["metadata"]}


def event(kind, obj, metadata=False):
    text = json.dumps(metadata_of(obj)).encode() if metadata else obj.text
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), text)


def error_event(reply):
    """Return the event with which an open watch reports the refusal REPLY."""
    return b'{"type":"ERROR","object":%s}\n' % reply.body.strip()


class Api:
    def __init__(self, store):
        self.store = store
        self.resources = [*st.CORE, *st.VOLCANO]
        self.max_page = None  # the server's own limit of a page, or None
        self.queues = {"default": "Open"}  # queue of Volcano -> its state, which the webhook checks
        self.places = {}  # LocalQueue -> its summary of the visibility API, as a tree
        self.metrics = {}  # pod -> (time of the sample, {container: (cpu, memory)}); None: metrics-server is unreachable
        self.logs = {}  # (pod's uid, container, number of restarts) -> podlog.Log
        self._pages = {}  # continue tokens that have not expired
        self._handlers = {"list": self._list, "watch": self._watch, "get": self._get,
                          "create": self._create, "patch": self._patch, "delete": self._delete}

    def answer(self, req):
        """Return a Reply, a Watch or a podlog.Reader for REQ. Raise a Reply to refuse it."""
        if not req.resource:
            return self._discover(req)
        if req.subresource == "pendingworkloads" and req.resource.group.startswith("visibility."):
            return self._places(req)
        if req.group == st.METRICS.group:
            return self._metrics(req)
        if req.subresource:
            if (req.resource, req.subresource, req.verb) != (st.PODS, "log", "get"):
                raise replies.not_served()
            return self._log(req)
        return self._handlers[req.verb](req)

    # --- discovery ---

    def _discover(self, req):
        parts = req.path.strip("/").split("/")
        groups = sorted({r.group for r in self.resources if r.group})
        if req.path in ("/healthz", "/livez", "/readyz"):
            return replies.Reply(200, b"ok", "text/plain; charset=utf-8")
        if req.path == "/version":
            return json_reply({"major": "1", "minor": "36", "gitVersion": "v1.36.1",
                               "platform": "linux/amd64"})
        if req.path == "/api":
            return json_reply({"kind": "APIVersions", "versions": ["v1"],
                               "serverAddressByClientCIDRs": []})
        if req.path == "/apis":
            return json_reply({"kind": "APIGroupList", "apiVersion": "v1",
                               "groups": [self._group(group) for group in groups]})
        if len(parts) == 2 and parts[0] == "apis" and parts[1] in groups:
            return json_reply({"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])})
        version = req.path.strip("/").removeprefix("apis/").removeprefix("api/")
        served = [r for r in self.resources if r.api_version == version]
        if not served:
            raise replies.not_served()
        return json_reply({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
                           "resources": [item for r in served for item in self._describe(r)]})

    def _group(self, group):
        versions = [{"groupVersion": version, "version": version.partition("/")[2]} for version in
                    dict.fromkeys(r.api_version for r in self.resources if r.group == group)]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    @staticmethod
    def _describe(resource):
        whole = {"name": resource.plural, "singularName": resource.kind.lower(),
                 "namespaced": resource.namespaced, "kind": resource.kind, "verbs": resource.verbs}
        if resource is not st.PODS:
            return [whole]
        return [whole, {"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod",
                        "verbs": ["get"]}]

    # --- reading ---

    def _list(self, req):
        matches = req.matches()
        limit = req.number("limit")
        token = req.query.get("continue")
        wanted = req.number("resourceVersion")
        if token:
            objects, version, start = self._page(token)
        else:
            objects, version = self.store.objects(req.resource, matches)
            start = 0
            if wanted and wanted > version:
                raise replies.too_large_version(wanted, version)
        if self.max_page:
            limit = min(limit or self.max_page, self.max_page)
        end = min(len(objects), start + limit) if limit else len(objects)
        meta = {"resourceVersion": str(version)}
        if end < len(objects):
            meta["continue"] = self._more(objects, version, end)
            if not req.query.get("labelSelector") and not req.query.get("fieldSelector"):
                meta["remainingItemCount"] = len(objects) - end
        if req.is_metadata:
            return json_reply({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta,
                               "items": [metadata_of(obj) for obj in objects[start:end]]})
        return replies.Reply(200, list_text(req.resource, objects[start:end], meta))

    def _more(self, objects, version, start):
        token = {"v": "meta.k8s.io/v1", "rv": version, "start": f"{objects[start - 1].name}\0"}
        text = base64.urlsafe_b64encode(json.dumps(token).encode()).rstrip(b"=").decode()
        self._pages[text] = (objects, version, start)
        return text

    def _page(self, token):
        try:
            base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (ValueError, binascii.Error):
            raise replies.bad_request("continue key is not valid") from None
        if token not in self._pages:
            raise replies.continue_expired()
        return self._pages[token]

    def _watch(self, req):
        version = req.number("resourceVersion")
        matches = req.matches()
        first = []
        with self.store.lock:
            if not version:  # without a version, a watch begins with all existing objects
                first, version = self.store.objects(req.resource, matches)
        return Watch(req.resource, matches, first, version, req.number("timeoutSeconds"),
                     req.flag("allowWatchBookmarks"), req.is_metadata)

    def _get(self, req):
        obj = self.store.find(req.resource, req.namespace, req.name)
        if obj is None:
            raise replies.not_found(req.resource, req.name)
        return replies.Reply(200, obj.text + b"\n")

    def _places(self, req):
        if req.name not in self.places:
            raise replies.not_found(req.resource, req.name)
        return json_reply(self.places[req.name])

    def _metrics(self, req):
        """Reply as metrics-server does. It knows the same pods as the API server."""
        if self.metrics is None:
            raise replies.Reply(503, b"service unavailable\n", "text/plain; charset=utf-8")
        if req.verb != "list":
            raise replies.not_served()
        items = [{"metadata": {"name": name, "namespace": req.namespace, "creationTimestamp": st.now()},
                  "timestamp": time, "window": "15.012s",
                  "containers": [{"name": container, "usage": {"cpu": cpu, "memory": memory}}
                                 for container, (cpu, memory) in containers.items()]}
                 for name, (time, containers) in list(self.metrics.items())]
        return json_reply({"kind": "PodMetricsList", "apiVersion": req.resource.api_version, "metadata": {},
                           "items": items})

    # --- changing ---

    def _create(self, req):
        tree = admission.decode(req.body)
        tree = admission.check(req, tree, self.queues)
        with self.store.lock:
            name = tree["metadata"]["name"]
            if self.store.find(req.resource, req.namespace, name):
                raise replies.exists(req.resource, name)
            if req.query.get("dryRun") == "All":
                tree["metadata"].setdefault("uid", "00000000-0000-4000-8000-000000000000")
                tree["metadata"].setdefault("creationTimestamp", st.now())
                return json_reply(tree, 201)
            obj = self.store.add(req.resource, tree)
        return replies.Reply(201, obj.text + b"\n")

    def _patch(self, req):
        """Apply a JSON merge patch, the only kind of patch that kxfs sends."""
        if req.headers.get("Content-Type") != "application/merge-patch+json":
            raise replies.status(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
        patch = admission.decode(req.body)
        with self.store.lock:
            obj = self.store.find(req.resource, req.namespace, req.name)
            if obj is None:
                raise replies.not_found(req.resource, req.name)
            uid = patch.get("metadata", {}).get("uid", obj.uid)
            if uid != obj.uid:
                raise replies.invalid(req.resource, req.name, ("metadata.uid", "FieldValueInvalid",
                                                               f'Invalid value: "{uid}": field is immutable'))
            before = obj.tree()
            tree = merged(before, patch)
            if tree.get("spec") != before.get("spec"):
                tree["metadata"]["generation"] = before["metadata"].get("generation", 1) + 1
            obj = self.store.put(req.resource, tree)
        return replies.Reply(200, obj.text + b"\n")

    def _delete(self, req):
        options = admission.decode(req.body) if req.body else {}
        with self.store.lock:
            obj = self.store.find(req.resource, req.namespace, req.name)
            if obj is None:
                raise replies.not_found(req.resource, req.name)
            wanted = (options.get("preconditions") or {}).get("uid")
            if wanted and wanted != obj.uid:
                raise replies.wrong_uid(req.resource, req.name, wanted, obj.uid)
            if req.query.get("dryRun") != "All":
                self.store.remove(req.resource, req.namespace, req.name)
        return json_reply({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                           "details": {"name": obj.name, "group": req.resource.group,
                                       "kind": req.resource.plural, "uid": obj.uid}})

    # --- logs ---

    def _log(self, req):
        pod = self.store.find(st.PODS, req.namespace, req.name)
        if pod is None:
            raise replies.not_found(st.PODS, req.name)
        tree = pod.tree()
        try:
            since = podlog.parse_since(req.query["sinceTime"]) if "sinceTime" in req.query else None
        except ValueError as e:
            raise replies.bad_request(f"{e}") from None
        container = pick_container(tree, req.query.get("container"))
        if not tree["spec"].get("nodeName"):
            return replies.Reply(204)
        restarts = check_container(tree, container, req.flag("previous"))
        log = self.log(pod, container, restarts)
        reader = podlog.Reader(log, req.flag("timestamps"), since, req.number("tailLines"),
                               req.number("limitBytes"))
        reader.follow = req.flag("follow")
        return reader

    def log(self, pod, container, restart=0):
        """Return the output of a run of a container of POD (an Object). Create it if there is none."""
        return self.logs.setdefault((pod.uid, container, restart), podlog.Log())


def merged(tree, patch):
    """Return TREE after a JSON merge patch: null removes a key, maps are merged, all other values are replaced."""
    if not isinstance(patch, dict):
        return patch
    ret = {**tree} if isinstance(tree, dict) else {}
    for key, value in patch.items():
        if value is None:
            ret.pop(key, None)
        else:
            ret[key] = merged(ret.get(key), value)
    return ret


def list_text(resource, objects, meta):
    """Return a list in the server's format. For custom resources, `metadata` comes last."""
    items = b",".join(obj.item for obj in objects)
    kind = f"{resource.kind}List".encode()
    if resource.custom:
        meta.setdefault("continue", "")
    head = json.dumps(meta, separators=(",", ":"), sort_keys=True).encode()
    if resource.custom:
        return (b'{"apiVersion":"%s","items":[%s],"kind":"%s","metadata":%s}\n'
                % (resource.api_version.encode(), items, kind, head))
    return (b'{"kind":"%s","apiVersion":"%s","metadata":%s,"items":[%s]}\n'
            % (kind, resource.api_version.encode(), head, items))


def pick_container(pod, name):
    names = [c["name"] for part in ("initContainers", "containers") for c in pod["spec"].get(part, [])]
    where = pod["metadata"]["name"]
    if name is None:
        if len(pod["spec"]["containers"]) > 1:
            raise replies.bad_request(f"a container name must be specified for pod {where}, choose "
                                      f"one of: [{' '.join(names)}]")
        return pod["spec"]["containers"][0]["name"]
    if name not in names:
        raise replies.bad_request(f"container {name} is not valid for pod {where}")
    return name


def check_container(pod, name, previous):
    """Return the number of the run whose log is requested. Raise the kubelet's message if there is no such log."""
    where = pod["metadata"]["name"]
    found = [c for part in ("initContainerStatuses", "containerStatuses")
             for c in pod.get("status", {}).get(part, []) if c["name"] == name]
    found = found[0] if found else {}
    restarts = found.get("restartCount", 0)
    state = found.get("state") or {"waiting": {"reason": "ContainerCreating"}}
    if "waiting" in state and "terminated" in found.get("lastState", {}):
        # Between two runs, requests with and without `previous` get the log of the finished run.
        return restarts
    if previous:
        if not restarts:
            raise replies.bad_request(f'previous terminated container "{name}" in pod "{where}" not found')
        return restarts - 1
    if "waiting" in state:
        raise replies.bad_request(waiting_message(name, where, state["waiting"].get("reason", "")))
    return restarts


def waiting_message(name, pod, reason):
    what = f'container "{name}" in pod "{pod}" is '
    if reason == "ErrImagePull":
        return what + "waiting to start: image can't be pulled"
    if reason == "ImagePullBackOff":
        return what + "waiting to start: trying and failing to pull image"
    return what + f"waiting to start: {reason}"
