/* SPDX-License-Identifier: MIT */
/*
 * All that it takes to ask a server: a loop, the credentials, HTTP. The caller is woken twice: when all is
 * answered or a signal came, and when all is stopped.
 */
#include "backend/ask/asking.h"

#include <semaphore.h>

#include "backend/base/interrupt.h"

struct asking {
	const struct asking_ops *ops;
	void *data;
	struct loop *loop;
	struct credential *credential;
	struct http *http;
	struct interrupt interrupt;
	struct loop_watch *watch; /* of INTERRUPT, while there is no answer; I/O thread */
	bool over;		  /* I/O thread */
	sem_t done; /* posted when all is answered or a signal came, and when all is stopped */
};

static void asking_clear(struct asking *a)
{
	http_free(a->http);
	credential_free(a->credential);
	loop_free(a->loop);
	sem_destroy(&a->done);
}

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
	loop_watch_free(take_ptr(a->watch)); /* the signal stays pending, and would be told again */
	if (!a->over)
		sem_post(&a->done);
	a->over = true;
}

int asking_run(const struct spec_connection *connection, const struct asking_ops *ops, void *data,
	       char **ret_text)
{
	struct asking a cleanup(asking_clear) = {.ops = ops, .data = data};
	int err;

	sem_init(&a.done, 0, 0);
	loop_new(&a.loop);
	err = credential_new(a.loop, connection, &a.credential, ret_text);
	if (!err)
		err = http_new(a.loop, connection, a.credential, &a.http, ret_text);
	if (!err)
		err = loop_start(a.loop);
	if (err)
		return err;
	interrupt_hold(&a.interrupt);
	loop_post(a.loop, begin, &a);
	await(&a);
	loop_post(a.loop, end, &a);
	await(&a);
	loop_stop(a.loop);
	interrupt_release(&a.interrupt);
	return 0;
}
