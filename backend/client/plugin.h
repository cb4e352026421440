/* SPDX-License-Identifier: MIT */
/*
 * One run of an exec credential plugin: a child process in its own session, started without a
 * shell. Its input is /dev/null, and it may take 60 s. Private to backend/client/. I/O thread only,
 * except plugin_free.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/kubeconfig.h"

struct plugin;

struct plugin_events {
	/*
	 * Called once, after plugin_start has returned, unless plugin_stop is called before. If ERR
	 * is 0, the callee may take the strings of ANSWER. Otherwise ERR is -EACCES or -ETIMEDOUT,
	 * and TEXT is the reason.
	 */
	void (*done)(void *data, int err, struct spec_credential *answer, const char *text);
	/* Called last, when the process has ended. The struct plugin is already freed. */
	loop_fn gone;
	void *data;
};

/* Run the plugin of C. INFO is the value of KUBERNETES_EXEC_INFO. EVENTS is copied. */
struct plugin *plugin_start(struct loop *loop, const struct spec_connection *c, const char *info,
			    const struct plugin_events *events);
/* Kill the plugin's process group. gone() is called later, unless the loop ends before. */
void plugin_stop(struct plugin *p);
/* Call this after loop_stop, for a plugin whose gone() was not called. */
void plugin_free(struct plugin *p);
