/* SPDX-License-Identifier: MIT */
/* Whose a folder is, that its changes are done one after the other, and which snapshots are written; without a disk. */
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/kube/folder_files.h"
#include "backend/kube/folders.h"
#include "spec/base/mem.h"

static struct {
	struct folders *f;
	struct store *store;
	struct group group;
	const char *used; /* uid of the job of which something is still captured; NULL: none */
	int err;	  /* the result of the next change on the disk */
	struct folder_found *found;
	/* A move that is under way. */
	void (*moved)(void *data, int err);
	void *data;
} rig;

static int next_err(void)
{
	int err = rig.err;

	rig.err = 0;
	return err;
}

/* --- folder_files.h --- */

int folder_files_load(const char *state_dir, struct folder_found **ret)
{
	assert_string_equal(state_dir, "/state");
	*ret = take_ptr(rig.found);
	return next_err();
}

void folder_found_free(struct folder_found *found)
{
	free(found->id);
	free(found->submission);
	free(found->file);
	free(found->uid);
	free(found->dropped);
	spec_job_unref(found->snapshot);
	free(found);
}

int folder_files_settle(const char *state_dir, const char *id, const char *uuid, const char *uid)
{
	note("settle %s %s %s", id, uuid, *uid ? uid : "?");
	return next_err();
}

int folder_files_forget(const char *state_dir, const char *uuid)
{
	note("forget %s", uuid);
	return 0;
}

int folder_files_save(const char *state_dir, const struct spec_job *job, bool unread,
		      char **ret_place)
{
	note("save %s %s%s", job->id, job->phase, unread ? " aside" : "");
	*ret_place = unread ? text_copy("/state/unread/x") : NULL;
	return next_err();
}

int folder_files_drop(const char *state_dir, const char *id, const char *uid)
{
	note("drop %s %s", id, uid);
	return next_err();
}

char *folder_files_name_of(const char *id, const char *uid)
{
	return text_print("%s~%s", id, uid);
}

int folder_files_aside(const char *state_dir, const char *id, char **ret_place)
{
	note("aside %s", id);
	*ret_place = text_copy("/state/unread/x");
	return next_err();
}

/* --- output.h: all is done when the test lets the pool work --- */

bool output_is_unmerged(const struct output *o, const char *id)
{
	return false;
}

struct removing {
	void (*done)(void *data, int err);
	void *data;
	int err;
};

static void removing_done(void *data)
{
	const struct removing r = *(struct removing *)data;

	free(data);
	r.done(r.data, r.err);
}

static void begin_removing(void (*done)(void *data, int err), void *data)
{
	struct removing *r = new0(struct removing);

	*r = (struct removing){done, data, next_err()};
	loop_work(NULL, fake_nothing, removing_done, r);
}

void output_job_remove(struct output *o, const char *id, void (*done)(void *data, int err),
		       void *data)
{
	note("remove %s", id);
	if (done)
		begin_removing(done, data);
}

void output_logs_remove(struct output *o, const char *id, void (*done)(void *data, int err),
			void *data)
{
	note("remove logs of %s", id);
	begin_removing(done, data);
}

void output_job_move(struct output *o, const char *id, const char *to,
		     void (*fn)(void *data, int err), void *data)
{
	note("move %s %s", id, to);
	assert_null(rig.moved);
	rig.moved = fn;
	rig.data = data;
}

static void end_move(int err)
{
	take_ptr(rig.moved)(rig.data, err);
	fake_run();
}

/* --- what it tells --- */

static void on_freed(void *data, const char *id)
{
	assert_null(data);
	note("freed %s", id);
}

static bool is_in_use(void *data, const char *uid)
{
	assert_null(data);
	return rig.used && streq(rig.used, uid);
}

static void on_moves(void *data, const char *uid)
{
	note("of %s", uid);
}

static void on_folder_moved(void *data, const char *uid, const char *id)
{
	note("%s is %s", uid, id);
}

static void on_saved(void *data)
{
	assert_null(data);
	note("saved");
}

static void on_removed(void *data, int err)
{
	note(err ? "%s is left" : "%s is removed", (const char *)data);
}

