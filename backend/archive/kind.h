/* SPDX-License-Identifier: MIT */
/* What each sort of archive provides, behind archive.h. Private to backend/archive/. */
#pragma once

#include "backend/archive/archive.h"

/* Like the functions of archive.h, which have checked names and bounds before. */
struct archive_ops {
	void (*put)(struct archive *a, const char *name, char *bytes, size_t n,
		    archive_done_fn done, void *data);
	void (*get)(struct archive *a, const char *name, uint64_t off, size_t n,
		    archive_bytes_fn done, void *data);
	void (*list)(struct archive *a, const char *prefix, const char *after, archive_list_fn done,
		     void *data);
	void (*stop)(struct archive *a, loop_fn fn, void *data);
	void (*free)(struct archive *a);
};

/* The first member of each kind's own struct; plain data. */
struct archive {
	const struct archive_ops *ops;
};

struct archive *archive_dir_new(struct loop *loop, const char *dir, const char *writer);
/* Make an archive of this kind. 0, or a negative errno with *RET_TEXT. */
int archive_s3_new(struct loop *loop, const struct archive_address *place, bool writes,
		   struct archive **ret, char **ret_text);
