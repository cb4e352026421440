/* SPDX-License-Identifier: MIT */
/*
 * The files STATE/jobs/KEY, one for each job (spec/record/head.h). Each is replaced as a whole in
 * one synced step; only its state letter may change in place. Beside the record of a job that runs
 * here, .KEY.room reserves space for its last change. All functions wait for the disk, so they run
 * on the pool. They return 0 or a negative errno; -EINVAL: the file is damaged; -ENOTSUP: another
 * version of kxfs wrote it.
 */
#pragma once

#include "spec/record/head.h"

/* The contents of a record after its head. Plain data; borrowed. */
struct record_rest {
	const char *document;
	size_t len;
	const char *manifest; /* may be NULL */
	size_t manifest_len;
};

/* Read the head of KEY. The document's checksum is verified if the job is not launched yet. */
int record_file_read(const char *state_dir, const char *key, struct spec_head **ret);
/* Read the document, or with MANIFEST the manifest, after verifying its checksum. *RET is malloc'ed. */
int record_file_read_rest(const char *state_dir, const char *key, bool manifest, char **ret,
			  size_t *ret_len);
/* The length of the document, and who may read it (see backend_submission.readable). */
int record_file_stat(const char *state_dir, const char *key, size_t *ret_len,
		     unsigned *ret_readable);
/*
 * Make the file of H, which is new. If H has a plan, also reserve space for its last change. After
 * an error there is no file; *RET_LEFT is then true if it may reappear after a power cut.
 */
int record_file_make(const char *state_dir, const struct spec_head *h,
		     const struct record_rest *rest, bool *ret_left);
/*
 * Replace the head by H. A part that is NULL remains as on disk; a part that is "" is removed. The
 * document remains. The manifest remains while the job is held, or is being launched after it was
 * held. A damaged document remains as it is, but is an error unless the job is LIVE or HISTORY. The
 * first write in which the job is over uses the reserved space if the disk is full; afterwards no
 * space is reserved.
 */
int record_file_write(const char *state_dir, const struct spec_head *h);
/*
 * Set the state letter of a LIVE record to HISTORY, with TIME as the time of the move. Do not sync.
 */
int record_file_mark(const char *state_dir, const char *key, int64_t time);
/* Remove the file. If SYNC, a return of 0 means that even a power cut does not bring it back. */
int record_file_remove(const char *state_dir, const char *key, bool sync);
/*
 * Return the name of the file in submit/ that the damaged record KEY belongs to, malloc'ed. NULL if
 * the record's bytes do not show a name, or show that the job was not launched.
 */
char *record_file_of_damaged(const char *state_dir, const char *key);
/*
 * Move a file that can't be used, because of ERR, to STATE/aside, unless PASSIVE; and report that.
 */
void record_file_put_aside(const char *state_dir, const char *key, bool passive, int err);
/*
 * If the record of KEY is in STATE/aside, move the output of KEY there, too. Return true if the
 * record is there. *RET_PLACE is the output's new place, malloc'ed; NULL if it could not be moved.
 */
bool record_file_output_aside(const char *state_dir, const char *key, char **ret_place);
