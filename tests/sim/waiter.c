/* SPDX-License-Identifier: MIT */
/*
 * Users who read `list` and the files that block (follow, wait, changes). They read these in
 * chunks, and signals interrupt some reads.
 *
 *  follow   returns what the log shows (reader.c). It ends when the job has ended and all output
 *           was returned
 *  wait     returns the final state of the job on the server, and `state` shows the same. This
 *           state never changes. The log is then complete (reader.c)
 *  changes  each line reports something new about its job. After SYNC, the last line of each job
 *           shows how the job is now
 *
 * At the end nobody waits for a finished job, and list and changes show the jobs as the server has
 * them.
 */
#include <errno.h>
#include <fcntl.h>

#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define N_WAITERS 2
#define WAITS	  8
#define EACH_S	  40
#define MOST_READ 300 /* the longest read, in bytes */
#define WORD	  64

/* A process that reads a file of a job. */
struct waiter {
	char *job; /* the job whose file it reads now, or NULL */
	const char *file;
};

/* What `wait` returned for a job, or the last line of `changes` for it. */
struct result {
	char *job, word[WORD], reason[WORD];
	struct result *next;
};

static struct waiter waiters[N_WAITERS];
static struct result *waited, *changed;
static bool synced; /* changes has reported all jobs in this life */

static struct result *result_of(struct result **all, const char *job)
{
	struct result *s = *all;

	while (s && !streq(s->job, job))
		s = s->next;
	if (!s) {
		s = new0(struct result);
		*s = (struct result){.job = text_copy(job), .next = *all};
		*all = s;
	}
	return s;
}

/* --- chunks --- */

/* A text that is read in chunks. */
struct text {
	struct kernel_file f;
	char *bytes;
	size_t n;
};

/* Read some more. Return 0 at the end, or a negative errno. Interrupted reads lose nothing. */
static ssize_t read_more(struct text *t)
{
	bool impatient = sim_chance(SIM_WAITERS, 200);
	size_t size = 1 + sim_below(SIM_WAITERS, MOST_READ);
	cleanup_free char *piece = NULL;
	ssize_t n;

	do
		n = kernel_read_at(&t->f, size, (off_t)t->n,
				   impatient ? 1 + sim_delay(SIM_WAITERS, 20 * SIM_S) : 0, &piece);
	while (n == -EINTR && impatient);
	if (n <= 0)
		return n;
	t->bytes = mem_grow(t->bytes, t->n + (size_t)n + 1, 1);
	memcpy(t->bytes + t->n, piece, (size_t)n);
	t->n += (size_t)n;
	t->bytes[t->n] = '\0';
	if (strlen(t->bytes) < t->n)
		sim_fail("a file that blocks returns a zero byte");
	return n;
}

/* --- follow --- */

bool waiters_is_over(const char *name)
{
	static const char *const ends[] = {"Completed", "Failed", "Terminated"};
	struct server_fate fate;

	server_fate(name, &fate);
	for (size_t i = 0; i < array_size(ends); i++)
		if (streq(fate.phase, ends[i]))
			return true;
	return fate.gone || fate.n > 1;
}

static void follow(const char *job, pid_t pid, bool merged)
{
	cleanup_free char *path =
		text_print("jobs/%s/%s.live/follow", job, merged ? "" : "main-0/");
	struct server_fate fate;
	struct text t = {0};
	ssize_t n = kernel_open(&t.f, pid, path, O_RDONLY);

	sim_log("waiter", "opens %s: %s", path, n ? strerror((int)-n) : "waits");
	if (n)
		return;
	do {
		n = read_more(&t);
		if (t.n && (n <= 0 || sim_chance(SIM_WAITERS, 200)))
			readers_followed(path, t.bytes, merged, n == 0, job);
	} while (n > 0 && !sim_chance(SIM_WAITERS, 10));
	sim_log("waiter", "%s: %zu bytes: %s", path, t.n,
		n < 0 ? strerror((int)-n)
		: n   ? "leaves"
		      : "ends");
	server_fate(job, &fate);
	/* A suspended job is CANCELLED until it is resumed. */
	if (n == 0 && !fate.suspended &&
	    (sim_machine && !merged ? machine_is_up(job, "main-0") && !users_removed(job)
				    : !waiters_is_over(job)))
		sim_fail("%s ends, but its job has not ended", path);
	kernel_close(&t.f, 0);
	free(t.bytes);
}

/* --- wait --- */

static bool is_true(const char *word, const struct server_fate *fate)
{
	const char *phase = fate->phase;

	if (streq(word, "SUCCEEDED\n"))
		return streq(phase, "Completed");
	if (streq(word, "FAILED\n"))
		return streq(phase, "Failed") || strncmp(phase, "Terminat", 8) == 0;
	return streq(word, "CANCELLED\n") && (fate->gone || fate->suspended);
}

