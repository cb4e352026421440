/* SPDX-License-Identifier: MIT */
/*
 * What fs/submit*.c share, for submit/ and dryrun/; private to them. A file is an object of its own
 * that outlives its name, as on any filesystem; a verdict belongs to a name. Memory is what is shown,
 * its directory in the state follows: contents at once, verdicts through the I/O thread.
 *
 * Changed by the FUSE thread, and by the I/O thread when the backend has answered: so all that
 * both touch is guarded by one lock, a leaf.
 */
#ifndef KXFS_FS_SUBMIT_IMPL_H
#define KXFS_FS_SUBMIT_IMPL_H

#include <limits.h>
#include <uthash.h>

#include "backend/lock.h"
#include "fs/handle.h"
#include "fs/submit.h"

#define SUBMIT_JOB_SUFFIX   ".job"
#define SUBMIT_ERROR_SUFFIX ".error"
/* Where NAME.job points: this and an id. */
#define SUBMIT_TARGET "../jobs/"
/* Files and verdicts, each. */
#define SUBMIT_MAX_NAMES 10000
/* Bytes of a NAME.error. */
#define SUBMIT_MAX_TEXT 32768
/* How long a close and a rename wait for the verdict. */
#define SUBMIT_CLOSE_MS	 30000
#define SUBMIT_RENAME_MS 3000

struct submit_author {
	uid_t uid;
	gid_t gid;
};

/* Fields without a remark: under the lock. */
struct submit {
	struct fs *fs;	  /* constant */
	int state_fd;	  /* constant */
	int dir_fd;	  /* STATE/submit or STATE/dryrun; constant */
	const char *name; /* "submit", "dryrun"; constant */
	bool dry;	  /* nothing is launched; constant */
	struct lock lock;
	struct submit_file *files;
	struct submit_verdict *verdicts;
	uint64_t scratch; /* bytes of scratch files */
	uint64_t seq;	  /* of the last submission */
	int64_t changed;  /* mtime of the directory, ns */
};

struct submit_file {
	struct submit *s; /* constant */
	ino_t ino;	  /* in STATE/submit; constant */
	char *name;	  /* NULL: it has none any more */
	unsigned refs;	  /* table, nodes, handles, submissions */
	unsigned holds;	  /* who needs FD; it is open while there are some */
	int fd;		  /* opened by the FUSE thread only */
	uint64_t size;
	uint64_t charged;  /* part of submit.scratch */
	uint64_t content;  /* counts changes of the bytes */
	bool replacing;	   /* the I/O thread changes them */
	uint64_t accepted; /* the content that was launched last */
	uint64_t pending;  /* the content whose launch is under way; 0: none */
	unsigned modes; /* counts changes of the two that the backing mode holds: MODE, accepted */
	mode_t mode;	/* permissions */
	struct submit_handle *handles; /* that are open for writing */
	struct stat st;		       /* as on disk */
	struct submit_author author;   /* as shown; FUSE thread */
	int flaw; /* an errno: CONTENT is not what its writer meant; FUSE thread */
	UT_hash_handle hh;
};

struct submit_handle {
	struct handle handle;
	struct submit_file *file;
	bool writable;
	pid_t opener; /* process; 0: not known */
	struct submit_author author;
	pid_t wrote_tid; /* the thread that wrote last, and its process */
	pid_t wrote;
	bool dirty;   /* it has changed the file since its last submission; FUSE thread */
	uint64_t seq; /* the submission that it waits for; 0: none */
	bool spent;   /* that was accepted: nothing more is written through it */
	struct submit_handle *prev, *next;
};

/* The one that the directory DIR shows. */
static inline struct submit *submit_of(struct fs *fs, const struct node *dir)
{
	return dir->class == &dryrun_class ? fs->dryrun : fs->submit;
}

/* --- submit_file.c: files by name --- */

