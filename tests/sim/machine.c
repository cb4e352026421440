/* SPDX-License-Identifier: MIT */
/*
 * Replaces backend/local/guard.c: the programs of local jobs, and the guard between each program
 * and its helper. Helpers are in process.c. Programs print numbered lines, succeed or fail, or hang
 * until they are terminated. Faults: helpers and guards are killed or stopped for a while, and the
 * machine loses power. These invariants hold at any moment:
 *
 *  start  only submitted programs are started (user.c), once per attempt unless the machine loses
 *         power. A replica has at most one running program. If a job restarts as a whole, nothing
 *         of its previous attempt still runs. No program is started more often than its retries
 *         allow
 *  end    kxfs terminates a program only because of a user's request, its time limit, the failure
 *         of another replica of its job, or the end of the mount
 *
 * At the end nothing of a finished job runs, and each job without a running program is shown as
 * finished, with the right state.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "backend/local/guard.h"
#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define MOST_RUNS 2048
#define FIRST_PID 700000
#define STARTS_MS 50  /* the time until a program starts */
#define LINE_S	  3   /* the longest time between two lines */
#define DIES_MS	  300 /* the longest time for which a program survives its helper */
#define STOPPED_S 90  /* the longest time for which a helper is stopped */
#define LINES	  30

enum fate { BEGINS, RUNS, ENDED, NOT_STARTED, DEAD };

/* One start of a program. */
struct run {
	char uid[37];
	unsigned number, tag, attempt;
	unsigned place; /* the index of its replica in the job */
	char *job, *replica;
	struct sim_process *helper;
	struct sim_pipe *output, *news;
	enum fate fate;
	unsigned life, boot;
	uint64_t began, over;	 /* us; 0: not yet */
	unsigned lines, printed; /* lines that it will print, and has printed */
	bool cut;		 /* it has printed part of a line */
	bool lost;		 /* its output may be incomplete */
	bool deaf;		 /* it ignores SIGTERM */
	bool hangs;
	int exit_code;
	bool timed_out, ending, well, guard_killed;
	bool ended_by_kxfs;
	bool stopped;	 /* by SIGSTOP */
	bool due, dying; /* when it is continued, it will print (DUE) or end (DYING) */
	int64_t limit_ms, grace_ms;
};

static struct run *runs[MOST_RUNS];
static unsigned n_runs, boots, unmounted;
static bool mended;

/* --- find a program --- */

static struct run *run_of(pid_t pid)
{
	return pid >= FIRST_PID && pid < FIRST_PID + (pid_t)n_runs ? runs[pid - FIRST_PID] : NULL;
}

static bool is_up(const struct run *r)
{
	return r->fate == RUNS;
}

/* True if R's output may be incomplete. */
static bool is_lost(const struct run *r)
{
	return r->lost || sim_pipe_is_given_up(r->output);
}

bool machine_run(const char *uid, struct server_run *ret)
{
	for (unsigned i = 0; i < n_runs; i++) {
		const struct run *r = runs[i];

		if (!streq(r->uid, uid))
			continue;
		*ret = (struct server_run){
			.job_name = r->job,
			.n = r->printed,
			.kept = is_lost(r) ? r->printed : 0,
			.there = !is_lost(r) && !r->cut,
			.ended = r->fate == ENDED,
			.job = r->job,
			.replica = r->replica,
		};
		return true;
	}
	return false;
}

static bool has_begun(const struct run *r)
{
	return r->fate != NOT_STARTED && r->fate != BEGINS;
}

/* True if R is the first run of its job. */
static bool is_first(const struct run *r)
{
	for (unsigned i = 0; i < r->number; i++)
		if (streq(runs[i]->job, r->job) && has_begun(runs[i]))
			return false;
	return has_begun(r);
}

/* Return the last run of the replica at PLACE. */
static const struct run *last_of(const char *job, unsigned place)
{
	for (unsigned i = n_runs; i-- > 0;)
		if (streq(runs[i]->job, job) && runs[i]->place == place)
			return runs[i];
	return NULL;
}

size_t machine_n_jobs(void)
{
	size_t n = 0;

	for (unsigned i = 0; i < n_runs; i++)
		n += is_first(runs[i]);
	return n;
}

