/* SPDX-License-Identifier: MIT */
/*
 * Read-ahead: a process that reads a log sequentially gets the next bytes from memory, since a
 * thread of the pool has read them from disk, or rendered them, while the kernel copied the earlier
 * ones. Output never changes, so bytes that were read remain valid. If no thread has begun to read
 * the requested bytes, they are read directly instead of waiting.
 */
#pragma once

#include "backend/output/log.h"
#include "fs/vfs/fuse.h"

struct ahead;
struct tree;

/* Read ahead for one open file. LOG is taken over. FUSE thread, as for the other functions. */
struct ahead *ahead_new(struct tree *t, struct log *log);
/* Close A; a step in progress on the pool still ends. NULL is allowed. */
void ahead_close(struct ahead *a);

struct log *ahead_log(const struct ahead *a);

/* Answer REQ, which requests SIZE bytes at OFF. */
void ahead_read(struct ahead *a, fuse_req_t req, size_t size, uint64_t off);
