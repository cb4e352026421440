/* SPDX-License-Identifier: MIT */
/*
 * One container's log on disk (logs/KEY and the table of its lines, lines/KEY), or a job's merged log (KEY is NULL):
 * one object for all who have to do with it, found by its name. The readers have references, and so has the job
 * that the log belongs to while that is open (output.c); what one of them learns the others see. Any thread,
 * unless said otherwise; all may wait for the disk.
 */
#pragma once

#include "backend/output/index.h"
#include "backend/output/log.h"

struct files; /* the table of those that somebody has */
struct file;

/* OWNER is whose it is. DIR_FD is STATE/jobs, and belongs to the table from now on. EVENTS is copied. */
struct files *files_new(void *owner, int dir_fd, const struct output_events *events);
/* Each file has a reference too. */
void files_unref(struct files *all);
int files_dir(const struct files *all);
/*
 * Output is fetched, so a log that nobody knows yet, or whose file is not there, may still come. To be called before
 * any file is made.
 */
void files_expect_more(struct files *all);
/* Forget the names of ID's logs: who has them reads on, and who comes finds others. */
void files_forget(struct files *all, const char *id);

/* The file of this name, a new reference. There need not be anything on disk. */
struct file *file_get(struct files *all, const char *id, const char *key);
/* Like file_get, if somebody has it; else NULL. */
struct file *file_find(struct files *all, const char *id, const char *key);
struct file *file_ref(struct file *f);
void file_unref(struct file *f); /* NULL is allowed */
const char *file_id(const struct file *f);
const char *file_key(const struct file *f);
void *file_owner(const struct file *f);
int file_dir(const struct file *f); /* as files_dir */
/* Can it still be found by its name? */
bool file_is_listed(struct file *f);

/* From now on more may come, and who opens the log does not need its file to be there; or nothing more will come. */
void file_begin(struct file *f);
void file_end(struct file *f);
bool file_has_ended(const struct file *f);
/* The user has no right to read what is to be fetched of it, or (not DENIED) has. */
void file_deny(struct file *f, bool denied);
/* What is on disk of a merged log whose job is open. */
void file_publish(struct file *f, const struct index_size *size);
/* Of a container's log SIZE bytes are on disk. Returns how many are, as far as was seen: what is shown only grows. */
uint64_t file_grow(struct file *f, uint64_t size);
/* Tell who reads it that it has grown or ended, or is denied or not. I/O thread. The caller has a reference. */
void file_notify(struct file *f);
/* N bytes that begin at FROM are in memory: who follows it may have them from there, until file_hide. I/O thread. */
void file_show(struct file *f, uint64_t from, const char *bytes, size_t n);
void file_hide(struct file *f);
/* What was to follow byte AT, which is all that is on disk, is lost. I/O thread. */
void file_lost(struct file *f, uint64_t at);
/*
 * Fetches of what had been printed when somebody opened it: MORE of them (1 or -1) are under way. Returns how many are
 * now.
 */
unsigned file_fetch(struct file *f, int more);
/* Keep what a merged log is made of open: its names are about to go. */
void file_hold(struct file *f);

/* A reader, in FORM. 0 or a negative errno. */
int file_open(struct file *f, enum log_form form, struct log **ret);
struct file *log_file(struct log *log);
/* What can be read of it in FORM, whether or not anybody does. */
int file_stat(struct file *f, enum log_form form, struct log_stat *ret);
