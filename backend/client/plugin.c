/* SPDX-License-Identifier: MIT */
/*
 * Runs the process of a plugin. The loop polls the plugin's stdout and stderr, a pipe that reports
 * that the program can't be run (process.h), and a pidfd, which is readable when the process has
 * ended. kxfs does not wait for children of the plugin that keep stdout and stderr open.
 *
 * state    | what is in progress                | what ends it                      | next
 * STARTING | the pool starts the process        | the process has started           | RUNNING
 *          |                                    | the start fails, or takes 60 s    | ENDING
 * RUNNING  | the process runs, and kxfs reads   | the process exits                 | EXITED
 *          | its pipes                          | the exec fails                    | ENDING
 *          |                                    | the answer is too long            | ENDING
 *          |                                    | 60 s have passed since the start  | ENDING
 * EXITED   | kxfs reads the rest of the pipes   | all pipes end, or 500 ms pass     | ENDING
 * ENDING   | kxfs kills the process, if it runs | the process is reaped             | freed
 *
 * Entering ENDING calls done(), and leaving it calls gone(). plugin_stop leads from every state to
 * ENDING, without done(). If the pool is still starting the process, kxfs kills it afterwards.
 */
#include "backend/client/plugin.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/base/diag.h"
#include "backend/base/process.h"
#include "backend/base/work.h"
#include "spec/base/mem.h"

#define PLUGIN_LIMIT_MS 60000
/* how long to read the pipes after the plugin has exited */
#define PLUGIN_PIPES_MS 500
#define PLUGIN_OUT_MAX	(1u << 20) /* bytes of the answer */
/* bytes at the end of stderr that are kept */
#define PLUGIN_ERR_MAX 4096

/* What the loop polls. FAULT, OUT and ERR are also indexes of the FDS of spawn_program. */
enum { FAULT, OUT, ERR, N_PIPES, PROCESS = N_PIPES, N_SOURCES };

struct plugin_source {
	struct plugin *p;
	int fd; /* -1 if not open */
	struct loop_watch *watch;
};

struct plugin {
	struct loop *loop;
	const struct spec_connection *c;
	struct plugin_events events; /* done() is not called in ENDING */
	enum { STARTING, RUNNING, EXITED, ENDING } state;
	struct plugin_source sources[N_SOURCES];
	unsigned eofs;
	struct loop_timer timer; /* not set in ENDING */
	/* The pool has started the process, or failed, and no longer uses SOURCES and PID. */
	bool started;
	struct work work;
	char **argv, **env;
	pid_t pid;  /* 0 if there is no process, or it was reaped */
	int status; /* of waitpid */
	char *answer;
	size_t len, room;
	char words[PLUGIN_ERR_MAX]; /* the end of stderr */
	size_t words_len;
	char buf[16384];
};

static void free_strings(char **v)
{
	for (size_t i = 0; v[i]; i++)
		free(v[i]);
	free(v);
}

void plugin_free(struct plugin *p)
{
	if (!p)
		return;
	if (p->pid)
		/* The process was killed. Don't wait for its end. */
		waitpid(p->pid, NULL, WNOHANG);
	for (size_t i = 0; i < N_SOURCES; i++)
		base_close_fd(&p->sources[i].fd);
	free_strings(p->argv);
	free_strings(p->env);
	if (p->answer)
		explicit_bzero(p->answer, p->len);
	explicit_bzero(p->buf, sizeof(p->buf));
	free(p->answer);
	free(p);
}

static void plugin_gone(void *data)
{
	struct plugin *p = data;
	struct plugin_events events = p->events;

	plugin_free(p);
	events.gone(events.data);
}

static void source_close(struct plugin_source *s)
{
	loop_watch_free(take_ptr(s->watch));
	base_close_fd(&s->fd);
	s->fd = -1;
}

/*
 * Call this when P becomes ENDING, and after each later event. If the pool has not started the
 * process yet, do nothing. Otherwise kill the process or, if it does not exist any more, post
 * plugin_gone.
 */
static void plugin_leave(struct plugin *p)
{
	if (!p->started)
		return;
	for (size_t i = 0; i < N_PIPES; i++)
		source_close(&p->sources[i]);
	if (p->pid)
		kill(-p->pid, SIGKILL);
	else
		loop_post(p->loop, plugin_gone, p);
}

void plugin_stop(struct plugin *p)
{
	if (p->state == ENDING)
		return;
	p->state = ENDING;
	loop_timer_stop(&p->timer);
	plugin_leave(p);
}

