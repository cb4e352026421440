/* SPDX-License-Identifier: MIT */
/*
 * One fault of one kind in a mount of several: for a while the mounting user may not access it, or
 * its definition is removed with all its jobs and created again. Nothing can be created while the
 * definition is being removed ("A definition that is being removed takes nothing new",
 * docs/facts.md). Meanwhile jobs/ keeps all jobs that exist on the server.
 */
#include "tests/sim/cluster.h"
#include "tests/sim/kernel.h"

#define BEGIN_S 100
#define LASTS_S 90

/* The names in jobs/ when the fault began. */
static struct kernel_names before;
static const char *removed_kind; /* or being removed; NULL before that */

static void look(pid_t pid)
{
	kernel_names_clear(&before);
	if (sim_fs)
		kernel_list(pid, "jobs", &before);
}

static bool has(const struct kernel_names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (streq(names->v[i].name, name))
			return true;
	return false;
}

/* LIFE and SINCE are the life and the time of the first look. */
static void look_again(pid_t pid, unsigned life, uint64_t since)
{
	struct kernel_names names cleanup(kernel_names_clear) = {0};

	if (!sim_fs || life != sim_life() || kernel_list(pid, "jobs", &names) || life != sim_life())
		return;
	for (size_t i = 0; i < before.n; i++) {
		const char *name = before.v[i].name;
		const struct object *job = object_find(JOBS, name);

		if (job && !job->foreign && !job->deleted && !job->revived && job->made < since &&
		    !has(&names, name))
			sim_fail("%s is not in jobs/ any more, and the server has it", name);
	}
}

/* Remove all that are still there. False: there are none. */
static bool remove_all(size_t k)
{
	struct object *o;
	bool ret = false;

	for (size_t i = 0; (o = object_at(i)); i++) {
		if (o->in != JOBS || o->gone || !streq(o->of->controller->source, server_kind(k)))
			continue;
		if (o->hostile)
			object_drop(o);
		else
			o->of->controller->remove(o);
		ret = true;
	}
	return ret;
}

static void trouble(void *data)
{
	pid_t pid = kernel_fork(KERNEL_SEEN);
	size_t k = sim_below(SIM_KINDS, (unsigned)server_n_kinds());
	bool removed =
		sim_chance(SIM_KINDS, 500) && !streq(server_kind(k), "job") && !sim_faults.restored;
	uint64_t since;
	unsigned life;

	(void)data;
	sim_sleep(sim_random(SIM_KINDS) % (BEGIN_S * SIM_S));
	if (removed) {
		sim_log("server", "%s is about to be removed", server_kind(k));
		removed_kind = server_kind(k);
		cluster_trouble(k, ENDS);
		sim_sleep(cluster_kept_us());
		/* It is served until the last of its jobs, some of which have finalizers, is gone. */
		while (remove_all(k))
			sim_sleep(sim_delay(SIM_KINDS, SIM_S / 100));
	}
	life = sim_life();
	since = sim_now();
	look(pid);
	sim_log("server", "%s is %s", server_kind(k), removed ? "removed" : "forbidden");
	cluster_trouble(k, removed ? UNSERVED : FORBIDDEN);
	sim_sleep(SIM_S + sim_random(SIM_KINDS) % (LASTS_S * SIM_S));
	look_again(pid, life, since);
	sim_log("server", "%s is there again", server_kind(k));
	cluster_trouble(k, NO_TROUBLE);
}

bool kinds_removed(const char *kind)
{
	return removed_kind && (!kind || streq(kind, removed_kind));
}

void kinds_begin(void)
{
	if (!sim_machine && server_n_kinds() > 1)
		sim_task_start(SIM_WORLD, trouble, NULL);
}
