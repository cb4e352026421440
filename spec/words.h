/* SPDX-License-Identifier: MIT */
/*
 * What a cluster says of a container or a pod, in words for people: error chains of its runtime and its
 * scheduler, cut down to what was the matter. What is not recognised stays as it is.
 */
#ifndef KXFS_SPEC_WORDS_H
#define KXFS_SPEC_WORDS_H

#include "spec/base.h"

/* A part of a text, not terminated. */
struct spec_words {
	const char *p;
	size_t n;
};

/* The image that MESSAGE of a failed pull is about; empty: it is not said. */
struct spec_words spec_words_image(const char *message);
/* Why the pull failed; empty: it is not said. */
struct spec_words spec_words_pull(const char *message);
/* Is REASON that of a container whose image is not there? */
bool spec_words_is_pull(const char *reason);
/* Why the runtime could not start a container. */
struct spec_words spec_words_start(const char *message);
/* Why no node takes a pod: without what the scheduler tried to push away. */
struct spec_words spec_words_unschedulable(const char *message);
/*
 * Some pass on the error of another as Go prints it. TEXT becomes what that error says, the quoted text behind
 * "Message:"; false: it is no such dump, and stays.
 */
bool spec_words_undump(char *text);
/* TEXT becomes one line without control characters, of about MAX bytes at most, cut between characters. */
void spec_words_clean(char *text, size_t max);
/* The persistent volume claim that MESSAGE says is not there; empty: none. */
struct spec_words spec_words_claim(const char *message);

#endif