const char *machine_job(size_t i)
{
	for (unsigned k = 0; k < n_runs; k++)
		if (is_first(runs[k]) && i-- == 0)
			return runs[k]->job;
	return NULL;
}

bool machine_is_up(const char *job, const char *replica)
{
	bool up = false;

	for (unsigned i = 0; i < n_runs; i++)
		up |= streq(runs[i]->job, job) && runs[i]->fate == RUNS &&
		      (!replica || streq(runs[i]->replica, replica));
	return up;
}

unsigned machine_places(void)
{
	return sim_faults.queued ? 1 + sim_faults.queued % 4 : 0;
}

/*
 * Count the jobs other than JOB (NULL: all jobs) that have a running program. A program that has
 * lost its helper does not count.
 */
static unsigned others_up(const char *job)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_runs; i++) {
		const struct run *r = runs[i];
		bool counted = !is_up(r) || r->helper->dead || (job && streq(r->job, job));

		for (unsigned k = 0; k < i && !counted; k++)
			counted = is_up(runs[k]) && !runs[k]->helper->dead &&
				  streq(runs[k]->job, r->job);
		n += !counted;
	}
	return n;
}

bool machine_is_full(void)
{
	return machine_places() && others_up(NULL) >= machine_places();
}

static unsigned places_of(const char *job)
{
	const struct users_roles *roles = NULL;

	for (unsigned i = 0; i < n_runs && !roles; i++)
		if (streq(runs[i]->job, job))
			roles = users_roles(runs[i]->tag);
	return roles ? roles->main + roles->side : 0;
}

const char *machine_replica(const char *job)
{
	unsigned n = sim_machine ? places_of(job) : 1;
	const struct run *r = n > 1 ? last_of(job, sim_below(SIM_ROLES, n)) : NULL;

	return r ? r->replica : "main-0";
}

void machine_fate(const char *name, struct server_fate *ret)
{
	/* kxfs reports a removed job as deleted although its programs may still be ending. */
	bool up = machine_is_up(name, NULL) && !users_removed(name);

	*ret = (struct server_fate){.phase = up ? "Running" : "",
				    .n = up ? 1 : 2,
				    .suspended = ctl_asked(name, "suspend")};
}

unsigned sim_boots(void)
{
	return boots;
}

/* --- the life of a program --- */

static void notify(const struct run *r, const struct guard_news *news)
{
	if (!r->helper->dead)
		sim_pipe_write(r->news, news, sizeof(*news));
}

/* Handle the end of R's guard. */
static void guard_gone(struct run *r)
{
	r->helper->guarded = false;
	sim_pipe_close(r->output);
	sim_pipe_close(r->news);
}

