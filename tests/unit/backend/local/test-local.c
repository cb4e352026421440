/* SPDX-License-Identifier: MIT */
/*
 * Local jobs: the environment of a process, how it may end, and that no process and no descriptor
 * is left. test-local_control.c tests requests that change jobs.
 */
#include "spec/base/mem.h"
#include "tests/unit/backend/local/local-world.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Return the number of processes whose working directory is PATH. */
static int count_in(const char *path)
{
	cleanup(world_dir_close) DIR *proc = opendir("/proc");
	struct dirent *entry;
	int n = 0;

	assert_non_null(proc);
	while ((entry = readdir(proc))) {
		char link[300], target[256] = "";

		snprintf(link, sizeof(link), "/proc/%s/cwd", entry->d_name);
		n += readlink(link, target, sizeof(target) - 1) > 0 && streq(target, path) &&
		     is_alive((pid_t)atol(entry->d_name));
	}
	return n;
}

/* --- the environment of a process --- */

static void test_environment(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = NULL;
	cleanup_free char *text = NULL, *log = NULL;
	char line[256];

	setenv("FROM_OUTSIDE", "1", 1);
	setenv("KXFS_JOB", "another", 1);
	id = submit_sh(
		w, "env; pwd; readlink /proc/self/fd/0", 2,
		"    env: {OWN: 'a b$$c', HERE: '${app_id}-${replica_id}', FROM_OUTSIDE: 2,\n"
		"          R: '${rank0_env}', ROOT: '[$img_root]', OLD: $base_img_root,\n"
		"          TORCHX_RANK0_HOST: elsewhere}\n");
	until(has_state(w, id, SPEC_SUCCEEDED));
	text = log_text(w, id, "main-1.0");
	log = text_print("\n%s", text); /* so that the first line follows a newline too */
	snprintf(line, sizeof(line), "\nHERE=%s-1\n", id);
	assert_non_null(strstr(log, line));
	snprintf(line, sizeof(line), "\nKXFS_JOB=%s\n", id);
	assert_non_null(strstr(log, line));
	snprintf(line, sizeof(line), "\nTORCHX_JOB_ID=kxfs://torchx/%s\n", id);
	assert_non_null(strstr(log, line));
	snprintf(line, sizeof(line), "\n%s\n/dev/null\n", w->work);
	assert_non_null(strstr(log, line));
	assert_non_null(strstr(log, "KXFS_REPLICA=main-1\n"));
	assert_non_null(strstr(log, "OWN=a b$c\n"));
	assert_non_null(strstr(log, "R=TORCHX_RANK0_HOST\n"));
	assert_non_null(strstr(log, "ROOT=[]\n"));
	assert_non_null(strstr(log, "OLD=DEPRECATED\n"));
	assert_non_null(strstr(log, "FROM_OUTSIDE=2\n"));
	assert_non_null(strstr(log, "TORCHX_RANK0_HOST=localhost\n"));
	assert_null(strstr(log, "FROM_OUTSIDE=1\n"));
	assert_null(strstr(log, "elsewhere"));
	assert_null(strstr(log, "KXFS_JOB=another"));
	unsetenv("FROM_OUTSIDE");
	unsetenv("KXFS_JOB");
}

static void test_arguments(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit(w, "name: test\n"
			  "roles:\n"
			  "  - {name: main, image: x, entrypoint: printf,\n"
			  "     args: ['%s|', 'a b', '', '*', $HOME, '${replica_id}']}\n");

	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(log_is(w, id, "main-0.0", "a b||*|$HOME|0|"));
}

/*
 * A process has its own session, no blocked or ignored signals, and only the descriptors 0, 1 and
 * 2.
 */
static void test_surroundings(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w,
			  "echo $$; cut -d' ' -f5,6 /proc/$$/stat; "
			  "grep -E 'Sig(Blk|Ign)' /proc/self/status; exec 2>/dev/null; "
			  "(: < /dev/tty) || echo no tty",
			  1, NULL);
	cleanup_free char *fds = submit(w, "name: test\n"
					   "roles:\n"
					   "  - {name: main, image: x, entrypoint: ls,\n"
					   "     args: [/proc/self/fd]}\n");
	cleanup_free char *log = NULL;
	char expected[128];
	long pid;

	until(has_state(w, id, SPEC_SUCCEEDED) && has_state(w, fds, SPEC_SUCCEEDED));
	log = log_text(w, id, "main-0.0");
	pid = atol(log);
	snprintf(expected, sizeof(expected),
		 "%ld\n%ld %ld\nSigBlk:\t%016d\nSigIgn:\t%016d\nno tty\n", pid, pid, pid, 0, 0);
	assert_string_equal(log, expected);
	/* ls itself opened 3, the directory that it reads */
	assert_true(log_is(w, fds, "main-0.0", "0\n1\n2\n3\n"));
}

