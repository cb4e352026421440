/* SPDX-License-Identifier: MIT */
/* cmocka, and what its header wants included before it. */
#ifndef KXFS_TESTS_UNIT_UNIT_H
#define KXFS_TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
