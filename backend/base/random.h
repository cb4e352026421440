/* SPDX-License-Identifier: MIT */
/*
 * Random bytes of the operating system. Any thread.
 */
#pragma once

#include "spec/base/base.h"

/* 0 or -EIO. */
int must_check random_bytes(void *p, size_t n);
int must_check random_uuid(char ret[37]);
/* A random number for the name of a job, whose suffix (spec_name_suffix) differs from what people choose. 0 or -EIO. */
int must_check random_name(uint64_t *ret);
/* MS, up to a quarter more or less, so that things that wait for the same time are not all done at once. */
unsigned random_about(unsigned ms);
