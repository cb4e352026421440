/* SPDX-License-Identifier: MIT */
/*
 * The files of the mount except submit/ and dryrun/: jobs/, history/, queues/, `changes` and .kxfs.
 *
 * There is one struct tree per mount, made and owned by fs/mount. Every node outside of a job's
 * directory represents the struct tree (fs/vfs/node.h). A node in a job's directory represents a
 * struct job_ref (job_ref.h), which names the job and the replica. This folder stores no jobs. When
 * a process opens a file, this folder gets the job's snapshot from the backend and renders it. A
 * small cache keeps the texts that were rendered last (job_text.c). The blocking files (job_live.c,
 * follow.c, changes.c) are streams, which wait for the backend's events (tree.c).
 *
 * The modules: job_ref is the base of everything in a job's directory. job_text, job_live, follow
 * and log_file implement kinds of files; job and jobs make directories of these. list, queues,
 * changes and control don't depend on each other. All functions run on the FUSE thread, except
 * those of streams and events.
 */
#pragma once

#include <stdatomic.h>

#include "backend/backend.h"
#include "fs/vfs/node.h"
#include "fs/vfs/stream.h"
#include "fs/vfs/text.h"
#include "spec/job/list.h"

/* The creator sets all members before the mount is up. They are constant except where noted. */
struct tree {
	struct fs *fs;
	struct backend *backend;
	const char *submitter;	   /* user@host of the mount */
	struct rendered *rendered; /* cache of texts of jobs */
	/*
	 * These members record which jobs this mount may cancel and control (-o cancel). "own" jobs
	 * were submitted with this state directory, "mine" jobs by this user. "others" are all
	 * other jobs.
	 */
	bool may_end_own, may_end_mine, may_end_others;
	bool read_only;	     /* true if the kernel refuses all changes */
	bool logged_loss;    /* true if job_ref_state_is_gone has logged its error; FUSE thread */
	struct lists *lists; /* the texts of list and list.jsonl (list.c) */
	atomic_uint aheads;  /* number of open files with a read-ahead buffer (log_file.c) */
};

/* Return the tree of NODE, which must be outside of a job's directory. */
static inline struct tree *tree_of(const struct node *node)
{
	return node->object;
}

/* Make an empty cache of the texts of `list` and `list.jsonl` (list.c). */
struct lists *lists_new(void);
void lists_free(struct lists *lists); /* NULL is allowed */

/*
 * A cache of recently rendered texts of snapshots (job_text.c). Usually a reader requests the size
 * of a file and then opens the file. A process that waits for a job reads the same file repeatedly.
 * A snapshot never changes, so kxfs renders it only once for all of these requests. FUSE thread
 * only, except rendered_new and rendered_free.
 */
/* Render a text that depends only on JOB. Set *RET to the text, malloc'ed. */
typedef void (*rendered_fn)(const struct spec_job *job, char **ret, size_t *ret_len);

struct rendered *rendered_new(void);
void rendered_free(struct rendered *r); /* NULL is allowed */

/* Set *RET to the text that FN renders for JOB, malloc'ed. */
void rendered_text(struct rendered *r, const struct spec_job *job, rendered_fn fn, char **ret,
		   size_t *ret_len);

/* The class of a file that lists all jobs of the folder PLACE in the format FORM. */
struct list_class {
	struct text_class text;
	enum backend_place place;
	enum spec_list_form form;
};

/* Functions for struct backend_events. DATA is the struct tree. I/O thread. */
void tree_job_event(void *data, const struct spec_job *old, const struct spec_job *job);
void tree_log_event(void *data, struct log *log);

/* The directories and files in the root of the mount; their object is the struct tree. */
extern const struct node_class jobs_class, history_class; /* jobs.c */
/* The link `archive`, and the when() of its entry: true if the mount has an archive. (jobs.c) */
extern const struct node_class archive_link_class;
bool archive_is_known(void *tree, struct node *dir);
/* list.c: `list` and `list.jsonl`, in the root and in history/ */
extern const struct list_class list_jobs_table, list_jobs_json, list_history_table,
	list_history_json;
extern const struct node_class queues_class;	   /* queues.c */
extern const struct node_class changes_link_class; /* changes.c: the link `changes` */
extern const struct node_dir_class live_class;	   /* changes.c: live/ in the root */
/* changes.c: the file to which the link `changes` leads */
extern const struct node_class changes_class;
/*
 * If S is an open `changes`, append the change from OLD to JOB and return true. Otherwise return
 * false. I/O thread.
 */
bool changes_job_event(struct stream *s, const struct spec_job *old, const struct spec_job *job);
extern const struct node_dir_class control_class; /* control.c: .kxfs */
/* The when() of the entry queues/: true if there are queues. (queues.c) */
bool queues_are_known(void *tree, struct node *dir);
