/* SPDX-License-Identifier: MIT */
/*
 * In place of backend/base/wait.c: a test has patience. And ThreadSanitizer, which does not know sem_clockwait, sees
 * who was waited for.
 */
#pragma once

#include "backend/base/wait.h"
#include "tests/unit/waiting.h"

bool wait_for(sem_t *sem, unsigned seconds)
{
	sem_wait_or_fail(sem);
	return true;
}
