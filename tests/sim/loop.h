/* SPDX-License-Identifier: MIT */
/* The scheduler's interface to the simulated loop of kxfs, which has its own order. */
#pragma once

#include "spec/base/base.h"

/* Return the time, in us, at which the loop is next due, or UINT64_MAX. */
uint64_t sim_loop_due(void);
/* Run the first post or timer that is due. */
void sim_loop_turn(void);
/* Call FN(DATA) as the I/O thread: for callbacks of http.c. */
void sim_loop_call(void (*fn)(void *data), void *data);
/* This life of kxfs has ended: drop the loop and all its work. */
void sim_loop_kill(void);
/* Return the wall clock of everything except kxfs, in ns since 1970. */
int64_t sim_clock_ns(void);
/* Step the wall clock of kxfs forward or back. */
void sim_loop_step_clock(int64_t ns);
