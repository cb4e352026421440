/* SPDX-License-Identifier: MIT */
/*
 * Finds and opens the state directory. kxfs accepts a directory only if it belongs to this user,
 * can be written, and is not used by another mount. kxfs locks the directory and the file
 * STATE/lock with flock(), so the kernel releases both locks when the process ends, even if it
 * crashes.
 *
 * The text of STATE/lock is for people, and for processes that wait until the lock is released.
 * STATE/version contains the version of the directory. kxfs refuses a directory of another user or
 * version, and changes nothing in it. STATE/ready exists while the mount or kxfs capture is up;
 * probes check it.
 */
#pragma once

#include "spec/base/base.h"

enum state_phase { STATE_STARTING, STATE_MOUNTED, STATE_ENDING, STATE_CAPTURING };

struct state;

/*
 * Check if DIR could be the state directory. DIR does not need to exist yet. Change nothing. Return
 * 0, and set *RET_TEXT to a text with the directory and its free space. Or return a negative errno
 * with a message in *RET_TEXT.
 */
int state_check(const char *dir, char **ret_text);

/*
 * Set *RET to the default state directory for KEY, malloc'ed, such as $XDG_STATE_HOME/kxfs/KEY.
 * Return 0, or a negative errno with a message in *RET_TEXT.
 */
int state_default(const char *key, char **ret, char **ret_text);

/*
 * Create DIR if it does not exist, and lock it. A relative DIR is below the working directory.
 * MOUNTPOINT is a canonical path, or "" if there will be no mount. DIR must not be in MOUNTPOINT,
 * nor contain it. If another process has the lock but is ending, wait until it has ended, at most
 * WAIT_MS ms. Return 0, or a negative errno with a message in *RET_TEXT. Forked children share the
 * lock; programs that they execute don't.
 */
int state_open(const char *dir, const char *mountpoint, unsigned wait_ms, struct state **ret,
	       char **ret_text);
/* Return the canonical path of the state directory. */
const char *state_dir(const struct state *s);
/*
 * Return 0 if the state directory can be written. Otherwise return -EROFS, -ENOSPC or -EDQUOT.
 * state_open accepts a directory that can't be written only if kxfs has used it before.
 */
int state_flaw(const struct state *s);
/* Record in STATE/lock that this process has the lock and is in PHASE. */
void state_enter(struct state *s, enum state_phase phase);
/* Free S, and release the lock unless a forked process still has it. NULL is allowed. */
void state_close(struct state *s);
