/* SPDX-License-Identifier: MIT */
/*
 * The files of the mount but for submit/ and dryrun/: jobs/, history/, queues/, `changes` and .kxfs.
 *
 * There is one struct tree a mount, made and owned by fs/mount; it is the object (fs/vfs/node.h) of every node that is
 * not below a job. Below a job the object is a struct place (place.h), which says which job and which replica. Nothing
 * of a job is stored here: a file asks the backend for the snapshot when it is opened, and renders from that; of the
 * texts that were rendered last some are kept (rendered.c). The blocking files (job_live.c, changes.c) are streams; the
 * backend's news wake them (tree.c).
 *
 * The files of this folder: place at the bottom; above it job_text, job_ctl, job_live and log_file, which are sorts of
 * files; replica, job and jobs, which make directories of them; list, queues, changes and control stand by themselves.
 * All of it runs on the FUSE thread, but for streams and news.
 */
#pragma once

#include <stdatomic.h>

#include "backend/backend.h"
#include "fs/tree/rendered.h"
#include "fs/vfs/node.h"
#include "fs/vfs/text.h"
#include "spec/job/list.h"

/* Whoever makes it sets these before the mount is up; then they are only read, unless said otherwise. */
struct tree {
	struct fs *fs;
	struct backend *backend;
	const char *submitter;	   /* user@host of the mount */
	struct rendered *rendered; /* texts of jobs */
	/*
	 * May this mount cancel and control jobs (-o cancel): those of this state directory, of this user, of others?
	 */
	bool may_end_own, may_end_mine, may_end_others;
	bool read_only;	     /* the kernel refuses whatever changes something */
	bool told_loss;	     /* place_state_is_gone has logged that; FUSE thread */
	struct lists *lists; /* the texts of list and list.jsonl (list.h) */
	atomic_uint aheads;  /* files that have memory for reading ahead (ahead.c) */
};

/* The tree of a node that is not below a job. */
static inline struct tree *tree_of(const struct node *node)
{
	return node->object;
}

/* The texts of `list` and `list.jsonl`, of which none is made yet (list.c). */
struct lists *lists_new(void);
void lists_free(struct lists *lists); /* NULL is allowed */

/* A file that lists all jobs of a place, in some form. */
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
/* The link `archive`, and a when() for it: is there an archive? (jobs.c) */
extern const struct node_class archive_link_class;
bool archive_is_known(void *tree, struct node *dir);
/* list.c: `list` and `list.jsonl`, in the root and in history/ */
extern const struct list_class list_jobs_table, list_jobs_json, list_history_table,
	list_history_json;
extern const struct node_class queues_class;	   /* queues.c */
extern const struct node_class changes_link_class; /* changes.c: the link `changes` */
extern const struct node_dir_class live_class;	   /* changes.c: live/, which lists that link */
extern const struct node_dir_class control_class;  /* control.c: .kxfs */
/* A when() for the entry of queues/: are there queues? (queues.c) */
bool queues_are_known(void *tree, struct node *dir);
