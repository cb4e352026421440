/* SPDX-License-Identifier: MIT */
/*
 * In which order the lines of a job's logs go into its merged log: by their times. Pure: no files, no loop; who owns
 * it feeds what has been printed, and counts its clock.
 *
 * Of each source (a log) that has pieces waiting, the first one's time is known; the earliest of these goes as soon
 * as every source that is open, so that more may come of it, has one waiting; else when any of them has waited for
 * about a second, so that what comes within that finds its place. A source whose earlier output is still on its way
 * holds all others up: without limit while it is read from disk (order_read), for ORDER_EXPECT_TICKS ticks while it
 * comes over the network (order_expect). Pieces without a time go as they come.
 */
#pragma once

#include "backend/output/piece.h"

#define ORDER_TICK_MS	   250
#define ORDER_WAIT_TICKS   5  /* a piece waits for so many at most */
#define ORDER_EXPECT_TICKS 40 /* and all wait for a source for so many */

struct order;
struct order_source;

struct order *order_new(void);
void order_free(struct order *o); /* with its sources; NULL is allowed */
/* DATA is the caller's. */
struct order_source *order_add(struct order *o, void *data);
void *order_data(const struct order_source *s);

/* From now on more may come of S; or nothing more will. */
void order_open(struct order_source *s);
void order_close(struct order_source *s);
/* Earlier output of S is on its way (or not any more). */
void order_expect(struct order_source *s, bool expected);
/* Like order_expect, but without a limit: S is being read from disk. */
void order_read(struct order_source *s, bool reading);

/* P follows all that was fed to S before. */
void order_feed(struct order_source *s, const struct piece *p);
/* Has S so many pieces waiting that no more should be fed? What is left out is read from disk later. */
bool order_is_full(const struct order_source *s);
/* No piece of S waits. */
bool order_is_empty(const struct order_source *s);
/* What waits of S, or is fed later, and begins before byte TO of its log waits for one more tick at most. */
void order_hurry(struct order_source *s, uint64_t to);

/* The piece whose turn it is, taken out, and its source. False: none may go now. */
bool order_next(struct order *o, struct order_source **ret_source, struct piece *ret);
bool order_may_go(const struct order *o);
/* Does any piece wait? Then order_tick is to be called each ORDER_TICK_MS. */
bool order_waits(const struct order *o);
void order_tick(struct order *o);
/* Nothing waits for anything any more. */
void order_drain(struct order *o);
