/* SPDX-License-Identifier: MIT */
/* Starts threads with all signals blocked. */
#include "backend/base/thread.h"

#include <signal.h>

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
