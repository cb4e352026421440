/* SPDX-License-Identifier: MIT */
/*
 * Random bytes of the operating system. Any thread.
 */
#ifndef KXFS_BACKEND_BASE_RANDOM_H
#define KXFS_BACKEND_BASE_RANDOM_H

#include "spec/base/base.h"

/* 0 or -EIO. */
int must_check random_bytes(void *p, size_t n);
int must_check random_uuid(char ret[37]);
/* For the name of a job: a number whose suffix (spec_name_suffix) can be told from what people choose. 0 or -EIO. */
int must_check random_name(uint64_t *ret);
/* MS, up to a quarter more or less: so that what waits is not done all at once. */
unsigned random_about(unsigned ms);

#endif
