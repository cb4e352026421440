/* SPDX-License-Identifier: MIT */
/*
 * What a local job decides: what is started again, and when and how the job is over. The test plays its replicas, its
 * record, its output and the disk; what they are asked for is noted.
 */
#include <errno.h>
#include <signal.h>

#include "backend/base/work.h"
#include "backend/jobs/last_words.h"
#include "backend/local/job.h"
#include "backend/local/record.h"
#include "backend/local/replica.h"
#include "spec/base/mem.h"
#include "tests/unit/noted.h"
#include "tests/unit/spec/app-document.h"
#include "tests/unit/unit.h"

struct local_record {
	struct spec_record *rec;
	const struct local_record_events *events;
	void *data;
	bool over;
};

struct local_replica {
	const struct local_replica_job *job;
	struct spec_replica *rec;
	struct spec_plan *plan;
	bool live;
};

#define MAX 8

static struct spec_turns limits; /* of the machine's queue */

static struct rig {
	struct backend b;
	struct group group;
	struct local_jobs *jobs;
	struct local_job *job;
	struct local_record *record;
	struct local_replica *reps[MAX];
	void (*on_words)(void *data, const char *words);
	void *words_data;
	bool left;
} rig;

/* --- record.h --- */

struct local_record *local_record_new(struct loop *loop, struct store *store, const char *dir,
				      struct spec_record *rec,
				      const struct local_record_events *events, void *data)
{
	assert_string_equal(dir, "/state/output/u");
	rig.record = new0(struct local_record);
	*rig.record = (struct local_record){rec, events, data, false};
	return rig.record;
}

void local_record_free(struct local_record *r)
{
	spec_record_free(r->rec);
	free(r);
}

struct spec_record *local_record_spec(const struct local_record *r)
{
	return r->rec;
}

uint64_t local_record_changed(struct local_record *r)
{
	return 1;
}

bool local_record_is_done(const struct local_record *r)
{
	return r->over;
}

uint64_t local_record_saved(const struct local_record *r)
{
	return 0;
}

bool local_record_is_over(const struct local_record *r)
{
	return r->over;
}

void local_record_publish(struct local_record *r)
{
}

void local_record_moved(struct local_record *r)
{
}

void local_record_set_goal(struct local_record *r, enum spec_goal goal)
{
	if (r->rec->goal == SPEC_GOAL_RUN)
		r->rec->goal = goal;
	r->rec->again = false;
}

void local_record_set_reason(struct local_record *r, const char *reason, const char *message)
{
	spec_set(&r->rec->job->reason, reason);
	spec_set(&r->rec->job->message, message);
}

void local_record_restart(struct local_record *r)
{
	r->rec->again = true;
}

void local_record_finish(struct local_record *r)
{
	r->over = true;
	note("over");
}

void local_record_last(struct local_record *r)
{
}

/* --- replica.h --- */

struct local_replicas *local_replicas_new(struct loop *loop, struct group *group, unsigned grace_ms)
{
	return NULL;
}

void local_replicas_free(struct local_replicas *all)
{
}

void local_replicas_begin(struct local_replicas *all)
{
}

void local_replicas_outlive(struct local_replicas *all)
{
	note("outlive");
}

void local_replicas_metrics(struct local_replicas *all, FILE *out)
{
}

struct local_replica *local_replica_new(const struct local_replica_job *job, size_t i)
{
	struct local_replica *rep = new0(struct local_replica);

	*rep = (struct local_replica){job, &job->record->rec->job->replicas[i],
				      &job->record->rec->plans[i], false};
	rig.reps[i] = rep;
	return rep;
}

void local_replica_free(struct local_replica *rep)
{
	free(rep);
}

const struct spec_replica *local_replica_record(const struct local_replica *rep)
{
	return rep->rec;
}

struct spec_plan *local_replica_plan(const struct local_replica *rep)
{
	return rep->plan;
}

char *local_replica_error_file(const struct local_replica *rep)
{
	return NULL;
}

bool local_replica_is_idle(const struct local_replica *rep)
{
	return !rep->live;
}

static void set_live(struct local_replica *rep, bool live)
{
	rep->live = live;
	rep->job->events->lives(rep->job->data, rep, live);
}

