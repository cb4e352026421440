/* SPDX-License-Identifier: MIT */
/*
 * A struct file is one container's log on disk (logs/KEY and lines/KEY), or a job's merged log (KEY
 * is NULL). All readers of the log and its job (output.c) share it, each with a reference. Any
 * thread may call these functions, unless noted otherwise. file_hold, file_open and file_stat may
 * wait for the disk.
 */
#pragma once

#include "backend/output/index.h"
#include "backend/output/log.h"

struct files; /* the table of files, by name */
struct file;

/* DIR_FD is STATE/output; the table closes it. EVENTS is copied. file_owner returns OWNER. */
struct files *files_new(void *owner, int dir_fd, const struct output_events *events);
/* Drop the owner's reference to the table. Each file also has a reference. */
void files_unref(struct files *all);
int files_dir(const struct files *all);
/*
 * Call this before any file_get if output is fetched. A new file then counts as not ended until
 * file_end. Without this call, a new file counts as ended until file_begin.
 */
void files_expect_more(struct files *all);
/* Make log_is_cut true for the logs of job ID that have not ended yet. I/O thread. */
void files_cut(struct files *all, const char *id);
/* End and forget the logs of job ID. Current readers can continue. I/O thread. */
void files_forget(struct files *all, const char *id);

/* Return a new reference. The file need not exist on disk. */
struct file *file_get(struct files *all, const char *id, const char *key);
struct file *file_ref(struct file *f);
void file_unref(struct file *f); /* NULL is allowed */
const char *file_id(const struct file *f);
const char *file_key(const struct file *f);
void *file_owner(const struct file *f);
/* True if file_get with F's name still returns F. */
bool file_is_listed(struct file *f);

/*
 * file_begin records that bytes may arrive. From then on, the log can be opened even if its file
 * does not exist yet. file_end records that no more bytes will arrive, and notifies the readers.
 */
void file_begin(struct file *f);
void file_end(struct file *f);
bool file_has_ended(const struct file *f);
/* Record whether the cluster denies the user access to F. */
void file_deny(struct file *f, bool denied);
bool file_is_denied(const struct file *f);
/* Publish SIZE as the size on disk of the merged log F. */
void file_publish(struct file *f, const struct index_size *size);
/* Record that a container's log has SIZE bytes. Return the largest size recorded so far. */
uint64_t file_grow(struct file *f, uint64_t size);
/* Notify F's readers of growth, end or denial. The caller must have a reference. I/O thread. */
void file_notify(struct file *f);
/* Add MORE (1, 0 or -1) to the number of fetches of F in progress. Return the new number. */
unsigned file_fetch(struct file *f, int more);
/* If the merged log F has readers, open all its files, because their names will be removed. */
void file_hold(struct file *f);

bool file_is_read(struct file *f);
/* Open a reader of F in FORM. Return 0 or a negative errno. */
int file_open(struct file *f, enum log_form form, struct log **ret);
struct file *log_file(struct log *log);
/* Get the status of F, with or without readers. Return 0 or a negative errno. */
int file_stat(struct file *f, enum log_form form, struct log_stat *ret);
