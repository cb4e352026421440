/* SPDX-License-Identifier: MIT */
/*
 * Asks a server before there is a mount, on a loop that ends with the answer. The thread that starts kxfs calls this,
 * and waits; all functions of the ops run on that loop.
 */
#pragma once

#include "backend/client/http.h"

struct asking;

struct asking_ops {
	/*
	 * Begin to ask. HTTP is valid until end() returns. asking_over() is to be called when everything is answered,
	 * but not from within this.
	 */
	void (*begin)(void *data, struct asking *a, struct http *http);
	/* Free what begin() has made. */
	void (*end)(void *data);
};

/*
 * Ask the server of CONNECTION, which the ops may read, and which is empty afterwards. 0: asking_over was called, and
 * nothing of the ops runs any more; a negative errno with *RET_TEXT: nothing was asked. If a signal interrupts this
 * (interrupt.h), everything is stopped and the process ends. A call of the disk that hangs, for a token's file say, is
 * left to itself with what it uses.
 */
int asking_run(struct spec_connection *connection, const struct asking_ops *ops, void *data,
	       char **ret_text);
void asking_over(struct asking *a);
