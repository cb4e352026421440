/* SPDX-License-Identifier: MIT */
/*
 * One run of an exec credential plugin: a child process in a session of its own, started from its
 * argv without a shell. Its input is /dev/null, and it may take 60 s. Private to backend/client/.
 * I/O thread only, except plugin_free.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/kubeconfig.h"

struct plugin;

struct plugin_events {
	/*
	 * Called with the plugin's ANSWER, whose strings may be taken over; or with -EACCES or
	 * -ETIMEDOUT and TEXT (it is not installed ...). Never from within plugin_start; not after
	 * plugin_stop.
	 */
	void (*done)(void *data, int err, struct spec_credential *answer, const char *text);
	/* The process and struct plugin no longer exist. */
	loop_fn gone;
	void *data;
};

/* Run the plugin of C. INFO is the value of KUBERNETES_EXEC_INFO. EVENTS is copied. */
struct plugin *plugin_start(struct loop *loop, const struct spec_connection *c, const char *info,
			    const struct plugin_events *events);
/* Kill its process group. gone() follows, unless the loop ends before that. */
void plugin_stop(struct plugin *p);
/* Call this after loop_stop for a plugin whose gone() was not called. */
void plugin_free(struct plugin *p);
