/* SPDX-License-Identifier: MIT */
/*
 * Finds out what an attempt uses: all processes that descend from this one, which is the attempt's guard. A thread of
 * its own does that, since a look at a process whose disk hangs may hang too, and the guard must not. The caller has no
 * other threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A look is taken about this often; less often if that costs more than 1/600 of the time between two looks. */
#define LOOK_PAUSE_MS 1000

/*
 * What an attempt has used. When the attempt is over, CPU time is that of all processes that were waited for. Before
 * that, and for memory, the figures are what was seen now and then. Plain data: the guard fills it in.
 */
struct task_usage {
	int64_t cpu_us;
	int64_t cpu_now; /* thousandths of a core, between the last two looks; -1: not known */
	int64_t memory_now, memory_peak; /* bytes; -1: not known */
	int64_t samples;		 /* looks so far */
	int64_t first, last; /* when the first and the last figures were taken, ns; 0: not yet */
};

struct look;

/* To be called before anything is started. It is never freed. */
struct look *look_new(void);
/* Begin to look. If no thread can be made, only the last figures will be known. */
void look_begin(struct look *look);
/* Gives the newest figures. False: these are no newer than at the last call. */
bool look_news(struct look *look, struct task_usage *ret);
/* All has ended and was waited for: gives the last figures. */
void look_end(struct look *look, struct task_usage *ret);