static void test_texts(void **state)
{
	struct world *w = *state;
	static const char app[] = "name: test # mine\n"
				  "roles: [{name: main, image: x, entrypoint: 'true'}]\n";
	cleanup_free char *id = submit(w, app);
	cleanup_job const struct spec_job *job = NULL;
	cleanup_free char *text = NULL, *manifest = NULL, *report = NULL;
	size_t len, report_len;
	FILE *out;

	until(has_state(w, id, SPEC_SUCCEEDED));
	job = job_of(w, id);
	assert_int_equal(backend_text(w->b, job, BACKEND_APPDEF, &text, &len), 0);
	assert_int_equal(len, strlen(app));
	assert_string_equal(text, app);
	assert_int_equal(backend_text(w->b, job, BACKEND_MANIFEST, &manifest, &len), 0);
	assert_non_null(strstr(manifest, id));
	assert_string_equal(job->submitter, "ada@login1");
	assert_string_equal(job->app, "test");
	assert_string_equal(job->backend, "local");
	assert_true(job->own && job->has_appdef && !job->history);
	assert_true(job->created > 0 && job->started >= job->created);
	assert_true(job->finished >= job->started && job->changed >= job->finished);
	out = open_memstream(&report, &report_len);
	backend_info(w->b, out);
	backend_metrics(w->b, out);
	fclose(out);
	assert_non_null(strstr(report, w->state));
	assert_non_null(strstr(report, "kxfs_local_starts_total 1\n"));
	assert_non_null(strstr(report, "kxfs_local_processes 0\n"));
}

/* --- how processes end --- */

