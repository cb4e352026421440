/* SPDX-License-Identifier: MIT */
/*
 * Sorts the lines of a job's logs by time, for the merged log. This module uses no files and no
 * loop. Its owner feeds chunks to it, and calls order_tick periodically.
 *
 * Each log is a source of chunks. The earliest waiting chunk goes into the merged log as soon as
 * every open source has a waiting chunk, or any chunk has waited for about a second.
 *
 * If earlier output of a source is still to come, all other sources wait: without a limit if it is
 * being read from disk (order_read), for at most ORDER_EXPECT_TICKS ticks if it comes over the
 * network (order_expect). Chunks without a time do not wait, and are not sorted.
 */
#pragma once

#include "backend/output/chunk.h"

#define ORDER_TICK_MS	   250
#define ORDER_WAIT_TICKS   5 /* longest wait of a chunk, in ticks */
#define ORDER_EXPECT_TICKS 40

struct order;
struct order_source;

struct order *order_new(void);
void order_free(struct order *o); /* Free its sources, too. NULL is allowed. */
/* order_data returns DATA. */
struct order_source *order_add(struct order *o, void *data);
void *order_data(const struct order_source *s);

/* order_open: more chunks of S may follow. order_close: no more chunks of S will follow. */
void order_open(struct order_source *s);
void order_close(struct order_source *s);
/*
 * If EXPECTED, let all other sources wait for earlier output of S, for at most ORDER_EXPECT_TICKS.
 * Otherwise, end the wait.
 */
void order_expect(struct order_source *s, bool expected);
/* Like order_expect, but the wait has no limit. READING is true while S is being read from disk. */
void order_read(struct order_source *s, bool reading);

/* P must follow the chunks that were fed to S before. */
void order_feed(struct order_source *s, const struct chunk *p);
/* True if too many chunks of S wait. The owner must then read further ones from disk later. */
bool order_is_full(const struct order_source *s);
/* True if S has enough space that reading chunks from disk is worthwhile. */
bool order_has_space(const struct order_source *s);
bool order_is_empty(const struct order_source *s);
/* Let chunks of S before offset TO, fed now or later, wait for at most one more tick. */
void order_flush_early(struct order_source *s, uint64_t to);

/* Remove the next chunk from its source. Return false if no chunk may be removed now. */
bool order_next(struct order *o, struct order_source **ret_source, struct chunk *ret);
bool order_may_go(const struct order *o);
/* True if any chunk waits. While this is true, call order_tick each ORDER_TICK_MS. */
bool order_waits(const struct order *o);
void order_tick(struct order *o);
/* From now on, let order_next return all chunks without waiting. */
void order_drain(struct order *o);
