/* SPDX-License-Identifier: MIT */
/*
 * Processes: parse /proc/PID/stat of a process or thread; the id of this boot, the limit of
 * descriptors, the user and their home; start programs; delay the signals that end a command. Any
 * thread; process_home, process_submitter and spawn_* may wait.
 */
#pragma once

#include <signal.h>
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
/* Return "user@host" of the user who runs kxfs; malloc'ed. The name is found like the home. */
char *process_submitter(void);
/* Set the soft limit of descriptors to SOFT in a process that is about to run another program. */
void process_limit_descriptors(rlim_t soft);

/*
 * Start programs. The caller waits until the new process has closed the descriptors of kxfs. If a
 * disk hangs, closing a file that was being written there may hang as well.
 */

/*
 * Start this program again, under the name ARGV[0], with the environment ENV and in a session of
 * its own, with FDS for its first three descriptors (-1: /dev/null). Return 0 or a negative errno.
 * The caller waits for *RET. On the pool.
 */
int spawn_self(char *const *argv, char *const *env, const int fds[3], pid_t *ret);

/*
 * Start another program, found by PATH, in a session of its own. Its descriptor limit is the one
 * that kxfs had before it raised its own, since programs with select() fail beyond 1024.
 *
 * An intermediate kxfs process, under a name of its own, searches PATH and lowers the limit. It
 * also waits if PATH leads to a disk that hangs; a SIGKILL ends it. FDS[0] is the write end of a
 * pipe. If there is no such program, the intermediate process writes the errno, an int, to it.
 * FDS[0] is closed when the program runs, which has /dev/null there. Otherwise as spawn_self. On
 * the pool.
 */
int spawn_program(char *const *args, char *const *env, const int fds[3], pid_t *ret);

/* For main(): in the intermediate process, this does not return. */
void spawn_between(char **argv);

/*
 * Delay the signals by which a user ends a command (SIGINT, SIGTERM, SIGHUP) while it waits and has
 * something to clean up. A descriptor becomes readable when such a signal arrives. Once the signals
 * are released, the process ends by that signal, as its caller expects. For a process with one
 * thread, or whose other threads block these signals.
 */
struct interrupt {
	/*
	 * becomes readable when a signal has arrived, which stays pending; -1: no descriptor could
	 * be made, so no signal is delayed
	 */
	int fd;
	sigset_t was; /* the thread's mask of signals before interrupt_hold */
};

/* Block the signals. Ignored or blocked ones are left as they are. */
void interrupt_hold(struct interrupt *i);
/* Unblock the signals. If one has arrived, the process ends here. */
void interrupt_release(struct interrupt *i);
