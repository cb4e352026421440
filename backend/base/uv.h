/* SPDX-License-Identifier: MIT */
/* The libuv loop of struct loop, for code that uses libuv directly. I/O thread only. */
#pragma once

#include <uv.h>

#include "backend/base/loop.h"

uv_loop_t *loop_uv(struct loop *loop);