static void wait_for(const char *job, pid_t pid)
{
	cleanup_free char *path = text_print("jobs/%s/.live/wait", job);
	struct server_fate fate;
	struct text t = {0};
	struct result *s;
	ssize_t n = kernel_open(&t.f, pid, path, O_RDONLY);

	sim_log("waiter", "opens %s: %s", path, n ? strerror((int)-n) : "waits");
	if (n)
		return;
	do
		n = read_more(&t);
	while (n > 0);
	kernel_close(&t.f, 0);
	sim_log("waiter", "%s: %s", path, n < 0 ? strerror((int)-n) : t.bytes);
	server_fate(job, &fate);
	/* Don't compare the result for a suspended job, because a user may resume it. */
	if (n == 0 && fate.n == 1) {
		s = result_of(&waited, job);
		if (!is_true(t.bytes, &fate))
			sim_fail("%s returns %s, but its job is %s%s", path, t.bytes, fate.phase,
				 fate.gone ? ", gone" : "");
		/*
		 * If the disk has not recorded the result and the job was removed, the next life
		 * can't know the result.
		 */
		if (*s->word && !streq(s->word, t.bytes) && !fate.suspended &&
		    !(fate.gone && (sim_faults.disk_error || sim_faults.hangs)))
			sim_fail("%s returned %s, and then %s", path, s->word, t.bytes);
		if (!fate.suspended)
			snprintf(s->word, sizeof(s->word), "%s", t.bytes);
		if (!fate.suspended && !fate.gone)
			readers_waited(job, pid);
	}
	free(t.bytes);
}

static void waiter(void *data)
{
	struct waiter *w = data;
	pid_t pid = kernel_fork(KERNEL_SEEN);

	for (unsigned i = 0; i < WAITS; i++) {
		unsigned what = sim_below(SIM_WAITERS, 3);
		size_t n;

		sim_sleep(sim_random(SIM_WAITERS) % (EACH_S * SIM_S));
		n = server_n_jobs();
		if (!sim_fs || n == 0)
			continue;
		w->job = text_copy(server_job(sim_random(SIM_WAITERS) % n));
		w->file = what == 2 ? "wait" : "follow";
		if (what == 2)
			wait_for(w->job, pid);
		else
			follow(w->job, pid, what == 1);
		free(take_ptr(w->job));
	}
}

/* --- changes --- */

/* Check LINE, which has the fields time, id, state and reason, separated by tabs. */
static void on_line(char *line)
{
	char *id = strchr(line, '\t'), *state = id ? strchr(id + 1, '\t') : NULL;
	char *reason = state ? strchr(state + 1, '\t') : NULL;
	struct result *s;

	if (!state)
		sim_fail("changes has a malformed line: %s", line);
	*id++ = *state++ = '\0';
	if (reason)
		*reason++ = '\0';
	else
		reason = state + strlen(state);
	if (streq(id, "-")) {
		if (synced || !streq(state, "SYNC"))
			sim_fail("changes has an unexpected line %s", state);
		synced = true;
		return;
	}
	s = result_of(&changed, id);
	if (streq(s->word, state) && streq(s->reason, reason))
		sim_fail("changes reports twice that %s is %s %s", id, state, reason);
	if (synced ? !*s->word && streq(reason, "Removed") : *s->word || streq(reason, "Removed"))
		sim_fail("changes reports %s SYNC that %s is %s %s", synced ? "after" : "before",
			 id, state, reason);
	snprintf(s->word, sizeof(s->word), "%s", state);
	snprintf(s->reason, sizeof(s->reason), "%s", reason);
}

static void read_changes(pid_t pid)
{
	struct text t = {0};
	size_t at = 0;
	ssize_t n = kernel_open(&t.f, pid, ".kxfs/.live/changes", O_RDONLY);

	if (n)
		return;
	synced = false;
	for (const struct result *s; (s = changed);) {
		changed = s->next;
		free(s->job);
		free((void *)(uintptr_t)s);
	}
	while ((n = read_more(&t)) > 0) {
		char *nl;

		while ((nl = strchr(t.bytes + at, '\n'))) {
			cleanup_free char *line =
				mem_copy(t.bytes + at, (size_t)(nl - (t.bytes + at)));

			at = (size_t)(nl - t.bytes) + 1;
			on_line(line);
		}
	}
	if (n != -ENOTCONN)
		sim_fail("changes ends: %s", n ? strerror((int)-n) : "");
	free(t.bytes);
	kernel_close(&t.f, 0);
}

static void watcher(void *data)
{
	pid_t pid = kernel_fork(KERNEL_SEEN);

	(void)data;
	for (;;) {
		sim_sleep(SIM_S);
		if (sim_fs)
			read_changes(pid);
	}
}

