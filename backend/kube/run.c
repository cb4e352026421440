/* SPDX-License-Identifier: MIT */
/* A key is UID.CONTAINER.RESTART; none of the three contains a dot. */
#include "backend/kube/run.h"

size_t run_pod_len(const char *key)
{
	return strcspn(key, ".");
}

/* True if the bytes from FROM to TO are NAME. */
static bool is_part(const char *from, const char *to, const char *name)
{
	return strncmp(from, name, (size_t)(to - from)) == 0 && !name[to - from];
}

bool run_find(const struct spec_pod_view *pod, const char *key, struct run *ret)
{
	const char *name = strchr(key, '.'), *restart = strrchr(key, '.');

	if (!pod || !name || restart == name)
		return false;
	ret->pod = pod;
	ret->restart = (unsigned)strtoul(restart + 1, NULL, 10);
	for (size_t i = 0; i < pod->n_containers; i++) {
		ret->container = &pod->containers[i];
		if (is_part(name + 1, restart, ret->container->name))
			return true;
	}
	return false;
}

/* True between two runs: the container waits, and has the restart count of the earlier run. */
static bool is_between(const struct run *run)
{
	return run->container->state == SPEC_WAITING && run->container->last_exit_code >= 0;
}

bool run_has_begun(const struct run *run)
{
	return run->restart < run->container->restarts || run->container->state != SPEC_WAITING ||
	       is_between(run);
}

enum run_end run_end(const struct run *run)
{
	if (run->restart + 1 < run->container->restarts)
		return RUN_GONE; /* only the last one of the earlier runs is available */
	if (run->restart < run->container->restarts)
		return RUN_PREVIOUS;
	if (run->container->state == SPEC_TERMINATED || is_between(run))
		return RUN_LAST;
	return RUN_GOES_ON;
}

bool run_was_started(const struct run *run)
{
	return run->container->started || is_between(run);
}

unsigned run_missed_before(const struct spec_replica *r, size_t i)
{
	const char *key = r->logs[i].key, *dot = strrchr(key, '.');
	unsigned long run = dot ? strtoul(dot + 1, NULL, 10) : 0;
	unsigned long first = 0; /* the number of the first run that may be missing */

	if (i > 0 && dot && strncmp(r->logs[i - 1].key, key, (size_t)(dot + 1 - key)) == 0)
		first = strtoul(r->logs[i - 1].key + (dot + 1 - key), NULL, 10) + 1;
	return run > first ? (unsigned)(run - first) : 0;
}
