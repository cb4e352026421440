/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the record of what an archive has of a job: what is read is the same after it was written and read
 * again. And as the list of a day that stands in an archive: the lines of others stay, ours are there once.
 */
/* asserts are what this is for, in every kind of build */
#undef NDEBUG

#include <assert.h>

#include "backend/keep/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const char *text)
{
	struct keep_record *r = keep_record_parse(text);
	char *first = keep_record_text(r), *second;

	for (size_t i = 0; i < r->n_logs; i++)
		assert(*r->logs[i].key && !strchr(r->logs[i].key, '/') && *r->logs[i].name != '.');
	keep_record_free(r);
	r = keep_record_parse(first);
	second = keep_record_text(r);
	assert(streq(first, second));
	keep_record_free(r);
	free(first);
	free(second);
}

/* How often LINE stands in TEXT as a line. */
static unsigned occurs(const char *text, size_t len, const struct keep_line *line)
{
	const char *end = text + len;
	unsigned n = 0;

	while (text < end) {
		const char *next = memchr(text, '\n', (size_t)(end - text));

		next = next ? next + 1 : end;
		n += (size_t)(next - text) >= line->head &&
		     memcmp(text, line->text, line->head) == 0;
		text = next;
	}
	return n;
}

static void check_list(const char *text, size_t len)
{
	struct keep_line lines[2];
	char *once, *twice;
	size_t n, m;

	keep_line_init(&lines[0], "a", "{\"v\":1}\n");
	keep_line_init(&lines[1], "b", "{}\n");
	keep_list_merge(text, len, lines, 2, true, SIZE_MAX / 2, &once, &n);
	for (size_t i = 0; i < 2; i++) {
		assert(lines[i].placed && occurs(once, n, &lines[i]) == 1);
		lines[i].placed = false;
	}
	assert(!keep_list_merge(once, n, lines, 2, true, SIZE_MAX / 2, &twice, &m));
	assert(n == m && memcmp(once, twice, n) == 0);
	for (size_t i = 0; i < 2; i++)
		free(lines[i].text);
	free(once);
	free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_copy(data, size);

	check_record(text);
	check_list(text, size);
	free(text);
	return 0;
}
