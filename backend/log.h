/* SPDX-License-Identifier: MIT */
/*
 * A job's output as readers see it: a stream of bytes that grows at its end and never changes
 * otherwise; one container in one attempt, or all replicas merged. What a stream shows as its
 * size can be read; nothing beyond. All functions: any thread, never wait for a network.
 */
#ifndef KXFS_BACKEND_LOG_H
#define KXFS_BACKEND_LOG_H

#include <sys/types.h>

#include "spec/base.h"

struct log;

struct log_stat {
	uint64_t size; /* bytes that can be read; never shrinks */
	int64_t mtime; /* ns: of the last byte; 0: unknown */
	bool ended;    /* no byte will come any more */
};

struct log *log_ref(struct log *log);
void log_unref(struct log *log); /* NULL is allowed */
static inline void log_unrefp(struct log **log)
{
	log_unref(*log);
}
#define cleanup_log cleanup(log_unrefp)

/* 0 or a negative errno. ENDED is read before SIZE: ended means that SIZE is final. */
int log_stat(struct log *log, struct log_stat *ret);

/* Read up to N bytes at OFF. 0: OFF is at the size. A negative errno. */
ssize_t log_read(struct log *log, void *buf, size_t n, uint64_t off);

/*
 * Has all output that the program had printed when it was opened arrived? Replica logs of local
 * jobs: always. Else log_settle calls FN once on the I/O thread when it has (or can't).
 */
bool log_settled(struct log *log);
void log_settle(struct log *log, void (*fn)(void *data), void *data);

#endif
