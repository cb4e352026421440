/* SPDX-License-Identifier: MIT */
/*
 * A struct file is one container's log on disk (logs/KEY, and the table of its lines, lines/KEY),
 * or a job's merged log (KEY is NULL). file_get finds it by the log's name. All readers of the log
 * share it, and so does the job (output.c) while it is open: each has a reference. Any thread may
 * call these functions, unless noted otherwise. All functions may wait for the disk.
 */
#pragma once

#include "backend/output/index.h"
#include "backend/output/log.h"

struct files; /* the table of all files with references */
struct file;

/*
 * Create a table. file_owner returns OWNER. EVENTS is copied. DIR_FD is STATE/output, and the table
 * takes ownership of it.
 */
struct files *files_new(void *owner, int dir_fd, const struct output_events *events);
/* Drop a reference to the table. Each file has a reference, too. */
void files_unref(struct files *all);
int files_dir(const struct files *all);
/*
 * Call this before any file_get if output is fetched from a cluster. A log then counts as not ended
 * until file_end, even if it has no file yet, because its bytes may still arrive.
 */
void files_expect_more(struct files *all);
/*
 * Mark logs of job ID as cut (log_is_cut), because these logs are about to be removed. Skip logs
 * that have ended. I/O thread.
 */
void files_cut(struct files *all, const char *id);
/*
 * End the logs of job ID, and remove them from the table. Current readers can continue. A later
 * file_get with a log's name returns a new file. I/O thread.
 */
void files_forget(struct files *all, const char *id);

/* Return a new reference to the file of this name. The file need not exist on disk. */
struct file *file_get(struct files *all, const char *id, const char *key);
struct file *file_ref(struct file *f);
void file_unref(struct file *f); /* NULL is allowed */
const char *file_id(const struct file *f);
const char *file_key(const struct file *f);
void *file_owner(const struct file *f);
/* True if file_get with F's name still returns F. */
bool file_is_listed(struct file *f);

/*
 * file_begin records that more bytes may arrive. From then on, the log can be opened even if its
 * file does not exist yet. file_end records that no more bytes will arrive, and notifies the
 * readers (file_notify), unless F has ended already.
 */
void file_begin(struct file *f);
void file_end(struct file *f);
bool file_has_ended(const struct file *f);
/* Record whether the cluster denies the user access to the output of F. */
void file_deny(struct file *f, bool denied);
bool file_is_denied(const struct file *f);
/* Publish SIZE, the size of the index on disk, as the size of the merged log F. */
void file_publish(struct file *f, const struct index_size *size);
/*
 * Record that a container's log has SIZE bytes on disk. Return the largest size recorded so far,
 * because the visible size must never shrink.
 */
uint64_t file_grow(struct file *f, uint64_t size);
/*
 * Notify the readers of F that F has grown or ended, or that file_deny was called with a new value.
 * I/O thread. The caller must have a reference to F.
 */
void file_notify(struct file *f);
/*
 * Add MORE (1, 0 or -1) to the number of fetches of F's output in progress. Return the new number.
 */
unsigned file_fetch(struct file *f, int more);
/*
 * If the merged log F has readers, open the files that it refers to, and keep them open, because
 * their names are about to be removed.
 */
void file_hold(struct file *f);

/* True if F has readers. */
bool file_is_read(struct file *f);
/* Open a reader of F in FORM. Return 0 or a negative errno. */
int file_open(struct file *f, enum log_form form, struct log **ret);
struct file *log_file(struct log *log);
/* Get the status of F in FORM, whether it has readers or not. Return 0 or a negative errno. */
int file_stat(struct file *f, enum log_form form, struct log_stat *ret);
