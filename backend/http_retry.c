/* SPDX-License-Identifier: MIT */
/*
 * When to send again. All calls share one budget, so that a server in trouble is not asked more often
 * the more jobs there are: when it is used up, calls end with what the server said, and their owners
 * back off.
 */
#include "backend/http_impl.h"

#define BUDGET_MAX  32	/* retries at once */
#define BUDGET_MS   500 /* one more after each */
#define BACKOFF_MIN 250u
#define BACKOFF_MAX 10000u

void http_budget_init(struct http_budget *b, uint64_t now)
{
	*b = (struct http_budget){.tokens = BUDGET_MAX, .since = now};
}

bool http_budget_take(struct http_budget *b, uint64_t now)
{
	uint64_t more = (now - b->since) / BUDGET_MS;

	b->since += more * BUDGET_MS;
	b->tokens = (unsigned)min_of(b->tokens + more, (uint64_t)BUDGET_MAX);
	if (b->tokens == 0)
		return false;
	b->tokens--;
	return true;
}

/* What the server asks for is never cut short; both are spread, so that not all come back at once. */
unsigned http_backoff(unsigned try, unsigned asked, unsigned random)
{
	unsigned wait = BACKOFF_MIN;

	if (asked)
		return asked + random % (asked / 4 + 1);
	for (; try > 2 && wait < BACKOFF_MAX; try--)
		wait *= 2;
	wait = min_of(wait, BACKOFF_MAX);
	return wait / 2 + random % (wait / 2 + 1);
}
