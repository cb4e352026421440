# SPDX-License-Identifier: MIT
"""Measures what needs no cluster: files, logs and the state directory of a `local:` mount, and dry
runs."""

import itertools
import os
import pathlib
import shutil
import subprocess
import uuid

import clusters
import harness
import records
from figures import Figure

APP = """
name: bench
roles:
- {name: worker, image: none, entrypoint: "true"}
"""

BIG = """
name: big
roles:
- name: worker
  image: none
  entrypoint: sh
  args: [-c, "yes 0123456789abcdef0123456789abcdef | head -c %dM"]
"""


def copy_synced(folder, target):
    """Copy a directory as an archive does: sync each file and directory, then rename the copy to
    its final name."""
    new = target.with_name("new")
    shutil.copytree(folder, new)
    for path in (*new.rglob("*"), new):
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    new.rename(target)
    fd = os.open(target.parent, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


class Local:
    """The benchmarks. BENCH (tests/bench/run) has the arguments, and collects the figures."""

    def __init__(self, bench):
        self.bench = bench
        self.args = bench.args
        self.measure = bench.figures.measure
        self.take = bench.figures.take

    def run(self):
        self.measure(self.dry_runs)
        with self.bench.mount("local:") as kx:
            job = kx.submit(APP)
            job.finish()
            for how, file, goal in (("read", "state", 1.1), ("stat", "state", None), ("read", "status", 1.2)):
                self.measure(self.small_file, how, job / file, goal)
            self.big_log(kx)
            self.take(*self.many_jobs(kx, job, self.args.jobs))
            self.measure(self.listing, kx)
            for name in ("list", "list.jsonl"):
                self.measure(self.whole_list, kx / name, kx)
            self.measure(self.removal, kx, min(self.args.jobs // 20, 500))
        self.measure(self.archived, min(self.args.jobs // 10, 1000))

    def dry_runs(self):
        """Measure dry runs: of a small AppDef in its own process, as TorchX does, and of a large
        one."""
        kxfs = [self.bench.kxfs, "-o", "queue=q", "volcano:bench"]
        small, large = self.bench.top / "small.yaml", self.bench.top / "large.yaml"
        small.write_text(APP)
        large.write_text(APP.replace('"true"', '"true", num_replicas: 1000'))
        # --workspace "" builds nothing. stderr is discarded because it has warnings about missing
        # files.
        theirs = [self.bench.torchx, "run", "--dryrun", "--workspace", "", "-s", "kubernetes", "-cfg", "queue=q",
                  "utils.echo", "--msg", "bench"]
        timed = self.bench.timed
        ours, theirs, many = self.bench.best(timed([*kxfs, f"--dry-run={small}"]),
                                             timed(theirs, cwd=self.bench.top, stderr=subprocess.DEVNULL),
                                             timed([*kxfs, f"--dry-run={large}"]))
        yield Figure("dry run of a small AppDef", "ms", ours * 1e3, 1, "torchx run --dryrun", theirs * 1e3)
        yield Figure("dry run of 1000 replicas", "ms", many * 1e3)

    def small_file(self, how, path, goal):
        """Compare reading a small file with the static tree, and with a filesystem without a
        daemon."""
        tmpfs = pathlib.Path("/dev/shm") / f"kxfs-bench-{os.getpid()}"
        tmpfs.write_text("RUNNING\n")
        try:
            ours, theirs, memory = (seconds * 1e6 for seconds in self.bench.best(
                *(self.bench.calls(how, p, 20000) for p in (path, self.bench.static / "state", tmpfs))))
        finally:
            tmpfs.unlink()
        what = f"{how} of {path.name}"
        return [Figure(what, "us", ours, goal, "static tree", theirs), Figure(what, "us", ours, None, "tmpfs", memory)]

    def big_log(self, kx):
        size = self.args.log_mb
        job = kx.submit(BIG % size)
        job.finish()
        log = job / "worker-0" / "log"
        spool = next((kx.folder(job.id) / "logs").iterdir())
        assert log.stat().st_size == size << 20
        self.measure(self.cat, f"cat of a log of {size} MiB", log, "the spool file", spool, 1.5)
        self.measure(self.cat, "cat of it merged", job / "log", "the spool file", spool, 4)

    def cat(self, what, path, other, theirs, goal=None):
        ours, theirs = self.bench.best(*(self.bench.timed(["cat", str(p)]) for p in (path, theirs)))
        return [Figure(what, "ms", ours * 1e3, goal, other, theirs * 1e3)]

    def make_jobs(self, kx, job, n):
        """Make N finished jobs as copies of JOB, which really ran. At the end KX is not running."""
        kx.end()
        before = len(os.listdir(kx.state / "output"))
        source, record = kx.folder(job.id), records.of(kx, job.id)
        head, document = records.head_of(record), records.document_of(record)
        logs = os.listdir(source / "logs")
        for i in range(before, n):
            name = f"bench-c{i:06d}"
            ident = str(uuid.uuid4())
            target = kx.state / "output" / ident
            target.mkdir(mode=0o700)
            records.add(kx, records.copy_of(head, ident, name), document)
            (target / "logs").mkdir(mode=0o700)
            for log in logs:
                (target / "logs" / log).touch(mode=0o600)

    def many_jobs(self, kx, job, n):
        """Measure a start with N finished jobs."""
        self.make_jobs(kx, job, n)
        seconds = clusters.elapsed(kx.start)
        assert len(kx.ls("jobs")) == n
        return [Figure(f"start with {n} jobs", "s", seconds), Figure("CPU of it", "s", clusters.cpu(kx)),
                Figure("memory of it", "MiB", clusters.memory(kx) / 1024),
                Figure("memory a job", "KiB", clusters.memory(kx) / n)]

    def archived(self, n):
        """Measure a mount that finds N finished jobs and archives them, and its later starts."""
        place, copies = self.bench.top / "archive", self.bench.top / "copies"
        for folder in (place, copies):
            folder.mkdir()
        with self.bench.mount("local:") as kx:
            job = kx.submit(APP)
            job.finish()
            self.make_jobs(kx, job, n)
            kx.options = f"archive={place}"
            kx.start()
            seconds = clusters.elapsed(lambda: harness.wait_for(
                lambda: sum(1 for _ in place.glob("local/2*/*")) == n, what="the archive"))
            kx.end()
            rounds = []
            for _ in range(self.args.rounds):
                times = []
                for kx.options in (f"archive={place}", ""):
                    times.append(clusters.elapsed(kx.start))
                    kx.end()
                rounds.append(times)
            kx.start()
        theirs = clusters.elapsed(lambda: [copy_synced(folder, copies / str(number))
                                           for number, folder in enumerate(place.glob("local/2*/*"))])
        ours, bare = (min(times) for times in zip(*rounds))
        for folder in (place, copies):
            harness.remove_tree(folder)
        return [Figure(f"{n} jobs archived by a mount", "s", seconds, 1.5, "a synced copy of the files", theirs),
                Figure(f"start with {n} archived jobs", "s", ours, 1.5, "without an archive", bare)]

    def listing(self, kx):
        ours, theirs = self.bench.best(self.bench.timed(["ls", "-l", str(kx / "jobs")]),
                                       self.bench.timed(["ls", "-l", str(self.bench.static / "dir")]))
        return [Figure(f"ls -l of {self.args.jobs} finished jobs", "ms", ours * 1e3, 1.3, "static tree", theirs * 1e3)]

    def removal(self, kx, n):
        """Measure `rm -r` of finished jobs, which move to the history. Compare with copies of their
        visible files, in a tree in memory that gets the same requests, and on disk."""
        copies = kx.base / "copies", self.bench.static / "copies"
        calls = [lambda: self.removed(kx.mnt / "jobs", kx.ls("jobs")[-n:]),
                 *(lambda folder=folder: self.removed(folder, os.listdir(folder)) for folder in copies)]
        rounds = []
        for folder in copies:
            folder.mkdir(exist_ok=True)
        for _ in range(min(self.args.rounds, 3)):
            for name, folder in itertools.product(kx.ls("jobs")[-n:], copies):
                shutil.copytree(kx / "jobs" / name, folder / name, symlinks=True)
            rounds.append([call() for call in calls])
        ours, disk, tree = (min(times) * 1e3 for times in zip(*rounds))
        what = f"rm -r of {n} finished jobs"
        return [Figure(what, "ms", ours, 1.5, "static tree", tree),
                Figure(what, "ms", ours, None, "the same files on disk", disk)]

    def removed(self, folder, names):
        """Remove the jobs NAMES in FOLDER. Return the seconds."""
        seconds = self.bench.timed(["rm", "-r", *(str(folder / name) for name in names)])()
        assert not set(names) & set(os.listdir(folder))
        return seconds

    def whole_list(self, path, kx):
        """Measure reading the list of all jobs: for the first time, after one job has changed, and
        without changes."""
        first = clusters.elapsed(path.read_bytes)
        changed = []
        for _ in range(2 * self.args.rounds):
            kx.submit(APP).finish()
            changed.append(clusters.elapsed(path.read_bytes))
        yield Figure(f"{path.name}, the first time", "ms", first * 1e3)
        yield Figure(f"{path.name} after a change", "ms", min(changed) * 1e3, 20)
        copy = self.bench.top / "copy"
        copy.write_bytes(path.read_bytes())
        yield from self.cat(f"cat {path.name}, no change", path, "a copy of it", copy)