void local_replica_begin(struct local_replica *rep, unsigned delay_ms)
{
	note("begin %s%s", rep->rec->name, delay_ms ? " later" : "");
	rep->plan->again = false;
	set_live(rep, true);
}

void local_replica_end(struct local_replica *rep)
{
	if (rep->live)
		note("end %s", rep->rec->name);
}

void local_replica_restart(struct local_replica *rep)
{
	note("restart %s", rep->rec->name);
	rep->plan->again = true;
	if (!rep->live)
		rep->rec->state = SPEC_PENDING;
}

void local_replica_admit(struct local_replica *rep, uint64_t change)
{
	note("admit %s", rep->rec->name);
}

void local_replica_let_go(struct local_replica *rep)
{
	note("let go %s", rep->rec->name);
}

void local_replica_signal(struct local_replica *rep, int sig)
{
	note("%s %s", sig == SIGSTOP ? "stop" : "kill", rep->rec->name);
}

void local_replica_resume(struct local_replica *rep)
{
	note("resume %s", rep->rec->name);
}

unsigned local_replica_slow_down(struct local_replica *rep)
{
	return LOCAL_DELAY_MIN_MS;
}

unsigned local_replica_delay(const struct local_replica *rep)
{
	return LOCAL_DELAY_MIN_MS;
}

void local_replica_recorded(struct local_replica *rep, uint64_t change)
{
}

bool local_replica_is_delayed(struct local_replica *rep, int err)
{
	return false;
}

void local_replica_open_log(struct local_replica *rep)
{
}

void local_replica_close_log(struct local_replica *rep)
{
}

void local_replica_find_attempt(struct local_replicas *all, const char *dir,
				const struct spec_record *rec, size_t i, struct task_found *ret)
{
	ret->fd = -1;
}

void local_replica_adopt(struct local_replica *rep, const struct task_found *found)
{
	if (rep->rec->state == SPEC_RUNNING)
		set_live(rep, true);
}

void local_replica_adopted(struct local_replica *rep, const struct task_found *found)
{
}

/* --- output.h, work.h, task.h, last_words.h --- */

struct output_job *output_job_open(struct output *o, const char *id)
{
	assert_string_equal(id, "u");
	return (struct output_job *)&rig;
}

void output_job_end(struct output_job *j)
{
}

void output_job_close(struct output_job *j)
{
}

void work_start(struct work *w, struct loop *loop)
{
	w->run(w->data);
	w->done(w->data);
}

void task_clean(const char *dir)
{
	note("clean %s", dir);
}

struct last_words *last_words_read(struct loop *loop, struct group *group, const char *error,
				   const char *log, void (*fn)(void *data, const char *words),
				   void *data)
{
	assert_null(error);
	note("read %s", log);
	rig.on_words = fn;
	rig.words_data = data;
	return (struct last_words *)&rig;
}

void last_words_drop(struct last_words *w)
{
}

/* --- the job --- */

static void on_unwritten(void *data, struct local_job *job, int err, uint64_t change)
{
	note("unwritten %s", strerror(-err));
}

static void on_leaving(void *data, struct local_job *job)
{
	assert_ptr_equal(job, rig.job);
}

static void on_left(void *data)
{
	rig.left = true;
}

/* A job of roles a, of two replicas, and b, of one; each with POLICY and RETRIES. APP: can its AppDef be read? */
static void prepare(const char *policy, unsigned retries, bool app)
{
	const struct local_jobs_events events = {.unwritten = on_unwritten,
						 .leaving = on_leaving,
						 .left = on_left};
	cleanup_free char *text = text_print(
		"name: job\nroles:\n"
		"- {name: a, image: i, entrypoint: e, num_replicas: 2, retry_policy: %s, max_retries: %u}\n"
		"- {name: b, image: i, entrypoint: e, retry_policy: %s, max_retries: %u}\n",
		policy, retries, policy, retries);
	const struct spec_record_origin origin = {
		.id = "job", .ttl = -1, .uid = "u", .appdef = "", .boot = ""};
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_record *rec;
	struct spec_app *spec = NULL;

	rig = (struct rig){.b.config.state_dir = (char *)(uintptr_t) "/state"};
	forget_noted();
	group_init(&rig.group, NULL);
	assert_int_equal(document_parse(text, strlen(text), NULL, &spec, &e), 0);
	rec = spec_record_new(spec, &origin);
	if (!app) {
		spec_app_free(take_ptr(rec->app));
		spec_set(&rec->fault, "no AppDef");
	}
	rig.jobs = local_jobs_new(&rig.b, &rig.group, &limits, &events);
	rig.job = local_job_new(rig.jobs, rec);
	assert_int_equal(local_jobs_count(rig.jobs), 1);
}