/* When the folder ID has been removed, note WHAT as removed. */
static void remove_folder(const char *id, const char *what)
{
	folders_remove(rig.f, id, on_removed, (void *)(uintptr_t)what);
}

static void drop_output(const char *id, const char *what)
{
	folders_drop_output(rig.f, id, on_removed, (void *)(uintptr_t)what);
}

static int setup(void **state)
{
	static const struct folders_events events = {.freed = on_freed,
						     .in_use = is_in_use,
						     .moves = on_moves,
						     .moved = on_folder_moved};
	static const struct store_events no_events;

	memset(&rig, 0, sizeof(rig));
	forget_noted();
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	diag_setup(DIAG_DEBUG, false);
	group_init(&rig.group, NULL);
	rig.store = store_new(&no_events);
	rig.f = folders_new(&(struct folders_config){
		.store = rig.store,
		.state_dir = "/state",
		.group = &rig.group,
	});
	folders_set_events(rig.f, &events);
	folders_set_saved(rig.f, on_saved, NULL);
	return 0;
}

static int teardown(void **state)
{
	folders_stop(rig.f);
	fake_run();
	assert_int_equal(rig.group.n, 0);
	assert_null(fake.timers);
	folders_free(rig.f);
	store_free(rig.store);
	return 0;
}

/* Job UID, called ID, whose object says that it comes from SUBMISSION. */
static struct spec_job_view view(const char *id, const char *uid, const char *submission)
{
	return (struct spec_job_view){
		.meta = {.name = (char *)(uintptr_t)id, .uid = (char *)(uintptr_t)uid},
		.submission = (char *)(uintptr_t)submission,
	};
}

static void put(const char *id, const char *uid, const char *phase, bool history)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, id);
	spec_set(&job->uid, uid);
	spec_set(&job->phase, phase);
	job->history = history;
	store_put(rig.store, job);
}

/* A submission of this mount with the UUID SUBMISSION, which the server has taken as job UID. */
static void submit(const char *id, const char *submission, const char *uid)
{
	assert_int_equal(folders_reserve(rig.f, id, submission), 0);
	folders_submitted(rig.f, id, uid);
	fake_pass(60000);
	forget_noted();
}

/* Job UID, called ID, whose output is on disk. */
static void capture(const char *id, const char *uid, bool history)
{
	const struct spec_job_view v = view(id, uid, "");

	put(id, uid, "Running", history);
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), 0);
}

/* The folder of this job; NULL: the job has none. */
static const struct folder *of(const char *id, const char *uid, const char *submission)
{
	const struct spec_job_view v = view(id, uid, submission);

	return folders_of(rig.f, v.meta.name, &v);
}

/* --- whose a folder is --- */

/* Before its uid is known a job is ours by the UUID of its submission, and from then on by its uid alone. */
static void test_whose(void **state)
{
	const struct spec_job_view ours = view("j", "u1", "s1"), other = view("j", "u2", "s2"),
				   copy = view("j", "u3", "s1"), nameless = view("j", "u1", "");

	assert_int_equal(folders_reserve(rig.f, "j", "s1"), 0);
	assert_int_equal(folders_reserve(rig.f, "j", "s2"), -EEXIST);
	assert_non_null(folders_of(rig.f, ours.meta.name, &ours));
	assert_null(folders_of(rig.f, other.meta.name, &other));
	assert_null(folders_of(rig.f, nameless.meta.name,
			       &nameless)); /* anybody may choose this name */
	assert_null(folders_bind(rig.f, other.meta.name, &other));
	/* Nobody waits to hear of its launch. */
	assert_null(folders_bind(rig.f, ours.meta.name, &ours));
	assert_string_equal(folders_find(rig.f, "j")->uid, "u1");
	assert_non_null(folders_of(rig.f, nameless.meta.name, &nameless));
	assert_null(folders_of(rig.f, copy.meta.name, &copy));
	assert_false(folders_holds(rig.f, "j", "u1")); /* it has no output */
	assert_int_equal(folders_claim(rig.f, ours.meta.name, &ours), 0);
	assert_true(folders_holds(rig.f, "j", "u1"));
	assert_false(folders_holds(rig.f, "j", "u3"));
	folders_submitted(rig.f, "j", "u1");
}

