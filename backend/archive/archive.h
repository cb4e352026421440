/* SPDX-License-Identifier: MIT */
/*
 * An archive: objects by name that outlive every state directory. A name is parts joined by '/', each
 * of which spec_name_is_file takes; so none begins with a dot. No object is larger than ARCHIVE_MAX. What stands in an
 * archive may have been written by anybody who has a right to.
 *
 * I/O thread only. No call waits; each ends in exactly one call of its DONE, never from within the call.
 */
#pragma once

#include "backend/base/loop.h"

#define ARCHIVE_MAX	 ((size_t)8 << 20) /* bytes of an object */
#define ARCHIVE_MAX_LIST 1000		   /* names of one answer */

struct archive;

/* One level below a prefix; the name of what has more below it ends with '/', and has no size. */
struct archive_object {
	const char *name;
	uint64_t size;
};

/*
 * ERR is 0 or one of: -ENOENT; -EACCES: no right to it; -ENOSPC; -EHOSTUNREACH: the archive is away; -ETIMEDOUT; -EIO:
 * all else. TEXT is for people, borrowed, never NULL.
 */
typedef void (*archive_done_fn)(void *data, int err, const char *text);
typedef void (*archive_bytes_fn)(void *data, int err, const char *text, const char *bytes,
				 size_t n);
typedef void (*archive_list_fn)(void *data, int err, const char *text,
				const struct archive_object *objects, size_t n, bool more);

/* Where an archive is. Plain data. */
struct archive_place {
	/* The absolute path of a directory, or s3://BUCKET[/PREFIX], which has the two fields below, too. */
	const char *where;
	const char *endpoint; /* the URL of its server; NULL: AWS */
	const char *region;   /* NULL: that of the environment, or us-east-1 */
};

/*
 * WRITER, [a-z0-9]+, is another for each who writes: it is part of the names of files that are being written, so that
 * each is left behind at most once; NULL: nothing is put. All is copied. 0, or a negative errno with *RET_TEXT
 * (malloc'ed): PLACE can't be one. Any thread.
 */
int archive_new(struct loop *loop, const struct archive_place *place, const char *writer,
		struct archive **ret, char **ret_text);
/* NULL is allowed. After archive_stop has called FN, or if nothing was ever asked; any thread. */
void archive_free(struct archive *a);
/* No DONE is called any more. FN(DATA) when all of it is over that can be waited for, a few seconds at most. */
void archive_stop(struct archive *a, loop_fn fn, void *data);

/* Can NAME be that of an object, or (PREFIX) of what is above some? Any thread. */
bool archive_is_name(const char *name, bool prefix);
/* The whole object appears at once or not at all, in the place of what is there. BYTES, malloc'ed, are given away. */
void archive_put(struct archive *a, const char *name, char *bytes, size_t n, archive_done_fn done,
		 void *data);
/* The bytes OFF .. OFF+N of it, fewer at its end. */
void archive_get(struct archive *a, const char *name, uint64_t off, size_t n, archive_bytes_fn done,
		 void *data);
/*
 * What is one level below PREFIX, which ends with '/' or is "", in the order of bytes, behind AFTER (may be NULL). A
 * prefix that is not there is empty.
 */
void archive_list(struct archive *a, const char *prefix, const char *after, archive_list_fn done,
		  void *data);
