/* SPDX-License-Identifier: MIT */
/*
 * The file `follow` of a replica and of a job: the output from its start, and all later output,
 * until no more can follow. It is a stream (fs/vfs/stream.h) that reads its log on the pool.
 */
#pragma once

#include "fs/tree/job_ref.h"
#include "fs/vfs/stream.h"

extern const struct node_class follow_class;

/*
 * follow_is_of: true if S is a follow that waits for a change of JOB. follow_reads: true if it
 * reads LOG. I/O thread.
 */
bool follow_is_of(const struct stream *s, const struct spec_job *job);
bool follow_reads(const struct stream *s, const struct log *log);
