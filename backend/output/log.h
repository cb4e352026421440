/* SPDX-License-Identifier: MIT */
/*
 * The output of a job, for readers. A log is a sequence of bytes that grows only at its end. It has
 * the output of one container in one attempt, or the merged output of all replicas. A log has two
 * forms: the output as it was printed, and the output with a time before each line. kxfs reports a
 * size for each log. Readers can read only the bytes before that size. Any thread may call these
 * functions, unless noted otherwise. None of them waits for a network.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

struct log;

/* LOG_STAMPED: before each line there is its time and a blank, "2026-11-22T04:35:12.123456Z ". */
enum log_form { LOG_PLAIN, LOG_STAMPED };

struct log_stat {
	uint64_t size; /* readable bytes; never shrinks */
	int64_t mtime; /* time of the last byte, in ns; 0 if unknown */
	bool ended;    /* true if no more bytes will arrive */
};

/*
 * Callbacks for events of logs. The owner of the output sets them. kxfs calls them on the I/O
 * thread, without a lock.
 */
struct output_events {
	/*
	 * Called when LOG has grown or ended, or when the result of log_is_denied has changed. This
	 * is called only for a log that was opened. LOG is borrowed. May be NULL.
	 */
	void (*log)(void *data, struct log *log);
	void *data;
};

void log_unref(struct log *log); /* NULL is allowed */
define_cleanup(log_unrefp, struct log *, log_unref)
#define cleanup_log cleanup(log_unrefp)

/*
 * Get the status of LOG. Return 0 or a negative errno. This function reads ENDED before SIZE. So if
 * ENDED is true, SIZE is final.
 */
int log_stat(struct log *log, struct log_stat *ret);
/*
 * Get the status of LOG without accessing the disk. LOG's form must be LOG_PLAIN. The log may have
 * more than SIZE bytes. MTIME is not set.
 */
void log_peek(struct log *log, struct log_stat *ret);

/* True if the cluster denies the user access to the output of LOG, and none was captured. */
bool log_is_denied(struct log *log);

/* True if the job's output was removed before LOG had ended, so that the end of LOG is missing. */
bool log_is_cut(struct log *log);

/*
 * Read up to N bytes at OFF. Return the number of bytes; 0 if the log has no byte at OFF; or a
 * negative errno. -EBADMSG: the merged log, or a log that it refers to, is damaged at OFF.
 */
ssize_t log_read(struct log *log, void *buf, size_t n, uint64_t off);

/*
 * Followers can read the newest bytes of a log from memory, before these bytes are on disk and
 * count in the log's size. In rare cases, kxfs can neither write such bytes nor fetch them again.
 * Then the log continues with other output, and a follower that has read the bytes must stop
 * (log_is_kept). Each follower has one struct log_early. I/O thread.
 */
struct log_early {
	/*
	 * The follower has read bytes up to this offset. At that time, some of these bytes were not
	 * on disk yet. END is 0 if all bytes that the follower has read are on disk.
	 */
	uint64_t end;
	unsigned losses;
};

/*
 * If the bytes at OFF are in memory, set *RET to their address, and record in E that the follower
 * has read these bytes. Return the number of these bytes, at most N. Return 0 if the bytes are not
 * in memory. The address is valid until the next event. If RET is NULL, only return the number.
 */
size_t log_read_early(struct log *log, struct log_early *e, const char **ret, size_t n,
		      uint64_t off);
/*
 * False if this follower has read bytes from memory that were lost before they were written. The
 * follower must then get EIO.
 */
bool log_is_kept(struct log *log, struct log_early *e);

/*
 * log_has_arrived returns true if all output has arrived that the program had printed before LOG
 * was opened. For replica logs of local jobs, this is always true. log_when_arrived calls FN(DATA)
 * once, on the I/O thread, when this output has arrived or can't arrive any more.
 */
bool log_has_arrived(struct log *log);
void log_when_arrived(struct log *log, void (*fn)(void *data), void *data);
