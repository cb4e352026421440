/* SPDX-License-Identifier: MIT */
/*
 * The texts of `list` and `list.jsonl`: all jobs of a place at one moment, the last changed first. A struct spec_list
 * remembers the line of each snapshot, so that the next text costs only the snapshots that are new. It is used by
 * one thread at a time; the texts that it gives belong to all who hold them.
 */
#pragma once

#include "spec/job/job.h"

enum spec_list_form { SPEC_LIST_TABLE, SPEC_LIST_JSON };
#define SPEC_LIST_N_FORMS 2

struct spec_list;

struct spec_list *spec_list_new(enum spec_list_form form);
void spec_list_free(struct spec_list *list); /* NULL is allowed */

/*
 * The text of the N snapshots JOBS at NOW, while they have not been confirmed since STALE_SINCE (0: they are
 * confirmed); both in ns. A new reference. Until *RET_UNTIL the text stays the same, if no job changes.
 *
 * In a table each job has one line, and each field is one word of printable ASCII, "-" where there is nothing: any
 * other character that a cluster or a user may have written into a field is shown as "?", and the rest of a long field
 * as "...".
 */
struct spec_text *spec_list_text(struct spec_list *list, const struct spec_job *const *jobs,
				 size_t n, int64_t stale_since, int64_t now, int64_t *ret_until);
