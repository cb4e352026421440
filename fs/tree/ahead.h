/* SPDX-License-Identifier: MIT */
/*
 * Reading ahead: somebody who reads a log from front to end gets the next bytes from memory, since a thread of the pool
 * has read them from disk, or rendered them, while the kernel copied those before. Output never changes, so bytes that
 * were read stay right. Bytes that no thread has begun to read are never waited for, but read at once.
 */
#pragma once

#include "backend/output/log.h"
#include "fs/vfs/fuse.h"

struct ahead;
struct tree;

/* Read ahead for one open file. LOG is taken over. FUSE thread, as for the other functions. */
struct ahead *ahead_new(struct tree *t, struct log *log);
/* Nobody reads the file any more; a step that is under way on the pool still ends. NULL is allowed. */
void ahead_close(struct ahead *a);

struct log *ahead_log(const struct ahead *a);

/* Answer REQ, which wants SIZE bytes at OFF. */
void ahead_read(struct ahead *a, fuse_req_t req, size_t size, uint64_t off);
