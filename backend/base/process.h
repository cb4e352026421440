/* SPDX-License-Identifier: MIT */
/*
 * What /proc/PID/stat says of a process or thread; which run of the machine this is; how many descriptors we may have;
 * our home. Any thread; nothing but process_home waits.
 */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "spec/base/base.h"

struct process_stat {
	pid_t parent; /* 0: it has none that we can see */
	bool remains; /* It has ended, and only its parent still has to hear of it. */
	bool killed;  /* A signal is ending it. */
	/* CPU time of it and of all that it has waited for, in sysconf(_SC_CLK_TCK) parts of a second. */
	unsigned long ticks;
	unsigned long pages; /* that are resident */
};

/* The text of /proc/PID/stat. -EINVAL: it is not one. */
int process_parse_stat(const char *text, struct process_stat *ret);
/* Process or thread PID. -ESRCH: there is none, or it can't be seen. */
int process_stat(pid_t pid, struct process_stat *ret);

/* What tells this run of the machine from any other, to see that the machine has been down. "": nothing does. */
void process_boot(char ret[37]);

/*
 * From now on we may have as many descriptors as we are allowed to give ourselves. Returns how many; RLIM_INFINITY
 * where that can't be told.
 */
rlim_t process_allow_descriptors(void);
/* How many it were before that, which is what programs expect that we start. */
rlim_t process_given_descriptors(void);
/*
 * The home of who runs us: HOME if it is an absolute path, else what the user database says, which may wait for a
 * server. malloc'ed; NULL: there is none.
 */
char *process_home(void);
/* In a process that is to become such a program: no more than SOFT, unless the program raises that itself. */
void process_limit_descriptors(rlim_t soft);
