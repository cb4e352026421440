/* SPDX-License-Identifier: MIT */
/*
 * Logs fetched from a server (log_server.py) into a spool: at the end each file must hold, byte for byte, what
 * its program printed, whatever happens to connections, the container, the disk or kxfs. The seed of what goes
 * wrong is printed and can be given as KXFS_SEED.
 */
#include "tests/unit/backend/output/output_rig.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "backend/kube/capture_log.h"
#include "backend/output/log.h"
#include "backend/output/lines.h"

static struct {
	pid_t pid;
	int in;
	char dir[64];
	struct spec_connection connection;
	struct credential *credential;
	struct http *http;
} world;

/* A log that is followed. */
struct followed {
	struct capture_log *f; /* I/O thread */
	uint64_t size_settled;
	enum capture_end end;
	int err;
	atomic_uint gaps;
	atomic_bool settled, ended, done;
	bool first, hurry;
	char pod[32];
	char text[256];
};

/* --- the server --- */

static void server_start(void)
{
	const char *seed = getenv("KXFS_SEED");
	char number[16];
	static const char program[] = TEST_SOURCE "/tests/unit/backend/kube/log_server.py";
	const char *const args[] = {"/usr/bin/python3", program, world.dir, number, NULL};
	posix_spawn_file_actions_t actions;
	int in[2], out[2];
	unsigned port;
	FILE *f;

	snprintf(number, sizeof(number), "%s", seed ? seed : "");
	if (!seed)
		snprintf(number, sizeof(number), "%u", (unsigned)loop_time_ns() % 1000000);
	print_message("KXFS_SEED=%s\n", number);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	assert_int_equal(posix_spawn(&world.pid, args[0], &actions, NULL,
				     (char *const *)(uintptr_t)args, environ),
			 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	world.in = in[1];
	f = fdopen(out[0], "r");
	assert_int_equal(fscanf(f, "%u", &port), 1);
	fclose(f);
	assert_true(asprintf(&world.connection.server, "http://127.0.0.1:%u", port) > 0);
}

static void *empty(void)
{
	return strdup("");
}

static void http_up(void)
{
	char *text = NULL;

	assert_int_equal(credential_new(rig.loop, &world.connection, &world.credential, &text), 0);
	assert_int_equal(http_new(rig.loop, &world.connection, world.credential, &world.http,
				  &text),
			 0);
}

static void post_sem(void *data)
{
	sem_post(data);
}

static void http_down_now(void *data)
{
	http_stop(world.http, post_sem, data);
	credential_stop(world.credential);
}

/* kxfs is down; or up again. */
static void all_down(void)
{
	sem_t done;

	sem_init(&done, 0, 0);
	rig_here(http_down_now, &done);
	while (sem_wait(&done) < 0)
		;
	sem_destroy(&done);
	rig_down(true);
	http_free(take_ptr(world.http));
	credential_free(take_ptr(world.credential));
}

static int setup(void **state)
{
	struct spec_connection *c = &world.connection;
	char **const texts[] = {&c->context,   &c->namespace,  &c->tls_server_name,
				&c->proxy_url, &c->ca_file,    &c->ca_pem,
				&c->token,     &c->token_file, &c->user,
				&c->password,  &c->cert_file,  &c->key_file,
				&c->cert_pem,  &c->key_pem,    &c->as,
				&c->as_uid};

	for (size_t i = 0; i < array_size(texts); i++)
		*texts[i] = empty();
	assert_int_equal(rig_setup(state), 0);
	strcpy(world.dir, "/tmp/kxfs-capture-XXXXXX");
	assert_non_null(mkdtemp(world.dir));
	server_start();
	http_up();
	return 0;
}

static int teardown(void **state)
{
	int status;

	if (rig.up)
		all_down();
	close(world.in);
	assert_int_equal(waitpid(world.pid, &status, 0), world.pid);
	scratch_remove(world.dir);
	spec_connection_clear(&world.connection);
	return rig_teardown(state);
}

/* --- following --- */

static void on_arrived(void *data)
{
	struct followed *x = data;
	struct log_stat st = {0};

	if (atomic_load(&x->ended)) {
		atomic_store(&x->settled, true);
		return;
	}
	assert_false(x->settled);
	assert_int_equal(output_log_stat(rig.output, "job", x->pod, LOG_PLAIN, &st), 0);
	x->size_settled = st.size;
	atomic_store(&x->settled, true);
}

static void on_gap(void *data, unsigned total)
{
	struct followed *x = data;

	atomic_store(&x->gaps, total);
}

static void on_done(void *data, int err, const char *text)
{
	struct followed *x = data;

	x->f = NULL;
	x->err = err;
	snprintf(x->text, sizeof(x->text), "%s", text);
	output_log_end(rig.job, x->pod, NULL, NULL);
	atomic_store(&x->done, true);
}

static void start_now(void *data)
{
	struct followed *x = data;
	struct capture_log_config config = {
		.loop = rig.loop,
		.http = world.http,
		.key = x->pod,
		.namespace = "team",
		.pod = x->pod,
		.uid = x->pod,
		.container = "main",
		.first = x->first,
		.arrived = on_arrived,
		.gap = on_gap,
		.done = on_done,
		.data = x,
	};

	if (!rig.job)
		rig.job = output_job_open(rig.output, "job");
	assert_non_null(rig.job);
	assert_int_equal(output_log_begin(rig.job, x->pod, "a/0 ", false), 0);
	config.output = rig.job;
	x->f = capture_log_start(&config);
	assert_non_null(x->f);
	if (x->hurry)
		capture_log_hurry(x->f);
}

static void start(struct followed *x, const char *pod)
{
	snprintf(x->pod, sizeof(x->pod), "%s", pod);
	rig_here(start_now, x);
}

static void ended_now(void *data)
{
	struct followed *x = data;

	atomic_store(&x->ended, true);
	if (x->f)
		capture_log_ended(x->f, x->end);
}

static void ended(struct followed *x, enum capture_end end)
{
	x->end = end;
	rig_here(ended_now, x);
}

static void hurry_now(void *data)
{
	struct followed *x = data;

	capture_log_hurry(x->f);
}

static void stop_now(void *data)
{
	struct followed *x = data;

	if (x->f)
		capture_log_stop(take_ptr(x->f));
}

/* --- what came --- */

static char *slurp(const char *dir, const char *name, size_t *ret_n)
{
	char path[256];
	char *text = NULL;
	struct stat st;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	in = fopen(path, "re");
	if (!in)
		return NULL;
	assert_int_equal(fstat(fileno(in), &st), 0);
	text = malloc((size_t)st.st_size + 1);
	*ret_n = fread(text, 1, (size_t)st.st_size, in);
	text[*ret_n] = '\0';
	fclose(in);
	return text;
}

static bool is_there(const char *pod)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%.32s", world.dir, pod);
	return access(path, F_OK) == 0;
}

