/* SPDX-License-Identifier: MIT */
/*
 * The index of a job's merged log. On disk it is in the files `merged` and `merged.keys`, whose
 * format is in merge.h. The pool loads the index. The I/O thread appends records in memory, and the
 * pool writes these records, one batch at a time. While a batch can't be written, for example
 * because the disk is full, at most INDEX_WAITING_MAX further records wait in memory. This module
 * does not change the logs themselves.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/output/merge.h"

#define INDEX_WAITING_MAX 1024

struct index;

/* The size of the part of an index that is on disk. Readers use only this part. */
struct index_size {
	uint64_t records;
	uint64_t end;	 /* bytes of the merged log */
	uint64_t stamps; /* lines that begin in these bytes */
	int64_t mtime;	 /* in ns */
};

/*
 * Set *RET to the size of the index in the open file FD. Count its records up to the last plausible
 * record. Any thread. Return 0 or a negative errno.
 */
int index_size_read(int fd, struct index_size *ret);

/*
 * Load the index of the job whose folder is ID in DIR_FD, and remove invalid records at its end.
 * Return 0 or a negative errno. At the first attempt, *RET must be NULL. After an error, *RET is a
 * partial result: pass it to the next attempt. Any thread may call index_load. Otherwise, *RET
 * belongs to the I/O thread.
 *
 * Once index_knows_logs is true, logs may be written between attempts. index_load still checks
 * records against the earlier sizes of the logs. So a record whose bytes a crash has lost is
 * invalid, even if new bytes have taken their place.
 */
int index_load(int dir_fd, const char *id, struct index **ret);
/*
 * Read the keys of job ID's index from the disk. Set *RET_LEN to the length of the lines that are
 * complete and valid. Any thread.
 */
int index_read_keys(int dir_fd, const char *id, struct merge_keys *ret, uint64_t *ret_len);
/*
 * True if X, the partial result of a failed index_load, has the sizes of the logs. X may be NULL.
 */
bool index_knows_logs(const struct index *x);
/* Free X, which may be NULL. Do not call this while a batch is being written. */
void index_free(struct index *x);

/*
 * Return the number of the log KEY. If KEY is new, add KEY and PREFIX, and give KEY a number. KEY
 * and PREFIX must be valid (merge_key_is_valid).
 */
uint32_t index_number(struct index *x, const char *key, const char *prefix);
/*
 * Return how many bytes of log NUMBER are in the index, including records that wait to be written.
 */
uint64_t index_indexed(const struct index *x, uint32_t number);
/*
 * Append P, the next chunk of log NUMBER, to the merged log. index_room, the number of records that
 * memory may still take, must not be 0.
 */
void index_append(struct index *x, uint32_t number, const struct chunk *p);
size_t index_room(const struct index *x);
/* If the merged log ends in the middle of a line, append a newline and return true. */
bool index_end_line(struct index *x);

/*
 * index_appended returns the number of all records, on disk or waiting. index_written returns the
 * size of the index on disk, and index_bytes the size of its files.
 */
uint64_t index_appended(const struct index *x);
const struct index_size *index_written(const struct index *x);
uint64_t index_bytes(const struct index *x);
/*
 * Write the waiting records on the pool. Then call WRITTEN(DATA, err). Do nothing if no record
 * waits, or if a write is in progress. GROUP counts the write.
 */
void index_write(struct index *x, struct group *group, void (*written)(void *data, int err),
		 void *data);
