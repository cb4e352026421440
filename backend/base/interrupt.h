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
	/* Readable once a signal has come, which stays pending; -1: there is no descriptor, so none was held back. */
	int fd;
	sigset_t was; /* the thread's mask */
};

/* Those that would not end the process now, being ignored or blocked, are left as they are. */
void interrupt_hold(struct interrupt *i);
/* As it was before. If a signal has come, the process ends here. */
void interrupt_release(struct interrupt *i);
