/* SPDX-License-Identifier: MIT */
/*
 * The blocking files of a job and of a replica: wait and follow. They lie in a directory .live/ that is found by its
 * name but not listed, and links lead there: so grep -r, cp -r and tar over a job end.
 */
#ifndef KXFS_FS_TREE_JOB_LIVE_H
#define KXFS_FS_TREE_JOB_LIVE_H

#include "fs/tree/place.h"
#include "fs/vfs/stream.h"

/* A name that is a link to the blocking file of the same name in .live/. */
extern const struct node_class live_link_class;
extern const struct node_dir_class job_live_class;     /* ID/.live */
extern const struct node_dir_class replica_live_class; /* ID/ROLE-K/.live */

/* Is S one of these, and does it wait for something of the job UID, or read LOG? I/O thread. */
bool job_live_is_of(const struct stream *s, const char *uid);
bool job_live_reads(const struct stream *s, const struct log *log);

#endif
