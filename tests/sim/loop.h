/* SPDX-License-Identifier: MIT */
/* What the scheduler asks of the loop of kxfs, which has an order of its own. */
#pragma once

#include "spec/base/base.h"

/* When the loop has something to do, in us; UINT64_MAX: nothing. */
uint64_t sim_loop_due(void);
/* Do the first of it. */
void sim_loop_turn(void);
/* FN is what the I/O thread does now: callbacks of http.c. */
void sim_loop_call(void (*fn)(void *data), void *data);
/* All of it is gone with the life of kxfs it was of. */
void sim_loop_kill(void);
/* What time it is for all others, ns since 1970. */
int64_t sim_clock_ns(void);
/* The wall clock of kxfs goes forward or back. */
void sim_loop_step_clock(int64_t ns);
