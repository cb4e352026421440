/* SPDX-License-Identifier: MIT */
/* Lines of jobs go into DAY/list.jsonl, where they take the place of older ones of the same jobs. I/O thread. */
#pragma once

#include "backend/archive/archive.h"
#include "backend/base/group.h"
#include "backend/keep/text.h"

struct lister;

/*
 * The N LINES, of jobs that were created on DAY, are given away with their texts. DONE is called once, not at once: 0,
 * or an error of the archive with its TEXT; then some of the lines may be there. Work of the pool is under way in
 * GROUP.
 */
struct lister *lister_start(struct loop *loop, struct group *group, struct archive *archive,
			    const char *namespace, const char *day, struct keep_line *lines,
			    size_t n, archive_done_fn done, void *data);
/* The archive has been stopped: DONE is not called any more. */
void lister_cancel(struct lister *l);
