/* SPDX-License-Identifier: MIT */
/*
 * Finds out who has a file open from the kernel's requests alone, for writers that can't be looked at in /proc
 * (writer.h). With each write and each close of a descriptor comes a number that stands for the process, or exactly for
 * its table of descriptors. A process that writes has a descriptor. So has a process that closes one before anything
 * was written, as a shell does that has just made the file its output. It is not known which others have one: so a
 * close ends the writing when no process is left that is known to have a descriptor.
 *
 * What real writers do is in tests/unit/fs/submit/test-holders.c. Only one thread may use a struct holders at a time;
 * the caller sees to that.
 */
#pragma once

#include "spec/base/base.h"

/* If more processes than this write a file at once, only its release is the end. */
#define HOLDERS_MAX 16

struct holders {
	uint64_t who[HOLDERS_MAX];
	size_t n;
	bool written; /* a process has written */
	bool crowded; /* there were more processes than V has room for */
};

/* WHO writes; 0: it is not known which process does. */
void holders_wrote(struct holders *h, uint64_t who);
/* WHO closes a descriptor. True: no process is known any more that has one. */
bool holders_closed(struct holders *h, uint64_t who);
