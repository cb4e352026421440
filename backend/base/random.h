/* SPDX-License-Identifier: MIT */
/*
 * Random bytes of the operating system. Any thread.
 */
#pragma once

#include "spec/base/base.h"

/* Return 0 or -EIO. */
int must_check random_bytes(void *p, size_t n);
int must_check random_uuid(char ret[37]);
/*
 * Return a random number for a job's name, whose suffix (spec_name_suffix) differs from what people
 * choose. 0 or -EIO.
 */
int must_check random_name(uint64_t *ret);
/*
 * Return MS plus or minus up to a quarter, so that operations with the same delay do not all run at
 * once.
 */
unsigned random_about(unsigned ms);
