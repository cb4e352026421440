/* SPDX-License-Identifier: MIT */
/*
 * What is shown of a job, when, and what leaves. The test plays the world, the folders, the capture and the commands;
 * what they are asked to do is noted in its order.
 */
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/jobs/last_words.h"
#include "backend/kube/publish.h"
#include "backend/kube/requests.h"
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"

#define N_JOBS	  4
#define PATIENT_S 10 /* by then no pod is waited for */

struct known {
	struct world_job job; /* its uid is NULL: there is none */
	const struct spec_pod_view *pod;
	bool waits;
};

static struct {
	struct publish *p;
	struct store *store;
	struct known jobs[N_JOBS];
	struct folder folder; /* its id is NULL: there is none */
	unsigned rounds;
	bool writing;	     /* the capture still has something of each job */
	bool fetching;	     /* the rest of the output of jobs that have ended is expected soon */
	bool dropped;	     /* DROPPED, as capture_fill was told it last */
	unsigned pending;    /* the commands of each job */
	uint64_t slow;	     /* how long one job takes, in ms */
	const char *running; /* what RUNNING was told last; NULL: nothing */
	/* These are the callbacks of publish. */
	world_changed_fn changed;
	struct folders_events folders_events;
	struct capture_events capture_events;
	bool shown_by_then;  /* the job had been shown when on_launched told of it */
	const char *refused; /* the kind that may not be listed; NULL: there is none */
	/* Jobs of another kind are shown, and their pods have not been listed. */
	bool lacks_pods;
} rig;

/* --- world.h --- */

void world_set_changed(struct world *w, world_changed_fn fn, void *data)
{
	rig.changed = fn;
}

const struct spec_pod_view *world_pod(const struct world *w, const char *job, const char *uid,
				      size_t n)
{
	return NULL;
}

static struct known *known_of(const struct world_job *job)
{
	return container_of((struct world_job *)(uintptr_t)job, struct known, job);
}

const struct world_job *world_find(const struct world *w, const char *uid)
{
	for (size_t i = 0; i < N_JOBS; i++)
		if (rig.jobs[i].job.uid && streq(rig.jobs[i].job.uid, uid))
			return &rig.jobs[i].job;
	return NULL;
}

void world_each(struct world *w, void (*fn)(void *data, const struct world_job *job), void *data)
{
	for (size_t i = 0; i < N_JOBS; i++)
		if (rig.jobs[i].job.uid)
			fn(data, &rig.jobs[i].job);
}

const struct spec_kind *world_kind(const struct world *w, enum world_sort sort)
{
	return &spec_volcano;
}

size_t world_kinds(const struct world *w, const struct spec_kind *ret[SPEC_MAX_KINDS])
{
	ret[0] = &spec_volcano;
	return 1;
}

bool world_is_refused(const struct world *w, const char *name)
{
	return rig.refused && (!name || streq(rig.refused, name));
}

enum world_sort world_sort_of(const struct world *w, const struct spec_kind *kind)
{
	return WORLD_JOBS;
}

enum world_sort world_queues_of(const struct spec_kind *kind)
{
	return WORLD_QUEUES;
}

bool world_has_listed(const struct world *w, enum world_sort sort)
{
	return sort != WORLD_PODS || !rig.lacks_pods;
}

unsigned world_rounds(const struct world *w, enum world_sort sort)
{
	return rig.rounds;
}

enum world_sight world_sight_of(const struct world *w, enum world_sort sort)
{
	assert_true(sort == WORLD_EVENTS || sort == WORLD_GROUPS);
	return WORLD_CONFIRMED;
}

const struct spec_pod_view **world_pods(const struct world_job *job, size_t *ret_n)
{
	const struct spec_pod_view **v = calloc(1, sizeof(struct spec_pod_view *));

	*v = known_of(job)->pod;
	*ret_n = *v != NULL;
	return v;
}

const struct spec_group_view *world_group(const struct world *w, const struct world_job *job)
{
	return NULL;
}

struct spec_kueue_facts world_kueue(const struct world *w, const struct world_job *job)
{
	return (struct spec_kueue_facts){0};
}

void world_set_waiting(const struct world_job *job, bool waits)
{
	known_of(job)->waits = waits;
}

static void clear(struct known *k)
{
	free(k->job.uid);
	spec_job_view_free(k->job.view);
	spec_text_unref(k->job.object);
	spec_pod_view_free((struct spec_pod_view *)(uintptr_t)k->pod);
	*k = (struct known){0};
}

void world_forget(const struct world_job *job)
{
	note("forget %s", job->uid);
	clear(known_of(job));
}

void world_events_of(struct world *w, const char *uid, struct events_list *ret)
{
	*ret = (struct events_list){0};
}

struct spec_queue_view *world_queue(struct world *w, enum world_sort sort, const char *name)
{
	return NULL;
}

