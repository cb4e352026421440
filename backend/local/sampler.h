/* SPDX-License-Identifier: MIT */
/*
 * Samples the usage of an attempt: of all processes that descend from this one, which is the attempt's guard. A thread
 * does that, because reading /proc of a process whose disk hangs may hang, too, and the guard must not. The caller has
 * no other threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The time between samples; longer if a sample costs more than 1/600 of it. */
#define SAMPLER_PAUSE_MS 1000

/*
 * The usage of an attempt. CPU time is exact when the attempt is over, since it is that of all processes that were
 * waited for; before that, and for memory, figures are samples. Plain data: the guard fills it in.
 */
struct task_usage {
	int64_t cpu_us;
	int64_t cpu_now; /* thousandths of a core, between the last two samples; -1: unknown */
	int64_t memory_now, memory_peak; /* bytes; -1: unknown */
	int64_t samples;		 /* samples so far */
	int64_t first, last;		 /* times of the first and last samples, ns; 0: none yet */
};

struct sampler;

/* Call this before anything is started. The result is never freed. */
struct sampler *sampler_new(void);
/* Begin to sample. If no thread can be made, only the last figures will be known. */
void sampler_begin(struct sampler *sampler);
/* Set *RET to the newest figures. Return false if they are not newer than at the last call. */
bool sampler_news(struct sampler *sampler, struct task_usage *ret);
/* Set *RET to the last figures. All processes were waited for. */
void sampler_end(struct sampler *sampler, struct task_usage *ret);
