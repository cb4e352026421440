/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the list of a day that stands in an archive, and as the job.json of a job there: what becomes of them
 * has names of files and can be shown.
 */
/* asserts are what this is for, in every kind of build */
#undef NDEBUG

#include <assert.h>

#include "backend/reader/day.h"
#include "spec/base/name.h"
#include "spec/base/utf8.h"
#include "spec/job/snapshot.h"
#include "spec/job/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct spec_job *job)
{
	char *text;
	size_t len;

	assert(spec_name_is_file(job->id));
	for (size_t i = 0; i < job->n_replicas; i++)
		assert(spec_name_is_file(job->replicas[i].name));
	spec_status_json_line(job, &text, &len);
	assert(text[len - 1] == '\n' && memchr(text, '\n', len) == text + len - 1);
	text[len - 1] = '\0';
	assert(spec_utf8_is_clean(text, ""));
	free(text);
	spec_status_yaml(job, &text, &len);
	free(text);
	spec_status_why(job, &text, &len);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct day_list list = {0};
	struct spec_job *job;

	day_add(&list, (const char *)data, size);
	day_settle(&list);
	for (size_t i = 0; i < list.n; i++)
		check(list.jobs[i]);
	day_clear(&list);
	if (spec_snapshot_parse((const char *)data, size, &job) == 0) {
		check(job);
		spec_job_unref(job);
	}
	return 0;
}
