/* SPDX-License-Identifier: MIT */
/*
 * A launch sends the contents of a file to the backend, shows the result, and answers the FUSE
 * request that waits for the result. If that request timed out or was interrupted, the launch
 * continues: kxfs never withdraws a request to the backend.
 */
#pragma once

#include "fs/submit/save.h"
#include "fs/vfs/fuse.h"

/* Deadlines of a close and of a rename that wait for a launch. */
#define LAUNCH_CLOSE_MS	 30000
#define LAUNCH_RENAME_MS 3000

/* Return the owner that a file gets if the request REQ makes it. */
struct file_owner launch_owner(const struct submit *s, fuse_req_t req);

/*
 * Submit the contents of W, a writer of U that has finished, unless they are empty. Answer REQ (may
 * be NULL) with the result. If there is nothing to submit, answer REQ when the bytes are on disk.
 * FUSE thread.
 */
void launch_close(struct submit *s, struct upload *u, struct upload_writer *w,
		  struct file_owner owner, fuse_req_t req);
/* Do WHAT (SAVE_BYTES or SAVE_SYNC) for U, then answer REQ. FUSE thread. */
void launch_wait(struct submit *s, struct upload *u, enum save_what what, fuse_req_t req);
/*
 * Submit U as NAME, because PROCESS has requested to rename U to NAME. The rename request is parked
 * with TICKET. If the backend accepts the contents while the request still waits, rename U. U's
 * bytes must be in memory.
 */
void launch_rename(struct submit *s, struct upload *u, const char *name, struct file_owner owner,
		   pid_t process, uint64_t ticket);
/*
 * Rename U to NAME in the tree, or remove U's name if NAME is NULL. PROCESS has requested this with
 * the request TICKET, and it is already done on disk. If a writer loses its file by this, explain
 * that in a NAME.error.
 */
void launch_renamed(struct submit *s, struct upload *u, const char *name, pid_t process,
		    uint64_t ticket);
/*
 * Answer the request TICKET, a rename or an unlink, with ERR. Replace EINVAL, because mv would
 * report that as "cannot move to a subdirectory of itself".
 */
void launch_reply_rename(struct submit *s, uint64_t ticket, int err);

/*
 * If U has a submitting name (spec_name_submits), explain in NAME.error why the contents of W are
 * incomplete (upload_flaw).
 */
void launch_show_flaw(struct submit *s, struct upload *u, struct upload_writer *w,
		      struct file_owner owner);
