/* SPDX-License-Identifier: MIT */
/*
 * The index of a job's merged log: the files `merged` and `merged.keys`, whose format is in
 * merge.h. The pool loads the index. The I/O thread appends records in memory, and the pool writes
 * them, one batch at a time. While a batch can't be written, for example because the disk is full,
 * at most INDEX_WAITING_MAX further records wait in memory.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/output/merge.h"

#define INDEX_WAITING_MAX 1024

struct index;

/* The part of an index that is on disk. Readers use only this part. */
struct index_size {
	uint64_t records;
	uint64_t end;	 /* bytes of the merged log */
	uint64_t stamps; /* lines that begin in them */
	int64_t mtime;	 /* in ns */
};

/*
 * Get the size of the index FD up to its last plausible record. Return 0 or a negative errno. Any
 * thread.
 */
int index_size_read(int fd, struct index_size *ret);

/*
 * Load the index of the job whose folder is ID in DIR_FD, and remove invalid records at its end.
 * SYNC is true if an earlier attempt has failed, perhaps between the removal and its sync. Return 0
 * or a negative errno. Any thread may call this function. Only the I/O thread may use *RET.
 */
int index_load(int dir_fd, const char *id, bool sync, struct index **ret);
/*
 * Read the keys of an index. *RET_LEN: length of the valid lines. Return 0 or a negative errno. Any
 * thread.
 */
int index_read_keys(int dir_fd, const char *id, struct merge_keys *ret, uint64_t *ret_len);
/* X may be NULL. Do not call this while a batch is being written. */
void index_free(struct index *x);

/* Return the number of the log KEY. A new KEY gets PREFIX. Both must pass merge_key_is_valid. */
uint32_t index_number(struct index *x, const char *key, const char *prefix);
/* Return how many bytes of log NUMBER the index has, in memory and on disk. */
uint64_t index_indexed(const struct index *x, uint32_t number);
/* Append P, the next chunk of log NUMBER. There must be space for a record (index_room). */
void index_append(struct index *x, uint32_t number, const struct chunk *p);
size_t index_room(const struct index *x);
/* If the merged log ends in the middle of a line, append a newline and return true. */
bool index_end_line(struct index *x);

/*
 * index_appended: the number of all records. index_written: the part of the index on disk.
 * index_bytes: the bytes of `merged` and `merged.keys` on disk.
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
