# SPDX-License-Identifier: MIT
"""Measures mounts of a cluster, compared with curl and kubectl on the same server.

The server (bulk_server.py) is a separate process that replies with prepared bytes, so that it is
not what is measured. Logs pass through nghttpx, with TLS and HTTP/2 as from a real API server."""

import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time

import frontend
import harness
import kubeconfig
from figures import Figure

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


class Server:
    """The process of a server, used as `server` of kubeconfig.py and frontend.py. PROGRAM prints its
    port, and ends when its stdin is closed."""

    host = "127.0.0.1"
    pki = None

    def __init__(self, program, *args):
        self.proc = harness.popen([sys.executable, str(program), *args],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.proc.stdout.readline())
        self.url = f"http://{self.host}:{self.port}"

    def request(self, method, path, body=None):
        conn = http.client.HTTPConnection(self.host, self.port, timeout=harness.LIMIT)
        with contextlib.closing(conn):
            conn.request(method, path, body)
            return conn.getresponse().read()

    def close(self):
        self.proc.stdin.close()
        try:
            self.proc.wait(harness.LIMIT)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        self.proc.stdout.close()


class Bulk(Server):
    """The process of bulk_server.py."""

    def __init__(self, **options):
        words = [(f"--{name.replace('_', '-')}", str(value)) for name, value in options.items()]
        super().__init__(HERE / "bulk_server.py", *itertools.chain(*words))

    def asked(self):
        return json.loads(self.request("GET", "/bench"))

    def show(self, objects):
        self.request("POST", "/bench", b"1" if objects else b"0")


def descriptors(kx, kind=""):
    """Return the number of the daemon's open descriptors of a KIND ("socket:")."""
    found = 0
    for file in pathlib.Path(f"/proc/{kx.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found += os.readlink(file).startswith(kind)
    return found


def memory(kx, what="VmRSS"):
    """Return the KiB that the daemon uses (VmHWM: its maximum)."""
    text = pathlib.Path(f"/proc/{kx.pid}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", text)[1])


