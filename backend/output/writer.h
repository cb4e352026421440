/* SPDX-License-Identifier: MIT */
/*
 * Writing a log that is fetched: bytes are queued by the I/O thread and written by the pool, so that a slow or a full
 * disk holds up nobody else. The table of its lines is written with it, and the merged log is fed with what is on
 * disk by then, from memory. The table is written before the bytes, so whenever kxfs is killed, the times of all lines
 * that are in the log are known too, and with the log's own end (log_writer_known) they tell where to go on. Nothing of
 * it is synced before log_writer_sync: when the machine crashes, the table may be older than the log. I/O thread only.
 */
#pragma once

#include "backend/output/lines.h"
#include "backend/output/output.h"

struct log_writer;

struct log_writer_events {
	/* The log is open; ERR is 0, or all failed. */
	void (*opened)(void *data, int err);
	/*
	 * All that was added is written; or (ERR: -ENOSPC, -EDQUOT, -EIO ...) some is not, and nothing
	 * more will be: close it, and open another when it may work again.
	 */
	void (*written)(void *data, int err);
	void *data;
};

/* Of the log KEY of J, which has begun (output_log_begin). EVENTS is copied. */
struct log_writer *log_writer_new(struct output_job *j, const char *key,
				  const struct log_writer_events *events);
/* May N bytes more be added? If not, too much waits for the disk already, of this log or of all. */
bool log_writer_has_room(const struct log_writer *w, size_t n);
/*
 * More, once it is open: N > 0 bytes of one line, whose time is NS (ns since 1970; not above 0: unknown). It is
 * written, in order, from the next flush on.
 */
void log_writer_add(struct log_writer *w, int64_t ns, const char *bytes, size_t n);
/* What was added by now is to be written. */
void log_writer_flush(struct log_writer *w);
/* Output is lost between the log's end and what is added next. That is on disk before what follows it. */
void log_writer_lost(struct log_writer *w);
/* How often that was so before the log was opened, as the disk tells; a kill may have kept it from all others. */
unsigned log_writer_gaps(const struct log_writer *w);
/* Bytes that are not written yet. */
size_t log_writer_pending(const struct log_writer *w);
/* Bytes of the log, with all that was added. */
uint64_t log_writer_size(const struct log_writer *w);

/*
 * The end of the log: the BYTES from FROM to SIZE, and the LINES that begin there, as the table has them. Before these
 * stands the last that begins at or before FROM, or, if lines before that have its time, the first of those. Both
 * are malloc'ed, and may be taken over by setting them to NULL.
 */
struct log_known {
	uint64_t from, size;
	char *bytes;
	struct log_line *lines;
	size_t n_lines;
};

typedef void (*log_known_fn)(void *data, int err, struct log_known *known);
/*
 * The last LEAST bytes of the log, or all, when nothing is pending: read on the pool, then FN(DATA), where ERR is 0 or
 * a negative errno. One at a time.
 */
void log_writer_known(struct log_writer *w, size_t least, log_known_fn fn, void *data);
typedef void (*log_synced_fn)(void *data, int err);
/* Log, table and their names are on disk whatever happens to the machine, then FN(DATA), when nothing is pending. */
void log_writer_sync(struct log_writer *w, log_synced_fn fn, void *data);
/* No event comes any more. What was flushed is still written. Before its job is closed. NULL is allowed. */
void log_writer_close(struct log_writer *w);
