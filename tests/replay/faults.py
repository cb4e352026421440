# SPDX-License-Identifier: MIT
"""What can go wrong between a client and the API server.

A fault is chosen for a request: by a test (`Faults.add`, used up after some times), or at random
from a seed that is printed, so that a failure can be had again. Most act on the bytes of the
reply: `Shaped` stands between aiohttp and the socket.
"""

import random
import socket
import struct


class Fault:
    """One thing that goes wrong.

    KIND       what happens
    reset      the connection is reset before the request has any effect
    lose       the request takes effect, the connection is reset before any byte of the reply
    cut        the reply ends after AMOUNT bytes with a reset
    close      the same with an orderly end
    slow       the reply comes in pieces of AMOUNT bytes, one every DELAY seconds
    silent     no reply at all, the connection stays; the request has no effect
    deaf       the same, but the request takes effect
    reply      REPLY is the answer; the request has no effect
    instead    REPLY is the answer, in place of that of the server, which the proxy that gives it has lost
    longer     Content-Length says AMOUNT more than there is, then the end
    shorter    Content-Length says AMOUNT less than there is
    junk       bytes that are no HTTP
    """

    KINDS = ("reset", "lose", "cut", "close", "slow", "silent", "deaf", "reply", "instead", "longer", "shorter", "junk")

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
    """Which fault a request meets. Methods from any thread."""

    def __init__(self):
        self._planned = []  # [fault, times left, what it is for]
        self._random = None

    def add(self, kind, times=1, amount=0, delay=0.0, reply=None, **wanted):
        """The next TIMES requests that are WANTED (as Request.is_) meet a fault of KIND."""
        fault = Fault(kind, amount, delay, reply)
        self._planned.append([fault, times, wanted])
        return fault

    def clear(self, fault=None):
        """Nothing goes wrong any more; or not FAULT, which `add` gave."""
        if fault:
            self._planned = [planned for planned in self._planned if planned[0] is not fault]
        else:
            self._planned.clear()
            self._random = None

    def at_random(self, seed, rate, choices, **wanted):
        """From now on a share RATE of the requests that are WANTED meets one of CHOICES: functions
        that make a Fault of a random.Random. Prints SEED."""
        print(f"faults: seed {seed}, rate {rate}")
        self._random = (random.Random(seed), rate, choices, wanted)

    def pick(self, req):
        """The fault of this request, None: it goes well."""
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
    """What any request may meet."""
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
    """End a connection with a reset."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
    transport.abort()


class Shaped:
    """A transport that cuts or slows what is written to it."""

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
            # What was written is sent before the end: the kernel has it, or asyncio's buffer; a
            # reset may throw it away, as on a real network.
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
