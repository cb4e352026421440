/* SPDX-License-Identifier: MIT */
/*
 * Delay the signals by which a user ends a command (SIGINT, SIGTERM, SIGHUP) while it waits and has
 * something to clean up. A descriptor becomes readable when such a signal arrives. Once the signals
 * are released, the process ends by that signal, as its caller expects. For a process with one
 * thread, or whose other threads block these signals.
 */
#pragma once

#include <signal.h>

#include "spec/base/base.h"

struct interrupt {
	/*
	 * becomes readable when a signal has arrived, which stays pending; -1: no descriptor could
	 * be made, so no signal is delayed
	 */
	int fd;
	sigset_t was; /* the thread's mask of signals before interrupt_hold */
};

/* Block the signals. Ignored or blocked ones are left as they are. */
void interrupt_hold(struct interrupt *i);
/* Unblock the signals. If one has arrived, the process ends here. */
void interrupt_release(struct interrupt *i);
