/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what an S3 server answers, and as a file of keys. The first byte chooses. A list is in order and holds
 * names alone that may be those of files; a refusal is an errno and one line; keys fit into a header line.
 */
/* asserts are what this is for, in every kind of build */
#undef NDEBUG

#include <assert.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"
#include "spec/s3/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const char *text, size_t len, const char *prefix, const char *after)
{
	struct spec_s3_list l;

	if (spec_s3_list_parse(text, len, prefix, after, &l) == 0) {
		assert(l.n <= SPEC_MAX_S3_LISTED);
		for (size_t i = 0; i < l.n; i++) {
			const char *name = l.v[i].name;
			size_t n = strcspn(name, "/");

			assert(n > 0 && n <= 255 && (name[n] == '\0' || streq(name + n, "/")));
			assert(strncmp(name, "..", n) != 0 || n > 2);
			assert(spec_utf8_is_clean(name, ""));
			assert(i == 0 || strcmp(l.v[i - 1].name, name) < 0);
			assert(!after || strcmp(name, after) > 0);
		}
		if (l.more)
			assert(l.last && (!after || strcmp(l.last, after) > 0));
	}
	spec_s3_list_clear(&l);
}

static void check_keys(int err, struct spec_s3_keys *k)
{
	if (err == 0) {
		assert(*k->id && *k->secret);
		assert(spec_utf8_is_clean(k->id, "") && !strpbrk(k->id, ": "));
		assert(spec_utf8_is_clean(k->secret, "") && spec_utf8_is_clean(k->token, ""));
	}
	spec_s3_keys_clear(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int statuses[] = {301, 400, 401, 403, 404, 429, 500, 503, 507, 599};
	const struct spec_s3_asked asked = {"read", "/a", "logs", size % 3 ? 0 : 900};
	cleanup_free char *text = NULL, *copy = NULL, *why = NULL;
	struct spec_s3_keys k = {0};
	int64_t end;
	bool keys;
	int err;

	if (size == 0)
		return 0;
	copy = mem_copy((const char *)data + 1, size - 1);
	check_list(copy, size - 1, "", NULL);
	check_list(copy, size - 1, "a/", "b");
	err = spec_s3_refusal(statuses[data[0] % array_size(statuses)], copy, size - 1, &asked,
			      &keys, &text);
	assert(err < 0 && *text && strlen(text) < 2048 && spec_utf8_is_clean(text, ""));
	check_keys(spec_s3_token_parse(copy, size - 1, &k, &end), &k);
	err = spec_s3_keys_read(copy, "f", "default", &k, &why);
	assert(err == 0 || why);
	check_keys(err, &k);
	return 0;
}
