/* SPDX-License-Identifier: MIT */
/*
 * Local jobs as real processes. The tests of a mount (tests/mount) hold what users see of them.
 * These tests are about disks that refuse a call, helpers that are killed, and moments that a mount
 * hardly ever meets.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/scratch.h"
#include "tests/unit/table.h"
#include "tests/unit/waiting.h"

#include "backend/backend.h"
#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/process.h"
#include "backend/jobs/record_file.h"
#include "spec/base/mem.h"
#include "spec/record/record.h"

#define SLEEP "exec sleep 1000"
/* wait for touch("go") */
#define UNTIL_GO "while ! [ -e go ]; do sleep 0.02; done"
/* the role of a job with one retry */
#define RETRY "    max_retries: 1\n"

static char root[64], state_dir[96], work_dir[96];
static struct loop *loop;
static struct backend *b;
static struct backend_config config;
static atomic_bool
	refuses; /* the disk refuses records; the ends of jobs are reported all the same */

/* --- waiting --- */

static void pause_ms(long ms)
{
	const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

/* Wait until EXPR is true. Fail the test if that takes too long. */
#define until(expr)                                                                                \
	do {                                                                                       \
		uint64_t end_ = loop_now_ms() + WAIT_S * 1000;                                     \
		while (!(expr)) {                                                                  \
			if (loop_now_ms() > end_)                                                  \
				fail_msg("waited in vain for: %s", #expr);                         \
			pause_ms(2);                                                               \
		}                                                                                  \
	} while (0)

/* --- the backend --- */

/*
 * Check that the end of a job is on disk before it is reported, unless the disk refuses it. (Only
 * the test's own thread may fail a test, so this aborts.)
 */
static void on_job(void *data, const struct spec_job *old, const struct spec_job *new_job)
{
	cleanup(spec_head_freep) struct spec_head *head = NULL;
	struct spec_record *rec = NULL;

	if (refuses || !new_job || new_job->history || !spec_job_is_over(new_job) ||
	    (old && spec_job_is_over(old)))
		return;
	if (record_file_read(state_dir, new_job->uid, &head) ||
	    spec_record_parse(head->more->parts[RECORD_SNAPSHOT], NULL, &rec) ||
	    rec->job->state != new_job->state || !rec->job->finished || !head->over) {
		fprintf(stderr, "the end of %s is reported before it is on disk\n", new_job->id);
		abort();
	}
	spec_record_free(rec);
}

static void on_log(void *data, struct log *log)
{
}

static void start(void)
{
	const struct backend_events events = {.job = on_job, .log = on_log};
	cleanup_free char *text = NULL;

	loop_new(&loop);
	assert_int_equal(loop_start(loop), 0);
	assert_int_equal(backend_new(loop, &config, &events, &b, &text), 0);
	assert_int_equal(backend_start(b, &text), 0);
	backend_take_charge(b);
}

static void stop(void)
{
	if (b)
		backend_stop(b);
	if (loop)
		loop_stop(loop);
	backend_free(take_ptr(b));
	loop_free(take_ptr(loop));
}

/* Stop the backend and start it again, with the members of config that the test has changed. */
static void restart(void)
{
	stop();
	start();
}

static int setup(void **state)
{
	sigset_t child;

	/*
	 * Only the I/O thread should receive SIGCHLD. Under ThreadSanitizer, a thread that waits
	 * handles a signal only later, and until then ended children would remain.
	 */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, NULL);
	strcpy(root, "/tmp/kxfs-local.XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(state_dir, sizeof(state_dir), "%s/state", root);
	snprintf(work_dir, sizeof(work_dir), "%s/work", root);
	mkdir(state_dir, 0700);
	mkdir(work_dir, 0700);
	refuses = false;
	config = (struct backend_config){
		.kinds = test_table_of_kinds(),
		.kind = "local",
		.state_dir = state_dir,
		.work_dir = work_dir,
		.submitter = "ada@login1",
		.grace_ms = 60000, /* longer than any machine needs */
		.spool_limit = UINT64_C(1) << 40,
		.history_keep = 7 * 86400,
	};
	start();
	return 0;
}

static int teardown(void **state)
{
	/* After a failure, end the jobs that linger. */
	if (config.linger) {
		config.linger = false;
		restart();
	}
	stop();
	return scratch_remove(root);
}

/* --- requests --- */

struct answer {
	sem_t done;
	int err;
	char *text, *id;
};

static void on_answer(void *data, const struct backend_result *result)
{
	struct answer *a = data;

	a->err = result->err;
	a->text = text_copy(result->text);
	a->id = text_copy(result->id);
	sem_post(&a->done);
}

static char said[512]; /* the text of the last answer */

/* Wait for the answer and return its error. Give its id to *RET_ID, unless that is NULL. */
static int answered(struct answer *a, char **ret_id)
{
	sem_wait_or_fail(&a->done);
	sem_destroy(&a->done);
	snprintf(said, sizeof(said), "%s", a->text);
	free(a->text);
	if (a->err)
		assert_string_not_equal(said, "");
	if (ret_id)
		*ret_id = take_ptr(a->id);
	free(a->id);
	return a->err;
}

/* Submit the document TEXT. The id is malloc'ed. */
static int submit_text(const char *text, char **ret_id)
{
	struct answer a = {0};

	sem_init(&a.done, 0, 0);
	backend_submit(b,
		       &(struct backend_submission){.file = "app.yaml",
						    .text = text,
						    .len = strlen(text),
						    .submitter = "ada@login1"},
		       on_answer, &a);
	return answered(&a, ret_id);
}

/*
 * Launch a job whose role "main" has N replicas that run SCRIPT with sh. SCRIPT is one line, as sh
 * must see it. MORE contains further fields of the role, one per line, each indented by four
 * spaces. Return the id. malloc'ed.
 */
static char *submit(const char *script, int n, const char *more)
{
	cleanup_free char *escaped = malloc(2 * strlen(script) + 1), *text = NULL;
	char *out = escaped, *id;

	assert_non_null(escaped);
	/* in an AppDef, "$$" means "$" */
	for (const char *p = script; *p; p++) {
		*out++ = *p;
		if (*p == '$')
			*out++ = '$';
	}
	*out = '\0';
	text = text_print("name: test\n"
			  "roles:\n"
			  "  - name: main\n"
			  "    image: none\n"
			  "    entrypoint: sh\n"
			  "    args:\n"
			  "      - -c\n"
			  "      - |-\n"
			  "        %s\n"
			  "    num_replicas: %d\n"
			  "%s",
			  escaped, n, more);
	assert_int_equal(submit_text(text, &id), 0);
	return id;
}

static const struct spec_job *job_of(const char *id)
{
	const struct spec_job *job = backend_job(b, BACKEND_JOBS, id);

	return job ? job : backend_job(b, BACKEND_HISTORY, id);
}

static int control(const char *id, enum spec_action action)
{
	cleanup_job const struct spec_job *job = job_of(id);
	struct answer a = {0};

	sem_init(&a.done, 0, 0);
	backend_control(b, id, job->uid, action, NULL, on_answer, &a);
	return answered(&a, NULL);
}

static int cancel(const char *id)
{
	cleanup_job const struct spec_job *job = job_of(id);
	struct answer a = {0};

	sem_init(&a.done, 0, 0);
	backend_cancel(b, id, job->uid, on_answer, &a);
	return answered(&a, NULL);
}

static int forget(const char *id)
{
	cleanup_job const struct spec_job *job = job_of(id);
	struct answer a = {0};

	sem_init(&a.done, 0, 0);
	backend_forget(b, id, job->uid, on_answer, &a);
	return answered(&a, NULL);
}

/* --- what jobs show --- */

static bool is_in(enum backend_place place, const char *id)
{
	cleanup_job const struct spec_job *job = backend_job(b, place, id);

	return job;
}

static bool has_state(const char *id, enum spec_state state)
{
	cleanup_job const struct spec_job *job = job_of(id);

	return job && job->state == state;
}

static bool has_phase(const char *id, const char *phase)
{
	cleanup_job const struct spec_job *job = job_of(id);

	return job && streq(job->phase, phase);
}

/* Return the path of a job's file in STATE/output. malloc'ed. */
static char *output_path(const char *id, const char *name)
{
	cleanup_job const struct spec_job *job = job_of(id);

	return file_path(state_dir, job->uid, name);
}

static bool has_output(const char *id, const char *name)
{
	cleanup_free char *path = output_path(id, name);

	return access(path, F_OK) == 0;
}

/* Return the log of an attempt; "" if there is none yet. malloc'ed. */
static char *log_text(const char *id, const char *attempt)
{
	cleanup_free char *name = text_print("logs/%s", attempt), *path = output_path(id, name);
	char *text;
	size_t len;

	return file_read(path, 64u << 20, &text, &len) == 0 ? text : text_copy("");
}

static bool log_is(const char *id, const char *attempt, const char *expected)
{
	cleanup_free char *text = log_text(id, attempt);

	return streq(text, expected);
}

static bool log_has(const char *id, const char *attempt, const char *part)
{
	cleanup_free char *text = log_text(id, attempt);

	return strstr(text, part);
}

/* Return the first number that the replica printed. */
static pid_t log_pid(const char *id, const char *attempt)
{
	cleanup_free char *text = NULL;

	until(log_has(id, attempt, "\n"));
	text = log_text(id, attempt);
	return (pid_t)atol(text);
}

/* Create a file in the directory of the jobs, which wait for it. */
static void touch(const char *name)
{
	cleanup_free char *path = text_print("%s/%s", work_dir, name);
	int fd = creat(path, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static bool is_alive(pid_t pid)
{
	struct process_stat stat;

	return process_stat(pid, &stat) == 0 && !stat.remains;
}

/* Return the number of processes that run in DIR: programs in WORK, helpers in the job's folder. */
static int count_processes(const char *dir)
{
	cleanup_dir DIR *proc = opendir("/proc");
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(proc))) {
		char link[300], target[256] = "";

		snprintf(link, sizeof(link), "/proc/%s/cwd", entry->d_name);
		n += readlink(link, target, sizeof(target) - 1) > 0 && streq(target, dir) &&
		     is_alive((pid_t)atol(entry->d_name));
	}
	return n;
}

static int count_entries(const char *path)
{
	cleanup_dir DIR *dir = opendir(path);
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	return n;
}

/* --- starts --- */

static void test_not_started(void **state)
{
	static const struct {
		const char *program, *text;
	} cases[] = {
		{"no-such-program-here", "exec: \"no-such-program-here\": not found in PATH"},
		{"/no/such/program", "exec: \"/no/such/program\": No such file or directory"},
		{"/etc/passwd", "exec: \"/etc/passwd\": Permission denied"},
		{"ls, env: {PATH: /nowhere}", "exec: \"ls\": not found in PATH"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		cleanup_job const struct spec_job *job = NULL;
		cleanup_free char *id = NULL,
				  *text = text_print("name: test\nroles: [{name: main, image: x, "
						     "max_retries: 1, entrypoint: %s}]\n",
						     cases[i].program);

		assert_int_equal(submit_text(text, &id), 0);
		until(has_state(id, SPEC_FAILED));
		job = job_of(id);
		assert_string_equal(job->reason, "StartError");
		assert_non_null(strstr(job->message, cases[i].text));
		assert_string_equal(job->replicas[0].message, cases[i].text);
		assert_int_equal(job->replicas[0].exit_code, 128);
		assert_int_equal(job->replicas[0].attempt, 1);
	}
}

static void test_other_scheduler(void **state)
{
	static const char text[] = "name: test\nscheduler: volcano\n"
				   "roles: [{name: main, image: x, entrypoint: sh}]\n";

	assert_int_equal(submit_text(text, NULL), -EINVAL);
	assert_string_equal(said,
			    "app.yaml:2:12: scheduler: this mount runs only local jobs; submit "
			    "the file on a mount of volcano, or write it to dryrun/ to see "
			    "its manifest\n");
}

static atomic_int bad_syncs; /* how many further syncs of the directory of records fail */

int fsync(int fd)
{
	char link[64], path[512] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (bad_syncs && readlink(link, path, sizeof(path) - 1) > 0 &&
	    streq(path + strlen(path) - 5, "/jobs")) {
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
	cleanup_free char *output = text_print("%s/output", state_dir);

	for (int i = 0; i < 2; i++) {
		const struct spec_job **jobs;
		size_t n;

		bad_syncs = i + 1;
		assert_int_equal(submit_text("name: test\n"
					     "roles: [{name: main, image: x, entrypoint: sh}]\n",
					     NULL),
				 errs[i]);
		assert_int_equal(bad_syncs, 0);
		backend_jobs(b, BACKEND_JOBS, &jobs, &n);
		assert_int_equal(n, 0);
		free(jobs);
		assert_int_equal(count_entries(output), 2); /* . and .. */
	}
}

/*
 * Between two attempts, a replica waits to be started again. The job's phase and the replica's
 * state show that. An attempt whose helper was killed is retried like any other.
 */
static void test_retried(void **state)
{
	cleanup_free char *id = submit("[ -e once ] && { while ! [ -e end ]; do sleep 0.02; done; "
				       "exit 0; }; touch once; " UNTIL_GO "; kill -9 $PPID; " SLEEP,
				       1, RETRY);
	cleanup_job const struct spec_job *job = NULL;
	char shown[256] = "";

	until(has_state(id, SPEC_RUNNING));
	touch("go");
	until(has_phase(id, "Restarting") || has_output(id, "logs/main-0.1"));
	until(has_phase(id, "Running"));
	touch("end");
	until(has_state(id, SPEC_SUCCEEDED));
	job = job_of(id);
	for (size_t i = 0; i < job->transitions.n; i++) {
		strcat(strcat(shown, job->transitions.v[i].phase), " ");
		strcat(strcat(shown, spec_state_name(job->transitions.v[i].state)), "\n");
	}
	assert_string_equal(shown, "Pending PENDING\n"
				   "Running RUNNING\n"
				   "Restarting PENDING\n"
				   "Running RUNNING\n"
				   "Completed SUCCEEDED\n");
}

/* --- processes and descriptors --- */

/*
 * A program forks without pause. Each child has its own session, and its parent exits immediately.
 */
static void test_daemons_that_fork(void **state)
{
	cleanup_free char *path = text_print("%s/loop", work_dir);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs("[ -e stop ] || setsid sh loop &\n", f);
	fclose(f);
	for (int i = 0; i < 10; i++) {
		cleanup_free char *id = submit("sh loop; sleep 0.1", 1, "");

		until(has_state(id, SPEC_SUCCEEDED));
		assert_int_equal(count_processes(work_dir), 0);
	}
	touch("stop");
}

/* Ctrl-C in the terminal of kxfs must not reach the helper, so the helper has its own session. */
static void test_session(void **state)
{
	cleanup_free char *id = submit("helper=$(cut -d' ' -f4 /proc/$PPID/stat); "
				       "echo $helper $(cut -d' ' -f6 /proc/$helper/stat)",
				       1, "");
	cleanup_free char *text = NULL;
	int helper = 0, session = 0;

	until(has_state(id, SPEC_SUCCEEDED));
	text = log_text(id, "main-0.0");
	assert_int_equal(sscanf(text, "%d %d", &helper, &session), 2);
	assert_int_equal(session, helper);
	assert_int_not_equal(session, getsid(0));
}

/* A job leaves neither a descriptor nor a child, not even a zombie. */
static void test_many_jobs(void **state)
{
	enum { N = 40 };
	int fds = count_entries("/proc/self/fd");
	siginfo_t info;
	char *ids[N];

	for (int i = 0; i < N; i++)
		ids[i] = submit("echo up", 1, "");
	for (int i = 0; i < N; i++) {
		until(has_state(ids[i], SPEC_SUCCEEDED));
		assert_true(log_is(ids[i], "main-0.0", "up\n"));
		free(ids[i]);
	}
	until(count_entries("/proc/self/fd") <= fds);
	until(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == -1);
	assert_int_equal(errno, ECHILD);
}

/* --- output --- */

/* A program that closes its output continues. */
static void test_closed(void **state)
{
	cleanup_free char *id = submit("echo said; exec >&- 2>&-; " UNTIL_GO, 1, "");
	cleanup_job const struct spec_job *job = NULL;

	until(log_has(id, "main-0.0", "said\n"));
	pause_ms(100);
	assert_true(has_state(id, SPEC_RUNNING));
	touch("go");
	until(has_state(id, SPEC_SUCCEEDED));
	job = job_of(id);
	assert_string_equal(job->reason, "Completed");
	assert_true(log_is(id, "main-0.0", "said\n"));
}

/*
 * A process outside the job keeps the output open, and prints without pause. A new attempt starts
 * all the same.
 */
static void test_held_and_loud(void **state)
{
	cleanup_free char *id =
		submit("[ -e go ] && { echo again; exit 0; }; echo $$; " UNTIL_GO "; exit 1", 1,
		       RETRY);
	cleanup_free char *path = text_print("/proc/%d/fd/1", (int)log_pid(id, "main-0.0"));
	pid_t loud = fork();
	int status;

	if (loud == 0) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		signal(SIGPIPE, SIG_DFL);
		while (fd >= 0 && write(fd, "loud\n", 5) > 0)
			;
		_exit(1);
	}
	until(log_has(id, "main-0.0", "loud\n"));
	touch("go");
	until(has_state(id, SPEC_SUCCEEDED));
	assert_int_equal(waitpid(loud, &status, 0), loud);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	assert_true(log_is(id, "main-0.1", "again\n"));
}

/* Submit a job whose logs can grow only to 1 MB, as on a full disk. Running jobs have no limit. */
static char *submit_full(const char *script)
{
	struct rlimit room, was;
	char *id;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	room = was;
	room.rlim_cur = 1000000;
	setrlimit(RLIMIT_FSIZE, &room);
	id = submit(script, 1, "");
	until(!has_state(id, SPEC_PENDING));
	setrlimit(RLIMIT_FSIZE, &was);
	return id;
}

static bool has_lost_output(const char *id, enum spec_state state)
{
	cleanup_job const struct spec_job *job = job_of(id);
	const struct spec_replica *rep = &job->replicas[0];

	return rep->state == state && streq(rep->reason, "OutputLost") &&
	       streq(rep->message, "its output can't be written: File too large");
}

/*
 * A program does not notice that the disk is full. It succeeds, but a message reports the lost
 * output.
 */
static void test_full_and_succeeded(void **state)
{
	cleanup_free char *id = submit_full("yes; " UNTIL_GO "; true");
	cleanup_job const struct spec_job *job = NULL;

	until(has_lost_output(id, SPEC_RUNNING));
	assert_true(has_state(id, SPEC_RUNNING));
	touch("go");
	until(has_state(id, SPEC_SUCCEEDED));
	assert_true(has_lost_output(id, SPEC_SUCCEEDED));
	job = job_of(id);
	assert_string_equal(job->reason, "OutputLost");
	assert_non_null(strstr(job->message, "its output can't be written: File too large"));
}

/* A power loss interrupted the removal of output. The next mount removes the rest. */
static void test_half_removed(void **state)
{
	cleanup_free char *id = submit("echo gone", 1, ""), *logs = NULL;

	until(has_state(id, SPEC_SUCCEEDED) && has_output(id, "merged"));
	logs = output_path(id, "logs");
	stop();
	assert_int_equal(scratch_remove(logs), 0);
	start();
	until(!has_output(id, "merged"));
	assert_true(has_state(id, SPEC_SUCCEEDED));
}

/* --- requests --- */

/* Make the disk accept the record of job ID (WRITABLE), or refuse it. */
static void record_writable(const char *id, bool writable)
{
	cleanup_job const struct spec_job *job = job_of(id);
	cleanup_free char *path = text_print("%s/jobs/.%s.new", state_dir, job->uid);

	refuses = true;
	/* kxfs may be writing the record just now. */
	until((writable ? rmdir(path) : mkdir(path, 0700)) == 0);
}

/*
 * If the disk refuses to record a command, kxfs reports an error. Otherwise the command would be
 * lost after a crash.
 */
static void test_orders_that_can_t_be_recorded(void **state)
{
	cleanup_free char *first = NULL, *id = NULL;

	config.jobs = 1;
	restart();
	first = submit("echo $$; " SLEEP, 1, "");
	log_pid(first, "main-0.0");
	record_writable(first, false);
	assert_int_equal(control(first, SPEC_SUSPEND), -EISDIR);
	until(has_phase(first, "Suspended"));
	record_writable(first, true);
	assert_int_equal(control(first, SPEC_RESUME), 0);

	id = submit(SLEEP, 1, "");
	record_writable(id, false);
	assert_int_equal(cancel(id), -EISDIR);
	until(has_phase(id, "Cancelled"));
	assert_int_equal(cancel(id), -EISDIR);
	assert_true(is_in(BACKEND_JOBS, id) && !is_in(BACKEND_HISTORY, id));
	record_writable(id, true);
	/* Meanwhile the record was written. */
	until(is_in(BACKEND_HISTORY, id));
	assert_false(is_in(BACKEND_JOBS, id));
}

/* A suspended program is restarted, too. */
static void test_restart_of_a_suspended_job(void **state)
{
	cleanup_free char *id = submit("echo $$; " SLEEP, 2, "");
	cleanup_job const struct spec_job *job = NULL;
	pid_t first = log_pid(id, "main-0.0");

	log_pid(id, "main-1.0");
	assert_int_equal(control(id, SPEC_SUSPEND), 0);
	assert_int_equal(control(id, SPEC_RESTART), 0);
	assert_true(is_alive(log_pid(id, "main-0.1")) && is_alive(log_pid(id, "main-1.1")));
	assert_false(is_alive(first));
	until(has_phase(id, "Running"));
	job = job_of(id);
	assert_int_equal(job->retries, 0);
	assert_int_equal(cancel(id), 0);
}

/* When a job is forgotten, its programs get no grace period. */
static void test_forget_while_ending(void **state)
{
	cleanup_free char *id = submit("trap '' TERM; echo $$; while :; do sleep 0.05; done", 1,
				       ""),
			  *folder = output_path(id, NULL);
	pid_t pid = log_pid(id, "main-0.0");

	assert_int_equal(cancel(id), 0);
	assert_true(is_alive(pid));
	assert_int_equal(forget(id), 0);
	assert_false(is_alive(pid));
	assert_false(is_in(BACKEND_HISTORY, id));
	assert_int_equal(access(folder, F_OK), -1);
}

/* --- the end of a mount --- */

/* The end of a mount ends all jobs, and keeps their last words. */
static void test_stop(void **state)
{
	cleanup_free char *id = submit("trap 'echo bye; exit 0' TERM; echo $$; "
				       "while :; do sleep 0.02; done",
				       1, "");
	cleanup_free char *suspended = submit("echo $$; " SLEEP, 1, "");
	pid_t pids[] = {log_pid(id, "main-0.0"), log_pid(suspended, "main-0.0")};
	cleanup_job const struct spec_job *job = NULL;

	assert_int_equal(control(suspended, SPEC_SUSPEND), 0);
	stop();
	assert_false(is_alive(pids[0]) || is_alive(pids[1]));
	start();
	job = job_of(id);
	assert_int_equal(job->state, SPEC_CANCELLED);
	assert_string_equal(job->reason, "Unmounted");
	assert_false(job->history);
	assert_true(log_has(id, "main-0.0", "\nbye\n"));
	assert_true(has_state(suspended, SPEC_CANCELLED) && !has_phase(suspended, "Suspended"));
}

/* Let jobs continue when the backend stops. */
static void linger(void)
{
	config.linger = true;
	restart();
}

/*
 * Two attempts failed while no daemon was running. The one that failed first is the reason of the
 * job's failure, and each has the time at which it ended.
 */
static void test_ended_in_order(void **state)
{
	cleanup_job const struct spec_job *job = NULL;
	cleanup_free char *id = NULL, *folder = NULL, *end = NULL;
	int64_t now;

	linger();
	id = submit("echo up; while ! [ -e go-$KXFS_REPLICA ]; do sleep 0.02; done; "
		    "[ $KXFS_REPLICA = main-0 ] && exit 5; exit 7",
		    2, "");
	until(log_has(id, "main-0.0", "up") && log_has(id, "main-1.0", "up"));
	folder = output_path(id, NULL);
	end = output_path(id, "tasks/1.0");
	stop();
	touch("go-main-1");
	until(access(end, F_OK) == 0);
	touch("go-main-0");
	until(count_processes(folder) == 0);
	now = loop_time_ns();
	start();
	until(has_state(id, SPEC_FAILED));
	job = job_of(id);
	assert_string_equal(job->message, "main-1: exit code 7");
	assert_int_equal(job->replicas[1].state, SPEC_FAILED);
	assert_int_equal(job->replicas[0].state, SPEC_CANCELLED);
	assert_int_equal(job->replicas[0].exit_code, 5);
	assert_true(job->replicas[1].finished <= job->replicas[0].finished);
	assert_true(job->replicas[0].finished <= now);
}

/* Output was lost while no daemon was connected. The next mount reports that. */
static void test_lost_meanwhile(void **state)
{
	cleanup_free char *id = NULL, *folder = NULL;
	cleanup_job const struct spec_job *job = NULL;

	linger();
	id = submit_full("echo up; " UNTIL_GO "; head -c 2000000 /dev/zero; exit 0");
	until(log_has(id, "main-0.0", "up"));
	folder = output_path(id, NULL);
	stop();
	touch("go");
	until(count_processes(folder) == 0);
	start();
	until(has_state(id, SPEC_SUCCEEDED));
	job = job_of(id);
	assert_string_equal(job->replicas[0].reason, "OutputLost");
	assert_string_equal(job->reason, "OutputLost");
}

int main(int argc, char **argv)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_not_started),
		TEST(test_other_scheduler),
		TEST(test_unsure),
		TEST(test_retried),
		TEST(test_daemons_that_fork),
		TEST(test_session),
		TEST(test_many_jobs),
		TEST(test_closed),
		TEST(test_held_and_loud),
		TEST(test_full_and_succeeded),
		TEST(test_half_removed),
		TEST(test_orders_that_can_t_be_recorded),
		TEST(test_restart_of_a_suspended_job),
		TEST(test_forget_while_ending),
		TEST(test_stop),
		TEST(test_ended_in_order),
		TEST(test_lost_meanwhile),
	};

	backend_helper(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