/* 0: a file of this name may be made; -EINVAL, -ENAMETOOLONG, -EPERM (names of verdicts). */
int submit_name_check(const char *name);
/* Is NAME that of a verdict? *RET_BASE is then the name that it is about. */
enum submit_name { SUBMIT_NAME_FILE, SUBMIT_NAME_JOB, SUBMIT_NAME_ERROR };
enum submit_name submit_name_kind(const char *name, char ret_base[NAME_MAX + 1]);

/* The file called NAME as a reference; NULL: none. */
struct submit_file *submit_file_find(struct submit *s, const char *name);
/* Make it, held (submit_file_drop). -ENOSPC: there are too many. FUSE thread. */
int submit_file_make(struct submit *s, const char *name, mode_t mode, struct submit_author author,
		     struct submit_file **ret);
void submit_file_ref(struct submit_file *f);
void submit_file_unref(struct submit_file *f); /* NULL is allowed */
static inline void submit_file_unrefp(struct submit_file **f)
{
	submit_file_unref(*f);
}
#define cleanup_submit_file cleanup(submit_file_unrefp)

/* Keep FD open until submit_file_drop. -ESTALE: the name means another file by now. FUSE thread. */
int submit_file_hold(struct submit_file *f);
void submit_file_drop(struct submit_file *f);
/* Its name now; false: it has none. */
bool submit_file_name(struct submit_file *f, char ret[NAME_MAX + 1]);
/* Give it another name; a file that has that one loses it. */
int submit_file_rename(struct submit_file *f, const char *name);
int submit_file_remove(struct submit_file *f);
/* An object for what is on disk, and its place in the table, which has the reference. */
struct submit_file *submit_file_new(struct submit *s, const struct stat *st);
int submit_file_insert(struct submit_file *f, const char *name);
/* Out of the table, whose reference is the caller's now. Under the lock. */
void submit_file_detach(struct submit_file *f);
/* May it grow to SIZE? -EFBIG, -ENOSPC. */
int submit_file_room(struct submit_file *f, uint64_t size);
/* Its bytes are about to change, which ends what was known of them. -EBUSY: not now. Held, FUSE thread. */
int submit_file_change(struct submit_file *f);
/* Take attributes from the disk. Held. */
void submit_file_refresh(struct submit_file *f);
uint64_t submit_file_size(struct submit_file *f);
/* Bring MODE and accepted to the disk. Held. */
void submit_file_save_mode(struct submit_file *f);

/* --- submit_keep.c --- */

/* Read STATE/submit. 0 or a negative errno. */
int submit_scan(struct submit *s);
/* Remove it if nobody has it open and what is in it was launched. -EBUSY. I/O thread. */
int submit_file_expire(struct submit_file *f);
/* Remove what dryrun/ has made of files that nobody has touched since BEFORE, ns. I/O thread. */
void submit_expire_made(struct submit *s, int64_t before);
void submit_file_forget_all(struct submit *s);

/* --- submit_io.c: what is done with an open file --- */

extern const struct node_class submit_file_class;

/* The file of a node of that class, borrowed. */
struct submit_file *submit_file_of(struct node *node);
/* Has what was written through H become a job, or may it be about to? Then H changes nothing more. */
bool submit_handle_is_spent(struct submit_handle *h);
/* F, held, gets SIZE. */
int submit_truncate(struct submit_file *f, off_t size);
/* All that is in F, held, malloc'ed and NUL-terminated. 0 or a negative errno. */
int submit_read(struct submit_file *f, char **ret, size_t *ret_len);
/* Write all SIZE bytes at OFF of FD. 0 or a negative errno: some may have been written. */
int submit_pwrite(int fd, const char *buf, size_t size, off_t off);
/* submit_attr.c */
int submit_getattr_file(struct fs *fs, struct node *node, struct stat *st);
void submit_setattr_file(struct fs *fs, fuse_req_t req, struct node *node, struct stat *attr,
			 int to_set, struct fuse_file_info *fi);

/* The node of F under DIR, as a reference; NULL: no memory. */
struct node *submit_file_node(struct fs *fs, struct node *dir, struct submit_file *f);
/* Open F, which the caller holds; the handle takes that hold over, and in FI it is told. */
int submit_handle_open(struct fs *fs, fuse_req_t req, struct submit_file *f,
		       struct fuse_file_info *fi);