struct spec_cluster_queue_view *world_cluster_queue(struct world *w, const char *name)
{
	fail_msg("no queue leads to %s", name);
	return NULL;
}

/* --- folders.h: one --- */

void folders_set_events(struct folders *f, const struct folders_events *events)
{
	rig.folders_events = *events;
}

int folders_claim(struct folders *f, const char *id, const struct spec_job_view *view)
{
	note("claim %s", view->meta.name);
	return 0;
}

const struct folder *folders_find(const struct folders *f, const char *id)
{
	return rig.folder.id && streq(rig.folder.id, id) ? &rig.folder : NULL;
}

const struct folder *folders_of(const struct folders *f, const char *id,
				const struct spec_job_view *view)
{
	const struct folder *folder = folders_find(f, id);

	return folder && streq(folder->uid, view->meta.uid) ? folder : NULL;
}

void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data)
{
	if (rig.folder.id)
		fn(data, &rig.folder);
}

const struct folder *folders_bind(struct folders *f, const char *id,
				  const struct spec_job_view *view)
{
	bool doubt = rig.folder.doubt;

	if (!folders_find(f, id) || *rig.folder.uid)
		return NULL;
	rig.folder.uid = view->meta.uid;
	rig.folder.doubt = 0;
	return doubt ? &rig.folder : NULL;
}

void folders_doubt(struct folders *f, const char *id, const char *file, uint64_t ms)
{
	note("doubt %s", id);
	rig.folder.doubt = fake.now + ms;
}

void folders_save(struct folders *f, const char *uid, bool now)
{
	note("save %s%s", uid, now ? " now" : "");
}

void folders_remove(struct folders *f, const char *id, folders_fn done, void *data)
{
	assert_null(done);
	note("remove %s", id);
	rig.folder.id = NULL;
}

bool folders_holds(const struct folders *f, const char *id, const char *uid)
{
	return rig.folder.id && streq(rig.folder.id, id) && streq(rig.folder.uid, uid);
}

/* --- capture.h --- */

void capture_set_events(struct capture *c, const struct capture_events *events)
{
	rig.capture_events = *events;
}

void capture_away(struct capture *c, bool away)
{
}

char *capture_forbidden(struct capture *c)
{
	return NULL;
}

bool capture_is_quiet(const struct capture *c, const char *uid)
{
	return !rig.writing;
}

bool capture_is_fetching(struct capture *c, const struct spec_job *snapshot, bool wanted,
			 bool early)
{
	return rig.fetching;
}

void capture_update(struct capture *c, const struct spec_job *snapshot, bool wanted)
{
	note("%s%s", snapshot->uid, wanted ? " wanted" : "");
	fake.now += rig.slow;
}

void capture_fill(struct capture *c, struct spec_job *snapshot, bool wanted, bool dropped)
{
	rig.dropped = dropped;
}

void capture_merge_again(struct capture *c, const struct spec_job *snapshot, bool gone)
{
	note("%s is merged as %s", snapshot->uid, snapshot->id);
}

bool capture_has(const struct capture *c, const char *uid)
{
	return rig.writing;
}

bool capture_is_over(const struct capture *c, const char *uid)
{
	return !rig.writing;
}

void capture_forget(struct capture *c, const char *uid)
{
}

/* --- commands.h, last_words.h --- */

void commands_set_changed(struct commands *cs, void (*changed)(void *data, const char *uid),
			  void *data)
{
}

struct last_words *last_words_read(struct loop *loop, struct group *group, const char *error,
				   const char *log, void (*fn)(void *data, const char *words),
				   void *data)
{
	fail_msg("no job here has a log: %s", log);
	return NULL;
}

void last_words_drop(struct last_words *w)
{
	assert_null(w);
}

bool commands_check(struct commands *cs, const char *uid, const struct spec_control *control,
		    const struct spec_control_job *job)
{
	assert_string_equal(job->view->meta.uid, uid);
	if (rig.pending)
		note("check %s", uid);
	return false;
}

unsigned commands_pending(const struct commands *cs, const char *uid)
{
	return rig.pending;
}

unsigned commands_ignored(const struct commands *cs, const char *uid)
{
	return 0;
}

void commands_shown(struct commands *cs, const char *uid, const char *phase)
{
	if (rig.pending)
		note("%s is shown %s", uid, phase);
}

void commands_gone(struct commands *cs, const char *uid)
{
	if (rig.pending)
		note("no command of %s", uid);
}

/* --- the test's side --- */

static bool store_has(const char *id)
{
	const struct spec_job *job cleanup_job = store_get(rig.store, BACKEND_JOBS, id);

	return job;
}

static void on_launched(void *data, const char *file, const char *id, const char *submission)
{
	assert_null(data);
	assert_string_equal(file, "app.yaml");
	assert_string_equal(submission, "s");
	rig.shown_by_then = id && *id && store_has(id);
	note("launched %s", id ? *id ? id : "none" : "?");
}

