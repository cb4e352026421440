/* SPDX-License-Identifier: MIT */
/* The resources that replicas were given, and their usage. -1 means unknown. */
#pragma once

#include <stdint.h>

/*
 * The source of usage figures. LOCAL: the helper, from the ends of processes and samples of /proc.
 * METRICS: a cluster, only by samples; CPU time is then the sum over the time between consecutive
 * samples.
 */
enum spec_usage_source { SPEC_USAGE_LOCAL, SPEC_USAGE_METRICS, SPEC_N_USAGE_SOURCES };

/* The resources given to each replica of a role. Plain data: filled by the creator of the job. */
struct spec_request {
	int64_t cpu;	      /* thousandths of a core */
	int64_t memory;	      /* bytes requested for it */
	int64_t memory_limit; /* bytes beyond which it is killed */
	int64_t gpu;	      /* 0 if none was requested */
};

/*
 * The usage of one attempt of a replica until LAST. Plain data: filled by the backend that runs it.
 */
struct spec_usage {
	unsigned source;		 /* enum spec_usage_source */
	int64_t cpu_us;			 /* of CPU time */
	int64_t cpu_now;		 /* thousandths of a core */
	int64_t memory_now, memory_peak; /* bytes */
	int64_t samples;		 /* number of samples while it ran */
	int64_t first, last; /* times of the first and last samples, ns; 0 if there is none */
};
