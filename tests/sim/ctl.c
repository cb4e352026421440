/* SPDX-License-Identifier: MIT */
/*
 * Users who write to ctl, one at a time. The server has received each write that returned 0, never
 * acts on one that was refused, and a job is restarted at most as often as was requested.
 */
#include <errno.h>
#include <fcntl.h>

#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define WRITES 12
#define EACH_S 40
#define TRIES  20

enum end { ASKED, TAKEN, REFUSED, UNKNOWN };

/* One write. */
struct wish {
	char *job;
	const char *word, *action;
	enum end end;
	unsigned created, obeyed; /* Commands */
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
	sim_fail("nobody has asked for %s of %s", action, job);
}

void ctl_created(const char *job, const char *action)
{
	struct wish *w = wish_of(job, action);

	sim_log("server", "%s: %s", job, action);
	if (w->created++ && streq(action, "RestartJob"))
		sim_fail("%s is asked twice to restart", job);
}

void ctl_obeyed(const char *job, const char *action)
{
	struct wish *w = wish_of(job, action);

	w->obeyed++;
	if (w->end == REFUSED)
		sim_fail("%s of %s was refused, and is obeyed", w->word, job);
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
	 * A request whose record failed on the disk was still carried out, and a crash forgets it.
	 * A job that was removed may have obeyed before that.
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
		sim_fail("%s of %s was taken, and never sent", w->word, job);
	w->end = end_of(err);
	if (w->end == REFUSED && w->obeyed)
		sim_fail("%s of %s is refused, and was obeyed", w->word, job);
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

		sim_sleep(sim_random(SIM_CTL) % (EACH_S * SIM_S));
		n = server_n_jobs();
		if (!sim_fs || n == 0 || !sim_chance(SIM_CTL, sim_faults.commanded))
			continue;
		job = choose(n);
		/* A suspended job is mostly resumed at some time. */
		what = server_is_suspended(job) ? 1 : sim_below(SIM_CTL, array_size(words));
		ask(job, what, pid);
	}
}

void ctl_begin(void)
{
	sim_task_start(SIM_WORLD, commander, NULL);
}
