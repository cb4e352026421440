/* SPDX-License-Identifier: MIT */
/* Polls blocked signals through signalfd(2) without reading it, which would consume the signal. */
#include "backend/base/interrupt.h"

#include <sys/signalfd.h>

void interrupt_hold(struct interrupt *i)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction now;
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &i->was);
	sigemptyset(&set);
	for (size_t k = 0; k < array_size(signals); k++)
		if (sigismember(&i->was, signals[k]) == 0 &&
		    sigaction(signals[k], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			sigaddset(&set, signals[k]);
	i->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (i->fd >= 0)
		pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void interrupt_release(struct interrupt *i)
{
	base_close_fd(&i->fd);
	i->fd = -1;
	pthread_sigmask(SIG_SETMASK, &i->was, NULL);
}
