/* SPDX-License-Identifier: MIT */
/* A result that one thread waits for and another one sets, once. */
#include "backend/impl/end.h"

#include <errno.h>

#include "backend/base/thread.h"
#include "spec/base/mem.h"

void end_init(struct end *e)
{
	*e = (struct end){.lock = LOCK_INIT};
	sem_init(&e->done, 0, 0);
}

void end_clear(struct end *e)
{
	free(e->text);
	sem_destroy(&e->done);
}

void end_reach(struct end *e, int err, const char *text)
{
	cleanup_free char *copy = text ? text_copy(text) : NULL;

	{
		lock_scope(&e->lock);
		if (e->over)
			return;
		e->over = true;
		e->err = err;
		e->text = take_ptr(copy);
	}
	sem_post(&e->done);
}

int end_wait(struct end *e, unsigned seconds, char **ret_text)
{
	if (!wait_for(&e->done, seconds))
		return -ETIMEDOUT;
	lock_scope(&e->lock);
	if (ret_text)
		*ret_text = take_ptr(e->text);
	return e->err;
}
