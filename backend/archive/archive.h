/* SPDX-License-Identifier: MIT */
/*
 * An archive: objects by name that outlive every state directory. A name is parts joined by '/', each of which
 * spec_name_is_file takes; so none begins with a dot. No object is larger than ARCHIVE_MAX. Anybody who has a right to
 * may have written what stands in an archive.
 *
 * I/O thread only. No call waits; each ends in exactly one call of its DONE, never from within the call.
 */
#pragma once

#include "backend/base/loop.h"

#define ARCHIVE_MAX	 ((size_t)8 << 20) /* the largest object in bytes */
#define ARCHIVE_MAX_LIST 1000		   /* the most names in one answer */

struct archive;

/*
 * An item of a list, one level below the prefix. If more stands below it, its name ends with '/', and it has no size.
 */
struct archive_object {
	const char *name;
	uint64_t size;
};

/*
 * A call is over. ERR is 0 or one of: -ENOENT; -EACCES: no right to it; -ENOSPC; -EHOSTUNREACH: the archive is away;
 * -ETIMEDOUT; -EIO: anything else. TEXT is for people, borrowed, never NULL.
 */
typedef void (*archive_done_fn)(void *data, int err, const char *text);
typedef void (*archive_bytes_fn)(void *data, int err, const char *text, const char *bytes,
				 size_t n);
typedef void (*archive_list_fn)(void *data, int err, const char *text,
				const struct archive_object *objects, size_t n, bool more);

/* Where an archive is. Plain data. */
struct archive_address {
	/* The absolute path of a directory, or s3://BUCKET[/PREFIX], which has the two fields below, too. */
	const char *where;
	const char *endpoint; /* the URL of its server; NULL: AWS */
	const char *region;   /* NULL: the region of the environment, or us-east-1 */
};

/*
 * Make an archive. WRITER ([a-z0-9]+) is part of the names of files that are being written; each writer has another
 * one, so it leaves at most one such file behind. NULL: nothing will be put. All is copied. 0, or a negative errno with
 * *RET_TEXT (malloc'ed): PLACE can't be one. Any thread.
 */
int archive_new(struct loop *loop, const struct archive_address *place, const char *writer,
		struct archive **ret, char **ret_text);
/* To be called when archive_stop has called FN, or if nothing was ever asked. NULL is allowed. Any thread. */
void archive_free(struct archive *a);
/*
 * Stop: no DONE is called any more. FN(DATA) is called when all calls are over for which one can wait, after a few
 * seconds at most.
 */
void archive_stop(struct archive *a, loop_fn fn, void *data);

/* Can NAME be the name of an object, or (PREFIX) what stands before names of objects? Any thread. */
bool archive_is_name(const char *name, bool prefix);
/*
 * Put an object: the whole of it appears at once, in place of an older one, or nothing does. BYTES, malloc'ed, are
 * given away.
 */
void archive_put(struct archive *a, const char *name, char *bytes, size_t n, archive_done_fn done,
		 void *data);
/* Get the bytes OFF .. OFF+N of an object, fewer at its end. */
void archive_get(struct archive *a, const char *name, uint64_t off, size_t n, archive_bytes_fn done,
		 void *data);
/*
 * List what is one level below PREFIX, which ends with '/' or is "", in the order of bytes, and behind AFTER (may be
 * NULL). A PREFIX with nothing below it has an empty list.
 */
void archive_list(struct archive *a, const char *prefix, const char *after, archive_list_fn done,
		  void *data);