static char *captured(const char *pod, size_t *ret_n)
{
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/jobs/job/logs", rig.state);
	return slurp(dir, pod, ret_n);
}

static size_t captured_size(const char *pod)
{
	size_t n = 0;

	free(captured(pod, &n));
	return n;
}

static void assert_same(const char *pod)
{
	size_t n = 0, want_n = 0;
	cleanup_free char *got = captured(pod, &n), *want = slurp(world.dir, pod, &want_n);

	assert_non_null(got);
	assert_non_null(want);
	for (size_t i = 0; i < min_of(n, want_n); i++)
		if (got[i] != want[i])
			fail_msg("%s: byte %zu of %zu (%zu came) differs", pod, i, want_n, n);
	if (n != want_n)
		fail_msg("%s: %zu bytes, not %zu", pod, n, want_n);
}

static unsigned requests(const char *pod, const char *with)
{
	char name[64];
	size_t n;
	cleanup_free char *text = NULL;
	unsigned count = 0;

	snprintf(name, sizeof(name), "%s.asked", pod);
	text = slurp(world.dir, name, &n);
	for (char *rest = text, *line; rest && (line = strsep(&rest, "\n"));)
		count += *line && strstr(line, with);
	return count;
}

/* All lines of POD's log, which has SIZE bytes, are in the table beside it. */
static bool is_kept(const char *pod, size_t size)
{
	char path[192];
	struct lines_reader r;
	struct lines_record last;
	cleanup_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/jobs/job/lines/%s", rig.state, pod);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || captured_size(pod) != size)
		return false;
	lines_open(&r, fd);
	return lines_find(&r, 0, size - 1, &last) == 0 && last.line.at == (size > 10 ? 10 : 0);
}

