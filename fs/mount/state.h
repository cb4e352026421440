/* SPDX-License-Identifier: MIT */
/*
 * Finds and opens the state directory. kxfs accepts a directory only if it belongs to this user and
 * no other mount uses it. The directory must be empty, or STATE/version must have the version that
 * this kxfs uses. kxfs changes nothing in a directory that it refuses. It locks the directory and
 * STATE/lock with flock(), so the kernel releases the locks when the process ends. The text of
 * STATE/lock is for people, and for processes that wait for the lock. STATE/ready exists while the
 * mount or kxfs capture is up; probes check it.
 */
#pragma once

#include "spec/base/base.h"

enum state_phase { STATE_STARTING, STATE_MOUNTED, STATE_ENDING, STATE_CAPTURING };

struct state;

/*
 * Check if DIR, which may not exist yet, could be the state directory. Change nothing. Return 0
 * with the path and free space in *RET_TEXT, or a negative errno with a message in *RET_TEXT.
 */
int state_check(const char *dir, char **ret_text);

/*
 * Set *RET to the path of the default state directory with the name KEY (backend_key), such as
 * $XDG_STATE_HOME/kxfs/KEY, malloc'ed. Return 0, or a negative errno with a message in *RET_TEXT.
 */
int state_default(const char *key, char **ret, char **ret_text);

/*
 * Create DIR if it does not exist, and lock it. MOUNTPOINT is a canonical path, or "" if there will
 * be no mount. Neither DIR nor MOUNTPOINT may contain the other. If another process has the lock
 * but is ending, wait for its end, at most WAIT_MS ms. Return 0, or a negative errno with a message
 * in *RET_TEXT. Forked children share the lock; programs that they execute don't.
 */
int state_open(const char *dir, const char *mountpoint, unsigned wait_ms, struct state **ret,
	       char **ret_text);
const char *state_dir(const struct state *s); /* the canonical path */
/*
 * Return 0, or the error with which writes to the directory fail: -EROFS, -ENOSPC or -EDQUOT.
 * state_open accepts such a directory only if kxfs has used it before.
 */
int state_flaw(const struct state *s);
/* Record in STATE/lock that this process is in PHASE. */
void state_enter(struct state *s, enum state_phase phase);
/* Release the lock, unless a forked process still has it. NULL is allowed. */
void state_close(struct state *s);
