# SPDX-License-Identifier: MIT
"""Fixtures of all tests with mounts. `kx` is a new mount; `make_kx` makes mounts with options.

After each test its mounts are ended, and sanitizer reports fail the test. At the end of the
session, no mount, process or directory may remain."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile

import harness
import pytest
from again import Failures

# A shell starts background commands (with `&`) with SIGINT ignored. Processes that the tests start
# and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=None, help="seed of tests that have one")
    parser.addoption("--of-each", metavar="N:SEED", default=None, help="N parameter sets of each test, chosen by SEED")
    parser.addoption("--rest-of-each", metavar="N:SEED", default=None,
                     help="the sets that --of-each does not choose, and tests that a sanitizer changes")


def pytest_collection_modifyitems(config, items):
    """Select parameter sets for --of-each, or the others for --rest-of-each. All workers of a run select the same."""
    chosen = config.getoption("--of-each") or config.getoption("--rest-of-each")
    if not chosen:
        return
    count, seed = chosen.split(":")
    sets = {}
    for item in items:
        sets.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = set()
    for name, found in sets.items():
        kept.update(random.Random(f"{seed} {name}").sample(found, min(int(count), len(found))))
    if not config.getoption("--of-each"):
        kept = {item for item in items
                if item not in kept or "sanitized" in item.fixturenames or item.get_closest_marker("plain")}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_report_collectionfinish(config):
    return [f"{name} {config.getoption(name)}" for name in ("--of-each", "--rest-of-each") if config.getoption(name)]


class Progress:
    """Writes "done total failed" to a file while tests run, for progress.py. With `pytest -n`, the
    controller does this."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.total = 0
        self.done = set()
        self.failed = set()

    def pytest_collection_finish(self, session):
        self.total = self.total or len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids):
        self.total = len(ids)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.add(report.nodeid)
        if report.when == "teardown":
            self.done.add(report.nodeid)
            self.path.write_text(f"{len(self.done)} {self.total} {len(self.failed)}\n")


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        return
    if os.environ.get("KXFS_PROGRESS"):
        config.pluginmanager.register(Progress(os.environ["KXFS_PROGRESS"]))
    if os.environ.get("KXFS_FAILED"):
        config.pluginmanager.register(Failures(os.environ["KXFS_FAILED"]))


@pytest.fixture(scope="session")
def top():
    """Return the directory of this session, which an ordinary user can access; with tsan.supp."""
    path = tempfile.mkdtemp(prefix="kxfs-test-",
                            dir=os.environ.get("KXFS_TEST_DIR", tempfile.gettempdir()))
    os.chmod(path, 0o755)
    shutil.copyfile(harness.ROOT / "tests/tsan.supp", os.path.join(path, "tsan.supp"))
    os.chmod(os.path.join(path, "tsan.supp"), 0o644)
    yield path
    left = harness.clean(harness.MARK, path)
    assert not left, left


@pytest.fixture(scope="session")
def binary(top):
    """Return the program, in a place where an ordinary user can run it."""
    source = pathlib.Path(os.environ.get("KXFS_BINARY", harness.ROOT / "build/fs/kxfs"))
    if not source.exists():
        pytest.fail(f"{source} is missing: build it first, or set KXFS_BINARY", pytrace=False)
    path = os.path.join(top, "kxfs")
    shutil.copyfile(source, path)
    os.chmod(path, 0o755)
    return path


@pytest.fixture(scope="session")
def sanitized(binary):
    """Return how the program was built: "address", "thread" or ""."""
    symbols = subprocess.run(["nm", "-D", binary], check=False, stdout=subprocess.PIPE).stdout
    if b"__asan_init" in symbols:
        return "address"
    return "thread" if b"__tsan_init" in symbols else ""


@pytest.fixture
def make_kx(binary, top):
    """Return make_kx(options="", user=None, start=True, ...) -> Kxfs, or a subclass of it, KIND."""
    made = []

    def make(options="", start=True, kind=harness.Kxfs, **kwargs):
        kx = kind(binary, top, options=options, **kwargs)
        made.append(kx)
        return kx.start() if start else kx

    yield make
    wrong = []
    for kx in made:
        print(f"{kx.mnt} has said:\n{kx.said()}")  # shown if the test has failed
    for kx in reversed(made):
        wrong += kx.close()
    wrong += harness.end_marked()
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def kx(make_kx):
    return make_kx()


@pytest.fixture(params=["root", harness.USER])
def kx_of_each(request, make_kx):
    """Return a mount of root, and one of an ordinary user."""
    return make_kx(user=None if request.param == "root" else request.param)
