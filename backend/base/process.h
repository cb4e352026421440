/* SPDX-License-Identifier: MIT */
/*
 * Parses /proc/PID/stat of a process or thread; also the id of this boot, the limit of descriptors,
 * and the user's home. Any thread; only process_home may wait.
 */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "spec/base/base.h"

#define PROCESS_HIDDEN -1

struct process_stat {
	pid_t parent; /* 0 if kxfs can see no parent */
	bool remains; /* It has ended, and its parent has not waited for it yet. */
	/*
	 * The signal that has ended the process, or 0. PROCESS_HIDDEN: a signal has ended the
	 * process, or one of its threads has called exit; only readers that may trace the process
	 * can distinguish these.
	 */
	int signal;
	/*
	 * CPU time of the process and of all children that it has waited for, in ticks of
	 * sysconf(_SC_CLK_TCK) a second
	 */
	unsigned long ticks;
	unsigned long pages; /* resident pages of memory */
};

/*
 * Parse TEXT, the contents of /proc/PID/stat; -EINVAL if they are malformed. *RET's signal is also
 * PROCESS_HIDDEN if the reader may trace the process and no signal has ended it.
 */
int process_parse_stat(const char *text, struct process_stat *ret);
/* Read the stat of the process or thread PID. -ESRCH: it does not exist, or kxfs can't see it. */
int process_stat(pid_t pid, struct process_stat *ret);

/*
 * The id of this boot, by which a later start detects that the machine was restarted. "" if it is
 * not known.
 */
void process_boot(char ret[37]);

/*
 * Raise the limit of descriptors as far as this process may. Return the new limit; RLIM_INFINITY if
 * it is not known.
 */
rlim_t process_allow_descriptors(void);
/* Return the limit before that, which programs that kxfs starts expect. */
rlim_t process_given_descriptors(void);
/*
 * Return the home of the user who runs kxfs: HOME if that is an absolute path, else the home in the
 * user database, a lookup that may wait for a server. malloc'ed; NULL if there is none.
 */
char *process_home(void);
/* Set the soft limit of descriptors to SOFT in a process that is about to run another program. */
void process_limit_descriptors(rlim_t soft);
