/* SPDX-License-Identifier: MIT */
/*
 * Users who run ls -l and cat in the directory of a job, and rm -r. These invariants hold:
 * A directory lists each name once. `state` is a TorchX state. `status` belongs to the directory's
 * job. No text moves the cursor of a terminal, even if other users have put control characters
 * into the job. rm -r can remove everything that it finds.
 */
#include <errno.h>
#include <fcntl.h>

#include "spec/base/mem.h"
#include "spec/base/utf8.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define N_LOOKERS 2
#define LOOKS	  4
#define EACH_S	  80
#define DEEP	  2 /* levels of directories to look into */

/* --- checks of the texts --- */

static bool is_state(const char *text)
{
	static const char *const all[] = {"SUBMITTED\n", "PENDING\n",	"RUNNING\n", "SUCCEEDED\n",
					  "FAILED\n",	 "CANCELLED\n", "UNKNOWN\n"};

	for (size_t i = 0; i < array_size(all); i++)
		if (streq(text, all[i]))
			return true;
	return false;
}

static void check_text(const char *job, const char *name, const char *path, const char *text)
{
	cleanup_free char *id = text_print("id: %s\n", job);

	if (streq(name, "state") && !is_state(text))
		sim_fail("%s is %s", path, text);
	if (streq(name, "status") && strncmp(text, id, strlen(id)) != 0)
		sim_fail("%s does not belong to its job: %s", path, text);
	if (!spec_utf8_is_clean(text, "\n\t") && !damage_hit(job, false))
		sim_fail("%s has characters that move a cursor: %s", path, text);
}

/* --- ls -l, cat --- */

/*
 * Do what ls -l does with PATH, the directory of JOB or one below it: list it, and get the
 * attributes of some files. Read some files, too.
 */
static void look(const char *job, const char *path, pid_t pid, unsigned deep)
{
	struct kernel_names names cleanup(kernel_names_clear) = {0};

	if (kernel_list(pid, path, &names))
		return;
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.v[i].name;
		cleanup_free char *file = text_print("%s/%s", path, name), *text = NULL;

		for (size_t k = 0; k < i; k++)
			if (streq(names.v[k].name, name))
				sim_fail("%s lists %s twice", path, name);
		if (names.v[i].dir) {
			if (deep)
				look(job, file, pid, deep - 1);
		} else if (sim_chance(SIM_LOOKERS, 300) && kernel_size(pid, file) >= 0 &&
			   sim_chance(SIM_LOOKERS, 300) && !kernel_read(pid, file, &text) &&
			   deep == DEEP) {
			check_text(job, name, file, text);
		}
	}
}

static void looker(void *data)
{
	static const char *const folders[] = {"jobs", "history"};
	pid_t pid = kernel_fork(KERNEL_SEEN);

	(void)data;
	if (sim_faults.interrupted)
		kernel_disturb(pid);
	for (unsigned i = 0; i < LOOKS; i++) {
		cleanup_free char *job = NULL, *path = NULL;
		size_t n;

		sim_sleep(sim_random(SIM_LOOKERS) % (EACH_S * SIM_S));
		n = server_n_jobs();
		if (!sim_fs || n == 0)
			continue;
		job = text_copy(server_job(sim_random(SIM_LOOKERS) % n));
		path = text_print("%s/%s", folders[sim_chance(SIM_LOOKERS, 100)], job);
		look(job, path, pid, DEEP);
	}
}

void lookers_begin(void)
{
	for (unsigned i = 0; i < N_LOOKERS; i++)
		sim_task_start(SIM_WORLD, looker, NULL);
}

/* --- at the end --- */

void lookers_judge(void)
{
	static const char *const texts[] = {"state", "status", "status.json",
					    "why",   "events", "manifest.yaml"};
	struct kernel_names jobs cleanup(kernel_names_clear) = {0};
	pid_t pid = kernel_fork(KERNEL_SEEN);

	/* Only hostile users put unexpected characters into texts. */
	if (!hostile_made() || kernel_list(pid, "jobs", &jobs))
		return;
	for (size_t i = 0; i < jobs.n; i++)
		for (size_t k = 0; k < array_size(texts); k++) {
			const char *job = jobs.v[i].name;
			cleanup_free char *path = text_print("jobs/%s/%s", job, texts[k]),
					  *text = NULL;

			if (!kernel_read(pid, path, &text))
				check_text(job, texts[k], path, text);
		}
}

/* --- rm -r --- */

/*
 * True if rm -r may fail with ERR because another user removes the same files, or because kxfs or
 * the disk fails.
 */
static bool may_be(int err)
{
	static const int all[] = {0, -ENOENT, -ENOTCONN, -EINTR, -ETIMEDOUT, -EIO, -ESTALE};

	for (size_t i = 0; i < array_size(all); i++)
		if (err == all[i])
			return true;
	return false;
}

int looker_remove(pid_t pid, const char *path)
{
	struct kernel_names names cleanup(kernel_names_clear) = {0};
	int err = kernel_list(pid, path, &names);

	if (!may_be(err))
		sim_fail("rm -r can't list %s: %s", path, strerror(-err));
	for (size_t i = 0; i < names.n; i++) {
		cleanup_free char *file = text_print("%s/%s", path, names.v[i].name);

		err = names.v[i].dir ? looker_remove(pid, file) : kernel_unlink(pid, file);
		if (!may_be(err))
			sim_fail("rm -r can't remove %s: %s", file, strerror(-err));
	}
	return kernel_rmdir(pid, path);
}