def cpu(kx):
    """Return the CPU seconds that the daemon has used."""
    tasks = pathlib.Path(f"/proc/{kx.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def children_cpu():
    """Return the CPU seconds of the child processes that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def settle(kx):
    """Wait until everything that happened was processed, also on disk."""
    def is_quiet():
        used = cpu(kx)
        time.sleep(1)
        return cpu(kx) - used < 0.05

    harness.wait_for(is_quiet, what="an idle mount")


def elapsed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def kubectl():
    """Return a kubectl: that of the tests with a real cluster, else any in PATH, or None."""
    built = sorted(cluster_build.cache_dir().glob("parts-*/kubectl"))
    return str(built[0]) if built else shutil.which("kubectl")


def lags(cmd, lines=40, env=None):
    """Return the median age, in seconds, of the lines that CMD prints. Each line is a time in ns."""
    proc = harness.popen(cmd, stdout=subprocess.PIPE, env=env or {})
    try:
        ages = [-int(proc.stdout.readline()) + time.time_ns() for _ in range(lines)]
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()
    return statistics.median(ages[lines // 4:]) / 1e9


class Clusters:
    """The benchmarks. BENCH (tests/bench/run) has the arguments, and collects the figures."""

    def __init__(self, bench):
        self.bench = bench
        self.args = bench.args
        self.top = bench.top
        self.measure = bench.figures.measure
        self.take = bench.figures.take
        self.number = itertools.count()  # for unique names

    @contextlib.contextmanager
    def server(self, **options):
        server = Bulk(**options)
        try:
            yield server
        finally:
            server.close()

    def front(self, server):
        """Return a proxy with TLS and HTTP/2 in front of SERVER."""
        return frontend.Http2Frontend(server, self.bench.pki, self.top)

    def mount(self, server, options="", start=True, kind="volcano"):
        config = kubeconfig.write(self.top / "config", kubeconfig.config(server))
        queue = "queue=default" if kind == "volcano" else ""
        return self.bench.mount(f"{kind}:test" if kind else "test", ",".join(filter(None, [queue, options])),
                                {"KUBECONFIG": str(config)}, start)

    def curl(self, urls, parallel=1, files=False):
        """Return the seconds that one curl needs for URLS. FILES: write each to its own file,
        otherwise discard them."""
        out = self.top / "curl"
        out.mkdir()
        lines = ["silent", "fail", "globoff", f'header = "{TOKEN}"', f'cacert = "{self.bench.pki.ca}"']
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

    def small(self):
        with self.server(jobs=1) as server, self.mount(server) as kx:
            asked = server.asked()["counts"]
            for file in ("state", "status", "manifest.yaml"):
                self.measure(self.read, kx / "jobs/job-00000" / file, f"{server.url}{JOBS}/job-00000")
            kept = server.asked()["counts"]
            assert all(kept[key] == asked[key] for key in ("list jobs", "list pods", "watch jobs", "watch pods"))
            self.measure(self.submits, server, kx)

    def read(self, path, url):
        """Compare reading a file with the same bytes in the static tree, and with the alternatives."""
        n = 500
        copy = self.bench.static / path.name
        copy.write_bytes(path.read_bytes())
        ours, tree, theirs = (t * 1e6 for t in self.bench.best(
            *(self.bench.calls("read", file, 20 * n) for file in (path, copy)), lambda: self.curl([url] * n) / n))
        what = f"read of {path.name} of a cluster's job"
        return [Figure(what, "us", ours, 1.5, "static tree", tree),
                Figure(what, "us", ours, None, "GET by curl, kept alive", theirs)]

    @staticmethod
    def made(server, kx):
        """Return the object that kxfs makes of APP, as a tree that can be posted with another name."""
        made = json.loads(server.request("GET", f"{JOBS}/{kx.submit(APP).id}"))
        kept = ("name", "labels", "annotations")
        return {**made, "metadata": {key: made["metadata"][key] for key in kept if key in made["metadata"]}}

    def submits(self, server, kx):
        """Compare a submission with its unavoidable parts: the same requests to a tree in memory, a
        new file that is synced with its name (which a submission does first), and a POST of the
        same object. Each of the three is measured separately."""
        made = self.made(server, kx)
        source, kept = self.top / "app.yaml", self.top / "kept"
        kept.mkdir(exist_ok=True)
        source.write_text(APP)
        conn = http.client.HTTPConnection(server.host, server.port, timeout=harness.LIMIT)
        n = 20

        def write(folder):
            (folder / f"{next(self.number)}.yaml").write_text(APP)

        def copy(folder):
            harness.run(["cp", str(source), str(folder / f"{next(self.number)}.yaml")])

        def keep_and_post():
            with open(kept / f"{next(self.number)}.yaml", "w") as file:
                file.write(APP)
                os.fsync(file.fileno())
            folder = os.open(kept, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(folder)
            os.close(folder)
            made["metadata"]["name"] = f"posted-{next(self.number)}"
            conn.request("POST", f"{JOBS}?fieldValidation=Strict", json.dumps(made),
                         {"Content-Type": "application/json"})
            assert conn.getresponse().read()

        submit, tree = kx / "submit", self.bench.static / "submit"
        calls = (keep_and_post, lambda: write(submit), lambda: write(tree), lambda: copy(submit), lambda: copy(tree))
        with contextlib.closing(conn):
            post, ours, requests, cp, cp_requests = (t / n * 1e3 for t in self.bench.best(
                *(lambda call=call: elapsed(lambda: [call() for _ in range(n)]) for call in calls)))
        return [Figure("submit (open, write, close)", "ms", ours, 2, "tree, fsync, POST", requests + post),
                Figure("submit with cp", "ms", cp, 2, "cp to tree, fsync, POST", cp_requests + post)]

    # --- many jobs ---

    def starts(self, server, kx, what, goal):
        """Compare a start with curl for the same pages. At the end KX is running."""
        rounds = []
        for _ in range(min(self.args.rounds, 3)):
            if kx.proc:
                kx.end()
            begin = len(server.asked()["urls"])
            ours = elapsed(kx.start)
            used = cpu(kx)
            pages = [url for url in server.asked()["urls"][begin:] if "watch=" not in url]
            rounds.append((ours, self.curl([server.url + url for url in pages]), used))
        ours, theirs, used = (min(values) for values in zip(*rounds))
        return [Figure(f"start, {what}", "s", ours, goal, "curl of the lists", theirs), Figure("CPU of it", "s", used)]

    def many(self):
        n = self.args.jobs
        with self.server(jobs=n, pods=2) as server, self.mount(server, start=False) as kx:
            server.show(False)
            kx.start()
            empty = memory(kx)
            server.show(True)
            self.measure(self.starts, server, kx, f"{n} jobs, {2 * n} pods", 1.5)
            assert len(kx.ls("jobs")) == n
            self.take(Figure("memory a job with 2 pods", "KiB", (memory(kx) - empty) / n, 5),
                      Figure("at most, while starting", "MiB", memory(kx, "VmHWM") / 1024, 64))
            self.measure(self.listing, kx)
            self.measure(self.idle_jobs, server, kx)

    def of_kind(self, kind, pods=1):
        """Mount as many jobs of this KIND with PODS pods each. Return (seconds to start, KiB per
        job)."""
        n = self.args.jobs
        with self.server(jobs=n, pods=pods, kind=kind) as server, self.mount(server, start=False, kind=kind) as kx:
            server.show(False)
            kx.start()
            empty, times = memory(kx), []
            server.show(True)
            for _ in range(min(self.args.rounds, 3)):
                kx.end()
                times.append(elapsed(kx.start))
            assert len(kx.ls("jobs")) == n
            assert kx.read("jobs", "job-00000", "state") == "RUNNING\n", "it has its pod"
            return min(times), (memory(kx) - empty) / n

    def batch(self):
        """Compare Kubernetes Jobs, of which clusters have many small ones, with JobSets."""
        (ours, a_job), (theirs, a_jobset) = (self.of_kind(kind) for kind in ("job", "jobset"))
        return [Figure(f"start, {self.args.jobs} Jobs with one pod each", "s", ours, 1.2, "JobSets", theirs),
                Figure("memory a Job with one pod", "KiB", a_job, 1.2, "a JobSet", a_jobset)]

    def chains(self):
        """Compare RayJobs, whose pods belong to a RayCluster, with JobSets."""
        (ours, a_rayjob), (theirs, a_jobset) = (self.of_kind(kind, pods=2) for kind in ("rayjob", "jobset"))
        n = self.args.jobs
        return [Figure(f"start, {n} RayJobs with 2 pods and a cluster each", "s", ours, 1.3, "JobSets", theirs),
                Figure("memory a RayJob with 2 pods and a cluster", "KiB", a_rayjob, 1.5, "a JobSet with 2 pods", a_jobset)]

    def all_kinds(self):
        """Compare a mount of all kinds with one of Jobs, on a server that has only Jobs. The former
        first requests which kinds exist."""
        n = self.args.jobs

        def start(kx):
            seconds = elapsed(kx.start)
            assert len(kx.ls("jobs")) == n
            kx.end()
            return seconds

        with self.server(jobs=n, kind="job") as server, self.mount(server, start=False, kind="") as kx, \
                self.mount(server, start=False, kind="job") as other:
            ours, theirs = self.bench.best(lambda: start(kx), lambda: start(other))
        return [Figure(f"start of all kinds, {n} Jobs with one pod each", "s", ours, 1.3, "of Jobs alone", theirs)]

    def listing(self, kx):
        ours, theirs = self.bench.best(self.bench.timed(["ls", "-l", str(kx / "jobs")]),
                                       self.bench.timed(["ls", "-l", str(self.bench.static / "dir")]))
        return [Figure(f"ls -l of {self.args.jobs} running jobs", "ms", ours * 1e3, 1.5, "static tree", theirs * 1e3)]

    def idle(self, server, kx):
        """Return the usage while nothing happens, after everything was processed: % of a core,
        request counts before and after."""
        settle(kx)
        before, used = server.asked(), cpu(kx)
        time.sleep(self.args.idle)
        after, used = server.asked(), cpu(kx) - used
        return 100 * used / self.args.idle, before, after

    def idle_jobs(self, server, kx):
        """Return requests per hour. Each watch lasts as long as it requested. Other requests are
        counted."""
        used, before, after = self.idle(server, kx)
        lasts = [int(re.search(r"timeoutSeconds=(\d+)", url)[1]) for url in after["urls"] if "watch=" in url][-2:]
        counted = sum(after["counts"].values()) - sum(before["counts"].values())
        hourly = counted * 3600 / self.args.idle + sum(3600 / seconds for seconds in lasts)
        return [Figure(f"CPU, idle, {self.args.jobs} jobs", "%", used, 0.5),
                Figure("requests an hour, idle", "", hourly, 30)]

    def wide(self):
        n = self.args.tasks
        with self.server(wide=n) as server, self.mount(server, start=False) as kx:
            self.measure(self.starts, server, kx, f"one job of {n} tasks", 1.3)
            assert len(kx.ls("jobs", "wide", "logs")) == n
            self.take(Figure("at most, while starting", "MiB", memory(kx, "VmHWM") / 1024, 64))

    # --- logs ---

    @contextlib.contextmanager
    def streams(self, n, **options):
        """Yield a mount that captures the logs of N pods, which do not exist yet: (server, front,
        mount)."""
        with self.server(jobs=n, **options) as server, self.front(server) as front:
            server.show(False)
            with self.mount(front, "capture=all") as kx:
                watches = ("watch jobs", "watch pods")
                harness.wait_for(lambda: all(server.asked()["counts"].get(key) for key in watches))
                yield server, front, kx

    @staticmethod
    def sizes(kx, n):
        """Return the sizes of the logs of all pods, 0 for missing ones."""
        found = []
        for i in range(n):
            try:
                found.append(os.stat(kx / f"jobs/job-{i:05}/main-0/log").st_size)
            except FileNotFoundError:
                found.append(0)
        return found

    def captured(self, server, kx, n, step=0.02):
        """Show the pods. Return the seconds until their N logs are there."""
        printed = server.asked()["log"][1]

        def capture():
            server.show(True)
            harness.wait_for(lambda: self.sizes(kx, n) == [printed] * n, what="all logs", step=step)

        return elapsed(capture)

    def quiet_streams(self):
        n = self.args.streams
        with self.streams(n) as (server, _, kx):
            base = memory(kx)
            self.captured(server, kx, n, step=0.5)
            self.take(Figure(f"memory a stream of {n}, and its job", "KiB", (memory(kx) - base) / n, 40),
                      Figure(f"connections for {n} streams", "", descriptors(kx, "socket:"), n // 100 + 5))
            self.measure(self.idle_streams, server, kx)

    def idle_streams(self, server, kx):
        used, before, after = self.idle(server, kx)
        asked = sum(after["counts"].values()) - sum(before["counts"].values())
        return [Figure(f"CPU, idle, {self.args.streams} streams", "%", used, 0.5),
                Figure(f"requests of them in {self.args.idle:g} s", "", asked, 5)]

    def busy_round(self, n, log_mb):
        """Return: seconds until N logs of LOG_MB are there, the same for one curl, bytes sent per
        byte kept, CPU per GiB, curl's CPU."""
        with self.streams(n, log_mb=log_mb) as (server, front, kx):
            size = n * server.asked()["log"][0]
            used = cpu(kx)
            ours = self.captured(server, kx, n)
            used = cpu(kx) - used
            sent = server.asked()["counts"]["log bytes"]
            kx.end()
            before = children_cpu()
            theirs = self.curl([f"{front.url}{PODS}/job-{i:05}-main-0/log?container=main&timestamps=true"
                                for i in range(n)], parallel=n, files=True)
            theirs_used = children_cpu() - before
        return ours, theirs, sent / size, used / size * 2**30, theirs_used / size * 2**30

    def busy_round_that_ends(self, n, log_mb):
        """Run busy_round. Repeat it if curl hangs, as version 7.88 sometimes does with many
        parallel transfers."""
        try:
            return self.busy_round(n, log_mb)
        except subprocess.TimeoutExpired:
            return self.busy_round(n, log_mb)

    def busy_streams(self, n, log_mb, cpu_goal=None):
        rounds = [self.busy_round_that_ends(n, log_mb) for _ in range(min(self.args.rounds, 3))]
        ours, theirs, sent, used, theirs_used = (min(values) for values in zip(*rounds))
        what = f"{n} log{'s' if n > 1 else ''} of {log_mb} MiB"
        return [Figure(what, "s", ours, 1.2, "curl, to files", theirs),
                Figure("bytes sent for one that is kept", "", sent, 1.2),
                Figure("CPU for a GiB of it", "s", used, cpu_goal, "curl, to files", theirs_used)]

    def archive_round(self, n, log_mb, archive):
        """Return the CPU seconds of `kxfs capture` per GiB of N logs, from start to end. ARCHIVE:
        including archiving."""
        place = self.top / f"capture-{next(self.number)}"
        state, logs = place / "state", place / "archive"
        state.mkdir(mode=0o700, parents=True)
        logs.mkdir()
        options = f"state={state},grace=300s" + (f",archive={logs}" if archive else "")

        def kept():
            return sum(log.stat().st_size for log in logs.glob("test/2*/*/main-0/log"))

        with self.server(jobs=n, log_mb=log_mb, finished=1) as server, self.front(server) as front:
            server.show(False)
            config = kubeconfig.write(self.top / "config", kubeconfig.config(front))
            size, printed = server.asked()["log"]
            proc = subprocess.Popen([self.bench.kxfs, "capture", "-o", options, "volcano:test"], stdin=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, env=harness.base_env(KUBECONFIG=str(config)))
            harness.wait_for((state / "ready").exists)
            server.show(True)
            harness.wait_for(lambda: [log.stat().st_size for log in state.glob("output/*/logs/*")] == [printed] * n, what="all logs")
            harness.wait_for(lambda: kept() == (n * printed if archive else 0), what="the archive")
            proc.send_signal(signal.SIGTERM)
            _, status, used = os.wait4(proc.pid, 0)
            proc.returncode = os.waitstatus_to_exitcode(status)
        assert proc.returncode == 0
        harness.remove_tree(place)
        return (used.ru_utime + used.ru_stime) / (n * size) * 2**30

    def archiving(self, n, log_mb):
        rounds = [[self.archive_round(n, log_mb, archive) for archive in (False, True)] for _ in range(min(self.args.rounds, 3))]
        bare, archived = (min(values) for values in zip(*rounds))
        return [Figure(f"CPU for a GiB, archived, {n} logs", "s", archived, 1.2, "captured alone", bare),
                Figure("CPU of 200 pods of 1 MB/s, archived", "%", 100 * archived * 200e6 / 2**30, 100)]

    def lag(self):
        """Measure the delay from a program's output to its reader: through `follow`, and through
        curl and a file. curl's output goes to a file of the static tree that is opened, read and
        closed, because `follow` is also read through FUSE."""
        with self.streams(1, ticks=20) as (server, front, kx):
            self.shown_ticks(server, kx)
            curl = ["curl", "-sNH", TOKEN, "--cacert", str(self.bench.pki.ca),
                    f"{front.url}{PODS}/job-00000-main-0/log?container=main&follow=true"]
            ours, theirs = (lags(cmd) for cmd in (["cat", str(kx / "jobs/job-00000/main-0/follow")], curl))
        theirs += min(self.bench.best(self.bench.calls("read", self.bench.static / "state", 1000)))
        return [Figure("lag of a line", "ms", ours * 1e3, 1.2, "curl, and a read of FUSE", theirs * 1e3)]

    def shown_ticks(self, server, kx):
        server.show(True)
        harness.wait_for(lambda: self.sizes(kx, 1)[0] > 0, what="the first line")

    def run(self):
        self.small()
        self.many()
        self.measure(self.batch)
        self.measure(self.chains)
        self.measure(self.all_kinds)
        self.wide()
        self.quiet_streams()
        self.measure(self.lag)
        self.measure(self.busy_streams, 1, self.args.stream_mb, 2)
        self.measure(self.busy_streams, 50, max(self.args.stream_mb // 50, 1))
        self.measure(self.archiving, 8, max(self.args.stream_mb // 8, 1))
