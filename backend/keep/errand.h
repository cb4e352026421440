/* SPDX-License-Identifier: MIT */
/*
 * What is known of one job goes into the archive: what its record does not have already. I/O thread. What stands in the
 * archive of a log never gets shorter, and never other bytes: each part is compared before it is put, so a writer that
 * has lost its state, or has less, does no harm. One that has other bytes, because it came later, puts them as the next
 * log, log.N+1.
 */
#pragma once

#include "backend/archive/archive.h"
#include "backend/base/work.h"
#include "backend/keep/keep.h"

/* Borrowed, until DONE. */
struct errand_world {
	struct loop *loop;
	struct group *group;	  /* in which work of the pool is under way */
	struct work_queue *notes; /* in whose order records are written */
	struct archive *archive;
	const char *namespace;
	const char *state_dir;
	keep_text_fn text; /* as keep_config.text */
	void *data;
};

struct errand_job {
	const struct spec_job *job;
	bool left;		    /* jobs/ */
	bool look;		    /* see how much waits, and put nothing */
	struct keep_record *record; /* given away; NULL: STATE/archive/UID has it */
};

/* How it has ended. */
struct errand_end {
	int err;	  /* 0; of the archive, as archive.h says; or of STATE, and then */
	bool local;	  /* so */
	const char *text; /* for people, of an error */
	struct keep_record *record; /* given back */
	char *line;	       /* that of `list.jsonl`, given away, where it is another; NULL */
	uint64_t put, waiting; /* bytes of output that were put, and that are not there yet */
	bool more;	       /* there is so much that the rest is left for later */
};

struct errand;

/* DONE is called once, not at once. */
struct errand *errand_start(const struct errand_world *world, const struct errand_job *job,
			    void (*done)(void *data, struct errand_end *end), void *data);
/* The archive has been stopped: DONE is not called any more. */
void errand_cancel(struct errand *e);