/* --- tests --- */

static void test_simple(void **state)
{
	struct followed x = {0};
	char go[128];
	FILE *f;

	(void)state;
	start(&x, "quiet-1");
	rig_until(atomic_load(&x.settled));
	assert_int_equal(x.size_settled, strlen("here I am\n"));
	snprintf(go, sizeof(go), "%s/quiet-1.go", world.dir);
	f = fopen(go, "we");
	fclose(f);
	rig_until(is_there("quiet-1") && captured_size("quiet-1") == strlen("here I am\nbye\n"));
	ended(&x, CAPTURE_LAST);
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, 0);
	assert_same("quiet-1");
	assert_int_equal(requests("quiet-1", "follow=true"), 1);
}

/* The times of a log's lines are kept with it: kxfs may be killed, and the log rotated, at any time. */
static void test_kept(void **state)
{
	struct followed x = {0};
	char go[128];
	FILE *f;

	(void)state;
	start(&x, "quiet-2");
	rig_until(is_kept("quiet-2", strlen("here I am\n")));
	snprintf(go, sizeof(go), "%s/quiet-2.go", world.dir);
	f = fopen(go, "we");
	fclose(f);
	rig_until(is_kept("quiet-2", strlen("here I am\nbye\n")));
	rig_here(stop_now, &x);
}

static void test_first(void **state)
{
	struct followed x = {.first = true};

	(void)state;
	start(&x, "lost-first");
	rig_until(atomic_load(&x.settled));
	/* Others may come between the two looks. */
	rig_until(requests("lost-first", "") - requests("lost-first", "follow=true") == 1);
	rig_here(stop_now, &x);
}

#define MANY 8

static void test_any(void **state)
{
	struct followed x[MANY] = {0};
	char pod[32];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(pod, sizeof(pod), "any-%d", i);
		x[i].first = i % 2;
		start(&x[i], pod);
	}
	for (int i = 0; i < MANY; i++) {
		rig_until(is_there(x[i].pod));
		ended(&x[i], CAPTURE_LAST);
	}
	for (int i = 0; i < MANY; i++) {
		rig_until(atomic_load(&x[i].done));
		if (x[i].err)
			fail_msg("%s: %d %s", x[i].pod, x[i].err, x[i].text);
		assert_same(x[i].pod);
		assert_int_equal(atomic_load(&x[i].gaps), 0);
		assert_true(atomic_load(&x[i].settled));
	}
}

/* Stopped and started again, with and without the times of its lines. */
static void test_restart(void **state)
{
	struct followed x = {0};

	(void)state;
	start(&x, "any-restart");
	for (int i = 0; i < 4; i++) {
		size_t n = captured_size("any-restart");
		char path[192];

		rig_until(captured_size("any-restart") > n || is_there("any-restart"));
		rig_here(stop_now, &x);
		all_down();
		snprintf(path, sizeof(path), "%s/jobs/job/lines/any-restart", rig.state);
		if (i == 2)
			unlink(path);
		rig_up();
		http_up();
		memset(&x, 0, sizeof(x));
		start(&x, "any-restart");
	}
	rig_until(is_there("any-restart"));
	ended(&x, CAPTURE_LAST);
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, 0);
	assert_same("any-restart");
}

/* What was rotated away while the connection was broken is lost, and that is said. */
static void test_rotated(void **state)
{
	struct followed x = {0};
	size_t n = 0, want_n = 0;
	cleanup_free char *got = NULL, *want = NULL;

	(void)state;
	start(&x, "rotated-1");
	rig_until(is_there("rotated-1"));
	ended(&x, CAPTURE_LAST);
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, 0);
	assert_int_equal(atomic_load(&x.gaps), 1);
	got = captured("rotated-1", &n);
	want = slurp(world.dir, "rotated-1", &want_n);
	assert_true(got && want);
	assert_true(n > 0 && n <= want_n);
	assert_non_null(strstr(got, "after\n"));
	assert_true(requests("rotated-1", "previous=true") > 0);
}