static void launch(const char *policy, unsigned retries)
{
	prepare(policy, retries, true);
	local_job_launch(rig.job);
	assert_done("begin a-0, begin a-1, begin b-0");
}

/* The attempt of replica I ends with exit code CODE, and its log is complete. */
static void end_attempt(size_t i, int code)
{
	struct local_replica *rep = rig.reps[i];
	bool runs = rig.record->rec->goal == SPEC_GOAL_RUN;

	rep->plan->ended = true;
	rep->rec->exit_code = code;
	if (rep->plan->again) {
		rep->rec->state = SPEC_PENDING;
	} else if (!runs) {
		rep->rec->state = SPEC_CANCELLED;
	} else if (code == 0) {
		rep->rec->state = SPEC_SUCCEEDED;
	} else {
		rep->rec->state = SPEC_FAILED;
		spec_set(&rep->rec->reason, "Error");
		spec_set(&rep->rec->message, "exit code 3");
		rep->job->events->failed(rep->job->data, rep);
		if (rep->plan->again)
			rep->rec->state = SPEC_PENDING;
	}
	set_live(rep, false);
	rep->job->events->idle(rep->job->data, rep);
}

/* The job leaves: its record that says that it is over is on disk, and the job is freed. */
static void leave(void)
{
	assert_false(rig.left);
	rig.record->events->settled(rig.record->data);
	assert_true(rig.left);
	assert_done("clean /state/output/u");
	assert_int_equal(local_jobs_count(rig.jobs), 0);
	assert_int_equal(rig.group.n, 0);
	local_jobs_free(rig.jobs);
}

static void test_succeeds(void **state)
{
	launch("APPLICATION", 0);
	end_attempt(0, 0);
	end_attempt(2, 0);
	assert_done("");
	end_attempt(1, 0);
	assert_done("over");
	assert_int_equal(rig.record->rec->goal, SPEC_GOAL_RUN);
	leave();
}

/*
 * When no retry is left, the replica that fails makes the job fail. Its reason is the job's, whose end waits for the
 * last words.
 */
static void test_fails(void **state)
{
	const struct spec_job *job;

	launch("APPLICATION", 0);
	end_attempt(1, 3);
	assert_done("end a-0, end a-1, end b-0");
	job = rig.record->rec->job;
	assert_int_equal(rig.record->rec->goal, SPEC_GOAL_FAIL);
	assert_string_equal(job->reason, "Error");
	assert_string_equal(job->message, "a-1: exit code 3");
	end_attempt(0, 0);
	assert_done("");
	end_attempt(2, 0);
	assert_done("read /state/output/u/logs/a-1.0");
	rig.on_words(rig.words_data, "at last");
	assert_string_equal(job->last_words, "at last");
	assert_false(job->silent);
	assert_done("over");
	leave();

	launch("APPLICATION", 0);
	end_attempt(1, 3);
	end_attempt(0, 0);
	end_attempt(2, 0);
	rig.on_words(rig.words_data, NULL);
	assert_done("end a-0, end a-1, end b-0, read /state/output/u/logs/a-1.0, over");
	job = rig.record->rec->job;
	assert_true(job->silent);
	assert_string_equal(job->last_words, "");
	leave();
}

