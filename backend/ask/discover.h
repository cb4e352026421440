/* SPDX-License-Identifier: MIT */
/*
 * Finds out which of the kinds that a SOURCE may mean a cluster serves: the server is asked for the API version of one
 * after the other, in order of preference (spec_served_at).
 */
#pragma once

#include "backend/backend.h"
#include "backend/client/http.h"
#include "spec/kinds/kinds.h"

struct discover;

/* Find the connection that CONFIG means. 0, or a negative errno with *RET_TEXT. */
int discover_connection(const struct backend_config *config, struct spec_connection *ret,
			char **ret_text);

/* SERVED has a kind; or ERR and TEXT say why there is none. -EOPNOTSUPP: the cluster serves none of them. */
typedef void (*discover_fn)(void *data, const struct spec_served *served, int err,
			    const char *text);

/* FN is called once, on the loop of HTTP, never from within this call. */
struct discover *discover_new(struct http *http, const char *source, discover_fn fn, void *data);
/* FN is not called any more. NULL is allowed. */
void discover_free(struct discover *d);
