/* SPDX-License-Identifier: MIT */
/*
 * Credentials for requests: fixed tokens and certificates, token files that change, exec plugins.
 * I/O thread only, except credential_new and credential_free. Messages contain no credentials.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/kubeconfig.h"

struct credential;

/* Strings are borrowed, and are valid until the current callback on the I/O thread returns. */
struct credential_parts {
	const char *authorization;	/* the whole header line, or NULL */
	const char *cert_pem, *key_pem; /* NULL if none */
	uint64_t generation;		/* grows with each change */
};

/*
 * After a failure, ERR is a negative errno, PARTS is NULL, and TEXT describes the failure for
 * people. -EACCES: the plugin failed. -ENOENT: a file is missing, and kxfs has never read it.
 * -ETIMEDOUT: the plugin or the disk did not answer in time.
 */
typedef void (*credential_fn)(void *data, int err, const struct credential_parts *parts,
			      const char *text);

/*
 * C must outlive the credential. This function waits for the disk. Return 0 or a negative errno
 * with *RET_TEXT, malloc'ed.
 */
int credential_new(struct loop *loop, const struct spec_connection *c, struct credential **ret,
		   char **ret_text);
/*
 * Set LOAD, which reads the connection from the kubeconfig again, and returns 0 or a negative
 * errno. kxfs calls LOAD on the pool after the server has refused the credential, or the plugin has
 * failed. If the result has another server, kxfs ignores it. Call this before the loop runs.
 */
void credential_set_load(struct credential *cr,
			 int (*load)(void *data, struct spec_connection *ret), void *data);
/*
 * Kill a running plugin, and drop all waiting callers without calling their FN. Don't call
 * credential_get afterwards.
 */
void credential_stop(struct credential *cr);
/* CR may be NULL. Call this after loop_stop. */
void credential_free(struct credential *cr);

/*
 * Call FN with the credential. If the known credential is still good, call FN immediately, and
 * return 0. Otherwise all callers wait for one refresh; return a ticket for credential_cancel.
 *
 * Token and certificate files are read again after a minute, on the pool. If this fails or takes
 * more than 10 s, the last contents are used. A plugin runs again shortly before its answer
 * expires, and may take 60 s. A failure is cached for 5 s.
 */
uint64_t credential_get(struct credential *cr, credential_fn fn, void *data);
void credential_cancel(struct credential *cr, uint64_t ticket);

/*
 * Call this when the server has replied 401 to a request with the credential of GENERATION. Refresh
 * the credential, but at most once in 5 s. Return true if a retry of the request may succeed.
 */
bool credential_refused(struct credential *cr, uint64_t generation);
/*
 * Forget an earlier failure, and let credential_refused refresh again even within 5 s. Call this
 * before a request for which a user waits, because the user may have just logged in.
 */
void credential_retry_now(struct credential *cr);
