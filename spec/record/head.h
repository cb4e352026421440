/* SPDX-License-Identifier: MIT */
/*
 * The file of a job in the state directory, as bytes:
 *
 *	kxfs job 1 j HHHHHHHH DDDDDDDD MMMMMMMM SSSSSSSSSSSSSSSS RRRRRRRRRRRRRRRR\n
 *	{"job":{...},"state":{...},"hold":{...},"plan":{...},"snapshot":{...}}\n   the head, H bytes
 *	the document that the user wrote, D bytes
 *	the manifest that a dry run made of it, M bytes, while the job is held
 *
 * The first line has SPEC_HEAD_LINE bytes. Its letter is `h` if the job is in history/, else `j`.
 * kxfs overwrites the letter in place, so no checksum covers it. S is the checksum of the lengths
 * and the head. R is the checksum of all bytes after the head. Both are FNV-1a with 64 bits, in
 * hexadecimal. kxfs may rewrite the head, but never the document. Other modules write and parse the
 * parts hold, plan and snapshot.
 */
#pragma once

#include "spec/job/job.h"

#define SPEC_HEAD_LINE	   74
#define SPEC_HEAD_LETTER   11
#define SPEC_MAX_HEAD	   (64u << 20)
#define SPEC_MAX_KEY	   50 /* bytes of spec_head.key */
#define SPEC_HEAD_MANIFEST (15u << 20)

/* The states of a record. backend/jobs/records.c describes them and their transitions. */
enum record_state { RECORD_HELD, RECORD_SUBMITTING, RECORD_LIVE, RECORD_HISTORY, RECORD_NEVER };

enum record_part { RECORD_HOLD, RECORD_PLAN, RECORD_SNAPSHOT, RECORD_N_PARTS };

/*
 * The data of a head that kxfs needs only until the job is launched, and when it reads or writes
 * the head. Set the texts, except PARTS, with spec_set. Plain data.
 */
struct spec_head_more {
	char *submitter; /* user@host */
	char *namespace;
	uint64_t seed[2];  /* random numbers from which the job's name is derived */
	unsigned readable; /* see backend_submission.readable */
	char *reason;	   /* why STATE is NEVER, as one word; "" in other states */
	char *why;	   /* the reason as a sentence for users, or "" */
	char *boot;	   /* id of the machine's boot, if a local job is SUBMITTING; else "" */
	/* JSON maps, malloc'ed; NULL if absent */
	char *parts[RECORD_N_PARTS];
};

/* The contents of a head. Set the texts with spec_set. Plain data. */
struct spec_head {
	/* name of the record's file: the submission's UUID if OWN is true, else the job's uid */
	char *key;
	char *file;   /* name of the job's file in submit/ */
	char *digest; /* SHA-256 of the document */
	char *backend;
	char *id; /* name of the job's directory and, in a cluster, of its object */
	struct spec_head_more *more; /* NULL after spec_head_forget */
	int64_t created;
	unsigned user, group;
	bool owned; /* true if USER and GROUP submitted the job, false if the mounting user did */
	bool own;   /* the job was submitted through this state directory */
	/* The following members are the state of the job. */
	bool held;	/* STATE is SUBMITTING, and the job was HELD before the launch */
	bool unlinked;	/* the link to the job, submit/NAME.job, no longer exists */
	bool dropped;	/* kxfs removed the output to free space */
	bool over;	/* the job has ended, and the part `snapshot` has its result */
	unsigned state; /* enum record_state */
	int64_t since;	/* when STATE began */
	char *uid;	/* of the job; "" if unknown */
};

struct spec_head *spec_head_new(void);
/* Return a copy of H. If MORE of H is NULL, the copy has an empty MORE. */
struct spec_head *spec_head_copy(const struct spec_head *h);
void spec_head_free(struct spec_head *h);
define_cleanup(spec_head_freep, struct spec_head *, spec_head_free)

/*
 * Free MORE to save memory, if H is LIVE or HISTORY, and MORE has no snapshot. The file still has
 * the data.
 */
void spec_head_forget(struct spec_head *h);

/* The contents of the first line. Plain data. */
struct spec_head_line {
	bool history;
	size_t head, document, manifest; /* lengths */
	uint64_t sum, rest_sum;
};

/*
 * Parse the first line. Return 0; -ENOTSUP if another version of kxfs wrote the file; -EINVAL if
 * the line is damaged.
 */
int spec_head_line_parse(const char *text, size_t len, struct spec_head_line *ret);
/* Parse the head TEXT, which has LINE->head bytes. Return 0, or -EINVAL if it is damaged. */
int spec_head_parse(const struct spec_head_line *line, const char *text, struct spec_head **ret);
/*
 * Return the first line and the head H as text, malloc'ed. The caller must have set DOCUMENT,
 * MANIFEST and REST_SUM of LINE; this function sets the other members.
 */
char *spec_head_text(const struct spec_head *h, struct spec_head_line *line, size_t *ret_len);