/* The container is run again while the connection is broken: its log is the first run's. */
static void test_restarted(void **state)
{
	struct followed x = {0};

	(void)state;
	start(&x, "restarted-1");
	rig_until(atomic_load(&x.done)); /* seen even before the pod's status says so */
	assert_int_equal(x.err, 0);
	assert_same("restarted-1");
	assert_int_equal(atomic_load(&x.gaps), 0);
}

static void test_late(void **state)
{
	struct followed x = {0};

	(void)state;
	start(&x, "late-1");
	rig_until(atomic_load(&x.settled));
	rig_until(is_there("late-1"));
	ended(&x, CAPTURE_LAST);
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, 0);
	assert_same("late-1");
}

static void test_none(void **state)
{
	struct followed x = {0};

	(void)state;
	start(&x, "none");
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, -ENOENT);
	assert_true(*x.text);
	assert_true(atomic_load(&x.settled));
}

/* The pod goes while nothing can be had: what came is kept. */
static void test_gone(void **state)
{
	struct followed x = {0};

	(void)state;
	start(&x, "lost-1");
	rig_until(is_there("lost-1") && captured_size("lost-1") == strlen("begin\n"));
	rig_until(requests("lost-1", "") > 1);
	ended(&x, CAPTURE_GONE);
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, -ENOENT);
	assert_same("lost-1");
}

/* The pod is on its way out, its stream ends properly, and it is gone: that was all. */
static void test_gone_after(void **state)
{
	struct followed x = {.hurry = true};

	(void)state;
	start(&x, "last-1");
	rig_until(requests("last-1", "") > 1);
	ended(&x, CAPTURE_GONE);
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, 0);
	assert_same("last-1");
}

/* A kubelet that has just been started does not know its pods: they are not gone. */
static void test_unknown(void **state)
{
	struct followed x = {0};

	(void)state;
	start(&x, "unknown-1");
	rig_until(is_there("unknown-1"));
	ended(&x, CAPTURE_LAST);
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, 0);
	assert_same("unknown-1");
	assert_int_equal(atomic_load(&x.gaps), 0);
}

/* An API server that has just been started denies everything: it is asked again soon. */
static void test_denied(void **state)
{
	struct followed x = {0};
	int64_t begin;

	(void)state;
	start(&x, "denied-1");
	rig_until(requests("denied-1", "") > 1);
	begin = loop_time_ns();
	rig_until(captured_size("denied-1") == strlen("begin\nend\n"));
	assert_true(loop_time_ns() - begin < INT64_C(20) * 1000000000);
	rig_here(stop_now, &x);
}

/* On its way out: what can't be had now is tried again soon, not after ever longer pauses. */
static void test_hurry(void **state)
{
	struct followed x = {0};

	(void)state;
	start(&x, "lost-2");
	rig_until(requests("lost-2", "") > 3);
	rig_here(hurry_now, &x);
	rig_until(requests("lost-2", "") > 12);
	rig_here(stop_now, &x);
}

static void test_much(void **state)
{
	struct followed x = {.first = true};

	(void)state;
	start(&x, "much-1");
	rig_until(is_there("much-1"));
	ended(&x, CAPTURE_LAST);
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, 0);
	assert_same("much-1");
}

/* A disk that takes no more for a while. */
static void test_full(void **state)
{
	struct rlimit limit = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
	struct followed x = {0};

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = 100000;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	start(&x, "any-full");
	rig_until(is_there("any-full") && captured_size("any-full") == 100000);
	ended(&x, CAPTURE_LAST);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	rig_until(atomic_load(&x.done));
	assert_int_equal(x.err, 0);
	assert_same("any-full");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_simple, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rotated, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restarted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_after, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_denied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hurry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_much, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
