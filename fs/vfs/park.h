/* SPDX-License-Identifier: MIT */
/*
 * A parked request is a FUSE request that waits for an event. The FUSE thread parks the request.
 * Later the awaited event, an interrupt, the deadline or the end of the mount claims and answers
 * it. Only the first of these can claim the request, so it is answered exactly once (rules T1, T6).
 * A parked request has a ticket, a number that is never reused. So an event that arrives after the
 * answer does no harm.
 *
 *	ticket = park_add(park, req, PARK_READ, 0);	// FUSE thread, no lock held
 *	... pass TICKET to the code that will answer; if it can answer now, claim immediately
 *
 *	req = park_claim(park, ticket);			// any thread, no lock held
 *	if (req)
 *		fuse_reply_...(req, ...);
 *
 * fuse_req_interrupt_func requires this order: remove the request from the table under park's lock,
 * unlock, clear the interrupt function, reply. park_claim does everything except the reply.
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
 * thread, so they can't delay these answers. Return 0 or a negative errno. Call this before parking
 * any request.
 */
int park_start(struct park *park);
/* End park's thread, and wait for it. Call this before freeing the FUSE session. */
void park_stop(struct park *park);
/* Call this when no request is parked any more. NULL is allowed. */
void park_free(struct park *park);

/*
 * Park REQ and return its ticket. Until park_claim is called, park answers REQ with EINTR at an
 * interrupt, with ETIMEDOUT after DEADLINE_MS (0 for no deadline), and with ENOTCONN when the mount
 * ends. If REQ has already been interrupted, or the mount is ending, answer REQ now and return 0.
 * park_claim returns NULL for the ticket 0. Deadlines do not include time for which the machine is
 * suspended. FUSE thread.
 */
uint64_t park_add(struct park *park, fuse_req_t req, enum park_kind kind, unsigned deadline_ms);

/*
 * Park REQ while its handler waits for a disk. This is like park_add with a deadline of 10 s, but
 * the handler still owns REQ. So park does not answer through libfuse: it writes a reply to request
 * number UNIQUE to the FUSE device FD. When the handler continues, park_claim returns REQ in any
 * case, and the handler answers it. If park has already replied, the handler's answer fails with
 * -ENOENT. FUSE thread.
 */
uint64_t park_hold(struct park *park, fuse_req_t req, int fd, uint64_t unique);
/*
 * Make park's thread call HANGS(DATA) once a tick while at least one request has been held
 * (park_hold) for longer than one tick. Call this before the first park_hold.
 */
void park_when_held(struct park *park, void (*hangs)(void *data), void *data);

/*
 * Return the request of TICKET; the caller must answer it now. Return NULL if the request has
 * already been answered.
 */
fuse_req_t park_claim(struct park *park, uint64_t ticket);

/*
 * True if the request of TICKET has not been answered yet. Another thread may answer it before the
 * caller acts.
 */
bool park_waits(struct park *park, uint64_t ticket);

/*
 * Answer all parked requests with ENOTCONN. From now on, park_add and park_hold answer with
 * ENOTCONN immediately. Any thread.
 */
void park_end(struct park *park);

size_t park_count(struct park *park, enum park_kind kind);
