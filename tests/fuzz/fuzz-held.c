/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a document that may be held, and as the file of a held job. What is held can be judged and shown; a file
 * that is accepted is the same after it was written and read again.
 */
/* asserts are what this is for, in every kind of build */
#undef NDEBUG
#include <assert.h>

#include "spec/base/mem.h"
#include "spec/base/sha256.h"
#include "spec/job/status.h"
#include "spec/record/held.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	const struct spec_held_news news = {.refusal = "no", .now = NOW};
	struct spec_job *shape cleanup_job = spec_held_shape(document, len, "/home");
	struct spec_job *job cleanup_job = NULL;
	char *text;
	size_t n;

	for (size_t i = 0; i < h->n_after; i++)
		spec_held_settle(&h->after[i], NULL, shape);
	spec_held_judge(h, NOW);
	job = spec_held_job(h, shape, &news);
	spec_status_yaml(job, &text, &n);
	assert(strlen(text) == n);
	free(text);
	spec_status_why(job, ~0u, &text, &n);
	assert(strlen(text) == n);
	free(text);
}

static void read_file(const char *data, size_t size)
{
	struct spec_held *h, *again;
	const char *document;
	size_t rest;

	if (spec_held_parse(data, size, &h, &document) < 0)
		return;
	rest = size - (size_t)(document - data);
	assert(document >= data && (uint64_t)h->len <= rest);
	{
		cleanup_free char *head = spec_held_head(h), *second = NULL;
		size_t len = strlen(head);
		cleanup_free char *text = new0_n(char, len + rest + 1);

		memcpy(text, head, len);
		memcpy(text + len, document, rest);
		assert(spec_held_parse(text, len + rest, &again, &document) == 0);
		second = spec_held_head(again);
		assert(streq(head, second));
		render(again, document, (size_t)again->len);
	}
	spec_held_free(again);
	spec_held_free(h);
}

/* Read the file with its head's checksum corrected, which a search would not guess. */
static void read_corrected(const char *data, size_t size)
{
	static const char member[] = ",\"sum\":\"";
	const char *end = memchr(data, '\n', size);
	const char *sum = end ? memmem(data, (size_t)(end - data), member, strlen(member)) : NULL;
	size_t head, len;
	FILE *out;

	if (!sum)
		return;
	head = (size_t)(sum - data);
	{
		cleanup_free char *text = NULL;
		char digest[65];

		spec_sha256(data, head, digest);
		out = text_stream(&text, &len);
		fwrite(data, 1, head, out);
		fprintf(out, "%s%s\"}", member, digest);
		fwrite(end, 1, size - (size_t)(end - data), out);
		text_stream_close(out);
		read_file(text, len);
	}
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
	read_file((const char *)data, size);
	read_corrected((const char *)data, size);
	return 0;
}
