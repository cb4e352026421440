/* SPDX-License-Identifier: MIT */
/*
 * What the attempt uses whose guard this process is: all that descends from it. It is looked at by a thread of its own,
 * since a look at a process whose disk hangs may hang too, and the guard must not. Who calls this has no other threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Figures are taken about so often; less often if that costs more than 1/600 of the time between two looks. */
#define LOOK_PAUSE_MS 1000

/*
 * What an attempt has used. CPU time is that of all that was waited for, as soon as the attempt is over; before, and of
 * memory, what was seen now and then. Plain data: the guard fills it in.
 */
struct task_usage {
	int64_t cpu_us;
	int64_t cpu_now; /* thousandths of a core, between the last two looks; -1: not known */
	int64_t memory_now, memory_peak; /* bytes; -1: not known */
	int64_t samples;		 /* looks so far */
	int64_t first, last; /* when the first and the last figures were taken, ns; 0: not yet */
};

struct look;

/* Before anything is started. It lives as long as the process. */
struct look *look_new(void);
/* Begin to look. Where no thread can be had, only the last figures are known. */
void look_begin(struct look *look);
/* The newest figures. False: they are not newer than when this was called last. */
bool look_news(struct look *look, struct task_usage *ret);
/* All is over, and was waited for: the last figures. */
void look_end(struct look *look, struct task_usage *ret);
