# SPDX-License-Identifier: MIT
"""Measures mounts of a cluster, beside what else could be asked: the same server, with curl and kubectl.

The server (bulk_server.py) is a process of its own that answers from prepared bytes, so that it is
not what is measured. Logs come through nghttpx, with TLS and HTTP/2 as from a real API server.
"""

import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

import frontend
import harness
import kubeconfig
import pki

sys.path.append(str(harness.ROOT / "tests/cluster"))
import build as cluster_build  # noqa: E402

HERE = pathlib.Path(__file__).parent
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/test/jobs"
PODS = "/api/v1/namespaces/test/pods"
TOKEN = "Authorization: Bearer test-token"


APP = """
name: bench
roles:
- {name: worker, image: busybox, entrypoint: sleep, resource: {cpu: 1, gpu: 0, memMB: 64}}
"""


class Bulk:
    """The server's process; as `server` of kubeconfig.py and frontend.py."""

    host = "127.0.0.1"
    pki = None

    def __init__(self, **options):
        args = [arg for name, value in options.items() for arg in (f"--{name.replace('_', '-')}", str(value))]
        self.proc = harness.popen([sys.executable, str(HERE / "bulk_server.py"), *args],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.proc.stdout.readline())

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def request(self, method, path, body=None):
        conn = http.client.HTTPConnection(self.host, self.port, timeout=harness.LIMIT)
        with contextlib.closing(conn):
            conn.request(method, path, body)
            return conn.getresponse().read()

    def asked(self):
        return json.loads(self.request("GET", "/bench"))

    def show(self, objects):
        self.request("POST", "/bench", b"1" if objects else b"0")

    def close(self):
        self.proc.stdin.close()
        try:
            self.proc.wait(harness.LIMIT)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        self.proc.stdout.close()


def sockets(kx):
    found = 0
    for file in pathlib.Path(f"/proc/{kx.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found += os.readlink(file).startswith("socket:")
    return found


def memory(kx, what="VmRSS"):
    """KiB that the daemon uses (VmHWM: has used at most)."""
    text = pathlib.Path(f"/proc/{kx.pid}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", text)[1])


