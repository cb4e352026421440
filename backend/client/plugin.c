/* SPDX-License-Identifier: MIT */
/*
 * A plugin's process and its two pipes. A child of its own that holds them open is not waited for. Its memory
 * lives until libuv has let go of all three handles, and its process has been waited for.
 *
 *	state   | what is under way                           | what ends it           | next
 *	RUNNING | the process and both pipes, at most 60 s    | it exits               | EXITED
 *	        |                                             | time, too much answer  | ENDING: it is killed
 *	EXITED  | what is left in the pipes, at most 500 ms   | both ended; time       | ENDING
 *	ENDING  | done() was called, the three handles close  | all have               | gone(), freed
 *
 * plugin_stop leads from everywhere to ENDING, without done().
 */
#include "backend/client/plugin.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>

#include "backend/base/diag.h"
#include "backend/base/spawn.h"
#include "spec/base/mem.h"

#define PLUGIN_LIMIT_MS 60000
#define PLUGIN_PIPES_MS 500	   /* for what is in the pipes when it has exited */
#define PLUGIN_OUT_MAX	(1u << 20) /* bytes of its answer */
#define PLUGIN_ERR_MAX	4096	   /* bytes of its stderr that are kept, the last ones */

struct plugin {
	struct loop *loop;
	const struct spec_connection *c;
	struct plugin_events events; /* of which done is not called in ENDING */
	enum { RUNNING, EXITED, ENDING } state;
	uv_process_t process;
	uv_pipe_t out, err;
	unsigned open; /* handles that libuv still has */
	unsigned eofs;
	struct loop_timer timer; /* but in ENDING */
	bool exited;
	int64_t status;
	int sig;
	char *answer;
	size_t len, room;
	char words[PLUGIN_ERR_MAX + 1]; /* of its stderr */
	size_t words_len;
	char buf[16384];
};

void plugin_free(struct plugin *p)
{
	if (!p)
		return;
	if (p->answer)
		explicit_bzero(p->answer, p->len);
	explicit_bzero(p->buf, sizeof(p->buf));
	free(p->answer);
	free(p);
}

static void plugin_closed(uv_handle_t *handle)
{
	struct plugin *p = handle->data;
	struct plugin_events events = p->events;

	if (--p->open > 0)
		return;
	plugin_free(p);
	if (events.gone)
		events.gone(events.data);
}

static void plugin_close(void *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, plugin_closed);
}

/* Nothing more is wanted of it; the process itself is waited for. */
static void plugin_wind_up(struct plugin *p)
{
	p->state = ENDING;
	loop_timer_stop(&p->timer);
	plugin_close(&p->out);
	plugin_close(&p->err);
	if (p->exited)
		plugin_close(&p->process);
	else
		kill(-p->process.pid, SIGKILL);
}

void plugin_stop(struct plugin *p)
{
	if (p->state != ENDING)
		plugin_wind_up(p);
}

/* --- its answer --- */

static char *not_run(const struct spec_connection *c, int err)
{
	const char *hint = c->exec.install_hint;

	return text_print("credential plugin \"%s\" can't be run: %s%s%s", c->exec.command,
			  err == -ENOENT ? "it is not installed, or not in PATH" : strerror(-err),
			  *hint ? "\n" : "", hint);
}

/* What it wrote to stderr, for people. */
static const char *stderr_words(struct plugin *p)
{
	size_t n = p->words_len;

	while (n > 0 && strchr(" \t\r\n", p->words[n - 1]))
		n--;
	p->words[n] = '\0';
	return p->words;
}

static void plugin_finish(struct plugin *p, int err, struct spec_credential *answer,
			  const char *what)
{
	const char *words = stderr_words(p);
	cleanup_free char *text =
		err ? text_print("credential plugin \"%s\" %s%s%s", p->c->exec.command, what,
				 *words ? ":\n" : "", words)
		    : text_copy("");

	assert(p->state != ENDING);
	plugin_wind_up(p);
	p->events.done(p->events.data, err, answer, text);
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
	what = text_print("gave no credential: %s", errors);
	plugin_finish(p, -EACCES, NULL, what);
}

static void plugin_ended(struct plugin *p)
{
	char what[64];

	if (p->status == 0 && p->sig == 0) {
		plugin_answer(p);
		return;
	}
	if (p->sig)
		snprintf(what, sizeof(what), "was ended by signal %d", p->sig);
	else
		snprintf(what, sizeof(what), "ended with exit code %d", (int)p->status);
	plugin_finish(p, -EACCES, NULL, what);
}

/* --- events --- */

static void plugin_on_timer(void *data)
{
	struct plugin *p = data;

	if (p->state == EXITED)
		plugin_ended(p);
	else
		plugin_finish(p, -ETIMEDOUT, NULL, "gave no answer within 60 s and was ended");
}

