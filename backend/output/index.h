/* SPDX-License-Identifier: MIT */
/*
 * The index of a job's merged log on disk: `merged` and `merged.keys`, whose format is merge.h's. It is loaded on the
 * pool, continued in memory on the I/O thread, and written on the pool, one batch at a time. Records that can't be
 * written (a full disk) stay in memory, at most INDEX_WAITING_MAX of them; the logs themselves are not touched here.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/output/merge.h"

#define INDEX_WAITING_MAX 1024

struct index;

/* How much of an index is on disk, for its readers. */
struct index_size {
	uint64_t records;
	uint64_t end;	 /* bytes of the merged log */
	uint64_t stamps; /* lines that begin in these */
	int64_t mtime;	 /* in ns */
};

/*
 * What there is in the open file FD: whole records up to the last that can be right. Any thread. 0 or a negative errno.
 */
int index_size_read(int fd, struct index_size *ret);

/*
 * Read the index of the job whose folder is ID in DIR_FD, and cut off its torn end. Any thread, but *RET belongs to the
 * I/O thread. 0 or a negative errno: then *RET is what was found so far, and is to be given to the next try; for the
 * first it is NULL. What is written into a log between two tries does not make a record right whose bytes were lost
 * before, if index_knows_logs.
 */
int index_load(int dir_fd, const char *id, struct index **ret);
/* Read the keys of such an index; *RET_LEN is how long their whole, valid lines are. Any thread. */
int index_read_keys(int dir_fd, const char *id, struct merge_keys *ret, uint64_t *ret_len);
/* X, which may be NULL, could not be loaded yet: is it known how much of each log may be in it? */
bool index_knows_logs(const struct index *x);
/* Not to be called while a batch is being written. NULL is allowed. */
void index_free(struct index *x);

/* The number of the log KEY, which gets one if it has none. KEY and PREFIX are valid (merge_key_is_valid). */
uint32_t index_number(struct index *x, const char *key, const char *prefix);
/* How many bytes of that log are in the index, written or not. */
uint64_t index_indexed(const struct index *x, uint32_t number);
/* Append P, the next piece of log NUMBER, to the merged log. There must be room (index_room). */
void index_append(struct index *x, uint32_t number, const struct piece *p);
size_t index_room(const struct index *x);
/* End the line at the end of the merged log. False: no line was open. */
bool index_end_line(struct index *x);

/* How many records were appended, and how many of them are on disk. */
uint64_t index_appended(const struct index *x);
const struct index_size *index_written(const struct index *x);
/*
 * Have the records that wait written, if there are any and none is being written; WRITTEN(DATA, err) is called then.
 * The write is under way in GROUP.
 */
void index_write(struct index *x, struct group *group, void (*written)(void *data, int err),
		 void *data);
