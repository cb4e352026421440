/* SPDX-License-Identifier: MIT */
/*
 * Which of the kinds that a SOURCE may mean a cluster serves: the server is asked for the API version of
 * one after the other, the best first (spec_served_at). Private to kube*.c.
 */
#ifndef KXFS_BACKEND_KUBE_DISCOVER_H
#define KXFS_BACKEND_KUBE_DISCOVER_H

#include "backend/http.h"
#include "spec/kind.h"

struct kube_discover;

/* SERVED has a kind; or ERR and TEXT say why there is none: -EOPNOTSUPP: the cluster serves none of them. */
typedef void (*kube_discover_fn)(void *data, const struct spec_served *served, int err,
				 const char *text);

/* FN is called once, on the loop of HTTP, never from within this call. NULL: no memory. */
struct kube_discover *kube_discover_new(struct http *http, const char *source, kube_discover_fn fn,
					void *data);
/* FN is not called any more. NULL is allowed. */
void kube_discover_free(struct kube_discover *d);

#endif
