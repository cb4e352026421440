/* SPDX-License-Identifier: MIT */
/*
 * For a command that waits and has something to clear up when it is interrupted: the signals by which a user ends it
 * (SIGINT, SIGTERM, SIGHUP) are held back meanwhile, and a descriptor tells that one has come. When they are let go,
 * the process ends by that signal, as its caller expects. For a process with one thread, or whose other threads block
 * these signals.
 */
#pragma once

#include <signal.h>

#include "spec/base/base.h"

struct interrupt {
	/*
	 * becomes readable when a signal has come, and the signal stays pending; -1: no descriptor could be made, so no
	 * signal is held back
	 */
	int fd;
	sigset_t was; /* the thread's mask of signals before interrupt_hold */
};

/* Hold the signals back. Those that would not end the process now, being ignored or blocked, are left as they are. */
void interrupt_hold(struct interrupt *i);
/* Let the signals go. If one has come, the process ends here. */
void interrupt_release(struct interrupt *i);