static void on_running(void *data, bool any, bool captured)
{
	rig.running = captured ? "captured" : any ? "any" : "none";
}

static void begin_as(enum backend_capture mode)
{
	rig.p = publish_new(&(struct publish_config){.store = rig.store,
						     .namespace = "ns",
						     .mode = mode,
						     .running = on_running,
						     .launched = on_launched});
}

static int setup(void **state)
{
	static const struct store_events no_events;

	memset(&rig, 0, sizeof(rig));
	forget_noted();
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	diag_setup(DIAG_DEBUG, false);
	rig.rounds = 1;
	rig.store = store_new(&no_events);
	begin_as(BACKEND_CAPTURE_ALL);
	return 0;
}

static int teardown(void **state)
{
	publish_stop(rig.p);
	fake_run();
	assert_null(fake.timers);
	publish_free(rig.p);
	for (size_t i = 0; i < N_JOBS; i++)
		if (rig.jobs[i].job.uid)
			clear(&rig.jobs[i]);
	store_free(rig.store);
	return 0;
}

/* There is the folder of job ID; UID "": as far as is known the job was not launched. */
static void have_folder(const char *id, const char *uid, const char *file, bool output)
{
	rig.folder = (struct folder){
		.id = (char *)(uintptr_t)id,
		.uid = (char *)(uintptr_t)uid,
		.submission = (char *)(uintptr_t) "s",
		.file = (char *)(uintptr_t)file,
		.written = loop_time_ns(),
		.output = output,
	};
}

/* Job I, called jI, of uid uI, is in PHASE now, and the world has told of it. */
static void tell(size_t i, const char *phase)
{
	cleanup_free char *json = text_print(
		"{\"metadata\":{\"name\":\"j%zu\",\"uid\":\"u%zu\",\"creationTimestamp\":\"2023-11-14T22:"
		"13:20Z\"},\"spec\":{\"queue\":\"q\",\"tasks\":[{\"name\":\"a\",\"replicas\":1}]},"
		"\"status\":{\"state\":{\"phase\":\"%s\"}}}",
		i, i, phase);
	struct known *k = &rig.jobs[i];

	spec_job_view_free(take_ptr(k->job.view));
	assert_int_equal(spec_job_view_parse(spec_volcano.reader, json, strlen(json), NULL, NULL,
					     &k->job.view),
			 0);
	spec_text_unref(k->job.object);
	k->job.kind = &spec_volcano;
	k->job.sort = WORLD_JOBS;
	k->job.object = spec_text_new(json, strlen(json));
	free(k->job.uid);
	k->job.uid = text_print("u%zu", i);
	k->job.round = rig.rounds;
	rig.changed(rig.p, &k->job);
}

static void tell_gone(size_t i)
{
	rig.jobs[i].job.gone = true;
	rig.changed(rig.p, &rig.jobs[i].job);
}

/* Show all jobs of the world, as at the start. */
static void begin(void)
{
	publish_begin(rig.p);
	fake_run();
	forget_noted();
}

/* The state of job jI in PLACE is STATE; NULL: it is not there. */
static void assert_shown(enum backend_place place, const char *id, const char *want)
{
	const struct spec_job *job cleanup_job = store_get(rig.store, place, id);

	if (!want)
		assert_null(job);
	else
		assert_non_null(job);
	if (job)
		assert_string_equal(spec_state_name(job->state), want);
}

/* A copy of JOB, which is freed, under ID. */
static struct spec_job *with_id(const struct spec_job *job, const char *id)
{
	struct spec_job *copy = spec_job_copy(job);

	spec_set(&copy->id, id);
	spec_job_unref(job);
	return copy;
}

/* --- turns --- */

/* Nothing is shown before the first lists are in; then a job is shown once a turn, whatever has changed of it. */
static void test_once_a_turn(void **state)
{
	tell(0, "Pending");
	fake_run();
	assert_done("");
	publish_begin(rig.p);
	assert_done("u0 wanted");
	assert_shown(BACKEND_JOBS, "j0", "PENDING");
	assert_true(rig.jobs[0].waits);
	tell(0, "Pending");
	publish_again(rig.p, "u0");
	publish_again(rig.p, "u9"); /* nobody knows that job */
	tell(0, "Running");
	assert_done("");
	fake_run();
	assert_done("u0 wanted");
	assert_shown(BACKEND_JOBS, "j0", "RUNNING");
	assert_false(rig.jobs[0].waits);
}

static void on_other(void *data)
{
	note("other");
}

/* A turn takes a limited time, so that what else is posted is served between two turns. */
static void test_short_turns(void **state)
{
	begin();
	rig.slow = 15;
	for (size_t i = 0; i < 3; i++)
		tell(i, "Running");
	loop_post(NULL, on_other, NULL);
	fake_run();
	assert_done("u0 wanted, u1 wanted, other, u2 wanted");
}

