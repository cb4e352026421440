/* SPDX-License-Identifier: MIT */
/*
 * How kxfs is known to a server: fixed tokens and certificates, token files that change, exec plugins. A credential is
 * asked before each request. It answers at once while what it knows is good, and else makes that anew once for all who
 * wait. I/O thread only, but for credential_new and credential_free. No credential appears in a message.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/kubeconfig.h"

struct credential;

/* What a request carries. Borrowed, and valid until the I/O thread returns to its loop. */
struct credential_parts {
	const char *authorization;	/* the whole header line, or NULL */
	const char *cert_pem, *key_pem; /* NULL: none */
	uint64_t generation;		/* grows whenever any of these changes */
};

/*
 * ERR is 0, with PARTS; or -EACCES (the plugin failed; TEXT has the last of its stderr, and the hint of the
 * kubeconfig), -ETIMEDOUT, -ENOENT (a file is missing, and none was read before), ...
 */
typedef void (*credential_fn)(void *data, int err, const struct credential_parts *parts,
			      const char *text);

/* C says what to use; it is borrowed and must stay. 0, or a negative errno with *RET_TEXT. Waits for the disk. */
int credential_new(struct loop *loop, const struct spec_connection *c, struct credential **ret,
		   char **ret_text);
/*
 * LOAD, which runs on the pool, gives the connection as the kubeconfig says it now: 0 or a negative errno. It is asked
 * when the server refuses the present credentials; a connection to another server is not used. To be called before the
 * loop runs.
 */
void credential_set_load(struct credential *cr,
			 int (*load)(void *data, struct spec_connection *ret), void *data);
/* End a plugin that runs. Those who wait are not called any more, and nobody may ask any more. */
void credential_stop(struct credential *cr);
/* To be called after loop_stop, when nothing of it runs any more. NULL is allowed. */
void credential_free(struct credential *cr);

/*
 * Call FN with what to use: within this call where that is known and good, else later. Token and
 * certificate files are read again, on the pool, a minute after the last time (what was read last is
 * kept when that fails, and used when it takes over 10 s); a plugin is run again shortly before its
 * answer expires, and may take 60 s. A failure is the answer for 5 s. While kxfs starts, a plugin's
 * stderr goes to the terminal too. Returns a ticket for credential_cancel; 0 when FN was called already.
 */
uint64_t credential_get(struct credential *cr, credential_fn fn, void *data);
void credential_cancel(struct credential *cr, uint64_t ticket);

/*
 * The server answered 401 to GENERATION: make the credentials anew, but not more often than each 5 s. True: asking
 * again may help.
 */
bool credential_refused(struct credential *cr, uint64_t generation);
/*
 * A user waits for the request that is sent next, and may have logged in just now: an earlier failure is no answer any
 * more, and credentials that the server refuses are made anew even if that was done a moment ago.
 */
void credential_hurry(struct credential *cr);
