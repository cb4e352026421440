/* SPDX-License-Identifier: MIT */
/*
 * An errand puts into the archive all that is known of one job and that, by the job's record, the archive does not
 * have. I/O thread. A log in the archive never gets shorter, and its bytes never change: each part is compared before
 * it is put, so a writer that has lost its state, or has fewer bytes, does no harm. A writer that has other bytes,
 * because it came later, puts them as the next log, log.N+1.
 */
#pragma once

#include "backend/archive/archive.h"
#include "backend/base/work.h"
#include "backend/keep/keep.h"

/* What an errand uses; borrowed until DONE. */
struct errand_context {
	struct loop *loop;
	struct group *group;	  /* work of the pool is under way in it */
	struct work_queue *notes; /* records are written in its order */
	struct archive *archive;
	const char *namespace;
	const char *state_dir;
	keep_text_fn text; /* see keep_config.text */
	void *data;
};

struct errand_job {
	const struct spec_job *job;
	bool left;		    /* it has left jobs/ */
	bool look;		    /* find out how much waits, and put nothing */
	struct keep_record *record; /* given away; NULL: it is read from STATE/archive/UID */
};

/* How an errand has ended. */
struct errand_end {
	int err;	  /* 0; an error of the archive, as archive.h has them; or of STATE: then */
	bool local;	  /* LOCAL is true */
	const char *text; /* text for people, if there was an error */
	struct keep_record *record; /* given back */
	/* The line for `list.jsonl`, given away, if the archive has another; else NULL. */
	char *line;
	uint64_t put, waiting; /* bytes of output that were put, and that still have to be */
	bool more;	       /* there is so much output that the rest is left for later */
};

struct errand;

/* Start an errand. DONE is called once, not from here. */
struct errand *errand_start(const struct errand_context *context, const struct errand_job *job,
			    void (*done)(void *data, struct errand_end *end), void *data);
/* End an errand whose archive was stopped: DONE is not called any more. */
void errand_cancel(struct errand *e);
