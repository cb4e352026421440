/* SPDX-License-Identifier: MIT */
/*
 * What is known of each name in submit/ or dryrun/, on disk: one small text file for each name in
 * STATE/submit.records/. A record is written beside its place and renamed into it, so it is whole after a crash of
 * kxfs. It is not synced here; save.h says what a power cut costs.
 *
 *	kxfs submit 2
 *	launched INODE SHA256	the file with this inode number was launched when its content had this digest; of only
 *				zeros where it is not known
 *	told			the content of the file has had its verdict, and is no job
 *	job ID TIME		NAME.job, and when it was made; times are ns since 1970
 *	pending UUID		this launch is under way; there may be more of them
 *	file UID GID		the owner of the file; absent: whom the disk says
 *	owner UID GID		the owner of NAME.job and NAME.error; absent: the user who mounts
 *	error TIME BYTES	NAME.error, and its text, which is the rest of the record
 *
 * Version 1 had the time of a launch that was under way in the place of its UUID, and a line `writing` where a file had
 * not been told.
 *
 * Lines that do not apply are absent. Of a record that is damaged, or of another version, nothing is believed: its
 * reader moves it out of the way (records_aside) and reports it.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* Bytes of a NAME.error. */
#define RECORD_MAX_ERROR 32768
#define RECORD_DIGEST	 65 /* bytes of a digest with its NUL */
#define RECORD_UUID	 37 /* of a UUID */

struct record_owner {
	uid_t uid;
	gid_t gid;
};

/* Plain data: names.c fills it, and takes it. */
struct record {
	bool is_launched;
	/* Of a launched file; 0: it is not on disk, and there is no such line. */
	uint64_t launched_ino;
	char launched[RECORD_DIGEST]; /* "": not known */
	bool told;
	char *job; /* id; NULL: none */
	int64_t job_time;
	char (*pending)[RECORD_UUID]; /* "" of version 1 */
	size_t n_pending;
	bool file_owned; /* FILE_OWNER is set: only root's kxfs can tell the disk */
	bool owned;	 /* OWNER is set */
	struct record_owner file_owner, owner;
	char *error; /* NULL: none */
	int64_t error_time;
};

void record_add_pending(struct record *r, const char *uuid);
/* malloc'ed. */
char *record_text(const struct record *r);
/* TEXT[LEN] is '\0'. 0, -ENOTSUP (another version) or -EINVAL (damaged). *RET is to be cleared in all cases. */
int record_parse(const char *text, size_t len, struct record *ret);
void record_clear(struct record *r);
bool record_is_empty(const struct record *r);

/* A directory of records, STATE/NAME.records. What follows may wait for the disk; one thread at a time. */
struct records;
/* It is made if need be. 0 or a negative errno. */
int records_open(const char *state_dir, const char *name, struct records **ret);
void records_free(struct records *all); /* NULL is allowed */
/* Its path; borrowed. */
const char *records_path(const struct records *all);

/* Make the record of NAME be R; it is removed if R is empty. 0 or a negative errno: the old record is still there. */
int records_write(struct records *all, const char *name, const struct record *r);
/* 0, -ENOENT, or as record_parse. */
int records_read(struct records *all, const char *name, struct record *ret);
/* Call FN with each name. 0 or a negative errno. */
int records_each(struct records *all, void (*fn)(void *data, const char *name), void *data);
/* Move what can't be read to STATE/unread/. ERR, as records_read gave it, is in the message about it. */
void records_aside(struct records *all, const char *name, int err);
