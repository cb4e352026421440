/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a document that may be held, and as the conditions of a held job. A held job can be
 * evaluated and shown. Accepted conditions are the same after they were written and read again.
 */
#include "fuzz.h"

#include "spec/base/mem.h"
#include "spec/job/status.h"
#include "spec/record/held.h"

#define NOW INT64_C(1700000000000000000)

static int64_t local(int64_t utc)
{
	return utc - INT64_C(3600000000000);
}

static bool find(void *data, const char *name, struct spec_held_after *ret)
{
	(void)data;
	spec_set(&ret->id, name);
	spec_set(&ret->uid, "uid");
	return !streq(name, "nobody");
}

static void render(struct spec_held *h, const char *document, size_t len)
{
	struct spec_head *head cleanup(spec_head_freep) = spec_head_new();
	const struct spec_held_progress news = {.refusal = "no", .now = NOW};
	struct spec_job *shape cleanup_job = spec_held_shape(document, len, "/home");
	cleanup_free char *said = NULL;

	for (size_t i = 0; i < h->n_after; i++)
		spec_held_settle(&h->after[i], NULL, shape);
	spec_held_judge(h, NOW, &said);
	for (head->state = RECORD_HELD; head->state <= RECORD_NEVER; head->state++) {
		struct spec_job *job cleanup_job = spec_held_job(head, h, shape, &news);
		char *text;
		size_t n;

		spec_status_yaml(job, &text, &n);
		assert(strlen(text) == n);
		free(text);
		spec_status_why(job, ~0u, &text, &n);
		assert(strlen(text) == n);
		free(text);
	}
}

static void read_part(const char *data, size_t size)
{
	cleanup_free char *part = mem_copy(data, size), *first = NULL, *second = NULL;
	struct spec_held *h, *again;

	if (spec_held_parse(part, &h) < 0)
		return;
	first = spec_held_part(h);
	assert(spec_held_parse(first, &again) == 0);
	second = spec_held_part(again);
	assert(streq(first, second));
	render(again, "", 0);
	spec_held_free(again);
	spec_held_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct spec_held_place place = {.now = NOW, .local = local, .find = find};
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_held *h;
	int err = spec_held_read((const char *)data, size, &place, &h, &e);

	assert(err == e.err && !(err && h));
	if (h)
		render(h, (const char *)data, size);
	spec_held_free(h);
	spec_errors_clear(&e);
	read_part((const char *)data, size);
	return 0;
}