/* --- submit_replace.c: dryrun/ --- */

/*
 * TEXT instead of CONTENT, of which it is the manifest; it is accepted then. If F has other content by
 * now, it keeps that. 0 or a negative errno. Held, I/O thread.
 */
int submit_file_replace(struct submit_file *f, uint64_t content, const char *text);
/* Is what is in F, of dryrun/, a manifest that was made, or about to be one? */
bool submit_file_is_made(struct submit_file *f);

/* --- submit_launch.c: from contents to verdicts --- */

/*
 * The writer behind H is done: submit what is there, if there is anything to submit. REQ is answered,
 * now or with the verdict; NULL: nobody waits. FUSE thread.
 */
void submit_commit(struct submit_handle *h, fuse_req_t req);
/* The same for F when it is renamed to NAME, which is done when the job is accepted. */
void submit_commit_rename(struct submit_file *f, const char *name, fuse_req_t req);
/* Who asks. */
struct submit_author submit_author_of(struct fs *fs, fuse_req_t req);
/* The content of F can't be submitted as NAME: say why. FLAW is an errno. FUSE thread. */
void submit_say_flaw(struct submit_file *f, const char *name, int flaw,
		     struct submit_author author);

/* --- submit_verdict.c --- */

struct submit_verdict {
	char *name;	  /* that it is about */
	char *job;	  /* id; NULL: none */
	char *error;	  /* NULL: none */
	uint64_t job_seq; /* of the submission that made JOB */
	uint64_t seq;	  /* of the last one that ended */
	int64_t job_time, error_time;
	unsigned
		pending; /* submissions under way; after a start, 1: it was so when the mount ended */
	/* Of the disk's clock: when the first of them was marked; 0: none is, on disk. */
	int64_t pending_since;
	char *launched; /* id of the last one that was launched by then; NULL: none */
	int64_t launched_time;
	struct submit_author author;
	struct submit_verdict *next; /* of a copied list */
	UT_hash_handle hh;
};

/* Show what became of submission SEQ of NAME, in memory and on disk. Texts are copied. */
void submit_verdict_accepted(struct submit *s, const char *name, uint64_t seq, const char *id,
			     struct submit_author author);
void submit_verdict_refused(struct submit *s, const char *name, uint64_t seq, const char *text,
			    struct submit_author author);
/* One is under way: should this mount end meanwhile, the next one says so. */
void submit_verdict_pending(struct submit *s, const char *name, struct submit_author author);
/* It has ended; what came of it is shown and saved next. */
void submit_verdict_ended(struct submit *s, const char *name);
/* Under the lock: the one of NAME; make: made if need be, NULL: no memory; the field of a kind. */
struct submit_verdict *submit_verdict_find(struct submit *s, const char *name);
struct submit_verdict *submit_verdict_make(struct submit *s, const char *name);
char **submit_verdict_field(struct submit_verdict *v, enum submit_name kind);
/* submit_save.c: bring the verdict on NAME to the disk; on the I/O thread at once, else soon. */
void submit_verdict_save(struct submit *s, const char *name);
/* submit_save.c: what a scan finds on disk. */
int submit_verdict_load(struct submit *s, const char *name, enum submit_name kind);
/* 0: FILE is a verdict that there is, as a node under DIR. */
int submit_verdict_lookup(struct fs *fs, struct node *dir, const char *file, struct node **ret);
/* -ENOENT: there is none. */
int submit_verdict_remove(struct submit *s, const char *name, enum submit_name kind);
/* The content that the verdict of FROM is about is called TO now. */
void submit_verdict_move(struct submit *s, const char *from, const char *to);
int submit_verdict_list(struct submit *s, struct listing *l);
/* A list of copies of those that have a job; what memory allows. */
struct submit_verdict *submit_verdict_copy_jobs(struct submit *s);
void submit_verdict_free(struct submit_verdict *v);
void submit_verdict_free_all(struct submit *s);
/* Is there room for one more? */
bool submit_verdict_room(struct submit *s);

#endif
