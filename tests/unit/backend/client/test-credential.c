/* SPDX-License-Identifier: MIT */
/*
 * Credentials on a loop: fixed ones, token files that change, and plugins (small shell scripts)
 * that succeed, fail or hang. A plugin runs once for all requests that wait for it. Also: how
 * kubeconfig files are found.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/process.h"
#include "backend/client/credential.h"
#include "backend/client/kubeconfig.h"
#include "tests/unit/clock.h"
#include "tests/unit/scratch.h"
#include "tests/unit/waiting.h"

#define BEARER "Authorization: Bearer "
#define V1     "client.authentication.k8s.io/v1"

/* Copies of the times in credential.c. */
#define ANSWER_MS  10000 /* how long an answer that has expired is used */
#define FAILED_MS  5000	 /* how long a failure is used as the answer */
#define REFUSED_MS 5000	 /* the shortest time between two refusals that have an effect */

static char dir[64];
static struct loop *loop;
static struct credential *cr;
static struct spec_connection c;

/* --- the rig --- */

static void write_file(const char *name, mode_t mode, const char *text)
{
	assert_int_equal(file_write(".", name, text, strlen(text)), 0);
	assert_int_equal(chmod(name, mode), 0);
}

static int size_of(const char *name)
{
	struct stat st;

	return stat(name, &st) < 0 ? 0 : (int)st.st_size;
}

