/* SPDX-License-Identifier: MIT */
/*
 * The head of a record: it is the same after it was written and read, and any other bytes are
 * refused.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/record/head.h"
#include "tests/unit/unit.h"

#define KEY "00000000-0001-8444-8555-666666666666"

static struct spec_head *make_head(enum record_state state)
{
	struct spec_head *h = spec_head_new();

	spec_set(&h->key, KEY);
	spec_set(&h->file, "a\xff.yaml");
	spec_set(&h->id, "a-b1");
	spec_set(&h->uid, state == RECORD_LIVE ? "u-1" : "");
	spec_set(&h->more->why, "it \"waits\"\n");
	h->own = true;
	h->user = 4294967294u;
	h->more->readable = 044;
	h->created = 1700000000000000001;
	h->more->seed[0] = UINT64_MAX;
	h->state = state;
	h->unlinked = true;
	h->more->parts[RECORD_SNAPSHOT] = text_copy("{\"state\":\"x\"}");
	return h;
}

/* Return the text of a record in STATE, with four bytes of document and two of manifest. */
static char *text_of(enum record_state state)
{
	struct spec_head *h cleanup(spec_head_freep) = make_head(state);
	struct spec_head_line line = {.document = 4, .manifest = 2, .rest_sum = 7};
	size_t n;

	return spec_head_text(h, &line, &n);
}

static int parse(const char *text, struct spec_head **ret)
{
	struct spec_head_line line;
	int err = spec_head_line_parse(text, strlen(text), &line);

	*ret = NULL;
	if (!err && line.head > strlen(text) - SPEC_HEAD_LINE)
		err = -EINVAL;
	return err ? err : spec_head_parse(&line, text + SPEC_HEAD_LINE, ret);
}

static void test_round_trip(void **state)
{
	for (unsigned i = RECORD_HELD; i <= RECORD_NEVER; i++) {
		cleanup_free char *text = text_of(i), *again = NULL;
		struct spec_head *h cleanup(spec_head_freep) = NULL,
				    *copy cleanup(spec_head_freep) = NULL;
		struct spec_head_line line;
		size_t n;

		assert_memory_equal(text, "kxfs job 1 ", 11);
		assert_int_equal(text[SPEC_HEAD_LETTER], i >= RECORD_HISTORY ? 'h' : 'j');
		assert_int_equal(text[SPEC_HEAD_LINE - 1], '\n');
		assert_int_equal(spec_head_line_parse(text, strlen(text), &line), 0);
		assert_true(line.document == 4 && line.manifest == 2 && line.rest_sum == 7);
		assert_int_equal(parse(text, &h), 0);
		assert_int_equal(h->state, i);
		assert_string_equal(h->file, "a\xff.yaml");
		assert_string_equal(h->more->why, "it \"waits\"\n");
		assert_true(h->own && h->unlinked && !h->dropped && !h->held);
		assert_int_equal(h->user, 4294967294u);
		assert_true(h->more->seed[0] == UINT64_MAX);
		assert_null(h->more->parts[RECORD_HOLD]);
		assert_string_equal(h->more->parts[RECORD_SNAPSHOT], "{\"state\":\"x\"}");
		copy = spec_head_copy(h);
		again = spec_head_text(copy, &line, &n);
		assert_string_equal(text, again);
	}
}

/* Each changed byte is detected, except in the mark letter of a launched job. */
static void test_damage(void **state)
{
	cleanup_free char *text = text_of(RECORD_LIVE);
	/* the checksum of the rest, which is not checked here */
	const size_t rest = SPEC_HEAD_LINE - 17;
	struct spec_head *h;

	for (size_t i = 0; i < strlen(text); i++) {
		const char old = text[i];
		int err;

		if (i >= rest && i < rest + 16)
			continue;
		text[i] = i == SPEC_HEAD_LETTER ? 'h' : (char)(old ^ 1);
		err = parse(text, &h);
		if (i == SPEC_HEAD_LETTER)
			assert_true(!err && h->state == RECORD_HISTORY);
		else
			assert_true(err == -EINVAL || ((i == 9 || i == 10) && err == -ENOTSUP));
		spec_head_free(h);
		text[i] = old;
	}
	assert_int_equal(spec_head_line_parse("", 0, &(struct spec_head_line){0}), -EINVAL);
	text[rest + 15] = '\0';
	assert_int_equal(parse(text, &h), -EINVAL);
}

/* A job that was not launched is not in history/, whatever its mark letter is. */
static void test_letter(void **state)
{
	static const enum record_state states[] = {RECORD_HELD, RECORD_SUBMITTING, RECORD_NEVER};

	for (size_t i = 0; i < array_size(states); i++) {
		cleanup_free char *text = text_of(states[i]);
		struct spec_head *h;

		text[SPEC_HEAD_LETTER] = (char)(text[SPEC_HEAD_LETTER] == 'j' ? 'h' : 'j');
		assert_int_equal(parse(text, &h), -EINVAL);
	}
}

/* After the launch, memory needs no more than the members of the head. */
static void test_forget(void **state)
{
	for (unsigned i = RECORD_HELD; i <= RECORD_NEVER; i++) {
		const bool launched = i == RECORD_LIVE || i == RECORD_HISTORY;
		struct spec_head *h cleanup(spec_head_freep) = make_head(i);
		struct spec_head *copy cleanup(spec_head_freep) = NULL;

		spec_head_forget(h);
		assert_non_null(h->more);
		free(take_ptr(h->more->parts[RECORD_SNAPSHOT]));
		spec_head_forget(h);
		assert_int_equal(h->more == NULL, launched);
		copy = spec_head_copy(h);
		assert_string_equal(copy->id, "a-b1");
		assert_string_equal(copy->more->why, launched ? "" : "it \"waits\"\n");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_letter),
		cmocka_unit_test(test_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