def cpu(kx):
    """Seconds of CPU that the daemon has used."""
    tasks = pathlib.Path(f"/proc/{kx.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def elapsed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def kubectl():
    """A kubectl: the one that the tests of a real cluster have built, else any; None."""
    built = sorted(cluster_build.cache_dir().glob("parts-*/kubectl"))
    return str(built[0]) if built else shutil.which("kubectl")


def lags(cmd, lines=40):
    """The median of how old the lines (times in ns) are that CMD prints, in seconds."""
    proc = harness.popen(cmd, stdout=subprocess.PIPE)
    try:
        ages = [-int(proc.stdout.readline()) + time.time_ns() for _ in range(lines)]
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()
    return statistics.median(ages[lines // 4:]) / 1e9


class Clusters:
    """The benchmarks; BENCH (tests/bench/run) has the arguments, and takes the figures."""

    def __init__(self, bench):
        self.bench = bench
        self.args = bench.args
        self.top = bench.top
        self.pki = pki.Pki(self.top / "pki")

    @contextlib.contextmanager
    def server(self, **options):
        server = Bulk(**options)
        try:
            yield server
        finally:
            server.close()

    @contextlib.contextmanager
    def mount(self, server, options="", start=True):
        config = kubeconfig.write(self.top / "config", kubeconfig.config(server))
        kx = harness.Kxfs(str(self.args.build / "fs/kxfs"), self.top, source="volcano:test",
                          options=",".join(filter(None, ["queue=default", options])),
                          env={"KUBECONFIG": str(config)})
        try:
            yield kx.start() if start else kx
        finally:
            wrong = kx.close()
            assert not wrong, "\n".join(wrong)

    def curl(self, urls, parallel=1, files=False):
        """Seconds that one curl needs for URLS; FILES: each into a file of its own, else nowhere."""
        out = self.top / "curl"
        out.mkdir()
        lines = ["silent", "fail", "globoff", f'header = "{TOKEN}"', f'cacert = "{self.pki.ca}"']
        for i, url in enumerate(urls):
            lines += [f'url = "{url}"', f'output = "{out / str(i) if files else "/dev/null"}"']
        config = self.top / "curl.config"
        config.write_text("\n".join(lines))
        more = ["--parallel", "--parallel-max", str(parallel)] if parallel > 1 else []
        try:
            return elapsed(lambda: harness.run(["curl", "-K", str(config), *more]))
        finally:
            harness.remove_tree(out)

    # --- reading and submitting ---

    def reads(self, server, kx):
        row, best = self.bench.row, self.bench.best
        job = kx / "jobs/job-00000"
        url = f"{server.url}{JOBS}/job-00000"
        n = 500
        asked = server.asked()["counts"]
        for file in ("state", "status", "manifest.yaml"):
            ours, theirs = best(self.bench.calls("read", job / file, 20 * n),
                                lambda: self.curl([url] * n) / n)
            row(f"read of {file}", ours * 1e6, "GET by curl, kept alive", theirs * 1e6, "us", limit=10)
        tool = kubectl()
        if tool:
            config = f"--kubeconfig={self.top / 'config'}"
            get = [tool, config, f"--cache-dir={self.top / 'kubectl'}", "get", "jobs.batch.volcano.sh", "job-00000",
                   "-o", "jsonpath={.status.state.phase}"]
            ours, theirs = best(self.bench.timed(["cat", str(job / "state")]), self.bench.timed(get))
            row("cat of state", ours * 1e3, "kubectl get", theirs * 1e3, "ms", limit=1)
        kept = server.asked()["counts"]
        assert all(kept[key] == asked[key] for key in ("list jobs", "list pods", "watch jobs", "watch pods"))

    def submits(self, server, kx):
        """Beside a POST of the same object, and the file kept for good, as a submission is first."""
        made = json.loads(server.request("GET", f"{JOBS}/{kx.submit(APP).id}"))
        made["metadata"] = {key: made["metadata"][key] for key in ("name", "labels", "annotations")
                            if key in made["metadata"]}
        source, kept = self.top / "app.yaml", self.top / "kept.yaml"
        source.write_text(APP)
        conn = http.client.HTTPConnection(server.host, server.port, timeout=harness.LIMIT)
        number = itertools.count()
        n = 20

        def post():
            with open(kept, "w") as file:
                file.write(APP)
                os.fsync(file.fileno())
            made["metadata"]["name"] = f"posted-{next(number)}"
            conn.request("POST", f"{JOBS}?fieldValidation=Strict", json.dumps(made),
                         {"Content-Type": "application/json"})
            assert conn.getresponse().read()

        def copy_and_post():
            harness.run(["cp", str(source), str(kept)])
            post()

        calls = (lambda: kx.write(f"submit/{next(number)}.yaml", APP), post,
                 lambda: harness.run(["cp", str(source), str(kx / f"submit/{next(number)}.yaml")]),
                 copy_and_post)
        with contextlib.closing(conn):
            ours, post, cp, plain = (t / n * 1e3 for t in self.bench.best(
                *(lambda call=call: elapsed(lambda: [call() for _ in range(n)]) for call in calls)))
        self.bench.row("submit (open, write, close)", ours, "fsync, POST", post, "ms", goal=1.5, limit=15)
        self.bench.row("submit with cp", cp, "cp, fsync, POST", plain, "ms", limit=15)

    def small(self):
        with self.server(jobs=1) as server, self.mount(server) as kx:
            self.reads(server, kx)
            self.submits(server, kx)

    # --- many ---

    def starts(self, server, kx):
        """Seconds of a start, and of curl for the pages that it asks for; seconds of CPU. KX runs in the end."""
        rounds = []
        for _ in range(min(self.args.rounds, 3)):
            if rounds:
                kx.end()
            begin = len(server.asked()["urls"])
            ours = elapsed(kx.start)
            used = cpu(kx)
            pages = [url for url in server.asked()["urls"][begin:] if "watch=" not in url]
            rounds.append((ours, self.curl([server.url + url for url in pages]), used))
        return [min(values) for values in zip(*rounds)]

    def many(self, static):
        n = self.args.jobs
        with self.server(jobs=n, pods=2) as server, self.mount(server, start=False) as kx:
            server.show(False)
            kx.start()
            empty = memory(kx)
            kx.end()
            server.show(True)
            ours, theirs, used = self.starts(server, kx)
            assert len(kx.ls("jobs")) == n
            self.bench.row(f"start, {n} jobs, {2 * n} pods", ours, "curl of the lists", theirs, "s", goal=1.5, limit=15)
            self.bench.note("CPU of it", used, "s")
            self.bench.note("memory a job with 2 pods", (memory(kx) - empty) / n, "KiB", goal=5, limit=30)
            self.bench.note("at most, while starting", memory(kx, "VmHWM") / 1024, "MiB", goal=64 if n >= 10000 else None,
                            limit=50 + n * 0.03)
            if static:
                ours, theirs = self.bench.best(self.bench.timed(["ls", "-l", str(kx / "jobs")]),
                                               self.bench.timed(["ls", "-l", str(static / "dir")]))
                self.bench.row(f"ls -l of {n} jobs", ours * 1e3, "static tree", theirs * 1e3, "ms", goal=1.5, limit=30)
            hourly = self.hourly(*self.idle(server, kx, f"{n} jobs"))
            self.bench.note("requests an hour, idle", hourly, "", limit=1500)

    def idle(self, server, kx, what):
        """What is asked for and used when nothing happens, once all that had happened is dealt with."""
        def is_quiet():
            used = cpu(kx)
            time.sleep(1)
            return cpu(kx) - used < 0.05

        harness.wait_for(is_quiet, what="an idle mount")
        before, used = server.asked(), cpu(kx)
        time.sleep(self.args.idle)
        after, used = server.asked(), cpu(kx) - used
        self.bench.note(f"CPU, idle, {what}", 100 * used / self.args.idle, "%", limit=5)
        return before, after

    def hourly(self, before, after):
        """Requests an hour: each watch lasts as long as it asked for; what else came, as it was counted."""
        lasts = [int(re.search(r"timeoutSeconds=(\d+)", url)[1]) for url in after["urls"] if "watch=" in url][-2:]
        counted = sum(after["counts"].values()) - sum(before["counts"].values())
        return counted * 3600 / self.args.idle + sum(3600 / seconds for seconds in lasts)

    def wide(self):
        n = self.args.tasks
        with self.server(wide=n) as server, self.mount(server, start=False) as kx:
            ours, theirs, used = self.starts(server, kx)
            assert len(kx.ls("jobs", "wide", "logs")) == n
            self.bench.row(f"start, one job of {n} tasks", ours, "curl of the lists", theirs, "s", goal=1.3, limit=20)
            self.bench.note("CPU of it", used, "s")
            self.bench.note("at most, while starting", memory(kx, "VmHWM") / 1024, "MiB", limit=200)

    # --- logs ---

    @contextlib.contextmanager
    def streams(self, n, **options):
        """A mount that captures the logs of N pods, which are not there yet: (server, front, mount)."""
        with self.server(jobs=n, **options) as server, \
                frontend.Http2Frontend(server, self.pki, self.top) as front:
            front.pki = self.pki
            server.show(False)
            with self.mount(front, "capture=all") as kx:
                watches = ("watch jobs", "watch pods")
                harness.wait_for(lambda: all(server.asked()["counts"].get(key) for key in watches))
                yield server, front, kx

    def sizes(self, kx, n):
        """Of the logs of all pods, 0 for what is not there yet."""
        found = []
        for i in range(n):
            try:
                found.append(os.stat(kx / f"jobs/job-{i:05}/main-0/log").st_size)
            except FileNotFoundError:
                found.append(0)
        return found

    def quiet_streams(self):
        n = self.args.streams
        with self.streams(n) as (server, _, kx):
            base = memory(kx)
            printed = server.asked()["log"][1]
            server.show(True)
            harness.wait_for(lambda: self.sizes(kx, n) == [printed] * n, what="all logs", step=0.5)
            self.bench.note(f"memory a stream of {n}, and its job", (memory(kx) - base) / n, "KiB", goal=40, limit=200)
            self.bench.note(f"connections for {n} streams", sockets(kx), "", limit=n / 90 + 15)
            before, after = self.idle(server, kx, f"{n} streams")
            asked = sum(after["counts"].values()) - sum(before["counts"].values())
            self.bench.note(f"requests of them in {self.args.idle:g} s", asked, "", limit=20)

    def busy_round(self, n, log_mb):
        """Seconds until N logs of LOG_MB are there; those of one curl; bytes sent for one kept; CPU for a GiB."""
        with self.streams(n, log_mb=log_mb) as (server, front, kx):
            size, printed = server.asked()["log"]
            begin, used = time.perf_counter(), cpu(kx)
            server.show(True)
            harness.wait_for(lambda: self.sizes(kx, n) == [printed] * n, what="all logs", step=0.02)
            ours, used = time.perf_counter() - begin, cpu(kx) - used
            sent = server.asked()["counts"]["log bytes"]
            kx.end()
            theirs = self.curl([f"{front.url}{PODS}/job-{i:05}-main-0/log?container=main&timestamps=true"
                                for i in range(n)], parallel=n, files=True)
        return ours, theirs, sent / (n * size), used / (n * size) * 2**30

    def busy_streams(self, n, log_mb, ratio, seconds, goal_seconds=None):
        """RATIO to the time of curl, and SECONDS of CPU for a GiB, are the limits."""
        rounds = [self.busy_round(n, log_mb) for _ in range(min(self.args.rounds, 3))]
        ours, theirs, sent, used = (min(values) for values in zip(*rounds))
        self.bench.row(f"{n} logs of {log_mb} MiB", ours, "curl, to files", theirs, "s", goal=1.2, limit=ratio)
        self.bench.note("bytes sent for one that is kept", sent, "", goal=1.2, limit=5)
        self.bench.note("CPU for a GiB of it", used, "s", goal=goal_seconds, limit=seconds)

    def lag(self):
        """From when a program prints to when a reader has it, through `follow` and through curl."""
        with self.streams(1, ticks=20) as (server, front, kx):
            server.show(True)
            harness.wait_for(lambda: self.sizes(kx, 1)[0] > 0, what="the first line")
            curl = ["curl", "-sNH", TOKEN, "--cacert", str(self.pki.ca),
                    f"{front.url}{PODS}/job-00000-main-0/log?container=main&follow=true"]
            ours, theirs = (lags(cmd) for cmd in (["cat", str(kx / "jobs/job-00000/main-0/follow")], curl))
            self.bench.row("lag of a line", ours * 1e3, "curl", theirs * 1e3, "ms", goal=1.2, limit=100)

    def run(self, static=None):
        self.small()
        self.many(static)
        self.wide()
        self.quiet_streams()
        self.lag()
        self.busy_streams(1, self.args.stream_mb, ratio=10, seconds=20, goal_seconds=2)
        self.busy_streams(50, max(self.args.stream_mb // 50, 1), ratio=15, seconds=60)
