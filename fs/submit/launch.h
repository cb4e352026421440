/* SPDX-License-Identifier: MIT */
/*
 * From contents to verdicts: a launch takes what is in the file now, gives it to the backend, and when that has
 * answered shows the verdict and answers the request that waits. The verdict is the same if nobody waits any more: a
 * request to the backend is never taken back.
 */
#ifndef KXFS_FS_SUBMIT_LAUNCH_H
#define KXFS_FS_SUBMIT_LAUNCH_H

#include "fs/submit/save.h"
#include "fs/vfs/fuse.h"

/* The owner of what the process behind REQ makes. */
struct record_owner launch_owner(const struct submit *s, fuse_req_t req);

/*
 * The writer W of U is done: submit the content, if there is anything to submit. REQ is answered, now or
 * with the verdict; NULL: nobody waits. FUSE thread.
 */
void launch_close(struct submit *s, struct upload *u, struct upload_writer *w,
		  struct record_owner owner, fuse_req_t req);
/* Submit U as NAME, which it gets when the job is accepted and REQ still waits. FUSE thread. */
void launch_rename(struct submit *s, struct upload *u, const char *name, fuse_req_t req);
/* The content of U is not what its writer meant (upload_flaw): show that, if its name submits. FUSE thread. */
void launch_show_flaw(struct submit *s, struct upload *u, struct record_owner owner);

#endif
