# SPDX-License-Identifier: MIT
"""A user who interrupts kxfs while it starts need not wait for the server: the command ends, and leaves nothing."""

import contextlib
import fcntl
import itertools
import os
import signal
import socket
import threading
import time
import zlib

import kubeconfig
import pytest
from harness import LIMIT, is_mounted, kill, marked_pids, popen, wait_for

SOON = 15  # seconds; kxfs itself gives a server 30


@contextlib.contextmanager
def deaf_server():
    """A server that accepts connections and never replies: its URL, and a function that waits for the first one."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        s.settimeout(LIMIT)
        taken = []
        try:
            yield f"http://127.0.0.1:{s.getsockname()[1]}", lambda: taken.append(s.accept()[0])
        finally:
            for connection in taken:
                connection.close()


@pytest.fixture
def begin(make_kx, server):
    """begin(source, args, url=, user=) -> a mount, and the command that makes it, in a process group of its own."""
    started = []

    def go(source, args=(), **more):
        kx = make_kx(start=False, source=source)
        path = kubeconfig.write(kx.base / "config", kubeconfig.config(server, **more))
        with open(kx.messages, "ab") as err:
            started.append(popen(kx.command(*args), env={**kx.env(), "KUBECONFIG": str(path)}, cwd=kx.work,
                                 stdout=err, stderr=err, process_group=0))
        return kx, started[-1]

    yield go
    for p in started:
        if p.returncode is None:  # not waited for, so that its number is still its own
            os.killpg(p.pid, signal.SIGKILL)
        p.wait(timeout=LIMIT)


def ends(kx, p, sig):
    """The command ends soon, prints or shows that the signal SIG ended it, and has left nothing."""
    since = time.monotonic()
    status = p.wait(timeout=LIMIT)
    assert time.monotonic() - since < SOON
    assert status == -sig or (status == 1 and "kxfs: ended by a signal while it started\n" in kx.said()), kx.said()
    nothing_left(kx)
    # Killed processes may need a moment.
    wait_for(lambda: not marked_pids(), timeout=SOON, what="the end of what it has started")


def nothing_left(kx):
    with open(kx.state / "lock", "ab") as f:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fd = os.open(kx.mnt, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(fd)
    assert not is_mounted(kx.mnt)


def ctrl_c(p):
    """As a terminal sends it: to the whole group."""
    os.killpg(p.pid, signal.SIGINT)
    return signal.SIGINT


def alone(sig):
    """To the command that the user has started, and not to its child."""
    def send(p):
        kill(p.pid, sig)
        return sig
    return send


@pytest.mark.parametrize("interrupt", [ctrl_c, alone(signal.SIGINT), alone(signal.SIGTERM), alone(signal.SIGHUP)],
                         ids=["ctrl-c", "int", "term", "hup"])
@pytest.mark.parametrize("args", [(), ("-f",)], ids=["background", "foreground"])
@pytest.mark.parametrize("source", ["volcano:test", "test"], ids=["list", "kind"])
def test_silent_server(begin, source, args, interrupt):
    """It waits for the first list; or, if SOURCE has no backend, for discovery."""
    with deaf_server() as (url, wait_for_connection):
        kx, p = begin(source, args, url=url)
        wait_for_connection()
        ends(kx, p, interrupt(p))


@pytest.mark.parametrize("source", ["volcano:test", "test"], ids=["list", "kind"])
def test_plugin_that_waits(begin, tmp_path, source):
    """It has a session of its own, so a terminal's Ctrl-C does not reach it."""
    asked = tmp_path / "asked"
    kx, p = begin(source, user=kubeconfig.plugin("sh", "-c", f"touch {asked}; exec sleep 1000"))
    wait_for(asked.exists, what="the plugin")
    ends(kx, p, ctrl_c(p))


def test_command_is_killed(begin):
    """Its orphaned child ends too, and mounts nothing."""
    with deaf_server() as (url, wait_for_connection):
        kx, p = begin("volcano:test", url=url)
        wait_for_connection()
        kill(p.pid, signal.SIGKILL)
        assert p.wait(timeout=LIMIT) == -signal.SIGKILL
        wait_for(lambda: not marked_pids(), timeout=SOON, what="the end of its child")
        nothing_left(kx)
    assert "kxfs: ended by a signal while it started\n" in kx.said()


def test_next_one_starts_at_once(begin, server, volcano):
    del volcano
    with deaf_server() as (url, wait_for_connection):
        kx, p = begin("volcano:test", url=url)
        wait_for_connection()
        ends(kx, p, ctrl_c(p))
    kx.more_env["KUBECONFIG"] = str(kubeconfig.write(kx.base / "config", kubeconfig.config(server)))
    kx.start()
    assert kx.ls("jobs") == []


# --- an endless reply ---

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def objects():
    """A list without an end."""
    yield HEAD + b'\r\n{"items":['
    item = b'{"metadata":{"name":"j%d","namespace":"test","uid":"u%d","resourceVersion":"1"},"spec":{}},'
    for i in itertools.count(0, 1000):
        yield b"".join(item % (k, k) for k in range(i, i + 1000))


def bomb():
    """A thousand bytes for each byte sent."""
    yield HEAD + b"Content-Encoding: gzip\r\n\r\n"
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    while True:
        yield press.compress(b" " * (1 << 24)) + press.flush(zlib.Z_SYNC_FLUSH)


def blanks():
    yield HEAD + b"\r\n"
    while True:
        yield b" " * 65536


def drip():
    """A byte now and then, so that it is never silent."""
    yield HEAD + b"\r\n"
    while True:
        time.sleep(0.5)
        yield b" "


@contextlib.contextmanager
def endless_server(reply):
    """Each request gets the output of REPLY. Yields its URL, and how many bytes were sent."""
    sent, connections, ends = [0], [], threading.Event()

    def serve(connection):
        with contextlib.suppress(OSError):
            connection.recv(65536)
            for piece in reply():
                if ends.is_set():
                    return
                connection.sendall(piece)
                sent[0] += len(piece)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connections.append(s.accept()[0])
                threads.append(threading.Thread(target=serve, args=(connections[-1],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as s:
        threads = [threading.Thread(target=accept)]
        threads[0].start()
        try:
            yield f"http://127.0.0.1:{s.getsockname()[1]}", lambda: sent[0]
        finally:
            ends.set()
            s.shutdown(socket.SHUT_RDWR)
            threads[0].join(LIMIT)
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            for thread in threads[1:]:
                thread.join(LIMIT)
            for connection in connections:
                connection.close()


@pytest.mark.parametrize("reply, much", [(objects, 20 << 20), (bomb, 200 << 10), (blanks, 20 << 20),
                                         (drip, len(HEAD) + 4)], ids=["objects", "bomb", "blanks", "drip"])
def test_server_without_end(begin, reply, much):
    """Whatever a server sends, and however fast: kxfs abandons it, or ends when requested."""
    with endless_server(reply) as (url, sent):
        kx, p = begin("volcano:test", ["-f"], url=url)
        wait_for(lambda: p.poll() is not None or sent() > much, what="what does not end")
        if p.poll() is None:
            p.send_signal(signal.SIGTERM)
            since = time.monotonic()
            p.wait(timeout=LIMIT)
            assert time.monotonic() - since < SOON
        nothing_left(kx)
