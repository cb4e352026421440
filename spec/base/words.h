/* SPDX-License-Identifier: MIT */
/*
 * Shortens a cluster's messages about a container or a pod for people. If the runtime or the
 * scheduler reports a chain of errors, only its cause remains. An unrecognised message is returned
 * unchanged.
 */
#pragma once

#include "spec/base/base.h"

/* A part of a text, without a NUL at its end. It is empty if N is 0. */
struct spec_words {
	const char *p;
	size_t n;
};

/* Return the image named in MESSAGE, which reports a failed pull; empty if no image is named. */
struct spec_words spec_words_image(const char *message);
/* Return the reason for a failed pull from MESSAGE; empty if it has none. */
struct spec_words spec_words_pull(const char *message);
/*
 * REASON is the reason why a container waits. True if it means that the container's image could not
 * be pulled.
 */
bool spec_words_is_pull(const char *reason);
/*
 * Return how long a container waits for its restart, in ns, from a MESSAGE like "back-off 2m40s
 * ..."; 0 if MESSAGE has no time.
 */
int64_t spec_words_backoff(const char *message);
/*
 * True if the scheduler's MESSAGE means that enough pods of a gang are running, and that this pod
 * of the gang waits because the cluster has no capacity for it.
 */
bool spec_words_is_beside_gang(const char *message);
/*
 * True if the scheduler's MESSAGE only means that the scheduler has chosen a node for the pod and
 * has not bound the pod to it yet.
 */
bool spec_words_is_passing(const char *message);
/* Return the program that, according to MESSAGE, could not be started; empty if none is named. */
struct spec_words spec_words_program(const char *message);
/* Return the reason in MESSAGE why the runtime could not start a container. */
struct spec_words spec_words_start(const char *message);
/*
 * Return the reason in the scheduler's MESSAGE why no node accepts a pod. Omit the scheduler's
 * remarks about preemption.
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
/*
 * Return the persistent volume claim that, according to MESSAGE, is missing; empty if none is
 * named.
 */
struct spec_words spec_words_claim(const char *message);
