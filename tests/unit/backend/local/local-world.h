/* SPDX-License-Identifier: MIT */
/*
 * A local backend with its own state directory, for tests that start real processes. Provides
 * requests that wait for their answer, waiting for conditions, and cleanup.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/backend/folder_key.h"
#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#include "backend/backend.h"
#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/jobs/record_file.h"
#include "spec/record/record.h"
#include "tests/unit/table.h"

#define WAIT_S 240

struct world {
	char root[64];
	char state[96];
	char work[96];
	struct loop *loop;
	struct backend *b;
	struct backend_config config;
	/* The disk refuses records. The ends of jobs are reported all the same. */
	_Atomic bool refuses;
	char said[512]; /* why the last start failed */
};

struct answer {
	sem_t done;
	int err;
	char *text;
	char *id;
};

static inline void pause_ms(long ms)
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

/*
 * Check that the end of a job is on disk before it is reported, unless the disk refuses it. (Only
 * the test's own thread may fail a test, so the assertion is made there.)
 */
static inline void world_on_job(void *data, const struct spec_job *old,
				const struct spec_job *new_job)
{
	const struct world *w = data;
	cleanup(spec_head_freep) struct spec_head *head = NULL;
	struct spec_record *rec = NULL;

	if (w->refuses || !new_job || new_job->history || !spec_job_is_over(new_job) ||
	    (old && spec_job_is_over(old)))
		return;
	if (record_file_read(w->state, new_job->uid, &head) ||
	    spec_record_parse(head->more->parts[RECORD_SNAPSHOT], NULL, &rec) ||
	    rec->job->state != new_job->state || !rec->job->finished || !head->over) {
		fprintf(stderr, "the end of %s is reported before it is on disk\n", new_job->id);
		abort();
	}
	spec_record_free(rec);
}

static inline void world_no_log(void *data, struct log *log)
{
}

/* Start the backend. Return 0, or an error that was printed. */
static inline int world_start(struct world *w)
{
	const struct backend_events events = {.job = world_on_job, .log = world_no_log, .data = w};
	cleanup_free char *text = NULL;
	int err;

	loop_new(&w->loop);
	err = loop_start(w->loop);
	if (err == 0)
		err = backend_new(w->loop, &w->config, &events, &w->b, &text);
	if (err == 0)
		err = backend_start(w->b, &text);
	if (err == 0)
		backend_take_charge(w->b);
	snprintf(w->said, sizeof(w->said), "%s", text ? text : "");
	if (err < 0)
		fprintf(stderr, "start: %s %s\n", strerror(-err), w->said);
	return err;
}

/* Free W, whose backend must have stopped. */
static inline void world_free(struct world *w)
{
	if (w->loop)
		loop_stop(w->loop);
	backend_free(take_ptr(w->b));
	loop_free(take_ptr(w->loop));
}

static inline void world_stop(struct world *w)
{
	if (w->b)
		backend_stop(w->b);
	world_free(w);
}

/* Create STATE and WORK below ROOT, which must exist. */
static inline void world_prepare(struct world *w)
{
	snprintf(w->state, sizeof(w->state), "%s/state", w->root);
	snprintf(w->work, sizeof(w->work), "%s/work", w->root);
	mkdir(w->state, 0700);
	mkdir(w->work, 0700);
	w->config = (struct backend_config){
		.kinds = test_table_of_kinds(),
		.kind = "local",
		.state_dir = w->state,
		.work_dir = w->work,
		.submitter = "ada@login1",
		.grace_ms = 60000, /* longer than any machine needs */
		.spool_limit = UINT64_C(1) << 40,
		.history_keep = 7 * 86400,
	};
}

/*
 * Block SIGCHLD in this thread, so that only the I/O thread receives it. Under ThreadSanitizer, a
 * thread that waits handles a signal only later, and until then ended children would remain.
 */
static inline void world_block_signals(void)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, NULL);
}

static inline int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	world_block_signals();
	snprintf(w->root, sizeof(w->root), "/tmp/kxfs-local.XXXXXX");
	if (!mkdtemp(w->root))
		return -1;
	world_prepare(w);
	*state = w;
	return world_start(w);
}

static inline int world_teardown(void **state)
{
	struct world *w = *state;

	w->config.grace_ms = 0;
	world_stop(w);
	scratch_remove(w->root);
	free(w);
	return 0;
}

/* --- requests --- */

static inline void answer_take(void *data, const struct backend_result *result)
{
	struct answer *a = data;

	a->err = result->err;
	a->text = strdup(result->text);
	a->id = strdup(result->id);
	sem_post(&a->done);
}

