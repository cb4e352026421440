/* SPDX-License-Identifier: MIT */
/*
 * fs/submit/launch.h: from a content to its verdict, with a loop, a pool and a disk, but with a backend of the test's
 * own, which answers when the test says so. Nobody waits for the answer: what is shown does not depend on that.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/loop.h"
#include "fs/submit/launch.h"
#include "fs/vfs/fs.h"
#include "spec/base/mem.h"
#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#define WRITER	 4321
#define LIMIT_MS 60000
#define UUID	 "00000000-0007-8000-8000-000000000001"

struct rig {
	char dir[64];
	bool dry;
	struct loop *loop;
	struct fs *fs;
	struct submit *s;
	struct record_owner owner;
};

/* What the backend was asked last; the reply is NULL when the backend has answered. */
static struct {
	pthread_mutex_t mutex;
	unsigned n;
	bool dry;
	char file[64], text[64], submitter[64], uuid[RECORD_UUID];
	backend_reply_fn reply;
	void *data;
	struct backend_result result;
} asked = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void ask(const struct backend_submission *s, bool dry, backend_reply_fn reply, void *data)
{
	pthread_mutex_lock(&asked.mutex);
	asked.n++;
	asked.dry = dry;
	snprintf(asked.file, sizeof(asked.file), "%s", s->file);
	snprintf(asked.text, sizeof(asked.text), "%.*s", (int)s->len, s->text);
	snprintf(asked.submitter, sizeof(asked.submitter), "%s", s->submitter);
	snprintf(asked.uuid, sizeof(asked.uuid), "%s", s->submission);
	asked.reply = reply;
	asked.data = data;
	pthread_mutex_unlock(&asked.mutex);
}

void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data)
{
	ask(s, false, reply, data);
}

void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data)
{
	ask(s, true, reply, data);
}

const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id)
{
	(void)b, (void)place, (void)id;
	return NULL;
}

int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len)
{
	(void)b, (void)job, (void)which, (void)ret, (void)ret_len;
	return -ENOENT;
}

/* Wait until COND; the loop and its pool work meanwhile. */
#define wait_until(cond)                                                                           \
	do {                                                                                       \
		for (uint64_t by_ = loop_now_ms() + LIMIT_MS; !(cond);) {                          \
			assert_true(loop_now_ms() < by_);                                          \
			usleep(1000);                                                              \
		}                                                                                  \
	} while (0)

static unsigned n_asked(void)
{
	unsigned n;

	pthread_mutex_lock(&asked.mutex);
	n = asked.n;
	pthread_mutex_unlock(&asked.mutex);
	return n;
}

static void reply(void *data)
{
	asked.reply(asked.data, &asked.result);
}

/* When the backend has been asked N times, the last question is answered. */
static void answer(struct rig *r, unsigned n, int err, const char *text)
{
	wait_until(n_asked() == n);
	asked.result = (struct backend_result){.err = err,
					       .text = err ? text : "",
					       .id = err || r->dry ? "" : text,
					       .manifest = !err && r->dry ? text : ""};
	loop_post(r->loop, reply, NULL);
}

/* --- the directory --- */

static void begin(struct rig *r)
{
	const struct fs_config config = {.uid = 1000, .gid = 1000, .umask = 022};
	const struct submit_config submit = {.state_dir = r->dir,
					     .mountpoint = "/nonexistent",
					     .submitter = "ada@login1"};
	char *why = NULL;

	loop_new(&r->loop);
	r->fs = fs_new(r->loop, &config, &submit_class, NULL);
	assert_int_equal(submit_new(r->fs, &submit, r->dry ? &dryrun_class : &submit_class, &r->s,
				    &why),
			 0);
}

static void run(struct rig *r)
{
	submit_recover(r->s);
	assert_int_equal(loop_start(r->loop), 0);
}

static void end(struct rig *r)
{
	assert_true(loop_stop(r->loop));
	fs_close(r->fs);
	submit_free(r->s);
	fs_free(r->fs);
	loop_free(r->loop);
}

static int setup(void **state)
{
	struct rig *r = new0(struct rig);

	snprintf(r->dir, sizeof(r->dir), "/tmp/kxfs-test-launch-XXXXXX");
	if (!mkdtemp(r->dir))
		return -1;
	r->owner = (struct record_owner){1000, 1000};
	asked.n = 0;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	int err = scratch_remove(r->dir);

	free(r);
	return err;
}

/* An open file NAME, which is made, with what writes it. */
struct writing {
	struct upload *u;
	struct upload_writer w;
};

