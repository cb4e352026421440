/* SPDX-License-Identifier: MIT */
/*
 * Credentials for requests: fixed tokens and certificates, token files that change, exec plugins.
 * Before kxfs sends a request, it asks this module for a credential. If the known credential is
 * still good, the reply is immediate. Otherwise all waiting requests share one refresh. I/O thread
 * only, except credential_new and credential_free. Messages contain no credentials.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/kubeconfig.h"

struct credential;

/*
 * The parts of a request's credential. The strings are borrowed, and are valid until the current
 * callback on the I/O thread returns.
 */
struct credential_parts {
	const char *authorization;	/* the whole Authorization header line, or NULL */
	const char *cert_pem, *key_pem; /* NULL if there is none */
	uint64_t generation;		/* grows whenever any of these changes */
};

/*
 * The reply to credential_get. After a success, ERR is 0 and PARTS is set. After a failure, ERR is
 * a negative errno, and TEXT describes the failure for people. -EACCES: the plugin failed; TEXT has
 * the end of the plugin's stderr, and the install hint of the kubeconfig. -ENOENT: a file is
 * missing, and kxfs has never read it. -ETIMEDOUT: the plugin or the disk did not answer in time.
 */
typedef void (*credential_fn)(void *data, int err, const struct credential_parts *parts,
			      const char *text);

/*
 * Create the credential of connection C. C is borrowed, and must outlive the credential. This waits
 * for the disk. Return 0, or a negative errno with *RET_TEXT, malloc'ed.
 */
int credential_new(struct loop *loop, const struct spec_connection *c, struct credential **ret,
		   char **ret_text);
/*
 * Set the function that reads the connection from the kubeconfig again. LOAD(DATA) runs on the pool
 * after the server has refused the current credential, or the plugin has failed. LOAD returns 0 or
 * a negative errno. If LOAD returns a connection to another server, kxfs ignores that connection.
 * Call credential_set_load before the loop runs.
 */
void credential_set_load(struct credential *cr,
			 int (*load)(void *data, struct spec_connection *ret), void *data);
/*
 * Kill a running plugin, and drop all waiting callers without calling their FN. Do not call
 * credential_get afterwards.
 */
void credential_stop(struct credential *cr);
/* Free CR, which may be NULL. Call this after loop_stop. */
void credential_free(struct credential *cr);

/*
 * Call FN with the credential. If the known credential is still good, call FN within this call, and
 * return 0. Otherwise call FN later, and return a ticket for credential_cancel.
 *
 * kxfs reads token and certificate files again, on the pool, after a minute. If this fails or takes
 * more than 10 s, kxfs uses the last contents. kxfs runs a plugin again shortly before the plugin's
 * answer expires. A plugin may take 60 s. A failure is cached for 5 s. While kxfs starts, a
 * plugin's stderr also goes to the terminal.
 */
uint64_t credential_get(struct credential *cr, credential_fn fn, void *data);
void credential_cancel(struct credential *cr, uint64_t ticket);

/*
 * Call this after a 401 reply to a request that had the credential of GENERATION. Refresh the
 * credential, but at most once in 5 s. Return true if a retry of the request may succeed.
 */
bool credential_refused(struct credential *cr, uint64_t generation);
/*
 * Call this before a request for which a user waits. The user may have just logged in, so forget an
 * earlier failure, and let credential_refused refresh again even within 5 s.
 */
void credential_retry_now(struct credential *cr);
