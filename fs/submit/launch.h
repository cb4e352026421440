/* SPDX-License-Identifier: MIT */
/*
 * A launch sends the contents of a file to the backend, shows the result, and answers the FUSE
 * request that waits for it. If that request timed out or was interrupted, the launch continues:
 * kxfs never withdraws a request to the backend.
 */
#pragma once

#include "fs/submit/save.h"
#include "fs/vfs/fuse.h"

/* Deadlines of a close and of a rename that wait for a launch. */
#define LAUNCH_CLOSE_MS	 30000
#define LAUNCH_RENAME_MS 3000

/* Return the owner of a file that REQ makes. */
struct file_owner launch_owner(const struct submit *s, fuse_req_t req);

/*
 * Submit the contents of W, a writer of U that has finished, and answer REQ (may be NULL) with the
 * result. If there is nothing to submit, answer REQ when the bytes are on disk. FUSE thread.
 */
void launch_close(struct submit *s, struct upload *u, struct upload_writer *w,
		  struct file_owner owner, fuse_req_t req);
/* Do WHAT (SAVE_BYTES or SAVE_SYNC) for U, then answer REQ. FUSE thread. */
void launch_wait(struct submit *s, struct upload *u, enum save_what what, fuse_req_t req);
/*
 * PROCESS renames U to NAME with the parked request TICKET. Submit U's bytes, which must be in
 * memory. If the backend accepts the bytes while the request still waits, rename U.
 */
void launch_rename(struct submit *s, struct upload *u, const char *name, struct file_owner owner,
		   pid_t process, uint64_t ticket);
/*
 * The request TICKET of PROCESS has renamed U to NAME on disk, or removed U if NAME is NULL. Do the
 * same in the tree. If a writer thereby loses its file, explain that in NAME.error of the lost
 * file.
 */
void launch_renamed(struct submit *s, struct upload *u, const char *name, pid_t process,
		    uint64_t ticket);
/* Answer a rename or unlink with ERR. Replace EINVAL, which mv would explain wrongly. */
void launch_reply_rename(struct submit *s, uint64_t ticket, int err);
