/* SPDX-License-Identifier: MIT */
/*
 * Reads a merged log. This module finds the record of an offset by bisection in the index on disk,
 * and does not load the index into memory. Then it renders that record and the following ones, with
 * bytes that it reads from the logs. Any thread.
 */
#pragma once

#include "backend/base/lock.h"
#include "backend/output/index.h"
#include "backend/output/log.h"

struct merged;

/*
 * Create a reader of the merged log of job ID. LOCK, which the caller owns, protects its members.
 */
struct merged *merged_new(struct lock *lock, int dir_fd, const char *id);
void merged_free(struct merged *m); /* NULL is allowed */
/* Return the size of the merged log in FORM. */
uint64_t merged_size(const struct index_size *size, enum log_form form);
/*
 * Read up to N bytes of the merged log in FORM, at OFF. SIZE is the size of the index on disk.
 * Return the number of bytes, or a negative errno.
 */
ssize_t merged_read(struct merged *m, const struct index_size *size, enum log_form form, char *buf,
		    size_t n, uint64_t off);
/* Open all files that M refers to, because the names of these files are about to be removed. */
void merged_hold(struct merged *m);
