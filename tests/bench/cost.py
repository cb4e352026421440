#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cost of a mount for the API server, compared with kubectl: bytes and requests, at the start
and per hour. The namespace is busy, and a small part of it is this user's.

Run as a program, this is that server: 100 jobs with 10 pods each, of which the first job is this
user's. Its objects are those of a recorded run of a real Volcano job. Each POST lets a minute pass:
each pod changes once, and its job, group and events change as often as in that run."""

import asyncio
import collections
import contextlib
import itertools
import json
import os
import pathlib
import pwd
import re
import subprocess
import sys
from urllib.parse import parse_qsl

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("mount", "replay", "bench")]
import clusters  # noqa: E402
import harness  # noqa: E402
import kubeconfig  # noqa: E402
import recordings  # noqa: E402
import store as st  # noqa: E402
from figures import Figure  # noqa: E402

JOBS, PODS = 100, 10
MINUTES = 3  # measured minutes
# seconds of a watch whose client sets no timeout: the server chooses half an hour to an hour
WATCHED = 2700
FILES = {"jobs": ("volcano-jobs", st.JOBS), "pods": ("pods", st.PODS), "podgroups": ("podgroups", st.PODGROUPS),
         "events": ("events", st.EVENTS)}
USER = pwd.getpwuid(os.getuid()).pw_name  # the value of the label on this user's jobs
LABEL = "kxfs/user"


# --- the server ---

class Sort:
    """The objects of a resource: copies of the last one in the recording, with other names."""

    def __init__(self, name, pods_told):
        file, self.resource = FILES[name]
        lines = recordings.parts("success")[file]
        self.tree = json.loads(lines[-1])["object"]
        self.rate = len(lines) / pods_told  # number of events per event of a pod
        self.count = {"jobs": JOBS, "podgroups": JOBS, "pods": JOBS * PODS}.get(name, 0)

    def job_of(self, i):
        return i // PODS if self.resource is st.PODS else i % JOBS

    def item(self, i, minute):
        """Return the I-th object, as it is in this minute."""
        job, tree = self.job_of(i), dict(self.tree)
        owner = {"apiVersion": st.JOBS.api_version, "kind": "Job", "name": f"job-{job}", "uid": f"job-{job}",
                 "controller": True}
        labels = {LABEL: USER if job == 0 else f"user-{job}"}
        meta = tree["metadata"] = {**tree["metadata"], "namespace": "test", "resourceVersion": str(1000 + minute)}
        name = {st.JOBS: f"job-{job}", st.PODS: f"job-{job}-trainer-{i % PODS}-0", st.PODGROUPS: f"job-{job}-group",
                st.EVENTS: f"event-{minute}-{i}"}[self.resource]
        meta.update(name=name, uid=name)
        if self.resource is st.EVENTS:
            tree["involvedObject"] = {**tree["involvedObject"], "name": f"job-{job}", "uid": f"job-{job}"}
        else:
            meta["labels"] = {**meta.get("labels", {}), **labels}
        if self.resource in (st.PODS, st.PODGROUPS):
            meta["ownerReferences"] = [owner]
        if self.resource is st.PODS:
            meta["labels"]["volcano.sh/job-name"] = f"job-{job}"
            tree["status"] = {**tree["status"], "phase": "Pending" if minute % 2 else "Running"}
        return tree


class Server:
    def __init__(self):
        recorded = len(recordings.parts("success")["pods"])
        self.sorts = {name: Sort(name, recorded) for name in FILES}
        self.minute = 0
        self.watches = []  # (name of the resource, whether it is limited to this user, writer)
        self.sent = collections.Counter()
        self.received = self.requests = self.told = 0
        self.lasts = []  # seconds of each watch

    async def connection(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self.request(reader, writer):
                pass
        writer.close()

    def send(self, writer, what, data):
        self.sent[what] += len(data)
        writer.write(data)

    async def request(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        target = head.split(b" ")[1].decode()
        path, _, query = target.partition("?")
        query = dict(parse_qsl(query))
        length = re.search(rb"content-length: (\d+)", head, re.I)
        await reader.readexactly(int(length[1]) if length else 0)
        if path == "/minute":
            return self.reply(writer, "", self.pass_minute())
        if path == "/cost":
            return self.reply(writer, "", {"sent": self.sent, "received": self.received, "requests": self.requests,
                                           "told": self.told, "lasts": self.lasts, "watches": len(self.watches)})
        self.requests += 1
        self.received += len(head)
        name = path.rpartition("/")[2]
        if path == "/apis":
            group, _, version = st.JOBS.api_version.partition("/")
            return self.reply(writer, name, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                {"name": group, "versions": [{"groupVersion": st.JOBS.api_version, "version": version}]}]})
        if path == f"/apis/{st.JOBS.api_version}":
            return self.reply(writer, name, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": st.JOBS.api_version,
                                             "resources": [{"name": "jobs", "kind": "Job", "namespaced": True,
                                                            "verbs": ["get", "list", "watch", "create", "delete", "patch"]}]})
        if "watch" in query:
            return await self.watch(reader, writer, name, query)
        return self.reply(writer, name, self.page(name, query))

    def reply(self, writer, what, tree):
        body = json.dumps(tree, separators=(",", ":")).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.send(writer, what, head + body)
        return True

    def page(self, name, query):
        sort = self.sorts.get(name)
        count = sort.count if sort else 0
        chosen = [i for i in range(count) if LABEL not in query.get("labelSelector", "") or sort.job_of(i) == 0]
        begin = int(query.get("continue", 0))
        end = min(len(chosen), begin + int(query.get("limit", len(chosen) or 1)))
        more = {"continue": str(end)} if end < len(chosen) else {}
        return {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": str(1000 + self.minute), **more},
                "items": [sort.item(i, self.minute) for i in chosen[begin:end]]}

    def event(self, writer, name, kind, tree):
        line = json.dumps({"type": kind, "object": tree}, separators=(",", ":")).encode() + b"\n"
        self.send(writer, name, b"%x\r\n%s\r\n" % (len(line), line))

    async def watch(self, reader, writer, name, query):
        self.send(writer, name, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                b"Transfer-Encoding: chunked\r\n\r\n")
        self.lasts.append(int(query.get("timeoutSeconds", 0)))
        watch = (name, LABEL in query.get("labelSelector", ""), writer)
        self.watches.append(watch)
        try:
            await reader.read(1)  # until the client disconnects
        finally:
            self.watches.remove(watch)
        return False

    def pass_minute(self):
        self.minute += 1
        for name, mine, writer in self.watches:
            sort = self.sorts.get(name)
            for i in range(round(JOBS * PODS * sort.rate) if sort else 0):
                if mine and sort.job_of(i) != 0:
                    continue
                kind = "ADDED" if sort.resource is st.EVENTS else "MODIFIED"
                self.event(writer, name, kind, sort.item(i, self.minute))
                self.told += 1
            self.event(writer, name, "BOOKMARK", {"kind": sort.resource.kind if sort else "Queue", "metadata": {
                "resourceVersion": str(1000 + self.minute)}})
        return {}


async def serve():
    server = await asyncio.start_server(Server().connection, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # abort everything that is under way


# --- the clients ---

class Process(clusters.Server):
    """The server's process."""

    def cost(self):
        cost = json.loads(self.request("GET", "/cost"))
        cost["sent"].pop("", None)  # what this test requested
        return cost


