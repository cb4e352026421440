/* SPDX-License-Identifier: MIT */
/*
 * FUSE requests that wait for something: the FUSE thread parks them, and whoever claims them first answers them,
 * exactly once: the event that they wait for, an interrupt, their deadline, or the end of the mount (rules T1, T6). A
 * parked request is named by a ticket, a number that is never used again, so a late event that holds an old ticket
 * harms nobody.
 *
 *	ticket = park_add(park, req, PARK_READ, 0);	// FUSE thread, no lock held
 *	... make TICKET known to who will answer; if the answer is there already, claim at once
 *
 *	req = park_claim(park, ticket);			// any thread but under a lock
 *	if (req)
 *		fuse_reply_...(req, ...);
 *
 * fuse_req_interrupt_func demands this order: claim under the lock, unlock, clear the interrupt function, reply.
 * park_claim does all but the last.
 */
#pragma once

#include "fs/vfs/fuse.h"
#include "spec/base/base.h"

struct park;

/* What a parked request asks for, for .kxfs/metrics. */
enum park_kind { PARK_READ, PARK_OPEN, PARK_CLOSE, PARK_WRITE, PARK_DIR, PARK_DISK, PARK_N_KINDS };

struct park *park_new(void);
/*
 * Begin park's thread, which gives the answers to interrupts and deadlines and waits for nothing else: neither a disk
 * nor the I/O thread can hold them up. 0 or a negative errno. To be called before anything is parked.
 */
int park_start(struct park *park);
/*
 * Wait until the thread has given the answer that it is giving, and end it. To be called before the session that
 * answers is gone.
 */
void park_stop(struct park *park);
/* To be called when nothing is parked any more; NULL is allowed. */
void park_free(struct park *park);

/*
 * Park REQ. An interrupt answers it with EINTR, DEADLINE_MS (0: none) with ETIMEDOUT, the end of the mount with
 * ENOTCONN. If one of these has come already, REQ is answered at once and 0 is returned, which is no ticket: park_claim
 * gives NULL for it. A deadline counts ticks of park's thread, so the time for which the machine stands still does not
 * count. FUSE thread.
 */
uint64_t park_add(struct park *park, fuse_req_t req, enum park_kind kind, unsigned deadline_ms);

/*
 * Park REQ, which is number UNIQUE of the device FD, while its handler waits for a disk and keeps it. Like park_add,
 * with a deadline of 10 s; but an answer is written to FD, past libfuse. The handler claims the ticket when it goes on,
 * and answers REQ in any case: if it was answered before, the handler gets -ENOENT. FUSE thread.
 */
uint64_t park_hold(struct park *park, fuse_req_t req, int fd, uint64_t unique);
/*
 * Call HANGS on park's thread at each tick at which a request has been held for longer than one. To be called before
 * any request is held.
 */
void park_when_held(struct park *park, void (*hangs)(void *data), void *data);

/* The request of TICKET, if nobody has answered it: the caller must answer it now. NULL: it was answered. */
fuse_req_t park_claim(struct park *park, uint64_t ticket);

/* Was the request of TICKET not answered yet? It may be the moment after. */
bool park_waits(struct park *park, uint64_t ticket);

/* Answer all parked requests with ENOTCONN, and later ones at once. Any thread. */
void park_end(struct park *park);

size_t park_count(struct park *park, enum park_kind kind);
