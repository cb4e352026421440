/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes the files STATE/jobs/KEY, one for each job (spec/record/head.h). Each change,
 * except by record_file_mark, replaces and syncs the whole file. While a job runs on this machine,
 * the file .KEY.room reserves disk space for the last change of its record. All functions wait for
 * the disk, so they run on the pool. They return 0 or a negative errno: -EINVAL if the file is
 * damaged, -ENOTSUP if another version of kxfs wrote it.
 */
#pragma once

#include "spec/record/head.h"

/* The part of a record's file that follows the head. Borrowed. Plain data. */
struct record_rest {
	const char *document;
	size_t len;
	const char *manifest; /* may be NULL */
	size_t manifest_len;
};

/* Read the head. If the job is not launched yet, also verify the checksum of the document. */
int record_file_read(const char *state_dir, const char *key, struct spec_head **ret);
/* Verify the checksum, then read the document, or the manifest if MANIFEST. *RET is malloc'ed. */
int record_file_read_rest(const char *state_dir, const char *key, bool manifest, char **ret,
			  size_t *ret_len);
/* Return the length of the document, and who may read it (see backend_submission.readable). */
int record_file_stat(const char *state_dir, const char *key, size_t *ret_len,
		     unsigned *ret_readable);
/*
 * Create the file of the new record H. If H has a plan, also reserve space for the record's last
 * change. After an error the file does not exist, but if *RET_LEFT is true, a power cut may restore
 * it.
 */
int record_file_make(const char *state_dir, const struct spec_head *h,
		     const struct record_rest *rest, bool *ret_left);
/*
 * Replace the head on disk by H. A part of H that is NULL keeps the part on disk; "" removes it.
 * The document remains. The manifest remains while the job is held, or is being launched after it
 * was held. Fail if the document is damaged, unless H is LIVE or HISTORY. On a full disk, the
 * first write whose H->over is true may use the reserved space. If this write succeeds, it releases
 * the space.
 */
int record_file_write(const char *state_dir, const struct spec_head *h);
/*
 * Change a LIVE record to HISTORY: overwrite only the letter in the first line, and set the file's
 * mtime to TIME, the time of the move to history/. Don't sync.
 */
int record_file_mark(const char *state_dir, const char *key, int64_t time);
/* Remove the file and its reserved space. If SYNC, a power cut can't undo the removal. */
int record_file_remove(const char *state_dir, const char *key, bool sync);
/*
 * Log a warning that the record KEY can't be used because of ERR. Unless PASSIVE, move the record
 * to STATE/aside.
 */
void record_file_put_aside(const char *state_dir, const char *key, bool passive, int err);
/*
 * If the record KEY is in STATE/aside, move the output of KEY there, too, and return true.
 * Otherwise return false. *RET_PLACE is the output's new path, malloc'ed, or NULL if nothing was
 * moved.
 */
bool record_file_output_aside(const char *state_dir, const char *key, char **ret_place);
