/* SPDX-License-Identifier: MIT */
/*
 * submit/: files that are written here run. dryrun/: the same, but nothing is launched, and the file
 * becomes the manifest that would be. Contents, verdict links (NAME.job) and verdict texts (NAME.error)
 * lie in STATE/submit/ and STATE/dryrun/ exactly as they are shown, so they survive a remount.
 * When a writer is done is decided by writer.h; docs/kxfs-layout.5 states the rules for users.
 */
#ifndef KXFS_FS_SUBMIT_H
#define KXFS_FS_SUBMIT_H

#include "fs/fs.h"
#include "fs/node.h"

/*
 * What CLASS, submit_class or dryrun_class, shows. Reads its directory in the state (made if absent).
 * 0, or a negative errno with *RET_TEXT. Before the loop runs.
 */
int submit_new(struct fs *fs, const struct node_class *class, struct submit **ret, char **ret_text);
/* The backend's news, while it starts: backend_events.launched. */
void submit_launched(struct submit *s, const char *file, const char *id, int64_t time);
/* The backend is up: what became of submissions that were under way when the last mount ended. */
void submit_settle(struct submit *s);
/* After the loop has ended, and handles and nodes are freed. NULL is allowed. */
void submit_free(struct submit *s);

/*
 * I/O thread, now and then: remove files whose job finished more than 7 days ago, and manifests that
 * old.
 */
void submit_expire(struct submit *s, int64_t now);

/* The classes of MOUNT/submit and MOUNT/dryrun, where a file becomes the manifest it would make. */
extern const struct node_class submit_class, dryrun_class;

#endif
