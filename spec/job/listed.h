/* SPDX-License-Identifier: MIT */
/*
 * A job of which only a line of a list is known: what status.json says, behind its uid, as it stands in list.jsonl of
 * an archive. All is known that list and state show, but not its logs, nor when its replicas began and ended.
 */
#pragma once

#include "spec/job/job.h"

/*
 * The LEN bytes at TEXT, without the newline, may be anything. 0 and a packed job with one reference, which is
 * archived and brief; its id, its uid and its replicas have names of files. -EINVAL: they are no such line.
 */
int spec_listed_parse(const char *text, size_t len, struct spec_job **ret);
