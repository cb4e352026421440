/* SPDX-License-Identifier: MIT */
/*
 * fs/submit/names.h: the state of a content; that the last launch decides; and that the next mount tells what a mount
 * left open.
 */
#include <errno.h>

#include "fs/submit/names.h"
#include "spec/base/mem.h"
#include "spec/base/sha256.h"
#include "tests/unit/unit.h"

struct fixture {
	struct lock lock;
	struct uploads *files;
	struct names *names;
};

static const struct record_owner us = {1000, 1000}, them = {7, 8};

static void begin(struct fixture *f)
{
	f->lock = (struct lock)LOCK_INIT;
	f->files = uploads_new(-1, us, &f->lock);
	f->names = names_new(&f->lock, us);
}

static void end(struct fixture *f)
{
	names_free(f->names);
	uploads_free(f->files);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	begin(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	end(*state);
	free(*state);
	return 0;
}

static void assert_shows(const struct fixture *f, const char *name, const char *job,
			 const char *error)
{
	const char *want[] = {[SUBMIT_NAME_JOB] = job, [SUBMIT_NAME_ERROR] = error};

	for (enum submit_name kind = SUBMIT_NAME_JOB; kind <= SUBMIT_NAME_ERROR; kind++) {
		struct name_verdict v = {0};

		assert_int_equal(names_verdict(f->names, name, kind, &v), want[kind] ? 0 : -ENOENT);
		assert_true(streq(v.text, want[kind]));
		free(v.text);
	}
}

static void test_last_launch_decides(void **state)
{
	struct fixture *f = *state;
	struct names *all = f->names;
	uint64_t first = names_next(all), second = names_next(all);

	assert_true(second > first);
	/* The answer about the second launch comes first. */
	names_refused(all, "x.yaml", second, "bad", us);
	assert_shows(f, "x.yaml", NULL, "bad\n");
	names_accepted(all, "x.yaml", first, "job-1", us);
	assert_shows(f, "x.yaml", "job-1", "bad\n");
	names_accepted(all, "x.yaml", names_next(all), "job-3", us);
	assert_shows(f, "x.yaml", "job-3", NULL);
	names_refused(all, "x.yaml", second, "bad", us);
	names_accepted(all, "x.yaml", second, "job-2", us);
	assert_shows(f, "x.yaml", "job-3", NULL);
	assert_int_equal(names_remove(all, "x.yaml", SUBMIT_NAME_JOB), 0);
	assert_int_equal(names_remove(all, "x.yaml", SUBMIT_NAME_JOB), -ENOENT);
}

static void test_error_text(void **state)
{
	struct fixture *f = *state;
	char *longest = calloc(1, 2 * RECORD_MAX_ERROR);
	struct name_verdict v;

	names_refused(f->names, "x.yaml", names_next(f->names), "line\n\x1b[31mred", us);
	assert_shows(f, "x.yaml", NULL, "line\n\\x1b[31mred\n");
	memset(longest, 'a', 2 * RECORD_MAX_ERROR - 1);
	names_refused(f->names, "x.yaml", names_next(f->names), longest, us);
	assert_int_equal(names_verdict(f->names, "x.yaml", SUBMIT_NAME_ERROR, &v), 0);
	assert_int_equal(strlen(v.text), RECORD_MAX_ERROR);
	assert_string_equal(v.text + RECORD_MAX_ERROR - 5, "a...\n");
	free(v.text);
	free(longest);
}

/* A process writes TEXT and closes the file. */
static void put(struct upload *u, const char *text)
{
	struct upload_writer w = {0};

	upload_add_writer(u, &w, 1);
	assert_int_equal(upload_write(u, &w, text, strlen(text), 0), 0);
	upload_show(u, &w);
	upload_remove_writer(u, &w);
}

/* The file NAME with TEXT, which nobody has open; borrowed. */
static struct upload *made(struct fixture *f, const char *name, const char *text)
{
	struct upload *u;

	assert_int_equal(names_make(f->names, f->files, name, 0644, us, &u), 0);
	upload_unref(u);
	assert_int_equal(upload_open(u, false), 0);
	names_writing(f->names, u);
	put(u, text);
	upload_close(u);
	return u;
}

static uint64_t version_of(struct upload *u, char digest[RECORD_DIGEST])
{
	uint64_t version;
	char *text;
	size_t len;

	upload_copy(u, NULL, &text, &len, &version);
	spec_sha256(text, len, digest);
	free(text);
	return version;
}

/* Launch U as NAME; it is accepted, or not. */
static void launch(struct fixture *f, struct upload *u, const char *name, bool accepted)
{
	char digest[RECORD_DIGEST];
	uint64_t version = version_of(u, digest);
	struct name_launch l;

	assert_int_equal(names_launch(f->names, name, u, version, us, true, &l), 0);
	assert_int_equal(names_state(f->names, u), NAME_LAUNCHING);
	assert_true(names_busy(f->names, u));
	names_concluded(f->names, name, u, version, &l, accepted ? digest : NULL, false);
}

static void test_content(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml", "one");
	char digest[RECORD_DIGEST];
	uint64_t version = version_of(u, digest);
	struct name_launch l;

	assert_int_equal(names_state(f->names, u), NAME_WRITING);
	launch(f, u, "x.yaml", false);
	assert_int_equal(names_state(f->names, u), NAME_TOLD);
	launch(f, u, "x.yaml", true);
	assert_int_equal(names_state(f->names, u), NAME_LAUNCHED);
	/* The verdict on a content that the file no longer has says nothing about the present one. */
	assert_int_equal(names_launch(f->names, "x.yaml", u, version, us, true, &l), 0);
	assert_int_equal(upload_open(u, false), 0);
	put(u, "two");
	assert_false(names_writing(f->names, u));
	names_concluded(f->names, "x.yaml", u, version, &l, digest, false);
	assert_int_equal(names_state(f->names, u), NAME_WRITING);
	assert_true(names_settle(f->names, u));
	assert_int_equal(names_state(f->names, u), NAME_TOLD);
	assert_true(names_writing(f->names, u)); /* its record says something else */
	assert_int_equal(upload_truncate(u, NULL, 0), 0);
	assert_false(names_settle(f->names, u));
	assert_int_equal(names_state(f->names, u), NAME_EMPTY);
	upload_close(u);
}

static void rename_to(struct fixture *f, struct upload *u, const char *name)
{
	struct name_loss loss;

	names_move(f->names, u, name, 0, &loss);
	assert_int_equal(loss.writer, 0);
}

static void test_move(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml", "one"), *y = made(f, "y.yaml", "two"), *again;
	char name[NAME_MAX + 1];
	struct name_loss loss;

	upload_ref(y);
	launch(f, u, "x.yaml", true);
	names_accepted(f->names, "x.yaml", names_next(f->names), "job-1", them);
	names_refused(f->names, "y.yaml", names_next(f->names), "bad", us);
	rename_to(f, u, "y.yaml");
	assert_shows(f, "x.yaml", NULL, NULL);
	assert_shows(f, "y.yaml", "job-1", NULL);
	assert_true(names_of(f->names, u, name));
	assert_string_equal(name, "y.yaml");
	assert_int_equal(names_state(f->names, u), NAME_LAUNCHED);
	assert_false(names_of(f->names, y, name)); /* it goes on for whoever has it open */
	upload_unref(y);
	/* The state of the content goes along, the verdict stays. */
	rename_to(f, u, "scratch");
	assert_shows(f, "y.yaml", "job-1", NULL);
	assert_int_equal(names_state(f->names, u), NAME_LAUNCHED);
	/* A new file of the first name is another upload. */
	again = made(f, "x.yaml", "three");
	assert_string_not_equal(upload_tag(again), upload_tag(u));
	assert_int_equal(names_make(f->names, f->files, "x.yaml", 0644, us, &again), -EEXIST);
	names_drop(f->names, u, 0, &loss);
	assert_int_equal(loss.writer, 0);
	assert_null(names_file(f->names, "scratch"));
	/* A file that no longer has a verdict takes none away. */
	u = made(f, "z.yaml", "four");
	launch(f, u, "z.yaml", true);
	rename_to(f, u, "y.yaml");
	assert_shows(f, "y.yaml", "job-1", NULL);
	/* A verdict is about a content: one that was written since does not take the verdict along. */
	u = made(f, "w.yaml", "five");
	launch(f, u, "w.yaml", true);
	names_accepted(f->names, "w.yaml", names_next(f->names), "job-2", us);
	assert_true(names_writing(f->names, u));
	rename_to(f, u, "v.yaml");
	assert_shows(f, "w.yaml", "job-2", NULL);
	assert_shows(f, "v.yaml", NULL, NULL);
}

enum { REMOVED, REPLACED, RENAMED_AWAY, RENAMED };

/* A change of a name takes the file from its writers: else their close returns 0, and nothing is launched. */
static void test_loss(void **state)
{
	const pid_t writer = 1, other = 2, processes[] = {writer, other};
	struct fixture *f = *state;
	struct name_loss loss;

	for (int how = REMOVED; how <= RENAMED; how++)
		for (size_t i = 0; i < array_size(processes); i++) {
			struct upload *u = made(f, "x.yaml", "one"), *by = made(f, "tmp", "two");
			bool lost = processes[i] == other && how != RENAMED;
			struct upload_writer w = {0};
			uint64_t number = names_next(f->names);

			upload_ref(u);
			assert_int_equal(upload_open(u, false), 0);
			upload_add_writer(u, &w, writer);
			assert_int_equal(upload_write(u, &w, "three", 5, 0), 0);
			if (how == REMOVED)
				names_drop(f->names, u, processes[i], &loss);
			else if (how == REPLACED)
				names_move(f->names, by, "x.yaml", processes[i], &loss);
			else
				names_move(f->names, u, how == RENAMED ? "y.yaml" : "x.yaml~",
					   processes[i], &loss);
			assert_int_equal(loss.writer, lost ? writer : 0);
			if (lost)
				assert_string_equal(loss.name, "x.yaml");
			assert_true(!lost || loss.number > number);
			assert_int_equal(upload_is_lost(u, &w), lost);
			upload_remove_writer(u, &w);
			upload_close(u);
			names_drop(f->names, u, 0, &loss);
			names_drop(f->names, by, 0, &loss);
			upload_unref(u);
		}
}

/* Begin the next mount, which finds of NAME what the record of this mount says, and the file. */
static void next_mount(struct fixture *f, const char *name, struct fixture *next)
{
	struct upload *file = NULL;
	struct record r;

	begin(next);
	names_record(f->names, name, &r, &file);
	names_take_record(next->names, name, &r);
	upload_unref(file);
	record_clear(&r);
}

static void assert_no_open(struct fixture *f)
{
	char *name = NULL, *id = NULL;
	struct record_owner owner;
	uint64_t number;

	assert_false(names_take_open(f->names, &name, &id, &number, &owner));
}

/* The next start finds that the launch of NAME became ID; its number is returned. */
static uint64_t assert_open(struct fixture *f, const char *name, const char *id)
{
	char *got_name = NULL, *got_id = NULL;
	struct record_owner owner;
	uint64_t number;

	assert_true(names_take_open(f->names, &got_name, &got_id, &number, &owner));
	assert_string_equal(got_name, name);
	assert_true(streq(got_id, id));
	free(got_name);
	free(got_id);
	assert_no_open(f);
	return number;
}

static void test_left_open(void **state)
{
	struct fixture *f = *state, next;
	struct upload *u = made(f, "x.yaml", "one");
	struct name_launch first, second;
	struct record shown = {0};
	uint64_t reported, late;

	names_accepted(f->names, "x.yaml", names_next(f->names), "job-1", us);
	assert_int_equal(names_launch(f->names, "x.yaml", u, 1, us, true, &first), 0);
	assert_int_equal(names_launch(f->names, "x.yaml", u, 1, us, true, &second), 0);
	assert_int_equal(strlen(first.uuid), RECORD_UUID - 1);
	assert_string_not_equal(first.uuid, second.uuid);
	reported = names_reported(f->names);
	assert_int_equal(reported, first.number - 1);

	/* Jobs of other submissions say nothing about this one, whatever the clocks said. */
	next_mount(f, "x.yaml", &next);
	names_set_reported(next.names, second.number);
	names_was_launched(next.names, "x.yaml", "job-1", first.uuid); /* this was told already */
	names_was_launched(next.names, "x.yaml", "job-0", "01234567-89ab-4cde-8f01-23456789abcd");
	assert_open(&next, "x.yaml", NULL);
	end(&next);

	next_mount(f, "x.yaml", &next);
	names_set_reported(next.names, second.number);
	names_was_launched(next.names, "x.yaml", "job-3", second.uuid);
	/* The newest launch counts. */
	names_was_launched(next.names, "x.yaml", "job-2", first.uuid);
	assert_open(&next, "x.yaml", "job-3");
	assert_true(names_next(next.names) > second.number);
	end(&next);

	/* The same if the newest job is shown already, and it could not be noted what was told. */
	begin(&next);
	names_set_reported(next.names, 0);
	names_accepted(next.names, "x.yaml", names_next(next.names), "job-3", us);
	names_was_launched(next.names, "x.yaml", "job-3", second.uuid);
	names_was_launched(next.names, "x.yaml", "job-2", first.uuid);
	assert_no_open(&next);
	end(&next);

	begin(&next);
	names_set_reported(next.names, 0);
	names_accepted(next.names, "x.yaml", names_next(next.names), "job-3", us);
	names_was_launched(next.names, "x.yaml", "job-2", first.uuid);
	names_was_launched(next.names, "x.yaml", "job-3", second.uuid);
	assert_no_open(&next);
	end(&next);

	/* The job is no news either when something else is under way. */
	begin(&next);
	names_set_reported(next.names, 0);
	shown.job = text_copy("job-3");
	record_add_pending(&shown, first.uuid);
	names_take_record(next.names, "x.yaml", &shown);
	record_clear(&shown);
	names_was_launched(next.names, "x.yaml", "job-2", "00000000-0064-8abc-9def-0123456789ab");
	names_was_launched(next.names, "x.yaml", "job-3", "00000000-0065-8abc-9def-0123456789ab");
	assert_open(&next, "x.yaml", NULL);
	end(&next);

	/*
	 * That an earlier launch made no job, which is known ten minutes later, says nothing about the later launch:
	 * neither when the job of that is shown from before, nor when it came meanwhile.
	 */
	begin(&next);
	names_set_reported(next.names, 0);
	shown.job = text_copy("job-3");
	record_add_pending(&shown, first.uuid);
	names_take_record(next.names, "x.yaml", &shown);
	record_clear(&shown);
	names_was_launched(next.names, "x.yaml", "job-3", second.uuid);
	names_was_launched(next.names, "x.yaml", NULL, first.uuid);
	assert_no_open(&next);
	names_was_launched(next.names, "x.yaml", "", first.uuid);
	late = assert_open(&next, "x.yaml", NULL);
	assert_int_equal(late, first.number);
	names_refused(next.names, "x.yaml", late, "no job", us);
	assert_shows(&next, "x.yaml", "job-3", NULL);
	end(&next);

	next_mount(f, "x.yaml", &next);
	names_was_launched(next.names, "x.yaml", NULL, first.uuid);
	names_refused(next.names, "x.yaml", names_next(next.names), "wrong", us);
	names_was_launched(next.names, "x.yaml", "", first.uuid);
	late = assert_open(&next, "x.yaml", NULL);
	names_refused(next.names, "x.yaml", late, "no job", us);
	assert_shows(&next, "x.yaml", "job-1", "wrong\n");
	end(&next);

	/* A launch in doubt has no verdict any more when a later launch has one; nor at the start after that. */
	next_mount(f, "x.yaml", &next);
	names_was_launched(next.names, "x.yaml", NULL, first.uuid);
	names_was_launched(next.names, "x.yaml", NULL, second.uuid);
	assert_no_open(&next);
	names_accepted(next.names, "x.yaml", names_next(next.names), "job-4", us);
	names_was_launched(next.names, "x.yaml", "", second.uuid);
	assert_no_open(&next);
	names_set_reported(next.names, names_reported(next.names));
	names_was_launched(next.names, "x.yaml", NULL, second.uuid);
	names_was_launched(next.names, "x.yaml", "", second.uuid);
	assert_no_open(&next);
	end(&next);

	names_concluded(f->names, "x.yaml", u, 1, &first, NULL, false);
	/* It is not known what became of the second launch. */
	names_concluded(f->names, "x.yaml", u, 1, &second, NULL, true);
	assert_int_equal(names_reported(f->names), second.number - 1);
	next_mount(f, "x.yaml", &next);
	names_set_reported(next.names, first.number);
	/* This was told, and the job was removed since. */
	names_was_launched(next.names, "x.yaml", "job-2", first.uuid);
	assert_open(&next, "x.yaml", NULL);
	end(&next);
}

/*
 * The verdict on a launch is not known when the next one is accepted. A start is told that the first one made a job:
 * what the later one made is shown, or was removed, and so it is at the start after that. A later refusal stays, too.
 */
static void test_older_is_told_late(void **state)
{
	struct fixture *f = *state, next, last;
	struct upload *u = made(f, "x.yaml", "one");
	struct name_launch first, second;

	assert_int_equal(names_launch(f->names, "x.yaml", u, 1, us, true, &first), 0);
	names_concluded(f->names, "x.yaml", u, 1, &first, NULL, true);
	assert_int_equal(names_launch(f->names, "x.yaml", u, 1, us, true, &second), 0);
	names_concluded(f->names, "x.yaml", u, 1, &second, NULL, false);
	names_accepted(f->names, "x.yaml", second.number, "job-2", us);

	next_mount(f, "x.yaml", &next);
	names_set_reported(next.names, first.number - 1);
	assert_false(names_was_launched(next.names, "x.yaml", "job-1", first.uuid));
	assert_no_open(&next);
	assert_shows(&next, "x.yaml", "job-2", NULL);
	assert_true(names_next(next.names) > second.number);
	end(&next);

	assert_int_equal(names_remove(f->names, "x.yaml", SUBMIT_NAME_JOB), 0);
	next_mount(f, "x.yaml", &next);
	names_set_reported(next.names, first.number - 1);
	names_was_launched(next.names, "x.yaml", "job-1", first.uuid);
	names_was_launched(next.names, "x.yaml", "job-2", second.uuid);
	assert_no_open(&next);
	assert_shows(&next, "x.yaml", NULL, NULL);
	end(&next);

	begin(&next);
	u = made(&next, "x.yaml", "one");
	assert_int_equal(names_launch(next.names, "x.yaml", u, 1, us, true, &first), 0);
	names_concluded(next.names, "x.yaml", u, 1, &first, NULL, true);
	names_refused(next.names, "x.yaml", names_next(next.names), "wrong", us);
	next_mount(&next, "x.yaml", &last);
	end(&next);
	names_set_reported(last.names, first.number - 1);
	names_was_launched(last.names, "x.yaml", "job-1", first.uuid);
	names_accepted(last.names, "x.yaml", assert_open(&last, "x.yaml", "job-1"), "job-1", us);
	assert_shows(&last, "x.yaml", "job-1", "wrong\n");
	end(&last);
}

static struct upload *found(struct fixture *f, const char *name, ino_t ino)
{
	struct stat st = {.st_ino = ino, .st_size = 3, .st_mode = 0644};
	struct upload *u = upload_found(f->files, name, &st);

	names_add(f->names, name, u);
	return u;
}

/* The record of a launch is gone. */
static void test_lost_records(void **state)
{
	struct fixture *f = *state, next;
	struct upload *u = made(f, "x.yaml", "one");
	struct name_launch l;
	char *name;

	assert_int_equal(names_launch(f->names, "x.yaml", u, 1, us, true, &l), 0);
	begin(&next);
	names_set_reported(next.names, l.number - 1);
	names_was_launched(next.names, "x.yaml", "job-1", l.uuid);
	assert_open(&next, "x.yaml", "job-1");
	end(&next);
	begin(&next);
	names_set_reported(next.names, UINT64_MAX); /* it is not known */
	names_was_launched(next.names, "x.yaml", "job-1", l.uuid);
	assert_true(names_next(next.names) > l.number);
	end(&next);
	/*
	 * There is a file of that name of which nothing was told: the job is shown, and nobody is told that nothing was
	 * launched.
	 */
	begin(&next);
	found(&next, "x.yaml", 7);
	names_set_reported(next.names, UINT64_MAX);
	names_was_launched(next.names, "x.yaml", "job-1", l.uuid);
	assert_false(names_take_unfinished(next.names, &name));
	assert_open(&next, "x.yaml", "job-1");
	end(&next);
}

static void test_files_of_an_earlier_mount(void **state)
{
	struct fixture *f = *state;
	struct record r = {.launched_ino = 7, .launched = "0123"}, told = {.told = true};
	struct upload *moved = found(f, "y.yaml", 7), *settled = found(f, "told.yaml", 8);
	struct upload *part = found(f, "part.yaml", 9), *scratch = found(f, "scratch", 10), *u;
	char *name;

	/* The file was renamed, and kxfs was killed before its record was. */
	names_take_record(f->names, "x.yaml", &r);
	names_take_record(f->names, "told.yaml", &told);
	assert_true(names_take_unfinished(f->names, &name));
	assert_string_equal(name, "part.yaml");
	free(name);
	assert_false(names_take_unfinished(f->names, &name));
	assert_int_equal(names_state(f->names, part), NAME_TOLD);
	assert_int_equal(names_state(f->names, settled), NAME_TOLD);
	assert_int_equal(names_state(f->names, scratch), NAME_TOLD);
	assert_int_equal(names_state(f->names, moved), NAME_CLAIMED);
	assert_int_equal(names_expire(f->names, "part.yaml", INT64_MAX, &u), -EBUSY);
	assert_int_equal(names_expire(f->names, "y.yaml", INT64_MAX, &u), -EAGAIN);
	upload_unref(u);
	names_loaded(f->names, moved, "0123");
	assert_int_equal(names_state(f->names, moved), NAME_LAUNCHED);
	assert_int_equal(names_expire(f->names, "y.yaml", 0, &u), -EBUSY);
	assert_int_equal(names_expire(f->names, "y.yaml", INT64_MAX, &u), 0);
	upload_unref(u);
	names_claim(f->names, part, "");
	names_loaded(f->names, part, "whatever it is");
	assert_int_equal(names_state(f->names, part), NAME_LAUNCHED);
	names_claim(f->names, settled, "0123");
	names_loaded(f->names, settled, "4567");
	assert_int_equal(names_state(f->names, settled), NAME_TOLD);
}

/* No launch has the number of a launch of an earlier mount. */
static void test_numbers(void **state)
{
	struct fixture *f = *state;
	struct record r = {0};

	record_add_pending(&r, "00000007-0002-8000-8000-000000000000");
	names_take_record(f->names, "x.yaml", &r);
	assert_int_equal(names_next(f->names), (7 << 16 | 2) + 1);
	record_clear(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_last_launch_decides, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_content, setup, teardown),
		cmocka_unit_test_setup_teardown(test_move, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_older_is_told_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_records, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files_of_an_earlier_mount, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
