/* SPDX-License-Identifier: MIT */
/*
 * What the backend does around an implementation: which requests it refuses before the
 * implementation sees them, and that each request gets exactly one reply. The test provides the
 * implementation, under the name of the local one.
 */
#include <errno.h>

#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#include "backend/base/diag.h"
#include "backend/impl/impl.h"
#include "tests/unit/table.h"

static struct {
	char state[64];
	struct loop *loop;
	struct backend *b;
	char seen[256]; /* calls that reached the implementation; I/O thread */
	struct backend_request *held;
} world;

static int fake_init(struct backend *b, char **ret_text)
{
	return 0;
}

static void fake_start(struct backend *b)
{
	backend_started(b, 0, NULL);
}

static void fake_stop(struct backend *b)
{
	backend_stopped(b);
}

static void fake_fini(struct backend *b)
{
}

static void fake_submit(struct backend *b, struct backend_request *rq)
{
	struct spec_job *job = spec_job_new(0, 0);
	char id[32];

	snprintf(world.seen, sizeof(world.seen), "submit %s %.*s %s", rq->file, (int)rq->len,
		 rq->text, rq->submitter);
	if (strncmp(rq->text, "late", 4) == 0) {
		spec_job_unref(job);
		world.held = rq;
		return;
	}
	snprintf(id, sizeof(id), "%.*s-1", (int)rq->len, rq->text);
	spec_set(&job->id, id);
	spec_set(&job->uid, "uid-1");
	spec_set(&job->phase, "Running");
	store_put(b->store, job);
	backend_answer(rq, 0, id, NULL);
}

static void fake_cancel(struct backend *b, struct backend_request *rq)
{
	snprintf(world.seen, sizeof(world.seen), "cancel %s %s", rq->id, rq->uid);
	backend_answer(rq, -EIO, NULL, "disk");
}

static void fake_control(struct backend *b, struct backend_request *rq)
{
	snprintf(world.seen, sizeof(world.seen), "control %s %d", rq->id, rq->action);
	if (rq->action == SPEC_RESUME)
		backend_answer_no_effect(rq, "Running");
	else
		backend_answer(rq, 0, NULL, NULL);
}

static void fake_forget(struct backend *b, struct backend_request *rq)
{
	fail();
}

const struct backend_ops local_ops = {
	.init = fake_init,
	.start = fake_start,
	.stop = fake_stop,
	.fini = fake_fini,
	.request[BACKEND_SUBMIT] = fake_submit,
	.request[BACKEND_CANCEL] = fake_cancel,
	.request[BACKEND_CONTROL] = fake_control,
	.request[BACKEND_FORGET] = fake_forget,
};

static int setup(void **state)
{
	struct backend_config config = {
		.kinds = test_table_of_kinds(),
		.kind = "local",
		.state_dir = world.state,
		.work_dir = "/",
		.submitter = "ada@login1",
		.grace_ms = 100,
	};
	struct backend_events events = {0};
	char *text = NULL;

	memset(&world, 0, sizeof(world));
	diag_setup(DIAG_DEBUG, false);
	strcpy(world.state, "/tmp/kxfs-unit-backend-XXXXXX");
	assert_non_null(mkdtemp(world.state));
	loop_new(&world.loop);
	assert_int_equal(backend_new(world.loop, &config, &events, &world.b, &text), 0);
	assert_int_equal(loop_start(world.loop), 0);
	assert_int_equal(backend_start(world.b, &text), 0);
	assert_null(text);
	return 0;
}

static int teardown(void **state)
{
	loop_stop(world.loop);
	backend_free(world.b);
	loop_free(world.loop);
	return scratch_remove(world.state);
}

struct answer {
	sem_t done;
	unsigned times;
	int err;
	bool here;
	char id[64];
	char text[256];
};

static void on_reply(void *data, const struct backend_result *r)
{
	struct answer *a = data;

	a->times++;
	a->err = r->err;
	a->here = loop_is_here(world.loop);
	snprintf(a->id, sizeof(a->id), "%s", r->id);
	snprintf(a->text, sizeof(a->text), "%s", r->text);
	sem_post(&a->done);
}

static void expect(struct answer *a, int err, const char *text)
{
	while (sem_wait(&a->done) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(a->times, 1);
	assert_true(a->here);
	assert_string_equal(a->text, text);
	assert_int_equal(a->err, err);
	a->times = 0;
}

static void submit(struct answer *a, const char *text)
{
	char copy[32];
	struct backend_submission s = {.file = "app.yaml",
				       .text = copy,
				       .len = strlen(text),
				       .submitter = "ada@login1"};

	strcpy(copy, text);
	sem_init(&a->done, 0, 0);
	backend_submit(world.b, &s, on_reply, a);
	memset(copy, 'x', sizeof(copy)); /* everything was copied */
}

static void test_requests(void **state)
{
	struct answer a = {0};

	submit(&a, "app");
	expect(&a, 0, "");
	assert_string_equal(a.id, "app-1");
	assert_string_equal(world.seen, "submit app.yaml app ada@login1");
	assert_int_equal(store_count(world.b->store, BACKEND_JOBS), 1);
	backend_control(world.b, "app-1", "uid-1", SPEC_SUSPEND, NULL, on_reply, &a);
	expect(&a, 0, "");
	assert_string_equal(world.seen, "control app-1 0");
	backend_cancel(world.b, "app-1", "uid-1", on_reply, &a);
	expect(&a, -EIO, "disk");
	assert_string_equal(world.seen, "cancel app-1 uid-1");
	backend_control(world.b, "app-1", "uid-1", SPEC_RESUME, NULL, on_reply, &a);
	expect(&a, -EINVAL,
	       "resume has no effect while the job is Running; read the file ctl for "
	       "the actions that are possible now");
	/* These requests never reach the implementation. */
	strcpy(world.seen, "nothing");
	backend_cancel(world.b, "app-1", "uid-2", on_reply, &a);
	expect(&a, -ESTALE,
	       "another job has the name app-1 now; read that job's status before you retry");
	backend_cancel(world.b, "app-2", "uid-1", on_reply, &a);
	expect(&a, -ENOENT, "there is no job app-2 in jobs/");
	backend_forget(world.b, "app-1", "uid-1", on_reply, &a);
	expect(&a, -ENOENT, "there is no job app-1 in history/");
	assert_string_equal(world.seen, "nothing");
	backend_stop(world.b);
}

static void answer_held(void *data)
{
	if (!world.held) /* the pool has not looked at this submission yet */
		return loop_post(world.loop, answer_held, NULL);
	backend_answer(world.held, 0, "late-1", NULL);
}

static void test_later(void **state)
{
	struct answer held = {0}, a = {0};

	submit(&held, "late");
	submit(&a, "app");
	expect(&a, 0, "");
	assert_int_equal(held.times, 0);
	loop_post(world.loop, answer_held, NULL);
	expect(&held, 0, "");
	assert_string_equal(held.id, "late-1");
	backend_stop(world.b);
	/* A request after the end gets a reply too. */
	submit(&a, "app");
	expect(&a, -ENOTCONN, "kxfs is shutting down");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_later, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
