# SPDX-License-Identifier: MIT
"""A TorchX scheduler that runs jobs through a mount of kxfs, by reading and writing its files.

    mount.py      which mounts there are, and which one is meant
    submit.py     how an AppDef becomes a job: submit/ and dryrun/
    job.py        one job of a mount: its status, its end, its replicas
    lines.py      the lines that a replica has printed
    options.py    the run options
    scheduler.py  TorchX's interface, in terms of these
"""
