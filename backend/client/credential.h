/* SPDX-License-Identifier: MIT */
/*
 * Credentials for requests: fixed tokens and certificates, token files that change, exec plugins. Each request asks
 * for a credential before it is sent. It gets the known credential immediately if that is good; otherwise the
 * credential is refreshed once for all waiting requests. I/O thread only, except credential_new and
 * credential_free. Messages contain no credentials.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/kubeconfig.h"

struct credential;

/* The parts of a request's credential. Borrowed, and valid until the I/O thread returns to its loop. */
struct credential_parts {
	const char *authorization;	/* the whole header line, or NULL */
	const char *cert_pem, *key_pem; /* NULL if there is none */
	uint64_t generation;		/* grows whenever any of these changes */
};

/*
 * The reply to credential_get. ERR is 0, and PARTS is set; or ERR is -EACCES (the plugin failed; TEXT has the end
 * of its stderr, and the hint from the kubeconfig), -ETIMEDOUT, -ENOENT (a file is missing, and was never read), or
 * another negative errno.
 */
typedef void (*credential_fn)(void *data, int err, const struct credential_parts *parts,
			      const char *text);

/*
 * Create the credential of connection C, which is borrowed and must outlive it. Waits for the disk. Return 0, or a
 * negative errno with *RET_TEXT, malloc'ed.
 */
int credential_new(struct loop *loop, const struct spec_connection *c, struct credential **ret,
		   char **ret_text);
/*
 * Set LOAD, which runs on the pool. It reads the connection from the kubeconfig again, and returns 0 or a negative
 * errno. LOAD is called when the server refuses the current credential. If it returns a connection to another
 * server, that is ignored. Call this before the loop runs.
 */
void credential_set_load(struct credential *cr,
			 int (*load)(void *data, struct spec_connection *ret), void *data);
/* Kill a running plugin. Waiting callers are not called any more. Do not call credential_get afterwards. */
void credential_stop(struct credential *cr);
/* Free CR, which may be NULL. Call this after loop_stop. */
void credential_free(struct credential *cr);

/*
 * Call FN with the credential, within this call if it is known and good, else later. Token and certificate files
 * are read again, on the pool, after a minute; if that fails or takes over 10 s, the last ones are used. A plugin
 * runs again shortly before its answer expires, and may take 60 s. A failure is cached for 5 s. While kxfs starts,
 * a plugin's stderr also goes to the terminal. Return a ticket for credential_cancel, or 0 if FN was called
 * already.
 */
uint64_t credential_get(struct credential *cr, credential_fn fn, void *data);
void credential_cancel(struct credential *cr, uint64_t ticket);

/*
 * The server has replied 401 to the credential of GENERATION: refresh it, at most once in 5 s. Return true if a
 * retry of the request may succeed.
 */
bool credential_refused(struct credential *cr, uint64_t generation);
/*
 * A user waits for the next request, and may have just logged in: forget an earlier failure, and allow
 * credential_refused to refresh again without waiting 5 s.
 */
void credential_retry_now(struct credential *cr);
