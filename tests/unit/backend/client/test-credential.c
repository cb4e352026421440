/* SPDX-License-Identifier: MIT */
/*
 * Credentials on a loop: fixed ones, token files that change, and plugins (small shell scripts)
 * that succeed, fail or hang. A plugin runs once for all requests that wait for it. Also: how
 * kubeconfig files are found.
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "backend/base/diag.h"
#include "backend/base/process.h"
#include "backend/client/credential.h"
#include "backend/client/kubeconfig.h"
#include "tests/unit/clock.h"
#include "tests/unit/unit.h"

#define WAIT_S 60
#define V1     "client.authentication.k8s.io/v1"

/* Copies of the times in credential.c. */
#define ANSWER_MS  10000 /* how long an answer is used that has already expired */
#define FAILED_MS  5000	 /* how long a failure is used as the answer */
#define REFUSED_MS 5000	 /* the shortest time between two refusals that have an effect */

static char dir[64];
static struct loop *loop;
static struct credential *cr;
static struct spec_connection c;

/* --- the rig --- */

static void write_file(const char *name, mode_t mode, const char *text)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "we");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int count_lines(const char *name)
{
	char path[128];
	FILE *in;
	int n = 0, byte;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	in = fopen(path, "re");
	if (!in)
		return 0;
	while ((byte = getc(in)) != EOF)
		n += byte == '\n';
	fclose(in);
	return n;
}

