/* SPDX-License-Identifier: MIT */
/*
 * Writes a fetched log: the I/O thread queues its bytes and the pool writes them, so that a slow or
 * full disk does not hold up others. The table of its lines is written with it, and the merged log
 * gets the written bytes from memory. The table is written before the bytes, so after a kill it has
 * the times of all lines in the log. These times and the end of the log (log_writer_known) show
 * where to continue. Only log_writer_sync syncs: after a crash of the machine, the table may be
 * older than the log. I/O thread only.
 */
#pragma once

#include "backend/output/lines.h"
#include "backend/output/output.h"

struct log_writer;

struct log_writer_events {
	/* The log is open (ERR is 0), or opening it has failed for good. */
	void (*opened)(void *data, int err);
	/*
	 * All added lines are written (ERR is 0). Or the disk has failed (-ENOSPC, -EDQUOT, -EIO
	 * ...), and this writer writes nothing more: close it, and open another when the disk may
	 * work again.
	 */
	void (*written)(void *data, int err);
	void *data;
};

/* Make a writer of the log KEY of J, which has begun (output_log_begin). EVENTS is copied. */
struct log_writer *log_writer_new(struct output_job *j, const char *key,
				  const struct log_writer_events *events);
/*
 * True if N more bytes may be added. If not, too many bytes already wait for the disk, of this log
 * or of all.
 */
bool log_writer_has_room(const struct log_writer *w, size_t n);
/*
 * Add N > 0 bytes of one line, whose time is NS (ns since 1970; 0 or less if unknown). W must be
 * open. The bytes are written in order, after the next log_writer_flush.
 */
void log_writer_add(struct log_writer *w, int64_t ns, const char *bytes, size_t n);
/* Write all lines added so far. */
void log_writer_flush(struct log_writer *w);
/*
 * Record that output is lost between the log's end and the next added bytes. A record of that gap
 * is on disk before those bytes.
 */
void log_writer_lost(struct log_writer *w);
/*
 * Return the number of gaps that were recorded on disk when the log was opened. After a kill,
 * nothing else records them.
 */
unsigned log_writer_gaps(const struct log_writer *w);
/* Return the number of bytes not written yet. */
size_t log_writer_pending(const struct log_writer *w);
/* Return the size of the log, including all added bytes. */
uint64_t log_writer_size(const struct log_writer *w);

/*
 * The end of the log: the BYTES from FROM to SIZE, and the LINES that begin there, from the table.
 * LINES starts earlier, with the last line that begins at or before FROM; if lines before that one
 * have the same time, with the first of those. Both are malloc'ed, and may be taken over by setting
 * them to NULL.
 */
struct log_known {
	uint64_t from, size;
	char *bytes;
	struct log_line *lines;
	size_t n_lines;
};

typedef void (*log_known_fn)(void *data, int err, struct log_known *known);
/*
 * Read the last LEAST bytes of the log, or all of it, on the pool; log_writer_pending must be 0.
 * Then call FN(DATA) with 0 or a negative errno as ERR. Only one call may be in progress.
 */
void log_writer_known(struct log_writer *w, size_t least, log_known_fn fn, void *data);
typedef void (*log_synced_fn)(void *data, int err);
/*
 * Sync log, table and their names, so that they survive a crash of the machine; log_writer_pending
 * must be 0. Then call FN(DATA, err).
 */
void log_writer_sync(struct log_writer *w, log_synced_fn fn, void *data);
/*
 * Close W: no more events follow, but flushed bytes are still written. Call this before its job is
 * closed. NULL is allowed.
 */
void log_writer_close(struct log_writer *w);
