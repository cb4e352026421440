# SPDX-License-Identifier: MIT
"""Random sequences of file operations on submit/, jobs/ and history/, compared with a small model. After each
operation the mount and the model have the same names. After every few operations they have the same contents.

    pytest test_model.py --seed N                repeats the sequence that a failure names
    KXFS_MODEL_STEPS=N pytest test_model.py      runs N operations, however long they take
"""

import errno
import os
import random
import time

from harness import FINAL, Job, app, rmdir, wait_for

SUBMITTING = ["a.yaml", "b.yml", "c.json", "d.yaml"]
SCRATCH = ["notes", ".a.yaml.swp", "e.yaml~", "4913", "f.yaml.tmp"]
STEPS = int(os.environ.get("KXFS_MODEL_STEPS", "0"))
CONTENTS = 5  # the number of operations between two comparisons of all contents
VERDICTS = ["a.yaml.job", "b.yml.error", "d.yaml.job", "d.yaml.error"]
VALID = [app("true", name="one"), app("echo two", name="two", num_replicas=2),
         "# in YAML\nname: three\nroles: [{name: r, image: i, entrypoint: 'true'}]\n"]
INVALID = ["x", "[", "name: x\n", app("true").replace("entrypoint", "entrypiont"), "\0", "a: &a [*a]\n",
           '{"name": "x", "roles": []}']


class File:
    def __init__(self, content):
        self.content = content
        self.launched = False  # true if its contents were launched; None if unknown, as after a remount


class Model:
    """The rules of the manual, as short as possible."""

    def __init__(self):
        self.files = {}
        self.job = {}  # name -> the id of the job that its last accepted write launched
        self.error = set()  # names whose last write was refused
        self.jobs = set()
        self.history = set()
        self.documents = {}  # id -> the document from which the job was launched
        self.new = self.document = None  # the name that has launched a new job, and its document

    def submits(self, name):
        return name in SUBMITTING

    def is_verdict(self, name):
        base, _, kind = name.rpartition(".")
        return kind in ("job", "error") and self.submits(base)

    def verdict_exists(self, name):
        base, _, kind = name.rpartition(".")
        return base in (self.job if kind == "job" else self.error)

    def remount(self):
        """Apply an unmount and a mount. NAME.error files are gone. After that, a rename launches
        neither a file whose old name submits, nor a file whose contents are those of an existing
        job."""
        self.error = set()
        for name, file in self.files.items():
            file.launched = True if self.submits(name) else None

    def load(self, file):
        if file.launched is None:
            file.launched = file.content in [self.documents[ident] for ident in self.jobs | self.history]

    def forget(self, ident):
        self.history.remove(ident)
        self.job = {name: job for name, job in self.job.items() if job != ident}

    def commit(self, name, file):
        """The writer of FILE is done, or FILE is renamed to NAME. Return the errno, or 0 if the contents were
        accepted or there was nothing to do."""
        if name == "notes" and file.content:
            # Reports that this name does not submit. The other scratch names belong to editors.
            self.error.add(name)
        if not self.submits(name) or not file.content:
            return 0
        if file.content in VALID:
            file.launched = True
            self.error.discard(name)
            self.new, self.document = name, file.content
            return 0
        self.error.add(name)
        return errno.EINVAL

    def write(self, name, content, append):
        if self.is_verdict(name):
            # If NAME.job leads to an existing job, it leads to a directory, which can't be written.
            return errno.EISDIR if self.job.get(name.removesuffix(".job")) in self.jobs | self.history else errno.EPERM
        file = self.files.setdefault(name, File(""))
        self.load(file)
        file.content = file.content + content if append else content
        if content or not append:
            file.launched = False
        return self.commit(name, file) if content else 0

    def touch(self, name):
        self.load(self.files.setdefault(name, File("")))
        return 0

    def unlink(self, name):
        if self.is_verdict(name):
            if not self.verdict_exists(name):
                return errno.ENOENT
            base, _, kind = name.rpartition(".")
            if kind == "job":
                del self.job[base]
            else:
                self.error.remove(base)
            return 0
        return 0 if self.files.pop(name, None) else errno.ENOENT

    def rename(self, old, new):
        if self.is_verdict(old) and not self.verdict_exists(old):
            return errno.ENOENT
        if old not in self.files and not self.is_verdict(old):
            return errno.ENOENT
        if old == new:
            return 0
        if self.is_verdict(new) or self.is_verdict(old):
            return errno.EPERM
        file = self.files[old]
        self.load(file)
        if old == "notes":
            self.error.discard(old)
        if self.submits(new) and not file.launched:
            err = self.commit(new, file)
            if err:
                return errno.EBADMSG  # not EINVAL, which mv would report as a move of a directory into itself
        self.files[new] = self.files.pop(old)
        return 0

    def listing(self):
        return sorted([*self.files, *(f"{n}.job" for n in self.job), *(f"{n}.error" for n in self.error)])


