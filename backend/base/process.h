/* SPDX-License-Identifier: MIT */
/*
 * Functions for processes. They parse /proc/PID/stat of a process or thread; get the id of this
 * boot, the limit of file descriptors, the user and their home; start programs; and delay the
 * signals that end a command. Any thread may call them. process_home, process_user,
 * process_submitter and spawn_* may wait.
 */
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "spec/base/base.h"

#define PROCESS_HIDDEN -1

struct process_stat {
	pid_t parent; /* 0 if the parent is not visible to kxfs */
	/*
	 * True if the first thread has ended, and the parent has not waited for the process yet (a
	 * zombie). Other threads may still run.
	 */
	bool remains;
	/*
	 * The signal that has ended the process, or 0. PROCESS_HIDDEN: either a signal has ended
	 * the process, or one of its threads has called exit. kxfs can distinguish these two cases
	 * only if it has permission to trace the process.
	 */
	int signal;
	/*
	 * The CPU time of the process, plus the CPU time of all children for which the process has
	 * waited. The unit is a tick; a second has sysconf(_SC_CLK_TCK) ticks.
	 */
	unsigned long ticks;
	unsigned long pages;	    /* resident pages of memory */
	unsigned long long started; /* time of the start, by process_clock */
};

/*
 * Parse TEXT, the contents of /proc/PID/stat. Return 0, or -EINVAL if TEXT is malformed. If
 * EXIT_CODE is 0 but FLAGS has PF_SIGNALED, set the signal in *RET to PROCESS_HIDDEN. Only
 * process_stat checks whether kxfs may see the real EXIT_CODE.
 */
int process_parse_stat(const char *text, struct process_stat *ret);
/*
 * Read and parse /proc/PID/stat of the process or thread PID. Return 0 or a negative errno. -ESRCH:
 * PID does not exist, or kxfs can't see it.
 */
int process_stat(pid_t pid, struct process_stat *ret);
/* Return the time since the boot, in ticks. Setting the wall clock does not change it. */
unsigned long long process_clock(void);

/*
 * Set RET to the id of this boot; "" if it is unknown. A later start of kxfs compares the id, to
 * detect that the machine was rebooted.
 */
void process_boot(char ret[37]);

/*
 * Raise the soft limit of file descriptors to the hard limit. Return the new limit; RLIM_INFINITY
 * if it is unknown.
 */
rlim_t process_allow_descriptors(void);
/*
 * Return the soft limit of file descriptors that this process had before it called
 * process_allow_descriptors. kxfs starts other programs with this limit.
 */
rlim_t process_given_descriptors(void);
/*
 * Return the home directory of the user who runs kxfs, malloc'ed. If $HOME is an absolute path,
 * return $HOME. Otherwise return the user's directory in the user database. Return NULL if the
 * database has none. A read of the user database may wait for a server.
 */
char *process_home(void);
/*
 * Return the name of the user UID, malloc'ed; NULL if the user database has none. A read of the
 * user database may wait for a server.
 */
char *process_user(uid_t uid);
/*
 * Return "user@host" for the user who runs kxfs, malloc'ed. The name comes from the user database.
 * A read of this database may wait for a server.
 */
char *process_submitter(void);
/* Lower the soft limit of descriptors to SOFT, in a process that is about to exec a program. */
void process_limit_descriptors(rlim_t soft);

/*
 * The functions below start programs. Each returns after the new process has closed its copies of
 * kxfs's descriptors. If one of these descriptors refers to a file on a disk that hangs, closing
 * the descriptor may hang. In that case, the function hangs, too.
 */

/*
 * Start this program again, under the name ARGV[0], with the environment ENV, in a new session. FDS
 * become the descriptors 0, 1 and 2 of the new process; -1 stands for /dev/null. Set *RET to the
 * pid, for which the caller must call waitpid. Return 0 or a negative errno. Call this on the pool.
 */
int spawn_self(char *const *argv, char *const *env, const int fds[3], pid_t *ret);

/*
 * Start the program ARGS[0], found by PATH, in a new session. The program gets the descriptor limit
 * that kxfs had before it raised its own limit, because programs that use select() fail if they
 * have more than 1024 descriptors.
 *
 * kxfs starts itself as an intermediate process, which lowers the limit, searches PATH, and execs
 * the program. If a directory of PATH is on a disk that hangs, only the intermediate process hangs.
 * SIGKILL can end that process.
 *
 * The program's standard input is /dev/null. FDS[0] is the write end of a pipe, on which the
 * intermediate process reports a failure. If the intermediate process can't run the program, it
 * writes the errno, an int. Otherwise the exec closes the pipe. In all other respects this function
 * is like spawn_self.
 */
int spawn_program(char *const *args, char *const *env, const int fds[3], pid_t *ret);

/*
 * Call this first in main(). In an intermediate process of spawn_program, run the program and do
 * not return. In every other process, store the path of this program for spawn_self.
 */
void spawn_between(char **argv);

/*
 * Delays the signals by which a user ends a command (SIGINT, SIGTERM, SIGHUP), while the command
 * waits and has something to clean up. When such a signal arrives, FD becomes readable.
 * interrupt_release then lets the signal end the process, as its sender expects. Use this only if
 * all other threads block these signals.
 */
struct interrupt {
	/*
	 * Becomes readable when a signal arrives. If it is only polled, the signal remains pending,
	 * and interrupt_release ends the process. A caller that has more to do then reads the
	 * signalfd_siginfo, and raises the signal itself at the end. -1: the descriptor could not
	 * be created, so signals are not delayed.
	 */
	int fd;
	sigset_t was; /* the thread's mask of signals before interrupt_hold */
};

/*
 * Begin to delay SIGINT, SIGTERM and SIGHUP. Do not delay a signal that is already blocked, or
 * whose action is not the default.
 */
void interrupt_hold(struct interrupt *i);
/* Unblock the signals. If one is still pending, the process ends here. */
void interrupt_release(struct interrupt *i);