static int setup(void **state)
{
	strcpy(dir, "/tmp/kxfs-credential-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return 0;
}

/* Create credentials from the user fields TEXT. */
static void begin(const char *text)
{
	cleanup_free char *config = NULL, *why = NULL;
	char path[128];

	assert_true(asprintf(&config,
			     "current-context: k\ncontexts: [{name: k, context: {cluster: c, user: "
			     "u}}]\n"
			     "clusters: [{name: c, cluster: {server: https://h}}]\nusers:\n"
			     "- {name: u, user: {%s}}\n",
			     text) > 0);
	write_file("config", 0600, config);
	snprintf(path, sizeof(path), "%s/config", dir);
	assert_int_equal(kubeconfig_load(path, NULL, "", &c, &why), 0);
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
	char command[128];

	end();
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	return 0;
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
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	while (sem_timedwait(&a->done, &until) < 0)
		assert_int_equal(errno, EINTR);
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

/* --- fixed credentials --- */

static void test_fixed(void **state)
{
	struct ask a;

	begin("token: abc");
	a = ask(1);
	assert_int_equal(a.err, 0);
	assert_string_equal(a.line, "Authorization: Bearer abc");
	refuse(&a);
	assert_false(a.may_help);
}

static void test_basic(void **state)
{
	struct ask a;

	begin("username: me, password: 'a:b'");
	a = ask(1);
	assert_string_equal(a.line, "Authorization: Basic bWU6YTpi");
}

static void test_none(void **state)
{
	struct ask a;

	begin("");
	a = ask(2);
	assert_int_equal(a.err, 0);
	assert_string_equal(a.line, "");
}

/* --- files --- */

static void test_token_file(void **state)
{
	struct ask a;
	uint64_t first, since;

	write_file("real", 0600, "one\n");
	begin("tokenFile: token, token: fixed");
	{
		char link[128];

		snprintf(link, sizeof(link), "%s/token", dir);
		assert_int_equal(symlink("real", link), 0);
	}
	a = ask(ASKERS);
	assert_string_equal(a.line, "Authorization: Bearer one");
	first = a.generation;
	write_file("real", 0600, "two\n");
	a = ask(1); /* the file was read just before */
	assert_string_equal(a.line, "Authorization: Bearer one");
	assert_int_equal(a.generation, first);
	since = loop_now_ms();
	refuse(&a);
	assert_true(a.may_help);
	assert_string_equal(a.line, "Authorization: Bearer two");
	assert_true(a.generation > first);
	/* A late refusal of the first token. There is already a newer one. */
	a.generation = first;
	refuse(&a);
	assert_true(a.may_help);
	/* kxfs reads the file at most every 5 s. */
	refuse_too_soon(&a, since);
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
		assert_string_equal(two[i].line, "Authorization: Bearer two");
	}
}

static void test_token_is_kept(void **state)
{
	struct ask a;

	write_file("token", 0600, "one");
	begin("tokenFile: token");
	a = ask(1);
	write_file("token", 0600, "half a token\n and more");
	refuse(&a);
	assert_true(a.may_help);
	assert_int_equal(a.err, 0);
	assert_string_equal(a.line, "Authorization: Bearer one");
}

static void test_no_token(void **state)
{
	struct ask a;

	begin("tokenFile: token");
	a = ask(3);
	assert_int_equal(a.err, -ENOENT);
	assert_non_null(strstr(a.text, "/token of the kubeconfig: No such file"));
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

/* Write a plugin that appends a line to a file of its directory at each run. */
static void write_plugin(const char *body)
{
	char text[2048];

	snprintf(text, sizeof(text), "#!/bin/sh\necho >>%s/runs\n%s", dir, body);
	write_file("plugin", 0700, text);
}

static void test_plugin(void **state)
{
	cleanup_fd int ours = fcntl(STDIN_FILENO, F_DUPFD, 90); /* not close-on-exec */
	struct ask a;
	uint64_t since;

	assert_int_equal(ours, 90);
	write_plugin(
		"read line && exit 3\n"
		"[ $# = 2 ] && [ \"$1\" = 'a b' ] && [ \"$2\" = '$HOME' ] || exit 4\n"
		"[ \"$PROFILE\" = 'x y' ] || exit 5\n"
		"case $KUBERNETES_EXEC_INFO in *'\"interactive\":false'*) ;; *) exit 6;; esac\n"
		"[ \"$(readlink /proc/self/fd/0)\" = /dev/null ] || exit 7\n"
		"[ -z \"$(ps -o tty= $$ | tr -d '? ')\" ] || exit 8\n"
		"[ -e /proc/$$/fd/90 ] && exit 9\n"
		"echo chatter >&2\nsleep 0.2\n" ANSWER("\"token\": \"t\""));
	begin(EXEC);
	setenv("PROFILE", "ours", 1);
	a = ask(ASKERS);
	assert_string_equal(a.text, "");
	assert_int_equal(a.err, 0);
	assert_string_equal(a.line, "Authorization: Bearer t");
	assert_int_equal(count_lines("runs"), 1);
	a = ask(ASKERS);
	assert_int_equal(count_lines("runs"), 1);
	since = loop_now_ms();
	refuse(&a);
	assert_true(a.may_help);
	assert_int_equal(count_lines("runs"), 2);
	refuse_too_soon(&a, since);
	assert_in_range(count_lines("runs"), 2, 1 + times_since(since, REFUSED_MS));
	unsetenv("PROFILE");
}

static void test_plugin_cert(void **state)
{
	struct ask a;

	write_plugin(ANSWER("\"clientCertificateData\": \"-----BEGIN C\", \"clientKeyData\": "
			    "\"-----BEGIN K\""));
	begin(EXEC);
	a = ask(1);
	assert_string_equal(a.key, "-----BEGIN K");
	assert_string_equal(a.line, "");
}

static void test_plugin_expired(void **state)
{
	struct ask a;
	uint64_t since = loop_now_ms();

	write_plugin(ANSWER("\"token\": \"old\", \"expirationTimestamp\": "
			    "\"2020-01-01T00:00:00Z\""));
	begin(EXEC);
	for (int i = 0; i < 20; i++) {
		a = ask(1);
		assert_string_equal(a.line, "Authorization: Bearer old");
	}
	assert_in_range(count_lines("runs"), 1, times_since(since, ANSWER_MS));
}

/* kxfs renews a token shortly before it expires, so that the server never refuses it. */
static void test_plugin_renewed(void **state)
{
	struct ask a;

	write_plugin("expires=$(date -u -d '+1000 seconds' +%Y-%m-%dT%H:%M:%SZ)\n" ANSWER(
		"\"token\": \"t\", \"expirationTimestamp\": \"'$expires'\""));
	begin(EXEC);
	a = ask(1);
	assert_string_equal(a.line, "Authorization: Bearer t");
	clock_pass(loop, 800);
	a = ask(1);
	assert_string_equal(a.line, "Authorization: Bearer t");
	assert_int_equal(count_lines("runs"), 1);
	clock_pass(loop, 170);
	a = ask(1);
	assert_string_equal(a.line, "Authorization: Bearer t");
	for (int i = 0; i < WAIT_S * 100 && count_lines("runs") < 2; i++)
		usleep(10000);
	assert_int_equal(count_lines("runs"), 2);
}

static void test_plugin_fails(void **state)
{
	struct ask a;
	uint64_t since = loop_now_ms();

	write_plugin("echo 'please log in\a' >&2\nexit 7\n");
	begin(EXEC);
	a = ask(ASKERS);
	assert_int_equal(a.err, -EACCES);
	assert_non_null(strstr(a.text, "/plugin\" ended with exit code 7:\nplease log in"));
	assert_null(strchr(a.text, '\a'));
	a = ask(1); /* the failure is used as the answer for a while */
	assert_int_equal(a.err, -EACCES);
	assert_in_range(count_lines("runs"), 1, times_since(since, FAILED_MS));
	/* The user has logged in by now. */
	write_plugin(ANSWER("\"token\": \"t\""));
	a.generation = 1;
	since = loop_now_ms();
	refuse(&a);
	assert_string_equal(a.line, "Authorization: Bearer t");
	/* A second refusal comes too soon to run the plugin again, unless a user waits. */
	write_plugin(ANSWER("\"token\": \"u\""));
	refuse_too_soon(&a, since);
	a.hurry = true;
	refuse(&a);
	assert_true(a.may_help);
	assert_string_equal(a.line, "Authorization: Bearer u");
}

/* If a user waits, kxfs runs the plugin again, although it has just failed. */
static void test_plugin_hurried(void **state)
{
	struct ask a;
	uint64_t since = loop_now_ms();

	write_plugin("exit 7\n");
	begin(EXEC);
	a = ask(1);
	assert_int_equal(a.err, -EACCES);
	write_plugin(ANSWER("\"token\": \"t\""));
	assert_true(ask(1).err == -EACCES || times_since(since, FAILED_MS) > 1);
	a.hurry = true;
	ask_all(&a);
	assert_string_equal(a.line, "Authorization: Bearer t");
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
	char text[1024];

	snprintf(
		text, sizeof(text),
		"cd %s\n[ -e go ] || { echo >>waits; while [ ! -e go ]; do sleep 0.01; done; exit 7; }\n" ANSWER(
			"\"token\": \"t\""),
		dir);
	write_plugin(text);
	begin(EXEC);
	begin_to_ask(&first);
	while (count_lines("waits") < 1)
		usleep(10000);
	begin_to_ask(&second);
	loop_post(loop, let_go, NULL);
	wait_for_answers(&first);
	wait_for_answers(&second);
	assert_int_equal(second.err, 0);
	assert_string_equal(second.line, "Authorization: Bearer t");
	assert_int_equal(count_lines("runs"), 2);
}

static void test_plugin_answers_badly(void **state)
{
	static const char *const bad[][2] = {
		{"echo s3cret\n", "is not an ExecCredential"},
		{"true\n", "is not JSON"},
		{"kill -9 $$\n", "was killed by signal 9"},
		{"yes s3cret | head -c 2000000\n", "larger than 1 MiB"},
		{"head -c 100000 /dev/zero | tr '\\0' w >&2\necho words >&2\nexit 1\n", "words"},
	};
	struct ask a;

	for (size_t i = 0; i < array_size(bad); i++) {
		write_plugin(bad[i][0]);
		begin(EXEC);
		a = ask(1);
		assert_int_equal(a.err, -EACCES);
		if (!strstr(a.text, bad[i][1]) || strstr(a.text, "s3cret"))
			fail_msg("%s", a.text);
		end();
	}
}

static void test_plugin_missing(void **state)
{
	struct ask a;

	begin(EXEC);
	a = ask(2);
	assert_int_equal(a.err, -EACCES);
	assert_non_null(strstr(a.text, "is not installed"));
	assert_non_null(strstr(a.text, "\nget it"));
}

/* Wait until the file NAME contains a process id, and return it. */
static pid_t pid_of(const char *name)
{
	char path[128];
	int pid = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (int i = 0; i < WAIT_S * 100 && pid == 0; i++) {
		FILE *in = fopen(path, "re");

		if (in && fscanf(in, "%d", &pid) != 1)
			pid = 0;
		if (in)
			fclose(in);
		if (pid == 0)
			usleep(10000);
	}
	assert_true(pid > 0);
	return pid;
}

/* kxfs does not wait for a child of the plugin that keeps the plugin's output open. */
static void test_plugin_daemon(void **state)
{
	struct ask a;
	struct timespec begun, now;
	char body[512];

	snprintf(body, sizeof(body), "sleep 300 &\necho $! >%s/pid\n%s", dir,
		 ANSWER("\"token\": \"t\""));
	write_plugin(body);
	begin(EXEC);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	a = ask(1);
	clock_gettime(CLOCK_MONOTONIC, &now);
	assert_string_equal(a.line, "Authorization: Bearer t");
	assert_true(now.tv_sec - begun.tv_sec < 30);
	kill(pid_of("pid"), SIGKILL);
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

/* Stopping kills the whole process group of the plugin, and calls no callback. */
static void test_stop(void **state)
{
	char body[256];
	pid_t pid;

	snprintf(body, sizeof(body), "sleep 300 &\necho $! >%s/pid\nwait\n", dir);
	write_plugin(body);
	begin(EXEC);
	loop_post(loop, ask_and_leave, &not_called);
	pid = pid_of("pid");
	loop_post(loop, stop_cr, cr);
	for (int i = 0; i < WAIT_S * 100 && kill(pid, 0) == 0; i++)
		usleep(10000);
	/*
	 * The plugin was killed. If the container's init does not reap it, it remains as a zombie.
	 */
	{
		char path[64], word = 'Z';
		FILE *in;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		in = fopen(path, "re");
		if (in && fscanf(in, "%*d %*s %c", &word) != 1)
			word = 'Z';
		if (in)
			fclose(in);
		assert_int_equal(word, 'Z');
	}
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
	for (int i = 0; i < WAIT_S * 100 && waitpid(-1, NULL, WNOHANG) >= 0; i++)
		usleep(10000);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(not_called, 0);
}

/* --- finding kubeconfig files --- */

#define MINI(name)                                                                                 \
	"current-context: " name "\ncontexts: [{name: " name ", context: {cluster: c}}]\n"         \
	"clusters: [{name: c, cluster: {server: 'https://" name "'}}]\n"

static void load(const char *option, const char *context, int want, const char *says)
{
	struct spec_connection found;
	cleanup_free char *text = NULL;

	assert_int_equal(kubeconfig_load(option, NULL, context, &found, &text), want);
	if (want == 0)
		assert_string_equal(found.server, says);
	else if (!text || !strstr(text, says))
		fail_msg("\"%s\" is not in: %s", says, text ? text : "(null)");
	spec_connection_clear(&found);
}

static void test_kubeconfig_files(void **state)
{
	char text[256], path[128];

	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("KUBECONFIG");
	setenv("HOME", dir, 1);
	load(NULL, "", -ENOENT, "there is no kubeconfig: ");
	snprintf(path, sizeof(path), "%s/.kube", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(".kube/config", 0600, MINI("home"));
	write_file("one", 0600, "contexts:\n- {name: a, context: {cluster: c}}\n");
	write_file("two", 0600, MINI("two"));
	write_file("bad", 0600, "clusters:\n- 1\n");
	load("", "", 0, "https://home");
	snprintf(path, sizeof(path), "%s/two", dir);
	load(path, "", 0, "https://two");
	load(path, "tow", -EINVAL, "did you mean \"two\"");
	snprintf(text, sizeof(text), "%s/nope::%s/one:%s/two", dir, dir, dir);
	setenv("KUBECONFIG", text, 1);
	load(NULL, "", 0, "https://two");
	load(NULL, "a", 0, "https://two");
	snprintf(text, sizeof(text), "%s/nope:%s/no", dir, dir);
	setenv("KUBECONFIG", text, 1);
	load(NULL, "", -ENOENT, "none of the files in KUBECONFIG");
	snprintf(text, sizeof(text), "%s/bad", dir);
	setenv("KUBECONFIG", text, 1);
	load(NULL, "", -EINVAL, "/bad:2:3: ");
	setenv("KUBECONFIG", dir, 1);
	load(NULL, "", -EINVAL, "not a regular file");
	snprintf(path, sizeof(path), "%s/nope", dir);
	load(path, "", -ENOENT, "/nope: No such file");
	unsetenv("KUBECONFIG");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fixed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_basic, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_token_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_together, setup, teardown),
		cmocka_unit_test_setup_teardown(test_token_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_token, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cert_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin_cert, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin_expired, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin_renewed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin_hurried, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin_hurried_while_it_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin_answers_badly, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugin_daemon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kubeconfig_files, setup, teardown),
	};

	spawn_between(argv);
	diag_setup(DIAG_ERROR, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
