/* SPDX-License-Identifier: MIT */
/* What replicas were given, and what they have used of it. A figure of -1 is not known. */
#pragma once

#include <stdint.h>

/*
 * Who tells what was used. LOCAL: the helper, from the ends of processes and from looks at /proc. METRICS: a cluster,
 * by looks alone; then CPU time is the sum over the time between looks, as far as these followed each other.
 */
enum spec_usage_source { SPEC_USAGE_LOCAL, SPEC_USAGE_METRICS, SPEC_N_USAGE_SOURCES };

/* What each replica of a role is given. Plain data: filled by whoever makes the job. */
struct spec_request {
	int64_t cpu;	      /* thousandths of a core */
	int64_t memory;	      /* bytes that are set aside for it */
	int64_t memory_limit; /* bytes with which it is ended */
	int64_t gpu;	      /* 0: none was asked for */
};

/* What one attempt of a replica has used until LAST. Plain data: filled by the backend that runs it. */
struct spec_usage {
	unsigned source;		 /* enum spec_usage_source */
	int64_t cpu_us;			 /* of CPU time */
	int64_t cpu_now;		 /* thousandths of a core */
	int64_t memory_now, memory_peak; /* bytes */
	int64_t samples;		 /* how many looks there were while it ran */
	int64_t first, last; /* when the first and the last figures were taken, ns; 0: never */
};
