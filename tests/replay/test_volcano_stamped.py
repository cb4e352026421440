# SPDX-License-Identifier: MIT
"""stamped, of a cluster's job: the times are those of the container's runtime, whenever a line arrives."""

import harness

SECOND = 1_000_000_000
START = 1_795_000_000 * SECOND  # 2026-11-18T11:06:40Z


def test_stamped(kx, volcano):
    job = kx.submit(harness.app("true", num_replicas=2))
    first, second = [volcano.log(pod) for pod in volcano.start(job.id)]
    first.append("one\n", at=START)
    second.append("two\n", at=START + SECOND + 123_456_789)
    first.append("three\n", at=START + 2 * SECOND)
    job.until_logged("three\n")
    job.until_logged("two\n", replica="main-1")
    text = "2026-11-18T11:06:40.000000Z one\n2026-11-18T11:06:42.000000Z three\n"
    stamped = job / "main-0/stamped"
    assert stamped.read_text() == text and stamped.stat().st_size == len(text)
    merged = ("2026-11-18T11:06:40.000000Z main/0 one\n2026-11-18T11:06:41.123456Z main/1 two\n"
              "2026-11-18T11:06:42.000000Z main/0 three\n")
    harness.wait_for(lambda: (job / "stamped").read_text() == merged)
    for pod in volcano.pods(job.id):
        volcano.finish(pod, 0)
    job.finish()
    # It outlives the mount, as log does.
    kx.restart()
    harness.wait_for(lambda: stamped.read_text() == text)
    assert (job / "stamped").read_text() == merged
    assert (job / "stamped").stat().st_size == len(merged)
