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
 *	numbers JOB LAST	those of the launches that made NAME.job, which may be removed, and whose verdict is
 *				the last one; 0: none
 *	pending UUID		this launch is under way; there may be more of them
 *	file UID GID		the owner of the file; absent: whom the disk says
 *	owner UID GID		the owner of NAME.job and NAME.error; absent: the user who mounts
 *	error TIME BYTES	NAME.error, and its text, which is the rest of the record
 *
 * Lines that do not apply are absent. A record that is damaged is not believed in any part: its reader moves it out of
 * the way (launches_aside) and reports it.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* The most bytes of a NAME.error. */
#define RECORD_MAX_ERROR 32768
#define RECORD_DIGEST	 65 /* bytes of a digest with its NUL */
#define RECORD_UUID	 37 /* bytes of a UUID with its NUL */

struct record_owner {
	uid_t uid;
	gid_t gid;
};

/* Plain data: names.c fills it, and takes it. */
struct record {
	bool is_launched;
	/* The inode number of a launched file; 0: it is not on disk, and there is no such line. */
	uint64_t launched_ino;
	char launched[RECORD_DIGEST]; /* "": not known */
	bool told;
	char *job; /* id of the job; NULL: none */
	int64_t job_time;
	uint64_t job_number;	      /* number of the launch that made JOB */
	uint64_t number;	      /* number of the last launch that has a verdict */
	char (*pending)[RECORD_UUID]; /* UUIDs */
	size_t n_pending;
	bool file_owned; /* FILE_OWNER is set, since only root's kxfs can give it to the disk */
	bool owned;	 /* OWNER is set */
	struct record_owner file_owner, owner;
	char *error; /* text of NAME.error; NULL: none */
	int64_t error_time;
};

void record_add_pending(struct record *r, const char *uuid);
/* The text of R, malloc'ed. */
char *record_text(const struct record *r);
/* Read a record. TEXT[LEN] is '\0'. 0, or -EINVAL (damaged). *RET is to be cleared in all cases. */
int record_parse(const char *text, size_t len, struct record *ret);
void record_clear(struct record *r);
bool record_is_empty(const struct record *r);

/*
 * A directory of records, STATE/NAME.records. The functions below may wait for the disk, and only one thread may call
 * them at a time.
 */
struct launches;
/* Open the directory, and make it if need be. 0 or a negative errno. */
int launches_open(const char *state_dir, const char *name, struct launches **ret);
void launches_free(struct launches *all); /* NULL is allowed */
/* The path of the directory; borrowed. */
const char *launches_path(const struct launches *all);

/* Let the record of NAME be R; if R is empty, it is removed. 0, or a negative errno: the old record is still there. */
int launches_write(struct launches *all, const char *name, const struct record *r);
/* Read the record of NAME. 0, -ENOENT, or as record_parse. */
int launches_read(struct launches *all, const char *name, struct record *ret);
/* Call FN for the name of each record until it returns something else than 0. 0 or a negative errno. */
int launches_each(struct launches *all, int (*fn)(void *data, const char *name), void *data);
/*
 * Keep a record that can't be read in STATE/aside/, before another takes its place. Until then it also keeps its name,
 * if the disk has links, so that a power cut leaves one of the two. The message about it has ERR, as launches_read gave
 * it.
 */
void launches_aside(struct launches *all, const char *name, int err);
