/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a record: its snapshot is the first line, its plan the second. An accepted record is
 * the same after it was written and read again, and all texts can be rendered from it.
 */
#include "fuzz.h"

#include <limits.h>

#include "spec/base/mem.h"
#include "spec/job/status.h"
#include "spec/record/record.h"

static void render(const struct spec_record *r)
{
	void (*const texts[])(const struct spec_job *, char **, size_t *) = {spec_status_yaml,
									     spec_status_json};
	cleanup_job struct spec_job *job = spec_record_job(r);
	char *text;
	size_t len;

	assert(job && job->n_replicas == r->job->n_replicas);
	for (size_t i = 0; i < array_size(texts); i++) {
		texts[i](job, &text, &len);
		assert(strlen(text) == len);
		free(text);
	}
	spec_status_why(job, UINT_MAX, &text, &len);
	assert(strlen(text) == len);
	free(text);
	spec_status_ctl(job, UINT_MAX, &text, &len);
	assert(strlen(text) == len);
	free(text);
	for (size_t i = 0; i < min_of(job->n_replicas, (size_t)3); i++) {
		spec_status_replica(job, &job->replicas[i], &text, &len);
		free(text);
	}
	text = spec_status_change(job, false, r->job->changed);
	assert(text && strchr(text, '\n') == text + strlen(text) - 1);
	free(text);
	spec_record_yaml(r, "file", &text, &len);
	assert(strlen(text) == len);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *snapshot = mem_copy((const char *)data, size), *plan = NULL;
	cleanup_free char *snapshot_again = NULL, *plan_again = NULL;
	struct spec_record *r = NULL, *copy = NULL;
	char *end = strchr(snapshot, '\n');

	if (end)
		*end++ = '\0';
	if (spec_record_parse(snapshot, end, &r) < 0)
		return 0;
	free(take_ptr(snapshot));
	snapshot = spec_record_snapshot(r);
	plan = spec_record_plan(r);
	assert(spec_record_parse(snapshot, plan, &copy) == 0);
	snapshot_again = spec_record_snapshot(copy);
	plan_again = spec_record_plan(copy);
	assert(streq(snapshot, snapshot_again) && streq(plan, plan_again));
	render(r);
	spec_record_free(copy);
	spec_record_free(r);
	return 0;
}