static void end(struct run *r, int status)
{
	const struct guard_news over = {.kind = GUARD_OVER,
					.value = status,
					.timed_out = r->timed_out};
	const struct guard_news used = {.kind = GUARD_USED,
					.usage = {.first = 1, .last = 1, .memory_peak = -1}};
	cleanup_free char *begun = text_print("%s", r->uid);

	/* A killed program has often printed part of a line. */
	if (WIFSIGNALED(status) && sim_chance(SIM_MACHINE, 300)) {
		begun[1 + sim_below(SIM_MACHINE, 30)] = '\0';
		r->cut = sim_pipe_write(r->output, begun, strlen(begun));
	}
	sim_log("program", "%s of %s ends: %s %d", r->uid, r->job,
		WIFSIGNALED(status) ? "signal" : "exit code",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	r->fate = ENDED;
	r->over = sim_now();
	r->well = status == 0 && !r->timed_out;
	notify(r, &over);
	notify(r, &used);
	guard_gone(r);
}

static void on_signal(void *data)
{
	struct run *r = data;

	r->dying = r->stopped;
	if (is_up(r) && !r->stopped)
		end(r, SIGTERM);
}

static void signal_run(struct run *r, int sig)
{
	if (!is_up(r))
		return;
	if (sig == SIGKILL) {
		end(r, SIGKILL);
	} else if (sig == SIGTERM && !r->deaf && !r->ending) {
		r->ending = true;
		sim_after(1 + sim_delay(SIM_MACHINE, SIM_S), SIM_OF_MACHINE, on_signal, r);
	}
}

static void step(void *data);

/* Stop R as SIGSTOP does, or continue it as SIGCONT does. */
static void stop(struct run *r, bool stopped)
{
	r->stopped = stopped;
	if (!stopped && r->due)
		sim_after(0, SIM_OF_MACHINE, step, r);
	if (!stopped && r->dying)
		sim_after(0, SIM_OF_MACHINE, on_signal, r);
	r->due &= stopped;
	r->dying &= stopped;
}

static void on_limit(void *data)
{
	struct run *r = data;

	if (!is_up(r))
		return;
	if (r->timed_out)
		return signal_run(r, SIGKILL);
	r->timed_out = true;
	signal_run(r, SIGTERM);
	stop(r, false); /* continue R, because a stopped process does not act on SIGTERM */
	sim_after((uint64_t)r->grace_ms * SIM_MS, SIM_OF_MACHINE, on_limit, r);
}

static void step(void *data)
{
	struct run *r = data;
	cleanup_free char *line = NULL;

	r->due = r->stopped;
	if (!is_up(r) || r->stopped)
		return;
	if (r->printed == r->lines) {
		if (!r->hangs)
			end(r, r->exit_code < 0 ? SIGSEGV : r->exit_code << 8);
		return;
	}
	line = text_print("%s %u\n", r->uid, r->printed);
	if (!sim_pipe_write(r->output, line, strlen(line))) {
		r->lost = true;
		return end(r, SIGPIPE);
	}
	r->printed++;
	sim_after(sim_delay(SIM_MACHINE, LINE_S * SIM_S), SIM_OF_MACHINE, step, r);
}

/*
 * End R without a result. Either R's guard was killed, or R's helper was killed and the guard then
 * kills the program.
 */
static void die(void *data)
{
	struct run *r = data;

	if (r->fate == RUNS || r->fate == BEGINS) {
		sim_log("program", "%s of %s is killed with its guard", r->uid, r->job);
		r->fate = DEAD;
		r->over = sim_now();
		r->lost |= r->helper->dead;
	}
	guard_gone(r);
}

static void on_helper_killed(void *data)
{
	struct run *r = data;

	if (mended || r->helper->dead)
		return;
	sim_log("program", "the helper of %s of %s is killed", r->uid, r->job);
	r->lost = true;
	process_end(r->helper);
	sim_after(sim_delay(SIM_MACHINE, DIES_MS * SIM_MS), SIM_OF_MACHINE, die, r);
}

static void on_guard_killed(void *data)
{
	struct run *r = data;

	if (mended || !is_up(r))
		return;
	r->guard_killed = true;
	die(r);
}

static void on_stopped(void *data)
{
	struct run *r = data;

	if (mended || r->helper->dead)
		return;
	r->helper->stopped_until = sim_now() + sim_delay(SIM_MACHINE, STOPPED_S * SIM_S);
	sim_log("program", "the helper of %s of %s is stopped", r->uid, r->job);
}

/* --- checks at a start --- */

/*
 * Return how often R's replica may be restarted. If the job restarts as a whole, the retries of
 * both roles count.
 */
static unsigned allowed(const struct run *r)
{
	const struct users_roles *roles = users_roles(r->tag);
	unsigned n = roles->policy == BY_JOB && roles->side ? 2 : 1;

	return n * roles->retries + boots + ctl_asked(r->job, "restart");
}

/* True if R's job restarts as a whole and OTHER began before the last run of R's replica ended. */
static bool is_of_before(const struct run *other, const struct run *r)
{
	const struct run *last = NULL;

	for (unsigned i = 0; i < r->number; i++)
		if (streq(runs[i]->job, r->job) && runs[i]->place == r->place && runs[i]->over)
			last = runs[i];
	return last && users_roles(r->tag)->policy == BY_JOB && other->began < last->over;
}

static void check_start(const struct run *r)
{
	unsigned starts = 1;

	for (unsigned i = 0; i < n_runs; i++) {
		const struct run *other = runs[i];
		bool same = other->place == r->place;

		if (other == r || !streq(other->job, r->job) || other->fate == NOT_STARTED ||
		    other->fate == BEGINS)
			continue;
		if (other->fate == RUNS && (same || is_of_before(other, r)))
			sim_fail("%s of %s is started, but %s still runs", r->uid, r->job,
				 other->uid);
		if (same && other->attempt == r->attempt && other->boot == r->boot)
			sim_fail("attempt %u of %s is started a second time", r->attempt, r->job);
		starts += same;
	}
	if (starts > 1 + allowed(r))
		sim_fail("%s of %s is started for the %uth time, but has %u retries", r->replica,
			 r->job, starts, allowed(r));
	/*
	 * kxfs does not count a job whose record it can't read. So it may start R although the
	 * limit is reached.
	 */
	if (machine_places() && !sim_faults.disk_error && others_up(r->job) >= machine_places())
		sim_fail("%s of %s is started, but %u jobs run already", r->uid, r->job,
			 others_up(r->job));
	users_started(r->tag, r->job, r->attempt == 0, r->life, r->boot);
}

static void begin(void *data)
{
	static const int errors[] = {ENOENT, EACCES, EAGAIN, ENOMEM};
	struct run *r = data;
	struct guard_news news = {.kind = GUARD_STARTED, .value = FIRST_PID + (pid_t)r->number};

	if (r->fate != BEGINS || r->helper->dead)
		return;
	if (!mended && sim_chance(SIM_MACHINE, sim_faults.not_started)) {
		r->fate = NOT_STARTED;
		news = (struct guard_news){
			.kind = GUARD_FAILED,
			.why = TASK_EXEC,
			.value = errors[sim_below(SIM_MACHINE, array_size(errors))]};
		sim_log("program", "%s of %s can't be started: %s", r->uid, r->job,
			strerror(news.value));
		users_not_started(r->tag, r->job);
		notify(r, &news);
		return guard_gone(r);
	}
	sim_log("program", "%s of %s runs, attempt %u", r->uid, r->job, r->attempt);
	check_start(r);
	r->fate = RUNS;
	r->began = sim_now();
	notify(r, &news);
	sim_after(sim_delay(SIM_MACHINE, SIM_S), SIM_OF_MACHINE, step, r);
	if (r->limit_ms)
		sim_after((uint64_t)r->limit_ms * SIM_MS, SIM_OF_MACHINE, on_limit, r);
	if (sim_chance(SIM_MACHINE, sim_faults.helper_stopped))
		sim_after(sim_delay(SIM_MACHINE, LINES * SIM_S), SIM_OF_MACHINE, on_stopped, r);
	if (sim_chance(SIM_MACHINE, sim_faults.helper_killed)) {
		sim_fn killed = sim_chance(SIM_MACHINE, 500) ? on_helper_killed : on_guard_killed;

		sim_after(sim_delay(SIM_MACHINE, LINES * SIM_S), SIM_OF_MACHINE, killed, r);
	}
}

/* --- guard.h, for helpers --- */

static const char *variable(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	sim_fail("the environment of a program lacks %s", name);
}

int guard_start(const struct guard_program *program, int listen_fd, struct guard *ret)
{
	struct run *r = new0(struct run);
	const char *tag = NULL, *error = variable(program->env, "TORCHELASTIC_ERROR_FILE");
	char *at = strstr(error, "tasks/") + strlen("tasks/");
	unsigned place = (unsigned)strtoul(at, &at, 10);

	(void)listen_fd;
	for (char *const *arg = program->args; *arg && !tag; arg++)
		tag = strstr(*arg, "tag-");
	if (!tag)
		sim_fail("a program is started that no user has submitted");
	if (n_runs == MOST_RUNS)
		sim_fail("too many programs are started");
	*r = (struct run){
		.number = n_runs,
		.tag = (unsigned)strtoul(tag + strlen("tag-"), NULL, 10),
		.place = place,
		.attempt = (unsigned)strtoul(at + 1, NULL, 10),
		.job = text_copy(variable(program->env, "KXFS_JOB")),
		.replica = text_copy(variable(program->env, "KXFS_REPLICA")),
		.helper = sim_process_here(),
		.boot = boots,
		.lines = sim_below(SIM_MACHINE, LINES),
		.deaf = sim_chance(SIM_MACHINE, 200),
		.hangs = sim_chance(SIM_MACHINE, 200),
		.exit_code = sim_chance(SIM_MACHINE, 600)   ? 0
			     : sim_chance(SIM_MACHINE, 200) ? -1
							    : 1 + (int)sim_below(SIM_MACHINE, 3),
		.limit_ms = program->limit_ms,
		.grace_ms = program->grace_ms,
	};
	/* Each attempt has the full limit, whatever the wall clock shows. */
	if (r->limit_ms != 1000 * (int64_t)users_limit_s(r->tag))
		sim_fail("%s of %s may run for %lld ms, but its limit is %u s", r->replica, r->job,
			 (long long)r->limit_ms, users_limit_s(r->tag));
	r->life = r->helper->life;
	snprintf(r->uid, sizeof(r->uid), "00000000-0000-4000-9000-%012u", r->number);
	runs[n_runs++] = r;
	r->output = sim_pipe_new(&ret->output_fd);
	r->news = sim_pipe_new(&ret->news_fd);
	r->helper->guarded = true;
	ret->pid = FIRST_PID + (pid_t)r->number;
	sim_after(1 + sim_delay(SIM_MACHINE, STARTS_MS * SIM_MS), SIM_OF_MACHINE, begin, r);
	return 0;
}

/* True if another replica of R's job may have failed, so that kxfs may terminate or restart R. */
static bool another_failed(const struct run *r)
{
	if (places_of(r->job) > 1 &&
	    (sim_faults.disk_error || sim_faults.no_descriptor || damage_hit(r->job, false)))
		return true;
	for (unsigned i = 0; i < n_runs; i++)
		if (runs[i]->place != r->place && streq(runs[i]->job, r->job) &&
		    (!runs[i]->well || runs[i]->lost) && runs[i]->fate != RUNS &&
		    runs[i]->fate != BEGINS)
			return true;
	return false;
}

void guard_signal(const struct guard *guard, pid_t program, int sig)
{
	struct run *r = run_of(program);
	bool certain;

	(void)guard;
	if (!is_up(r))
		return;
	sim_log("program", "%s of %s gets signal %d", r->uid, r->job, sig);
	if (sig == SIGSTOP || sig == SIGCONT) {
		if (sig == SIGSTOP && !ctl_asked(r->job, "suspend"))
			sim_fail("%s of %s is stopped, but nobody has suspended the job", r->uid,
				 r->job);
		if (sig == SIGCONT && r->stopped && !r->ended_by_kxfs &&
		    !sim_faults.helper_stopped && ctl_suspended(r->job, &certain) && certain)
			sim_fail("%s of %s continues, but the job is suspended", r->uid, r->job);
		return stop(r, sig == SIGSTOP);
	}
	if (r->life >= unmounted && !users_removed(r->job) && !another_failed(r) &&
	    !ctl_asked(r->job, "restart") && !ctl_asked(r->job, "terminate"))
		sim_fail("%s of %s is terminated for no reason", r->uid, r->job);
	r->ended_by_kxfs = true;
	signal_run(r, sig);
}

bool guard_end(const struct guard *guard, int *ret_sig)
{
	const struct run *r = run_of(guard->pid);

	sim_sleep(sim_delay(SIM_MACHINE, DIES_MS * SIM_MS));
	*ret_sig = r->guard_killed ? SIGKILL : 0;
	return true;
}

void machine_signal(pid_t pid, int sig)
{
	struct run *r = run_of(pid);

	if (r && is_up(r))
		signal_run(r, sig);
}

/* --- what happens to the machine --- */

void machine_unmounted(void)
{
	unmounted = sim_life() + 1;
}

void machine_power_cut(void)
{
	boots++;
	for (unsigned i = 0; i < n_runs; i++) {
		if (runs[i]->fate == RUNS || runs[i]->fate == BEGINS) {
			runs[i]->fate = DEAD;
			runs[i]->over = sim_now();
		}
		runs[i]->lost = true; /* what was not synced is lost */
	}
	sim_process_power_cut();
}

void machine_mend(void)
{
	mended = true;
	sim_process_mend();
}

/* --- at the end --- */

/* Return the contents of a file of JOB in jobs/ or history/, malloc'ed; NULL if unreadable. */
static char *read_of(const char *job, const char *name, pid_t pid)
{
	static const char *const folders[] = {"jobs", "history"};
	char *text = NULL;

	for (size_t i = 0; i < array_size(folders) && !text; i++) {
		cleanup_free char *path = text_print("%s/%s/%s", folders[i], job, name);

		if (kernel_read(pid, path, &text))
			text = NULL;
	}
	return text;
}

/* Return the state in JOB's status, malloc'ed. */
static char *state_of(const char *job, pid_t pid)
{
	cleanup_free char *text = read_of(job, "status", pid);
	const char *at = strstr(text ? text : "", "state: ");

	/* kxfs shows no status of a job if it can't read the record, and logs that in .kxfs/log. */
	if (!at && (sim_faults.disk_error || damage_hit(job, true)))
		return NULL;
	if (!at)
		sim_fail("%s has run, but its status is %s", job, text ? text : "nowhere");
	at += strlen("state: ");
	return mem_copy(at, strcspn(at, " \n"));
}

static void judge_lines(const struct run *r, const char *name, const char *text)
{
	cleanup_free char *first = text_print("%s 0\n", r->uid);

	/* An empty log was removed to free space. It was archived, unless the archive failed. */
	if (text && !*text &&
	    (archive_has(first) ||
	     (archive_makes_room() && (sim_faults.disk_error || sim_faults.hangs))))
		return;
	for (unsigned k = 0; k < r->printed; k++) {
		cleanup_free char *line = text_print("%s %u\n", r->uid, k);

		if (!strstr(text ? text : "", line))
			sim_fail("%s of %s lacks line %u of %s: it has %s", name, r->job, k, r->uid,
				 text ? text : "nothing");
	}
}

/*
 * Check that R's output is complete in the log of its attempt and in the merged log of the job. The
 * log of the last attempt has no number in its name.
 */
static void judge_log(const struct run *r, pid_t pid)
{
	cleanup_free char *name = text_print("%s/log.%u", r->replica, r->attempt);
	cleanup_free char *last = text_print("%s/log", r->replica);
	cleanup_free char *own = read_of(r->job, name, pid), *merged = read_of(r->job, "log", pid);

	/* kxfs shows nothing of a job whose record it can't read. It reports that in .kxfs/log. */
	if (!merged && sim_faults.disk_error)
		return;
	if (!own)
		own = read_of(r->job, last, pid);
	judge_lines(r, name, own);
	/*
	 * kxfs marks an incomplete merged log on disk. If the disk refused that mark, the next
	 * mount does not know that the log is incomplete.
	 */
	if (!(sim_faults.disk_error && (sim_faults.killed || sim_faults.ended)))
		judge_lines(r, "log", merged);
}

/*
 * Check that all running programs of JOB are stopped if it is SUSPENDED, and that none is stopped
 * otherwise.
 */
static void judge_stopped(const char *job, bool suspended)
{
	for (unsigned i = 0; i < n_runs; i++)
		if (is_up(runs[i]) && streq(runs[i]->job, job) && runs[i]->stopped != suspended)
			sim_fail("%s of %s %s", runs[i]->uid, job,
				 suspended ? "continues, but the job is suspended"
					   : "is stopped, but the job is not suspended");
}

void machine_judge(void)
{
	pid_t pid = kernel_fork(KERNEL_SEEN);

	for (unsigned i = 0; i < n_runs; i++)
		if (runs[i]->fate == ENDED && !is_lost(runs[i]) && !damage_hit(runs[i]->job, false))
			judge_log(runs[i], pid);
	for (size_t i = 0; i < machine_n_jobs(); i++) {
		const char *job = machine_job(i);
		cleanup_free char *state = state_of(job, pid);
		bool over, up = false, suspended, certain;

		if (!state)
			continue;
		for (unsigned k = 0; k < n_runs; k++)
			up |= streq(runs[k]->job, job) && is_up(runs[k]);
		over = !streq(state, "RUNNING") && !streq(state, "PENDING");
		suspended = ctl_suspended(job, &certain);
		if (over && up && !suspended && certain)
			sim_fail("%s is %s, but its program runs", job, state);
		if (!over && !up && !suspended && certain && !machine_is_full())
			sim_fail("%s is %s, but none of its programs runs", job, state);
		if (certain && up && ctl_asked(job, "terminate"))
			sim_fail("%s was terminated, but still runs", job);
		if (certain)
			judge_stopped(job, suspended);
		for (unsigned k = 0; streq(state, "SUCCEEDED") && k < places_of(job); k++) {
			const struct run *r = last_of(job, k);

			if (!r || r->fate != ENDED || !r->well)
				sim_fail(
					"%s is %s, but the last program of replica %u did not succeed",
					job, state, k);
		}
	}
}