/* --- the answer of the plugin --- */

static void plugin_finish(struct plugin *p, int err, struct spec_credential *answer,
			  const char *what)
{
	cleanup_free char *text = NULL;
	size_t n = p->words_len;

	/* Remove white space at the end of stderr. */
	while (n > 0 && strchr(" \t\r\n", p->words[n - 1]))
		n--;
	text = err ? text_print("credential plugin \"%s\" %s%s%.*s", p->c->exec.command, what,
				n ? ":\n" : "", (int)n, p->words)
		   : text_copy("");
	assert(p->state != ENDING);
	plugin_stop(p);
	p->events.done(p->events.data, err, answer, text);
}

/* Call this if the program does not exist, or if no process could be created. */
static void plugin_not_run(struct plugin *p, int err)
{
	const char *hint = p->c->exec.install_hint;
	cleanup_free char *what =
		text_print("can't be run: %s%s%s",
			   err == -ENOENT ? "it is not installed, or not in PATH" : strerror(-err),
			   *hint ? "\n" : "", hint);

	plugin_finish(p, -EACCES, NULL, what);
}

static void plugin_answer(struct plugin *p)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup(spec_credential_clear) struct spec_credential answer = {0};
	cleanup_free char *errors = NULL, *what = NULL;
	int err = spec_exec_reply(p->answer ? p->answer : "", p->len, p->c->exec.api_version,
				  &answer, &e);

	if (err == 0) {
		plugin_finish(p, 0, &answer, "");
		return;
	}
	errors = spec_errors_text(&e, NULL);
	if (*errors)
		errors[strlen(errors) - 1] = '\0';
	what = text_print("returned no credential: %s", errors);
	plugin_finish(p, -EACCES, NULL, what);
}

static void plugin_ended(struct plugin *p)
{
	char what[64];

	if (p->status == 0) {
		plugin_answer(p);
		return;
	}
	if (WIFSIGNALED(p->status))
		snprintf(what, sizeof(what), "was killed by signal %d", WTERMSIG(p->status));
	else
		snprintf(what, sizeof(what), "ended with exit code %d", WEXITSTATUS(p->status));
	plugin_finish(p, -EACCES, NULL, what);
}

/* --- events --- */

static void plugin_on_timer(void *data)
{
	struct plugin *p = data;

	if (p->state == EXITED)
		plugin_ended(p);
	else
		plugin_finish(p, -ETIMEDOUT, NULL,
			      "did not answer within 60 s, so kxfs killed "
			      "it");
}

static void plugin_exited(void *data)
{
	struct plugin_source *s = data;
	struct plugin *p = s->p;

	if (waitpid(p->pid, &p->status, WNOHANG) != p->pid)
		return;
	p->pid = 0;
	source_close(s);
	if (p->state == ENDING)
		return plugin_leave(p);
	p->state = EXITED;
	if (p->eofs == N_PIPES)
		return plugin_ended(p);
	return loop_timer_set(&p->timer, PLUGIN_PIPES_MS);
}

/* Read into BUF. Return the number of bytes, which may be 0. At the end of the pipe, close S. */
static size_t source_read(struct plugin_source *s)
{
	struct plugin *p = s->p;
	ssize_t n = read(s->fd, p->buf, sizeof(p->buf));

	if (n > 0)
		return (size_t)n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	source_close(s);
	if (++p->eofs == N_PIPES && p->state == EXITED)
		plugin_ended(p);
	return 0;
}

/* The pipe has the errno of a failed exec, or has ended. Pipes transfer an int atomically. */
static void plugin_on_fault(void *data)
{
	struct plugin_source *s = data;
	struct plugin *p = s->p;
	int err;

	if (source_read(s) != sizeof(err))
		return;
	memcpy(&err, p->buf, sizeof(err));
	plugin_not_run(p, -err);
}

static void plugin_on_out(void *data)
{
	struct plugin_source *s = data;
	struct plugin *p = s->p;
	size_t n = source_read(s);

	if (n == 0)
		return;
	if (p->len + n > PLUGIN_OUT_MAX) {
		plugin_finish(p, -EACCES, NULL,
			      "returned no credential: its output is larger "
			      "than 1 MiB");
		return;
	}
	if (p->len + n > p->room) {
		p->room = max_of(2 * p->room, sizeof(p->buf));
		p->answer = mem_grow(p->answer, p->room, 1);
	}
	memcpy(p->answer + p->len, p->buf, n);
	p->len += n;
}

/*
 * Keep the end of stderr. Replace control characters by blanks, because a terminal might interpret
 * them.
 */
