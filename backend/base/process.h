/* SPDX-License-Identifier: MIT */
/*
 * What /proc/PID/stat says of a process or thread; which run of the machine this is; how many descriptors kxfs may
 * have; the user's home. Any thread; only process_home may wait.
 */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "spec/base/base.h"

#define PROCESS_HIDDEN -1

struct process_stat {
	pid_t parent; /* 0: it has no parent that kxfs can see */
	bool remains; /* It has ended, and only its parent still has to hear of it. */
	/*
	 * The signal that has ended the process, or 0. PROCESS_HIDDEN: a signal has ended the process, or one of its
	 * threads has called exit; only readers that may trace the process can tell.
	 */
	int signal;
	/*
	 * CPU time of the process and of all children that it has waited for, in ticks of sysconf(_SC_CLK_TCK) a
	 * second.
	 */
	unsigned long ticks;
	unsigned long pages; /* resident pages of memory */
};

/*
 * Parse TEXT, the contents of /proc/PID/stat; -EINVAL if they are malformed. PROCESS_HIDDEN is also what a text shows
 * to a reader that may trace the process if no signal has ended it.
 */
int process_parse_stat(const char *text, struct process_stat *ret);
/* Read what there is of the process or thread PID. -ESRCH: there is none, or kxfs can't see it. */
int process_stat(pid_t pid, struct process_stat *ret);

/* The id of this run of the machine, by which a later start sees that the machine was down. "": it is not known. */
void process_boot(char ret[37]);

/*
 * Raise the limit of descriptors as far as this process may. Returns how many it may have; RLIM_INFINITY if that can't
 * be told.
 */
rlim_t process_allow_descriptors(void);
/* The limit before that, which programs expect that kxfs starts. */
rlim_t process_given_descriptors(void);
/*
 * The home of the user who runs kxfs: HOME if that is an absolute path, else what the user database says, which may
 * wait for a server. malloc'ed; NULL: there is none.
 */
char *process_home(void);
/*
 * Called in a process that is about to run another program: it gets SOFT as its limit of descriptors, unless it raises
 * that itself.
 */
void process_limit_descriptors(rlim_t soft);
