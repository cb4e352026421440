/* SPDX-License-Identifier: MIT */
/*
 * All processes that descend from one process, as /proc shows them. For helpers and guards, which may wait for /proc.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* What a look at such processes has found. Plain data. */
struct descent {
	int64_t cpu_us; /* CPU time of all, and of all children that they have waited for */
	int64_t memory; /* resident bytes */
};

/* Send SIG to all processes that descend from process ROOT, but not to ROOT. */
void descent_signal(pid_t root, int sig);

/*
 * Look at all that descends from this process, whose first thread has started it all. SHARED: of a page that several
 * processes have each counts its part (Pss), which means to look at all pages and to wait for a process that has its
 * memory locked; else each counts all of it (Rss). False: the processes can't be found on this machine.
 */
bool descent_look(bool shared, struct descent *ret);
