/* SPDX-License-Identifier: MIT */
/* Waits for another thread, for a limited time. */
#include "backend/base/wait.h"

#include <errno.h>
#include <time.h>

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
