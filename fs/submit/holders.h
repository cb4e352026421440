/* SPDX-License-Identifier: MIT */
/*
 * Who has a file open, as far as the kernel's requests alone tell, for writers that can't be looked at in /proc
 * (writer.h). With each write and each close of a descriptor comes a number that stands for the process: for its table
 * of descriptors, to be exact. A process that writes has a descriptor. So does one that closes a descriptor before
 * anything was written, as a shell does that has just put the file in the place of its output. Which others have one
 * is not known: a close is the end of the writing when nobody is left who is known to have one.
 *
 * What real writers do is in tests/unit/fs/submit/test-holders.c. Whoever uses this sees to it that one thread does at
 * a time.
 */
#pragma once

#include "spec/base/base.h"

/* Of a file that more than these write at once only its release is the end. */
#define HOLDERS_MAX 16

struct holders {
	uint64_t who[HOLDERS_MAX];
	size_t n;
	bool written; /* somebody has written */
	bool crowded; /* there were more */
};

/* WHO writes; 0: it is not known who. */
void holders_wrote(struct holders *h, uint64_t who);
/* WHO closes a descriptor. True: nobody is known any more who has one. */
bool holders_closed(struct holders *h, uint64_t who);
