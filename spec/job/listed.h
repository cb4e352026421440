/* SPDX-License-Identifier: MIT */
/*
 * A job of which only a line of a list is known: its uid, and what status.json says, as in list.jsonl of an archive.
 * That has everything that list and state show, but neither its logs nor when its replicas began and ended.
 */
#pragma once

#include "spec/job/job.h"

/*
 * Parse the LEN bytes at TEXT, without the newline, which may be anything. 0 and a packed job with one reference, which
 * is archived and brief; its id, its uid and its replicas can be names of files. -EINVAL: TEXT is no such line.
 */
int spec_listed_parse(const char *text, size_t len, struct spec_job **ret);
