#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The servers that test-http.c connects to: HTTP/1.1, HTTP/1.1 over TLS, HTTP/2, a server that
requires client certificates, an HTTP proxy and a SOCKS5 proxy. The do_ methods of Exchange define
what each path does. The first line of the output is "DIR plain PORT tls PORT ...", where DIR
contains the certificates. The program ends at the end of its input."""

import asyncio
import gzip
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import h2.config
import h2.connection
import h2.events
import h2.exceptions

LIVE_STREAMS = 100  # per connection, as in kube-apiserver


class Broken(Exception):
    """Close the connection without a reply."""


class Stats:
    def __init__(self):
        self.most = 0  # the most streams that were open at the same time on one connection
        self.seen = {}  # id -> number of requests
        self.release = asyncio.Event()


STATS = Stats()
MIXED = []  # the streams of /mixed
RANDOM = random.Random(1)


class Exchange:
    """One request. The connection provides head(), send() and end()."""

    def __init__(self, method, target, headers, body, connection):
        self.method, self.headers, self.body, self.connection = method, headers, body, connection
        url = urllib.parse.urlsplit(target)
        self.path = url.path
        self.query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
        self.target = target

    def number(self, name, default=0):
        return float(self.query.get(name, default))

    async def reply(self, status, body=b"", headers=()):
        await self.head(status, [("content-length", str(len(body))), *headers])
        if body:
            await self.send(body)
        await self.end()

    async def run(self):
        name = self.path.strip("/").split("/")[0]
        key = self.query.get("id", "")
        STATS.seen[key] = STATS.seen.get(key, 0) + 1
        handler = getattr(self, "do_" + name.replace("-", "_"), None)
        if handler:
            await handler()
        else:
            await self.reply(404, b"no such thing")

    # Return the host and the name in the client's certificate, then the rest of the request.
    async def do_echo(self):
        headers = dict(self.headers)
        host = headers.get("host") or headers[":authority"]
        lines = [f"{host} {self.connection.peer}", f"{self.method} {self.target}"]
        lines += [f"{k}: {v}" for k, v in sorted(self.headers) if k != "host" and k[0] != ":"]
        body = "\n".join([*lines, "", self.body.decode()]).encode()
        if "gzip" in headers.get("accept-encoding", ""):
            await self.reply(200, gzip.compress(body), [("content-encoding", "gzip")])
        else:
            await self.reply(200, body)

    # Return STATUS with Retry-After AFTER for the first TIMES requests of ID, then 200 "fine".
    async def do_status(self):
        times = self.number("times", 1e9)
        if STATS.seen[self.query.get("id", "")] > times:
            await self.reply(200, b"fine")
            return
        headers = [("retry-after", self.query["after"])] if "after" in self.query else []
        await self.reply(int(self.number("status", 200)), self.query.get("body", "").encode(), headers)

    # Return 401 unless the Authorization header is "Bearer TOKEN".
    async def do_token(self):
        good = dict(self.headers).get("authorization") == "Bearer " + self.query["token"]
        await self.reply(200 if good else 401, b"in" if good else b"who are you")

    # Send N chunks of SIZE bytes, GAP s apart, then END: "end", "cut" or "hang".
    async def do_pieces(self):
        await self.head(int(self.number("status", 200)), [])
        for i in range(int(self.number("n", 1))):
            await self.send(bytes([ord("a") + i % 26]) * int(self.number("size", 10)))
            await asyncio.sleep(self.number("gap"))
        end = self.query.get("end", "end")
        if end == "cut":
            raise Broken
        if end == "hang":
            await asyncio.Event().wait()
        await self.end()

    # Never reply. With times=N, only the first N requests of ID get no reply.
    async def do_silent(self):
        if STATS.seen[self.query.get("id", "")] <= self.number("times", 1e9):
            await asyncio.Event().wait()
        await self.reply(200, b"fine")

    # Close the connection before the reply.
    async def do_cut(self):
        if STATS.seen[self.query.get("id", "")] <= self.number("times", 1e9):
            raise Broken
        await self.reply(200, b"fine")

    # Close the connection properly in the middle of the reply's header.
    async def do_half_head(self):
        writer = self.connection.c.writer
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Type: applic")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        raise Broken

    # Send a stream that lasts until /release.
    async def do_stream(self):
        await self.head(200, [])
        await self.send(b"begin\n")
        release = STATS.release
        while not release.is_set():
            await self.send(b"x" * int(self.number("size", 100)))
            try:
                await asyncio.wait_for(release.wait(), self.number("gap", 0.05))
            except asyncio.TimeoutError:
                pass
        await self.end()

    # Send what /mix asks for. This path requires HTTP/2.
    async def do_mixed(self):
        await self.head(200, [])
        MIXED.append(self)
        try:
            await asyncio.Event().wait()
        finally:
            MIXED.remove(self)

    # Send random frames of all streams of /mixed, which share a connection, at once. Return the number of bytes.
    async def do_mix(self):
        sizes = [RANDOM.choice([36, 16384, RANDOM.randint(1, 16384)]) for _ in range(RANDOM.randint(1, 20))]
        for size in sizes:
            one = RANDOM.choice(MIXED)
            one.connection.h2.send_data(one.stream, b"x" * size)
        MIXED[0].connection.flush()
        await self.reply(200, str(sum(sizes)).encode())

    async def do_release(self):
        STATS.release.set()
        STATS.release = asyncio.Event()
        await self.reply(200)

    # Reply, and announce that the connection accepts no new requests.
    async def do_goaway(self):
        self.connection.go_away()
        await self.reply(200, b"bye")

    async def do_redirect(self):
        await self.reply(302, b"elsewhere", [("location", "/echo")])

    # Return the number of earlier requests of ID.
    async def do_seen(self):
        key = self.query["id"]
        STATS.seen[key] -= 1
        await self.reply(200, str(STATS.seen[key]).encode())

    async def do_most(self):
        await self.reply(200, str(STATS.most).encode())

    async def do_reset(self):
        STATS.most = 0
        STATS.seen.clear()
        await self.reply(200)


class Connection:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.early = b""
        cert = writer.get_extra_info("peercert")
        self.peer = dict(x[0] for x in cert["subject"]).get("commonName", "") if cert else ""

    async def serve(self):
        try:
            tls = self.writer.get_extra_info("ssl_object")
            if tls and tls.selected_alpn_protocol() == "h2":
                await Two(self).serve()
            else:
                while await One(self).serve():
                    pass
        except (Broken, OSError, EOFError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.writer.transport.abort()


class One:
    """HTTP/1.1, one request after the other."""

    def __init__(self, connection):
        self.c = connection
        self.last = False
        self.chunked = False

    @property
    def peer(self):
        return self.c.peer

    def go_away(self):
        self.last = True

    async def serve(self):
        head = (self.c.early + await self.c.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.c.early = b""
        method, target, _ = head[0].split(" ")
        headers = [(k.lower(), v.strip()) for k, _, v in (line.partition(":") for line in head[1:] if line)]
        body = await self.c.reader.readexactly(int(dict(headers).get("content-length", 0)))
        exchange = Exchange(method, target, headers, body, self)
        exchange.head, exchange.send, exchange.end = self.head, self.send, self.end
        # If the client closes the connection, cancel the request under way.
        work = asyncio.ensure_future(exchange.run())
        eof = asyncio.ensure_future(self.c.reader.read(1))
        await asyncio.wait([work, eof], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            await asyncio.gather(work, eof, return_exceptions=True)
            return False
        eof.cancel()
        [early] = await asyncio.gather(eof, return_exceptions=True)
        if isinstance(early, bytes):
            self.c.early = early  # the first byte of the next request
        work.result()
        return not self.last

    async def head(self, status, headers):
        lines = [f"HTTP/1.1 {status} X"]
        self.chunked = not any(k == "content-length" for k, _ in headers)
        if self.chunked:
            headers = [*headers, ("transfer-encoding", "chunked")]
        if self.last:
            headers = [*headers, ("connection", "close")]
        lines += [f"{k}: {v}" for k, v in headers]
        self.c.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await self.c.writer.drain()

    async def send(self, data):
        if self.chunked:
            data = b"%x\r\n%s\r\n" % (len(data), data)
        self.c.writer.write(data)
        await self.c.writer.drain()

    async def end(self):
        if self.chunked:
            self.c.writer.write(b"0\r\n\r\n")
        await self.c.writer.drain()


class Two:
    """HTTP/2."""

    def __init__(self, connection):
        self.c = connection
        self.peer = connection.peer
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests = {}
        self.tasks = {}
        self.room = asyncio.Event()

    def flush(self):
        self.c.writer.write(self.h2.data_to_send())

    def go_away(self):
        self.h2.close_connection()
        # Without this, h2's state machine would end the open streams.
        self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN

    async def serve(self):
        self.h2.initiate_connection()
        self.h2.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: LIVE_STREAMS})
        self.flush()
        try:
            while True:
                data = await self.c.reader.read(65536)
                if not data:
                    return
                for event in self.h2.receive_data(data):
                    self.on_event(event)
                self.flush()
                await self.c.writer.drain()
        except h2.exceptions.ProtocolError:
            self.flush()
        finally:
            for task in self.tasks.values():
                task.cancel()

    def on_event(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.requests[event.stream_id] = (event.headers, [])
        elif isinstance(event, h2.events.DataReceived):
            self.requests[event.stream_id][1].append(event.data)
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.tasks[event.stream_id] = asyncio.ensure_future(self.exchange(event.stream_id))
            STATS.most = max(STATS.most, len(self.tasks))
        elif isinstance(event, h2.events.StreamReset):
            task = self.tasks.pop(event.stream_id, None)
            if task:
                task.cancel()
        elif isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            self.room.set()

    async def exchange(self, stream):
        headers, body = self.requests.pop(stream)
        fields = dict(headers)
        exchange = Exchange(fields[":method"], fields[":path"], headers, b"".join(body), self)

        async def head(status, more):
            self.h2.send_headers(stream, [(":status", str(status)), *more])
            self.flush()

        async def send(data):
            while data:
                n = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(data))
                if n <= 0:
                    self.room.clear()
                    await self.room.wait()
                    continue
                self.h2.send_data(stream, data[:n])
                data = data[n:]
                self.flush()
                await self.c.writer.drain()

        async def end():
            self.h2.end_stream(stream)
            self.flush()

        exchange.head, exchange.send, exchange.end, exchange.stream = head, send, end, stream
        try:
            await exchange.run()
        except Broken:
            self.c.writer.transport.abort()
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            self.tasks.pop(stream, None)


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def tunnel(reader, writer, host, port, yes):
    far_reader, far_writer = await asyncio.open_connection(host, port)
    writer.write(yes)
    await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))


# Both proxies resolve a name that nothing else resolves. A client that looks it up itself fails.
def known(host):
    return "127.0.0.1" if host == "only-the-proxy.test" else host


async def on_proxy(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    method, target, _ = head.split("\r\n")[0].split(" ")
    if method != "CONNECT" or "authorization: bearer" in head.lower():
        writer.write(b"HTTP/1.1 400 X\r\n\r\n")
        writer.close()
        return
    host, _, port = target.rpartition(":")
    await tunnel(reader, writer, known(host), int(port), b"HTTP/1.1 200 X\r\n\r\n")


async def on_socks(reader, writer):
    _, n = await reader.readexactly(2)
    await reader.readexactly(n)
    writer.write(b"\x05\x00")
    *_, kind = await reader.readexactly(4)
    if kind == 3:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
    else:
        host = socket.inet_ntoa(await reader.readexactly(4))
    port, = struct.unpack("!H", await reader.readexactly(2))
    await tunnel(reader, writer, known(host), port, b"\x05\x00\x00\x01\0\0\0\0\0\0")


def make_certificates(directory):
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=directory, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-x509")
    for name in ("ca", "other-ca"):
        openssl("req", *key, "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".pem")
    for name, san in (("server", "DNS:localhost,IP:127.0.0.1"), ("named", "DNS:kubernetes.test"),
                      ("alice", "DNS:alice"), ("bob", "DNS:bob")):
        openssl("req", *key, "-subj", "/CN=" + name, "-addext", "subjectAltName=" + san, "-CA", "ca.pem",
                "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE",
                "-keyout", name + ".key", "-out", name + ".pem")
    openssl("ec", "-in", "alice.key", "-aes256", "-passout", "pass:secret", "-out", "locked.key")


def context(directory, name, protocols, client=False):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(directory / (name + ".pem"), directory / (name + ".key"))
    c.set_alpn_protocols(protocols)
    if client:
        c.verify_mode = ssl.CERT_REQUIRED
        c.load_verify_locations(directory / "ca.pem")
    return c


async def main(directory):
    make_certificates(directory)
    both, old = ["h2", "http/1.1"], ["http/1.1"]
    servers = {"plain": None, "tls": context(directory, "server", old), "h2": context(directory, "server", both),
               "named": context(directory, "named", both), "mtls": context(directory, "server", both, client=True)}
    ports, running = {}, []
    for name, tls in servers.items():
        running.append(await asyncio.start_server(lambda r, w: Connection(r, w).serve(), "127.0.0.1", 0, ssl=tls,
                                                  backlog=1000))
    for name, handler in (("proxy", on_proxy), ("socks", on_socks)):
        running.append(await asyncio.start_server(handler, "127.0.0.1", 0))
    for name, server in zip([*servers, "proxy", "socks"], running):
        ports[name] = server.sockets[0].getsockname()[1]
    print(directory, *(f"{name} {port}" for name, port in ports.items()), flush=True)
    await asyncio.Event().wait()


def end_with_input(directory):
    sys.stdin.buffer.read()
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    # Ignore signals that are sent to the test's process group: this process cleans up when its
    # input ends.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    made = pathlib.Path(tempfile.mkdtemp(prefix="kxfs-http-"))
    threading.Thread(target=end_with_input, args=(made,), daemon=True).start()
    asyncio.run(main(made))
