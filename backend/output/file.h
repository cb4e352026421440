/* SPDX-License-Identifier: MIT */
/*
 * One container's log on disk (logs/KEY and the table of its lines, lines/KEY), or a job's merged log (KEY is NULL):
 * one object for all who use it, found by its name. Its readers have references, and so has its job while that is open
 * (output.c); what one of them learns the others see. Any thread, unless said otherwise; all functions may wait for the
 * disk.
 */
#pragma once

#include "backend/output/index.h"
#include "backend/output/log.h"

struct files; /* the table of all files that somebody refers to */
struct file;

/* OWNER is passed to EVENTS, which is copied. DIR_FD is STATE/jobs, and belongs to the table from now on. */
struct files *files_new(void *owner, int dir_fd, const struct output_events *events);
/* Each file has a reference to the table, too. */
void files_unref(struct files *all);
int files_dir(const struct files *all);
/*
 * Output is fetched, so bytes may still come for a log that nobody knows yet, or whose file is not there. To be called
 * before any file is made.
 */
void files_expect_more(struct files *all);
/* Forget the names of ID's logs: whoever has such a file reads on, and whoever asks for the name gets another file. */
void files_forget(struct files *all, const char *id);

/* The file of this name, as a new reference. There need not be anything on disk. */
struct file *file_get(struct files *all, const char *id, const char *key);
/*
 * The merged log of a job whose folder ID still belongs to another job. Nothing is known of it; files_forget makes it
 * stale.
 */
struct file *file_await(struct files *all, const char *id);
/* Like file_get, but NULL unless somebody refers to the file. */
struct file *file_find(struct files *all, const char *id, const char *key);
struct file *file_ref(struct file *f);
void file_unref(struct file *f); /* NULL is allowed */
const char *file_id(const struct file *f);
const char *file_key(const struct file *f);
void *file_owner(const struct file *f);
int file_dir(const struct file *f); /* see files_dir */
/* Can F still be found by its name? */
bool file_is_listed(struct file *f);

/*
 * file_begin: from now on more bytes may come, and whoever opens the log does not need its file to be there. file_end:
 * no more bytes will come.
 */
void file_begin(struct file *f);
void file_end(struct file *f);
bool file_has_ended(const struct file *f);
/* The user has no right to read what is to be fetched of F; or (not DENIED) has it. */
void file_deny(struct file *f, bool denied);
/* SIZE is what of a merged log whose job is open is on disk. */
void file_publish(struct file *f, const struct index_size *size);
/*
 * SIZE bytes of a container's log are on disk. Returns how many were ever seen there: the size that is shown only
 * grows.
 */
uint64_t file_grow(struct file *f, uint64_t size);
/* Tell those who read F that it has grown or ended, or is denied or not. I/O thread. The caller has a reference. */
void file_notify(struct file *f);
/*
 * The N bytes that begin at FROM are in memory: whoever follows F may have them from there, until file_hide. I/O
 * thread.
 */
void file_show(struct file *f, uint64_t from, const char *bytes, size_t n);
void file_hide(struct file *f);
/* The bytes that were to follow byte AT, where the file on disk ends, are lost. I/O thread. */
void file_lost(struct file *f, uint64_t at);
/* MORE (1 or -1) fetches are under way of what had been printed when somebody opened F. Returns how many are now. */
unsigned file_fetch(struct file *f, int more);
/* Keep open the files that the merged log F is made of: their names are about to go. */
void file_hold(struct file *f);

/* A reader of F in FORM. 0 or a negative errno. */
int file_open(struct file *f, enum log_form form, struct log **ret);
struct file *log_file(struct log *log);
/* What can be read of F in FORM, whether or not anybody reads it. */
int file_stat(struct file *f, enum log_form form, struct log_stat *ret);
