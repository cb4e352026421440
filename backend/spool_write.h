/* SPDX-License-Identifier: MIT */
/*
 * Writing a log that is fetched: bytes are queued by the I/O thread and written by the pool, so that a slow
 * disk or a full one holds up nobody else; readers are told as they come. Beside each log is kept what is known
 * of it, for the next start of kxfs (STATE/jobs/ID/positions/KEY): before each write, what will be known
 * after it. So whenever kxfs is killed, the times of all lines that are in the log are kept too; but of a
 * write that is killed halfway only of its last lines. Nothing of it is synced: when the machine crashes, what is kept
 * may be older than the log. I/O thread only.
 */
#ifndef KXFS_BACKEND_SPOOL_WRITE_H
#define KXFS_BACKEND_SPOOL_WRITE_H

#include "backend/spool.h"
#include "spec/logline.h"

struct spool_writer;

struct spool_writer_events {
	/*
	 * The log is open; L knows what is in it, is to be told of all that is added, and is the writer's. ERR is
	 * 0, or all failed.
	 */
	void (*opened)(void *data, int err, struct spec_logline *l);
	/*
	 * All that was added is written; or (ERR: -ENOSPC, -EDQUOT, -EIO ...) some is not, and nothing
	 * more will be: close it, and open another when it may work again.
	 */
	void (*written)(void *data, int err);
	void *data;
};

/* Of the log KEY of J, which has begun (spool_log_begin). EVENTS is copied. NULL: no memory. */
struct spool_writer *spool_writer_new(struct spool_job *j, const char *key,
				      const struct spool_writer_events *events);
/* Nothing stands in the way of its opening any more (spool_open.c). */
void spool_writer_begin(struct spool_writer *w);
/* May N bytes more be added? If not, too much waits for the disk already, of this log or of all. */
bool spool_writer_has_room(const struct spool_writer *w, size_t n);
/*
 * More, once it is open: N > 0 bytes of one line, whose time is NS. 0; -ENOMEM: not taken. It is written, in order,
 * from the next flush on.
 */
int spool_writer_add(struct spool_writer *w, int64_t ns, const char *bytes, size_t n);
/* L knows just what was added by now: before anything else is done, write. */
void spool_writer_flush(struct spool_writer *w);
/* Bytes that are not written yet. */
size_t spool_writer_pending(const struct spool_writer *w);
/* No event comes any more. What was flushed is still written. Before its job is closed. NULL is allowed. */
void spool_writer_close(struct spool_writer *w);

#endif
