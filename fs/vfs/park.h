/* SPDX-License-Identifier: MIT */
/*
 * FUSE requests that wait for something: parked by the FUSE thread, answered exactly once by
 * whoever claims them first - the event they wait for, an interrupt, their deadline, or the end
 * of the mount (rules T1, T6). A parked request is named by a ticket, a number that is never
 * used again, so a late event that holds an old ticket harms nobody.
 *
 *	ticket = park_add(park, req, PARK_READ, 0);	// FUSE thread, no lock held
 *	... make TICKET known to who will answer; if the answer is there already, claim at once
 *
 *	req = park_claim(park, ticket);			// any thread but under a lock
 *	if (req)
 *		fuse_reply_...(req, ...);
 *
 * The order that fuse_req_interrupt_func demands: claim under the lock, unlock,
 * clear the interrupt function, reply. park_claim does all but the reply.
 */
#pragma once

#include "fs/vfs/fuse.h"
#include "spec/base/base.h"

struct park;

/* What a parked request is, for .kxfs/metrics. */
enum park_kind { PARK_READ, PARK_OPEN, PARK_CLOSE, PARK_WRITE, PARK_DIR, PARK_DISK, PARK_N_KINDS };

struct park *park_new(void);
/*
 * Begin its thread, which gives the answers to interrupts and deadlines and waits for nothing else: neither a disk nor
 * the I/O thread can hold them up. 0 or a negative errno. Before anything is parked.
 */
int park_start(struct park *park);
/* Wait until the thread has given what it was giving, and end it, before the session that answers is gone. */
void park_stop(struct park *park);
void park_free(struct park *park); /* nothing is parked any more; NULL is allowed */

/*
 * Park REQ. An interrupt answers it with EINTR, DEADLINE_MS (0: none) with ETIMEDOUT, the end of
 * the mount with ENOTCONN. If one of these has come already, REQ is answered at once and 0 is returned, which is no
 * ticket: park_claim of it is NULL. A deadline counts ticks of park's thread, so the time in which the machine stands
 * still is not counted. FUSE thread.
 */
uint64_t park_add(struct park *park, fuse_req_t req, enum park_kind kind, unsigned deadline_ms);

/*
 * Park REQ, which is number UNIQUE of the device FD, while its handler waits for a disk and keeps it. As park_add, with
 * a deadline of 10 s; but an answer is written to FD, past libfuse. The handler claims the ticket when it goes on, and
 * answers REQ anyway: if that was done already, it gets -ENOENT. FUSE thread.
 */
uint64_t park_hold(struct park *park, fuse_req_t req, int fd, uint64_t unique);
/* Call HANGS at each tick at which a request has been held for longer than one. Park's thread. Before any is held. */
void park_when_held(struct park *park, void (*hangs)(void *data), void *data);

/* The request if nobody has answered it: the caller must answer it now. NULL: somebody has. */
fuse_req_t park_claim(struct park *park, uint64_t ticket);

/* Has nobody answered it yet? It may be answered the moment after. */
bool park_waits(struct park *park, uint64_t ticket);

/* Answer all with ENOTCONN, and all that come later at once. Any thread. */
void park_end(struct park *park);

size_t park_count(struct park *park, enum park_kind kind);
