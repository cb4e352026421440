/* SPDX-License-Identifier: MIT */
/*
 * A launch sends the present contents of a file to the backend, shows the result, and answers the
 * request that waits. If that request was answered before, because it timed out or was interrupted,
 * the launch continues: kxfs never withdraws a request to the backend.
 */
#pragma once

#include "fs/submit/save.h"
#include "fs/vfs/fuse.h"

/* The longest waits of a close and of a rename. */
#define LAUNCH_CLOSE_MS	 30000
#define LAUNCH_RENAME_MS 3000

/* Return the owner of files that the process behind REQ makes. */
struct file_owner launch_owner(const struct submit *s, fuse_req_t req);

/*
 * The writer W of U has finished: submit its contents, unless they are empty. Answer REQ (may be
 * NULL) with the result. If nothing is submitted, answer it when the bytes are on disk. FUSE
 * thread.
 */
void launch_close(struct submit *s, struct upload *u, struct upload_writer *w,
		  struct file_owner owner, fuse_req_t req);
/* Do WHAT (SAVE_BYTES or SAVE_SYNC) for U, then answer REQ. FUSE thread. */
void launch_wait(struct submit *s, struct upload *u, enum save_what what, fuse_req_t req);
/*
 * Submit U, whose bytes are in memory, as NAME: PROCESS has requested that rename, and waits with
 * TICKET. If the job is accepted while the request still waits, rename U.
 */
void launch_rename(struct submit *s, struct upload *u, const char *name, struct file_owner owner,
		   pid_t process, uint64_t ticket);
/*
 * U was renamed to NAME on disk, as PROCESS has requested with TICKET: rename it in the tree, too.
 * If a writer loses its file by this rename, explain that in a NAME.error.
 */
void launch_renamed(struct submit *s, struct upload *u, const char *name, pid_t process,
		    uint64_t ticket);
/*
 * U was removed from the disk: remove its name from the tree, too. PROCESS, TICKET and writers that
 * lose the file are handled as in launch_renamed.
 */
void launch_removed(struct submit *s, struct upload *u, pid_t process, uint64_t ticket);
/*
 * Answer a rename with ERR; replace EINVAL, which mv reports as "cannot move to a subdirectory of
 * itself".
 */
void launch_reply_rename(struct submit *s, uint64_t ticket, int err);

/*
 * The contents of W are incomplete (upload_flaw): explain that in NAME.error, if U's name submits.
 */
void launch_show_flaw(struct submit *s, struct upload *u, struct upload_writer *w,
		      struct file_owner owner);