static void test_exit(void **state)
{
	static const struct {
		const char *script;
		enum spec_state state;
		int exit_code, sig;
		const char *reason, *message;
	} cases[] = {
		{"true", SPEC_SUCCEEDED, 0, 0, "Completed", ""},
		{"exit 7", SPEC_FAILED, 7, 0, "Error", "main-0: exit code 7"},
		{"exit 255", SPEC_FAILED, 255, 0, "Error", "main-0: exit code 255"},
		{"kill -9 $$", SPEC_FAILED, -1, 9, "Signal",
		 "main-0: killed by signal 9 (SIGKILL)"},
		{"kill -TERM $$", SPEC_FAILED, -1, 15, "Signal",
		 "main-0: killed by signal 15 (SIGTERM)"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < array_size(cases); i++) {
		cleanup_free char *id = submit_sh(w, cases[i].script, 1, NULL);
		cleanup_job const struct spec_job *job = NULL;

		until(has_state(w, id, cases[i].state));
		job = job_of(w, id);
		assert_string_equal(job->reason, cases[i].reason);
		assert_string_equal(job->message, cases[i].message);
		assert_int_equal(job->replicas[0].state, cases[i].state);
		assert_int_equal(job->replicas[0].exit_code, cases[i].exit_code);
		assert_int_equal(job->replicas[0].signal, cases[i].sig);
		assert_true(job->replicas[0].finished > 0);
	}
}

static void test_not_started(void **state)
{
	static const struct {
		const char *entrypoint, *text;
	} cases[] = {
		{"no-such-program-here", "exec: \"no-such-program-here\": not found in PATH"},
		{"/no/such/program", "exec: \"/no/such/program\": No such file or directory"},
		{"/etc/passwd", "exec: \"/etc/passwd\": Permission denied"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < array_size(cases); i++) {
		cleanup_job const struct spec_job *job = NULL;
		cleanup_free char *text = NULL;
		cleanup_free char *id = NULL;

		assert_true(asprintf(&text,
				     "name: test\nroles: [{name: main, image: x, entrypoint: %s, "
				     "max_retries: 1}]\n",
				     cases[i].entrypoint) > 0);
		id = submit(w, text);
		until(has_state(w, id, SPEC_FAILED));
		job = job_of(w, id);
		assert_string_equal(job->reason, "StartError");
		assert_non_null(strstr(job->message, cases[i].text));
		assert_string_equal(job->replicas[0].message, cases[i].text);
		assert_int_equal(job->replicas[0].exit_code, 128);
		assert_int_equal(job->replicas[0].attempt, 1);
		assert_true(log_is(w, id, "main-0.0", ""));
		assert_true(log_is(w, id, "main-0.1", ""));
	}
}

/* The program is found in the PATH of its replica. */
static void test_path(void **state)
{
	struct world *w = *state;
	cleanup_free char *script = NULL;
	cleanup_free char *id = NULL;
	FILE *f;

	assert_true(asprintf(&script, "%s/my-own-tool", w->work) > 0);
	f = fopen(script, "we");
	assert_non_null(f);
	fputs("#!/bin/sh\necho found\n", f);
	fchmod(fileno(f), 0700);
	fclose(f);
	{
		cleanup_free char *text = NULL;

		assert_true(asprintf(&text,
				     "name: test\nroles: [{name: main, image: x, "
				     "entrypoint: my-own-tool, env: {PATH: '/bin:%s'}}]\n",
				     w->work) > 0);
		id = submit(w, text);
	}
	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(log_is(w, id, "main-0.0", "found\n"));
}

static atomic_int bad_syncs; /* how many further syncs of the directory of records fail */

int fsync(int fd)
{
	char link[64], path[512] = "";
	struct stat st;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (bad_syncs && readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "/jobs") &&
	    fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		bad_syncs--;
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

/*
 * kxfs reports that nothing was launched only after the removal of the record is on disk. Otherwise
 * a crash may bring the record back.
 */
static void test_unsure(void **state)
{
	static const int errs[] = {-EIO, -EINPROGRESS};
	struct world *w = *state;

	for (size_t i = 0; i < array_size(errs); i++) {
		cleanup_answer struct answer a = {0};

		bad_syncs = (int)i + 1;
		submit_answer(w, "name: test\nroles: [{name: main, image: x, entrypoint: sh}]\n",
			      &a);
		assert_int_equal(a.err, errs[i]);
		assert_int_equal(bad_syncs, 0);
		assert_int_equal(count_jobs(w), 0);
	}
}

static void test_refused(void **state)
{
	static const char *const documents[] = {
		"name: test\nroles: [{name: main, image: x, entrypiont: sh}]\n",
		"name: test\nroles: []\n",
		"name: test\nscheduler: volcano\nroles: [{name: main, image: x, entrypoint: sh}]\n",
	};
	static const char *const texts[] = {"app.yaml:2:", "app.yaml",
					    "app.yaml:2:12: scheduler: this mount"};
	struct world *w = *state;

	for (size_t i = 0; i < array_size(documents); i++) {
		cleanup_answer struct answer a = {0};

		submit_answer(w, documents[i], &a);
		assert_int_equal(a.err, -EINVAL);
		assert_string_equal(a.id, "");
		assert_non_null(strstr(a.text, texts[i]));
	}
	assert_int_equal(count_jobs(w), 0);
	{
		cleanup_free char *jobs = NULL;

		assert_true(asprintf(&jobs, "%s/output", w->state) > 0);
		assert_int_equal(count_dir(jobs), 2);
	}
}

/* If the state directory is full, nothing runs and nothing is left. */
static void test_not_recorded(void **state)
{
	struct world *w = *state;
	struct rlimit none, was;
	cleanup_answer struct answer a = {0};
	cleanup_free char *jobs = NULL;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	none = was;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_FSIZE, &none);
	submit_answer(
		w, "name: test\nroles: [{name: main, image: x, entrypoint: touch, args: [ran]}]\n",
		&a);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_int_equal(a.err, -EFBIG);
	assert_non_null(strstr(a.text, w->state));
	assert_non_null(strstr(a.text, "nothing was launched"));
	assert_int_equal(count_jobs(w), 0);
	assert_true(asprintf(&jobs, "%s/output", w->state) > 0);
	assert_int_equal(count_dir(jobs), 2);
	assert_false(exists(w, "work/ran"));
}

/* When one replica fails, kxfs ends the others. */
static void test_others_are_ended(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w,
			  "echo $$; touch up-$N; [ $N != 1 ] || { until [ -e up-0 -a -e up-2 ]; do "
			  "sleep 0.02; done; exit 5; }; exec sleep 1000",
			  3, "    env: {N: '${replica_id}'}\n");
	cleanup_job const struct spec_job *job = NULL;

	until(has_state(w, id, SPEC_FAILED));
	job = job_of(w, id);
	assert_string_equal(job->phase, "Failed");
	assert_string_equal(job->message, "main-1: exit code 5");
	assert_int_equal(job->replicas[0].state, SPEC_CANCELLED);
	assert_int_equal(job->replicas[0].signal, SIGTERM);
	assert_int_equal(job->replicas[1].state, SPEC_FAILED);
	assert_int_equal(job->replicas[2].state, SPEC_CANCELLED);
	assert_false(is_alive(log_pid(w, id, "main-0.0")));
	assert_false(is_alive(log_pid(w, id, "main-2.0")));
}

/*
 * A process that leaves its replica's process group, session and environment still belongs to the
 * replica.
 */
static void test_daemons(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w,
			  "setsid env -i sh -c 'echo $$; exec sleep 1000' & (setsid sleep 1000 &); "
			  "while ! [ -e go ]; do sleep 0.02; done",
			  1, NULL);
	pid_t pid = log_pid(w, id, "main-0.0");

	assert_true(is_alive(pid));
	touch(w, "go");
	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_false(is_alive(pid));
}

