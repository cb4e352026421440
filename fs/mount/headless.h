/* SPDX-License-Identifier: MIT */
/*
 * What stands in the session's place where there is none: kxfs capture, which only keeps what jobs print and how they
 * end. It waits for the end, and writes STATE/metrics meanwhile, which in a mount is .kxfs/metrics.
 */
#pragma once

#include "backend/backend.h"

struct headless;

/* STATE_DIR and B are borrowed. */
struct headless *headless_new(struct loop *loop, struct backend *b, const char *state_dir);
/* The backend is up: return when headless_stop is called. The thread that ends the run. */
void headless_serve(struct headless *h);
void headless_stop(struct headless *h); /* I/O thread; may be called at any time, and again */
void headless_free(struct headless *h); /* after loop_stop; NULL is allowed */