/* A job that goes is shown first, so that a new job of its name finds room. */
static void test_gone_first(void **state)
{
	begin();
	tell(0, "Running");
	fake_run();
	forget_noted();
	tell(1, "Running");
	tell_gone(0);
	fake_run();
	assert_done("forget u0, u1 wanted");
}

/* Whoever has asked for a change is answered after it is shown. */
static void test_now(void **state)
{
	begin();
	tell(0, "Running");
	publish_now(rig.p, &rig.jobs[0].job);
	assert_shown(BACKEND_JOBS, "j0", "RUNNING");
	assert_done("u0 wanted");
	fake_run();
	assert_done("");
}

/* Publish answers questions of the other parts about jobs that the world knows. */
static void test_asked(void **state)
{
	begin();
	tell(0, "Running");
	fake_run();
	forget_noted();
	assert_true(rig.folders_events.in_use(rig.p, "u0"));
	assert_false(rig.folders_events.in_use(rig.p, "u1"));
	assert_int_equal(rig.capture_events.claim(rig.p, "u0"), 0);
	assert_int_equal(rig.capture_events.claim(rig.p, "u1"), -EBUSY);
	assert_done("claim j0");
	rig.capture_events.changed(rig.p, "u0");
	fake_run();
	assert_done("u0 wanted");
}

/*
 * A job is gone, and a pod stays that says it is of that job: its folder is not in use, and while that is moved it is
 * not shown, since nothing would be found of it. After that it is the history under the folder's new name, and what its
 * pods print is captured there.
 */
static void test_displaced(void **state)
{
	const struct spec_job *job;

	begin();
	have_folder("j0", "u0", NULL, true);
	tell(0, "Running");
	fake_run();
	rig.jobs[0].job.n_pods = 1;
	rig.jobs[0].job.gone = true;
	assert_true(rig.folders_events.in_use(rig.p, "u0"));
	tell_gone(0);
	fake_run();
	assert_shown(BACKEND_HISTORY, "j0", "CANCELLED");
	assert_false(rig.folders_events.in_use(rig.p, "u0"));
	forget_noted();
	rig.folders_events.moves(rig.p, "u0");
	rig.folder.id = NULL; /* it belongs to nobody */
	tell_gone(0);
	fake_run();
	assert_done("");
	assert_shown(BACKEND_HISTORY, "j0", "CANCELLED");
	have_folder("j0~u0", "u0", NULL, true);
	job = store_get_uid(rig.store, "u0");
	store_remove(rig.store, "u0");
	store_put(rig.store, with_id(job, "j0~u0"));
	rig.folders_events.moved(rig.p, "u0", "j0~u0");
	fake_run();
	assert_done("u0 is merged as j0~u0, u0 wanted, save u0 now");
	assert_shown(BACKEND_HISTORY, "j0", NULL);
	assert_shown(BACKEND_HISTORY, "j0~u0", "CANCELLED");
}

/* When a folder is free, the jobs that have its name are shown again. */
static void test_folder(void **state)
{
	begin();
	tell(0, "Running");
	tell(1, "Running");
	fake_run();
	forget_noted();
	rig.folders_events.freed(rig.p, "j1");
	fake_run();
	assert_done("u1 wanted");
}

/* --- what leaves --- */

static void test_leaves_without_output(void **state)
{
	begin();
	have_folder("j0", "u0", NULL, false);
	tell(0, "Running");
	fake_run();
	forget_noted();
	tell_gone(0);
	fake_run();
	assert_done("remove j0, forget u0");
	assert_shown(BACKEND_JOBS, "j0", NULL);
	assert_shown(BACKEND_HISTORY, "j0", NULL);
}

/* A job is forgotten when its output is on disk, and its pods are gone. */
static void test_leaves_with_output(void **state)
{
	begin();
	have_folder("j0", "u0", NULL, true);
	tell(0, "Running");
	fake_run();
	assert_done("u0 wanted");
	rig.writing = true;
	publish_again(rig.p, "u0");
	fake_run();
	assert_done("u0 wanted, save u0");
	tell_gone(0);
	fake_run();
	assert_done("u0, save u0 now");
	assert_shown(BACKEND_JOBS, "j0", NULL);
	assert_shown(BACKEND_HISTORY, "j0", "CANCELLED");
	rig.writing = false;
	rig.jobs[0].job.n_pods = 1;
	publish_again(rig.p, "u0");
	fake_run();
	assert_done("u0, save u0 now");
	rig.jobs[0].job.n_pods = 0;
	publish_again(rig.p, "u0");
	fake_run();
	assert_done("u0, save u0 now, forget u0");
	assert_shown(BACKEND_HISTORY, "j0", "CANCELLED");
}

