/* SPDX-License-Identifier: MIT */
/*
 * What is known of each name in submit/ or dryrun/, on disk: one small text file for each name in
 * STATE/submit.records/. A record is written beside its place and renamed into it, or, over one that has no verdict
 * yet, in one piece; so it is whole after a crash of kxfs. It is not synced here; save.h says what a power cut costs.
 *
 *	kxfs submit 1
 *	launched INODE SHA256	the file with this inode number was launched when its content had this digest
 *	job ID TIME		NAME.job, and when it was made; times are ns since 1970
 *	pending TIME		a submission is under way, since TIME; 0: since this record was written
 *	writing			somebody was writing the file, and had not closed it
 *	owner UID GID		the owner of NAME.job and NAME.error; absent: the user who mounts
 *	error TIME BYTES	NAME.error, and its text, which is the rest of the record
 *
 * Lines that do not apply are absent. Of a record that is damaged, or of another version, nothing is believed: its
 * reader moves it out of the way (records_aside) and reports it.
 */
#ifndef KXFS_FS_SUBMIT_RECORD_H
#define KXFS_FS_SUBMIT_RECORD_H

#include <sys/types.h>

#include "spec/base/base.h"

/* Bytes of a NAME.error. */
#define RECORD_MAX_ERROR 32768
#define RECORD_DIGEST	 65 /* bytes of a digest with its NUL */

struct record_owner {
	uid_t uid;
	gid_t gid;
};

/* Plain data: verdict.h and upload.h fill what each knows. */
struct record {
	uint64_t launched_ino; /* 0: not launched */
	char launched[RECORD_DIGEST];
	char *job; /* id; NULL: none */
	int64_t job_time;
	bool pending;
	int64_t since;
	bool writing;
	bool owned; /* OWNER is set */
	struct record_owner owner;
	char *error; /* NULL: none */
	int64_t error_time;
};

/* malloc'ed. */
char *record_text(const struct record *r);
/* TEXT[LEN] is '\0'. 0, -ENOTSUP (another version) or -EINVAL (damaged). *RET is to be cleared in all cases. */
int record_parse(const char *text, size_t len, struct record *ret);
void record_clear(struct record *r);
bool record_is_empty(const struct record *r);

/* A directory of records, STATE/NAME.records, made if need be. One thread at a time. */
struct records;
/* 0 or a negative errno. */
int records_open(const char *state_dir, const char *name, struct records **ret);
void records_free(struct records *all); /* NULL is allowed */
/* Its path; borrowed. */
const char *records_path(const struct records *all);

/*
 * Make the record of NAME be R; it is removed if R is empty. *RET_TIME: when that was, by the clock of the disk, or 0.
 * 0 or a negative errno: the old record is still there.
 */
int records_write(struct records *all, const char *name, const struct record *r, int64_t *ret_time);
/* Also sets SINCE of a record whose pending time is 0. 0, -ENOENT, or as record_parse. */
int records_read(struct records *all, const char *name, struct record *ret);
/* The names of all; *RET and each of its items are malloc'ed. 0 or a negative errno. */
int records_list(struct records *all, char ***ret, size_t *ret_n);
/* Move what can't be read to STATE/unread/. ERR, as records_read gave it, is in the message about it. */
void records_aside(struct records *all, const char *name, int err);

#endif
