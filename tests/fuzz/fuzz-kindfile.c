/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a kind file, an object and a list of pods, separated by form feeds. Either the file
 * has mistakes with error texts, or it is a kind that gives the object a status, whatever the
 * object and the pods contain.
 */
#include "fuzz.h"

#include "spec/base/mem.h"
#include "spec/kindfile/kindfile.h"

/* Cut off and return the next part of *TEXT. */
static char *part(const char **text, const char *end)
{
	const char *cut = memchr(*text, '\f', (size_t)(end - *text));
	char *ret = mem_copy(*text, (size_t)((cut ? cut : end) - *text));

	*text = cut ? cut + 1 : end;
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	const char *cut = size ? memchr(at, '\f', size) : NULL;
	size_t len = cut ? (size_t)(cut - at) : size;
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_kind *kind;
	cleanup_free char *file = size ? part(&at, end) : text_copy("");
	cleanup_free char *object = size ? part(&at, end) : text_copy("");
	cleanup_free char *pods = size ? part(&at, end) : text_copy("");
	cleanup_free char *status = NULL;
	int err = spec_kind_file_read(file, len, NULL, &kind, &e);

	assert(err == e.err && (err == 0) == (kind != NULL) && (err == 0) == (e.n == 0));
	if (kind) {
		assert(*kind->name);
		assert(strchr(kind->api_version, '/') && *kind->kind && *kind->plural);
		if (spec_kind_show(kind, object, pods, 1, &status) == 0)
			assert(*status);
	}
	spec_kind_file_free(kind);
	spec_errors_clear(&e);
	return 0;
}
