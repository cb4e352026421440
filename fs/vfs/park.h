/* SPDX-License-Identifier: MIT */
/*
 * FUSE requests that wait for an event. The FUSE thread parks them, and the first that claims a
 * request answers it, exactly once: the awaited event, an interrupt, the deadline, or the end of
 * the mount (rules T1, T6). A parked request has a ticket, a number that is never reused, so a late
 * event with an old ticket is harmless.
 *
 *	ticket = park_add(park, req, PARK_READ, 0);	// FUSE thread, no lock held
 *	... pass TICKET to the code that will answer; if it can answer now, claim immediately
 *
 *	req = park_claim(park, ticket);			// any thread but under a lock
 *	if (req)
 *		fuse_reply_...(req, ...);
 *
 * fuse_req_interrupt_func demands this order: claim under the lock, unlock, clear the interrupt
 * function, reply. park_claim does all but the last.
 */
#pragma once

#include "fs/vfs/fuse.h"
#include "spec/base/base.h"

struct park;

/* The type of a parked request, for .kxfs/metrics. */
enum park_kind { PARK_READ, PARK_OPEN, PARK_CLOSE, PARK_WRITE, PARK_DIR, PARK_DISK, PARK_N_KINDS };

struct park *park_new(void);
/*
 * Start park's thread, which answers interrupts and deadlines and waits for nothing else: neither a
 * disk nor the I/O thread can hold them up. Return 0 or a negative errno. Call this before anything
 * is parked.
 */
int park_start(struct park *park);
/*
 * Wait until the thread has finished its present answer, and end it. Call this before the session
 * is freed.
 */
void park_stop(struct park *park);
/* Call this when nothing is parked any more; NULL is allowed. */
void park_free(struct park *park);

/*
 * Park REQ. An interrupt answers it with EINTR, DEADLINE_MS (0: none) with ETIMEDOUT, the end of
 * the mount with ENOTCONN. If one of these has happened already, answer REQ immediately and return
 * 0, which is not a ticket: park_claim returns NULL for it. A deadline counts ticks of park's
 * thread, so the time for which the machine is suspended does not count. FUSE thread.
 */
uint64_t park_add(struct park *park, fuse_req_t req, enum park_kind kind, unsigned deadline_ms);

/*
 * Park REQ, number UNIQUE of the device FD, while its handler waits for a disk and keeps it. Like
 * park_add, with a deadline of 10 s; but an answer is written to FD, past libfuse. The handler
 * claims the ticket when it continues, and answers REQ in any case: if REQ was answered before, the
 * handler gets -ENOENT. FUSE thread.
 */
uint64_t park_hold(struct park *park, fuse_req_t req, int fd, uint64_t unique);
/*
 * Call HANGS on park's thread at each tick at which a request has been held for longer than one
 * tick. Call this before any request is held.
 */
void park_when_held(struct park *park, void (*hangs)(void *data), void *data);

/*
 * Return the request of TICKET, if it was not answered yet: the caller must answer it now.
 * Otherwise NULL.
 */
fuse_req_t park_claim(struct park *park, uint64_t ticket);

/* True if the request of TICKET was not answered yet. It may be answered the moment after. */
bool park_waits(struct park *park, uint64_t ticket);

/* Answer all parked requests with ENOTCONN, and later ones immediately. Any thread. */
void park_end(struct park *park);

size_t park_count(struct park *park, enum park_kind kind);