/* A job without annotations is ours if its name is one that nobody else would choose. */
static void test_whose_without_annotations(void **state)
{
	assert_int_equal(folders_reserve(rig.f, "app-bcdfghjklmnpq", "s1"), 0);
	assert_non_null(of("app-bcdfghjklmnpq", "u1", ""));
	assert_null(of("app-bcdfghjklmnpq", "u1", "s2"));
	folders_submitted(rig.f, "app-bcdfghjklmnpq", "");
	assert_int_equal(folders_reserve(rig.f, "app-1", "s2"), 0);
	assert_null(of("app-1", "u2", "")); /* anybody may have made this job */
	assert_non_null(of("app-1", "u2", "s2"));
	folders_submitted(rig.f, "app-1", "");
}

/* --- submissions --- */

/* Submissions are synced soon, several together; a uid is written as soon as it is known. */
static void test_settled(void **state)
{
	const struct spec_job_view late = view("b", "u2", "s2");

	assert_int_equal(folders_reserve(rig.f, "a", "s1"), 0);
	assert_int_equal(folders_reserve(rig.f, "b", "s2"), 0);
	folders_submitted(rig.f, "a", "u1");
	folders_submitted(rig.f, "b", "");
	fake_run();
	assert_done(""); /* syncing would hold up the next submission */
	fake_pass(1000);
	assert_done("settle b s2 ?, settle a s1 u1");
	assert_null(folders_bind(rig.f, late.meta.name, &late));
	fake_pass(1000);
	assert_done("settle b s2 u2");
	assert_int_equal(folders_reserve(rig.f, "c", "s3"), 0);
	folders_submitted(rig.f, "c", "");
	folders_submitted(rig.f, "c", "u3"); /* the reply to another submission tells it */
	fake_pass(1000);
	assert_done("settle c s3 u3, settle c s3 ?");
	folders_submitted(rig.f, "a", "u1"); /* that is known */
	fake_pass(1000);
	assert_done("");
}

static void test_settled_at_the_end(void **state)
{
	assert_int_equal(folders_reserve(rig.f, "a", "s1"), 0);
	folders_submitted(rig.f, "a", "u1");
	folders_stop(rig.f);
	assert_true(rig.group.n > 0); /* so the end waits for it */
	assert_int_equal(folders_reserve(rig.f, "b", "s2"), 0);
	folders_submitted(rig.f, "b", "u2");
	fake_run();
	assert_done("settle a s1 u1, settle b s2 u2");
}

/*
 * There was a folder of that name on the disk: it is not that of this submission, and whoever waits for the name looks
 * again.
 */
static void test_released(void **state)
{
	assert_int_equal(folders_reserve(rig.f, "j", "s1"), 0);
	folders_release(rig.f, "j");
	assert_done("freed j");
	assert_null(folders_find(rig.f, "j"));
}

/* Whoever waits for the verdict on a submission is told when its job is seen, and once. */
static void test_doubt(void **state)
{
	const struct spec_job_view v = view("j", "u1", "s1");
	const struct folder *folder;

	assert_int_equal(folders_reserve(rig.f, "j", "s1"), 0);
	folders_doubt(rig.f, "j", "app.yaml", 5000);
	folder = folders_find(rig.f, "j");
	assert_int_equal(folder->doubt, fake.now + 5000);
	assert_string_equal(folder->file, "app.yaml");
	assert_true(folder->written > 0);
	assert_ptr_equal(folders_bind(rig.f, v.meta.name, &v), folder);
	assert_int_equal(folder->doubt, 0);
	assert_null(folders_bind(rig.f, v.meta.name, &v));
	folders_doubt(rig.f, "j", "app.yaml", 5000); /* too late: the job is known */
	assert_int_equal(folder->doubt, 0);
	fake_pass(1000);
	assert_done("settle j s1 u1");
}

/* --- folders that are removed --- */

/*
 * A submission is forgotten before its folder is removed; each who has asked for that is told when the folder is gone,
 * and not before.
 */
