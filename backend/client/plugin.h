/* SPDX-License-Identifier: MIT */
/*
 * One run of an exec credential plugin: a child process by argv, without a shell, in a session of its own,
 * with /dev/null as input and at most 60 s. Private to backend/client/. I/O thread only, but for plugin_free.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/kubeconfig.h"

struct plugin;

struct plugin_events {
	/*
	 * The plugin has given its ANSWER, whose strings may be taken; or it has not: -EACCES or -ETIMEDOUT with TEXT
	 * (it is not installed ...). Never from within plugin_start; not after plugin_stop.
	 */
	void (*done)(void *data, int err, struct spec_credential *answer, const char *text);
	/* The process has gone, and struct plugin too. */
	loop_fn gone;
	void *data;
};

/* Run the plugin of C. INFO is the value of KUBERNETES_EXEC_INFO. EVENTS is copied. */
struct plugin *plugin_start(struct loop *loop, const struct spec_connection *c, const char *info,
			    const struct plugin_events *events);
/* End its process group now. gone() follows, unless the loop ends before that. */
void plugin_stop(struct plugin *p);
/* To be called after loop_stop for a plugin whose gone() was not called. */
void plugin_free(struct plugin *p);
