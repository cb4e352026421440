/* SPDX-License-Identifier: MIT */
/*
 * In a mount of several kinds, one kind has a fault: for a while the mounting user is not allowed
 * to access it, or its definition is removed with all its jobs and created again. Nothing can be
 * created while the definition is being removed ("A definition that is being removed takes nothing
 * new", docs/facts.md). During a fault, jobs/ must keep all jobs that exist on the server.
 *
 * In a history with chains (world.h), the user may also lose the right to watch links for a while.
 * Meanwhile kxfs shows the jobs, and .kxfs/info and `why` explain why their pods are not known.
 * Afterwards kxfs knows the pods again.
 */
#include "spec/base/mem.h"
#include "tests/sim/cluster.h"
#include "tests/sim/kernel.h"

#define BEGIN_S 100
#define LASTS_S 90
/* If the network works, kxfs notices within this time that it is forbidden to watch links. */
#define KNOWN_S 30

/* The names in jobs/ when the fault began. */
static struct kernel_names before;
/* The kind whose definition was removed or is being removed; NULL before that. */
static const char *removed_kind;

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

/* Check that jobs/ still has the jobs that look() found in the life LIFE at the time SINCE. */
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
			sim_fail("%s is not in jobs/ any more, but the server has it", name);
	}
}

/* Request the removal of all jobs of the K-th kind that exist. Return false if there are none. */
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
		sim_log("server", "the definition of %s is about to be removed", server_kind(k));
		removed_kind = server_kind(k);
		cluster_trouble(k, ENDS);
		sim_sleep(cluster_kept_us());
		/*
		 * The server serves the kind until its last job is gone. Jobs with finalizers take
		 * longer to disappear.
		 */
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
	sim_log("server", "%s can be accessed again", server_kind(k));
	cluster_trouble(k, NO_TROUBLE);
}

bool kinds_removed(const char *kind)
{
	return removed_kind && (!kind || streq(kind, removed_kind));
}

/* Return the text of the file PATH, malloc'ed; "" if it can't be read. */
static char *text_of(const char *path, pid_t pid)
{
	char *text = NULL;

	return kernel_read(pid, path, &text) ? text_copy("") : text;
}

/* True if requests of kxfs fail in this history only because of a missing right. */
static bool is_net_good(void)
{
	return !sim_faults.refused && !sim_faults.lost && !sim_faults.silent &&
	       !sim_faults.proxied && !sim_faults.busy && !sim_faults.stranger &&
	       !sim_faults.troubled && !sim_faults.away && !sim_faults.restored && !sim_faults.cut;
}

/*
 * The user lost the right to watch links at SINCE. Check that .kxfs/info and `why` report this. If
 * kxfs ends meanwhile, check nothing.
 */
static void check_reasons(pid_t pid, uint64_t since)
{
	unsigned life = sim_life();
	cleanup_free char *info = text_of(".kxfs/info", pid);
	bool known = strstr(info, "links.example.com");

	/* Without JobSets, kxfs needs no links. */
	if (*info && !known && is_net_good() && !kinds_removed("jobset") && life == sim_life() &&
	    mounted_us() > KNOWN_S * SIM_S && sim_now() - since > KNOWN_S * SIM_S)
		sim_fail(".kxfs/info does not report that links may not be watched");
	for (size_t i = 0; known && i < server_n_jobs(); i++) {
		const struct object *job = object_find(JOBS, server_job(i));
		cleanup_free char *state_path = text_print("jobs/%s/state", job->name);
		cleanup_free char *why_path = text_print("jobs/%s/why", job->name);
		cleanup_free char *state = NULL, *why = NULL;

		if (!streq(job->of->controller->source, "jobset") || job->foreign ||
		    job->made < since)
			continue;
		state = text_of(state_path, pid);
		why = text_of(why_path, pid);
		/* If Kueue has a reason, `why` shows that reason instead. */
		if (life == sim_life() && streq(state, "RUNNING\n") && *why &&
		    !strstr(why, "kxfs can't find its pods") && !strstr(why, "Kueue"))
			sim_fail(
				"%s has no pods because links may not be watched, but its why is %s",
				job->name, why);
	}
}

static void forbid_links(void *data)
{
	pid_t pid = kernel_fork(KERNEL_SEEN);
	uint64_t since;

	(void)data;
	if (sim_chance(SIM_CHAINS, 500))
		sim_sleep(sim_random(SIM_CHAINS) % (BEGIN_S * SIM_S));
	since = sim_now();
	sim_log("server", "links may not be watched");
	cluster_forbid_links(true);
	sim_sleep(SIM_S + sim_random(SIM_CHAINS) % (LASTS_S * SIM_S));
	if (sim_fs)
		check_reasons(pid, since);
	sim_log("server", "links may be watched again");
	cluster_forbid_links(false);
}

void kinds_begin(void)
{
	bool chains = !sim_machine && server_has_chains(), sets = false;

	for (size_t k = 0; chains && k < server_n_kinds(); k++)
		sets |= streq(server_kind(k), "jobset");
	if (sets && sim_faults.forbidden && sim_chance(SIM_CHAINS, 700))
		sim_task_start(SIM_WORLD, forbid_links, NULL);
	if (!sim_machine && server_n_kinds() > 1)
		sim_task_start(SIM_WORLD, trouble, NULL);
}
