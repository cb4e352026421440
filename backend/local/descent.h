/* SPDX-License-Identifier: MIT */
/* Finds descendants of a process. Only for helpers and guards, because reading /proc may block. */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* Usage of a set of processes. Plain data. */
struct descent {
	int64_t cpu_us; /* CPU time, including that of reaped children */
	int64_t memory; /* resident bytes */
};

/* Send SIG to all descendants of the process ROOT, but not to ROOT. */
void descent_signal(pid_t root, int sig);

/*
 * Sample all descendants of the calling process, whose first thread must have started all of its
 * children. If SHARED is true, count only each process's share of shared pages (Pss): this takes
 * longer, and waits while a process has its memory map locked. Otherwise count all resident pages
 * (Rss). Return false if the kernel does not list child processes.
 */
bool descent_sample(bool shared, struct descent *ret);
