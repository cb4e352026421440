/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the index of a merged log. The first two bytes are the length of the table of keys,
 * and the index follows that table. Each part of an index that passes the checks can be rendered
 * within its bounds. Each record is tried as it is, and with a corrected checksum, because a fuzzer
 * would hardly find a correct one.
 */
#include "fuzz.h"

#include "backend/output/merge.h"

#define ROOM 256

/* A stamp_fn. */
static void stamp(void *data, uint64_t offset, char ret[STAMP])
{
	memset(ret, 't', STAMP);
}

static void render(const struct merge_keys *keys, const struct merge_record *r, uint64_t base)
{
	static char log[MERGE_LENGTH_MAX];
	char out[ROOM + 1];
	uint64_t whole = r->end - base;
	const uint64_t skips[] = {0, whole / 2, whole > 9 ? whole - 9 : 0, whole};
	const size_t have[] = {r->length, r->length / 2, 0};

	for (size_t i = 0; !log[sizeof(log) - 1] && i < sizeof(log); i++)
		log[i] = "a\r\nb\n\r"[i % 6];
	for (size_t i = 0; i < array_size(skips) * array_size(have); i++) {
		uint64_t skip = skips[i % array_size(skips)];
		size_t n;

		out[ROOM] = '#';
		n = merge_render(r, whole,
				 &(struct merge_style){keys->v[r->log]->prefix, NULL, NULL}, log,
				 have[i / array_size(skips)], skip, out, ROOM);
		assert(n <= min_of(whole - skip, (uint64_t)ROOM));
		/* The stamped form of the same lines is longer, so each skip is within it. */
		n = merge_render(r, whole + STAMP * (uint64_t)r->length,
				 &(struct merge_style){keys->v[r->log]->prefix, stamp, NULL}, log,
				 have[i / array_size(skips)], skip, out, ROOM);
		assert(n <= ROOM);
		assert(out[ROOM] == '#');
	}
}

static void records(struct merge_keys *keys, const uint8_t *bytes, size_t size, bool mend)
{
	struct merge_record last = merge_start, r = {0};

	for (uint64_t i = 0; (i + 1) * MERGE_RECORD <= size; i++) {
		uint8_t slot[MERGE_RECORD];

		memcpy(slot, bytes + i * MERGE_RECORD, MERGE_RECORD);
		if (mend) {
			memcpy(&r.end, slot, 8);
			memcpy(&r.offset, slot + 8, 8);
			memcpy(&r.stamps, slot + 16, 8);
			memcpy(&r.length, slot + 24, 4);
			memcpy(&r.log, slot + 28, 4);
			memcpy(&r.flags, slot + 32, 4);
			merge_encode(&r, i, slot);
		}
		if (merge_decode(slot, i, &r) < 0 || merge_follow(keys, &last, &r) < 0)
			return;
		render(keys, &r, last.end);
		last = r;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(merge_keys_clear) struct merge_keys keys = {0};
	size_t len, good;

	if (size < 2 || size > 65536)
		return 0;
	len = min_of((size_t)data[0] << 8 | data[1], size - 2);
	data += 2;
	size -= 2;
	good = merge_keys_parse(&keys, (const char *)data, len);
	assert(good <= len && (good == 0 || data[good - 1] == '\n'));
	data += len;
	size -= len;
	if (size < MERGE_HEAD || memcmp(data, merge_head, MERGE_HEAD) != 0)
		return 0;
	for (unsigned mend = 0; mend < 2; mend++) {
		for (size_t i = 0; i < keys.n; i++)
			keys.v[i]->indexed = 0;
		records(&keys, data + MERGE_HEAD, size - MERGE_HEAD, mend);
	}
	return 0;
}
