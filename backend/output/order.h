/* SPDX-License-Identifier: MIT */
/*
 * The order of the lines of a job's logs in its merged log: by their times. Pure: no files, no
 * loop; the owner feeds printed output, and calls order_tick periodically.
 *
 * Each log is a source of chunks. The earliest of all waiting chunks goes into the merged log as
 * soon as every open source has a waiting chunk, or when a chunk has waited for about a second. So
 * chunks that arrive within a second of each other are sorted. A source whose earlier output has
 * not arrived yet holds up all others: without limit while that is read from disk (order_read), for
 * ORDER_EXPECT_TICKS ticks while it arrives over the network (order_expect). Chunks without a time
 * are not sorted.
 */
#pragma once

#include "backend/output/chunk.h"

#define ORDER_TICK_MS	 250
#define ORDER_WAIT_TICKS 5 /* the largest number of ticks that a chunk waits */
/* The largest number of ticks that all other chunks wait for an expected source. */
#define ORDER_EXPECT_TICKS 40

struct order;
struct order_source;

struct order *order_new(void);
void order_free(struct order *o); /* Free its sources, too. NULL is allowed. */
/* Add a source. DATA is the caller's. */
struct order_source *order_add(struct order *o, void *data);
void *order_data(const struct order_source *s);

/* order_open: more chunks of S may follow from now on. order_close: no more chunks will follow. */
void order_open(struct order_source *s);
void order_close(struct order_source *s);
/* EXPECTED: earlier output of S is about to arrive. Not EXPECTED: this is no longer so. */
void order_expect(struct order_source *s, bool expected);
/* Like order_expect, but without a limit: S is being read from disk. */
void order_read(struct order_source *s, bool reading);

/* Feed P, which follows everything that was fed to S before. */
void order_feed(struct order_source *s, const struct chunk *p);
/*
 * True if so many chunks of S wait that no more should be fed. Omitted ones are read from disk
 * later.
 */
bool order_is_full(const struct order_source *s);
/* True if no chunk of S waits. */
bool order_is_empty(const struct order_source *s);
/*
 * Let chunks of S that begin before byte TO of its log, now or later, wait for at most one more
 * tick.
 */
void order_flush_early(struct order_source *s, uint64_t to);

/*
 * Remove the next chunk in the order, and set *RET_SOURCE to its source. Return false if no chunk
 * may be removed now.
 */
bool order_next(struct order *o, struct order_source **ret_source, struct chunk *ret);
bool order_may_go(const struct order *o);
/* True if any chunk waits. Then call order_tick each ORDER_TICK_MS. */
bool order_waits(const struct order *o);
void order_tick(struct order *o);
/* From now on, let all chunks go without waiting. */
void order_drain(struct order *o);
