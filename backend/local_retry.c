/* SPDX-License-Identifier: MIT */
/*
 * The retry policies: which replicas are started again when one has failed, how often, and how
 * soon. HOT_SPARE has no spares on one machine: it is REPLICA.
 */
#include "backend/local.h"

/* An attempt that ran this long is no reason to wait before the next. */
#define STEADY_NS (30 * INT64_C(1000000000))

static void next_delay(struct local_replica *rep)
{
	int64_t ran = rep->rec->started ? loop_time_ns() - rep->rec->started : 0;

	if (ran >= STEADY_NS || rep->delay_ms == 0)
		rep->delay_ms = LOCAL_DELAY_MIN_MS;
	else
		rep->delay_ms = min_of(2 * rep->delay_ms, LOCAL_DELAY_MAX_MS);
}

/* Has its policy a restart left? If so it is used up. */
static bool take_restart(struct local_replica *rep)
{
	const struct spec_role *role = local_replica_role(rep);
	bool own = role->retry_policy == SPEC_RETRY_REPLICA ||
		   role->retry_policy == SPEC_RETRY_HOT_SPARE;
	unsigned *used = own ? &rep->restarts : &rep->job->roles[rep->rec->role].restarts;

	if (*used >= role->max_retries)
		return false;
	(*used)++;
	rep->job->rec->retries++;
	atomic_fetch_add(&rep->job->l->n_restarts, 1);
	return true;
}

static void restart_role(struct local_replica *rep, unsigned delay_ms)
{
	struct local_role *role = &rep->job->roles[rep->rec->role];

	role->again = true;
	role->delay_ms = delay_ms;
	for (size_t i = role->first; i < role->first + role->n; i++)
		local_replica_again(&rep->job->reps[i]);
}

void local_retry(struct local_replica *rep)
{
	struct local_job *job = rep->job;

	if (!take_restart(rep)) {
		rep->rec->state = SPEC_FAILED;
		rep->rec->finished = loop_time_ns();
		local_job_blame(job, rep);
		local_job_end(job, LOCAL_FAIL);
		return;
	}
	rep->rec->state = SPEC_PENDING;
	next_delay(rep);
	switch (local_replica_role(rep)->retry_policy) {
	case SPEC_RETRY_APPLICATION:
		local_job_restart(job, rep->delay_ms);
		break;
	case SPEC_RETRY_ROLE:
		restart_role(rep, rep->delay_ms);
		break;
	case SPEC_RETRY_REPLICA:
	case SPEC_RETRY_HOT_SPARE:
		rep->again = true;
		break;
	}
}
