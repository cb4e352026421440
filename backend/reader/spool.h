/* SPDX-License-Identifier: MIT */
/*
 * Logs of an archive are fetched into the state directory, and read there like any others: STATE/fetched/jobs/UID has
 * the form of the folder of a job (backend/output/output.h). A log there is the beginning of the archive's, which only
 * grows. The fetched logs may take the room that the spool has left of its limit; those that were not read for the
 * longest time are removed.
 */
#pragma once

#include "backend/output/output.h"
#include "backend/reader/remote.h"
#include "spec/job/job.h"

#define SPOOL_DIR "fetched" /* below STATE */

struct spool;

/* OUTPUT is the mount's, whose bytes count in the LIMIT, too. To be called before the loop runs. */
int spool_new(struct loop *loop, struct remote *remote, struct output *output,
	      const char *state_dir, uint64_t limit, struct spool **ret, char **ret_text);
/* To be called after the loop has stopped; NULL is allowed. */
void spool_free(struct spool *s);
void spool_start(struct spool *s);			  /* I/O thread */
void spool_stop(struct spool *s, loop_fn fn, void *data); /* I/O thread */

/* Runs on the pool, once and before the functions below: finds what an earlier mount has left there. */
void spool_load(struct spool *s);
/*
 * Like output_log, for JOB, whose directory in the archive is FOLDER; KEY NULL: the merged log. This waits. -ENOENT:
 * the archive does not have the log; if the archive is away, this gives what was fetched of it.
 */
int spool_log(struct spool *s, const struct spec_job *job, const char *folder, const char *key,
	      enum log_form form, struct log **ret);
/* The size of such a log, also if it was not fetched; then that of a merged or stamped one is 0. */
int spool_stat(struct spool *s, const struct spec_job *job, const char *folder, const char *key,
	       enum log_form form, struct log_stat *ret);
uint64_t spool_bytes(struct spool *s);