static void open_file(struct rig *r, const char *name, struct writing *ret)
{
	*ret = (struct writing){0};
	assert_int_equal(names_make(r->s->names, r->s->files, name, 0644, r->owner, &ret->u), 0);
	assert_int_equal(upload_open(ret->u, false), 0);
	upload_add_writer(ret->u, &ret->w, WRITER);
}

static void write_file(struct rig *r, struct writing *f, const char *text)
{
	assert_int_equal(upload_truncate(f->u, &f->w, 0), 0);
	assert_int_equal(upload_write(f->u, &f->w, text, strlen(text), 0), 0);
	if (!f->w.content)
		names_writing(r->s->names, f->u);
}

static void close_file(struct writing *f)
{
	upload_remove_writer(f->u, &f->w);
	upload_close(f->u);
	upload_unref(f->u);
}

/* Write TEXT as NAME, and launch it; the backend answers later. */
static void put(struct rig *r, const char *name, const char *text, struct writing *ret)
{
	open_file(r, name, ret);
	write_file(r, ret, text);
	launch_close(r->s, ret->u, &ret->w, r->owner, NULL);
}

static bool shows(struct rig *r, const char *name, enum submit_name kind, const char *part)
{
	struct name_verdict v;
	bool found;

	if (names_verdict(r->s->names, name, kind, &v) < 0)
		return !part;
	found = part && strstr(v.text, part);
	free(v.text);
	return found;
}

/* Does the record of NAME on disk have PART? PART NULL: is there a record? */
static bool has_record(const struct rig *r, const char *name, const char *part)
{
	char *path cleanup_free = text_print("%s/submit.records/%s", r->dir, name);
	char *text cleanup_free = NULL;
	size_t len;

	if (file_read(path, 4096, &text, &len) < 0)
		return !part;
	return part && strstr(text, part);
}

static void write_record(const struct rig *r, const char *name, const char *text)
{
	char *dir cleanup_free = text_print("%s/submit.records", r->dir);

	mkdir(dir, 0700);
	assert_int_equal(file_make(dir, name, text, strlen(text)), 0);
}

/* --- verdicts --- */

static void test_accepted(void **state)
{
	struct rig *r = *state;
	struct writing f;

	begin(r);
	run(r);
	put(r, "x.yaml", "one", &f);
	wait_until(n_asked() == 1);
	assert_string_equal(asked.file, "x.yaml");
	assert_string_equal(asked.text, "one");
	assert_string_equal(asked.submitter, "ada@login1");
	/* What is needed after a crash is on disk before the backend is asked. */
	assert_true(has_record(r, "x.yaml", asked.uuid));
	assert_int_equal(names_state(r->s->names, f.u), NAME_LAUNCHING);
	answer(r, 1, 0, "job-1");
	wait_until(has_record(r, "x.yaml", "job job-1 "));
	assert_false(has_record(r, "x.yaml", "pending"));
	assert_true(shows(r, "x.yaml", SUBMIT_NAME_JOB, "job-1"));
	assert_int_equal(names_state(r->s->names, f.u), NAME_LAUNCHED);
	assert_false(upload_may_write(f.u, &f.w));
	close_file(&f);
	end(r);
}

static void test_refused(void **state)
{
	struct rig *r = *state;
	struct writing f;

	begin(r);
	run(r);
	put(r, "x.yaml", "one", &f);
	answer(r, 1, -EINVAL, "x.yaml:1:1: bad");
	wait_until(has_record(r, "x.yaml", "x.yaml:1:1: bad\n"));
	assert_false(has_record(r, "x.yaml", "pending"));
	assert_true(shows(r, "x.yaml", SUBMIT_NAME_ERROR, "bad"));
	assert_int_equal(names_state(r->s->names, f.u), NAME_TOLD);
	/* The file may be corrected through the same handle. */
	assert_true(upload_may_write(f.u, &f.w));
	write_file(r, &f, "two");
	launch_close(r->s, f.u, &f.w, r->owner, NULL);
	answer(r, 2, 0, "job-2");
	wait_until(has_record(r, "x.yaml", "job job-2 "));
	assert_string_equal(asked.text, "two");
	assert_true(shows(r, "x.yaml", SUBMIT_NAME_ERROR, NULL));
	close_file(&f);
	end(r);
}

