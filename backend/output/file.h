/* SPDX-License-Identifier: MIT */
/*
 * A struct file is one container's log on disk (logs/KEY, and the table of its lines, lines/KEY),
 * or a job's merged log (KEY is NULL). It is found by its name. The readers of the log have
 * references to it and, while the job is open, so does the job (output.c). All of them share its
 * state. Any thread may call these functions, unless noted otherwise. All functions may wait for
 * the disk.
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
 * Call this before any file_get if output is fetched from a cluster. Then bytes may still arrive
 * for a log that is not known yet, or whose file does not exist. So such a log has not ended.
 */
void files_expect_more(struct files *all);
/*
 * Mark those logs of job ID that have not ended as cut (log_is_cut), because they are about to be
 * removed. I/O thread.
 */
void files_cut(struct files *all, const char *id);
/*
 * End the logs of job ID, and remove them from the table. Current readers can continue to read. A
 * later lookup of the same name returns a new file. I/O thread.
 */
void files_forget(struct files *all, const char *id);

/* Return a new reference to the file of this name, which need not exist on disk. */
struct file *file_get(struct files *all, const char *id, const char *key);
/* Like file_get, but return NULL if nobody has a reference to the file yet. */
struct file *file_find(struct files *all, const char *id, const char *key);
struct file *file_ref(struct file *f);
void file_unref(struct file *f); /* NULL is allowed */
const char *file_id(const struct file *f);
const char *file_key(const struct file *f);
void *file_owner(const struct file *f);
int file_dir(const struct file *f); /* see files_dir */
/* True if a lookup of F's name still returns F. */
bool file_is_listed(struct file *f);

/*
 * file_begin records that more bytes may arrive. From then on, the log can be opened even if its
 * file does not exist yet. file_end records that no more bytes will arrive.
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
 * Notify the readers of F that it has grown or ended, or that file_deny has changed it. I/O thread.
 * The caller must have a reference to F.
 */
void file_notify(struct file *f);
/*
 * Until file_hide, let followers of F read the N bytes at the offset FROM from memory. In memory,
 * these bytes are at BYTES. I/O thread.
 */
void file_show(struct file *f, uint64_t from, const char *bytes, size_t n);
void file_hide(struct file *f);
/*
 * Record that output is lost at the offset AT. Followers may have read lost bytes from memory; the
 * log has other bytes there. I/O thread.
 */
void file_lost(struct file *f, uint64_t at);
/*
 * Add MORE (1, 0 or -1) to the number of fetches of F's output that are in progress. Return the new
 * number.
 */
unsigned file_fetch(struct file *f, int more);
/*
 * Open the files that the merged log F refers to, and keep them open, because their names are about
 * to be removed.
 */
void file_hold(struct file *f);

/* Open a reader of F in FORM. Return 0 or a negative errno. */
int file_open(struct file *f, enum log_form form, struct log **ret);
struct file *log_file(struct log *log);
/* Get the status of F in FORM, whether it has readers or not. Return 0 or a negative errno. */
int file_stat(struct file *f, enum log_form form, struct log_stat *ret);
