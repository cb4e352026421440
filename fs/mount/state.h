/* SPDX-License-Identifier: MIT */
/*
 * Finds and opens the state directory, and ensures that it belongs to us, is writable, and is used
 * by only one mount. kxfs locks the directory and STATE/lock by flock(), so the kernel releases
 * both locks when their holder ends, even if it crashes. The text of STATE/lock is for people, and
 * for processes that wait for a holder that is ending. STATE/version has the version of the
 * directory. kxfs refuses a directory of another user or version, and changes nothing in it.
 * STATE/ready exists as long as the mount, or kxfs capture, is up: for probes.
 */
#pragma once

#include "spec/base/base.h"

enum state_phase { STATE_STARTING, STATE_MOUNTED, STATE_ENDING, STATE_CAPTURING };

struct state;

/*
 * Check if DIR, which need not exist, could be the state directory. Change nothing. Return 0 with
 * *RET_TEXT, which names the directory and its free space; or a negative errno with *RET_TEXT.
 */
int state_check(const char *dir, char **ret_text);

/*
 * Set *RET (malloc'ed) to the default directory of KEY, such as $XDG_STATE_HOME/kxfs/KEY. Return 0,
 * or a negative errno with *RET_TEXT.
 */
int state_default(const char *key, char **ret, char **ret_text);

/*
 * Create DIR (relative to the working directory), if needed, and lock it. MOUNTPOINT (canonical;
 * "": there will be none) must not contain DIR, nor be in it. If the holder of DIR is ending, wait
 * for that, up to WAIT_MS. Return 0, or a negative errno with *RET_TEXT. Forked children share the
 * lock, but programs that they run do not.
 */
int state_open(const char *dir, const char *mountpoint, unsigned wait_ms, struct state **ret,
	       char **ret_text);
/* Return the canonical path of the directory. */
const char *state_dir(const struct state *s);
/*
 * Return 0 if the directory can be written; else the error of its disk: -EROFS, -ENOSPC or -EDQUOT.
 * state_open accepts such a disk only if kxfs has used the directory before.
 */
int state_flaw(const struct state *s);
/* Record that this process has the lock, and is in PHASE. */
void state_enter(struct state *s, enum state_phase phase);
/* Record that a forked child has the lock from now on. */
void state_leave(struct state *s);
/*
 * Release the lock (unless a forked process still has it). Remove an empty directory that was made
 * for a mount that never came up. NULL is allowed.
 */
void state_close(struct state *s);
