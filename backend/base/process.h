/* SPDX-License-Identifier: MIT */
/*
 * Functions for processes: /proc/PID/stat, limits, users, and starting programs. Any thread.
 * Functions that read the user database (process_home, process_user, process_submitter) may wait
 * for a server.
 */
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "spec/base/base.h"

#define PROCESS_HIDDEN -1

struct process_stat {
	pid_t parent; /* 0 if kxfs can't see the parent */
	/* The process is a zombie: its first thread has ended. Other threads may still run. */
	bool remains;
	/*
	 * The signal that ended the process, or 0. PROCESS_HIDDEN: either a signal ended the
	 * process, or a thread called exit. kxfs can distinguish these cases only if it may trace
	 * the process.
	 */
	int signal;
	/*
	 * CPU time of the process and its reaped children, in ticks (sysconf(_SC_CLK_TCK) per
	 * second).
	 */
	unsigned long ticks;
	unsigned long pages;	    /* resident memory */
	unsigned long long started; /* start time, by process_clock */
};

/*
 * Parse the contents of /proc/PID/stat. Return 0, or -EINVAL if TEXT is malformed. Set SIGNAL to
 * PROCESS_HIDDEN if TEXT does not show whether a signal ended the process.
 */
int process_parse_stat(const char *text, struct process_stat *ret);
/* Parse /proc/PID/stat of a process or thread. Return 0, or -ESRCH if kxfs can't see PID. */
int process_stat(pid_t pid, struct process_stat *ret);
/* Return the time since the boot, in ticks. */
unsigned long long process_clock(void);

/* Set RET to the id of this boot, which changes with a reboot; "" if unknown. */
void process_boot(char ret[37]);

/*
 * Raise the soft limit of file descriptors to the hard limit. Return the new soft limit;
 * RLIM_INFINITY if it is unknown.
 */
rlim_t process_allow_descriptors(void);
/*
 * Return the soft limit before process_allow_descriptors raised it. Programs that kxfs starts get
 * this limit.
 */
rlim_t process_given_descriptors(void);
/*
 * Return $HOME if it is an absolute path, else the directory in the user database, or NULL;
 * malloc'ed.
 */
char *process_home(void);
/* Return the name of the user UID, malloc'ed; NULL if the user database has none. */
char *process_user(uid_t uid);
/* Return "user@host" for the user who runs kxfs, malloc'ed. Use the uid if there is no name. */
char *process_submitter(void);
/* Lower the soft limit of file descriptors to SOFT. */
void process_limit_descriptors(rlim_t soft);

/*
 * spawn_self and spawn_program return after the new process has closed its copies of kxfs's
 * descriptors. So they hang if a descriptor refers to a file on a disk that hangs.
 */

/*
 * Start this program again, under the name ARGV[0], with the environment ENV, in a new session. FDS
 * become its descriptors 0, 1 and 2; -1 stands for /dev/null. It inherits no others. The caller
 * must call waitpid for *RET. Return 0 or a negative errno. Call this on the pool.
 */
int spawn_self(char *const *argv, char *const *env, const int fds[3], pid_t *ret);

/*
 * Like spawn_self, but start the program ARGS[0], found by PATH. The program gets kxfs's original
 * descriptor limit, because programs that use select() fail with more than 1024 descriptors.
 *
 * kxfs starts itself as an intermediate process, which lowers the limit, searches PATH, and execs
 * the program. If a directory of PATH is on a disk that hangs, only the intermediate process hangs,
 * and SIGKILL can end it.
 *
 * The program's standard input is /dev/null. FDS[0] is the write end of a pipe. If the exec fails,
 * the intermediate process writes the errno, an int, into the pipe. A successful exec closes the
 * pipe.
 */
int spawn_program(char *const *args, char *const *env, const int fds[3], pid_t *ret);

/*
 * Call this first in main(). In an intermediate process of spawn_program, run the program and don't
 * return. Otherwise, store the path of this program for spawn_self.
 */
void spawn_between(char **argv);

/*
 * Delays SIGINT, SIGTERM and SIGHUP while a command has something to clean up. All other threads
 * must block these signals.
 */
struct interrupt {
	/*
	 * A nonblocking signalfd, readable when a signal arrives; -1 if it could not be created.
	 * Usually nobody reads from it. Then the signal remains pending, and interrupt_release ends
	 * the process. A caller that must first do more work reads the signalfd_siginfo. It then
	 * raises the signal itself when its work is done.
	 */
	int fd;
	sigset_t was; /* signal mask before interrupt_hold */
};

/* Delay the signals, except those that are blocked or whose action is not the default. */
void interrupt_hold(struct interrupt *i);
/* Unblock the signals. If one is pending, the process ends here. */
void interrupt_release(struct interrupt *i);
