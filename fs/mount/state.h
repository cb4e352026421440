/* SPDX-License-Identifier: MIT */
/*
 * Finds and opens the state directory, and sees to it that it is ours alone, that it can be written, and that only one
 * mount uses it. The directory and STATE/lock are locked by flock(), so both locks end with their holder however that
 * ends; the text of the file is for people, and for those who wait for a holder that is ending. STATE/version says of
 * which version the directory is. A directory that is somebody else's, or another version's, is refused, and nothing in
 * it is changed. STATE/ready is there as long as the mount, or kxfs capture, is up: for probes.
 */
#pragma once

#include "spec/base/base.h"

enum state_phase { STATE_STARTING, STATE_MOUNTED, STATE_ENDING, STATE_CAPTURING };

struct state;

/*
 * Could DIR, which need not exist, be the state directory? Changes nothing. 0 with *RET_TEXT, which says where it is
 * and how much room there is; or a negative errno with *RET_TEXT.
 */
int state_look(const char *dir, char **ret_text);

/* The default directory of KEY: $XDG_STATE_HOME/kxfs/KEY and so on. */
int state_default(const char *key, char **ret, char **ret_text);

/*
 * Make DIR (relative to the working directory), if need be, and lock it. MOUNTPOINT (canonical; "": there will be none)
 * must not hold DIR, nor lie in it. If the holder of DIR is ending, wait for that, up to WAIT_MS. 0, or a negative
 * errno with *RET_TEXT. The lock is shared with children that are forked, not with programs that they run.
 */
int state_open(const char *dir, const char *mountpoint, unsigned wait_ms, struct state **ret,
	       char **ret_text);
/* The canonical path of the directory. */
const char *state_dir(const struct state *s);
/*
 * 0; or why nothing new can be kept there, though it was used before: -EROFS, or on a full disk -ENOSPC, -EDQUOT.
 */
int state_flaw(const struct state *s);
/* This process has the lock now, and is in PHASE. */
void state_enter(struct state *s, enum state_phase phase);
/* A child that was forked has the lock from now on. */
void state_leave(struct state *s);
/*
 * Release the lock (unless a forked process still has it). A directory that was made for a mount that never came up,
 * and that holds nothing, is removed. NULL is allowed.
 */
void state_close(struct state *s);
