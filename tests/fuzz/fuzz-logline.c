/* SPDX-License-Identifier: MIT */
/*
 * Streams of any bytes, one after the other (cut at form feeds), and any text as a saved state: what comes
 * out is counted right, a state that was saved is loaded as it was, and the first stream again adds nothing.
 */
#include <assert.h>
#include <errno.h>

#include "spec/logline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count(void *data, int64_t ns, const char *bytes, size_t n)
{
	assert(bytes && n > 0 && ns >= 0);
	*(uint64_t *)data += n;
	return 0;
}

static int stream(struct spec_logline *l, const char *bytes, size_t n, uint64_t *sum)
{
	int64_t ns;
	int err;

	if (spec_logline_begin(l, false, &ns))
		assert(ns % 1000000000 == 0);
	err = spec_logline_feed(l, bytes, n, count, sum);
	assert(err == 0 || err == -EAGAIN || err == -ESTALE);
	if (err == 0)
		err = spec_logline_end(l, count, sum);
	assert(spec_logline_size(l) == *sum);
	return err;
}

static void check_saved(const struct spec_logline *l)
{
	struct spec_logline *again;
	size_t len, len_again;
	cleanup_free char *text = spec_logline_save(l, &len), *copy = NULL;

	assert(text && spec_logline_load(text, len, &again) == 0);
	copy = spec_logline_save(again, &len_again);
	assert(copy && len == len_again && memcmp(text, copy, len) == 0);
	spec_logline_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_logline *l = spec_logline_new();
	const char *at = (const char *)data, *end = at + size;
	uint64_t sum = 0, before;

	assert(l);
	while (at < end) {
		const char *cut = memchr(at, '\f', (size_t)(end - at));
		size_t n = (size_t)((cut ? cut : end) - at);

		before = sum;
		if (stream(l, at, n, &sum) == 0 && before == 0) {
			before = sum;
			assert(stream(l, at, n, &sum) == 0 || sum == 0);
			assert(sum == before);
		}
		check_saved(l);
		at += n + (cut ? 1 : 0);
	}
	spec_logline_free(l);
	if (spec_logline_load((const char *)data, size, &l) == 0) {
		sum = spec_logline_size(l);
		check_saved(l);
		stream(l, (const char *)data, size, &sum);
		spec_logline_free(l);
	}
	return 0;
}
