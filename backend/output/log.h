/* SPDX-License-Identifier: MIT */
/*
 * A job's output as readers see it: a stream of bytes that grows at its end and never changes
 * otherwise; one container in one attempt, or all replicas merged; as it was printed, or each line behind its time.
 * What a stream shows as its size can be read; nothing beyond. All functions: any thread, never wait for a network.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

struct log;

/* With LOG_STAMPED each line is behind its time and a blank: "2026-11-22T04:35:12.123456Z ". */
enum log_form { LOG_PLAIN, LOG_STAMPED };

struct log_stat {
	uint64_t size; /* bytes that can be read; never shrinks */
	int64_t mtime; /* ns: of the last byte; 0: unknown */
	bool ended;    /* no byte will come any more */
};

/* News of logs, for who has the output made. I/O thread, no lock held. */
struct output_events {
	/*
	 * LOG, which is borrowed and which somebody holds open, has grown or ended, or is denied or not. NULL: nobody
	 * wants to know.
	 */
	void (*log)(void *data, struct log *log);
	void *data;
};

void log_unref(struct log *log); /* NULL is allowed */
define_cleanup(log_unrefp, struct log *, log_unref)
#define cleanup_log cleanup(log_unrefp)

/* 0 or a negative errno. ENDED is read before SIZE: ended means that SIZE is final. */
int log_stat(struct log *log, struct log_stat *ret);
/* What is known of it without a look at the disk: there may be more. Of LOG_PLAIN, without MTIME. */
void log_peek(struct log *log, struct log_stat *ret);

/* Nothing of it was captured, and the user has no right to read what the cluster has of it. */
bool log_is_denied(struct log *log);

/* Read up to N bytes at OFF. 0: OFF is at the size. A negative errno. */
ssize_t log_read(struct log *log, void *buf, size_t n, uint64_t off);

/*
 * For who follows a log: what has just come, from memory. It may be on its way to the disk still, and not show in the
 * size yet. It hardly ever happens that it can't be written, and can't be had again either; then the log goes on with
 * other output there, and who was given what was lost must not go on. I/O thread.
 */
struct log_early {
	uint64_t end; /* bytes up to there were given before they were written; 0: they are */
	unsigned losses;
};

/* Up to N bytes at OFF, which stay until the next event, in *RET, which E notes (NULL: only how many). 0: none. */
size_t log_read_early(struct log *log, struct log_early *e, const char **ret, size_t n,
		      uint64_t off);
/* False: bytes that this follower was given before they were written have been lost since; it must get EIO. */
bool log_is_kept(struct log *log, struct log_early *e);

/*
 * Has all output that the program had printed when LOG was opened arrived? Replica logs of local jobs: always. Else
 * log_when_arrived calls FN once on the I/O thread when it has, or can't.
 */
bool log_has_arrived(struct log *log);
void log_when_arrived(struct log *log, void (*fn)(void *data), void *data);