static void test_removed(void **state)
{
	submit("j", "s1", "u1");
	remove_folder("j", "first");
	remove_folder("j", "second");
	assert_done("");
	assert_null(of("j", "u1", "s1"));
	assert_int_equal(folders_reserve(rig.f, "j", "s2"), -EEXIST);
	fake_run();
	assert_done("forget s1, remove j, freed j, first is removed, second is removed");
	assert_int_equal(folders_reserve(rig.f, "j", "s2"), 0);
	folders_submitted(rig.f, "j", "");
}

/* When a folder is not known there may be something of it on the disk all the same. */
static void test_removed_unknown(void **state)
{
	remove_folder("j", "it");
	fake_run();
	assert_done("remove j, it is removed");
}

/* A folder that could not be removed is known as before, and can be removed later. */
static void test_left(void **state)
{
	capture("j", "u1", true);
	rig.err = -EROFS;
	remove_folder("j", "it");
	fake_run();
	assert_done("remove j, freed j, it is left");
	assert_non_null(of("j", "u1", ""));
	assert_true(folders_holds(rig.f, "j", "u1"));
	remove_folder("j", "it");
	fake_run();
	assert_done("remove j, freed j, it is removed");
	assert_null(folders_find(rig.f, "j"));
}

/*
 * Before the output of a job is removed, it is written down that it is dropped. The folder stays, and a removal of the
 * folder waits until that is done.
 */
static void test_dropped(void **state)
{
	capture("j", "u1", true);
	assert_true(folders_has_output(rig.f, "j"));
	drop_output("j", "output");
	assert_false(folders_has_output(rig.f, "j"));
	assert_true(folders_find(rig.f, "j")->dropped);
	assert_true(
		/* The job had output, so it stays in the history. */
		folders_holds(rig.f, "j", "u1"));
	drop_output("j", "nothing");
	remove_folder("j", "folder");
	assert_null(of("j", "u1", ""));
	assert_done("");
	fake_run();
	assert_done(
		"nothing is removed, drop j u1, remove logs of j, remove j, freed j, output is removed, "
		"freed j, folder is removed");
}

/* --- folders that make room --- */

/* When another job of its name has output, a job in the history gets another name, in the store too. */
static void test_moved(void **state)
{
	const struct spec_job_view v = view("j", "u2", "");
	const struct spec_job *old;

	capture("j", "u1", true);
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EINPROGRESS);
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EINPROGRESS);
	assert_done("of u1, move j j~u1");
	assert_false(folders_holds(rig.f, "j", "u1"));
	end_move(0);
	assert_done("u1 is j~u1, freed j, save j~u1 Running, saved");
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), 0);
	assert_true(folders_holds(rig.f, "j~u1", "u1"));
	assert_true(folders_holds(rig.f, "j", "u2"));
	assert_null(store_get(rig.store, BACKEND_HISTORY, "j"));
	old = store_get(rig.store, BACKEND_HISTORY, "j~u1");
	assert_non_null(old);
	spec_job_unref(old);
}

/* A job that has come back from the history while its folder is moved keeps its name in jobs/. */
static void test_back_before_moved(void **state)
{
	const struct spec_job_view v = view("j", "u2", "");
	const struct spec_job *job;

	capture("j", "u1", true);
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EINPROGRESS);
	put("j", "u1", "Running", false);
	end_move(0);
	assert_done("of u1, move j j~u1, u1 is j~u1, freed j");
	assert_null(store_get(rig.store, BACKEND_JOBS, "j~u1"));
	put("j", "u1", "Completed", false);
	job = store_get(rig.store, BACKEND_JOBS, "j");
	assert_non_null(job);
	assert_string_equal(job->phase, "Completed");
	spec_job_unref(job);
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), 0);
}

/*
 * When a folder can't be moved, the old job keeps it, and the other job is not captured; the move is tried again, but
 * not at once.
 */
