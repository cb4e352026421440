/* SPDX-License-Identifier: MIT */
/*
 * A job's output for readers. A log is a stream of bytes that only grows at its end. It has the
 * output of one container in one attempt, or of all replicas merged; as it was printed, or with a
 * time before each line. Exactly the bytes below the reported size of a stream can be read. All
 * functions are for any thread and never wait for a network.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

struct log;

/*
 * With LOG_STAMPED each line is preceded by its time and a blank: "2026-11-22T04:35:12.123456Z ".
 */
enum log_form { LOG_PLAIN, LOG_STAMPED };

struct log_stat {
	uint64_t size; /* readable bytes; never shrinks */
	int64_t mtime; /* time of the last byte, in ns; 0 if unknown */
	bool ended;    /* no more bytes will arrive */
};

/* Events of logs, for the owner of the output. I/O thread, no lock held. */
struct output_events {
	/*
	 * LOG, which has readers, has grown or ended, or is denied or not. It is borrowed. May be
	 * NULL.
	 */
	void (*log)(void *data, struct log *log);
	void *data;
};

void log_unref(struct log *log); /* NULL is allowed */
define_cleanup(log_unrefp, struct log *, log_unref)
#define cleanup_log cleanup(log_unrefp)

/*
 * Return the status of LOG: 0 or a negative errno. ENDED is read before SIZE, so if the log has
 * ended, SIZE is final.
 */
int log_stat(struct log *log, struct log_stat *ret);
/*
 * Return the status of LOG (of form LOG_PLAIN) without accessing the disk: there may be more bytes.
 * MTIME is not set.
 */
void log_peek(struct log *log, struct log_stat *ret);

/* True if LOG has no captured output, because the cluster denies the user access to it. */
bool log_is_denied(struct log *log);

/* True if the output of the job was removed before LOG had ended, so its end is missing. */
bool log_is_cut(struct log *log);

/*
 * Read up to N bytes at OFF. Return the number of bytes; 0 if the log has no byte at OFF; or a
 * negative errno. -EBADMSG: the merged log, or a log that it refers to, is damaged at OFF.
 */
ssize_t log_read(struct log *log, void *buf, size_t n, uint64_t off);

/*
 * For followers of a log: its newest bytes, from memory, which may not be on disk yet, nor counted
 * in the size. In the rare case that they can be neither written nor fetched again, the log
 * continues with other output. Then a follower that has read them must stop (log_is_kept). I/O
 * thread.
 */
struct log_early {
	/* Bytes before this were delivered before they were written; 0 if all are written. */
	uint64_t end;
	unsigned losses;
};

/*
 * Set *RET to the address of the bytes in memory at OFF, valid until the next event, and record in
 * E that they were read. Return their number, at most N; 0 if there are none. If RET is NULL, only
 * return the number.
 */
size_t log_read_early(struct log *log, struct log_early *e, const char **ret, size_t n,
		      uint64_t off);
/*
 * Return false if bytes that this follower got before they were written have been lost since; it
 * must get EIO.
 */
bool log_is_kept(struct log *log, struct log_early *e);

/*
 * True if all output that the program had printed when LOG was opened has arrived. Always true for
 * replica logs of local jobs. Otherwise log_when_arrived calls FN once, on the I/O thread, when the
 * output has arrived or can't arrive.
 */
bool log_has_arrived(struct log *log);
void log_when_arrived(struct log *log, void (*fn)(void *data), void *data);
