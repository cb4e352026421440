/* SPDX-License-Identifier: MIT */
/*
 * All processes that descend from one process, as /proc shows them. For helpers and guards, which may wait for /proc.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* A sample of such processes. Plain data. */
struct descent {
	int64_t cpu_us; /* CPU time of all, and of all children that they have waited for */
	int64_t memory; /* resident bytes */
};

/* Send SIG to all processes that descend from process ROOT, but not to ROOT. */
void descent_signal(pid_t root, int sig);

/*
 * Sample all processes that descend from this one, whose first thread has started them. SHARED: of
 * each shared page count only the process's share (Pss), which takes longer, and waits for a
 * process whose memory map is locked. Otherwise count all resident pages (Rss). Return false if
 * this machine does not list the processes.
 */
bool descent_sample(bool shared, struct descent *ret);
