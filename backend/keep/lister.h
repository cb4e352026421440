/* SPDX-License-Identifier: MIT */
/* A lister puts lines of jobs into DAY/list.jsonl, in the place of older lines of the same jobs. I/O thread. */
#pragma once

#include "backend/archive/archive.h"
#include "backend/base/group.h"
#include "backend/keep/text.h"

struct lister;

/*
 * Start a lister. The N LINES, of jobs that were created on DAY, are given away with their texts. DONE is called once,
 * not from here, with 0, or with an error of the archive and its TEXT; then some of the lines may be there. Work of the
 * pool is under way in GROUP.
 */
struct lister *lister_start(struct loop *loop, struct group *group, struct archive *archive,
			    const char *namespace, const char *day, struct keep_line *lines,
			    size_t n, archive_done_fn done, void *data);
/* End a lister whose archive was stopped: DONE is not called any more. */
void lister_cancel(struct lister *l);
