/* SPDX-License-Identifier: MIT */
/* All processes that descend from one, as /proc shows them. For helpers, which may wait for /proc. */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* What a look at them has found. Plain data. */
struct descent {
	size_t n;
	int64_t cpu_us; /* of all, and of what they have waited for */
	int64_t memory; /* bytes that are resident */
};

/* Send SIG to all that descends from process ROOT, but not to ROOT. */
void descent_signal(pid_t root, int sig);

/*
 * Look at all that descends from this process, whose first thread has started all of it. SHARED: of a page that
 * several processes have, each counts its part (Pss), which costs a look at all pages, and waits for who has their
 * memory locked; else each counts all of it (Rss). False: they can't be found here.
 */
bool descent_look(bool shared, struct descent *ret);