/* What became of the launch is not known: its record keeps it for the next mount, which is told. */
static void test_not_known(void **state)
{
	struct rig *r = *state;
	struct writing f;

	begin(r);
	run(r);
	put(r, "x.yaml", "one", &f);
	answer(r, 1, -EINPROGRESS, "it is not known yet");
	wait_until(has_record(r, "x.yaml", "it is not known yet"));
	assert_true(has_record(r, "x.yaml", "pending "));
	close_file(&f);
	end(r);
	begin(r);
	submit_launched(r->s, "x.yaml", "job-1", asked.uuid);
	run(r);
	wait_until(has_record(r, "x.yaml", "job job-1 "));
	assert_false(has_record(r, "x.yaml", "pending"));
	assert_true(shows(r, "x.yaml", SUBMIT_NAME_ERROR, NULL));
	end(r);
}

/* A verdict is about the content that was launched, not about what was written since. */
static void test_written_meanwhile(void **state)
{
	struct rig *r = *state;
	struct writing f, again = {0};

	begin(r);
	run(r);
	put(r, "x.yaml", "one", &f);
	wait_until(n_asked() == 1);
	close_file(&f);
	again.u = names_file(r->s->names, "x.yaml");
	assert_int_equal(upload_open(again.u, false), 0);
	upload_add_writer(again.u, &again.w, WRITER);
	write_file(r, &again, "two");
	answer(r, 1, 0, "job-1");
	wait_until(has_record(r, "x.yaml", "job job-1 "));
	/* What is being written does not show yet. */
	assert_int_equal(names_state(r->s->names, again.u), NAME_LAUNCHED);
	wait_until(has_record(r, "x.yaml", "launched"));
	assert_true(upload_may_write(again.u, &again.w));
	close_file(&again);
	end(r);
}

/*
 * The verdict is shown under the name that the file has now; the launch stays on record under the name that it was
 * submitted as.
 */
static void test_renamed_meanwhile(void **state)
{
	struct rig *r = *state;
	struct writing f;

	begin(r);
	run(r);
	put(r, "x.yaml", "one", &f);
	wait_until(n_asked() == 1);
	launch_renamed(r->s, f.u, "y.yaml", WRITER, 0);
	answer(r, 1, 0, "job-1");
	wait_until(has_record(r, "y.yaml", "job job-1 ") && has_record(r, "x.yaml", NULL));
	assert_true(shows(r, "x.yaml", SUBMIT_NAME_JOB, NULL));
	close_file(&f);
	end(r);
}

/* When the state directory could not keep or note a content, it is not launched. */
static void test_disk_refuses(void **state)
{
	static const char *const parts[] = {"submit", "submit.records"};
	struct rig *r = *state;
	struct writing f;

	for (size_t i = 0; i < array_size(parts); i++) {
		char *dir cleanup_free = text_print("%s/%s", r->dir, parts[i]);

		begin(r);
		run(r);
		assert_int_equal(rmdir(dir), 0);
		put(r, "x.yaml", "one", &f);
		wait_until(shows(r, "x.yaml", SUBMIT_NAME_ERROR, "Nothing was launched"));
		assert_int_equal(n_asked(), 0);
		assert_int_equal(names_state(r->s->names, f.u), NAME_TOLD);
		close_file(&f);
		end(r);
		scratch_remove(r->dir);
		assert_int_equal(mkdir(r->dir, 0700), 0);
	}
}

/* A file that is launched by a rename gets its new name only if the rename still waits; here it does not. */
static void test_rename_in_vain(void **state)
{
	struct rig *r = *state;
	struct writing f;

	begin(r);
	run(r);
	put(r, "scratch", "one", &f);
	launch_rename(r->s, f.u, "x.yaml", r->owner, WRITER, 0);
	answer(r, 1, 0, "job-1");
	wait_until(has_record(r, "x.yaml", "job job-1 "));
	assert_string_equal(asked.file, "x.yaml");
	assert_null(names_file(r->s->names, "x.yaml"));
	close_file(&f);
	end(r);
}

static void test_flaw(void **state)
{
	struct rig *r = *state;
	struct writing f;

	begin(r);
	run(r);
	open_file(r, "x.yaml", &f);
	write_file(r, &f, "one");
	upload_set_flaw(f.u, &f.w, ECANCELED);
	launch_close(r->s, f.u, &f.w, r->owner, NULL);
	assert_true(shows(r, "x.yaml", SUBMIT_NAME_ERROR, "a signal ended"));
	assert_false(upload_is_dirty(f.u, &f.w));
	/* A file that is empty, or whose name does not submit, is not launched. */
	write_file(r, &f, "");
	launch_close(r->s, f.u, &f.w, r->owner, NULL);
	close_file(&f);
	put(r, "notes", "one", &f);
	assert_true(shows(r, "notes", SUBMIT_NAME_ERROR, "must end in .yaml"));
	close_file(&f);
	end(r);
	assert_int_equal(n_asked(), 0);
}

