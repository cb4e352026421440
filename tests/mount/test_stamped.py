# SPDX-License-Identifier: MIT
"""stamped: the lines of log, each after its time."""

import os
import pathlib
import re
import time

from harness import app, popen, python_app, run, wait_for

LINE = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) ([^\n]*\n?)")
PRINTER = """
import os, time
for i in range(5):
    os.write(1, b"line %d\\n" % i)
    while not os.path.exists(f"seen-{i}"):
        time.sleep(0.01)
os.write(1, b"no end")
"""


def split(stamped):
    """Return the times and the lines of STAMPED, which has nothing else."""
    found = LINE.findall(stamped)
    assert b"".join(time + b" " + line for time, line in found) == stamped
    return [time.decode() for time, _ in found], b"".join(line for _, line in found)


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())


def test_replica(kx):
    begin = now()
    job = kx.submit(python_app(PRINTER))
    for i in range(5):
        job.until_logged(f"line {i}\n")
        (kx.work / f"seen-{i}").touch()
    job.finish()
    stamped = (job / "main-0/stamped").read_bytes()
    times, lines = split(stamped)
    assert lines == job.log() == b"".join(b"line %d\n" % i for i in range(5)) + b"no end"
    assert os.stat(job / "main-0/stamped").st_size == len(stamped)
    assert times == sorted(times) and begin <= times[0] and times[-1] <= now() + "Z"
    # Each line has its own time, so a reader can select newer ones.
    assert len(set(times[:5])) == 5
    since = run(["awk", f'$1 >= "{times[2]}"', str(job / "main-0/stamped")]).stdout
    assert "line 2" in since and "line 4" in since and "line 0" not in since


def test_merged(kx):
    job = kx.submit(app("echo a; echo b", num_replicas=2))
    job.finish()
    stamped = (job / "stamped").read_bytes()
    _, lines = split(stamped)
    assert lines == (job / "log").read_bytes()
    assert sorted(lines.splitlines()) == [b"main/0 a", b"main/0 b", b"main/1 a", b"main/1 b"]
    assert os.stat(job / "stamped").st_size == len(stamped)
    job.cancel()
    assert (job.old / "stamped").read_bytes() == stamped
    assert split((job.old / "main-0/stamped").read_bytes())[1] == b"a\nb\n"


def test_listing_reads_no_log(kx):
    """Its size is counted from the log only when it is requested; listing the names does not."""
    size, rounds = 50000, 300
    job = kx.submit(app(f"head -c {size} /dev/zero"))
    job.finish()

    def read_so_far():
        return int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{kx.pid}/io").read_text())[1])

    before = read_so_far()
    for _ in range(rounds):
        assert {"log", "stamped"} <= set(os.listdir(job / "main-0"))
    assert read_so_far() - before < rounds * size / 10
    assert os.stat(job / "main-0/stamped").st_size == size + len("2026-11-22T04:35:12.123456Z ")


def test_follow(kx):
    """tail -f shows new output, and the file exists before the program has printed anything."""
    job = kx.submit(app("while ! test -e go; do sleep 0.05; done; echo one; "
                        "while ! test -e on; do sleep 0.05; done; echo two"))
    path, got = job / "main-0/stamped", kx.base / "got"
    with got.open("wb") as f:
        tail = popen(["tail", "-n", "+1", "-f", "-s", "0.1", str(path)], stdout=f)
        try:
            (kx.work / "go").touch()
            wait_for(lambda: split(got.read_bytes())[1] == b"one\n")
            (kx.work / "on").touch()
            wait_for(lambda: split(got.read_bytes())[1] == b"one\ntwo\n")
        finally:
            tail.kill()
            tail.wait()
    assert got.read_bytes() == path.read_bytes()