/* The policies: which replicas are started again when a-0 has failed, and what they wait for. */
static void test_policies(void **state)
{
	static const char *const alone[] = {"REPLICA", "HOT_SPARE"};

	for (size_t i = 0; i < array_size(alone); i++) {
		launch(alone[i], 1);
		end_attempt(0, 3);
		assert_done("restart a-0, begin a-0 later");
		assert_int_equal(rig.record->rec->plans[0].restarts, 1);
		/* Each replica has retries of its own. */
		end_attempt(1, 3);
		assert_done("restart a-1, begin a-1 later");
		end_attempt(0, 3);
		assert_int_equal(rig.record->rec->goal, SPEC_GOAL_FAIL);
		assert_int_equal(rig.record->rec->job->retries, 2);
		local_jobs_free(rig.jobs);
	}

	launch("ROLE", 1);
	end_attempt(0, 3);
	assert_done("restart a-0, restart a-1");
	end_attempt(1, 15);
	assert_done("begin a-0 later, begin a-1 later");
	/* The replicas of a role have their retries together. */
	end_attempt(1, 3);
	assert_int_equal(rig.record->rec->goal, SPEC_GOAL_FAIL);
	local_jobs_free(rig.jobs);

	launch("APPLICATION", 1);
	end_attempt(0, 3);
	assert_done("restart a-0, restart a-1, restart b-0");
	end_attempt(2, 15);
	assert_done("");
	end_attempt(1, 15);
	assert_done("begin a-0 later, begin a-1 later, begin b-0 later");
	local_jobs_free(rig.jobs);
}

/* What ctl and rmdir do. The first goal of a job counts. */
static void test_goals(void **state)
{
	launch("APPLICATION", 9);
	local_job_suspend(rig.job);
	assert_done("stop a-0, stop a-1, stop b-0");
	assert_string_equal(rig.record->rec->job->reason, "Suspended");
	local_job_resume(rig.job);
	assert_done("resume a-0, resume a-1, resume b-0");
	assert_string_equal(rig.record->rec->job->reason, "");
	local_job_cancel(rig.job);
	assert_done("end a-0, end a-1, end b-0");
	local_job_end(rig.job, SPEC_GOAL_TERMINATE);
	assert_int_equal(rig.record->rec->goal, SPEC_GOAL_CANCEL);
	assert_true(rig.record->rec->job->history && local_job_is_ending(rig.job));
	forget_noted();
	for (size_t i = 0; i < 3; i++)
		end_attempt(i, 15);
	assert_done("over");
	leave();
}

/*
 * Whoever waits for a record hears that the disk has refused it; a full disk has room for the end that is still to
 * come.
 */
