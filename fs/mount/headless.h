/* SPDX-License-Identifier: MIT */
/*
 * Replaces the session in kxfs capture, which only captures jobs' output and results and has no
 * mount. It waits for the end of the run, and meanwhile writes STATE/metrics, which has the
 * contents of a mount's .kxfs/metrics.
 */
#pragma once

#include "backend/backend.h"

struct headless;

/* STATE_DIR and B are borrowed. */
struct headless *headless_new(struct loop *loop, struct backend *b, const char *state_dir);
/*
 * Serve, once the backend is up, and return when headless_stop is called. For the thread that ends
 * the run.
 */
void headless_serve(struct headless *h);
/* I/O thread; may be called at any time, and more than once */
void headless_stop(struct headless *h);
void headless_free(struct headless *h); /* Call this after loop_stop; NULL is allowed. */
