/* SPDX-License-Identifier: MIT */
/*
 * libfuse's low-level API at the version that kxfs is written for. Include this file, never
 * libfuse's own headers.
 */
#pragma once

#define FUSE_USE_VERSION 310
#include <fuse_lowlevel.h>
