/* SPDX-License-Identifier: MIT */
/*
 * Makes the JSON tree of the usage of a job or a replica. A job's usage is the sum of the usage of
 * its replicas. It is unknown if the usage of any replica is unknown. A replica that never started
 * counts as 0.
 */
#include "spec/job/job_tree.h"

#include <math.h>

#include "spec/base/time.h"
#include "spec/yaml/yaml.h"

#define UNKNOWN	 INT64_C(-1)
#define CORE	 1000.0 /* thousandths of a core */
#define PER_CENT 100.0

static const struct {
	const char *name, *memory_kind;
	bool is_sampled; /* true if the usage after the last sample is unknown */
} sources[SPEC_N_USAGE_SOURCES] = {
	[SPEC_USAGE_LOCAL] = {"rusage+proc", "resident", false},
	[SPEC_USAGE_METRICS] = {"metrics.k8s.io", "working_set", true},
};

/* The usage of one replica, or the sum for several replicas. */
struct figures {
	struct spec_request given;
	struct spec_usage used;
	bool is_known;
	int64_t begun, seen; /* the elapsed time is from BEGUN to SEEN (ns); 0 if unknown */
	double core_ns; /* requested cores, times the ns for which CPU_US is known; -1 if unknown */
};

/* Add N to *SUM, which becomes unknown if N is unknown or the sum is too large. */
static void add(int64_t *sum, int64_t n)
{
	if (*sum < 0 || n < 0 || __builtin_add_overflow(*sum, n, sum))
		*sum = UNKNOWN;
}

static void add_usage(struct figures *f, const struct spec_usage *one)
{
	static const struct spec_usage unknown = {.cpu_us = UNKNOWN,
						  .cpu_now = UNKNOWN,
						  .memory_now = UNKNOWN,
						  .memory_peak = UNKNOWN};
	struct spec_usage *sum = &f->used;

	if (one)
		sum->source = one->source;
	f->is_known |= one != NULL;
	one = one ? one : &unknown;
	add(&sum->cpu_us, one->cpu_us);
	add(&sum->cpu_now, one->cpu_now);
	add(&sum->memory_now, one->memory_now);
	add(&sum->memory_peak, one->memory_peak);
	add(&sum->samples, one->samples);
	if (one->first && (!sum->first || one->first < sum->first))
		sum->first = one->first;
	sum->last = max_of(sum->last, one->last);
}

static void add_replica(struct figures *f, const struct spec_job *job, const struct spec_replica *r)
{
	const struct spec_request *given = job->roles[r->role].request;
	int64_t seen = r->finished ? r->finished : r->usage ? r->usage->last : 0;
	int64_t counted = r->usage && sources[r->usage->source].is_sampled ? r->usage->last : seen;

	add(&f->given.cpu, given ? given->cpu : UNKNOWN);
	add(&f->given.memory, given ? given->memory : UNKNOWN);
	add(&f->given.memory_limit, given ? given->memory_limit : UNKNOWN);
	add(&f->given.gpu, given ? given->gpu : UNKNOWN);
	if (!r->started)
		return;
	add_usage(f, r->usage);
	f->begun = f->begun ? min_of(f->begun, r->started) : r->started;
	f->seen = max_of(f->seen, seen);
	if (counted <= r->started || !given || given->cpu < 0 || f->core_ns < 0)
		f->core_ns = -1;
	else
		f->core_ns += (double)given->cpu / CORE * (double)(counted - r->started);
}

static void put_number(struct json_object *o, const char *key, int64_t number)
{
	spec_tree_number_or(o, key, max_of(number, UNKNOWN), UNKNOWN);
}

/* Return the used CPU time in per cent of the requested CPU time. */
static int64_t efficiency(const struct figures *f)
{
	double used = (double)f->used.cpu_us * 1000;

	/* With almost no CPU requested, the quotient is meaningless. */
	if (!f->is_known || f->used.cpu_us < 0 || f->core_ns < 1 || used > 1e9 * f->core_ns)
		return UNKNOWN;
	return (int64_t)llround(used / f->core_ns * PER_CENT);
}

struct json_object *spec_usage_tree(const struct spec_job *job, const struct spec_replica *r)
{
	struct json_object *o = spec_tree_map(), *part;
	struct figures f = {0};
	struct spec_usage *used = &f.used;

	for (size_t i = 0; i < job->n_replicas; i++)
		if (!r || r == &job->replicas[i])
			add_replica(&f, job, &job->replicas[i]);
	if (!r && job->started) {
		f.begun = job->started;
		f.seen = job->finished ? job->finished : f.seen;
	}
	if (!f.is_known)
		used->cpu_us = used->cpu_now = used->memory_now = used->memory_peak =
			used->samples = UNKNOWN;
	put_number(o, "elapsed_seconds",
		   f.begun && f.seen >= f.begun ? (f.seen - f.begun) / NS_PER_S : UNKNOWN);
	part = spec_tree_add(o, "cpu", spec_tree_map());
	put_number(part, "requested_millicores", f.given.cpu);
	put_number(part, "seconds", used->cpu_us < 0 ? UNKNOWN : used->cpu_us / 1000000);
	put_number(part, "now_millicores", used->cpu_now);
	put_number(part, "efficiency_percent", efficiency(&f));
	part = spec_tree_add(o, "memory", spec_tree_map());
	put_number(part, "requested_bytes", f.given.memory);
	put_number(part, "limit_bytes", f.given.memory_limit);
	put_number(part, "now_bytes", used->memory_now);
	put_number(part, "peak_bytes", used->memory_peak);
	spec_tree_text(part, "kind", f.is_known ? sources[used->source].memory_kind : NULL);
	part = spec_tree_add(o, "gpu", spec_tree_map());
	put_number(part, "requested", f.given.gpu);
	spec_tree_text(o, "source", f.is_known ? sources[used->source].name : NULL);
	put_number(o, "samples", used->samples);
	spec_yaml_add_time(o, "first", used->first);
	spec_yaml_add_time(o, "last", used->last);
	return o;
}
