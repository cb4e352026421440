#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An API server that is never the bottleneck of a benchmark.

It is a separate process that replies with prepared bytes, checks nothing and forgets nothing. It
prints its port, and ends when its stdin is closed.

	bulk_server.py [--kind KIND] [--jobs N] [--pods N] [--wide N] [--finished 1] [--log-mb N] [--ticks N]

It serves N jobs `job-00000` ... of Volcano, or of KIND: job, jobset, rayjob. Each runs N pods.
--wide adds one job `wide` of N tasks, whose pods are as large as Volcano makes them. With
--finished, all jobs have succeeded. Each pod has a log: one line, and then silence. With --log-mb,
it is N MB, printed at 5 MB per second. With --ticks, it is N lines per second, each containing the
time. Watches report created objects, which can also be read. Selectors match everything. GET /bench
returns the requests so far."""

import argparse
import asyncio
import base64
import collections
import json
import os
import pathlib
import sys
import tempfile
import time
import uuid
from urllib.parse import unquote

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/mount"), str(ROOT / "tests/replay")]
import answers  # noqa: E402
import podlog  # noqa: E402
import recordings  # noqa: E402
import replies  # noqa: E402
import store as st  # noqa: E402
import watching  # noqa: E402
from request import Request  # noqa: E402

NAMESPACE = "test"
NAMESPACE_UID = "0b1e9f0c-0000-4000-8000-000000000000"
LINE = b"%s epoch %08d loss 0.123456789 accuracy 0.987654321 step time 20 us and some more words\n"
LINES_A_SECOND = 50000
FIRST_NS = 1_790_000_000 * 10**9
STAMP = 31  # length of a timestamp and a space
VERSION = 1000
# Kinds whose objects come from a recording.
RECORDED = {"job": (st.BATCH_JOBS, "job_success"), "jobset": (st.JOBSETS, "kueue_jobset_success")}
BOOKMARK_S = 60  # between two bookmarks of a watch


def job_uid(number):
    return f"00000000-0000-4000-8000-{number:012}"


class Template:
    """The text of an object with placeholders, so that thousands of objects can be made quickly."""

    def __init__(self, resource, tree):
        self.text = st.Object(resource, tree, VERSION).item

    def make(self, **marks):
        text = self.text
        for mark, value in marks.items():
            text = text.replace(b"@%s@" % mark.encode(), value.encode())
        return text


def owner_of(name):
    tree = watching.job(name, phase="Running")
    tree["metadata"].update(uid="@owner@", creationTimestamp=st.now())
    return st.Object(st.JOBS, tree, VERSION)


def job_template(name, tasks, finished):
    """Return a job as large as TorchX makes it. TASKS: name -> replicas."""
    real = next(s.tree for s in recordings.Recording("success").steps
                if s.resource is st.JOBS and "status" in s.tree)
    tree = watching.job(name, phase="Completed" if finished else "Running", tasks=tasks)
    template = real["spec"]["tasks"][0]["template"]
    template["metadata"].pop("labels")  # they name the role, but here the task does
    template["spec"]["containers"][0]["name"] = "main"
    for task in tree["spec"]["tasks"]:
        task["template"] = template
    tree["metadata"] = {**real["metadata"], **tree["metadata"], "uid": "@owner@",
                        "creationTimestamp": st.now(), "generation": 1}
    return Template(st.JOBS, tree)


def pod_template(job, task, finished, n_tasks=0):
    """Return a pod. With N_TASKS, it has the two variables per task that Volcano adds to the
    environment."""
    tree = watching.real_pod(owner_of(job), task, 0)
    tree["metadata"].update(uid="@uid@", name="@pod@")
    tree["spec"]["containers"][0]["env"] = [
        {"name": f"VC_{'W' * 20}_{i:04}_{what}", "valueFrom": {"configMapKeyRef": {
            "name": f"wide-{'s' * 71}-svc", "key": f"VC_{'W' * 20}_{i:04}_{what}"}}}
        for i in range(n_tasks) for what in ("HOSTS", "NUM")]
    if finished:
        tree["status"]["phase"] = "Succeeded"
        tree["status"]["containerStatuses"][0]["state"] = {"terminated": {
            "exitCode": 0, "reason": "Completed", "startedAt": st.now(), "finishedAt": st.now()}}
    return Template(st.PODS, tree)


def renamed(tree, names):
    """Return TREE after replacing each whole text that is a key of NAMES."""
    if isinstance(tree, dict):
        return {key: renamed(value, names) for key, value in tree.items()}
    return [renamed(item, names) for item in tree] if isinstance(tree, list) else names.get(tree, tree) \
        if isinstance(tree, str) else tree


def recorded_templates(resource, scenario):
    """Return templates of a running job and its first pod, as a real cluster created them."""
    seen = {}
    for step in recordings.Recording(scenario, resources=(resource, st.PODS)).steps:
        pods = [tree for kind, tree in seen.values() if kind is st.PODS and tree["status"].get("phase") == "Running"]
        jobs = [tree for kind, tree in seen.values() if kind is resource and "status" in tree]
        if pods and jobs:
            break
        seen[step.tree["metadata"]["uid"]] = step.resource, step.tree
    (job, *_), (pod, *_) = jobs, pods
    # for a JobSet, the Job NAME-ROLE-0
    name, controller = job["metadata"]["name"], pod["metadata"]["ownerReferences"][0]["name"]
    names = {job["metadata"]["uid"]: "@owner@", controller: controller.replace(name, "job-@name@"), name: "job-@name@",
             pod["metadata"]["uid"]: "@uid@", pod["metadata"]["name"]: "@pod@", job["metadata"]["creationTimestamp"]: st.now()}
    return [Template(kind, renamed({**tree, "metadata": {**tree["metadata"], "namespace": NAMESPACE}}, names))
            for kind, tree in ((resource, job), (st.PODS, pod))]


def ray_templates():
    """Return templates of a RayJob, of its RayCluster's metadata (which a mount requests), and of a
    worker pod, as KubeRay created them."""
    seen, running = {}, False
    for line in (ROOT / "tests/kinds/recordings/rayjob.jsonl").read_text().splitlines():
        tree = json.loads(line).get("object", {})
        seen[tree.get("kind"), tree.get("metadata", {}).get("labels", {}).get("ray.io/node-type")] = tree
        running |= tree.get("kind") == "RayJob" and tree.get("status", {}).get("jobDeploymentStatus") == "Running"
        if running and seen.get(("Pod", "worker"), {}).get("status", {}).get("phase") == "Running":
            break
    job, cluster, pod = (next(seen[key] for key in seen if key[0] == kind and key[1] != "head")
                         for kind in ("RayJob", "RayCluster", "Pod"))
    names = {tree["metadata"][key]: f"@{mark}@" if key == "uid" else f"{prefix}-@name@"
             for tree, mark, prefix in ((job, "owner", "job"), (cluster, "cluster", "cluster")) for key in ("uid", "name")}
    names.update({pod["metadata"]["uid"]: "@uid@", pod["metadata"]["name"]: "@pod@"})
    cluster = {key: cluster[key] for key in ("apiVersion", "kind", "metadata")}
    return [Template(kind, renamed({**tree, "metadata": {**tree["metadata"], "namespace": NAMESPACE}}, names))
            for kind, tree in ((st.RAYJOBS, job), (st.RAYCLUSTERS, cluster), (st.PODS, pod))]


class World:
    """The objects: for each resource, functions that make one by its number."""

    def __init__(self, args):
        self.made = collections.defaultdict(list)  # by resource: the created objects
        self.args = args
        self.jobs, self.job = st.JOBS, job_template("job-@name@", {"main": args.pods}, args.finished)
        self.wide = job_template("wide", {f"w-{i:04}": 1 for i in range(args.wide)}, args.finished)
        self.pod = pod_template("job-@name@", "main", args.finished)
        self.parts = []  # resources between jobs and pods
        if args.kind == "rayjob":
            self.jobs, self.parts = st.RAYJOBS, [st.RAYCLUSTERS, st.BATCH_JOBS]
            self.job, self.cluster, self.pod = ray_templates()
        elif args.kind != "volcano":
            self.jobs, scenario = RECORDED[args.kind]
            self.job, self.pod = recorded_templates(self.jobs, scenario)
        self.wide_pod = pod_template("wide", "w-@task@", args.finished, args.wide)

    def count(self, resource):
        n_jobs, wide = self.args.jobs, self.args.wide
        fixed = {self.jobs: n_jobs + bool(wide), st.PODS: n_jobs * self.args.pods + wide}
        if self.parts:
            fixed[st.RAYCLUSTERS] = n_jobs
        return fixed.get(resource, 0) + len(self.made[resource])

    def item(self, resource, i):
        """Return an object as in a list, where objects of built-in kinds have no kind and
        apiVersion."""
        if resource is self.jobs:
            if i < self.args.jobs:
                return self.job.make(name=f"{i:05}", owner=job_uid(i))
            i -= self.args.jobs
            if self.args.wide and i == 0:
                return self.wide.make(owner=job_uid(self.args.jobs))
            return self.made[resource][i - bool(self.args.wide)]
        if resource in self.parts:
            return self.cluster.make(name=f"{i:05}", owner=job_uid(i), cluster=f"c-{i:05}")
        n = self.args.jobs * self.args.pods
        if i < n:
            job, index = divmod(i, self.args.pods)
            return self.pod.make(name=f"{job:05}", owner=job_uid(job), uid=str(uuid.UUID(int=i + 1)), cluster=f"c-{job:05}",
                                 pod=f"job-{job:05}-main-{index}").replace(
                b'"volcano.sh/task-index":"0"', b'"volcano.sh/task-index":"%d"' % index)
        task = i - n
        return self.wide_pod.make(task=f"{task:04}", owner=job_uid(self.args.jobs),
                                  uid=str(uuid.UUID(int=i + 1)), pod=f"wide-w-{task:04}-0")

    def text(self, resource, i):
        """Return an object as in a reply of its own."""
        item = self.item(resource, i)
        if resource.custom:
            return item
        return b'{"kind":"%s","apiVersion":"%s",%s' % (resource.kind.encode(), resource.api_version.encode(), item[1:])

    def find(self, resource, name):
        kind, _, rest = name.partition("-")
        numbers = rest.split("-main-")
        if kind == "job" and all(map(str.isdigit, numbers)) and len(numbers) == (2 if resource is st.PODS else 1):
            return self.text(resource, int(numbers[0]) * self.args.pods + int(numbers[1]) if len(numbers) > 1
                             else int(numbers[0]))
        return next((text for text in self.made[resource] if json.loads(text)["metadata"]["name"] == name), None)

    def create(self, req):
        tree = json.loads(req.body)
        tree["metadata"].update(uid=str(uuid.uuid4()), creationTimestamp=st.now(), generation=1,
                                namespace=NAMESPACE)
        text = st.Object(req.resource, tree, VERSION + len(self.made[req.resource]) + 1).item
        if req.query.get("dryRun") != "All":
            self.made[req.resource].append(text)
        return text


class Log:
    """The log of every pod, in files with and without times, and where each second of the former
    starts. Each second has the same lines."""

    def __init__(self, mebibytes):
        lines = [LINE % (podlog.stamp(FIRST_NS + i * (10**9 // LINES_A_SECOND)).encode(), i)
                 for i in range(LINES_A_SECOND)]
        n = max((mebibytes << 20) // len(lines[0]), 1)
        self.file, self.plain = (tempfile.TemporaryFile(prefix="kxfs-bench-log-") for _ in range(2))
        self.seconds = [0]
        for begin in range(0, n, LINES_A_SECOND):
            part = lines[:n - begin]
            now = podlog.second(FIRST_NS // 10**9 + begin // LINES_A_SECOND).encode()
            self.file.write(b"".join(part).replace(lines[0][:len(now)], now))
            self.plain.write(b"".join(line[STAMP:] for line in part))
            self.seconds.append(self.file.tell())
        self.size, self.printed = self.file.tell(), self.plain.tell()
        self.file.flush()
        self.plain.flush()

    def since(self, text):
        second = (podlog.parse_since(text) - FIRST_NS) // 10**9 if text else 0
        return self.seconds[min(max(second, 0), len(self.seconds) - 1)]


class Server:
    def __init__(self, args):
        self.world = World(args)
        self.log = Log(args.log_mb)
        self.ticks = args.ticks
        self.api = answers.Api(st.Store())
        if args.kind != "volcano":  # nothing else is installed
            self.api.resources = [*st.CORE, self.world.jobs, *self.world.parts]
        self.shown = True  # show objects; otherwise lists are empty
        self.watches = collections.defaultdict(list)
        self.counts = collections.Counter()
        self.urls = []
        self.connections = self.most = 0

    async def connection(self, reader, writer):
        self.connections += 1
        self.most = max(self.most, self.connections)
        try:
            while await self.request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.connections -= 1
            writer.close()

    async def request(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split("\r\n", 1)[0].split(" ")
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        length = next((int(value) for name, value in fields.items() if name.lower() == "content-length"), 0)
        path, _, query = target.partition("?")
        req = Request(method, unquote(path), query, fields, await reader.readexactly(length))
        if path == "/bench":
            return await self.control(req, writer)
        if path == f"/api/v1/namespaces/{NAMESPACE}":
            return self.reply(writer, 200, json.dumps({"kind": "Namespace", "apiVersion": "v1",
                                                       "metadata": {"name": NAMESPACE, "uid": NAMESPACE_UID}}).encode())
        req.find_meaning(self.api.resources)
        self.counts[f"{req.verb} {req.resource.plural}{req.subresource}" if req.resource else "other"] += 1
        if req.verb in ("list", "watch"):
            self.urls.append(target)
        if req.subresource == "log":
            return await self.send_log(req, reader, writer)
        if req.verb == "watch":
            return await self.send_watch(req, reader, writer)
        return self.reply(writer, *self.answer(req))

    def answer(self, req):
        if req.verb == "list":
            return 200, self.page(req)
        if req.verb == "create":
            text = self.world.create(req)
            for watch in self.watches[req.resource]:
                self.tell(watch, text)
            return 201, text
        if req.verb == "delete" and req.resource is st.JOBS:
            self.delete(req.name)
        found = self.world.find(req.resource, req.name) if req.resource else None
        if found:
            return 200, found
        try:
            reply = self.api.answer(req)
        except replies.Reply as refusal:
            reply = refusal
        return reply.code, reply.body

    def delete(self, name):
        """Report a job and its pods as deleted to watches. Lists still contain it."""
        gone = [(st.PODS, f"{name}-main-{i}") for i in range(self.world.args.pods)] + [(st.JOBS, name)]
        for resource, which in gone:
            text = self.world.find(resource, which)
            for watch in self.watches[resource] if text else ():
                self.tell(watch, text, b"DELETED")

    def page(self, req):
        """Like answers.list_text, but objects are identified by numbers."""
        count = self.world.count(req.resource) if self.shown else 0
        begin = int(base64.b64decode(req.query["continue"] + "==")) if "continue" in req.query else 0
        end = min(count, begin + (req.number("limit") or count))
        meta = {"resourceVersion": str(VERSION)}
        if end < count:
            meta["continue"] = base64.b64encode(b"%d" % end).decode().rstrip("=")
        named = req.query.get("fieldSelector", "").partition("metadata.name=")[2]
        if named:  # the request for the pod that a log belongs to, sent once per log
            found = self.world.find(req.resource, named)
            meta, items = {"resourceVersion": str(VERSION)}, [found] if found else []
        else:
            items = [self.world.item(req.resource, i) for i in range(begin, end)]
        Item = collections.namedtuple("Item", "item")
        return answers.list_text(req.resource, [Item(item) for item in items], meta)

    @staticmethod
    def reply(writer, code, body):
        writer.write(b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                     % (code, len(body)) + body)
        return True

    @staticmethod
    def chunk(writer, data):
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))

    def tell(self, writer, text, what=b"ADDED"):
        self.chunk(writer, b'{"type":"%s","object":%s}\n' % (what, text))

    async def send_watch(self, req, reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        if not req.query.get("resourceVersion"):  # then the watch starts with all existing objects
            for i in range(self.world.count(req.resource) if self.shown else 0):
                self.tell(writer, self.world.text(req.resource, i))
        self.watches[req.resource].append(writer)
        try:
            await self.until_gone(req, reader, writer)
        finally:
            self.watches[req.resource].remove(writer)
        return False

    async def until_gone(self, req, reader, writer):
        """Wait until the client disconnects. Send it bookmarks as often as a real server does."""
        version = {"kind": req.resource.kind, "metadata": {"resourceVersion": str(VERSION)}}
        while True:
            try:
                return await asyncio.wait_for(reader.read(1), BOOKMARK_S)
            except asyncio.TimeoutError:
                self.tell(writer, json.dumps(version).encode(), b"BOOKMARK")

    async def send_log(self, req, reader, writer):
        stamped = req.flag("timestamps")
        begin = self.log.since(req.query.get("sinceTime")) if stamped else 0
        count = (self.log.size if stamped else self.log.printed) - begin
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
        if self.ticks:
            return await self.send_ticks(req, writer)
        if count:
            writer.write(b"%x\r\n" % count)
            await self.send_file(writer, self.log.file if stamped else self.log.plain, begin, count)
            writer.write(b"\r\n")
        if req.flag("follow"):
            await reader.read(1)  # until the client disconnects
            return False
        writer.write(b"0\r\n\r\n")
        return True

    async def send_ticks(self, req, writer):
        while True:
            at = time.time_ns()
            stamp = b"%s " % podlog.stamp(at).encode() if req.flag("timestamps") else b""
            self.chunk(writer, b"%s%d\n" % (stamp, at))
            await writer.drain()
            await asyncio.sleep(1 / self.ticks)

    async def send_file(self, writer, log, begin, count):
        with open(f"/proc/self/fd/{log.fileno()}", "rb") as file:
            try:
                await asyncio.get_running_loop().sendfile(writer.transport, file, begin, count)
            finally:
                self.counts["log bytes"] += file.tell() - begin

    async def control(self, req, writer):
        """Return the requests so far. With POST, hide (0) or show (1) the objects in lists, and
        notify watches."""
        if req.method == "POST":
            self.shown = req.body == b"1"
            for resource, watches in self.watches.items():
                for i in range(self.world.count(resource) if self.shown else 0):
                    for watch in watches:
                        self.tell(watch, self.world.text(resource, i))
        body = json.dumps({"counts": self.counts, "urls": self.urls, "connections": self.most,
                           "log": [self.log.size, self.log.printed]}).encode()
        return self.reply(writer, 200, body)


async def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for option, default in (("jobs", 0), ("pods", 1), ("wide", 0), ("finished", 0), ("log-mb", 0), ("ticks", 0)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--kind", default="volcano", choices=("volcano", "rayjob", *RECORDED))
    bulk = Server(parser.parse_args())
    server = await asyncio.start_server(bulk.connection, "127.0.0.1", 0, backlog=1024, limit=1 << 22)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # abort everything that is under way


if __name__ == "__main__":
    asyncio.run(main())
