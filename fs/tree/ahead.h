/* SPDX-License-Identifier: MIT */
/*
 * Reading ahead: who reads a log from front to end gets what comes next from memory, since a thread of the pool has
 * read it from disk, or rendered it, while the kernel copied what was before. What has been printed never changes, so
 * what was read is right for ever. Bytes that no thread has begun to read are never waited for, but read at once.
 */
#pragma once

#include "backend/output/log.h"
#include "fs/vfs/fuse.h"

struct ahead;
struct tree;

/* For one open file. LOG becomes its own. FUSE thread, as the others. */
struct ahead *ahead_new(struct tree *t, struct log *log);
/* Nobody reads any more; a step that is under way on the pool comes to its end. NULL is allowed. */
void ahead_close(struct ahead *a);

struct log *ahead_log(const struct ahead *a);

/* Answer REQ, which wants SIZE bytes at OFF. */
void ahead_read(struct ahead *a, fuse_req_t req, size_t size, uint64_t off);
