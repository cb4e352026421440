/* SPDX-License-Identifier: MIT */
/*
 * Streams of any bytes, one after the other (cut at form feeds), and any bytes as a saved state: what comes
 * out is counted right, a state that was saved is loaded as it was, and the first stream again adds nothing.
 */
#include <assert.h>
#include <errno.h>

#include "spec/logline_impl.h"

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

/* KEPT, of a log of SIZE bytes. */
static struct spec_logline *load(const char *kept, uint64_t size)
{
	struct spec_logline *l =
		spec_logline_load(kept, SPEC_LOGLINE_SLOTS * SPEC_LOGLINE_SLOT, size);

	assert(l && spec_logline_size(l) <= size);
	return l;
}

static void check_saved(struct spec_logline *l)
{
	static char kept[SPEC_LOGLINE_SLOTS][SPEC_LOGLINE_SLOT];
	char slot[SPEC_LOGLINE_SLOT], again_slot[SPEC_LOGLINE_SLOT];
	unsigned at = spec_logline_save(l, slot);
	struct spec_logline *again;

	memset(kept, 0, sizeof(kept));
	memcpy(kept[at], slot, sizeof(slot));
	again = load(kept[0], spec_logline_size(l));
	assert(spec_logline_size(again) == spec_logline_size(l));
	assert(spec_logline_save(again, again_slot) == at);
	assert(memcmp(slot, again_slot, sizeof(slot)) == 0);
	spec_logline_free(again);
	spec_logline_free(load(kept[0], spec_logline_size(l) / 2));
}

/* A state of DATA, which is not damaged as far as its sum tells, and a stream of the same bytes. */
static void load_any(const char *data, size_t size)
{
	static char kept[SPEC_LOGLINE_SLOTS][SPEC_LOGLINE_SLOT];
	struct spec_logline *l = spec_logline_new();
	uint64_t sum;

	assert(l);
	memset(kept, 0, sizeof(kept));
	spec_logline_save(l, kept[0]);
	spec_logline_free(l);
	memcpy(kept[0] + 16, data, min_of(size, (size_t)SPEC_LOGLINE_SLOT - 16));
	logline_sign(kept[0]);
	l = load(kept[0], size);
	sum = spec_logline_size(l);
	spec_logline_known(l, data + sum, size - sum);
	sum = size;
	check_saved(l);
	stream(l, data, size, &sum);
	spec_logline_free(l);
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
	load_any((const char *)data, size);
	return 0;
}
