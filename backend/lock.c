/* SPDX-License-Identifier: MIT */
/* What lock.h counts: the locks that a thread holds. */
#include "backend/lock.h"

_Thread_local int lock_held;