static void plugin_on_err(void *data)
{
	struct plugin_source *s = data;
	struct plugin *p = s->p;
	size_t n = source_read(s);

	if (n == 0)
		return;
	if (diag_to_stderr())
		(void)!write(STDERR_FILENO, p->buf, n);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p->buf[i];

		if (p->words_len == PLUGIN_ERR_MAX) {
			p->words_len /= 2;
			memmove(p->words, p->words + PLUGIN_ERR_MAX - p->words_len, p->words_len);
		}
		p->words[p->words_len++] =
			(char)((c < ' ' && c != '\n' && c != '\t') || c == 0x7f ? ' ' : c);
	}
}

/* --- the start of the plugin --- */

/* True if the kubeconfig or kxfs sets the variable of PAIR ("NAME=...") itself. */
static bool is_replaced(const struct spec_exec *exec, const char *pair)
{
	size_t len = strcspn(pair, "=");

	for (size_t i = 0; i < exec->n_env; i++)
		if (strlen(exec->env[i].key) == len && memcmp(exec->env[i].key, pair, len) == 0)
			return true;
	return strncmp(pair, "KUBERNETES_EXEC_INFO=", len + 1) == 0;
}

static char **plugin_env(const struct spec_exec *exec, const char *info)
{
	size_t n = 0, of_us = 0;
	char **env;

	while (environ[of_us])
		of_us++;
	env = new0_n(char *, of_us + exec->n_env + 2);
	for (size_t i = 0; i < of_us; i++)
		if (!is_replaced(exec, environ[i]))
			env[n++] = text_copy(environ[i]);
	for (size_t i = 0; i < exec->n_env; i++)
		env[n++] = text_print("%s=%s", exec->env[i].key, exec->env[i].value);
	env[n] = text_print("KUBERNETES_EXEC_INFO=%s", info);
	return env;
}

static int make_pipes(struct plugin *p, int theirs[N_PIPES])
{
	for (size_t i = 0; i < N_PIPES; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC) < 0)
			return -errno;
		p->sources[i].fd = fds[0];
		theirs[i] = fds[1];
	}
	return 0;
}

static void start_work(void *data)
{
	struct plugin *p = data;
	int theirs[N_PIPES] = {-1, -1, -1}, err = make_pipes(p, theirs);

	if (!err)
		err = spawn_program(p->argv, p->env, theirs, &p->pid);
	for (size_t i = 0; i < N_PIPES; i++)
		base_close_fd(&theirs[i]);
	if (!err) {
		p->sources[PROCESS].fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
		err = p->sources[PROCESS].fd < 0 ? -errno : 0;
	}
	if (err && p->pid) {
		kill(-p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
		p->pid = 0;
	}
	p->work.err = err;
}

static void plugin_started(void *data)
{
	static const loop_fn events[] = {
		[FAULT] = plugin_on_fault,
		[OUT] = plugin_on_out,
		[ERR] = plugin_on_err,
		[PROCESS] = plugin_exited,
	};
	struct plugin *p = data;

	p->started = true;
	for (size_t i = 0; i < N_SOURCES && !p->work.err; i++) {
		struct plugin_source *s = &p->sources[i];

		s->watch = loop_watch_new(p->loop, s->fd, false, events[i], s);
		assert(s->watch); /* polling pipes and pidfds never fails */
	}
	if (p->state == ENDING)
		return plugin_leave(p);
	if (p->work.err)
		return plugin_not_run(p, p->work.err);
	p->state = RUNNING;
}

struct plugin *plugin_start(struct loop *loop, const struct spec_connection *c, const char *info,
			    const struct plugin_events *events)
{
	struct plugin *p = new0(struct plugin);

	p->loop = loop;
	p->c = c;
	p->events = *events;
	p->argv = new0_n(char *, c->exec.n_args + 2);
	p->argv[0] = text_copy(c->exec.command);
	for (size_t i = 0; i < c->exec.n_args; i++)
		p->argv[i + 1] = text_copy(c->exec.args[i]);
	p->env = plugin_env(&c->exec, info);
	for (size_t i = 0; i < N_SOURCES; i++)
		p->sources[i] = (struct plugin_source){.p = p, .fd = -1};
	loop_timer_init(&p->timer, loop, plugin_on_timer, p);
	loop_timer_set(&p->timer, PLUGIN_LIMIT_MS);
	p->work = (struct work){.run = start_work, .done = plugin_started, .data = p};
	work_start(&p->work, loop);
	return p;
}
