/* SPDX-License-Identifier: MIT */
/*
 * Writing a log that is fetched: bytes are queued by the I/O thread and written by the pool, so that a slow
 * disk or a full one holds up nobody else; readers are told as they come. Beside each log is kept how far
 * it is, for the next start of kxfs (STATE/jobs/ID/positions/KEY). I/O thread only.
 */
#ifndef KXFS_BACKEND_SPOOL_WRITE_H
#define KXFS_BACKEND_SPOOL_WRITE_H

#include "backend/spool.h"
#include "spec/logline.h"

struct spool_writer;

struct spool_writer_events {
	/* The log is open; L (to be taken over) knows what is in it. ERR is 0, or all failed. */
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
/* May N bytes more be added? If not, too much waits for the disk already, of this log or of all. */
bool spool_writer_has_room(const struct spool_writer *w, size_t n);
/*
 * More, once it is open: N > 0 bytes of one line, whose time is NS. 0; -ENOMEM: not taken. What ever was added
 * is written in order.
 */
int spool_writer_add(struct spool_writer *w, int64_t ns, const char *bytes, size_t n);
/* Keep where L is, which knows just what was added by now. */
void spool_writer_keep(struct spool_writer *w, const struct spec_logline *l);
/* Bytes that are not written yet. */
size_t spool_writer_pending(const struct spool_writer *w);
/* No event comes any more. What was added is still written. NULL is allowed. */
void spool_writer_close(struct spool_writer *w);

#endif
