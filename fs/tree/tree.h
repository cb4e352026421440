/* SPDX-License-Identifier: MIT */
/*
 * The files of the mount except submit/ and dryrun/: jobs/, history/, queues/, `changes` and .kxfs.
 *
 * There is one struct tree per mount, made and owned by fs/mount; it is the object (fs/vfs/node.h)
 * of every node that is not below a job. Below a job the object is a struct job_ref (job_ref.h), which
 * has the job and the replica. This folder stores no job: a file gets the snapshot from the backend
 * when it is opened, and renders that; recently rendered texts are cached (job_text.c). The
 * blocking files (job_live.c, changes.c) are streams; the backend's events wake them (tree.c).
 *
 * The files of this folder: all files below a job use job_ref. job_text, job_live, follow and
 * log_file implement kinds of files; job and jobs make directories of these. list, queues, changes
 * and control are independent. All of it runs on the FUSE thread, except streams and events.
 */
#pragma once

#include <stdatomic.h>

#include "backend/backend.h"
#include "fs/vfs/node.h"
#include "fs/vfs/stream.h"
#include "fs/vfs/text.h"
#include "spec/job/list.h"

/*
 * The creator sets all members before the mount is up. Afterwards they do not change, unless noted
 * otherwise.
 */
struct tree {
	struct fs *fs;
	struct backend *backend;
	const char *submitter;	   /* user@host of the mount */
	struct rendered *rendered; /* texts of jobs */
	/*
	 * The jobs that this mount may cancel and control (-o cancel): "own" jobs belong to this
	 * state directory, "mine" to this user, "others" are the rest.
	 */
	bool may_end_own, may_end_mine, may_end_others;
	bool read_only;	     /* the kernel refuses all changes */
	bool logged_loss;    /* job_ref_state_is_gone has logged that; FUSE thread */
	struct lists *lists; /* the texts of list and list.jsonl (list.c) */
	atomic_uint aheads;  /* open files with a buffer for reading ahead (log_file.c) */
};

/* Return the tree of a node that is not below a job. */
static inline struct tree *tree_of(const struct node *node)
{
	return node->object;
}

/* Make an empty cache of the texts of `list` and `list.jsonl` (list.c). */
struct lists *lists_new(void);
void lists_free(struct lists *lists); /* NULL is allowed */

/*
 * A cache of recently rendered texts of snapshots (job_text.c). A reader first requests the size of
 * a file, and then opens it, and a process that waits for a job reads the same file repeatedly. A
 * snapshot never changes, so kxfs renders its text once. FUSE thread only, except rendered_new and
 * rendered_free.
 */
/* A function that makes a text that depends only on JOB; malloc'ed. */
typedef void (*rendered_fn)(const struct spec_job *job, char **ret, size_t *ret_len);

struct rendered *rendered_new(void);
void rendered_free(struct rendered *r); /* NULL is allowed */

/* Return the text that FN makes of JOB, malloc'ed. */
void rendered_text(struct rendered *r, const struct spec_job *job, rendered_fn fn, char **ret,
		   size_t *ret_len);

/* A file that lists all jobs of a folder, in some format. */
struct list_class {
	struct text_class text;
	enum backend_place place;
	enum spec_list_form form;
};

/* Functions for backend_events, with the struct tree as DATA. I/O thread. */
void tree_job_event(void *data, const struct spec_job *old, const struct spec_job *job);
void tree_log_event(void *data, struct log *log);

/* The directories and files in the root of the mount; their object is the struct tree. */
extern const struct node_class jobs_class, history_class; /* jobs.c */
/* The link `archive`, and a when() for it: true if there is an archive. (jobs.c) */
extern const struct node_class archive_link_class;
bool archive_is_known(void *tree, struct node *dir);
/* list.c: `list` and `list.jsonl`, in the root and in history/ */
extern const struct list_class list_jobs_table, list_jobs_json, list_history_table,
	list_history_json;
extern const struct node_class queues_class;	   /* queues.c */
extern const struct node_class changes_link_class; /* changes.c: the link `changes` */
extern const struct node_dir_class live_class;	   /* changes.c: live/, which lists that link */
/* changes.c: the file itself: a line for each present job, then one for each change */
extern const struct node_class changes_class;
/* If S is an open `changes`, append the change and return true. I/O thread. */
bool changes_job_event(struct stream *s, const struct spec_job *old, const struct spec_job *job);
extern const struct node_dir_class control_class; /* control.c: .kxfs */
/* A when() for the entry of queues/: true if there are queues. (queues.c) */
bool queues_are_known(void *tree, struct node *dir);
