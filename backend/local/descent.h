/* SPDX-License-Identifier: MIT */
/*
 * Finds the descendants of a process in /proc. Only helpers and guards use this, since reading
 * /proc may block.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* The usage of a set of processes at one moment. Plain data. */
struct descent {
	/* CPU time of the processes, and of all children for which they have waited */
	int64_t cpu_us;
	int64_t memory; /* resident bytes */
};

/* Send SIG to all processes that descend from process ROOT, but not to ROOT. */
void descent_signal(pid_t root, int sig);

/*
 * Sample all descendants of the calling process. All children of this process must have been
 * started by its first thread. If SHARED is true, count only each process's share of shared pages
 * (Pss). That takes longer, and waits while a process has its memory map locked. Otherwise count
 * all resident pages (Rss). Return false if the kernel does not list child processes.
 */
bool descent_sample(bool shared, struct descent *ret);