static void test_stuck(void **state)
{
	const struct spec_job_view v = view("j", "u2", "");

	capture("j", "u1", true);
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EINPROGRESS);
	end_move(-EACCES);
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EBUSY);
	fake_run();
	assert_done("of u1, move j j~u1, u1 is j, freed j");
	assert_true(folders_holds(rig.f, "j", "u1"));
	fake_pass(4999);
	assert_done("");
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EBUSY);
	fake_pass(1);
	assert_done("freed j");
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EINPROGRESS);
	assert_done("of u1, move j j~u1");
	end_move(0);
	assert_done("u1 is j~u1, freed j, save j~u1 Running, saved");
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), 0);
}

/* As long as the cluster has anything of the old job, or it is still captured, its folder is not touched. */
static void test_in_use(void **state)
{
	const struct spec_job_view v = view("j", "u2", "");

	capture("j", "u1", false);
	rig.used = "u1";
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EBUSY);
	fake_run();
	assert_done("");
	rig.used = NULL;
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EINPROGRESS);
	assert_done("of u1, move j j~u1");
	end_move(0);
}

/*
 * A folder without output is removed to make room. So is a folder that is wanted no longer while it is being moved,
 * when it has its new name.
 */
static void test_room_by_removal(void **state)
{
	const struct spec_job_view v = view("j", "u2", ""), w = view("k", "u4", "");

	submit("j", "s1", "u1");
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EINPROGRESS);
	fake_run();
	assert_done("forget s1, remove j, freed j");
	capture("k", "u3", true);
	assert_int_equal(folders_claim(rig.f, w.meta.name, &w), -EINPROGRESS);
	remove_folder("k", "it");
	fake_run();
	assert_done("of u3, move k k~u3");
	end_move(0);
	assert_done("remove k~u3, u3 is k~u3, freed k, freed k~u3, it is removed");
}

/* --- what an earlier mount has left --- */

static struct folder_found *found(const char *id)
{
	struct folder_found *f = new0(struct folder_found);

	f->id = text_copy(id);
	f->written = 7;
	f->next = rig.found;
	rig.found = f;
	return f;
}

static struct spec_job *snapshot(const char *id, const char *uid)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, id);
	spec_set(&job->uid, uid);
	return job;
}

static void on_loaded(void *data, int err)
{
	assert_null(data);
	note("loaded %d", err);
}

static void test_loaded(void **state)
{
	const struct folder *folder;
	struct folder_found *s;

	found("known")->snapshot = snapshot("known", "u1");
	s = found("sent");
	s->submission = text_copy("s2");
	s->file = text_copy("app.yaml");
	found("cut")->dropped = text_copy("u3");
	folders_load(rig.f, on_loaded, NULL);
	fake_run();
	assert_done("loaded 0, drop cut u3, remove logs of cut, freed cut");
	assert_true(folders_holds(rig.f, "known", "u1"));
	spec_job_unref(store_get_uid(rig.store, "u1"));
	folder = of("sent", "u2", "s2");
	assert_non_null(folder);
	assert_string_equal(folder->file, "app.yaml");
	assert_int_equal(folder->written, 7);
	assert_string_equal(folders_find(rig.f, "cut")->uid, "u3");
}

static void test_not_loaded(void **state)
{
	found("j")->snapshot = snapshot("j", "u1");
	rig.err = -EIO;
	folders_load(rig.f, on_loaded, NULL);
	fake_run();
	assert_done("loaded -5");
	assert_null(folders_find(rig.f, "j"));
}

/*
 * Of two folders with one uid the second one is not shown and never written to; it makes room when another job needs
 * its name.
 */
static void test_two_of_one_uid(void **state)
{
	const struct spec_job_view v = view("b", "u2", "");

	found("b")->snapshot = snapshot("b", "u1");
	found("a")->snapshot = snapshot("a", "u1");
	folders_load(rig.f, on_loaded, NULL);
	fake_run();
	assert_true(folders_holds(rig.f, "a", "u1"));
	assert_false(folders_holds(rig.f, "b", "u1"));
	assert_null(store_get(rig.store, BACKEND_JOBS, "b"));
	assert_done("loaded 0");
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EINPROGRESS);
	fake_run();
	assert_done("aside b, freed b");
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), 0);
}

/* --- snapshots --- */

