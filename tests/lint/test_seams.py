# SPDX-License-Identifier: MIT
"""What the simulator (tests/sim/) has others in the place of: nothing of the program reads a clock, draws a number, begins a
thread or a process, or sleeps but in the files below; of files, test_disk.py says the same."""

import pytest
from architecture import objects
from test_disk import symbol

TOPS = ("spec/", "backend/", "fs/")
SIMULATED = "tests/sim/ has another"
OTHER_PROCESS = "in another process, which the simulator has not"
START = "of a start, before there is a loop"

SEAMS = {
    "clock": ("clock_gettime time gettimeofday uv_hrtime uv_now uv_clock_gettime", {
        "backend/base/diag.c": SIMULATED,
        "backend/base/loop.c": SIMULATED,
        "backend/base/thread.c": SIMULATED,
        "fs/vfs/park.c": SIMULATED,
        "backend/local/sampler.c": OTHER_PROCESS,
    }),
    "number": ("getrandom getentropy rand random drand48 arc4random uv_random", {
        "backend/base/random.c": SIMULATED,
    }),
    "thread": ("pthread_create thrd_create uv_thread_create uv_queue_work fork vfork clone posix_spawn posix_spawnp uv_spawn", {
        "backend/base/thread.c": SIMULATED,
        "backend/base/process.c": SIMULATED,
        "backend/local/guard.c": SIMULATED,
        "fs/mount/daemon.c": START,
        "fs/mount/mountpoint.c": START,
    }),
    "pause": ("sleep usleep nanosleep clock_nanosleep", {
        "backend/local/sampler.c": OTHER_PROCESS,
        "fs/mount/state.c": START,
    }),
}


@pytest.mark.parametrize("seam", SEAMS)
def test_nothing_goes_round_a_seam(seam):
    calls, listed = SEAMS[seam]
    found = {obj.source for obj in objects() if obj.source.startswith(TOPS)
             and {symbol(name) for name in obj.uses} & set(calls.split())}
    assert not found - listed.keys(), "these have to use what the simulator has too: " + ", ".join(sorted(found - listed.keys()))
    assert not listed.keys() - found, f"these need not be listed any more: {sorted(listed.keys() - found)}"
