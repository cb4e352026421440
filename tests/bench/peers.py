# SPDX-License-Identifier: MIT
"""Compares kxfs with the tools that people use for the same: kubectl, stern and torchx, on one
server.

Each tool is a process of its own, as a shell would run it. kxfs is already mounted. Connections
pass through nghttpx, with TLS and HTTP/2. Tools that are not in PATH are skipped."""

import json
import os
import shutil
import subprocess
import time

import clusters
import harness
from figures import Figure

ROWS = LOG, LOGS, LAG, SUBMIT, STATE = ("a busy log, to a file", "50 busy logs, to files", "lag of a line of a log",
                                        "submit a job", "state of a job")
GOALS = {LAG: 1.2}  # for the ratio; default: 1
TOOLS = ("kubectl", "stern", "torchx")
SELECTOR = "volcano.sh/queue-name=default"


def short(figure, value):
    return f"{value:.0f} {figure.unit}" if value >= 100 else f"{value:.2g} {figure.unit}"


def table(figures):
    """Return the lines for tests/bench/README.md, from the FIGURES of a run."""
    lines = [("what", "kxfs", *TOOLS), ("---",) * (2 + len(TOOLS))]
    for row in ROWS:
        found = {figure.other.split()[0]: figure for figure in figures if figure.what == row}
        cells = {tool: short(figure, figure.theirs) for tool, figure in found.items()}
        ours = [short(figure, figure.ours) for figure in found.values()][:1]
        lines.append((row, *ours, *(cells.get(tool, "") for tool in TOOLS)))
    return [f"| {' | '.join(line)} |" for line in lines]


class Peers:
    """The benchmarks. BENCH (tests/bench/run) has the arguments, and collects the figures."""

    def __init__(self, bench):
        self.bench = bench
        self.args = bench.args
        self.clusters = clusters.Clusters(bench)
        self.kubectl = clusters.kubectl()
        self.stern = shutil.which("stern")
        self.env = {**harness.base_env(), "HOME": str(bench.top), "KUBECONFIG": str(bench.top / "config")}

    def run(self):
        measure = self.bench.figures.measure
        for name in ("kubectl", "stern"):
            if not getattr(self, name):
                print(f"left out: there is no {name}")
        measure(self.logs, LOG, 1, self.args.stream_mb)
        measure(self.logs, LOGS, 50, max(self.args.stream_mb // 50, 1))
        measure(self.lag)
        with self.clusters.server(jobs=1) as server, self.clusters.front(server) as front, \
                self.clusters.mount(front) as kx:
            measure(self.submits, front, kx)
            measure(self.states, kx)

    def figures(self, row, unit, ours, theirs):
        """Return figures. THEIRS: by the name of the tool."""
        return [Figure(row, unit, ours, GOALS.get(row, 1), name, value) for name, value in theirs.items()]

    def followers(self, n, *, tail):
        """Return the commands that print and follow the logs of N pods, by name."""
        found = {}
        if self.kubectl:
            which = ["job-00000-main-0"] if n == 1 else ["-l", SELECTOR, f"--max-log-requests={n}"]
            found["kubectl logs -f"] = [self.kubectl, "logs", "-f", f"--tail={tail}", *which]
        if self.stern:
            found["stern"] = [self.stern, "--color=never", "--output=raw", f"--tail={tail}", "--only-log-lines", f"--max-log-requests={n}",
                              *(["job-00000-main-0"] if n == 1 else ["-l", SELECTOR])]
        return found

    def logs(self, row, n, log_mb):
        """Measure the time until N logs are completely in one file. For kxfs, each log is in its
        own file."""
        followers = self.followers(n, tail=-1)
        rounds = []
        for _ in range(min(self.args.rounds, 3)):
            with self.clusters.streams(n, log_mb=log_mb) as (server, _, kx):
                size = n * server.asked()["log"][1]
                ours = self.clusters.captured(server, kx, n)
                kx.end()
                rounds.append([ours, *(self.followed(cmd, size) for cmd in followers.values())])
        ours, *theirs = (min(times) for times in zip(*rounds))
        return self.figures(row, "s", ours, dict(zip(followers, theirs)))

    def followed(self, cmd, size):
        """Return the seconds until CMD has printed SIZE bytes."""
        out = self.bench.top / "followed"
        with open(out, "wb") as file:
            begin = time.perf_counter()
            proc = subprocess.Popen(cmd, env=self.env, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE)
            try:
                harness.wait_for(lambda: os.stat(out).st_size >= size or proc.poll() is not None, what=cmd)
                seconds = time.perf_counter() - begin
            finally:
                proc.kill()
                said = proc.communicate()[1]
        assert os.stat(out).st_size == size, (cmd, os.stat(out).st_size, size, said)
        out.unlink()
        return seconds

    def lag(self):
        with self.clusters.streams(1, ticks=20) as (server, _, kx):
            self.clusters.shown_ticks(server, kx)
            ours = clusters.lags(["cat", str(kx / "jobs/job-00000/main-0/follow")])
            theirs = {name: clusters.lags(cmd, env=self.env) for name, cmd in self.followers(1, tail=1).items()}
        return self.figures(LAG, "ms", ours * 1e3, {name: value * 1e3 for name, value in theirs.items()})

    def submits(self, front, kx):
        """Measure submissions of the same job: as an AppDef, as a manifest, and as TorchX's
        component."""
        app, manifest = self.bench.top / "app.yaml", self.bench.top / "manifest.json"
        app.write_text(clusters.APP)
        made = self.clusters.made(front.server, kx)
        number = self.clusters.number

        def create():
            made["metadata"]["name"] = f"created-{next(number)}"
            manifest.write_text(json.dumps(made))
            return self.timed([self.kubectl, "create", "--validate=ignore", "-f", str(manifest)])

        calls = {"kxfs": lambda: self.timed(["cp", str(app), str(kx / f"submit/{next(number)}.yaml")])}
        if self.kubectl:
            calls["kubectl create -f"] = create
        calls["torchx run"] = lambda: self.timed(
            [self.bench.torchx, "run", "--workspace", "", "-s", "kubernetes", "-cfg", "queue=default,namespace=test",
             "utils.echo", "--msg", "bench"])
        return self.compared(SUBMIT, calls)

    def states(self, kx):
        job = kx.ls("jobs")[0]
        calls = {"kxfs": lambda: self.timed(["cat", str(kx / "jobs" / job / "state")])}
        if self.kubectl:
            calls["kubectl get"] = lambda: self.timed(
                [self.kubectl, "get", "jobs.batch.volcano.sh", job, "-o", "jsonpath={.status.state.phase}"])
        calls["torchx status"] = lambda: self.timed([self.bench.torchx, "status", f"kubernetes://torchx/test:{job}"])
        return self.compared(STATE, calls)

    def compared(self, row, calls):
        """Return figures for CALLS, by name. That of kxfs is the first."""
        ours, *theirs = (seconds * 1e3 for seconds in self.bench.best(*calls.values()))
        return self.figures(row, "ms", ours, dict(zip(list(calls)[1:], theirs)))

    def timed(self, cmd):
        begin = time.perf_counter()
        p = subprocess.run(cmd, env=self.env, cwd=self.bench.top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, check=False, text=True)
        assert p.returncode == 0, f"{cmd}: {p.stdout}"
        return time.perf_counter() - begin
