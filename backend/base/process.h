/* SPDX-License-Identifier: MIT */
/*
 * Functions for processes: parse /proc/PID/stat of a process or thread; get the id of this boot, the limit of file
 * descriptors, the user and their home; start programs; delay the signals that end a command. Any thread;
 * process_home, process_submitter and spawn_* may wait.
 */
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "spec/base/base.h"

#define PROCESS_HIDDEN -1

struct process_stat {
	pid_t parent; /* 0 if kxfs can see no parent */
	bool remains; /* the process has ended, and its parent has not waited for it yet */
	/*
	 * The signal that has ended the process, or 0. PROCESS_HIDDEN: either a signal has ended the process, or
	 * one of its threads has called exit. Only readers that may trace the process can distinguish the two.
	 */
	int signal;
	/*
	 * CPU time of the process, and of all children for which it has waited, in ticks: sysconf(_SC_CLK_TCK) per
	 * second.
	 */
	unsigned long ticks;
	unsigned long pages; /* resident pages of memory */
};

/*
 * Parse TEXT, the contents of /proc/PID/stat. Return 0, or -EINVAL if TEXT is malformed. The signal in *RET is also
 * PROCESS_HIDDEN if the reader may trace the process and a thread's exit has ended it.
 */
int process_parse_stat(const char *text, struct process_stat *ret);
/*
 * Read the stat of the process or thread PID. Return 0 or a negative errno; -ESRCH: it does not exist, or kxfs
 * can't see it.
 */
int process_stat(pid_t pid, struct process_stat *ret);

/*
 * Get the id of this boot, by which a later start of kxfs detects that the machine was restarted; "" if the id is
 * unknown.
 */
void process_boot(char ret[37]);

/*
 * Raise the soft limit of file descriptors as far as this process may. Return the new limit; RLIM_INFINITY if it is
 * unknown.
 */
rlim_t process_allow_descriptors(void);
/* Return the limit of file descriptors before process_allow_descriptors. Programs that kxfs starts expect it. */
rlim_t process_given_descriptors(void);
/*
 * Return the home of the user who runs kxfs: HOME if that is an absolute path, else the home in the
 * user database, a lookup that may wait for a server. malloc'ed; NULL if there is none.
 */
char *process_home(void);
/*
 * Return "user@host" for the user who runs kxfs; malloc'ed. The name comes from the user database, a lookup that
 * may wait for a server.
 */
char *process_submitter(void);
/* Set the soft limit of descriptors to SOFT in a process that is about to run another program. */
void process_limit_descriptors(rlim_t soft);

/*
 * Start programs. The caller waits until the new process has closed its copies of kxfs's descriptors. If a disk
 * hangs, closing a file that was being written on it may hang as well.
 */

/*
 * Start this program again, under the name ARGV[0], with the environment ENV, in its own session. FDS are its first
 * three descriptors (-1: /dev/null). Return 0 or a negative errno. *RET is its pid; the caller must wait for it
 * (waitpid). Call this on the pool.
 */
int spawn_self(char *const *argv, char *const *env, const int fds[3], pid_t *ret);

/*
 * Start another program, found by PATH, in its own session. It gets the descriptor limit that kxfs had before it
 * raised its own, since programs with select() fail beyond 1024 descriptors.
 *
 * An intermediate kxfs process, with its own name, lowers the limit and searches PATH. If PATH leads to a disk that
 * hangs, only the intermediate process waits; SIGKILL ends it. FDS[0] is the write end of a pipe. If the program
 * can't be run, the intermediate process writes the errno, an int, to FDS[0]. When the program runs, FDS[0] is
 * closed, and its standard input is /dev/null. Otherwise as spawn_self. Call this on the pool.
 */
int spawn_program(char *const *args, char *const *env, const int fds[3], pid_t *ret);

/*
 * Call this first in main(). In the intermediate process it does not return. Otherwise it notes where the program is,
 * for spawn_self.
 */
void spawn_between(char **argv);

/*
 * Delay the signals by which a user ends a command (SIGINT, SIGTERM, SIGHUP) while it waits and has something to
 * clean up. A descriptor becomes readable when such a signal arrives. After interrupt_release the signal ends the
 * process, as its caller expects. For a process with one thread, or whose other threads block these signals.
 */
struct interrupt {
	/*
	 * Becomes readable when a signal has arrived, which remains pending. -1: the descriptor could not be
	 * created, so signals are not delayed.
	 */
	int fd;
	sigset_t was; /* the thread's mask of signals before interrupt_hold */
};

/* Block these signals, except those that are ignored or blocked already. */
void interrupt_hold(struct interrupt *i);
/* Unblock the signals. If one has arrived, the process ends here. */
void interrupt_release(struct interrupt *i);