/* A job that was cancelled leaves at once, and once; its folder stays as long as the cluster has the job. */
static void test_cancelled(void **state)
{
	begin();
	have_folder("j0", "u0", NULL, false);
	tell(0, "Running");
	fake_run();
	forget_noted();
	publish_leave(rig.p, "u0");
	assert_done("");
	assert_shown(BACKEND_JOBS, "j0", NULL);
	assert_true(publish_has_untold(rig.p, rig.jobs[0].job.sort));
	assert_false(publish_has_untold(rig.p, rig.jobs[0].job.sort + 1));
	publish_leave(rig.p, "u0");
	tell(0, "Terminating");
	fake_run();
	assert_done("");
	assert_shown(BACKEND_JOBS, "j0", NULL);
	tell_gone(0);
	fake_run();
	assert_done("remove j0, forget u0");
}

/*
 * A list that was asked for after that has the job, and nothing says that the job is being deleted: it is shown again.
 */
static void test_not_deleted(void **state)
{
	begin();
	tell(0, "Running");
	fake_run();
	publish_leave(rig.p, "u0");
	tell(0, "Running"); /* the list may have been asked for before */
	fake_run();
	assert_shown(BACKEND_JOBS, "j0", NULL);
	rig.rounds = 2;
	tell(0, "Running");
	fake_run();
	assert_shown(BACKEND_JOBS, "j0", "RUNNING");
	assert_false(publish_has_untold(rig.p, rig.jobs[0].job.sort));
	publish_leave(rig.p, "u0");
	rig.jobs[0].job.gone = true;
	assert_false(publish_has_untold(rig.p, rig.jobs[0].job.sort));
}

/* A job that is gone and comes back, as when it gets again the labels by which jobs are shown. */
static void test_comes_back(void **state)
{
	begin();
	tell(0, "Running");
	fake_run();
	rig.jobs[0].job.n_pods = 1;
	tell_gone(0);
	fake_run();
	assert_shown(BACKEND_JOBS, "j0", NULL);
	rig.jobs[0].job.gone = false;
	tell(0, "Running");
	fake_run();
	assert_shown(BACKEND_JOBS, "j0", "RUNNING");
}

/* --- what is shown --- */

static void test_stale(void **state)
{
	const struct spec_job *job;

	begin();
	tell(0, "Running");
	fake_run();
	for (int64_t since = 77; since >= 0; since -= 77) {
		publish_set_stale(rig.p, since);
		fake_run();
		job = store_get(rig.store, BACKEND_JOBS, "j0");
		assert_int_equal(job->stale_since, since);
		spec_job_unref(job);
	}
}

