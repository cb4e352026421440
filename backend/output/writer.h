/* SPDX-License-Identifier: MIT */
/*
 * Writes a fetched log and the table of its lines. The I/O thread queues bytes, and the pool writes
 * them, so that a slow or full disk does not delay other work. The merged log gets the written
 * bytes from memory.
 *
 * The table is written before the log's bytes. So even if kxfs is killed, the table has the times
 * of all lines in the log. The next start uses them to find where to continue (log_writer_known).
 * Only log_writer_sync syncs, so after a power cut the table may be older than the log. I/O thread
 * only.
 */
#pragma once

#include "backend/output/lines.h"
#include "backend/output/output.h"

struct log_writer;

struct log_writer_events {
	/*
	 * Called when the log is open (ERR is 0), or can't be opened (ERR is a negative errno). In
	 * the second case W can only be closed.
	 */
	void (*opened)(void *data, int err);
	/*
	 * Called when all flushed lines are written (ERR is 0), or when the disk has failed with
	 * ERR. After a failure this writer writes nothing more: close it, and create another one
	 * later.
	 */
	void (*written)(void *data, int err);
	/*
	 * Called when log_writer_known has ended. ERR is 0 or a negative errno. KNOWN is the end of
	 * the log. Its LINES may begin with earlier lines that have the same time as the first line
	 * of its BYTES. To take LINES and BYTES, set them to NULL.
	 */
	void (*known)(void *data, int err, struct spec_logline_known *known);
	/* ERR is 0 or a negative errno. */
	void (*synced)(void *data, int err);
	void *data;
};

/* The log KEY of J must have begun (output_log_begin). EVENTS is copied. */
struct log_writer *log_writer_new(struct output_job *j, const char *key,
				  const struct log_writer_events *events);
/* False if too many bytes, of this log or of all logs, wait for the disk already. */
bool log_writer_has_room(const struct log_writer *w, size_t n);
/*
 * Add N > 0 bytes of one line. NS is the time of the line (ns since 1970; 0 or less if unknown). W
 * must be open. The bytes are not written before the next log_writer_flush.
 */
void log_writer_add(struct log_writer *w, int64_t ns, const char *bytes, size_t n);
/* Write all lines added so far. */
void log_writer_flush(struct log_writer *w);
/* Record that output is lost at this point (a gap). The gap is on disk before any further bytes. */
void log_writer_lost(struct log_writer *w);
/* Return the number of gaps that were recorded when the log was opened. */
unsigned log_writer_gaps(const struct log_writer *w);
/* Return the number of bytes not written yet. */
size_t log_writer_pending(const struct log_writer *w);
/* Return the size of the log, including all added bytes; 0 if the log is not open yet. */
uint64_t log_writer_size(const struct log_writer *w);

/*
 * Read the last LEAST bytes of the log on the pool, or all bytes if the log is shorter. Then call
 * KNOWN. log_writer_pending must be 0. Only one call may be in progress.
 */
void log_writer_known(struct log_writer *w, size_t least);
/* Sync the log, its table and their names, then call SYNCED. log_writer_pending must be 0. */
void log_writer_sync(struct log_writer *w);
/* Close W (may be NULL) before its job. W still writes flushed bytes, but calls nothing. */
void log_writer_close(struct log_writer *w);