/* --- ctl --- */

/*
 * One user who writes to the ctl of jobs. A write that returns 0 has reached the server. The server
 * never acts on a write that was refused, and restarts a job at most as often as the user
 * requested.
 */

#define WRITES	    12
#define ASKS_EACH_S 40
#define TRIES	    20

enum end { ASKED, TAKEN, REFUSED, UNKNOWN };

/* One write to ctl. */
struct wish {
	char *job;
	const char *word, *action;
	enum end end;
	unsigned created, obeyed; /* how often ACTION was accepted; how often it was carried out */
};

static const struct {
	const char *word, *action;
} words[] = {
	{"suspend", "AbortJob"},
	{"resume", "ResumeJob"},
	{"restart", "RestartJob"},
	{"terminate", "TerminateJob"},
};

static struct wish wishes[WRITES];
static size_t n_wishes;

/* Return the last request of ACTION for JOB. */
static struct wish *wish_of(const char *job, const char *action)
{
	for (size_t i = n_wishes; i-- > 0;)
		if (streq(wishes[i].job, job) && streq(wishes[i].action, action))
			return &wishes[i];
	sim_fail("%s of %s was sent, but no user has requested it", action, job);
}

void ctl_created(const char *job, const char *action)
{
	struct wish *w = wish_of(job, action);

	sim_log("server", "%s: %s", job, action);
	if (w->created++ && streq(action, "RestartJob"))
		sim_fail("one request to restart %s was sent twice", job);
}

void ctl_obeyed(const char *job, const char *action)
{
	struct wish *w = wish_of(job, action);

	w->obeyed++;
	if (w->end == REFUSED)
		sim_fail("%s of %s was refused, but the job obeys it", w->word, job);
}

unsigned ctl_asked(const char *job, const char *word)
{
	unsigned n = 0;

	for (size_t i = 0; i < n_wishes; i++)
		n += streq(wishes[i].job, job) && streq(wishes[i].word, word) &&
		     wishes[i].end != REFUSED;
	return n;
}

bool ctl_suspended(const char *job, bool *ret_certain)
{
	bool ret = false;

	*ret_certain = true;
	for (size_t i = 0; i < n_wishes; i++) {
		if (!streq(wishes[i].job, job) || wishes[i].end == REFUSED)
			continue;
		*ret_certain &= wishes[i].end == TAKEN;
		ret = streq(wishes[i].word, "suspend");
	}
	return ret;
}

static enum end end_of(int err)
{
	/*
	 * Besides ETIMEDOUT and ENOTCONN, two errors leave the outcome unknown. ENOENT: the job may
	 * have obeyed before it was removed. A disk error, for a local job: kxfs carries out a
	 * request that the disk refuses to record, and forgets the request if it crashes.
	 */
	bool lost = err == -ENOENT || (sim_machine && sim_faults.disk_error && err != -EINVAL);

	if (!err)
		return TAKEN;
	return err == -ETIMEDOUT || err == -ENOTCONN || lost ? UNKNOWN : REFUSED;
}

static void ask(const char *job, size_t what, pid_t pid)
{
	cleanup_free char *path = text_print("jobs/%s/ctl", job);
	struct wish *w = &wishes[n_wishes++];
	struct kernel_file f;
	int err;

	*w = (struct wish){text_copy(job), words[what].word, words[what].action, ASKED, 0, 0};
	err = kernel_open(&f, pid, path, O_WRONLY | O_TRUNC);
	if (!err) {
		err = kernel_write(&f, w->word, strlen(w->word), 0);
		kernel_close(&f, 0);
	}
	sim_log("user", "%s > %s: %s", w->word, path, err ? strerror(-err) : "done");
	if (!err && !w->created && !sim_machine)
		sim_fail("%s of %s was accepted, but never sent", w->word, job);
	w->end = end_of(err);
	if (w->end == REFUSED && w->obeyed)
		sim_fail("%s of %s is refused, but the job has obeyed it", w->word, job);
}

/* Choose one of N jobs; on a machine, where jobs are short, prefer one that runs. malloc'ed. */
static char *choose(size_t n)
{
	const char *job = server_job(sim_random(SIM_CTL) % n);

	for (unsigned i = 0; i < TRIES && sim_machine && !machine_is_up(job, NULL); i++)
		job = server_job(sim_random(SIM_CTL) % n);
	return text_copy(job);
}

static void commander(void *data)
{
	pid_t pid = kernel_fork(KERNEL_SEEN);

	(void)data;
	for (unsigned i = 0; i < WRITES; i++) {
		cleanup_free char *job = NULL;
		size_t n, what;

		sim_sleep(sim_random(SIM_CTL) % (ASKS_EACH_S * SIM_S));
		n = server_n_jobs();
		if (!sim_fs || n == 0 || !sim_chance(SIM_CTL, sim_faults.commanded))
			continue;
		job = choose(n);
		/* If the job is suspended, resume it. */
		what = server_is_suspended(job) ? 1 : sim_below(SIM_CTL, array_size(words));
		ask(job, what, pid);
	}
}

void ctl_begin(void)
{
	sim_task_start(SIM_WORLD, commander, NULL);
}
