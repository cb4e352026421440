/* SPDX-License-Identifier: MIT */
/*
 * The index of a job's merged log on disk: `merged` and `merged.keys`, in merge.h's format. It is
 * loaded on the pool, continued in memory on the I/O thread, and written on the pool, one batch at
 * a time. Records that can't be written (a full disk) remain in memory, at most INDEX_WAITING_MAX
 * of them; the logs themselves are not touched here.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/output/merge.h"

#define INDEX_WAITING_MAX 1024

struct index;

/* The part of an index that is on disk, for its readers. */
struct index_size {
	uint64_t records;
	uint64_t end;	 /* bytes of the merged log */
	uint64_t stamps; /* lines that begin in these bytes */
	int64_t mtime;	 /* in ns */
};

/*
 * Read the size of the open file FD: whole records up to the last plausible one. Any thread. Return
 * 0 or a negative errno.
 */
int index_size_read(int fd, struct index_size *ret);

/*
 * Read the index of the job whose folder is ID in DIR_FD, and remove its torn end. Any thread, but
 * *RET belongs to the I/O thread. Return 0 or a negative errno. After an error, pass *RET, a
 * partial result, to the next attempt; for the first one it is NULL. Once index_knows_logs, logs
 * may be written between attempts: a record whose bytes were lost stays invalid when other bytes
 * take their place.
 */
int index_load(int dir_fd, const char *id, struct index **ret);
/*
 * Read the keys of the index of job ID; *RET_LEN is the length of the whole, valid lines. Any
 * thread.
 */
int index_read_keys(int dir_fd, const char *id, struct merge_keys *ret, uint64_t *ret_len);
/*
 * True if X (may be NULL), which is not loaded yet, knows the size that each log had at the first
 * attempt.
 */
bool index_knows_logs(const struct index *x);
/* Must not be called while a batch is being written. NULL is allowed. */
void index_free(struct index *x);

/*
 * Return the number of the log KEY; give it one if it is new. KEY and PREFIX are valid
 * (merge_key_is_valid).
 */
uint32_t index_number(struct index *x, const char *key, const char *prefix);
/* Return how many bytes of log NUMBER are in the index, on disk or waiting. */
uint64_t index_indexed(const struct index *x, uint32_t number);
/* Append P, the next chunk of log NUMBER, to the merged log. There must be space (index_room). */
void index_append(struct index *x, uint32_t number, const struct chunk *p);
size_t index_room(const struct index *x);
/* End the line at the end of the merged log. Return false if no line was open. */
bool index_end_line(struct index *x);

/* index_appended returns the number of all records; index_written the size on disk. */
uint64_t index_appended(const struct index *x);
const struct index_size *index_written(const struct index *x);
/*
 * Write the waiting records, if there are any and none is being written; then call WRITTEN(DATA,
 * err). The write is in GROUP.
 */
void index_write(struct index *x, struct group *group, void (*written)(void *data, int err),
		 void *data);
