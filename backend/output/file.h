/* SPDX-License-Identifier: MIT */
/*
 * One container's log on disk (logs/KEY and the table of its lines, lines/KEY), or a job's merged
 * log (KEY is NULL): one shared object, found by its name. Its readers have references, and so has
 * its job while that is open (output.c); all of them share its state. Any thread, unless noted
 * otherwise; all functions may wait for the disk.
 */
#pragma once

#include "backend/output/index.h"
#include "backend/output/log.h"

struct files; /* the table of all files with references */
struct file;

/*
 * OWNER is passed to EVENTS, which is copied. DIR_FD is STATE/output, and belongs to the table from
 * now on.
 */
struct files *files_new(void *owner, int dir_fd, const struct output_events *events);
/* Each file has a reference to the table, too. */
void files_unref(struct files *all);
int files_dir(const struct files *all);
/*
 * Call this before any file_get if output is fetched: then bytes may still arrive for a log that is
 * not known yet, or whose file does not exist.
 */
void files_expect_more(struct files *all);
/* ID's logs are going to be removed: those that have not ended are cut (log_is_cut). I/O thread. */
void files_cut(struct files *all, const char *id);
/*
 * End ID's logs, and forget their names: present readers continue, and a later lookup of a name
 * finds another file. I/O thread.
 */
void files_forget(struct files *all, const char *id);

/* Return the file of this name, a new reference. It need not exist on disk. */
struct file *file_get(struct files *all, const char *id, const char *key);
/* Like file_get, but NULL unless there are references to the file. */
struct file *file_find(struct files *all, const char *id, const char *key);
struct file *file_ref(struct file *f);
void file_unref(struct file *f); /* NULL is allowed */
const char *file_id(const struct file *f);
const char *file_key(const struct file *f);
void *file_owner(const struct file *f);
int file_dir(const struct file *f); /* see files_dir */
/* True if F can still be found by its name. */
bool file_is_listed(struct file *f);

/*
 * file_begin: more bytes may arrive from now on, and the log can be opened before its file exists.
 * file_end: no more bytes will arrive.
 */
void file_begin(struct file *f);
void file_end(struct file *f);
bool file_has_ended(const struct file *f);
/* Record whether the cluster denies the user access to the output of F. */
void file_deny(struct file *f, bool denied);
bool file_is_denied(const struct file *f);
/* Set the size of the merged log F, whose job is open, to that of its index on disk. */
void file_publish(struct file *f, const struct index_size *size);
/*
 * Record that SIZE bytes of a container's log are on disk. Return the largest size so far: the
 * visible size only grows.
 */
uint64_t file_grow(struct file *f, uint64_t size);
/*
 * Notify the readers of F that it has grown or ended, or that file_deny has changed it. I/O thread.
 * The caller has a reference.
 */
void file_notify(struct file *f);
/*
 * Let followers of F read the N bytes that begin at FROM from memory, until file_hide. I/O thread.
 */
void file_show(struct file *f, uint64_t from, const char *bytes, size_t n);
void file_hide(struct file *f);
/* Record that the bytes after AT, the end of the file on disk, are lost. I/O thread. */
void file_lost(struct file *f, uint64_t at);
/*
 * Add MORE (1 or -1) to the number of fetches in progress for openers of F. Return the new number.
 */
unsigned file_fetch(struct file *f, int more);
/* Keep open the files that the merged log F refers to: their names are about to be removed. */
void file_hold(struct file *f);

/* Open a reader of F in FORM. Return 0 or a negative errno. */
int file_open(struct file *f, enum log_form form, struct log **ret);
struct file *log_file(struct log *log);
/* Return the readable size of F in FORM, with or without readers. */
int file_stat(struct file *f, enum log_form form, struct log_stat *ret);