/* Each test has its own working directory. */
static int setup(void **state)
{
	strcpy(dir, "/tmp/kxfs-credential-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return chdir(dir);
}

/* Create credentials from the user fields TEXT. */
static void begin(const char *text)
{
	cleanup_free char *config = NULL, *why = NULL;

	assert_true(asprintf(&config,
			     "current-context: k\ncontexts: [{name: k, context: {cluster: c, user: "
			     "u}}]\n"
			     "clusters: [{name: c, cluster: {server: https://h}}]\nusers:\n"
			     "- {name: u, user: {%s}}\n",
			     text) > 0);
	write_file("config", 0600, config);
	assert_int_equal(kubeconfig_load("config", NULL, "", &c, &why), 0);
	loop_new(&loop);
	assert_int_equal(loop_start(loop), 0);
	assert_int_equal(credential_new(loop, &c, &cr, &why), 0);
}

static void stop_cr(void *data)
{
	credential_stop(data);
}

static void end(void)
{
	if (!loop)
		return;
	loop_post(loop, stop_cr, cr);
	loop_stop(loop);
	loop_free(take_ptr(loop));
	credential_free(cr);
	spec_connection_clear(&c);
}

static int teardown(void **state)
{
	end();
	return chdir("/") || scratch_remove(dir);
}

/* Several requests at the same time. */
#define ASKERS 20

struct ask {
	unsigned n; /* number of answers */
	bool hurry;
	bool refuse;
	bool may_help;
	uint64_t generation; /* input: the generation that was refused */
	unsigned answers;
	int err;
	char line[256], key[64], text[6000];
	sem_t done;
};

static void answered(void *data, int err, const struct credential_parts *view, const char *text)
{
	struct ask *a = data;

	a->err = err;
	snprintf(a->text, sizeof(a->text), "%s", text);
	snprintf(a->line, sizeof(a->line), "%s",
		 view && view->authorization ? view->authorization : "");
	snprintf(a->key, sizeof(a->key), "%s", view && view->key_pem ? view->key_pem : "");
	if (view)
		a->generation = view->generation;
	if (++a->answers == a->n)
		sem_post(&a->done);
}

static void ask_now(void *data)
{
	struct ask *a = data;
	unsigned n = a->n;

	if (a->hurry)
		credential_retry_now(cr);
	if (a->refuse)
		a->may_help = credential_refused(cr, a->generation);
	while (n-- > 0)
		credential_get(cr, answered, a);
}

static void begin_to_ask(struct ask *a)
{
	a->answers = 0;
	sem_init(&a->done, 0, 0);
	loop_post(loop, ask_now, a);
}

static void wait_for_answers(struct ask *a)
{
	sem_wait_or_fail(&a->done);
	sem_destroy(&a->done);
}

static void ask_all(struct ask *a)
{
	begin_to_ask(a);
	wait_for_answers(a);
}

static struct ask ask(unsigned n)
{
	struct ask a = {.n = n};

	ask_all(&a);
	return a;
}

/* Request again, after the server refused A's credential with 401. */
static void refuse(struct ask *a)
{
	a->refuse = true;
	ask_all(a);
}

/*
 * Return how often an event that may happen once per PERIOD_MS can have happened since SINCE. This
 * holds on a slow machine too.
 */
static int times_since(uint64_t since, unsigned period_ms)
{
	return 1 + (int)((loop_now_ms() - since) / period_ms);
}

/*
 * The server refuses A's credential again, at SINCE or later. That is too soon for another request
 * to help.
 */
static void refuse_too_soon(struct ask *a, uint64_t since)
{
	refuse(a);
	assert_true(!a->may_help || times_since(since, REFUSED_MS) > 1);
}

static void expect(const struct ask *a, const char *line)
{
	assert_string_equal(a->text, "");
	assert_int_equal(a->err, 0);
	assert_string_equal(a->line, line);
}

/* Wait for what a plugin does in the background. */
#define wait_until(condition)                                                                      \
	do {                                                                                       \
		for (int i = 0; i < WAIT_S * 100 && !(condition); i++)                             \
			usleep(10000);                                                             \
		assert_true(condition);                                                            \
	} while (0)

/* --- fixed credentials --- */

static void test_fixed(void **state)
{
	static const char *const rows[][2] = {
		{"token: abc", BEARER "abc"},
		{"username: me, password: 'a:b'", "Authorization: Basic bWU6YTpi"},
		{"", ""},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct ask a;

		begin(rows[i][0]);
		a = ask(2);
		expect(&a, rows[i][1]);
		refuse(&a);
		assert_false(a.may_help);
		end();
	}
}

/* --- files --- */

static void test_token_file(void **state)
{
	struct ask a;
	uint64_t first, since;

	write_file("real", 0600, "one\n");
	begin("tokenFile: token, token: fixed");
	assert_int_equal(symlink("real", "token"), 0);
	a = ask(ASKERS);
	expect(&a, BEARER "one");
	first = a.generation;
	write_file("real", 0600, "two\n");
	a = ask(1); /* the file was read just before */
	expect(&a, BEARER "one");
	assert_int_equal(a.generation, first);
	since = loop_now_ms();
	refuse(&a);
	assert_true(a.may_help);
	expect(&a, BEARER "two");
	assert_true(a.generation > first);
	/* A late refusal of the first token. There is already a newer one. */
	a.generation = first;
	refuse(&a);
	assert_true(a.may_help);
	/* kxfs reads the file at most every 5 s. */
	refuse_too_soon(&a, since);
}

/* A file that has no token does not replace the known token. */
static void test_token_is_kept(void **state)
{
	struct ask a;

	write_file("token", 0600, "one");
	begin("tokenFile: token");
	a = ask(1);
	write_file("token", 0600, "half a token\n and more");
	refuse(&a);
	assert_true(a.may_help);
	expect(&a, BEARER "one");
}

static void ask_two(void *data)
{
	struct ask *a = data;

	ask_now(&a[0]);
	ask_now(&a[1]);
}

/* If the server refuses several requests at the same time, all of them get the new token. */
static void test_refused_together(void **state)
{
	struct ask two[2];

	write_file("token", 0600, "one");
	begin("tokenFile: token");
	two[0] = two[1] = ask(1);
	write_file("token", 0600, "two");
	for (size_t i = 0; i < 2; i++) {
		two[i].refuse = true;
		two[i].answers = 0;
		sem_init(&two[i].done, 0, 0);
	}
	loop_post(loop, ask_two, two);
	for (size_t i = 0; i < 2; i++) {
		wait_for_answers(&two[i]);
		assert_true(two[i].may_help);
		expect(&two[i], BEARER "two");
	}
}

static void test_cert_files(void **state)
{
	struct ask a;

	write_file("crt", 0600, "-----BEGIN C\n");
	write_file("key", 0600, "-----BEGIN K\n");
	begin("client-certificate: crt, client-key: key");
	a = ask(1);
	assert_string_equal(a.key, "-----BEGIN K\n");
	assert_string_equal(a.line, "");
	/* If one file of a pair is incomplete, neither file replaces the known pair. */
	write_file("crt", 0600, "-----BEGIN D\n");
	write_file("key", 0600, "");
	refuse(&a);
	assert_int_equal(a.err, 0);
	assert_string_equal(a.key, "-----BEGIN K\n");
}

/* --- plugins --- */

#define EXEC                                                                                       \
	"exec: {apiVersion: " V1 ", command: ./plugin, args: ['a b', '$HOME'], "                   \
	"env: [{name: PROFILE, value: x y}], installHint: get it}"
#define ANSWER(status)                                                                             \
	"echo '{\"kind\": \"ExecCredential\", \"apiVersion\": \"" V1 "\", \"status\": {" status    \
	"}}'\n"

/* Write a plugin that appends a byte to the file "runs" at each run. */
static void write_plugin(const char *body)
{
	char text[2048];

	snprintf(text, sizeof(text), "#!/bin/sh\necho >>runs\n%s", body);
	write_file("plugin", 0700, text);
}

static void begin_plugin(const char *body)
{
	write_plugin(body);
	begin(EXEC);
}

static void test_plugin(void **state)
{
	cleanup_fd int ours = fcntl(STDIN_FILENO, F_DUPFD, 90); /* not close-on-exec */
	struct ask a;

	assert_int_equal(ours, 90);
	begin_plugin(
		"read line && exit 3\n"
		"[ $# = 2 ] && [ \"$1\" = 'a b' ] && [ \"$2\" = '$HOME' ] || exit 4\n"
		"[ \"$PROFILE\" = 'x y' ] || exit 5\n"
		"case $KUBERNETES_EXEC_INFO in *'\"interactive\":false'*) ;; *) exit 6;; esac\n"
		"[ \"$(readlink /proc/self/fd/0)\" = /dev/null ] || exit 7\n"
		"[ -z \"$(ps -o tty= $$ | tr -d '? ')\" ] || exit 8\n"
		"[ -e /proc/$$/fd/90 ] && exit 9\n"
		"echo chatter >&2\nsleep 0.2\n" ANSWER("\"token\": \"t\""));
	setenv("PROFILE", "ours", 1);
	for (int i = 0; i < 2; i++) {
		a = ask(ASKERS);
		expect(&a, BEARER "t");
		assert_int_equal(size_of("runs"), 1);
	}
	refuse(&a);
	assert_true(a.may_help);
	assert_int_equal(size_of("runs"), 2);
	unsetenv("PROFILE");
}

/* If a plugin returns a token that has already expired, kxfs uses it, and does not call it in a loop. */
static void test_plugin_expired(void **state)
{
	uint64_t since = loop_now_ms();

	begin_plugin(
		ANSWER("\"token\": \"old\", \"expirationTimestamp\": \"2020-01-01T00:00:00Z\""));
	for (int i = 0; i < 20; i++) {
		struct ask a = ask(1);

		expect(&a, BEARER "old");
	}
	assert_in_range(size_of("runs"), 1, times_since(since, ANSWER_MS));
}

/* kxfs renews a token shortly before it expires, so that the server never refuses it. */
static void test_plugin_renewed(void **state)
{
	static const unsigned passes[] = {0, 800, 170};

	begin_plugin("expires=$(date -u -d '+1000 seconds' +%Y-%m-%dT%H:%M:%SZ)\n" ANSWER(
		"\"token\": \"t\", \"expirationTimestamp\": \"'$expires'\""));
	for (size_t i = 0; i < array_size(passes); i++) {
		struct ask a;

		assert_true(size_of("runs") <= 1);
		clock_pass(loop, passes[i]);
		a = ask(1);
		expect(&a, BEARER "t");
	}
	wait_until(size_of("runs") == 2);
}

static void test_plugin_fails(void **state)
{
	struct ask a;
	uint64_t since = loop_now_ms();

	begin_plugin("echo 'please log in\a' >&2\nexit 7\n");
	a = ask(ASKERS);
	assert_int_equal(a.err, -EACCES);
	assert_non_null(strstr(a.text, "/plugin\" ended with exit code 7:\nplease log in"));
	assert_null(strchr(a.text, '\a'));
	a = ask(1); /* the failure is used as the answer for a while */
	assert_int_equal(a.err, -EACCES);
	assert_in_range(size_of("runs"), 1, times_since(since, FAILED_MS));
	/* The user has logged in by now, and waits. */
	write_plugin(ANSWER("\"token\": \"t\""));
	a.hurry = true;
	ask_all(&a);
	expect(&a, BEARER "t");
	/* After a refusal, the plugin runs again. */
	write_plugin(ANSWER("\"token\": \"u\""));
	a.hurry = false;
	since = loop_now_ms();
	refuse(&a);
	expect(&a, BEARER "u");
	/* A second refusal comes too soon to run the plugin again, unless a user waits. */
	write_plugin(ANSWER("\"token\": \"v\""));
	refuse_too_soon(&a, since);
	a.hurry = true;
	refuse(&a);
	assert_true(a.may_help);
	expect(&a, BEARER "v");
}

static void let_go(void *data)
{
	write_file("go", 0600, "");
}

/*
 * The plugin's run started before the user logged in, and fails. A user who logged in meanwhile
 * must not get that failure.
 */
static void test_plugin_hurried_while_it_runs(void **state)
{
	struct ask first = {.n = 1}, second = {.n = 1, .hurry = true};

	begin_plugin(
		"[ -e go ] || { echo >>waits; while [ ! -e go ]; do sleep 0.01; done; exit 7; }\n" ANSWER(
			"\"token\": \"t\""));
	begin_to_ask(&first);
	wait_until(size_of("waits") == 1);
	begin_to_ask(&second);
	loop_post(loop, let_go, NULL);
	wait_for_answers(&first);
	wait_for_answers(&second);
	expect(&second, BEARER "t");
	assert_int_equal(size_of("runs"), 2);
}

/* A failure to get a credential. The text names the reason, but nothing secret. */
static void test_no_credential(void **state)
{
	static const struct {
		const char *user, *plugin; /* no plugin: it is not installed */
		int err;
		const char *says;
	} rows[] = {
		{"tokenFile: token", NULL, -ENOENT, "/token of the kubeconfig: No such file"},
		{EXEC, NULL, -EACCES, "is not installed"},
		{EXEC, NULL, -EACCES, "\nget it"},
		{EXEC, "echo s3cret\n", -EACCES, "is not an ExecCredential"},
		{EXEC, "true\n", -EACCES, "is not JSON"},
		{EXEC, "kill -9 $$\n", -EACCES, "was killed by signal 9"},
		{EXEC, "yes s3cret | head -c 2000000\n", -EACCES, "larger than 1 MiB"},
		{EXEC, "head -c 100000 /dev/zero | tr '\\0' w >&2\necho words >&2\nexit 1\n",
		 -EACCES, "words"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct ask a;

		if (rows[i].plugin)
			write_plugin(rows[i].plugin);
		begin(rows[i].user);
		a = ask(3);
		assert_int_equal(a.err, rows[i].err);
		if (!strstr(a.text, rows[i].says) || strstr(a.text, "s3cret"))
			fail_msg("%s", a.text);
		end();
	}
}

/* Return the id that the plugin has written into the file "pid". */
static pid_t pid_of_child(void)
{
	cleanup_free char *text = NULL;
	size_t len;

	wait_until(size_of("pid") > 0);
	assert_int_equal(file_read("pid", 100, &text, &len), 0);
	return atoi(text);
}

/* kxfs does not wait for a child of the plugin that keeps the plugin's output open. */
static void test_plugin_daemon(void **state)
{
	uint64_t begun = loop_now_ms();
	struct ask a;

	begin_plugin("sleep 300 &\necho $! >pid\n" ANSWER("\"token\": \"t\""));
	a = ask(1);
	expect(&a, BEARER "t");
	assert_true(loop_now_ms() - begun < 30000);
	kill(pid_of_child(), SIGKILL);
}

static void count_answer(void *data, int err, const struct credential_parts *view, const char *text)
{
	++*(unsigned *)data;
}

static unsigned not_called;

static void ask_and_leave(void *data)
{
	uint64_t ticket = credential_get(cr, count_answer, data);

	assert_true(ticket != 0);
	credential_cancel(cr, ticket);
	credential_cancel(cr, ticket);
	assert_true(credential_get(cr, count_answer, data) != 0);
}

/* If the container's init does not reap a process that was killed, it remains as a zombie. */
static bool is_dead(pid_t pid)
{
	struct process_stat stat;

	return process_stat(pid, &stat) == -ESRCH || stat.remains;
}

/* Stopping kills the whole process group of the plugin, and calls no callback. */
static void test_stop(void **state)
{
	pid_t pid;

	begin_plugin("sleep 300 &\necho $! >pid\nwait\n");
	loop_post(loop, ask_and_leave, &not_called);
	pid = pid_of_child();
	loop_post(loop, stop_cr, cr);
	wait_until(is_dead(pid));
	assert_int_equal(not_called, 0);
}

/* If kxfs stops the plugin while starting it, no process of the plugin remains. */
static void test_stop_at_once(void **state)
{
	write_plugin("exec sleep 300\n");
	for (int i = 0; i < 20; i++) {
		begin(EXEC);
		loop_post(loop, ask_and_leave, &not_called);
		loop_post(loop, stop_cr, cr);
		end();
	}
	wait_until(waitpid(-1, NULL, WNOHANG) < 0);
	assert_int_equal(not_called, 0);
}

/* --- finding kubeconfig files --- */

/* What is wrong with the files. tests/replay/test_volcano_connect.py uses those that are right. */
static void test_kubeconfig_files(void **state)
{
	static const struct {
		const char *list, *option; /* LIST is $KUBECONFIG */
		int err;
		const char *says;
	} rows[] = {
		{"", NULL, -ENOENT, "there is no kubeconfig: "},
		{"nope:no", NULL, -ENOENT, "none of the files in KUBECONFIG"},
		{"", "nope", -ENOENT, "nope: No such file"},
		{".", NULL, -EINVAL, "not a regular file"},
		{"bad", NULL, -EINVAL, "/bad:2:3: "},
	};

	unsetenv("KUBERNETES_SERVICE_HOST");
	setenv("HOME", dir, 1);
	write_file("bad", 0600, "clusters:\n- 1\n");
	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_connection found;
		cleanup_free char *text = NULL;

		setenv("KUBECONFIG", rows[i].list, 1);
		assert_int_equal(kubeconfig_load(rows[i].option, NULL, "", &found, &text),
				 rows[i].err);
		if (!strstr(text, rows[i].says))
			fail_msg("\"%s\" is not in: %s", rows[i].says, text);
		spec_connection_clear(&found);
	}
	unsetenv("KUBECONFIG");
}

int main(int argc, char **argv)
{
#define TEST(t) cmocka_unit_test_setup_teardown(test_##t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(fixed),
		TEST(token_file),
		TEST(token_is_kept),
		TEST(refused_together),
		TEST(cert_files),
		TEST(plugin),
		TEST(plugin_expired),
		TEST(plugin_renewed),
		TEST(plugin_fails),
		TEST(plugin_hurried_while_it_runs),
		TEST(plugin_daemon),
		TEST(no_credential),
		TEST(stop),
		TEST(stop_at_once),
		TEST(kubeconfig_files),
	};

	spawn_between(argv);
	diag_setup(DIAG_ERROR, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
