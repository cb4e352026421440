/* SPDX-License-Identifier: MIT */
/* Waiting for another thread, for a limited time. Never on the I/O thread. */
#pragma once

#include <semaphore.h>

#include "spec/base/base.h"

/* Wait for SEM, at most SECONDS of the monotonic clock. Return false if nobody has posted it. */
bool wait_for(sem_t *sem, unsigned seconds);
