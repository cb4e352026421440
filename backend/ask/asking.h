/* SPDX-License-Identifier: MIT */
/*
 * A server is asked before there is a mount, on a loop of its own that ends with the answer. For the thread that starts
 * kxfs, which waits; all functions of the ops run on that loop.
 */
#pragma once

#include "backend/backend.h"
#include "backend/client/http.h"

struct asking;

struct asking_ops {
	/* Ask. HTTP is good until end() returns. Calls asking_over() when all is answered, not from within. */
	void (*begin)(void *data, struct asking *a, struct http *http);
	/* Free what begin() has made. */
	void (*end)(void *data);
};

/*
 * Ask the server of CONNECTION, which the ops may read, and which is empty then. 0: asking_over was called, and nothing
 * of the ops runs any more; a negative errno with *RET_TEXT: nothing was asked. If a signal interrupts it
 * (interrupt.h), all is stopped and the process ends. What a disk that hangs has not given back, as a token's file, is
 * left as it is with what it uses.
 */
int asking_run(struct spec_connection *connection, const struct asking_ops *ops, void *data,
	       char **ret_text);
void asking_over(struct asking *a);