class Walk:
    def __init__(self, kx, seed):
        self.kx = kx
        self.rng = random.Random(seed)
        self.model = Model()
        self.done = []
        self.last_remount = 0
        self.steps = 0

    def name(self):
        return self.rng.choice(self.rng.choice((SUBMITTING, SUBMITTING, SCRATCH)))

    def any_name(self):
        return self.rng.choice(VERDICTS) if self.rng.random() < 0.1 else self.name()

    def expect(self, err, fn, *args):
        got = 0
        try:
            fn(*args)
        except OSError as e:
            got = e.errno
        assert got == err, f"{errno.errorcode.get(got, 'success')} instead of {errno.errorcode.get(err, 'success')}"

    # Each method returns a description of its operation, for the report.

    def do_write(self):
        name = self.any_name()
        content = self.rng.choice(self.rng.choice((VALID, VALID, INVALID, [""])))
        append = self.rng.random() < 0.2
        self.done.append(f"write {name} {content!r} append={append}")
        err = self.model.write(name, content, append)

        def write():
            fd = os.open(self.kx / "submit" / name,
                         os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC), 0o644)
            data = content.encode()
            cut = self.rng.randrange(len(data) + 1)
            try:
                for part in (data[:cut], data[cut:]):
                    if part:
                        os.write(fd, part)
            finally:
                os.close(fd)

        self.expect(err, write)

    def do_touch(self):
        name = self.name()
        self.done.append(f"touch {name}")
        self.model.touch(name)
        fd = os.open(self.kx / "submit" / name, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY | os.O_NONBLOCK, 0o666)
        os.utime(fd)
        os.close(fd)

    def do_rename(self):
        old, new = self.any_name(), self.any_name()
        self.done.append(f"rename {old} {new}")
        err = self.model.rename(old, new)
        self.expect(err, os.rename, self.kx / "submit" / old, self.kx / "submit" / new)

    def do_unlink(self):
        name = self.any_name()
        self.done.append(f"unlink {name}")
        err = self.model.unlink(name)
        self.expect(err, os.unlink, self.kx / "submit" / name)

    def do_cancel(self):
        if not self.model.jobs:
            return
        ident = self.rng.choice(sorted(self.model.jobs))
        self.done.append(f"rmdir jobs/{ident}")
        if self.rng.random() < 0.5:
            for name in ("main-0", "logs"):
                try:
                    os.rmdir(self.kx / "jobs" / ident / name)
                except FileNotFoundError:  # the role of this job has another name
                    pass
        rmdir(self.kx / "jobs" / ident)
        self.model.jobs.remove(ident)
        self.model.history.add(ident)

    def do_forget(self):
        if not self.model.history:
            return
        ident = self.rng.choice(sorted(self.model.history))
        self.done.append(f"rmdir history/{ident}")
        rmdir(self.kx / "history" / ident)
        self.model.forget(ident)

    def do_remount(self):
        if len(self.done) - self.last_remount < 300:
            return
        self.last_remount = len(self.done)
        self.done.append("remount")
        self.kx.restart()
        self.model.remount()

    def learn(self):
        """Get the id of an accepted job from the mount, which has chosen it."""
        ident = os.path.basename(os.readlink(self.kx / "submit" / f"{self.model.new}.job"))
        assert ident not in self.model.jobs | self.model.history, "two submissions, one job"
        self.model.job[self.model.new] = ident
        self.model.documents[ident] = self.model.document
        self.model.jobs.add(ident)
        self.model.new = None

    def check(self):
        model = self.model
        assert self.kx.ls("submit") == model.listing()
        assert set(self.kx.ls("jobs")) == model.jobs
        assert set(self.kx.history()) == model.history
        if self.steps % CONTENTS:
            return
        for name, file in model.files.items():
            model.load(file)
            assert self.kx.read("submit", name) == file.content
            assert os.stat(self.kx / "submit" / name).st_size == len(file.content.encode())
        for name, ident in model.job.items():
            assert os.readlink(self.kx / "submit" / f"{name}.job") == (
                f"../history/{ident}" if ident in model.history else f"../jobs/{ident}")
        for name in model.error:
            assert self.kx.read("submit", f"{name}.error")

    def step(self):
        op = self.rng.choices(
            [self.do_write, self.do_touch, self.do_rename, self.do_unlink, self.do_cancel, self.do_forget, self.do_remount],
            [30, 4, 18, 12, 14, 8, 2])[0]
        op()
        if self.model.new:
            self.learn()
        self.steps += 1
        self.check()


def test_model(kx, request, sanitized):
    """Run 3000 operations, or as many as possible within some minutes, because each operation syncs files."""
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = time.time_ns() % 1000000
    steps = STEPS or (1000 if sanitized else 3000)
    print(f"seed {seed}, {steps} operations")
    walk = Walk(kx, seed)
    end = time.monotonic() + 240
    for n in range(steps):
        if time.monotonic() > end and not STEPS:
            steps = n
            break
        try:
            walk.step()
        except Exception as e:
            last = "\n".join(walk.done[-25:])
            raise AssertionError(f"--seed {seed}, operation {n}: {e!r}\nthe last of them:\n{last}") from e
    assert len(walk.done) > steps / 2
    for ident in walk.model.jobs:
        job = Job(kx, ident)
        wait_for(lambda job=job: job.state() in FINAL)
        assert job.state() in ("SUCCEEDED", "CANCELLED"), job.explain()  # a remount cancels running jobs