static void test_whose_is_captured(void **state)
{
	static const struct {
		enum backend_capture mode;
		bool own;
		const char *want;
	} cases[] = {
		{BACKEND_CAPTURE_ALL, false, "u0 wanted"},
		{BACKEND_CAPTURE_OWN, false, "u0"},
		{BACKEND_CAPTURE_OWN, true, "u0 wanted"},
		{BACKEND_CAPTURE_NONE, true, "u0"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		publish_free(rig.p);
		begin_as(cases[i].mode);
		begin();
		rig.folder.id = NULL;
		if (cases[i].own)
			have_folder("j0", "u0", NULL, false);
		tell(0, "Running");
		fake_run();
		assert_done(cases[i].want);
		assert_false(rig.dropped);
		publish_stop(rig.p);
	}
	publish_free(rig.p);
	begin_as(BACKEND_CAPTURE_ALL);
	begin();
	rig.folder.dropped = true;
	tell(0, "Running");
	fake_run();
	assert_done("u0"); /* output that was removed to make room is not fetched again */
	assert_true(rig.dropped);
}

/* The command is checked before the job is shown. Whoever gave it is told after that, or when the job leaves. */
static void test_command(void **state)
{
	const struct spec_job *job;

	begin();
	rig.pending = 1;
	tell(0, "Running");
	fake_run();
	assert_done("check u0, u0 wanted, u0 is shown Running");
	job = store_get(rig.store, BACKEND_JOBS, "j0");
	assert_int_equal(job->pending, 1);
	spec_job_unref(job);
	publish_leave(rig.p, "u0");
	assert_done("no command of u0");
	publish_leave(rig.p, "u0");
	assert_done("");
}

static bool is_over(const char *id)
{
	const struct spec_job *job cleanup_job = store_get_uid(rig.store, id);

	return spec_job_is_over(job);
}

/*
 * A job has ended before its pods were told of: these may come, but not for ever, and not while the server can't tell
 * of them.
 */
static void test_late_pods(void **state)
{
	begin();
	tell(0, "Running");
	fake_run();
	tell(0, "Completed");
	fake_run();
	assert_false(is_over("u0"));
	publish_set_stale(rig.p, 77);
	fake_run();
	fake_pass(PATIENT_S * 1000);
	publish_again(rig.p, "u0");
	fake_run();
	assert_false(is_over("u0"));
	publish_set_stale(rig.p, 0);
	fake_run();
	assert_false(is_over("u0"));
	fake_pass(PATIENT_S * 1000);
	assert_true(is_over("u0"));
	assert_null(fake.timers);
	/* For a job that has left no pod is waited for. */
	have_folder("j1", "u1", NULL, true);
	tell(1, "Running");
	fake_run();
	tell(1, "Completed");
	tell_gone(1);
	fake_run();
	assert_shown(BACKEND_HISTORY, "j1", "SUCCEEDED");
	assert_true(is_over("u1"));
}

/*
 * Jobs of a kind that the cluster has got may be listed before their pods: those that this mount has not shown wait for
 * their pods. Those that it has shown, or launched, do not.
 */
static void test_pods_of_another_kind(void **state)
{
	begin();
	tell(0, "Running");
	fake_run();
	forget_noted();
	rig.lacks_pods = true;
	tell(0, "Completed");
	tell(1, "Completed");
	tell(2, "Running");
	publish_now(rig.p, &rig.jobs[2].job);
	assert_done("u2 wanted");
	fake_run();
	assert_done("u0 wanted");
	assert_shown(BACKEND_JOBS, "j1", NULL);
	assert_false(publish_has_shown(rig.p, "u1"));
	publish_listed(rig.p);
	fake_run();
	assert_done("");
	rig.lacks_pods = false;
	publish_listed(rig.p);
	fake_run();
	assert_done("u1 wanted");
	assert_shown(BACKEND_JOBS, "j1", "SUCCEEDED");
	assert_true(publish_has_shown(rig.p, "u1"));
}

/* --- the start --- */

/* When the cluster no longer has a job that an earlier mount has shown, its snapshot becomes its history. */
static void test_becomes_history(void **state)
{
	struct spec_job *old = spec_job_new(1, 1);
	const struct spec_job *job = NULL;

	spec_set(&old->id, "j0");
	spec_set(&old->uid, "u0");
	old->state = SPEC_RUNNING;
	old->replicas[0].state = SPEC_RUNNING;
	store_put(rig.store, old);
	have_folder("j0", "u0", "app.yaml", true);
	publish_begin(rig.p);
	assert_done("launched j0, save u0 now");
	assert_shown(BACKEND_JOBS, "j0", NULL);
	assert_shown(BACKEND_HISTORY, "j0", "CANCELLED");
	job = store_get_uid(rig.store, "u0");
	assert_true(spec_job_is_over(job)); /* nobody who follows it waits any longer */
	assert_string_equal(spec_state_name(job->replicas[0].state), "CANCELLED");
	spec_job_unref(job);
}

/* An earlier mount ended after the job had left, and before it had all output: nobody has the rest. */
static void test_history_lacks_its_end(void **state)
{
	const struct spec_job *job;
	struct spec_job *old = spec_job_new(1, 1);

	spec_set(&old->id, "j0");
	spec_set(&old->uid, "u0");
	old->history = true;
	old->state = SPEC_CANCELLED;
	spec_replica_copy_log(&old->replicas[0],
			      &(struct spec_log){.key = (char *)(uintptr_t) "a-0.0"});
	store_put(rig.store, old);
	have_folder("j0", "u0", NULL, true);
	for (int i = 0; i < 2; i++) {
		publish_begin(rig.p);
		assert_done(i ? "" : "save u0");
		job = store_get_uid(rig.store, "u0");
		assert_int_equal(job->replicas[0].logs[0].gap, 1);
		spec_job_unref(job);
	}
}

/* An earlier mount has seen j0, which is job UID of KIND; when this one starts the jobs of KIND may not be listed. */
static void begin_unheard(const char *uid, const char *kind)
{
	struct spec_job *old = spec_job_new(0, 0);

	spec_set(&old->id, "j0");
	spec_set(&old->uid, uid);
	spec_set(&old->backend, kind);
	old->state = SPEC_RUNNING;
	store_put(rig.store, old);
	have_folder("j0", uid, "app.yaml", true);
	rig.refused = kind;
	publish_begin(rig.p);
	assert_done("launched j0");
}

/*
 * When the jobs of its kind may not be listed, a job stays as it was until they may be listed, and there is no such
 * job.
 */
static void test_kind_is_refused(void **state)
{
	begin_unheard("u0", "jobset");
	assert_shown(BACKEND_JOBS, "j0", "RUNNING");
	publish_listed(rig.p);
	assert_shown(BACKEND_JOBS, "j0", "RUNNING");
	rig.refused = NULL;
	publish_listed(rig.p);
	assert_done("save u0 now");
	assert_shown(BACKEND_JOBS, "j0", NULL);
	assert_shown(BACKEND_HISTORY, "j0", "CANCELLED");
}

/* The first job of its kind that is told of, late, is another job of its name. */
static void test_name_of_another(void **state)
{
	begin_unheard("old", "volcano");
	tell(0, "Running");
	fake_run();
	assert_done("save old now, u0 wanted");
	assert_shown(BACKEND_JOBS, "j0", "RUNNING");
	assert_shown(BACKEND_HISTORY, "j0", "CANCELLED");
}

/* A job that the cluster still has stays; its launch is told, since the earlier mount may not have told it. */
static void test_is_still_there(void **state)
{
	have_folder("j0", "u0", "app.yaml", true);
	tell(0, "Running");
	publish_begin(rig.p);
	assert_done("launched j0, u0 wanted");
	assert_shown(BACKEND_JOBS, "j0", "RUNNING");
}

/* The uid of the job is not known yet: the job is found by its submission, before any job is shown. */
static void test_is_found(void **state)
{
	have_folder("j0", "", "app.yaml", false);
	tell(0, "Running");
	publish_begin(rig.p);
	assert_done("launched j0, u0 wanted");
}

static void test_left_folders(void **state)
{
	/* The folder of a job that is gone, without output; and one that has output, but whose job can't be told. */
	have_folder("j0", "u0", NULL, false);
	publish_begin(rig.p);
	assert_done("remove j0");
	have_folder("j0", "", NULL, true);
	publish_begin(rig.p);
	assert_done("");
	/* The same, however old the submission seems to be: the clock may have been set. */
	have_folder("j0", "", "app.yaml", false);
	rig.folder.written -= INT64_C(3000000) * REQUEST_FIND_OUT_MS;
	publish_begin(rig.p);
	assert_done("doubt j0, launched ?");
}

/*
 * A submission may still take effect: it counts as launched when its job is seen, and as not launched when time is up.
 */
static void test_in_doubt(void **state)
{
	have_folder("j0", "", "app.yaml", false);
	publish_begin(rig.p);
	assert_done("doubt j0, launched ?");
	fake_pass(REQUEST_FIND_OUT_MS / 2);
	assert_done("");
	/* Only a cluster that can be seen can show that there is no such job. */
	publish_set_stale(rig.p, 77);
	fake_pass(REQUEST_FIND_OUT_MS);
	assert_done("");
	publish_set_stale(rig.p, 0);
	fake_pass(REQUEST_FIND_OUT_MS);
	assert_done("launched none, remove j0");
	assert_null(fake.timers);
	/* So it is while the jobs of its kind may not be listed: one that is told of late is found. */
	have_folder("j0", "", "app.yaml", false);
	rig.refused = "volcano";
	publish_begin(rig.p);
	assert_done("doubt j0, launched ?");
	fake_pass(2 * REQUEST_FIND_OUT_MS);
	assert_done("");
	rig.refused = NULL;
	have_folder("j1", "", "app.yaml", false);
	rig.folder.doubt = fake.now + 20000;
	publish_doubt(rig.p);
	tell(1, "Running");
	fake_run();
	assert_done("u1 wanted, launched j1");
	assert_true(rig.shown_by_then); /* whoever reads the verdict finds the job */
	fake_pass(REQUEST_FIND_OUT_MS);
	assert_done("");
}

/* --- what it uses --- */

/* The only pod of job I, pI, runs (or is in another STATE, with ' as "). */
static void tell_pod(size_t i, const char *state)
{
	cleanup_free char *json = text_print(
		"{'metadata':{'name':'p%zu','uid':'p%zu','labels':{'volcano.sh/task-spec':'a',"
		"'volcano.sh/task-index':'0'}},'spec':{'containers':[{'name':'main'}]},'status':{'phase':"
		"'Running','containerStatuses':[{'name':'main','state':{%s}}]}}",
		i, i, state);
	struct known *k = &rig.jobs[i];
	struct spec_pod_view *v;

	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	assert_int_equal(spec_pod_view_parse(&spec_volcano.reader, 1, json, strlen(json), &v), 0);
	spec_pod_view_free((struct spec_pod_view *)(uintptr_t)k->pod);
	k->pod = v;
	rig.changed(rig.p, &k->job);
}

#define RUNS "'running':{'startedAt':'2023-11-14T22:13:20Z'}"

/*
 * A change that only a look has brought is shown at once. It is written once a minute, with the next other change, or
 * at the end.
 */
static void test_looks(void **state)
{
	begin();
	have_folder("j0", "u0", NULL, true);
	rig.writing = true;
	fake.now = 3600000;
	tell(0, "Running");
	tell_pod(0, RUNS);
	fake_run();
	assert_done("u0 wanted, save u0");
	for (int i = 0; i < 5; i++) {
		fake_pass(15000);
		publish_looked(rig.p, &rig.jobs[0].job);
		fake_run();
		assert_done(i == 3 ? "u0 wanted, save u0" : "u0 wanted");
	}
	publish_looked(rig.p, &rig.jobs[0].job);
	tell(0, "Running");
	publish_looked(rig.p, &rig.jobs[0].job);
	fake_run();
	assert_done("u0 wanted, save u0");
	publish_stop(rig.p);
	assert_done("");
}

static void test_looks_at_the_end(void **state)
{
	begin();
	have_folder("j0", "u0", NULL, true);
	rig.writing = true;
	tell(0, "Running");
	fake_run();
	publish_looked(rig.p, &rig.jobs[0].job);
	fake_run();
	forget_noted();
	publish_stop(rig.p);
	assert_done("save u0");
}

static bool is_fetching(const char *id)
{
	const struct spec_job *job cleanup_job = store_get_uid(rig.store, id);

	return job->fetching;
}

static bool is_behind(const char *id)
{
	const struct spec_job *job cleanup_job = store_get_uid(rig.store, id);

	return job->behind;
}

/* A job that has ended is marked while its output is still expected, which alone does not have it shown or written. */
static void test_fetching(void **state)
{
	begin();
	have_folder("j0", "u0", NULL, true);
	rig.writing = rig.fetching = true;
	fake.now = 3600000;
	tell(0, "Running");
	fake_run();
	assert_false(is_fetching("u0"));
	tell(0, "Completed");
	fake_run();
	assert_true(is_fetching("u0"));
	assert_false(is_behind("u0"));
	fake_pass(PATIENT_S * 1000); /* until no pods are expected any more */
	assert_true(is_over("u0"));
	forget_noted();
	fake_pass(1000);
	assert_true(is_fetching("u0"));
	assert_true(is_behind("u0"));
	assert_done("");
	/* Nor does a server that is away keep it so for ever. */
	publish_set_stale(rig.p, 77);
	fake_run();
	assert_true(is_fetching("u0"));
	rig.fetching = false;
	fake_pass(1000);
	assert_false(is_fetching("u0"));
	assert_null(fake.timers);
	/* Of a job that has left nothing is waited for. */
	publish_set_stale(rig.p, 0);
	fake_run();
	rig.fetching = true;
	tell_gone(0);
	fake_run();
	assert_false(is_fetching("u0"));
}

/* What looks at usage is told whether there is anything to look at. */
static void test_running(void **state)
{
	begin();
	tell(0, "Running");
	fake_run();
	assert_null(rig.running);
	tell_pod(0, RUNS);
	fake_run();
	assert_string_equal(rig.running, "captured");
	tell(1, "Running");
	tell_pod(1, RUNS);
	fake_run();
	rig.running = NULL;
	tell_pod(0, "'waiting':{'reason':'CrashLoopBackOff'}");
	fake_run();
	assert_null(rig.running);
	tell_gone(1);
	fake_run();
	assert_string_equal(rig.running, "none");
}

static void test_running_of_others(void **state)
{
	publish_stop(rig.p);
	publish_free(rig.p);
	begin_as(BACKEND_CAPTURE_OWN);
	begin();
	tell(0, "Running");
	tell_pod(0, RUNS);
	fake_run();
	assert_string_equal(rig.running, "any");
	publish_leave(rig.p, "u0");
	assert_string_equal(rig.running, "none");
}

/* At the end nothing is shown any more. */
static void test_stop(void **state)
{
	begin();
	tell(0, "Running");
	publish_stop(rig.p);
	fake_run();
	tell(1, "Running");
	publish_doubt(rig.p);
	fake_run();
	assert_done("");
	assert_null(fake.timers);
}

int main(void)
{
#define PUBLISH_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		PUBLISH_TEST(test_once_a_turn),
		PUBLISH_TEST(test_short_turns),
		PUBLISH_TEST(test_gone_first),
		PUBLISH_TEST(test_now),
		PUBLISH_TEST(test_asked),
		PUBLISH_TEST(test_folder),
		PUBLISH_TEST(test_displaced),
		PUBLISH_TEST(test_leaves_without_output),
		PUBLISH_TEST(test_leaves_with_output),
		PUBLISH_TEST(test_cancelled),
		PUBLISH_TEST(test_not_deleted),
		PUBLISH_TEST(test_comes_back),
		PUBLISH_TEST(test_stale),
		PUBLISH_TEST(test_whose_is_captured),
		PUBLISH_TEST(test_command),
		PUBLISH_TEST(test_late_pods),
		PUBLISH_TEST(test_fetching),
		PUBLISH_TEST(test_pods_of_another_kind),
		PUBLISH_TEST(test_becomes_history),
		PUBLISH_TEST(test_history_lacks_its_end),
		PUBLISH_TEST(test_kind_is_refused),
		PUBLISH_TEST(test_name_of_another),
		PUBLISH_TEST(test_is_still_there),
		PUBLISH_TEST(test_is_found),
		PUBLISH_TEST(test_left_folders),
		PUBLISH_TEST(test_in_doubt),
		PUBLISH_TEST(test_looks),
		PUBLISH_TEST(test_looks_at_the_end),
		PUBLISH_TEST(test_running),
		PUBLISH_TEST(test_running_of_others),
		PUBLISH_TEST(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
