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
	 * It has given its ANSWER, whose strings may be taken; or there is none: -EACCES or -ETIMEDOUT
	 * with TEXT (it is not installed ...). Never from within plugin_start; not after plugin_stop.
	 */
	void (*done)(void *data, int err, struct spec_credential *answer, const char *text);
	/* Its process has gone, and its memory too. */
	loop_fn gone;
	void *data;
};

/* Run the plugin of C. INFO is the value of KUBERNETES_EXEC_INFO. EVENTS is copied. */
struct plugin *plugin_start(struct loop *loop, const struct spec_connection *c, const char *info,
			    const struct plugin_events *events);
/* End its process group now. gone() follows, unless the loop ends before. */
void plugin_stop(struct plugin *p);
/* After loop_stop, of one whose gone() has not been called. */
void plugin_free(struct plugin *p);