/*
 * A program forks without pause. Each child has its own session, and its parent exits immediately.
 */
static void test_daemons_that_fork(void **state)
{
	struct world *w = *state;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/loop", w->work);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs("[ -e stop ] || setsid sh loop &\n", f);
	fclose(f);
	for (int i = 0; i < 10; i++) {
		cleanup_free char *id = submit_sh(w, "sh loop; sleep 0.1", 1, NULL);

		until(has_state(w, id, SPEC_SUCCEEDED));
		assert_int_equal(count_in(w->work), 0);
	}
	touch(w, "stop");
}

static void test_output(void **state)
{
	struct world *w = *state;
	cleanup_free char *bare = submit_sh(w, "printf 'no newline'", 1, NULL);
	cleanup_free char *big = submit_sh(w, "head -c 20000000 /dev/zero", 1, NULL);
	cleanup_job const struct spec_job *job = NULL;
	struct log_stat st;

	until(has_state(w, bare, SPEC_SUCCEEDED));
	assert_true(log_is(w, bare, "main-0.0", "no newline"));
	until(has_state(w, big, SPEC_SUCCEEDED));
	job = job_of(w, big);
	assert_int_equal(backend_log_stat(w->b, job, "main-0.0", LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, 20000000);
	assert_true(st.ended);
}

/* --- many jobs and replicas --- */

/*
 * If a job left a descriptor open, some dozens of jobs would show it. If a replica did, one job
 * with many replicas would.
 */
static void test_many_jobs(void **state)
{
	enum { N = 40 };
	struct world *w = *state;
	int fds = count_dir("/proc/self/fd");
	siginfo_t info;
	char *ids[N];

	for (int i = 0; i < N; i++)
		ids[i] = submit_sh(w, "echo $$", 1, NULL);
	for (int i = 0; i < N; i++) {
		until(has_state(w, ids[i], SPEC_SUCCEEDED));
		assert_true(log_pid(w, ids[i], "main-0.0") > 1);
		free(ids[i]);
	}
	until(count_dir("/proc/self/fd") <= fds);
	/* no child is left, not even a zombie */
	until(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == -1);
	assert_int_equal(errno, ECHILD);
}

static void test_many_replicas(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w, "echo $N", 200, "    env: {N: '${replica_id}'}\n");
	cleanup_job const struct spec_job *job = job_of(w, id);
	struct log_stat st;

	/* All logs can be read, even if some replicas are not started yet. */
	assert_int_equal(job->n_replicas, 200);
	assert_int_equal(backend_log_stat(w->b, job, "main-199.0", LOG_PLAIN, &st), 0);
	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(log_is(w, id, "main-150.0", "150\n"));
	assert_true(log_has(w, id, NULL, "main/77 77\n"));
}

#define world_test(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		world_test(test_environment),
		world_test(test_arguments),
		world_test(test_surroundings),
		world_test(test_texts),
		world_test(test_exit),
		world_test(test_not_started),
		world_test(test_path),
		world_test(test_refused),
		world_test(test_unsure),
		world_test(test_not_recorded),
		world_test(test_others_are_ended),
		world_test(test_daemons),
		world_test(test_daemons_that_fork),
		world_test(test_output),
		world_test(test_many_jobs),
		world_test(test_many_replicas),
	};

	backend_helper(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
