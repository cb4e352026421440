/* SPDX-License-Identifier: MIT */
/* Reads a merged log. Finds records by bisection in the index on disk. Any thread. */
#pragma once

#include "backend/base/lock.h"
#include "backend/output/index.h"
#include "backend/output/log.h"

struct merged;

/* LOCK is borrowed, and protects the members of the result. */
struct merged *merged_new(struct lock *lock, int dir_fd, const char *id);
void merged_free(struct merged *m); /* NULL is allowed */
uint64_t merged_size(const struct index_size *size, enum log_form form);
/* Read up to N bytes at OFF. Return the number of bytes, or a negative errno. */
ssize_t merged_read(struct merged *m, const struct index_size *size, enum log_form form, char *buf,
		    size_t n, uint64_t off);
/* Open all files that M refers to, because their names are about to be removed. */
void merged_hold(struct merged *m);
