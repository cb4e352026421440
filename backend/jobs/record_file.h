/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes the files STATE/jobs/KEY, one for each job (spec/record/head.h). A change
 * replaces the whole file and syncs it, except that record_file_mark changes the state letter in
 * place. While a job runs on this machine, the file .KEY.room beside its record reserves disk space
 * for the last change of the record. All functions wait for the disk, so they run on the pool. They
 * return 0 or a negative errno: -EINVAL if the file is damaged, -ENOTSUP if another version of kxfs
 * wrote it.
 */
#pragma once

#include "spec/record/head.h"

/* The part of a record's file that follows the head. Plain data; borrowed. */
struct record_rest {
	const char *document;
	size_t len;
	const char *manifest; /* may be NULL */
	size_t manifest_len;
};

/*
 * Read the head of the record KEY. If the job is not launched yet, also verify the checksum of the
 * document.
 */
int record_file_read(const char *state_dir, const char *key, struct spec_head **ret);
/* Verify the checksum, then read the document, or the manifest if MANIFEST. *RET is malloc'ed. */
int record_file_read_rest(const char *state_dir, const char *key, bool manifest, char **ret,
			  size_t *ret_len);
/* Return the length of the document, and who may read it (see backend_submission.readable). */
int record_file_stat(const char *state_dir, const char *key, size_t *ret_len,
		     unsigned *ret_readable);
/*
 * Create the file for the new record H. If H has a plan, also reserve space for the record's last
 * change. After an error the file does not exist. If it may nevertheless reappear after a power
 * cut, *RET_LEFT is true.
 */
int record_file_make(const char *state_dir, const struct spec_head *h,
		     const struct record_rest *rest, bool *ret_left);
/*
 * Replace the head on disk by H. If a part of H is NULL, keep the part on disk. If a part of H is
 * "", remove the part. Always keep the document. Keep the manifest while the job is held, or is
 * being launched after it was held. If the document is damaged and the job is not LIVE or HISTORY,
 * fail. On a full disk, the first write whose H->over is true may use the reserved space. If it
 * succeeds, it releases this space.
 */
int record_file_write(const char *state_dir, const struct spec_head *h);
/*
 * Set the state letter of a LIVE record to HISTORY, and the file's mtime to TIME, the time of the
 * move. Don't sync.
 */
int record_file_mark(const char *state_dir, const char *key, int64_t time);
/*
 * Remove the file and its reserved space. If SYNC is true, success means that the file does not
 * reappear after a power cut.
 */
int record_file_remove(const char *state_dir, const char *key, bool sync);
/*
 * Move the file of the record KEY, which can't be used because of ERR, to STATE/aside, and log a
 * warning. If PASSIVE is true, only log the warning.
 */
void record_file_put_aside(const char *state_dir, const char *key, bool passive, int err);
/*
 * True if the record KEY is in STATE/aside. In this case, move the output of KEY there, too. Set
 * *RET_PLACE to the output's new path, malloc'ed, or to NULL if it could not be moved.
 */
bool record_file_output_aside(const char *state_dir, const char *key, char **ret_place);
