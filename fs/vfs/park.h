/* SPDX-License-Identifier: MIT */
/*
 * A parked request is a FUSE request that waits for an event. The event, an interrupt, the deadline
 * or the end of the mount claims the request and answers it. Only the first of these succeeds, so
 * each request is answered exactly once (rules T1, T6). A ticket identifies a parked request and is
 * never reused, so a late event does no harm.
 *
 *	ticket = park_add(park, req, PARK_READ, 0);	// FUSE thread, no lock held
 *	... pass TICKET to the code that will answer; if it can answer now, claim immediately
 *
 *	req = park_claim(park, ticket);			// any thread, no lock held
 *	if (req)
 *		fuse_reply_...(req, ...);
 */
#pragma once

#include "fs/vfs/fuse.h"
#include "spec/base/base.h"

struct park;

/* The type of a parked request, for .kxfs/metrics. */
enum park_kind { PARK_READ, PARK_OPEN, PARK_CLOSE, PARK_WRITE, PARK_DIR, PARK_DISK, PARK_N_KINDS };

struct park *park_new(void);
/*
 * Start the thread that answers interrupts and deadlines. It never waits for a disk or the I/O
 * thread. Call this before parking any request. Return 0 or a negative errno.
 */
int park_start(struct park *park);
/* End the thread of park_start, and wait for it. Call this before freeing the FUSE session. */
void park_stop(struct park *park);
/* Call this when no request is parked. NULL is allowed. */
void park_free(struct park *park);

/*
 * Park REQ and return its ticket. Until park_claim, an interrupt answers REQ with EINTR, the
 * deadline with ETIMEDOUT, and the end of the mount with ENOTCONN. If REQ was already interrupted,
 * or the mount is ending, answer REQ and return 0; park_claim(0) returns NULL. Time for which the
 * machine is suspended does not count towards DEADLINE_MS; 0 means no deadline. FUSE thread.
 */
uint64_t park_add(struct park *park, fuse_req_t req, enum park_kind kind, unsigned deadline_ms);

/*
 * Park REQ while its handler waits for a disk, with a deadline of 10 s. The handler still owns REQ,
 * so park writes its own reply, to request number UNIQUE, directly to the FUSE device FD. The
 * handler answers REQ even if park_claim returns NULL; the kernel rejects this second answer with
 * -ENOENT. FUSE thread.
 */
uint64_t park_hold(struct park *park, fuse_req_t req, int fd, uint64_t unique);
/*
 * At each tick (50 ms), let park's thread call HANGS(DATA) if a held request is older than one tick
 * and has not reached its deadline. Call this before the first park_hold.
 */
void park_when_held(struct park *park, void (*hangs)(void *data), void *data);

/* Return the request of TICKET, which the caller answers now; NULL if it was answered already. */
fuse_req_t park_claim(struct park *park, uint64_t ticket);

/* True if TICKET's request is still parked. Another thread may answer it at any time. */
bool park_waits(struct park *park, uint64_t ticket);

/* Answer all parked and all later requests with ENOTCONN. Any thread. */
void park_end(struct park *park);

size_t park_count(struct park *park, enum park_kind kind);
