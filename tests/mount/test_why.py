# SPDX-License-Identifier: MIT
"""The advice of `why` about a local program that can't be started."""

import harness
import pytest


@pytest.mark.parametrize("role, hint", [
    ({"entrypoint": "sh", "args": ["x" * 200000]},
     "Argument list too long. The args and env of role main are "
     "longer than the system allows: put long values into a file."),
    ({"entrypoint": "python3 train.py"},
     "Check the entrypoint of role main: it is one program, and its arguments belong in args."),
    ({"entrypoint": "nosuchprogram"},
     "Check the entrypoint of role main: it must be a program in PATH or the path of an executable file."),
])
def test_start_error(kx, role, hint):
    job = kx.submit(harness.app("", roles=[{"name": "main", "image": "none", **role}]))
    job.finish("FAILED")
    assert hint in job.read("why")


# A main function with torch's record decorator that raises: it leaves this file, and ends with code 1.
RECORD = """
import json, os, sys
error = {"message": {"message": "RuntimeError: boom of rank 0",
                     "extraInfo": {"py_callstack": "Traceback (most recent call last):\\n"
                                                   "  File \\"boom.py\\", line 5, in main\\n"
                                                   "    raise RuntimeError(\\"boom of rank 0\\")\\n"
                                                   "RuntimeError: boom of rank 0\\n", "timestamp": "1763715600"}}}
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    json.dump(error, file)
print("[rank0] the log says less")
sys.exit(1)
"""
TRACEBACK = """Its last words:
    Traceback (most recent call last):
      File "boom.py", line 5, in main
        raise RuntimeError("boom of rank 0")
    RuntimeError: boom of rank 0
"""
WORDS = "\n".join(line[4:] for line in TRACEBACK.splitlines()[1:])


def test_structured_error(kx):
    """It is in why when wait returns, in status, and the same after a remount and in history/."""
    job = kx.submit(harness.python_app(RECORD))
    assert job.read("wait") == "FAILED\n"
    assert job.read("why").startswith("main-0 ended with exit code 1. ")
    assert job.read("why").endswith("Its output is in main-0/log. " + TRACEBACK)
    assert job.status()["last_words"] == WORDS
    kx.restart()
    assert job.read("why").endswith(TRACEBACK)
    harness.rmdir(job.dir)
    assert (job.old / "why").read_text().endswith(TRACEBACK)


def test_last_lines(kx):
    """At most five lines, cleaned for a terminal; blank ones are skipped, and a line may be incomplete."""
    job = kx.submit(harness.app(r"""for i in 1 2 3 4 5 6; do echo line $i; echo; done
                                    printf '50%%\r100%%\n\033[31mred\n%600d\nno end' 7; exit 3"""))
    assert job.read("wait") == "FAILED\n"
    assert job.status()["last_words"].splitlines() == ["50%", "100%", "\\x1b[31mred", " " * 500 + " ...", "no end"]
    assert job.read("why").endswith("Its output is in main-0/log. Its last words:\n    50%\n    100%\n    \\x1b[31mred\n    " +
                                    " " * 500 + " ...\n    no end\n")


@pytest.mark.parametrize("script, words", [
    ("exit 3", ""),
    ("echo said; kill -9 $$", "said"),
    ("echo said; echo no JSON > $TORCHELASTIC_ERROR_FILE; exit 3", "said"),
    ("echo said; mkfifo $TORCHELASTIC_ERROR_FILE; exit 3", "said"),
    ("echo said; ln -s /dev/zero $TORCHELASTIC_ERROR_FILE; exit 3", "said"),
    ("echo said; head -c 2000000 /dev/zero > $TORCHELASTIC_ERROR_FILE; exit 3", "said"),
    ("""echo said; echo '{"message": "in one piece"}' > $TORCHELASTIC_ERROR_FILE; exit 3""", "in one piece"),
    ("""echo said; echo '{"message": "of a job that went well"}' > $TORCHELASTIC_ERROR_FILE""", ""),
])
def test_last_words(kx, script, words):
    job = kx.submit(harness.app(script))
    job.read("wait")
    assert job.status()["last_words"] == words


def test_silent(kx):
    """`why` names no empty log; a blank line is not empty."""
    job = kx.submit(harness.app("kill -SEGV $$"))
    job.read("wait")
    said = "main-0 was ended by signal 11 (SIGSEGV). It was not retried, because max_retries is 0. It has printed nothing.\n"
    assert job.read("why") == said
    kx.restart()
    assert job.read("why") == said
    job = kx.submit(harness.app("echo; exit 3"))
    job.read("wait")
    assert job.read("why").endswith("Its output is in main-0/log.\n")


def test_error_file_of_the_job(kx, tmp_path):
    """An AppDef may name its own error file, which is not read; a retry has another file."""
    job = kx.submit(harness.app("", roles=[
        {**harness.sh_role("echo $TORCHELASTIC_ERROR_FILE; exit 3"), "env": {"TORCHELASTIC_ERROR_FILE": str(tmp_path / "e")}}]))
    job.read("wait")
    assert job.status()["last_words"] == str(tmp_path / "e")
    job = kx.submit(harness.app("", roles=[
        {**harness.sh_role('test -e "$TORCHELASTIC_ERROR_FILE" && echo left; echo "{" > "$TORCHELASTIC_ERROR_FILE"; exit 3'),
         "max_retries": 1}]))
    job.read("wait")
    assert job.status()["last_words"] == ""