static void plugin_exited(uv_process_t *process, int64_t status, int sig)
{
	struct plugin *p = process->data;

	p->exited = true;
	p->status = status;
	p->sig = sig;
	if (p->state == ENDING) {
		plugin_close(&p->process);
		return;
	}
	p->state = EXITED;
	if (p->eofs == 2) {
		plugin_ended(p);
		return;
	}
	loop_timer_set(&p->timer, PLUGIN_PIPES_MS);
}

static void plugin_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
	struct plugin *p = handle->data;

	(void)size;
	*ret = uv_buf_init(p->buf, sizeof(p->buf));
}

static void plugin_eof(struct plugin *p, uv_stream_t *stream)
{
	plugin_close(stream);
	if (++p->eofs == 2 && p->state == EXITED)
		plugin_ended(p);
}

static void plugin_on_out(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct plugin *p = stream->data;

	if (n < 0) {
		plugin_eof(p, stream);
		return;
	}
	if (p->len + (size_t)n > PLUGIN_OUT_MAX) {
		plugin_finish(p, -EACCES, NULL, "gave no credential: its answer has over 1 MiB");
		return;
	}
	if (p->len + (size_t)n > p->room) {
		p->room = max_of(2 * p->room, sizeof(p->buf));
		p->answer = mem_grow(p->answer, p->room, 1);
	}
	memcpy(p->answer + p->len, buf->base, (size_t)n);
	p->len += (size_t)n;
}

/* Of what it writes the end is kept, without control characters, which a terminal might obey. */
static void plugin_on_err(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct plugin *p = stream->data;

	if (n < 0) {
		plugin_eof(p, stream);
		return;
	}
	if (diag_to_stderr())
		(void)!write(STDERR_FILENO, buf->base, (size_t)n);
	for (ssize_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)buf->base[i];

		if (p->words_len == PLUGIN_ERR_MAX) {
			p->words_len /= 2;
			memmove(p->words, p->words + PLUGIN_ERR_MAX - p->words_len, p->words_len);
		}
		p->words[p->words_len++] =
			(char)((c < ' ' && c != '\n' && c != '\t') || c == 0x7f ? ' ' : c);
	}
}

/* --- its start --- */

static void free_strings(char ***v)
{
	for (size_t i = 0; *v && (*v)[i]; i++)
		free((*v)[i]);
	free(*v);
}

static char **plugin_argv(const struct spec_exec *exec)
{
	char **argv = new0_n(char *, exec->n_args + 2);

	argv[0] = text_copy(exec->command);
	for (size_t i = 0; i < exec->n_args; i++)
		argv[i + 1] = text_copy(exec->args[i]);
	return argv;
}

/* Is the variable PAIR ("NAME=...") set by the plugin's own entry, or by us? */
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

static int plugin_spawn(struct plugin *p, char **argv, char **env)
{
	const uv_stdio_flags pipe_flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE);
	uv_stdio_container_t stdio[3] = {
		{.flags = UV_IGNORE},
		{.flags = pipe_flags, .data.stream = (uv_stream_t *)&p->out},
		{.flags = pipe_flags, .data.stream = (uv_stream_t *)&p->err},
	};
	uv_process_options_t options = {
		.exit_cb = plugin_exited,
		.file = argv[0],
		.args = argv,
		.env = env,
		.flags = UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = stdio,
	};
	uv_loop_t *uv = loop_uv(p->loop);
	int err;

	uv_pipe_init(uv, &p->out, 0);
	uv_pipe_init(uv, &p->err, 0);
	p->process.data = p->out.data = p->err.data = p;
	p->open = 3;
	err = spawn_program(uv, &p->process, &options);
	if (err < 0)
		return err;
	uv_read_start((uv_stream_t *)&p->out, plugin_alloc, plugin_on_out);
	uv_read_start((uv_stream_t *)&p->err, plugin_alloc, plugin_on_err);
	return 0;
}

int plugin_start(struct loop *loop, const struct spec_connection *c, const char *info,
		 const struct plugin_events *events, struct plugin **ret, char **ret_text)
{
	cleanup(free_strings) char **argv = plugin_argv(&c->exec);
	cleanup(free_strings) char **env = plugin_env(&c->exec, info);
	struct plugin *p = new0(struct plugin);
	int err;

	p->loop = loop;
	p->c = c;
	loop_timer_init(&p->timer, loop, plugin_on_timer, p);
	loop_timer_set(&p->timer, PLUGIN_LIMIT_MS);
	err = plugin_spawn(p, argv, env);
	if (err < 0) {
		*ret_text = not_run(c, err);
		p->exited = true; /* it has never run: there is nothing to wait for */
		plugin_wind_up(p);
		return err;
	}
	p->events = *events;
	*ret = p;
	return 0;
}
