/* SPDX-License-Identifier: MIT */
/*
 * The names of objects in an archive, and the texts of the files that keep writes. Pure. An archive has, below the name
 * of the namespace:
 *
 *	source.json		whose jobs these are (one line)
 *	DAY/list.jsonl		a line for each job that was created on DAY; list-1.jsonl ... where that is full
 *	DAY/ID/			ID~UID8 where another job of that day has the name
 *		uid		of the job, and a newline
 *		status.json app.yaml manifest.yaml events why
 *		job.json	all that is known of it, for who reads the archive with kxfs (spec/job/snapshot.h)
 *		ROLE-K/log.N.key	the key of the log, and a newline
 *		ROLE-K/log.N/AT		its bytes from AT, 8 MiB in each file but the last
 *		ROLE-K/log.N.lines/AT	its table of lines (backend/output/lines.h), cut in the same way
 *		ROLE-K/CONTAINER.log.N	the same of other containers
 */
#pragma once

#include "spec/job/job.h"

#define KEEP_MAX_LOGS 999 /* the greatest N */

/* The texts of a job. */
enum keep_text {
	KEEP_STATUS,
	KEEP_APPDEF,
	KEEP_MANIFEST,
	KEEP_EVENTS,
	KEEP_WHY,
	KEEP_SNAPSHOT,
	KEEP_N_TEXTS
};

const char *keep_text_name(enum keep_text which);

/* The name NAMESPACE/source.json; and the text of that file where UID tells the cluster from others. malloc'ed. */
char *keep_source_name(const char *namespace);
char *keep_source_text(const char *namespace, const char *uid);
/* Set RET to the day of a time in ns, "2026-11-26". */
void keep_day(int64_t ns, char ret[11]);
/* DAY/ID of JOB, or (SECOND) DAY/ID~UID8; malloc'ed. */
char *keep_folder(const struct spec_job *job, bool second);
/*
 * "ROLE-K/log" or "ROLE-K/CONTAINER.log", the name of log I of R, malloc'ed; *RET_N: how many logs of that name are
 * before it. NULL: it can have no name.
 */
char *keep_log_name(const struct spec_replica *r, size_t i, unsigned *ret_n);
/* The name of the part that begins at AT: sixteen digits, so that parts sort. */
char *keep_part_name(const char *log, unsigned n, const char *lines, uint64_t at);

/* --- what is in the archive of one job: STATE/archive/UID --- */

/* What the archive has of one log. Plain data. */
struct keep_log {
	char *key, *name;
	unsigned n;	/* its number, the N of log.N */
	bool claimed;	/* the archive knows that this number is its own */
	uint64_t size;	/* bytes of it that the archive has */
	uint64_t lines; /* bytes of its table that the archive has */
};

/* What the archive has of one job. Plain data. */
struct keep_record {
	char *folder;		    /* DAY/ID; NULL: it has no folder yet */
	char *digest[KEEP_N_TEXTS]; /* of each text that is there; NULL: the text is not */
	char *line;		    /* digest of its line in the list */
	bool final;		    /* nothing will be added to it any more */
	struct keep_log *logs;
	size_t n_logs;
};

void keep_record_free(struct keep_record *r); /* NULL is allowed */
/* The log KEY of R; it is added as NAME.N if it is not there. */
struct keep_log *keep_record_log(struct keep_record *r, const char *key, const char *name,
				 unsigned n);
char *keep_record_text(const struct keep_record *r);
/* The record that TEXT has, which may be anything: what can't be read counts as missing. */
struct keep_record *keep_record_parse(const char *text);

/* --- list.jsonl --- */

/* A line of a list, about one job. Plain data. */
struct keep_line {
	char *text;	  /* with its newline */
	size_t len, head; /* HEAD: how many bytes tell which job it is of */
	bool placed;
};

/* Make LINE that of the job UID whose status is STATUS, one line of JSON with a newline. */
void keep_line_init(struct keep_line *line, const char *uid, const char *status);
/*
 * Make *RET of TEXT, which may be anything: lines of jobs that are among LINES are replaced by those, which are marked
 * as placed. With APPEND the others are added, as far as MAX bytes have room. *RET is malloc'ed; true: it differs from
 * TEXT.
 */
bool keep_list_merge(const char *text, size_t len, struct keep_line *lines, size_t n, bool append,
		     size_t max, char **ret, size_t *ret_len);