static inline void answer_wait(struct answer *a)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_S;
	while (sem_timedwait(&a->done, &end) < 0)
		assert_int_equal(errno, EINTR);
	sem_destroy(&a->done);
}

static inline void answer_clear(struct answer *a)
{
	free(a->text);
	free(a->id);
}
#define cleanup_answer cleanup(answer_clear)

static inline void submit_answer(struct world *w, const char *text, struct answer *a)
{
	struct backend_submission s = {.file = "app.yaml",
				       .text = text,
				       .len = strlen(text),
				       .submitter = "ada@login1"};

	sem_init(&a->done, 0, 0);
	backend_submit(w->b, &s, answer_take, a);
	answer_wait(a);
}

/* Launch TEXT and return the job's id. malloc'ed. */
static inline char *submit(struct world *w, const char *text)
{
	cleanup_answer struct answer a = {0};

	submit_answer(w, text, &a);
	if (a.err)
		fail_msg("submit: %s: %s", strerror(-a.err), a.text);
	return take_ptr(a.id);
}

/*
 * Launch a job whose role "main" has N replicas that run SCRIPT with sh. SCRIPT is one line, as sh
 * must see it. MORE contains further fields of the role, one per line, each indented by four
 * spaces. Return the id. malloc'ed.
 */
static inline char *submit_sh(struct world *w, const char *script, int n, const char *more)
{
	cleanup_free char *escaped = malloc(2 * strlen(script) + 1);
	cleanup_free char *text = NULL;
	char *out = escaped;

	assert_non_null(escaped);
	/* in an AppDef, "$$" means "$" */
	for (const char *p = script; *p; p++) {
		*out++ = *p;
		if (*p == '$')
			*out++ = '$';
	}
	*out = '\0';
	assert_true(asprintf(&text,
			     "name: test\n"
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
			     escaped, n, more ? more : "") > 0);
	return submit(w, text);
}

static inline const struct spec_job *job_of(struct world *w, const char *id)
{
	const struct spec_job *job = backend_job(w->b, BACKEND_JOBS, id);

	return job ? job : backend_job(w->b, BACKEND_HISTORY, id);
}

static inline bool is_in(struct world *w, enum backend_place place, const char *id)
{
	cleanup_job const struct spec_job *job = backend_job(w->b, place, id);

	return job != NULL;
}

static inline bool has_state(struct world *w, const char *id, enum spec_state state)
{
	cleanup_job const struct spec_job *job = job_of(w, id);

	return job && job->state == state;
}

static inline bool has_phase(struct world *w, const char *id, const char *phase)
{
	cleanup_job const struct spec_job *job = job_of(w, id);

	return job && streq(job->phase, phase);
}

static inline int control(struct world *w, const char *id, enum spec_action action)
{
	cleanup_job const struct spec_job *job = job_of(w, id);
	cleanup_answer struct answer a = {0};

	assert_non_null(job);
	sem_init(&a.done, 0, 0);
	backend_control(w->b, id, job->uid, action, NULL, answer_take, &a);
	answer_wait(&a);
	if (a.err)
		assert_string_not_equal(a.text, "");
	return a.err;
}

static inline int cancel(struct world *w, const char *id)
{
	cleanup_job const struct spec_job *job = job_of(w, id);
	cleanup_answer struct answer a = {0};

	assert_non_null(job);
	sem_init(&a.done, 0, 0);
	backend_cancel(w->b, id, job->uid, answer_take, &a);
	answer_wait(&a);
	return a.err;
}

static inline int forget(struct world *w, const char *id)
{
	cleanup_job const struct spec_job *job = job_of(w, id);
	cleanup_answer struct answer a = {0};

	assert_non_null(job);
	sem_init(&a.done, 0, 0);
	backend_forget(w->b, id, job->uid, answer_take, &a);
	answer_wait(&a);
	return a.err;
}

/* --- output and processes --- */

/*
 * Return all of a log, or "" if it does not exist yet. If KEY is NULL, return the merged log.
 * malloc'ed.
 */
static inline char *log_text(struct world *w, const char *id, const char *key)
{
	cleanup_job const struct spec_job *job = job_of(w, id);
	cleanup_log struct log *log = NULL;
	struct log_stat st;
	size_t len = 0;
	char *text;

	assert_non_null(job);
	if (backend_log(w->b, job, key, LOG_PLAIN, &log) < 0)
		return strdup("");
	assert_int_equal(log_stat(log, &st), 0);
	text = malloc(st.size + 1);
	assert_non_null(text);
	while (len < st.size) {
		ssize_t n = log_read(log, text + len, st.size - len, len);

		assert_true(n > 0);
		len += (size_t)n;
	}
	text[len] = '\0';
	return text;
}

