/* SPDX-License-Identifier: MIT */
/*
 * Shortens a cluster's messages about a container or a pod, so that people can read them. If the
 * runtime or the scheduler reports a chain of errors, only the root cause remains. A message that
 * is not recognized is returned unchanged.
 */
#pragma once

#include "spec/base/base.h"

/* A part of a text, without a NUL at its end. It is empty if N is 0. */
struct spec_words {
	const char *p;
	size_t n;
};

/* MESSAGE reports a failed pull. Return the name of the image; empty if MESSAGE names no image. */
struct spec_words spec_words_image(const char *message);
/* Return the reason in MESSAGE why an image pull failed; empty if there is none. */
struct spec_words spec_words_pull(const char *message);
/* True if REASON, for which a container waits, means that its image could not be pulled. */
bool spec_words_is_pull(const char *reason);
/*
 * Find in MESSAGE how long a container waits for its restart ("back-off 2m40s ..."), and return it
 * in ns. Return 0 if MESSAGE has no time.
 */
int64_t spec_words_backoff(const char *message);
/*
 * MESSAGE is from the scheduler, about a pod of a gang. True if it means that enough pods of the
 * gang are running, but that the cluster has no capacity for this pod.
 */
bool spec_words_is_beside_gang(const char *message);
/*
 * True if the scheduler's MESSAGE only means that the scheduler has chosen a node for the pod and
 * has not bound the pod to it yet.
 */
bool spec_words_is_passing(const char *message);
/* MESSAGE reports that a program could not start. Return the program; empty if none is named. */
struct spec_words spec_words_program(const char *message);
/* Find in MESSAGE the reason why the runtime could not start a container, and return it. */
struct spec_words spec_words_start(const char *message);
/*
 * Find in the scheduler's MESSAGE the reason why no node accepts a pod, and return it. Omit the
 * scheduler's remarks about preemption.
 */
struct spec_words spec_words_unschedulable(const char *message);
/*
 * Some servers forward another server's error as a dump of a Go struct. If TEXT is such a dump,
 * replace it by the error's message (the quoted text after "Message:") and return true. Otherwise
 * return false and leave TEXT unchanged.
 */
bool spec_words_undump(char *text);
/*
 * Turn TEXT into one line without control characters, and shorten it to about MAX bytes. A cut is
 * never within a character.
 */
void spec_words_clean(char *text, size_t max);
/* MESSAGE reports a missing persistent volume claim. Return its name; empty if none is named. */
struct spec_words spec_words_claim(const char *message);
