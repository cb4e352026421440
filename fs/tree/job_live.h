/* SPDX-License-Identifier: MIT */
/*
 * The blocking files of a job and of a replica: wait and follow. They are in a directory .live/
 * that can be looked up but is not listed. Links lead there: those in live/ are listed, so `cat *`,
 * grep -r, cp -r and tar over a job end; those beside the other files (jobs/ID/wait) can be looked
 * up but are not listed.
 */
#pragma once

#include "fs/tree/job_ref.h"
#include "fs/vfs/stream.h"

/* A link to the blocking file of the same name in .live/ beside it. */
extern const struct node_class live_link_class;
extern const struct node_dir_class live_files_class; /* .live/ of a job or a replica */
extern const struct node_dir_class live_links_class; /* live/ */

/* True if S is a wait for the end of JOB. I/O thread. */
bool wait_is_of(const struct stream *s, const struct spec_job *job);
