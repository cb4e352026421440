/* SPDX-License-Identifier: MIT */
/* Starts threads. Passes one result from a thread to another, with a time limit. */
#include "backend/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "spec/base/mem.h"

int thread_start(void *(*fn)(void *data), void *data, pthread_t *ret)
{
	pthread_t thread;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, fn, data);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0 && ret)
		*ret = thread;
	else if (err == 0)
		pthread_detach(thread);
	return -err;
}

void wait_init(struct wait *w)
{
	*w = (struct wait){.lock = LOCK_INIT};
	sem_init(&w->done, 0, 0);
}

void wait_clear(struct wait *w)
{
	free(w->text);
	sem_destroy(&w->done);
}

void wait_set(struct wait *w, int err, const char *text)
{
	cleanup_free char *copy = text ? text_copy(text) : NULL;

	{
		lock_scope(&w->lock);
		if (w->over)
			return;
		w->over = true;
		w->err = err;
		w->text = take_ptr(copy);
	}
	sem_post(&w->done);
}

int wait_get(struct wait *w, unsigned seconds, char **ret_text)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	while (sem_clockwait(&w->done, CLOCK_MONOTONIC, &until) < 0)
		if (errno != EINTR)
			return -ETIMEDOUT;
	lock_scope(&w->lock);
	if (ret_text)
		*ret_text = take_ptr(w->text);
	return w->err;
}
