/* SPDX-License-Identifier: MIT */
/*
 * Leads from contents to verdicts: a launch takes the present content of a file, gives it to the backend, shows the
 * verdict when that has answered, and answers the request that waits. If nobody waits any more the verdict is the same,
 * since a request to the backend is never taken back.
 */
#pragma once

#include "fs/submit/save.h"
#include "fs/vfs/fuse.h"

/* How long a close and a rename may wait. */
#define LAUNCH_CLOSE_MS	 30000
#define LAUNCH_RENAME_MS 3000

/* The owner of files that the process behind REQ makes. */
struct record_owner launch_owner(const struct submit *s, fuse_req_t req);

/*
 * The writer W of U is done: submit the content, if there is anything to submit. REQ is answered with the verdict when
 * the bytes are on disk, too; NULL: nobody waits. FUSE thread.
 */
void launch_close(struct submit *s, struct upload *u, struct upload_writer *w,
		  struct record_owner owner, fuse_req_t req);
/* Answer REQ when WHAT (SAVE_BYTES or SAVE_SYNC) was done for U. FUSE thread. */
void launch_wait(struct submit *s, struct upload *u, enum save_what what, fuse_req_t req);
/*
 * Submit U, whose bytes are in memory, as NAME. U gets that name if the job is accepted while the request with TICKET
 * still waits; PROCESS has sent it.
 */
void launch_rename(struct submit *s, struct upload *u, const char *name, struct record_owner owner,
		   pid_t process, uint64_t ticket);
/*
 * U, which has the name NAME on disk already, gets it in the tree, too; PROCESS has asked for that by the request with
 * TICKET. A writer that loses its file by that reads so in NAME.error.
 */
void launch_renamed(struct submit *s, struct upload *u, const char *name, pid_t process,
		    uint64_t ticket);
/* U, which no longer has the name NAME on disk, loses it in the tree, too; the rest is as above. */
void launch_removed(struct submit *s, struct upload *u, const char *name, pid_t process,
		    uint64_t ticket);
/* Answer a rename with ERR, but not with EINVAL, which mv takes for "cannot move to a subdirectory of itself". */
void launch_reply_rename(struct submit *s, uint64_t ticket, int err);

/* The content of W is not what its writer meant (upload_flaw): report that in NAME.error, if U's name submits. */
void launch_show_flaw(struct submit *s, struct upload *u, struct upload_writer *w,
		      struct record_owner owner);
