/* SPDX-License-Identifier: MIT */
/*
 * The files of the mount except submit/ and dryrun/: jobs/, history/, queues/, list, `changes` and
 * .kxfs.
 *
 * fs/mount makes and owns the one struct tree. It is the object (fs/vfs/node.h) of every node
 * outside of a job's directory; in a job's directory, the object is a struct job_ref (job_ref.h).
 * This folder stores no jobs: opening a file gets the job's snapshot from the backend and renders
 * it. Files whose reading blocks (job_live.c, follow.c, changes.c) are streams; the backend's
 * events wake them (tree.c). All functions run on the FUSE thread, except those of streams and
 * events.
 */
#pragma once

#include <stdatomic.h>

#include "backend/backend.h"
#include "fs/vfs/node.h"
#include "fs/vfs/stream.h"
#include "fs/vfs/text.h"
#include "spec/job/list.h"

/* Render a text that depends only on JOB. Set *RET to the text, malloc'ed. */
typedef void (*rendered_fn)(const struct spec_job *job, char **ret, size_t *ret_len);

/*
 * A cache of the text that was rendered last (job_text.c). A reader usually requests the size of a
 * file before opening it, and both requests need the text. FUSE thread.
 */
struct rendered {
	/*
	 * A reference to the rendered snapshot, so that no other snapshot gets the same address.
	 * NULL if there is no text.
	 */
	const struct spec_job *job;
	rendered_fn fn;
	char *text;
	size_t len;
};
void rendered_clear(struct rendered *r);
/* Set *RET to the text that FN renders for JOB, malloc'ed. */
void rendered_text(struct rendered *r, const struct spec_job *job, rendered_fn fn, char **ret,
		   size_t *ret_len);

/* Set before the mount is up; constant except where noted. */
struct tree {
	struct fs *fs;
	struct backend *backend;
	const char *submitter; /* user@host of the mount */
	struct rendered rendered;
	/*
	 * Which jobs -o cancel allows this mount to end. OWN: jobs that were submitted through this
	 * state directory. MINE: other jobs of this user. OTHERS: all other jobs.
	 */
	bool may_end_own, may_end_mine, may_end_others;
	bool read_only;	  /* true if the whole mount is read-only */
	bool logged_loss; /* true if job_ref_state_is_gone has logged; FUSE thread */
	struct lists *lists;
	atomic_uint aheads; /* open files with a read-ahead buffer (log_file.c) */
};

/* NODE must be outside of a job's directory. */
static inline struct tree *tree_of(const struct node *node)
{
	return node->object;
}

/* A cache of the texts of `list` and `list.jsonl` (list.c). */
struct lists *lists_new(void);
void lists_free(struct lists *lists); /* NULL is allowed */

struct list_class {
	struct text_class text;
	enum backend_place place;
	enum spec_list_form form;
};

/* For struct backend_events. DATA is the struct tree. I/O thread. */
void tree_job_event(void *data, const struct spec_job *old, const struct spec_job *job);
void tree_log_event(void *data, struct log *log);

/* The entries of the mount's root. */
extern const struct node_class jobs_class, history_class; /* jobs.c */
/* the link `archive`; archive_is_known is true if the mount has an archive (jobs.c) */
extern const struct node_class archive_link_class;
bool archive_is_known(void *tree, struct node *dir);
/* `list` and `list.jsonl`, in the root and in history/ (list.c) */
extern const struct list_class list_jobs_table, list_jobs_json, list_history_table,
	list_history_json;
extern const struct node_class queues_class;	   /* queues.c */
extern const struct node_class changes_link_class; /* the link `changes` */
extern const struct node_dir_class live_class;	   /* live/ with the link live/changes */
/* the file .kxfs/.live/changes, to which both links lead */
extern const struct node_class changes_class;
/* If S is an open `changes`, append the change from OLD to JOB and return true. I/O thread. */
bool changes_job_event(struct stream *s, const struct spec_job *old, const struct spec_job *job);
extern const struct node_dir_class control_class; /* the directory .kxfs/ */
/* text for .kxfs/info and kxfs doctor if kxfs has a pid namespace of its own */
#define CONTROL_OTHER_NAMESPACE                                                                    \
	"not seen: the processes that write to submit/ are in a different pid namespace, so kxfs " \
	"may launch a file each time they close the file (see kxfs-submit(7)). To fix this, set "  \
	"shareProcessNamespace: true in the pod"
/* true if there are queues */
bool queues_are_known(void *tree, struct node *dir);
