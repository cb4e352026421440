/* SPDX-License-Identifier: MIT */
/*
 * Logs of an archive in the state directory, where they are read as any others: STATE/fetched/jobs/UID has the form of
 * the folder of a job (backend/output/output.h). What is there is the beginning of what the archive has, since that
 * only grows. It takes what the spool has left of its limit; what was not read for longest goes.
 */
#pragma once

#include "backend/output/output.h"
#include "backend/reader/remote.h"
#include "spec/job/job.h"

#define SPOOL_DIR "fetched" /* below STATE */

struct spool;

/* OUTPUT is the mount's, whose bytes count in the LIMIT. Before the loop runs. */
int spool_new(struct loop *loop, struct remote *remote, struct output *output,
	      const char *state_dir, uint64_t limit, struct spool **ret, char **ret_text);
void spool_free(struct spool *s);			  /* after the loop; NULL is allowed */
void spool_start(struct spool *s);			  /* I/O thread */
void spool_stop(struct spool *s, loop_fn fn, void *data); /* I/O thread */

/* On the pool, once and before all below: what an earlier mount has left there. */
void spool_load(struct spool *s);
/*
 * As output_log, of JOB, whose directory in the archive is FOLDER; KEY NULL: the merged log. Waits. One that the
 * archive has not is -ENOENT, or, if the archive is away, what is there of it.
 */
int spool_log(struct spool *s, const struct spec_job *job, const char *folder, const char *key,
	      enum log_form form, struct log **ret);
/* Its size, though it was not fetched; of what is merged or stamped 0 then. */
int spool_stat(struct spool *s, const struct spec_job *job, const char *folder, const char *key,
	       enum log_form form, struct log_stat *ret);
uint64_t spool_bytes(struct spool *s);
