/* SPDX-License-Identifier: MIT */
/*
 * What backend/credential*.c share, private to them: credential.c answers and asks plugins, credential_read.c
 * has what is read on the pool. I/O thread.
 */
#ifndef KXFS_BACKEND_CREDENTIAL_IMPL_H
#define KXFS_BACKEND_CREDENTIAL_IMPL_H

#include "backend/credential.h"
#include "backend/credential_files.h"

#define CREDENTIAL_FAILED_MS 5000 /* a failure counts for so long */

struct credential_waiter {
	uint64_t ticket;
	credential_fn fn;
	void *data;
	struct credential_waiter *prev, *next;
};

struct credential {
	struct loop *loop;
	const struct spec_connection *c; /* FRESH, or whoever made us keeps it */
	struct spec_connection fresh;
	int (*load)(void *data, struct spec_connection *ret); /* NULL: C never changes */
	void *load_data;
	bool reload; /* with the next reading of files */
	char *info;  /* of the plugin */
	struct credential_waiter *waiters;
	uint64_t tickets;
	uint64_t refused_ms; /* when that was heeded last; 0: never */

	char *line, *cert, *key; /* the view */
	uint64_t generation;

	struct credential_files files;
	bool files_known;
	uint64_t files_due_ms;
	struct credential_read *read;  /* on the pool */
	struct loop_timer *read_timer; /* NULL while READ is waited for no longer */
	int files_err;		       /* nothing was read; or 0 */
	char *files_text;

	struct spec_credential answer;
	bool answer_known;
	int64_t renew_ns;   /* 0: never */
	uint64_t hold_ms;   /* until then nothing is asked of the plugin */
	struct plugin *run; /* it has not gone */
	bool running;	    /* and not answered */
	int plugin_err;	    /* there is no answer that could be used; or 0 */
	char *plugin_text;
};

/* --- credential.c --- */

/* Call all who wait by now, unless there is more to wait for. */
void credential_answer(struct credential *cr);

/* --- credential_read.c --- */

/*
 * What the plugin of C is told, malloc'ed; NULL: C has none. 0, or a negative errno with *RET_TEXT. Waits
 * for the disk.
 */
int credential_info(const struct spec_connection *c, char **ret, char **ret_text);
/* Is it time to read files, or the kubeconfig? Then do so; credential_answer is called when that is done. */
bool credential_files_due(const struct credential *cr);
void credential_files_refresh(struct credential *cr);
/* Nobody waits for what is being read any more. */
void credential_files_stop(struct credential *cr);

#endif
