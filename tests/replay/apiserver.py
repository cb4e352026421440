# SPDX-License-Identifier: MIT
"""A Kubernetes API server for tests: it runs in a thread of the test's process, and Python calls control it.

    with ApiServer() as server:
        for step in server.play("success"):  # a recording, event by event
            ...
        server.faults.add("lose", verb="create")
        assert server.count(verb="list", resource="pods") == 1

`store` has the objects, `answers` makes the replies, and `faults` has the faults. `requests` lists every request so
far. Methods without an underscore can be called from any thread.
"""

import asyncio
import base64
import contextlib
import functools
import gzip
import socket
import threading

import admission
import answers
import faults as fl
import recordings
import replies
import store as st
from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from request import Request

MAX_BODY = 16 * 1024 * 1024
BLOCK = 256 * 1024  # bytes that are passed to the socket at a time
COMPRESSED = 128 * 1024  # longer lists are compressed for clients that accept it
LIMIT = 60  # the seconds that a call into the server's thread may take


class Connection(RequestHandler):
    """Like aiohttp's handler, but it notifies handlers when the client disconnects."""

    def __init__(self, server, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.owner = server
        self.streams = set()

    def connection_made(self, transport):
        super().connection_made(transport)
        self.owner.connections.add(self)

    def connection_lost(self, exc):
        super().connection_lost(exc)
        self.owner.connections.discard(self)
        for stream in self.streams:
            stream.gone = True
            stream.wake.set()


class Stream:
    """A watch or a log that the server is sending."""

    def __init__(self, req, source):
        self.req = req
        self.source = source
        self.wake = asyncio.Event()
        self.gone = False
        self.inject = []  # bytes to send unchanged
        self.bookmark = False
        self.held = False
        self.end = None  # None, "end" (a regular end), "close" or "reset"


class ApiServer:
    def __init__(self, pki=None, first_version=1000):
        self.pki = pki  # the certificates for TLS (frontend.py), or None for plain HTTP
        self.store = st.Store(first_version)
        self.api = answers.Api(self.store)
        self.faults = fl.Faults()
        self.tokens = {"test-token": "tester"}  # token -> user
        self.passwords = {}  # user -> password
        self.forbidden = []  # filters as for Request.is_, also user=; the server replies to matching requests with 403
        self.bookmark_every = 60.0
        self.date = None  # the server's clock for the header Date, or None for the real time
        self.requests = []
        self.connections = set()
        self.host = "127.0.0.1"
        self.port = 0
        # A socket that stays bound to the port, so that no other process gets the port while the server is away.
        self._held = None
        self._streams = set()
        self._waking = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="apiserver", daemon=True)
        self._server = None
        self.store.listeners.append(lambda change: self._wake())

    # --- life cycle ---

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.stop()

    def start(self):
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind((self.host, self.port))
        self.port = self._held.getsockname()[1]
        self._thread.start()
        self._call(self._start)
        self.back()
        return self

    def stop(self):
        self.away()
        self._call(self._finish)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT)
        self._loop.close()
        self._held.close()

    @property
    def url(self):
        return f"{'https' if self.pki else 'http'}://{self.host}:{self.port}"

    def away(self, how="reset"):
        """Stop listening, and end all connections. HOW is "reset" or "close"."""
        self._call(self._away, how)

    def back(self):
        """Listen on the same port again, with the same objects."""
        self._call(self._listen)

    def freeze(self):
        """From now on, accept connections but send nothing until `thaw()`."""
        self._call(self._set_gate, False)

    def thaw(self):
        self._call(self._set_gate, True)

    # --- queries of tests ---

    def seen(self, **wanted):
        """Return the requests that match WANTED (verb=, resource=, name=, ...), in the order of their arrival."""
        return [req for req in list(self.requests) if req.is_(**wanted)]

    def count(self, **wanted):
        return len(self.seen(**wanted))

    def open_streams(self, **wanted):
        """Return the requests whose watch or log the server is sending now."""
        return [stream.req for stream in list(self._streams) if stream.req.is_(**wanted)]

    # --- actions of tests ---

    def play(self, scenario, namespace="test", **kwargs):
        """Play a recording; yield each Step when the caller asks for it."""
        for step in recordings.Recording(scenario, namespace, **kwargs).steps:
            recordings.apply(self.store, step)
            yield step

    def inject(self, data, **wanted):
        """Send DATA unchanged in all open streams that match WANTED. Return the number of these streams."""
        return self._call(self._on_streams, lambda s: s.inject.append(data), wanted)

    def end_streams(self, how="end", **wanted):
        """End the open streams that match WANTED. HOW: "end" is a regular end, "close" or "reset" ends the
        connection. The streams don't contain later events."""
        return self._call(self._end_streams, how, wanted)

    def hold(self, held=True, **wanted):
        """Hold back the events of matching open watches, or with HELD=False, send them again."""
        return self._call(self._on_streams, lambda s: setattr(s, "held", held), {"verb": "watch", **wanted})

    def send_bookmarks(self, **wanted):
        return self._call(self._on_streams, lambda s: setattr(s, "bookmark", True), wanted)

    def expire(self, **wanted):
        """Make all current versions too old for a watch. Open watches end with 410."""
        self.store.compact(*{r for r in self.api.resources if wanted.get("resource", r.plural) == r.plural})
        return self.inject_error(replies.expired(1, self.store.version), **wanted)

    def inject_error(self, reply, **wanted):
        """Send an ERROR event with the Status of REPLY in matching open watches, and end them."""
        def act(stream):
            stream.inject.append(answers.error_event(reply))
            stream.end = "end"
        return self._call(self._on_streams, act, {"verb": "watch", **wanted})

    def install(self, *resources):
        self.api.resources += [r for r in resources if r not in self.api.resources]

    def uninstall(self, *resources):
        """Remove the definitions of RESOURCES: their paths and discovery return 404."""
        self.api.resources = [r for r in self.api.resources if r not in resources]

    # --- in the server's thread ---

    def _call(self, function, *args):
        async def call():
            result = function(*args)
            return await result if asyncio.iscoroutine(result) else result
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(LIMIT)

    def _start(self):
        self._gate = asyncio.Event()
        self._gate.set()
        self._web = web.Server(self._handle, request_factory=functools.partial(
            web.BaseRequest, client_max_size=MAX_BODY, loop=self._loop))
        self._factory = lambda: Connection(self, self._web, loop=self._loop, access_log=None,
                                           keepalive_timeout=3600)

    async def _listen(self):
        assert self._server is None
        self._server = await self._loop.create_server(
            self._factory, self.host, self.port, backlog=1024, reuse_address=True,
            ssl=self.pki.server_context() if self.pki else None)

    def _away(self, how):
        if self._server:
            self._server.close()
            self._server = None
        for connection in list(self.connections):
            if connection.transport is not None:
                (fl.reset if how == "reset" else type(connection.transport).close)(connection.transport)

    async def _finish(self):
        self._gate.set()
        await asyncio.sleep(0)
        tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _set_gate(self, is_open):
        (self._gate.set if is_open else self._gate.clear)()

    def _wake(self):
        """Let the streams look for changes. May be called from any thread."""
        if self._waking or not self._streams or self._loop.is_closed():
            return
        self._waking = True

        def wake():
            self._waking = False
            for stream in self._streams:
                if isinstance(stream.source, answers.Watch):  # logs notify their streams themselves
                    stream.wake.set()

        self._loop.call_soon_threadsafe(wake)

    def _on_streams(self, act, wanted):
        found = [s for s in self._streams if s.req.is_(**wanted)]
        for stream in found:
            act(stream)
            stream.wake.set()
        return len(found)

    async def _end_streams(self, how, wanted):
        found = [s for s in self._streams if s.req.is_(**wanted)]
        self._on_streams(lambda s: setattr(s, "end", how), wanted)
        # A stream whose client does not read, or that is frozen, ends only later.
        for _ in range(100):
            if not self._streams.intersection(found):
                break
            await asyncio.sleep(0.005)
        return len(found)

    def pass_on(self, req):
        """Carry out REQ, which a proxy has delayed. Its reply is dropped."""
        self._call(lambda: self._answer(req))

    # --- one request ---

    async def _handle(self, request):
        req = Request(request.method, request.path, request.query_string, dict(request.headers))
        self.requests.append(req)
        await self._gate.wait()
        try:
            req.user = self._authenticate(request)
            req.find_meaning(self.api.resources)
        except replies.Reply as reply:
            await request.read()
            return self._respond(req, reply)
        fault = req.fault = self.faults.pick(req)
        kind = fault.kind if fault else ""
        transport = request.transport
        if transport is None:
            return web.Response()
        if kind == "reset":
            return self._drop(req, transport)
        req.body = await request.read()
        if kind in ("cut", "close", "slow"):
            request.protocol.transport = fl.Shaped(transport, self._loop, fault)
        if kind in ("reply", "silent"):
            answer = fault.reply
        else:
            answer = self._answer(req)
        if kind in ("silent", "deaf"):
            return await self._say_nothing(request, req)
        if kind == "lose":
            return self._drop(req, transport)
        if kind in ("longer", "junk"):
            return self._raw(req, transport, answer, fault)
        if kind == "instead":
            answer = fault.reply
        if isinstance(answer, replies.Reply):
            return self._respond(req, answer)
        return await self._send(request, req, answer)

    def _answer(self, req):
        try:
            self._authorize(req)
            if req.resource is st.REVIEWS:
                return self._review(req)
            return self.api.answer(req)
        except replies.Reply as reply:
            return reply

    def _authenticate(self, request):
        kind, _, value = request.headers.get("Authorization", "").partition(" ")
        user = "system:anonymous"
        cert = request.transport.get_extra_info("peercert") if request.transport else None
        if kind == "Bearer":
            user = self.tokens.get(value)
        elif kind == "Basic":
            name, _, password = base64.b64decode(value).decode().partition(":")
            user = name if self.passwords.get(name) == password else None
        elif cert:
            user = dict(pair for part in cert["subject"] for pair in part)["commonName"]
        if user is None:
            raise replies.unauthorized()
        return request.headers.get("Impersonate-User", user)

    def _authorize(self, req):
        if not req.resource:
            return
        if req.user == "system:anonymous" or any(req.is_(**rule) for rule in list(self.forbidden)):
            raise replies.forbidden(req.user, req.verb, req.resource, req.namespace, req.name,
                                    req.subresource)

    def _review(self, req):
        """Reply whether the user has the requested right, according to `forbidden`."""
        review = admission.decode(req.body)
        wanted = review["spec"]["resourceAttributes"]
        asked = Request("", "", "", {})
        asked.user, asked.verb = req.user, wanted["verb"]
        asked.namespace, asked.subresource = wanted.get("namespace", ""), wanted.get("subresource", "")
        asked.resource = next((r for r in self.api.resources
                               if (r.group, r.plural) == (wanted["group"], wanted["resource"])), None)
        refused = any(asked.is_(**rule) for rule in list(self.forbidden))
        return replies.json_reply({**review, "status": {"allowed": not refused}}, 201)

    def _respond(self, req, reply):
        req.code = reply.code
        headers = {"Audit-Id": f"{id(req):x}", "Cache-Control": "no-cache, private", **reply.headers}
        if self.date:
            headers["Date"] = self.date
        body = reply.body
        if reply.code == 204:
            headers.pop("Content-Type")
        if req.verb == "list" and len(body) > COMPRESSED and "gzip" in req.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        return web.Response(status=reply.code, body=body, headers=headers)

    @staticmethod
    def _drop(req, transport):
        req.code = 0
        fl.reset(transport)
        return web.Response()

    @staticmethod
    async def _say_nothing(request, req):
        req.code = 0
        stream = Stream(req, None)
        request.protocol.streams.add(stream)
        while not stream.gone:
            await stream.wake.wait()
        return web.Response()

    @staticmethod
    def _raw(req, transport, answer, fault):
        """Send bytes that are not valid HTTP, and end the connection."""
        req.code = 0
        if fault.kind == "junk" or not isinstance(answer, replies.Reply):
            transport.write(b"\x00\xff\x15\x03 this is no HTTP\r\n\r\n")
        else:
            length = len(answer.body) + (fault.amount if fault.kind == "longer" else -fault.amount)
            head = (f"HTTP/1.1 {answer.code} OK\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {max(length, 0)}\r\n\r\n")
            transport.write(head.encode() + answer.body)
        transport.close()
        return web.Response()

    # --- streams ---

    async def _send(self, request, req, source):
        """Send a watch or a log until it ends, a test ends it, or the client disconnects."""
        stream = Stream(req, source)
        req.code = 200
        kind = "application/json" if isinstance(source, answers.Watch) else "text/plain"
        response = web.StreamResponse(headers={"Content-Type": kind, "Cache-Control": "no-cache, private"})
        request.protocol.streams.add(stream)
        self._streams.add(stream)
        try:
            await response.prepare(request)
            send = self._send_watch if isinstance(source, answers.Watch) else self._send_log
            await send(request, response, stream)
        except ConnectionError:
            stream.gone = True
        finally:
            self._streams.discard(stream)
            request.protocol.streams.discard(stream)
        if not stream.gone and stream.end in ("close", "reset"):
            (fl.reset if stream.end == "reset" else type(request.transport).close)(request.transport)
        return response

    async def _send_watch(self, request, response, stream):
        watch = stream.source
        begin = self._loop.time()
        last_bookmark = begin
        going = True
        while going and not stream.gone:
            await self._gate.wait()
            stream.wake.clear()
            if stream.held and stream.end is None:
                await self._wait(stream, LIMIT)
                continue
            data, going = watch.lines(self.store)
            await self._write(response, data)
            now = self._loop.time()
            if going and (stream.bookmark or (watch.bookmarks and now >= last_bookmark + self.bookmark_every)):
                stream.bookmark = False
                last_bookmark = now
                await self._write(response, watch.bookmark(self.store))
            if await self._inject(response, stream):
                return
            if watch.seconds is not None and now >= begin + watch.seconds:
                return
            ends = begin + watch.seconds if watch.seconds is not None else now + LIMIT
            soon = min(ends, last_bookmark + self.bookmark_every if watch.bookmarks else ends)
            if going:
                await self._wait(stream, max(soon - now, 0.001))

    async def _send_log(self, request, response, stream):
        reader = stream.source
        wake = functools.partial(self._loop.call_soon_threadsafe, stream.wake.set)
        reader.log.listeners.append(wake)
        try:
            while not stream.gone:
                await self._gate.wait()
                stream.wake.clear()
                data, ended = reader.read()
                await self._write(response, data)
                if await self._inject(response, stream) or ended or not reader.follow:
                    return
                await self._wait(stream, LIMIT)
        finally:
            reader.log.listeners.remove(wake)

    async def _inject(self, response, stream):
        """Send what a test has injected. Return true if the stream has ended."""
        while stream.inject:
            await self._write(response, stream.inject.pop(0))
        return stream.end is not None

    @staticmethod
    async def _write(response, data):
        for at in range(0, len(data), BLOCK):
            await response.write(data[at:at + BLOCK])

    @staticmethod
    async def _wait(stream, seconds):
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stream.wake.wait(), seconds)
