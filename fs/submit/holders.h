/* SPDX-License-Identifier: MIT */
/*
 * Find out from the kernel's requests which processes have a file open: for writers that /proc does
 * not show (writer.h). Each write and each close of a descriptor has a number that identifies the
 * process (precisely: its table of descriptors). A process that writes has a descriptor. So has a
 * process that closes one before anything was written: a shell does so after it has made the file
 * its output. Other processes may have descriptors, too, but no request shows them. So a close ends
 * the writing when no known process has a descriptor any more. The behaviour of real writers is in
 * tests/unit/fs/submit/test-holders.c. Only one thread may use a struct holders at a time.
 */
#pragma once

#include "spec/base/base.h"

/* If more processes than this write a file at the same time, only the release ends the writing. */
#define HOLDERS_MAX 16

struct holders {
	uint64_t who[HOLDERS_MAX];
	size_t n;
	bool written; /* a process has written */
	bool crowded; /* there were more processes than fit into V */
};

/* WHO (0: an unknown process) writes. */
void holders_wrote(struct holders *h, uint64_t who);
/* WHO closes a descriptor. Return true if no known process has one any more. */
bool holders_closed(struct holders *h, uint64_t who);
