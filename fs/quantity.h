/* SPDX-License-Identifier: MIT */
/*
 * Numbers that a person writes in an option, with a unit: sizes (10G) and times (7d). Decimal,
 * whole, bounded; anything else is refused, never read half.
 */
#ifndef KXFS_FS_QUANTITY_H
#define KXFS_FS_QUANTITY_H

#include "spec/base.h"

/* Bytes: digits and one of K M G T (powers of 1024), or nothing. 0, -EINVAL or -ERANGE. */
int quantity_size(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* Seconds: digits and one of s m h d, or nothing. 0, -EINVAL or -ERANGE. */
int quantity_time(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* Digits of BASE (8 or 10) alone. 0, -EINVAL or -ERANGE. */
int quantity_number(const char *text, int base, uint64_t min, uint64_t max, uint64_t *ret);

#endif
