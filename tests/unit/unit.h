/* SPDX-License-Identifier: MIT */
/* cmocka, and what its header wants included before it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
