# SPDX-License-Identifier: MIT
"""Faults between a client and the API server.

A test chooses faults for certain requests (`Faults.add`), or lets `Faults.at_random` choose them and print its seed, so
that a failure can be repeated. Most faults change the bytes of the reply: a `Shaped` transport is between aiohttp and
the socket."""

import random
import socket
import struct


class Fault:
    """One fault.

        KIND       effect
        reset      the connection is reset before the request takes effect
        lose       the request takes effect; the connection is reset before any byte of the reply
        cut        the reply ends after AMOUNT bytes with a reset
        close      like cut, but the connection is closed regularly
        slow       the reply arrives in chunks of AMOUNT bytes, one every DELAY seconds
        silent     there is no reply, and the connection remains open; the request has no effect
        deaf       like silent, but the request takes effect
        reply      REPLY is the reply; the request has no effect
        instead    the request takes effect, but a proxy replaces the server's reply by REPLY
        longer     Content-Length is AMOUNT bytes too large, and the connection ends
        junk       bytes that are not HTTP
    """

    KINDS = ("reset", "lose", "cut", "close", "slow", "silent", "deaf", "reply", "instead", "longer", "junk")

    def __init__(self, kind, amount=0, delay=0.0, reply=None):
        assert kind in self.KINDS, kind
        self.kind = kind
        self.amount = amount
        self.delay = delay
        self.reply = reply

    def __repr__(self):
        if self.reply:
            return f"{self.kind} {self.reply.code}"
        return f"{self.kind} {self.amount}" if self.amount else self.kind


class Faults:
    """Chooses the faults of requests. Its methods can be called from any thread."""

    def __init__(self):
        self._planned = []  # [fault, times left, filter of requests]
        self._random = None

    def add(self, kind, times=1, amount=0, delay=0.0, reply=None, **wanted):
        """Give the next TIMES requests that match WANTED (see Request.is_) a fault of KIND. Return the fault."""
        fault = Fault(kind, amount, delay, reply)
        self._planned.append([fault, times, wanted])
        return fault

    def clear(self, fault=None):
        """Remove all faults, or only FAULT, which `add` has returned."""
        if fault:
            self._planned = [planned for planned in self._planned if planned[0] is not fault]
        else:
            self._planned.clear()
            self._random = None

    def at_random(self, seed, rate, choices, **wanted):
        """From now on, give a share RATE of the requests that match WANTED one of CHOICES at random. These are
        functions that create a Fault from a random.Random. Print SEED."""
        print(f"faults: seed {seed}, rate {rate}")
        self._random = (random.Random(seed), rate, choices, wanted)

    def pick(self, req):
        """Return the fault of REQ, or None."""
        for planned in self._planned:
            fault, times, wanted = planned
            if times > 0 and req.is_(**wanted):
                planned[1] -= 1
                return fault
        if self._random:
            rand, rate, choices, wanted = self._random
            if req.is_(**wanted) and rand.random() < rate:
                return rand.choice(choices)(rand)
        return None


def common_faults(replies):
    """Return functions that create faults which any request may get."""
    return [
        lambda rand: Fault("reset"),
        lambda rand: Fault("lose"),
        lambda rand: Fault("cut", rand.randrange(1, 4000)),
        lambda rand: Fault("close", rand.randrange(1, 4000)),
        lambda rand: Fault("slow", rand.randrange(100, 2000), 0.01),
        lambda rand: Fault("reply", reply=replies.too_many()),
        lambda rand: Fault("reply", reply=replies.unavailable()),
        lambda rand: Fault("reply", reply=replies.internal()),
        lambda rand: Fault("longer", rand.randrange(1, 100)),
        lambda rand: Fault("junk"),
    ]


def reset(transport):
    """Reset the connection TRANSPORT."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
    transport.abort()


class Shaped:
    """A transport that cuts or slows down its output."""

    def __init__(self, transport, loop, fault):
        self._transport = transport
        self._loop = loop
        self._fault = fault
        self._left = fault.amount
        self._queue = bytearray()
        self._timer = None
        self._ending = False

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def write(self, data):
        if self._fault.kind == "slow":
            self._queue += data
            if self._timer is None:
                self._drip()
            return
        if self._transport.is_closing():
            return
        self._transport.write(bytes(data[:self._left]))
        self._left -= len(data)
        if self._left <= 0:
            # The kernel or asyncio's buffer has the earlier bytes, so they are sent before the end. A reset may drop
            # them, as on a real network.
            (reset if self._fault.kind == "cut" else type(self._transport).close)(self._transport)

    def writelines(self, parts):
        self.write(b"".join(parts))

    def close(self):
        self._ending = True
        if not self._queue:
            self._transport.close()

    def _drip(self):
        self._timer = None
        if self._transport.is_closing():
            return
        self._transport.write(bytes(self._queue[:self._fault.amount]))
        del self._queue[:self._fault.amount]
        if self._queue:
            self._timer = self._loop.call_later(self._fault.delay, self._drip)
        elif self._ending:
            self._transport.close()
