/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the file of a record, and as a head with a correct checksum. An accepted head is the
 * same after it was written and read again.
 */
#include "fuzz.h"

#include "spec/base/encode.h"
#include "spec/base/mem.h"
#include "spec/record/head.h"

static void read_again(const struct spec_head *h, const struct spec_head_line *line)
{
	struct spec_head_line first = *line, second, third;
	struct spec_head *copy cleanup(spec_head_freep) = spec_head_copy(h);
	struct spec_head *again cleanup(spec_head_freep) = NULL;
	size_t n, n_again;
	cleanup_free char *text = spec_head_text(copy, &first, &n), *same = NULL;

	assert(n == SPEC_HEAD_LINE + first.head && text[n - 1] == '\n');
	assert(spec_head_line_parse(text, n, &second) == 0);
	assert(second.history == line->history && second.head == first.head &&
	       second.document == line->document && second.manifest == line->manifest &&
	       second.sum == first.sum && second.rest_sum == line->rest_sum);
	assert(spec_head_parse(&second, text + SPEC_HEAD_LINE, &again) == 0);
	assert(again->state == h->state);
	third = second;
	same = spec_head_text(again, &third, &n_again);
	assert(n == n_again && memcmp(text, same, n) == 0);
}

static void read_file(const char *text, size_t size)
{
	struct spec_head *h cleanup(spec_head_freep) = NULL;
	struct spec_head_line line;

	if (spec_head_line_parse(text, size, &line) < 0 || line.head > size - SPEC_HEAD_LINE)
		return;
	if (spec_head_parse(&line, text + SPEC_HEAD_LINE, &h) == 0)
		read_again(h, &line);
}

/* Read TEXT as a head with a correct checksum, which a fuzzer would not find. */
static void read_head(const char *text, size_t size)
{
	char lengths[64];
	struct spec_head *h cleanup(spec_head_freep) = NULL;
	struct spec_head_line line = {.head = size, .history = size % 2};

	if (size > SPEC_MAX_HEAD)
		return;
	snprintf(lengths, sizeof(lengths), "%08u %08u %08u ", (unsigned)size, 0u, 0u);
	line.sum = spec_fnv1a(spec_fnv1a(SPEC_FNV1A_INIT, lengths, strlen(lengths)), text, size);
	if (spec_head_parse(&line, text, &h) == 0)
		read_again(h, &line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_file((const char *)data, size);
	read_head((const char *)data, size);
	return 0;
}
