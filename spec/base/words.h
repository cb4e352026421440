/* SPDX-License-Identifier: MIT */
/*
 * Shortens a cluster's messages about containers and pods, so that users can read them. Of a chain
 * of errors, only the root cause remains.
 */
#pragma once

#include "spec/base/base.h"

/* A part of a text, without a NUL at its end. Empty if N is 0. */
struct spec_words {
	const char *p;
	size_t n;
};

/* Return the image in the MESSAGE of a failed pull; empty if there is none. */
struct spec_words spec_words_image(const char *message);
/* Return why an image pull failed; empty if MESSAGE has no reason. */
struct spec_words spec_words_pull(const char *message);
/* True if REASON, the reason why a container waits, means that its image can't be pulled. */
bool spec_words_is_pull(const char *reason);
/*
 * Return how long a container waits before its restart, in ns; 0 if MESSAGE is not like
 * "back-off 2m40s ...".
 */
int64_t spec_words_backoff(const char *message);
/*
 * True if MESSAGE means that enough pods of a gang have been scheduled, but that the cluster has no
 * capacity for one more pod of this gang.
 */
bool spec_words_is_beside_gang(const char *message);
/*
 * True if MESSAGE only means that the scheduler has chosen a node for the pod, but has not bound
 * the pod to it yet.
 */
bool spec_words_is_passing(const char *message);
/* Return the program that could not start; empty if MESSAGE names none. */
struct spec_words spec_words_program(const char *message);
/* Return why the runtime could not start a container; all of MESSAGE if it is unknown. */
struct spec_words spec_words_start(const char *message);
/* Return why no node accepts a pod, without the scheduler's remarks about preemption. */
struct spec_words spec_words_unschedulable(const char *message);
/*
 * If TEXT has a server's dump of a Go struct, replace TEXT by the string after "Message:" in the
 * dump, and return true.
 */
bool spec_words_undump(char *text);
/*
 * Make TEXT one line without control characters. Cut it after about MAX bytes, but not within a
 * character. Return true if something was cut off.
 */
bool spec_words_clean(char *text, size_t max);
/* Return the name of a missing persistent volume claim; empty if MESSAGE names none. */
struct spec_words spec_words_claim(const char *message);