size_t waiters_following(void)
{
	size_t n = 0;

	for (size_t i = 0; i < N_WAITERS; i++)
		n += waiters[i].job && streq(waiters[i].file, "follow");
	return n;
}

void waiters_begin(void)
{
	for (size_t i = 0; i < N_WAITERS; i++)
		sim_task_start(SIM_WORLD, waiter, &waiters[i]);
	sim_task_start(SIM_WORLD, watcher, NULL);
}

/* --- at the end --- */

/* Copy the state of JOB in list to RET, or "" if list has no such job. */
static void state_in(const char *list, const char *job, char ret[WORD])
{
	size_t n = strlen(job);

	*ret = '\0';
	for (const char *at = list; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, job, n) != 0 || at[n] != ' ')
			continue;
		at += n + strspn(at + n, " ");
		snprintf(ret, WORD, "%.*s", (int)strcspn(at, " \n"), at);
		return;
	}
}

static void judge_lists(pid_t pid)
{
	cleanup_free char *list = NULL;
	int err = kernel_read(pid, "list", &list);

	if (err)
		sim_fail("list can't be read: %s", strerror(-err));
	for (size_t i = 0; i < server_n_jobs(); i++) {
		const char *job = server_job(i);
		struct server_fate fate;
		char state[WORD], line[WORD + 1];

		server_fate(job, &fate);
		if (sim_machine && (users_removed(job) || damage_hit(job, true)))
			continue;
		state_in(list, job, state);
		snprintf(line, sizeof(line), "%s\n", state);
		if (!sim_machine && server_is_suspended(job) && !streq(state, "CANCELLED"))
			sim_fail("list has %s as %s, but it is suspended", job, state);
		/*
		 * machine.c checks the states of local jobs. kxfs may not yet show the state of a
		 * job that has just changed.
		 */
		if ((!*state && !sim_faults.disk_error) ||
		    (!sim_machine && !fate.moves && waiters_is_over(job) && !is_true(line, &fate)))
			sim_fail("list has %s as %s, but it is %s", job, *state ? state : "nothing",
				 fate.phase);
		if (!streq(result_of(&changed, job)->word, state))
			sim_fail("list has %s as %s, but changes has it as %s", job, state,
				 result_of(&changed, job)->word);
	}
	for (const struct result *s = changed; s; s = s->next) {
		struct server_fate fate;

		server_fate(s->job, &fate);
		if (fate.gone && !users_held(s->job) && !streq(s->reason, "Removed") &&
		    !(users_may_be_not_known(s->job) && streq(s->word, "SUBMITTED")))
			sim_fail("changes has %s as %s %s, but it is gone", s->job, s->word,
				 s->reason);
	}
}

/*
 * Check that `state` still shows the result of `wait`, unless a user has suspended the job since
 * then. kxfs may lose the result of a removed job if the disk refuses it and the machine loses
 * power, or if kxfs is killed while the disk hangs.
 */
static void judge_result(const struct result *s, pid_t pid)
{
	static const char *const places[] = {"jobs", "history"};
	struct server_fate fate;

	server_fate(s->job, &fate);
	for (size_t i = 0; i < array_size(places) && (fate.n == 1 || sim_machine) &&
			   !(sim_machine && sim_faults.disk_error) &&
			   !(fate.gone && sim_faults.disk_error && sim_faults.power_cut) &&
			   !(fate.gone && sim_faults.hangs && sim_faults.killed);
	     i++) {
		cleanup_free char *path = text_print("%s/%s/state", places[i], s->job),
				  *state = NULL;

		if (*s->word && !fate.suspended && kernel_read(pid, path, &state) == 0 &&
		    !streq(state, s->word))
			sim_fail("wait of %s returned %s, but %s has %s", s->job, s->word, path,
				 state);
	}
}

void waiters_judge(void)
{
	pid_t pid = kernel_fork(KERNEL_SEEN);

	for (size_t i = 0; i < N_WAITERS; i++) {
		const struct waiter *w = &waiters[i];

		/*
		 * There are exceptions. A reader of `follow` waits until a suspended job is
		 * resumed, although `wait` returns CANCELLED. If kxfs was killed while it removed a
		 * job, the job may continue. A job whose launch is unclear has not ended for kxfs.
		 */
		if (w->job && waiters_is_over(w->job) && !machine_is_up(w->job, NULL) &&
		    !users_show_not_known(w->job, pid) &&
		    !(streq(w->file, "follow") && server_is_suspended(w->job)))
			sim_fail("a reader of %s of %s still waits although the job has ended",
				 w->file, w->job);
	}
	judge_lists(pid);
	for (const struct result *s = waited; s; s = s->next)
		judge_result(s, pid);
}
