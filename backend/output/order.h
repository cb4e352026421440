/* SPDX-License-Identifier: MIT */
/*
 * In which order the lines of a job's logs go into its merged log: by their times. Pure: no files, no loop; the owner
 * feeds what was printed, and calls a tick of the clock.
 *
 * Each log is a source of pieces. Of the pieces that stand first in the sources, the earliest one goes into the merged
 * log as soon as every source from which more may come (an open one) has a piece waiting; else when one of them has
 * waited for about a second, so that pieces which come within that time find their place. A source whose earlier output
 * is still on its way holds all others up: without limit while that is read from disk (order_read), for
 * ORDER_EXPECT_TICKS ticks while it comes over the network (order_expect). Pieces without a time go as they come.
 */
#pragma once

#include "backend/output/piece.h"

#define ORDER_TICK_MS	   250
#define ORDER_WAIT_TICKS   5  /* the most ticks for which a piece waits */
#define ORDER_EXPECT_TICKS 40 /* and for which all wait for a source */

struct order;
struct order_source;

struct order *order_new(void);
void order_free(struct order *o); /* with its sources; NULL is allowed */
/* Add a source. DATA is the caller's. */
struct order_source *order_add(struct order *o, void *data);
void *order_data(const struct order_source *s);

/* order_open: from now on more may come from S. order_close: nothing more will. */
void order_open(struct order_source *s);
void order_close(struct order_source *s);
/* Earlier output of S is on its way; or (not EXPECTED) not any more. */
void order_expect(struct order_source *s, bool expected);
/* Like order_expect, but without a limit: S is being read from disk. */
void order_read(struct order_source *s, bool reading);

/* Feed P, which follows all that was fed to S before. */
void order_feed(struct order_source *s, const struct piece *p);
/* Do so many pieces of S wait that no more should be fed? Those that are left out are read from disk later. */
bool order_is_full(const struct order_source *s);
/* Does no piece of S wait? */
bool order_is_empty(const struct order_source *s);
/* Pieces of S that begin before byte TO of its log, now or later, wait for one more tick at most. */
void order_hurry(struct order_source *s, uint64_t to);

/* Take out the piece whose turn it is, with its source. False: none may go now. */
bool order_next(struct order *o, struct order_source **ret_source, struct piece *ret);
bool order_may_go(const struct order *o);
/* Does any piece wait? Then order_tick is to be called each ORDER_TICK_MS. */
bool order_waits(const struct order *o);
void order_tick(struct order *o);
/* From now on no piece waits for anything. */
void order_drain(struct order *o);
