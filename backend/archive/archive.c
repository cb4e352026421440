/* SPDX-License-Identifier: MIT */
/* Chooses the sort of archive by its address, and checks what holds for all: names and bounds. */
#include "backend/archive/archive.h"

#include <assert.h>
#include <errno.h>

#include "backend/archive/kind.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

bool archive_is_name(const char *name, bool prefix)
{
	cleanup_free char *copy = text_copy(name);
	char *part = copy, *slash;

	for (; (slash = strchr(part, '/')); part = slash + 1) {
		*slash = '\0';
		if (!spec_name_is_file(part))
			return false;
	}
	return prefix ? *part == '\0' : spec_name_is_file(part);
}

void archive_put(struct archive *a, const char *name, char *bytes, size_t n, archive_done_fn done,
		 void *data)
{
	assert(archive_is_name(name, false) && n <= ARCHIVE_MAX);
	a->ops->put(a, name, bytes, n, done, data);
}

void archive_get(struct archive *a, const char *name, uint64_t off, size_t n, archive_bytes_fn done,
		 void *data)
{
	assert(archive_is_name(name, false) && n <= ARCHIVE_MAX);
	a->ops->get(a, name, off, n, done, data);
}

void archive_list(struct archive *a, const char *prefix, const char *after, archive_list_fn done,
		  void *data)
{
	assert(archive_is_name(prefix, true));
	a->ops->list(a, prefix, after, done, data);
}

void archive_stop(struct archive *a, loop_fn fn, void *data)
{
	a->ops->stop(a, fn, data);
}

void archive_free(struct archive *a)
{
	if (a)
		a->ops->free(a);
}

int archive_new(struct loop *loop, const struct archive_address *place, const char *writer,
		struct archive **ret, char **ret_text)
{
	*ret_text = NULL;
	if (strncmp(place->where, "s3://", 5) == 0)
		return archive_s3_new(loop, place, writer, ret, ret_text);
	if (*place->where != '/') {
		*ret_text = text_print("archive %s: is no absolute path, and no s3://BUCKET",
				       place->where);
		return -EINVAL;
	}
	*ret = archive_dir_new(loop, place->where, writer);
	return 0;
}