class Cost:
    """The benchmarks. BENCH (tests/bench/run) has the build and a directory, and collects the
    figures."""

    def __init__(self, bench):
        self.bench = bench
        self.number = itertools.count()

    @contextlib.contextmanager
    def mounted(self, server, options):
        config = kubeconfig.write(self.bench.top / f"cost-{next(self.number)}", kubeconfig.config(server))
        options = ",".join(filter(None, ["queue=default", options]))
        with self.bench.mount("volcano:test", options, {"KUBECONFIG": str(config)}) as kx:
            yield lambda: int(re.search(r"^kxfs_watch_events_total (\d+)", kx.read(".kxfs", "metrics"), re.M)[1])

    @contextlib.contextmanager
    def watched(self, server, _options):
        """Make the requests of `kubectl get pods -w -o name`: a list and a watch of whole objects.
        This server has no other form."""
        config = kubeconfig.write(self.bench.top / f"cost-{next(self.number)}", kubeconfig.config(server))
        out = self.bench.top / "cost-kubectl"
        get = [clusters.kubectl(), f"--kubeconfig={config}", "get", "--raw"]
        harness.run([*get, f"{clusters.PODS}?limit=500"], stdout=subprocess.DEVNULL)
        harness.run([*get, f"{clusters.PODS}?limit=500&continue=500"], stdout=subprocess.DEVNULL)
        with open(out, "wb") as file:
            proc = harness.popen([*get, f"{clusters.PODS}?watch=1&timeoutSeconds={WATCHED}"], stdout=file)
        try:
            yield lambda: out.read_bytes().count(b'"type":"MODIFIED"')
        finally:
            proc.kill()
            proc.wait()

    def measure(self, what, use, options="", watches=5):
        """Measure one user's cost: the start, and an hour, which is extrapolated from MINUTES and
        the watch renewals."""
        server = Process(__file__)
        try:
            with use(server, options) as told:
                harness.wait_for(lambda: server.cost()["watches"] >= watches, what="all watches")
                start, known = server.cost(), told()
                for _ in range(MINUTES):
                    server.request("GET", "/minute")
                    wanted = known + server.cost()["told"]
                    harness.wait_for(lambda wanted=wanted: told() >= wanted, what="the news")
                self.notes(what, start, server.cost())
        finally:
            server.close()

    def notes(self, what, start, end):
        def note(name, value, unit):
            self.bench.figures.take(Figure(name, unit, value))

        renewed = sum(3600 / seconds for seconds in start["lasts"] if seconds)
        assert end["requests"] == start["requests"], "something was asked for besides"
        hourly = {name: 60 / MINUTES * (sent - start["sent"].get(name, 0)) for name, sent in end["sent"].items()}
        asked = start["received"] / start["requests"]  # bytes per request
        note(f"{what}: start", sum(start["sent"].values()) / 2**20, "MiB")
        note("requests of it", start["requests"], "")
        note(f"{what}: an hour", (sum(hourly.values()) + renewed * asked) / 2**20, "MiB")
        for name in FILES:
            if hourly.get(name):
                note(f"of these {name}", hourly[name] / 2**20, "MiB")
        note("requests of it", renewed, "an hour")

    def run(self):
        self.measure("a mount of all", self.mounted)
        self.measure("a mount with mine", self.mounted, "mine")
        if clusters.kubectl():
            self.measure("kubectl get pods -w", self.watched, watches=1)


if __name__ == "__main__":
    asyncio.run(serve())