static inline bool log_is(struct world *w, const char *id, const char *key, const char *expected)
{
	cleanup_free char *text = log_text(w, id, key);

	return streq(text, expected);
}

static inline bool log_has(struct world *w, const char *id, const char *key, const char *part)
{
	cleanup_free char *text = log_text(w, id, key);

	return strstr(text, part) != NULL;
}

/* Return the first number that the replica printed. */
static inline pid_t log_pid(struct world *w, const char *id, const char *key)
{
	cleanup_free char *text = NULL;

	until(log_has(w, id, key, "\n"));
	text = log_text(w, id, key);
	return (pid_t)atol(text);
}

/*
 * Return the state letter of a process and set *RET_PARENT to its parent. Return 0 if there is no
 * such process, or only a zombie.
 */
static inline char process_stat(pid_t pid, long *ret_parent)
{
	char path[64], text[512], state;
	cleanup_fd int fd = -1;
	const char *p;
	ssize_t n;

	*ret_parent = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	p = strrchr(text, ')');
	return p && sscanf(p + 1, " %c %ld", &state, ret_parent) == 2 && !strchr("ZX", state)
		       ? state
		       : 0;
}

static inline char process_state(pid_t pid)
{
	long parent;

	return process_stat(pid, &parent);
}

static inline void world_dir_close(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static inline bool is_alive(pid_t pid)
{
	return process_state(pid) != 0;
}

/* Return the parent of a process, or 0 if it has none. */
static inline pid_t parent_of(pid_t pid)
{
	long parent;

	(void)process_stat(pid, &parent);
	return (pid_t)parent;
}

/* Return the first child of a process, or 0 if it has none. */
static inline pid_t child_of(pid_t pid)
{
	char path[64];
	cleanup_file FILE *f = NULL;
	int child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "re");
	return f && fscanf(f, "%d", &child) == 1 ? child : 0;
}

/*
 * True if PID is stopped. A shell that was stopped during vfork is in another state: it waits for
 * its child, which is stopped.
 */
static inline bool is_stopped(pid_t pid)
{
	char state = process_state(pid);

	return state == 'T' || (state == 'D' && process_state(child_of(pid)) == 'T');
}

/*
 * Return the number of helpers of this world. If RET is not NULL, set *RET to the pid of one of
 * them.
 */
static inline int world_helpers(struct world *w, pid_t *ret)
{
	cleanup(world_dir_close) DIR *proc = opendir("/proc");
	struct dirent *entry;
	int n = 0;

	assert_non_null(proc);
	while ((entry = readdir(proc))) {
		pid_t pid = (pid_t)atol(entry->d_name);
		char path[64], target[256] = "", name[32] = "";
		cleanup_fd int fd = -1;

		if (pid <= 1)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
		if (readlink(path, target, sizeof(target) - 1) < 0 ||
		    strncmp(target, w->state, strlen(w->state)) != 0 || !is_alive(pid))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, name, sizeof(name) - 1) <= 0 || !streq(name, "job-helper\n"))
			continue;
		n++;
		if (ret)
			*ret = pid;
	}
	return n;
}

/* Create a file below WORK. Tests and scripts use such files to signal each other. */
static inline void touch(struct world *w, const char *name)
{
	cleanup_free char *path = NULL;
	cleanup_fd int fd = -1;

	assert_true(asprintf(&path, "%s/%s", w->work, name) > 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
}

static inline bool exists(struct world *w, const char *fmt, ...) printf_like(2, 3);

/* True if there is a file with this name below ROOT. */
static inline bool exists(struct world *w, const char *fmt, ...)
{
	cleanup_free char *path = NULL;
	cleanup_free char *name = NULL;
	va_list args;

	va_start(args, fmt);
	assert_true(vasprintf(&name, fmt, args) > 0);
	va_end(args);
	assert_true(asprintf(&path, "%s/%s", w->root, name) > 0);
	return access(path, F_OK) == 0;
}

static inline int count_dir(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline size_t count_jobs(struct world *w)
{
	const struct spec_job **jobs;
	size_t n;

	backend_jobs(w->b, BACKEND_JOBS, &jobs, &n);
	for (size_t i = 0; i < n; i++)
		spec_job_unref(jobs[i]);
	free(jobs);
	return n;
}
