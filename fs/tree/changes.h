/* SPDX-License-Identifier: MIT */
/* The file `changes`: a line for each present job, then one for each change. */
#pragma once

#include "fs/tree/tree.h"
#include "fs/vfs/stream.h"

/* the file; changes_link_class (tree.h) leads to it */
extern const struct node_class changes_class;

/* If S is an open `changes`, append the change and return true. I/O thread. */
bool changes_job_event(struct stream *s, const struct spec_job *old, const struct spec_job *job);
