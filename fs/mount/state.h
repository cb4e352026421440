/* SPDX-License-Identifier: MIT */
/*
 * The state directory: where it is, that it is ours alone, that it can be written, and that only one mount uses it. The
 * directory and STATE/lock are locked by flock(), so both locks end with their holder however that ends; what the file
 * says is for people, and for who waits for a holder that is ending. STATE/version says what the directory is written
 * in. What is somebody else's, or another version's, is refused, and nothing of it is changed. STATE/ready is there as
 * long as the mount, or what captures without one, is up: for probes.
 */
#pragma once

#include "spec/base/base.h"

enum state_phase { STATE_STARTING, STATE_MOUNTED, STATE_ENDING, STATE_CAPTURING };

struct state;

/*
 * Could DIR, which need not exist, keep the state? Changes nothing. 0 with *RET_TEXT: where, and how much room
 * there is; or a negative errno with *RET_TEXT.
 */
int state_look(const char *dir, char **ret_text);

/* The default directory of KEY: $XDG_STATE_HOME/kxfs/KEY and so on. */
int state_default(const char *key, char **ret, char **ret_text);

/*
 * Make and lock DIR (relative to the working directory). MOUNTPOINT (canonical; "": there will be none) must not hold
 * it, nor lie in it. If its holder is ending, wait for it, up to WAIT_MS. 0, or a negative errno with
 * *RET_TEXT. The lock is shared with children that are forked, not with programs that they run.
 */
int state_open(const char *dir, const char *mountpoint, unsigned wait_ms, struct state **ret,
	       char **ret_text);
/* Canonical. */
const char *state_dir(const struct state *s);
/*
 * 0; or why nothing new can be kept there, though it was used before: -EROFS, or on a full disk -ENOSPC, -EDQUOT.
 */
int state_flaw(const struct state *s);
/* This process holds it now, and is so far. */
void state_enter(struct state *s, enum state_phase phase);
/* It is a child's now, which was forked. */
void state_leave(struct state *s);
/*
 * Releases the lock (unless a forked process still has it). What was made for a mount that never came up, and holds
 * nothing, is removed. NULL is allowed.
 */
void state_close(struct state *s);
