/* SPDX-License-Identifier: MIT */
/*
 * An archive for threads that may wait: those of the pool, and handlers that have said so (serve_disk_begin). A call
 * ends within some seconds. After one that was not answered the archive is away: for a while every other fails at once.
 */
#pragma once

#include "backend/archive/archive.h"

struct remote;

/* See archive_new. Any thread. */
int remote_new(struct loop *loop, const struct archive_address *place, struct remote **ret,
	       char **ret_text);
void remote_free(struct remote *r); /* to be called after the loop has stopped; NULL is allowed */
/*
 * I/O thread: whoever waits is told -EHOSTUNREACH, and so is whoever asks later. FN(DATA) is called as archive_stop
 * says.
 */
void remote_stop(struct remote *r, loop_fn fn, void *data);

/*
 * The functions below are for any thread but the I/O thread. Errors are those of archive.h; while the archive is away
 * it is -EHOSTUNREACH.
 */

/* Like archive_get; *RET is malloc'ed. For a NAME that no object can have: -ENOENT. */
int remote_get(struct remote *r, const char *name, uint64_t off, size_t n, char **ret,
	       size_t *ret_n);
/* Like archive_list, for all names, as far as MAX has room; FN is called for each, in their order. */
int remote_list(struct remote *r, const char *prefix, size_t max,
		void (*fn)(void *data, const struct archive_object *object), void *data);
/* Ask the archive next time, although it is away. */
void remote_try(struct remote *r);
/* Since when the archive has been away (ns; 0: it is not), with the reason, malloc'ed. */
int64_t remote_away(struct remote *r, char **ret_why);