static void test_dry_run(void **state)
{
	struct rig *r = *state;
	struct writing f;
	char buf[32] = "";

	r->dry = true;
	begin(r);
	run(r);
	put(r, "x.yaml", "one", &f);
	answer(r, 1, 0, "kind: Made\n");
	wait_until(names_state(r->s->names, f.u) == NAME_LAUNCHED);
	assert_true(asked.dry);
	assert_int_equal(upload_read(f.u, NULL, buf, sizeof(buf) - 1, 0), strlen("kind: Made\n"));
	assert_string_equal(buf, "kind: Made\n");
	close_file(&f);
	end(r);
}

/*
 * When somebody else than the user who has mounted writes, the message names that user, or the number that nobody has a
 * name for.
 */
static void test_owner(void **state)
{
	struct rig *r = *state;
	struct writing f;

	r->owner = (struct record_owner){4000000000, 7};
	begin(r);
	run(r);
	put(r, "x.yaml", "one", &f);
	answer(r, 1, 0, "job-1");
	wait_until(has_record(r, "x.yaml", "owner 4000000000 7\n"));
	assert_string_equal(asked.submitter, "uid-4000000000@login1");
	close_file(&f);
	end(r);
}

/* --- what the mount before left --- */

static void test_left(void **state)
{
	struct rig *r = *state;

	write_record(r, "gone.yaml", "kxfs submit 2\npending " UUID "\n");
	write_record(r, "there.yaml",
		     "kxfs submit 2\npending 00000000-0008-8000-8000-000000000001\n");
	write_record(r, "late.yaml",
		     "kxfs submit 2\npending 00000000-0009-8000-8000-000000000001\n");
	begin(r);
	submit_launched(r->s, "there.yaml", "job-8", "00000000-0008-8000-8000-000000000001");
	submit_launched(r->s, "late.yaml", NULL, "00000000-0009-8000-8000-000000000001");
	run(r);
	assert_true(shows(r, "gone.yaml", SUBMIT_NAME_ERROR, "there is no such job"));
	assert_true(shows(r, "there.yaml", SUBMIT_NAME_JOB, "job-8"));
	wait_until(has_record(r, "there.yaml", "job job-8 ") &&
		   !has_record(r, "there.yaml", "pending"));
	/* The backend finds out later, and tells it then. */
	assert_true(shows(r, "late.yaml", SUBMIT_NAME_ERROR, NULL));
	assert_true(has_record(r, "late.yaml", "pending "));
	submit_launched(r->s, "late.yaml", "", "00000000-0009-8000-8000-000000000001");
	wait_until(has_record(r, "late.yaml", "there is no such job"));
	/* A number of a launch is never used twice. */
	assert_true(names_next(r->s->names) > 9);
	end(r);
}

/* File X.yaml became job-7, as the backend says at the start; the disk takes no record, nor that of NEXT behind it. */
static void fail_record(struct rig *r, const char *next)
{
	struct writing f;

	begin(r);
	submit_launched(r->s, "x.yaml", "job-7", UUID);
	run(r);
	assert_true(shows(r, "x.yaml", SUBMIT_NAME_JOB, "job-7"));
	put(r, next, "one", &f);
	wait_until(shows(r, next, SUBMIT_NAME_ERROR, "can't be written"));
	close_file(&f);
}

/* What is on no record yet does not count as told: it is written later, or told again by the next start. */
static void test_record_refused(void **state)
{
	struct rig *r = *state;
	char *temp cleanup_free = text_print("%s/submit.new", r->dir);
	char *reported cleanup_free = text_print("%s/submit.reported", r->dir);

	assert_int_equal(mkdir(temp, 0700), 0);
	fail_record(r, "y.yaml");
	end(r);
	assert_int_equal(access(reported, F_OK), -1);
	fail_record(r, "z.yaml");
	assert_int_equal(rmdir(temp), 0);
	wait_until(has_record(r, "x.yaml", "job job-7 "));
	wait_until(access(reported, F_OK) == 0);
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_accepted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renamed_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rename_in_vain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flaw, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dry_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_record_refused, setup, teardown),
	};

	diag_setup(DIAG_WARNING, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
