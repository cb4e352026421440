/* SPDX-License-Identifier: MIT */
/*
 * Authentication: fixed tokens and certificates, token files that change, exec plugins. Each
 * request asks for a credential first. The reply is immediate while the known one is good;
 * otherwise it is refreshed once for all waiting requests. I/O thread only, except credential_new
 * and credential_free. No credential appears in a message.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/kubeconfig.h"

struct credential;

/* The credential of a request. Borrowed, and valid until the I/O thread returns to its loop. */
struct credential_parts {
	const char *authorization;	/* the whole header line, or NULL */
	const char *cert_pem, *key_pem; /* NULL if there is none */
	uint64_t generation;		/* grows whenever any of these changes */
};

/*
 * ERR is 0, with PARTS; or -EACCES (the plugin failed; TEXT has the last of its stderr, and the
 * hint of the kubeconfig), -ETIMEDOUT, -ENOENT (a file is missing, and none was read before), ...
 */
typedef void (*credential_fn)(void *data, int err, const struct credential_parts *parts,
			      const char *text);

/*
 * Create the credential of connection C, which is borrowed and must outlive it. Return 0, or a
 * negative errno with *RET_TEXT. Waits for the disk.
 */
int credential_new(struct loop *loop, const struct spec_connection *c, struct credential **ret,
		   char **ret_text);
/*
 * Set LOAD, which runs on the pool and returns the current connection of the kubeconfig: 0 or a
 * negative errno. It is called when the server refuses the present credentials; a connection to
 * another server is ignored. Call this before the loop runs.
 */
void credential_set_load(struct credential *cr,
			 int (*load)(void *data, struct spec_connection *ret), void *data);
/* Kill a running plugin. Waiting callers are not called any more. No credential_get may follow. */
void credential_stop(struct credential *cr);
/* Call this after loop_stop, when nothing of it runs any more. NULL is allowed. */
void credential_free(struct credential *cr);

/*
 * Call FN with the credential, within this call if it is known and good, else later. Token and
 * certificate files are read again, on the pool, after a minute; if that fails or takes over 10 s,
 * the last ones are used. A plugin runs again shortly before its answer expires, and may take 60 s.
 * A failure is cached for 5 s. During the start, a plugin's stderr goes to the terminal too. Return
 * a ticket for credential_cancel, or 0 if FN was called already.
 */
uint64_t credential_get(struct credential *cr, credential_fn fn, void *data);
void credential_cancel(struct credential *cr, uint64_t ticket);

/*
 * Refresh the credentials after a 401 for GENERATION, at most once in 5 s. Return true if a retry
 * may help.
 */
bool credential_refused(struct credential *cr, uint64_t generation);
/*
 * A user waits for the next request, and may have logged in just now: forget an earlier failure,
 * and refresh credentials that the server refuses even if that was done a moment ago.
 */
void credential_retry_now(struct credential *cr);
