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
 * Start park's thread, which answers interrupts and deadlines. It never waits for a disk or the I/O
 * thread, so they can't delay these answers. Return 0 or a negative errno. Call this before
 * anything is parked.
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
 * Park REQ until it is claimed. Answer it with EINTR at an interrupt, with ETIMEDOUT after
 * DEADLINE_MS (0 for no deadline), and with ENOTCONN when the mount ends. If an interrupt or the
 * end of the mount came first, answer REQ immediately and return 0, for which park_claim returns
 * NULL. A deadline counts ticks of park's thread, so the time for which the machine is suspended
 * does not count. FUSE thread.
 */
uint64_t park_add(struct park *park, fuse_req_t req, enum park_kind kind, unsigned deadline_ms);

/*
 * Park REQ while its handler waits for a disk and still owns REQ. Like park_add with a deadline of
 * 10 s, but park writes its answer to the FUSE device FD, as that to request number UNIQUE, without
 * libfuse. When the handler continues, it claims the ticket and answers REQ in any case; if park
 * has answered, the handler's answer fails with -ENOENT. FUSE thread.
 */
uint64_t park_hold(struct park *park, fuse_req_t req, int fd, uint64_t unique);
/*
 * Call HANGS on park's thread once a tick, while any request has been held for longer than one
 * tick. Call this before any request is held.
 */
void park_when_held(struct park *park, void (*hangs)(void *data), void *data);

/*
 * Return the request of TICKET, if it was not answered yet: the caller must answer it now.
 * Otherwise NULL.
 */
fuse_req_t park_claim(struct park *park, uint64_t ticket);

/*
 * True if the request of TICKET was not answered yet. Another thread may answer it before the
 * caller acts.
 */
bool park_waits(struct park *park, uint64_t ticket);

/* Answer all parked requests with ENOTCONN, and later ones immediately. Any thread. */
void park_end(struct park *park);

size_t park_count(struct park *park, enum park_kind kind);
