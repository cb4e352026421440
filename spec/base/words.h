/* SPDX-License-Identifier: MIT */
/*
 * The messages of a cluster about a container or a pod, shortened for people: error chains of the runtime
 * and the scheduler are cut down to their cause. A message that is not recognised is returned as it is.
 */
#pragma once

#include "spec/base/base.h"

/* A part of a text, not terminated. */
struct spec_words {
	const char *p;
	size_t n;
};

/* The image that MESSAGE of a failed pull is about; empty: the message does not name it. */
struct spec_words spec_words_image(const char *message);
/* Why the pull failed; empty: the message does not give a reason. */
struct spec_words spec_words_pull(const char *message);
/* Is REASON that of a container whose image could not be pulled? */
bool spec_words_is_pull(const char *reason);
/* How long (ns) a container is not started again, according to MESSAGE ("back-off 2m40s ..."); 0: not said. */
int64_t spec_words_backoff(const char *message);
/* Does MESSAGE of the scheduler say that enough of a gang run, and that it has no room for others of its pods? */
bool spec_words_is_beside_gang(const char *message);
/* Does MESSAGE of the scheduler say no more than that it has not bound a pod yet that has its place? */
bool spec_words_is_passing(const char *message);
/* The program that could not be started according to MESSAGE; empty: it names none. */
struct spec_words spec_words_program(const char *message);
/* Why the runtime could not start a container. */
struct spec_words spec_words_start(const char *message);
/* Why no node takes a pod: without what the scheduler tried to push away. */
struct spec_words spec_words_unschedulable(const char *message);
/*
 * Some servers pass on an error of another one as Go prints its struct. TEXT becomes the message of that error, which
 * is the quoted text behind "Message:". False: TEXT is no such dump, and is unchanged.
 */
bool spec_words_undump(char *text);
/* Make TEXT one line without control characters, of about MAX bytes at most, cut between characters. */
void spec_words_clean(char *text, size_t max);
/* The persistent volume claim that is missing according to MESSAGE; empty: it names none. */
struct spec_words spec_words_claim(const char *message);
