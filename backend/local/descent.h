/* SPDX-License-Identifier: MIT */
/*
 * All processes that descend from one process, as /proc shows them. For helpers and guards, which may wait for /proc.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* A sample of such processes. Plain data. */
struct descent {
	int64_t cpu_us; /* CPU time of the processes, and of all children that they have waited for */
	int64_t memory; /* resident bytes */
};

/* Send SIG to all processes that descend from process ROOT, but not to ROOT. */
void descent_signal(pid_t root, int sig);

/*
 * Sample all processes that descend from this one, whose first thread has started them. If SHARED,
 * count only the process's share of each shared page (Pss). That takes longer, and waits while a
 * process has its memory map locked. Otherwise count all resident pages (Rss). Return false if the
 * kernel does not list child processes.
 */
bool descent_sample(bool shared, struct descent *ret);
