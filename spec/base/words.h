/* SPDX-License-Identifier: MIT */
/*
 * A cluster's messages about a container or a pod, shortened for people: error chains of the
 * runtime and the scheduler are reduced to their cause. An unrecognised message is returned
 * unchanged.
 */
#pragma once

#include "spec/base/base.h"

/* A part of a text, not terminated. */
struct spec_words {
	const char *p;
	size_t n;
};

/* Return the image in MESSAGE of a failed pull; empty if it names none. */
struct spec_words spec_words_image(const char *message);
/* Return why the pull failed; empty if the message gives no reason. */
struct spec_words spec_words_pull(const char *message);
/* True if a container with the waiting reason REASON could not pull its image. */
bool spec_words_is_pull(const char *reason);
/*
 * Return how long (ns) a container waits for its restart, according to MESSAGE ("back-off 2m40s
 * ..."); 0 if it gives no time.
 */
int64_t spec_words_backoff(const char *message);
/*
 * True if the scheduler's MESSAGE means that enough pods of a gang run, but the capacity is
 * insufficient for the rest.
 */
bool spec_words_is_beside_gang(const char *message);
/*
 * True if the scheduler's MESSAGE only means that it has not yet bound a pod that already has a
 * node.
 */
bool spec_words_is_passing(const char *message);
/* Return the program that could not be started according to MESSAGE; empty if it names none. */
struct spec_words spec_words_program(const char *message);
/* Return why the runtime could not start a container. */
struct spec_words spec_words_start(const char *message);
/* Return why no node accepts a pod, without the scheduler's words about preemption. */
struct spec_words spec_words_unschedulable(const char *message);
/*
 * Some servers pass on another server's error as Go prints its struct. Replace TEXT by the message
 * of that error, which is the quoted text after "Message:". Return false and leave TEXT unchanged
 * if it is not such a dump.
 */
bool spec_words_undump(char *text);
/* Make TEXT one line without control characters, of about MAX bytes at most, cut between characters. */
void spec_words_clean(char *text, size_t max);
/*
 * Return the persistent volume claim that is missing according to MESSAGE; empty if it names none.
 */
struct spec_words spec_words_claim(const char *message);
