/* SPDX-License-Identifier: MIT */
/*
 * Records from any bytes: one that is accepted is the same after it was written and read again,
 * and all texts can be made of it.
 */
#include <assert.h>
#include <limits.h>

#include "spec/record/record.h"
#include "spec/job/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	spec_record_yaml(r, &text, &len);
	assert(strlen(text) == len);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = NULL, *again = NULL;
	struct spec_record *r = NULL, *copy = NULL;

	if (spec_record_parse((const char *)data, size, &r) < 0)
		return 0;
	text = spec_record_text(r);
	assert(text && spec_record_parse(text, strlen(text), &copy) == 0);
	again = spec_record_text(copy);
	assert(streq(text, again));
	render(r);
	spec_record_free(copy);
	spec_record_free(r);
	return 0;
}
