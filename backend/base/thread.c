/* SPDX-License-Identifier: MIT */
/* Starts threads, and waits for them for a limited time. */
#include "backend/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

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

bool wait_for(sem_t *sem, unsigned seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	while (sem_clockwait(sem, CLOCK_MONOTONIC, &until) < 0)
		if (errno != EINTR)
			return false;
	return true;
}
