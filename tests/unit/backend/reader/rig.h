/* SPDX-License-Identifier: MIT */
/*
 * An archive in a directory of the test's, "out" below base, and the output of a mount, in "state". In place of
 * backend/base/wait.c, a test has patience; and ThreadSanitizer, which does not know sem_clockwait, sees who was waited
 * for.
 */
#pragma once

#include "backend/archive/archive.h"
#include "backend/base/wait.h"
#include "backend/output/output.h"
#include "tests/unit/backend/keep/rig.h"

static struct output *output;

bool wait_for(sem_t *sem, unsigned seconds)
{
	sem_wait_or_fail(sem);
	return true;
}

/* The directory NAME below base, malloc'ed. */
static inline char *dir_of(const char *name)
{
	return text_print("%s/%s", base, name);
}

static inline void output_up(void)
{
	cleanup_free char *state = dir_of("state");
	char *why = NULL;

	shell("mkdir -p out state");
	assert_int_equal(output_new(loop, state, &(struct output_events){0}, &output, &why), 0);
}

/* Run STOP on the loop, and wait for the semaphore that it posts when all is over. */
static inline void wait_for_stop(loop_fn stop)
{
	sem_t stopped;

	sem_init(&stopped, 0, 0);
	call(stop, &stopped);
	sem_wait_or_fail(&stopped);
	sem_destroy(&stopped);
}

static inline void stop_output(void *data)
{
	output_stop(output, post_sem, data);
}

/* End the output, after what reads it has stopped. */
static inline void output_down(void)
{
	wait_for_stop(stop_output);
	loop_stop(loop);
}

/* End the loop, as the last of all. */
static inline void loop_down(void)
{
	output_free(output);
	loop_free(loop);
	loop = NULL;
}
