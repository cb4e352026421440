# SPDX-License-Identifier: MIT
"""Earlier bugs without a better file, found by using a mount."""

import os

from harness import app, sh_role


def test_a_job_of_thousands_of_replicas_is_accepted_soon(kx):
    """close() does not wait until all processes were started one after the other, which takes longer than its 30 s."""
    job = kx.submit(app("", roles=[sh_role("exit 0", num_replicas=6000)]))
    assert len(job.status()["roles"][0]["replicas"]) == 6000


def test_a_directory_read_from_its_start_again_is_read_anew(kx):
    fd = os.open(kx / "jobs", os.O_RDONLY)
    try:
        assert os.listdir(fd) == []
        job = kx.submit(app("true"))
        assert os.listdir(fd) == [job.id]  # the same descriptor: rewinddir(3)
        job.cancel()
        assert os.listdir(fd) == []
    finally:
        os.close(fd)


def test_logs_of_many_attempts_have_their_own_names(kx):
    job = kx.submit(app("echo $KXFS_ATTEMPT-; exit 1", max_retries=3, retry_policy="REPLICA"))
    job.finish("FAILED")
    for wrong in ("log.3", "log.01", "log.", "log.99999999999999999999", "log.-1", "log.0x", "x.log"):
        assert not os.path.lexists(job / "main-0" / wrong), wrong
    assert all(job.log(name=f"log.{i}") for i in range(3))