static void test_unwritten(void **state)
{
	static const struct {
		int err;
		bool ends, over;
		const char *told;
	} rows[] = {
		{-ENOSPC, false, false, "unwritten No space left on device"},
		{-ENOSPC, true, false, ""},
		{-EDQUOT, true, false, ""},
		{-EROFS, true, false, "unwritten Read-only file system"},
		{-ENOSPC, true, true, "unwritten No space left on device"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		launch("REPLICA", 1);
		if (rows[i].ends)
			local_job_cancel(rig.job);
		for (size_t k = 0; k < 3 && rows[i].over; k++)
			end_attempt(k, 15);
		forget_noted();
		rig.record->events->written(rig.record->data, rows[i].err, 1);
		assert_done(rows[i].told);
		local_jobs_free(rig.jobs);
	}
}

/* A job of an earlier daemon goes on as that daemon had planned, unless its AppDef can't be read. */
static void test_taken_over(void **state)
{
	const struct task_found found[3] = {{.fd = -1}, {.fd = -1}, {.fd = -1}};

	prepare("REPLICA", 1, true);
	rig.reps[0]->rec->state = SPEC_RUNNING;
	rig.reps[1]->plan->again = rig.reps[1]->plan->ended = true;
	local_job_take_over(rig.job, found);
	assert_done("begin a-1 later, begin b-0");
	local_jobs_free(rig.jobs);

	/* The daemon was killed in the pause before a start that its record does not plan: the log ends first. */
	prepare("REPLICA", 1, true);
	rig.reps[0]->rec->state = rig.reps[2]->rec->state = SPEC_RUNNING;
	rig.reps[1]->plan->ended = true;
	set_live(rig.reps[1], true);
	local_job_take_over(rig.job, found);
	assert_done("");
	set_live(rig.reps[1], false);
	rig.reps[1]->job->events->idle(rig.reps[1]->job->data, rig.reps[1]);
	assert_done("begin a-1 later");
	local_jobs_free(rig.jobs);

	prepare("REPLICA", 9, false);
	for (size_t i = 0; i < 3; i++)
		rig.reps[i]->rec->state = SPEC_RUNNING;
	local_job_take_over(rig.job, found);
	assert_done("");
	end_attempt(0, 3);
	assert_int_equal(rig.record->rec->goal, SPEC_GOAL_FAIL);
	assert_string_equal(rig.record->rec->job->message,
			    "a-0: exit code 3; it is not started again: no AppDef");
	local_jobs_free(rig.jobs);
}

/*
 * A job of an earlier daemon that was not launched yet, or that began without the GPUs that it needs, waits for its
 * turn as a new job does. One that runs does not, and none is put into the queue before the record may be written.
 */
static void test_waits_late(void **state)
{
	const struct task_found found[3] = {{.fd = -1}, {.fd = -1}, {.fd = -1}};
	static const struct {
		const char *boot;
		uint64_t has;
		unsigned jobs;
		int gpus, need;
		bool runs, waits;
	} rows[] = {
		{"then", 0, 1, 0, 0, false, true}, {"then", 0, 0, 0, 1, false, false},
		{"", 0, 1, 0, 0, false, false},	   {"", 0, 0, 2, 1, false, true},
		{"", 1, 0, 2, 1, false, false},	   {"", 0, 0, 2, 0, false, false},
		{"", 0, 1, 2, 1, true, false},	   {"then", 0, 1, 2, 1, true, false},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_record *rec;

		limits =
			(struct spec_turns){.jobs = rows[i].jobs, .gpus = (1u << rows[i].gpus) - 1};
		prepare("REPLICA", 1, true);
		rec = rig.record->rec;
		rec->app->roles[0].resource.gpu = rows[i].need;
		rec->job->replicas[0].gpus = rows[i].has;
		spec_set(&rec->boot, rows[i].boot);
		loop_new(&rig.b.loop);
		if (rows[i].runs)
			set_live(rig.reps[0], true);
		local_job_take_over(rig.job, found);
		assert_int_equal(rec->turn, 0);
		assert_string_equal(rec->boot, rows[i].runs ? "" : rows[i].boot);
		/* A replica that begins is live here at once. */
		for (size_t k = 0; k < 3 && !rows[i].runs; k++)
			set_live(rig.reps[k], false);
		local_jobs_take_charge(rig.jobs);
		assert_int_equal(rec->turn != 0, rows[i].waits);
		assert_string_equal(rec->boot, "");
		assert_string_equal(rec->job->queue, rows[i].waits ? "local" : "");
		forget_noted();
		assert_int_equal(loop_start(rig.b.loop), 0);
		loop_stop(rig.b.loop);
		assert_done(rows[i].waits ? "admit a-0, admit a-1, admit b-0" : "");
		assert_int_equal(rec->turn, 0);
		loop_free(rig.b.loop);
		local_jobs_free(rig.jobs);
	}
	limits = (struct spec_turns){0};
}

/* The mount ends: with linger, or when the mount was never in charge, what runs goes on. */
static void test_stop(void **state)
{
	for (int linger = 0; linger < 2; linger++) {
		launch("REPLICA", 1);
		local_jobs_take_charge(rig.jobs);
		local_jobs_stop(rig.jobs, linger);
		assert_done(linger ? "let go a-0, let go a-1, let go b-0, outlive"
				   : "end a-0, end a-1, end b-0");
		assert_int_equal(rig.record->rec->goal, linger ? SPEC_GOAL_RUN : SPEC_GOAL_STOP);
		local_jobs_free(rig.jobs);
	}
	launch("REPLICA", 1);
	local_jobs_stop(rig.jobs, false);
	assert_done("let go a-0, let go a-1, let go b-0, outlive");
	local_jobs_free(rig.jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_succeeds),   cmocka_unit_test(test_fails),
		cmocka_unit_test(test_policies),   cmocka_unit_test(test_goals),
		cmocka_unit_test(test_taken_over), cmocka_unit_test(test_waits_late),
		cmocka_unit_test(test_stop),	   cmocka_unit_test(test_unwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
