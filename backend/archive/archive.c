/* SPDX-License-Identifier: MIT */
/* Which implementation a place has. */
#include "backend/archive/archive.h"

#include <assert.h>
#include <errno.h>

#include "backend/archive/directory.h"
#include "backend/archive/s3.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/s3/place.h"

#define S3 "s3://"

struct archive {
	const struct archive_ops *ops;
	void *impl;
};

/* Can NAME be that of an object, or (PREFIX) of what is above some? */
static bool is_name(const char *name, bool prefix)
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

int archive_check(const char *place, char **ret_text)
{
	struct spec_s3_place s3 cleanup(spec_s3_place_clear) = {0};

	if (strncmp(place, S3, strlen(S3)) == 0)
		return spec_s3_place_parse(place, "", "any", &s3, ret_text);
	if (*place == '/')
		return 0;
	*ret_text = text_print("archive=%s: use a directory, or " S3 "BUCKET[/PREFIX]", place);
	return -EINVAL;
}

int archive_new(struct loop *loop, const struct archive_config *config, struct archive **ret,
		char **ret_text)
{
	int err = archive_check(config->place, ret_text);
	cleanup_free struct archive *a = new0(struct archive);

	if (err)
		return err;
	if (*config->place == '/') {
		a->ops = &archive_directory_ops;
		a->impl = archive_directory_new(loop, config->place, config->writer);
	} else {
		a->ops = &archive_s3_ops;
		err = archive_s3_new(loop, config, &a->impl, ret_text);
	}
	if (!err)
		*ret = take_ptr(a);
	return err;
}

void archive_free(struct archive *a)
{
	if (!a)
		return;
	a->ops->free(a->impl);
	free(a);
}

void archive_put(struct archive *a, const char *name, const char *bytes, size_t n,
		 archive_done_fn done, void *data)
{
	assert(is_name(name, false) && n <= ARCHIVE_MAX);
	return a->ops->put(a->impl, name, bytes, n, done, data);
}

void archive_get(struct archive *a, const char *name, uint64_t off, size_t n, archive_bytes_fn done,
		 void *data)
{
	assert(is_name(name, false) && n <= ARCHIVE_MAX);
	return a->ops->get(a->impl, name, off, n, done, data);
}

void archive_list(struct archive *a, const char *prefix, const char *after, archive_list_fn done,
		  void *data)
{
	assert(is_name(prefix, true));
	return a->ops->list(a->impl, prefix, after, done, data);
}

void archive_stop(struct archive *a, loop_fn fn, void *data)
{
	return a->ops->stop(a->impl, fn, data);
}
