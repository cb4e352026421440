# SPDX-License-Identifier: MIT
"""A disk or a user damages the state directory, between two mounts or during one. A start shows what is intact, starts
no program again, and reports what it can't read; or it fails with a message that names the file.

    KXFS_TEST_DAMAGES=N pytest test_damage.py --seed N          so many damaged states, from that seed
"""

import collections
import contextlib
import os
import random
import shutil
import signal

from harness import FINAL, alive, app, err_of, kill, rmdir, wait_for

DAMAGES = int(os.environ.get("KXFS_TEST_DAMAGES", "30"))
SEED = 1  # the search is the same each time, unless `--seed` selects another

# Each prints that it has begun; one that should wait waits.
RAN = "echo $KXFS_JOB >> ran; echo one; echo two"
WAITS = f"echo $$ > pid; {RAN}; exec sleep 1000"


class State:
    """A state directory of jobs that have ended in all ways, and copies of it."""

    def __init__(self, kx):
        self.kx = kx
        self.kept = kx.base / "kept"
        jobs = [kx.submit(app(text, **more), f"{name}.yaml") for name, text, more in (
            ("done", RAN, {}), ("failed", f"{RAN}; exit 3", {"max_retries": 1}), ("two", RAN, {"num_replicas": 2}),
            ("old", RAN, {}))]
        assert err_of(kx.submit, "name: x\n", "bad.yaml") == "EINVAL"
        for job in jobs:
            job.until(*FINAL)
            wait_for(lambda job=job: job.read("log").count("main/0 two\n") == 1 + (job is jobs[1]), what="the merged log")
        rmdir(jobs[-1].dir)
        self.ended = [job.id for job in jobs]
        self.shown = {ident: self.show(ident) for ident in self.ended}
        self.names = {kx.folder(ident).name: ident for ident in self.ended}
        kx.end()
        shutil.copytree(kx.state, self.kept, symlinks=True)
        self.ran = self.starts()

    def starts(self):
        return sorted((self.kx.work / "ran").read_text().split())

    def show(self, ident):
        """Return what is shown of a job, or None."""
        for place in ("jobs", "history"):
            where = self.kx / place / ident
            if where.exists():
                return place, *((where / name).read_text() for name in ("state", "why", "log", "app.yaml", "main-0/log"))
        return None

    def fresh(self):
        """Restore the state."""
        def gone():
            shutil.rmtree(self.kx.state, ignore_errors=True)  # a helper that is about to end may still leave something
            return not self.kx.state.exists()
        wait_for(gone, what="the state to be gone")
        shutil.copytree(self.kept, self.kx.state, symlinks=True)

    def some(self, n, chance):
        """Choose N of its files or directories, each kind equally likely. Not the lock, which nothing depends on, nor
        files that are being written, which disappear in a moment."""
        kinds = {}
        for path in sorted(self.kx.state.rglob("*")):
            if path.name != "lock" and not path.name.endswith(".new") and not path.is_socket():
                kind = path.relative_to(self.kx.state).parts
                kinds.setdefault((kind[0], len(kind), kind[2:3]), []).append(path)
        return [chance.choice(kinds[kind]) for kind in chance.sample(sorted(kinds), n)]


def damage(path, chance):
    """Damage it; return what was done, as words."""
    def bits(text):
        at = chance.randrange(len(text))
        return text[:at] + bytes([text[at] ^ 1 << chance.randrange(8)]) + text[at + 1:]

    def other(text):
        at, n = chance.randrange(len(text)), chance.randrange(1, 64)
        return text[:at] + chance.choice([b"", bytes(n), chance.randbytes(n), text[at:at + n] * 2, b"9" * n]) + text[at + n:]

    ways = {"removed": None, "moved": None, "a directory": None}
    if path.is_file() and path.stat().st_size:
        ways |= {"cut": lambda text: text[:chance.randrange(len(text))], "empty": lambda _: b"", "bits": bits, "other": other,
                 "zeros": lambda text: bytes(len(text)), "longer": lambda text: text + chance.randbytes(4096)}
    way = chance.choice(list(ways))
    if ways[way]:
        path.write_bytes(ways[way](path.read_bytes()))
    else:
        path.rename(path.with_name(f"{path.name}{chance.randrange(10)}")) if way == "moved" else remove(path)
        if way == "a directory":
            path.mkdir()
    return f"{path.name}: {way}"


