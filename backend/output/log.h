/* SPDX-License-Identifier: MIT */
/*
 * A job's output as readers see it: a stream of bytes that grows at its end and never changes otherwise; one container
 * in one attempt, or all replicas merged; as it was printed, or each line behind its time. Bytes below the size that a
 * stream shows can be read, none beyond. All functions are for any thread and never wait for a network.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

struct log;

/* With LOG_STAMPED each line has its time and a blank before it: "2026-11-22T04:35:12.123456Z ". */
enum log_form { LOG_PLAIN, LOG_STAMPED };

struct log_stat {
	uint64_t size; /* bytes that can be read; never shrinks */
	int64_t mtime; /* time of the last byte, in ns; 0: unknown */
	bool ended;    /* no byte will come any more */
};

/* News of logs, for the owner of the output. I/O thread, no lock held. */
struct output_events {
	/*
	 * LOG has grown or ended, or is denied or not. It is borrowed, and somebody has it open. NULL: the owner does
	 * not want to know.
	 */
	void (*log)(void *data, struct log *log);
	void *data;
};

void log_unref(struct log *log); /* NULL is allowed */
define_cleanup(log_unrefp, struct log *, log_unref)
#define cleanup_log cleanup(log_unrefp)

/* The status of LOG. 0 or a negative errno. ENDED is read before SIZE, so if the log has ended, SIZE is final. */
int log_stat(struct log *log, struct log_stat *ret);
/* What is known of LOG (of form LOG_PLAIN) without a look at the disk: there may be more bytes. MTIME is not set. */
void log_peek(struct log *log, struct log_stat *ret);

/* Was nothing of LOG captured, and has the user no right to read what the cluster has? */
bool log_is_denied(struct log *log);

/*
 * Is LOG stale? Its folder has got another name since it was opened, so nothing is known of it and no byte will come;
 * whoever opens it again may find its output.
 */
bool log_is_stale(struct log *log);
/* Has the log another file since it was opened? It goes on there, if its job is still known; LOG has ended. */
bool log_is_moved(struct log *log);

/* Read up to N bytes at OFF. Returns how many; 0: the log has no byte at OFF; or a negative errno. */
ssize_t log_read(struct log *log, void *buf, size_t n, uint64_t off);

/*
 * For those who follow a log: its newest bytes, from memory. They may still be on their way to the disk, and not show
 * in the size yet. Should they be lost, which hardly ever happens (they can't be written, and can't be had again), the
 * log goes on with other output in their place, and whoever was given them must not go on. I/O thread.
 */
struct log_early {
	/* Bytes before this were given before they were written; 0: all are written. */
	uint64_t end;
	unsigned losses;
};

/*
 * Up to N bytes at OFF, in *RET, which stay until the next event; E notes them (RET is NULL: return only how many there
 * are). 0: none.
 */
size_t log_read_early(struct log *log, struct log_early *e, const char **ret, size_t n,
		      uint64_t off);
/* False: bytes that were given to this follower before they were written have been lost since; it must get EIO. */
bool log_is_kept(struct log *log, struct log_early *e);

/*
 * Has all output arrived that the program had printed when LOG was opened? For replica logs of local jobs it always
 * has. If not, log_when_arrived calls FN once, on the I/O thread, when it has or can't.
 */
bool log_has_arrived(struct log *log);
void log_when_arrived(struct log *log, void (*fn)(void *data), void *data);
