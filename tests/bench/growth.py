# SPDX-License-Identifier: MIT
"""Measures how figures grow with the number of jobs and of followed logs. Prints tables for
tests/bench/README.md.

There are no comparisons and no goals: a figure may grow as its work does, and no faster."""

import time

import clusters
import local

JOBS = (1000, 10000, 100000)
STREAMS = (100, 1000, 5000)
HELD = (100, 1000, 5000)
REMOVED = 500  # number of jobs that are removed
LATER = local.APP + 'scheduler_args: {begin: "2099-01-01"}\n'


class Growth:
    """The benchmarks. BENCH (tests/bench/run) has the arguments."""

    def __init__(self, bench):
        self.bench = bench
        self.args = bench.args
        self.clusters = clusters.Clusters(bench)
        self.local = local.Local(bench)

    def run(self):
        self.table("finished jobs in the state directory", JOBS, self.state_directory)
        self.table("finished jobs on a server, with two pods each", JOBS, self.server)
        self.table("held jobs, which wait for a time", HELD, self.held)
        self.table("silent logs, a job each", STREAMS, self.streams)

    def table(self, what, sizes, measure):
        """Print a table. MEASURE yields (what, unit, number) for a size."""
        columns = [list(measure(n)) for n in sizes]
        print(f"\n| {what} | {' | '.join(str(n) for n in sizes)} |\n|{'---|' * (1 + len(sizes))}")
        for cells in zip(*columns):
            name, unit, _ = cells[0]
            print(f"| {name} | {' | '.join(f'{value:.3g} {unit}'.strip() for _, _, value in cells)} |", flush=True)

    def started(self, kx):
        """Yield the cost of a start, and of a mount with all jobs."""
        yield "start", "s", clusters.elapsed(kx.start)
        yield "CPU of it", "s", clusters.cpu(kx)
        yield "memory at most", "MiB", clusters.memory(kx, "VmHWM") / 1024

    def used(self, kx, memory_of, change, idle):
        """Yield figures that apply to every mount. MEMORY_OF is (number of jobs, KiB before they
        were added)."""
        n, before = memory_of
        yield "memory a job", "KiB", (clusters.memory(kx) - before) / n
        ls, = self.bench.best(self.bench.timed(["ls", "-l", str(kx / "jobs")]))
        yield "`ls -l jobs/`", "ms", ls * 1e3
        (kx / "list").read_bytes()
        yield "`list` after a change", "ms", min(self.changed(kx, change) for _ in range(10)) * 1e3
        yield "submit", "ms", min(clusters.elapsed(change) for _ in range(20)) * 1e3
        last = kx / "jobs" / kx.ls("jobs")[-1]
        yield "CPU of a read of one's `usage`", "us", self.reading(kx, last / "usage") * 1e6
        yield "of its `status`", "us", self.reading(kx, last / "status") * 1e6
        names = [name for name in kx.ls("jobs") if name.startswith(("job-", "bench-c"))][-REMOVED:]
        yield f"`rm -r` of {len(names)}", "ms", self.local.removed(kx / "jobs", names) * 1e3
        yield "CPU, idle", "%", idle()

    def reading(self, kx, path, n=1000):
        """Return the CPU seconds that the daemon uses per read of PATH. Unlike times, CPU use is
        not affected by other programs."""
        read, used = self.bench.calls("read", path, n), []
        for _ in range(self.args.rounds):
            before = clusters.cpu(kx)
            read()
            used.append((clusters.cpu(kx) - before) / n)
        return min(used)

    def changed(self, kx, change):
        change()
        return clusters.elapsed((kx / "list").read_bytes)

    def state_directory(self, n):
        with self.bench.mount("local:") as kx:
            empty = clusters.memory(kx)
            job = kx.submit(local.APP)
            job.finish()
            self.local.make_jobs(kx, job, n)
            yield from self.started(kx)
            yield from self.used(kx, (n, empty), lambda: kx.submit(local.APP), lambda: self.idle(kx))

    def idle(self, kx):
        clusters.settle(kx)
        used = clusters.cpu(kx)
        time.sleep(self.args.idle)
        return 100 * (clusters.cpu(kx) - used) / self.args.idle

    def server(self, n):
        with self.clusters.server(jobs=n, pods=2, finished=1) as server, \
                self.clusters.mount(server, "cancel=all", start=False) as kx:
            server.show(False)
            kx.start()
            empty = clusters.memory(kx)
            kx.end()
            server.show(True)
            yield from self.started(kx)
            yield from self.used(kx, (n, empty), lambda: kx.submit(clusters.APP), lambda: self.idle(kx))

    def held(self, n):
        with self.bench.mount("local:") as kx:
            empty = clusters.memory(kx)
            for i in range(n):
                kx.write(f"submit/held-{i}.yaml", LATER)
            assert len(kx.ls("jobs")) == n
            kx.end()
            yield from self.started(kx)
            yield "memory a job", "KiB", (clusters.memory(kx) - empty) / n
            ls, = self.bench.best(self.bench.timed(["ls", "-l", str(kx / "jobs")]))
            yield "`ls -l jobs/`", "ms", ls * 1e3
            names = iter(range(20))
            yield "submit of one more", "ms", min(
                clusters.elapsed(lambda: kx.write(f"submit/more-{next(names)}.yaml", LATER)) for _ in range(20)) * 1e3
            yield "CPU, idle", "%", self.idle(kx)

    def streams(self, n):
        with self.clusters.streams(n) as (server, _, kx):
            before, used = clusters.memory(kx), clusters.cpu(kx)
            yield "until all are there", "s", self.clusters.captured(server, kx, n, step=0.2)
            yield "CPU of it", "s", clusters.cpu(kx) - used
            yield "memory a log, with its job", "KiB", (clusters.memory(kx) - before) / n
            yield "connections", "", clusters.descriptors(kx, "socket:")
            yield "descriptors", "", clusters.descriptors(kx)
            yield "CPU, idle", "%", self.idle(kx)
