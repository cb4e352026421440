/* SPDX-License-Identifier: MIT */
/*
 * One run of an exec credential plugin: a child process in a session of its own, started from its
 * argv without a shell. The plugin's input is /dev/null. The plugin may take 60 s. Private to
 * backend/client/. I/O thread only, except plugin_free.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/kubeconfig.h"

struct plugin;

struct plugin_events {
	/*
	 * Called once, with the result. If ERR is 0, the callee may take ownership of the strings
	 * in ANSWER. Otherwise ERR is -EACCES or -ETIMEDOUT, and TEXT is the reason. This is not
	 * called within plugin_start, or after plugin_stop.
	 */
	void (*done)(void *data, int err, struct spec_credential *answer, const char *text);
	/* Called last. The process has ended, and the struct plugin is already freed. */
	loop_fn gone;
	void *data;
};

/* Run the plugin of C. INFO is the value of KUBERNETES_EXEC_INFO. EVENTS is copied. */
struct plugin *plugin_start(struct loop *loop, const struct spec_connection *c, const char *info,
			    const struct plugin_events *events);
/* Kill the plugin's process group. gone() is called later, unless the loop ends before that. */
void plugin_stop(struct plugin *p);
/* Call this after loop_stop for a plugin whose gone() was not called. */
void plugin_free(struct plugin *p);
