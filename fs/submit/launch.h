/* SPDX-License-Identifier: MIT */
/*
 * Launches: one takes the present content of a file, sends it to the backend, shows the result when that has replied,
 * and answers the request that waits. If no request waits any more the result is the same, since a request to the
 * backend is never withdrawn.
 */
#pragma once

#include "fs/submit/save.h"
#include "fs/vfs/fuse.h"

/* How long a close and a rename may wait. */
#define LAUNCH_CLOSE_MS	 30000
#define LAUNCH_RENAME_MS 3000

/* The owner of files that the process behind REQ makes. */
struct file_owner launch_owner(const struct submit *s, fuse_req_t req);

/*
 * The writer W of U is done: submit its content, unless that is empty. Answer REQ (NULL: no request waits) with the
 * result, or, if nothing is submitted, when the bytes are on disk. FUSE thread.
 */
void launch_close(struct submit *s, struct upload *u, struct upload_writer *w,
		  struct file_owner owner, fuse_req_t req);
/* Answer REQ when WHAT (SAVE_BYTES or SAVE_SYNC) was done for U. FUSE thread. */
void launch_wait(struct submit *s, struct upload *u, enum save_what what, fuse_req_t req);
/*
 * Submit U, whose bytes are in memory, as NAME. U gets that name if the job is accepted while the request with TICKET,
 * which PROCESS has sent, still waits.
 */
void launch_rename(struct submit *s, struct upload *u, const char *name, struct file_owner owner,
		   pid_t process, uint64_t ticket);
/*
 * U, which has the name NAME on disk already, gets it in the tree, too; PROCESS has sent the request with TICKET for
 * that. A writer that loses its file by that finds a NAME.error.
 */
void launch_renamed(struct submit *s, struct upload *u, const char *name, pid_t process,
		    uint64_t ticket);
/* U, which was removed from the disk, loses its name in the tree, too; the rest is as above. */
void launch_removed(struct submit *s, struct upload *u, pid_t process, uint64_t ticket);
/* Answer a rename with ERR, but not with EINVAL, which mv takes for "cannot move to a subdirectory of itself". */
void launch_reply_rename(struct submit *s, uint64_t ticket, int err);

/* The content of W is not what its writer meant (upload_flaw): explain that in NAME.error, if U's name submits. */
void launch_show_flaw(struct submit *s, struct upload *u, struct upload_writer *w,
		      struct file_owner owner);
