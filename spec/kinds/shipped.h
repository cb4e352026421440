/* SPDX-License-Identifier: MIT */
/* The texts of share/kinds/, in the order of preference; ends with NULL. Private to spec/kinds. */
#pragma once

#include <stddef.h>

extern const char *const spec_shipped_kinds[];