def remove(path):
    """Remove it; a mount may be writing to the directory."""
    def gone():
        shutil.rmtree(path, ignore_errors=True)
        return not path.exists()
    wait_for(gone, what=f"{path.name} to be gone") if path.is_dir() else path.unlink()


def start(kx):
    """Return true if it was mounted; false if it has named the error, and ended."""
    before = len(kx.said())
    try:
        kx.start()
    except AssertionError as e:
        assert str(e).startswith("kxfs ended with 1:") and str(kx.state) in kx.said()[before:], e
        return False
    return True


def look(kx):
    """Whatever is damaged, all files can be listed and read, or report the reason."""
    kx.call("ls -lR . > /dev/null; cat .kxfs/* submit/* jobs/*/*/log* history/*/*/log* > /dev/null 2>&1; true")


def is_over(job):
    """End the job, or find that it does not exist, so that nothing of it is started any more."""
    with contextlib.suppress(OSError):
        return job.state() in FINAL
    return True


def one(kx, state, chance, done):
    """Test one damaged state, and append what was done to DONE."""
    state.fresh()
    running = None
    if chance.random() < 0.5:
        kx.start()
        running = kx.submit(app(WAITS), "running.yaml")
        running.until_logged("one\ntwo\n")
        pid = int((kx.work / "pid").read_text())
        done.append("mounted")
    names = state.names | ({kx.folder(running.id).name: running.id} if running else {})
    hurt = set()
    for path in state.some(chance.choice((1, 1, 1, 2, 4)), chance):
        if os.path.lexists(path):
            top, *rest = path.relative_to(kx.state).parts
            keys = [name.lstrip(".").removesuffix(".room").removesuffix(".new") for name in rest[:1] or names]
            hurt |= {names.get(key, top) for key in keys} if top in ("jobs", "output") else {top}
            done.append(f"{path.relative_to(kx.state)}: {damage(path, chance)}")
    new = []
    if running:
        look(kx)
        with contextlib.suppress(OSError):
            new.append(kx.submit(app(RAN), "under.yaml"))
        kx.end(signal.SIGKILL)
    mounted = start(kx)
    if mounted:
        for ident in set(state.ended) - hurt:
            assert state.show(ident) == state.shown[ident], ident
        look(kx)
        if running and running.id not in hurt:
            assert running.state() == "RUNNING" and running.log() == b"one\ntwo\n"
            rmdir(running.dir)
        if not hurt & {"jobs", "output", "submit"}:
            new.append(kx.submit(app(RAN), "new.yaml"))
            new[-1].finish()
            assert new[-1].log() == b"one\ntwo\n"
        wait_for(lambda: all(map(is_over, new)), what="what was launched before to end")
        assert kx.end() == 0, kx.said()
    kx.abort()
    if running:
        # Processes of a job whose record is damaged continue, and the helper waits for a mount that knows the job.
        for helper in [pid, *kx.helpers()] if running.id in hurt or not mounted else []:
            kill(helper)
        wait_for(lambda: mounted or not kx.helpers(), what="the helpers to end")
        wait_for(lambda: not alive(pid), what="what ran to end")
    ran = state.starts()
    (kx.work / "ran").write_text("".join(f"{ident}\n" for ident in state.ran))
    more = sorted([*state.ran, *(job.id for job in new), *([running.id] if running else [])])
    # Nothing runs twice. Of a new job a damaged directory may have kept the helper from starting.
    missing = collections.Counter(more) - collections.Counter(ran)
    assert collections.Counter(ran) <= collections.Counter(more), (ran, more)
    assert missing <= collections.Counter(job.id for job in new), (ran, more)


def test_damaged_state(kx, request):
    seed = request.config.getoption("--seed") or SEED
    print(f"seed {seed}, {DAMAGES} damaged states")
    state = State(kx)
    for n in range(DAMAGES):
        done = []
        try:
            one(kx, state, random.Random(f"{seed} {n}"), done)
        except Exception as e:
            raise AssertionError(f"--seed {seed}, state {n}: {e!r}\n{done}\n{kx.said()[-3000:]}") from e
    state.fresh()
    kx.start()