/* A snapshot is written soon, once for many changes, and always the newest; at once where that is asked for. */
static void test_saved(void **state)
{
	capture("j", "u1", false);
	folders_save(rig.f, "u1", false);
	put("j", "u1", "Completed", false);
	folders_save(rig.f, "u1", false);
	fake_run();
	assert_done("");
	fake_pass(2000);
	assert_done("save j Completed, saved");
	folders_save(rig.f, "u1", true);
	fake_run();
	assert_done("save j Completed, saved");
	folders_save(rig.f, "u9", true); /* this job has no folder */
	fake_run();
	assert_done("");
}

/*
 * A change that comes while a snapshot is being written is written after it; what waits at the end is written at once.
 */
static void test_saved_again(void **state)
{
	capture("j", "u1", false);
	capture("k", "u2", false);
	folders_save(rig.f, "u1", true);
	put("j", "u1", "Completed", false);
	folders_save(rig.f, "u1", false);
	folders_save(rig.f, "u2", true);
	assert_null(fake.pool->next); /* one is written at a time */
	fake_run();
	assert_done("save j Running, saved, save j Completed, saved, save k Running, saved");
	folders_save(rig.f, "u1", false);
	folders_stop(rig.f);
	fake_run();
	assert_done("save j Completed, saved");
}

/*
 * A write that fails is tried again: the output may make the folder later, and a disk that is full now may have room
 * then.
 */
static void test_not_saved(void **state)
{
	static const int errors[] = {-ENOENT, -ENOSPC};

	capture("j", "u1", false);
	for (size_t i = 0; i < array_size(errors); i++) {
		rig.err = errors[i];
		folders_save(rig.f, "u1", true);
		fake_run();
		assert_done("save j Running, saved");
		fake_pass(2000);
		assert_done("save j Running, saved");
	}
	fake_pass(60000);
	assert_done("");
	folders_save(rig.f, "u1", true);
	fake_run();
	assert_done("save j Running, saved");
}

/* A folder gets no other name while a snapshot is being written into it. */
static void test_saved_before_moved(void **state)
{
	const struct spec_job_view v = view("j", "u2", "");

	capture("j", "u1", true);
	folders_save(rig.f, "u1", true);
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), -EINPROGRESS);
	assert_null(rig.moved);
	fake_run();
	assert_done("of u1, save j Running, saved, move j j~u1");
	end_move(0);
}

/* A snapshot that can't be read is not written over: it is put aside first, once. */
static void test_unread(void **state)
{
	const struct spec_job_view v = view("j", "u1", "s1");
	struct folder_found *f = found("j");

	f->unread = true;
	f->submission = text_copy("s1");
	f->uid = text_copy("u1");
	folders_load(rig.f, on_loaded, NULL);
	fake_run();
	put("j", "u1", "Running", false);
	assert_int_equal(folders_claim(rig.f, v.meta.name, &v), 0);
	folders_save(rig.f, "u1", true);
	fake_run();
	folders_save(rig.f, "u1", true);
	fake_run();
	assert_done("loaded 0, save j Running aside, saved, save j Running, saved");
}

int main(void)
{
#define FOLDERS_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		FOLDERS_TEST(test_whose),
		FOLDERS_TEST(test_whose_without_annotations),
		FOLDERS_TEST(test_settled),
		FOLDERS_TEST(test_settled_at_the_end),
		FOLDERS_TEST(test_released),
		FOLDERS_TEST(test_doubt),
		FOLDERS_TEST(test_removed),
		FOLDERS_TEST(test_removed_unknown),
		FOLDERS_TEST(test_left),
		FOLDERS_TEST(test_dropped),
		FOLDERS_TEST(test_moved),
		FOLDERS_TEST(test_back_before_moved),
		FOLDERS_TEST(test_stuck),
		FOLDERS_TEST(test_in_use),
		FOLDERS_TEST(test_room_by_removal),
		FOLDERS_TEST(test_loaded),
		FOLDERS_TEST(test_not_loaded),
		FOLDERS_TEST(test_two_of_one_uid),
		FOLDERS_TEST(test_saved),
		FOLDERS_TEST(test_saved_again),
		FOLDERS_TEST(test_not_saved),
		FOLDERS_TEST(test_saved_before_moved),
		FOLDERS_TEST(test_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
