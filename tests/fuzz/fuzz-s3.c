/* SPDX-License-Identifier: MIT */
/* Any bytes as an answer of a server of S3 or of its token service, and as a file of keys. */
/* asserts are what this is for, in every kind of build */
#undef NDEBUG

#include <assert.h>

#include "spec/api/s3.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is sent in a line of a head can't make another. */
static void check_keys(struct spec_s3_keys *keys, bool there)
{
	assert(there == (keys->id && keys->secret && keys->session));
	if (there) {
		assert(*keys->id && *keys->secret);
		assert(!strpbrk(keys->id, "\r\n ") && !strpbrk(keys->secret, "\r\n ") &&
		       !strpbrk(keys->session, "\r\n "));
	}
	spec_s3_keys_clear(keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_copy(data, size);
	struct spec_s3_list list;
	struct spec_s3_error e;
	struct spec_s3_keys keys;
	bool there;

	if (spec_s3_list_parse(text, size, &list))
		for (size_t i = 1; i < list.n; i++)
			assert(strcmp(list.objects[i - 1].name, list.objects[i].name) <= 0);
	spec_s3_list_clear(&list);
	spec_s3_error_parse(text, size, &e);
	assert(spec_utf8_is_clean(e.code, "") && spec_utf8_is_clean(e.message, "") &&
	       spec_utf8_is_clean(e.region, ""));
	spec_s3_error_clear(&e);
	there = spec_s3_keys_reply(text, size, &keys);
	check_keys(&keys, there);
	there = spec_s3_keys_file(text, size, "default", &keys) == 0;
	check_keys(&keys, there);
	free(text);
	return 0;
}
