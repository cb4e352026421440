/* SPDX-License-Identifier: MIT */
/* libfuse's low-level API. Include this file instead of libfuse's own headers. */
#pragma once

#define FUSE_USE_VERSION 310
#include <fuse_lowlevel.h>
