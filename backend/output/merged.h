/* SPDX-License-Identifier: MIT */
/*
 * Reading a merged log: finds the record that an offset is in, by bisection in the index on disk (no index is held in
 * memory, whatever its size), then renders record after record from the logs themselves. Any thread.
 */
#pragma once

#include "backend/base/lock.h"
#include "backend/output/index.h"
#include "backend/output/log.h"

struct merged;

/* LOCK guards what is in it, and is the caller's. */
struct merged *merged_new(struct lock *lock, int dir_fd, const char *id);
void merged_free(struct merged *m); /* NULL is allowed */
/* How many bytes there are in FORM. */
uint64_t merged_size(const struct index_size *size, enum log_form form);
/* Up to N bytes at OFF, of the SIZE that is on disk. A negative errno. */
ssize_t merged_read(struct merged *m, const struct index_size *size, enum log_form form, char *buf,
		    size_t n, uint64_t off);
/* Open all that it is made of, since its names are about to go. */
void merged_hold(struct merged *m);
