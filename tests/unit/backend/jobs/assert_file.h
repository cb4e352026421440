/* SPDX-License-Identifier: MIT */
/* What NAME.job of a file shows. For tests of the records, and of the code that writes them. */
#pragma once

#include <errno.h>

#include "backend/jobs/job_files.h"
#include "tests/unit/unit.h"

/* Assert that FILE has the job ID in PLACE, or no job if ID is NULL. */
static inline void assert_file(struct job_files *files, const char *file, const char *id,
			       enum backend_place place)
{
	struct backend_file found;
	const int err = job_files_find(files, file, &found);

	assert_int_equal(err, id ? 0 : -ENOENT);
	if (!id)
		return;
	assert_string_equal(found.id, id);
	assert_int_equal(found.place, place);
	free(found.id);
}
