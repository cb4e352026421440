/* SPDX-License-Identifier: MIT */
/*
 * Makes the texts of `list` and `list.jsonl`. The job that changed last comes first. Only one
 * thread at a time may use a list.
 */
#pragma once

#include "spec/job/job.h"

enum spec_list_form { SPEC_LIST_TABLE, SPEC_LIST_JSON };
#define SPEC_LIST_N_FORMS 2

struct spec_list;

struct spec_list *spec_list_new(enum spec_list_form form);
void spec_list_free(struct spec_list *list);

/*
 * Return the text for the N snapshots JOBS at the time NOW, with a new reference. STALE_SINCE is
 * the time since which kxfs can't reach the cluster; it is 0 if kxfs can reach it. Times are in ns.
 * If no job changes, the text remains valid until *RET_UNTIL.
 *
 * In the table, a field is one word of printable ASCII; "-" if it is empty. Other characters become
 * "?". A field that is too long is cut, and ends in "...".
 */
struct spec_text *spec_list_text(struct spec_list *list, const struct spec_job *const *jobs,
				 size_t n, int64_t stale_since, int64_t now, int64_t *ret_until);
