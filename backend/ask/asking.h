/* SPDX-License-Identifier: MIT */
/*
 * Sends requests to a server before there is a mount, on a loop that ends with the replies. The
 * thread that starts kxfs calls this, and waits; all functions of the ops run on that loop.
 */
#pragma once

#include "backend/client/http.h"

struct asking;

struct asking_ops {
	/*
	 * Start the requests. HTTP is valid until end() returns. Call asking_over() after the last
	 * reply, but not from within this.
	 */
	void (*begin)(void *data, struct asking *a, struct http *http);
	/* Free the objects of begin(). */
	void (*end)(void *data);
};

/*
 * Send requests to the server of CONNECTION, which the ops may read, and which is empty afterwards.
 * Return 0 after asking_over, when nothing of the ops runs any more; or a negative errno with
 * *RET_TEXT before any request. If a signal interrupts this (interrupt.h), everything is stopped
 * and the process ends. A disk call that hangs, for a token's file for example, is abandoned
 * together with its memory.
 */
int asking_run(struct spec_connection *connection, const struct asking_ops *ops, void *data,
	       char **ret_text);
void asking_over(struct asking *a);
