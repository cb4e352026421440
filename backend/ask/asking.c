/* SPDX-License-Identifier: MIT */
/*
 * Sends requests to a server, with a loop, credentials and HTTP of its own. The caller is woken
 * twice: after the last reply or a signal, and when everything has stopped.
 */
#include "backend/ask/asking.h"

#include <semaphore.h>

#include "backend/base/process.h"
#include "spec/base/mem.h"

struct asking {
	const struct asking_ops *ops;
	void *data;
	struct spec_connection connection;
	struct loop *loop;
	struct credential *credential;
	struct http *http;
	struct interrupt interrupt;
	struct loop_watch *watch; /* watches INTERRUPT until the last reply; I/O thread */
	bool over;		  /* I/O thread */
	/* Posted after the last reply or a signal, and when everything has stopped. */
	sem_t done;
};

static void on_signal(void *data)
{
	asking_over(data);
}

static void begin(void *data)
{
	struct asking *a = data;

	if (a->interrupt.fd >= 0)
		a->watch = loop_watch_new(a->loop, a->interrupt.fd, false, on_signal, a);
	a->ops->begin(a->data, a, a->http);
}

static void on_stopped(void *data)
{
	struct asking *a = data;

	sem_post(&a->done);
}

static void end(void *data)
{
	struct asking *a = data;

	a->ops->end(a->data);
	credential_stop(a->credential);
	http_stop(a->http, on_stopped, a);
}

static void await(struct asking *a)
{
	while (sem_wait(&a->done) < 0)
		;
}

void asking_over(struct asking *a)
{
	/* The signal stays pending, so the watch would fire again. */
	loop_watch_free(take_ptr(a->watch));
	if (!a->over)
		sem_post(&a->done);
	a->over = true;
}

/*
 * Run the loop until all is over. Return false if something hangs that may resume at any moment and
 * use its memory.
 */
static bool ask(struct asking *a)
{
	bool stopped;

	interrupt_hold(&a->interrupt);
	loop_post(a->loop, begin, a);
	await(a);
	loop_post(a->loop, end, a);
	await(a);
	stopped = loop_stop(a->loop);
	interrupt_release(&a->interrupt);
	return stopped;
}

int asking_run(struct spec_connection *connection, const struct asking_ops *ops, void *data,
	       char **ret_text)
{
	struct asking *a = new0(struct asking);
	int err;

	a->ops = ops;
	a->data = data;
	a->connection = *connection;
	sem_init(&a->done, 0, 0);
	loop_new(&a->loop);
	err = credential_new(a->loop, &a->connection, &a->credential, ret_text);
	if (!err)
		err = http_new(a->loop, &a->connection, a->credential, &a->http, ret_text);
	if (!err)
		err = loop_start(a->loop);
	if (err || ask(a)) {
		http_free(a->http);
		credential_free(a->credential);
		loop_free(a->loop);
		spec_connection_clear(&a->connection);
		sem_destroy(&a->done);
		free(a);
	}
	*connection = (struct spec_connection){0};
	return err;
}
