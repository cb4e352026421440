/* SPDX-License-Identifier: MIT */
/*
 * The output of a job, for readers. A log is the output of one container in one attempt, or the
 * merged output of all replicas. It grows only at its end. A log has two forms: as printed, and
 * with a time before each line. Readers can read only the bytes before the reported size. Any
 * thread may call these functions, unless noted otherwise. None of them waits for a network.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

struct log;

/* LOG_STAMPED: each line begins with its time and a space, "2026-11-22T04:35:12.123456Z ". */
enum log_form { LOG_PLAIN, LOG_STAMPED };

struct log_stat {
	uint64_t size; /* readable bytes; never shrinks */
	int64_t mtime; /* when the log last grew, in ns; 0 if unknown */
	bool ended;    /* no more bytes will arrive */
};

/* Callbacks. kxfs calls them on the I/O thread, without a lock. */
struct output_events {
	/* An open LOG (borrowed) has grown or ended, or log_is_denied has changed. May be NULL. */
	void (*log)(void *data, struct log *log);
	void *data;
};

void log_unref(struct log *log); /* NULL is allowed */
define_cleanup(log_unrefp, struct log *, log_unref)
#define cleanup_log cleanup(log_unrefp)

/* Return 0 or a negative errno. If ENDED is true, SIZE is final. */
int log_stat(struct log *log, struct log_stat *ret);
/* Like log_stat for a LOG_PLAIN log, without disk access: SIZE may be too low, and MTIME is 0. */
void log_peek(struct log *log, struct log_stat *ret);

/* True if the cluster denies access to LOG's output, and kxfs has captured none of it. */
bool log_is_denied(struct log *log);

/* True if the job's output was removed before LOG had ended, so the end of LOG is missing. */
bool log_is_cut(struct log *log);

/*
 * Read up to N bytes at OFF. Return the number of bytes, 0 if the log has no byte at OFF, or a
 * negative errno. -EBADMSG: the merged log, or a log that it refers to, is damaged at OFF.
 */
ssize_t log_read(struct log *log, void *buf, size_t n, uint64_t off);

/*
 * log_has_arrived: true if all output has arrived that was printed before LOG was opened; always
 * true for a log of a local replica. log_when_arrived: call FN(DATA) once, on the I/O thread, when
 * this output has arrived or can't arrive any more.
 */
bool log_has_arrived(struct log *log);
void log_when_arrived(struct log *log, void (*fn)(void *data), void *data);
