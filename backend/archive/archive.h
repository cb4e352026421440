/* SPDX-License-Identifier: MIT */
/*
 * An archive: objects by name, in a directory or a bucket, that outlive every state directory. A name is parts joined by
 * '/', each of which spec_name_is_file takes; so none begins with a dot. No object is larger than ARCHIVE_MAX. What
 * stands in an archive may have been written by anybody who has a right to.
 *
 * I/O thread only. No call waits; each ends in exactly one call of its DONE, never from within the call.
 *
 *	archive   (here) which implementation a place has, and its calls
 *	directory a directory, which may be a server's: it is looked at as what belongs to users, in threads of its own
 *	s3        a bucket of S3, by way of backend/client/http.h; s3_keys knows who asks
 *	text      the names of an archive's objects, and what stands in them
 */
#ifndef KXFS_BACKEND_ARCHIVE_ARCHIVE_H
#define KXFS_BACKEND_ARCHIVE_ARCHIVE_H

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
 * ERR is 0 or one of: -ENOENT; -EACCES: no right to it; -EAGAIN: it has too much to do, and is to be asked again later;
 * -ENOSPC; -EHOSTUNREACH: it is away; -ETIMEDOUT; -EIO: all else. TEXT is for people, borrowed, never NULL.
 */
typedef void (*archive_done_fn)(void *data, int err, const char *text);
typedef void (*archive_bytes_fn)(void *data, int err, const char *text, const char *bytes,
				 size_t n);
typedef void (*archive_list_fn)(void *data, int err, const char *text,
				const struct archive_object *objects, size_t n, bool more);

struct archive_ops {
	/*
	 * At most ARCHIVE_MAX; the whole object appears at once or not at all, and takes the place of what is there.
	 * BYTES stay as they are until DONE.
	 */
	void (*put)(void *impl, const char *name, const char *bytes, size_t n, archive_done_fn done,
		    void *data);
	/* The bytes OFF .. OFF+N of it, fewer at its end; at most ARCHIVE_MAX. */
	void (*get)(void *impl, const char *name, uint64_t off, size_t n, archive_bytes_fn done,
		    void *data);
	/*
	 * What is one level below PREFIX, which ends with '/' or is "", in the order of bytes, behind AFTER (may be
	 * NULL), at most ARCHIVE_MAX_LIST. A prefix that is not there is empty.
	 */
	void (*list)(void *impl, const char *prefix, const char *after, archive_list_fn done,
		     void *data);
	/* No DONE is called any more. FN(DATA) when all of it is over that can be waited for, a few seconds at most. */
	void (*stop)(void *impl, loop_fn fn, void *data);
	void (*free)(void *impl); /* after FN, or if nothing was ever asked; any thread */
};

struct archive_config {
	const char *place; /* an absolute path, or s3://BUCKET[/PREFIX] */
	/* Of S3: the URL of a server, and a region; NULL or "": Amazon's, and what the environment says. */
	const char *endpoint, *region;
	const char *writer; /* another name for each who writes, [a-z0-9]+; NULL: who only reads */
};

/* Is PLACE one that archive_new can read? Nothing is looked at. *RET_TEXT says what is wrong with it. */
int archive_check(const char *place, char **ret_text);
/* CONFIG is copied. 0, or a negative errno with *RET_TEXT. Any thread, before the loop runs. */
int archive_new(struct loop *loop, const struct archive_config *config, struct archive **ret,
		char **ret_text);
void archive_free(struct archive *a); /* NULL is allowed; after archive_stop */

/* As archive_ops says. */
void archive_put(struct archive *a, const char *name, const char *bytes, size_t n,
		 archive_done_fn done, void *data);
void archive_get(struct archive *a, const char *name, uint64_t off, size_t n, archive_bytes_fn done,
		 void *data);
void archive_list(struct archive *a, const char *prefix, const char *after, archive_list_fn done,
		  void *data);
void archive_stop(struct archive *a, loop_fn fn, void *data);

#endif
