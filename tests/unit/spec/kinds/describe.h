/* SPDX-License-Identifier: MIT */
/* Prints what users see of a job, for comparison in tests. */
#pragma once

#include <stdio.h>

#include "spec/job/job.h"
#include "tests/unit/unit.h"

#define DESCRIBE_SHOWN 32 /* number of replicas */

/*
 * Print the state of JOB and of its replicas, such as "RUNNING trainer-0=FAILED/3/Error
 * trainer-1=RUNNING". If PHASE, add the phase to the job's state, as in "RUNNING/Running".
 */
static inline void describe_job(const struct spec_job *job, bool phase, char ret[4096])
{
	size_t n = (size_t)snprintf(ret, 4096, "%s%s%s", spec_state_name(job->state),
				    phase ? "/" : "", phase ? job->phase : "");

	for (size_t i = 0; i < job->n_replicas && i < DESCRIBE_SHOWN; i++) {
		const struct spec_replica *r = &job->replicas[i];

		n += (size_t)snprintf(ret + n, 4096 - n, " %s=%s", r->name,
				      spec_state_name(r->state));
		if (r->exit_code >= 0)
			n += (size_t)snprintf(ret + n, 4096 - n, "/%d", r->exit_code);
		if (*r->reason)
			n += (size_t)snprintf(ret + n, 4096 - n, "/%s", r->reason);
		if (r->attempt > 0)
			n += (size_t)snprintf(ret + n, 4096 - n, "/attempt %u", r->attempt);
	}
	snprintf(ret + n, 4096 - n, "\n");
}

/* Assert that ACTIONS, a bit set, are those of ctl in WANT: names with a space before each. */
static inline void assert_actions(unsigned actions, const char *want)
{
	char text[128] = "";
	size_t n = 0;

	for (enum spec_action i = 0; i < SPEC_N_ACTIONS; i++)
		if (actions & 1u << i)
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s",
					      spec_action_name(i));
	assert_string_equal(text, want);
}
