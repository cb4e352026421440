/* SPDX-License-Identifier: MIT */
/* Waiting for another thread, no longer than so long. Never on the I/O thread. */
#pragma once

#include <semaphore.h>

#include "spec/base/base.h"

/* Take one from SEM within so many seconds of the monotonic clock. False: there was none. */
bool wait_for(sem_t *sem, unsigned seconds);
