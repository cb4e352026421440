/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an event of a watch: what spec/ reads must be what json-c reads. Also as an object
 * of a cluster, which is parsed or refused, and as the body of a reply, which always leads to an
 * errno and a text of readable size. The first byte chooses the HTTP status.
 */
#include "fuzz.h"

#include "spec/api/object.h"
#include "spec/api/refusal.h"

static void check_event(const char *text, size_t len)
{
	struct json_object *whole, *object, *copy;
	struct spec_event e;

	if (spec_event_parse(text, len, &e) < 0)
		return;
	assert(strlen(e.object) == e.len && e.resource_version);
	whole = fuzz_json_parse(text, len);
	/* A key with escapes can be spelled in several ways. */
	if (whole && !memchr(text, '\\', len)) {
		object = json_object_object_get(whole, "object");
		copy = fuzz_json_parse(e.object, e.len);
		assert(fuzz_json_same(object, copy));
		json_object_put(copy);
	}
	json_object_put(whole);
	spec_event_clear(&e);
}

static void check_object(const char *text, size_t len)
{
	const struct spec_object_wanted wanted = {.kind = "Job", .submission = "u"};
	struct spec_listed_run run;
	char *name = spec_object_name(text, len, "name"), *out;
	size_t n;

	assert(strlen(name) <= 256);
	free(name);
	spec_object_is(text, len, &wanted);
	spec_object_is_success(text, len);
	spec_object_is_submission(text, len, "u");
	if (spec_object_listed_run(text, len, "main", &run) == 0)
		free(run.uid);
	if (spec_object_yaml(text, len, &out, &n) == 0) {
		assert(strlen(out) == n);
		free(out);
	}
	if (spec_object_appdef(text, len, &out, &n) == 0) {
		assert(strlen(out) == n && n > 0);
		free(out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int statuses[] = {200, 302, 400, 401, 403, 404, 405, 408, 409,
				       410, 413, 422, 429, 500, 502, 503, 504, 599};
	const struct spec_asked asked = {"create", "jobs.batch.volcano.sh", "ns", "n", size};
	char *text;

	if (size == 0)
		return 0;
	check_event((const char *)data + 1, size - 1);
	check_object((const char *)data + 1, size - 1);
	assert(spec_reply_errno(statuses[data[0] % array_size(statuses)], (const char *)data + 1,
				size - 1, &asked, &text) < 0);
	assert(text && *text && strlen(text) < 16384 && !strchr(text, '\t'));
	free(text);
	return 0;
}
