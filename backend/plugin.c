/* SPDX-License-Identifier: MIT */
/*
 * A plugin's process and its two pipes. It is over when it has exited and both pipes are at their end; a
 * child of its own that holds them open is not waited for. Its memory lives until libuv has let go of all
 * three handles, and its process has been waited for.
 */
#include "backend/plugin.h"

#include <errno.h>
#include <signal.h>

#include "backend/diag.h"
#include "backend/impl.h"

#define PLUGIN_LIMIT_MS 60000
#define PLUGIN_REST_MS	500	   /* for what is in the pipes when it has exited */
#define PLUGIN_OUT_MAX	(1u << 20) /* bytes of its answer */
#define PLUGIN_ERR_MAX	4096	   /* bytes of its stderr that are kept, the last ones */

struct plugin {
	struct loop *loop;
	const struct spec_connection *c;
	struct plugin_events events; /* done is NULL once it was called */
	uv_process_t process;
	uv_pipe_t out, err;
	unsigned open; /* handles that libuv still has */
	unsigned eofs;
	struct loop_timer *timer;
	bool exited;
	int64_t status;
	int sig;
	char *answer;
	size_t len, room;
	char said[PLUGIN_ERR_MAX + 1];
	size_t said_len;
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
	loop_timer_free(take_ptr(p->timer));
	plugin_close(&p->out);
	plugin_close(&p->err);
	if (p->exited)
		plugin_close(&p->process);
	else
		kill(-p->process.pid, SIGKILL);
}

void plugin_stop(struct plugin *p)
{
	p->events.done = NULL;
	plugin_wind_up(p);
}

/* --- its answer --- */

static char *not_run(const struct spec_connection *c, int err)
{
	const char *hint = c->exec.install_hint;
	char *text;

	if (asprintf(&text, "credential plugin \"%s\" can't be run: %s%s%s", c->exec.command,
		     err == -ENOENT ? "it is not installed, or not in PATH" : strerror(-err),
		     *hint ? "\n" : "", hint) < 0)
		return NULL;
	return text;
}

/* What it said on stderr, for people. */
static const char *words(struct plugin *p)
{
	size_t n = p->said_len;

	while (n > 0 && strchr(" \t\r\n", p->said[n - 1]))
		n--;
	p->said[n] = '\0';
	return p->said;
}

static void plugin_finish(struct plugin *p, int err, struct spec_credential *answer,
			  const char *what)
{
	cleanup_free char *text = NULL;
	const char *said = words(p);

	if (err < 0 && asprintf(&text, "credential plugin \"%s\" %s%s%s", p->c->exec.command, what,
				*said ? ":\n" : "", said) < 0)
		text = NULL;
	plugin_wind_up(p);
	if (p->events.done)
		p->events.done(p->events.data, err, answer, text ? text : "");
	p->events.done = NULL;
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
	if (errors && *errors)
		errors[strlen(errors) - 1] = '\0';
	if (asprintf(&what, "gave no credential: %s", errors ? errors : "out of memory") < 0)
		what = NULL;
	plugin_finish(p, -EACCES, NULL, what ? what : "gave no credential");
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

	if (p->exited)
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
	if (!p->timer) {
		plugin_close(&p->process);
		return;
	}
	if (p->eofs == 2) {
		plugin_ended(p);
		return;
	}
	loop_timer_free(p->timer);
	p->timer = loop_timer_new(p->loop, PLUGIN_REST_MS, 0, plugin_on_timer, p);
	if (!p->timer)
		plugin_ended(p);
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
	if (++p->eofs == 2 && p->exited)
		plugin_ended(p);
}

static int plugin_keep(struct plugin *p, const char *bytes, size_t n)
{
	if (p->len + n > p->room) {
		size_t room = max_of(2 * p->room, sizeof(p->buf));
		char *answer = realloc(p->answer, room);

		if (!answer)
			return -ENOMEM;
		p->answer = answer;
		p->room = room;
	}
	memcpy(p->answer + p->len, bytes, n);
	p->len += n;
	return 0;
}

static void plugin_on_out(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct plugin *p = stream->data;

	if (n < 0)
		plugin_eof(p, stream);
	else if (p->len + (size_t)n > PLUGIN_OUT_MAX)
		plugin_finish(p, -EACCES, NULL, "gave no credential: its answer has over 1 MiB");
	else if (n > 0 && plugin_keep(p, buf->base, (size_t)n) < 0)
		plugin_finish(p, -ENOMEM, NULL, "gave no credential: out of memory");
}

/* Keep the end of what it says; its control characters are not the terminal's business. */
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

		if (p->said_len == PLUGIN_ERR_MAX) {
			p->said_len /= 2;
			memmove(p->said, p->said + PLUGIN_ERR_MAX - p->said_len, p->said_len);
		}
		p->said[p->said_len++] =
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
	cleanup(free_strings) char **argv = calloc(exec->n_args + 2, sizeof(*argv));

	if (!argv)
		return NULL;
	argv[0] = strdup(exec->command);
	for (size_t i = 0; argv[i] && i < exec->n_args; i++)
		argv[i + 1] = strdup(exec->args[i]);
	return argv[exec->n_args] ? take_ptr(argv) : NULL;
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
	cleanup(free_strings) char **env = NULL;
	size_t n = 0, of_us = 0;

	while (environ[of_us])
		of_us++;
	env = calloc(of_us + exec->n_env + 2, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < of_us; i++) {
		if (is_replaced(exec, environ[i]))
			continue;
		env[n] = strdup(environ[i]);
		if (!env[n++])
			return NULL;
	}
	for (size_t i = 0; i < exec->n_env; i++) {
		if (asprintf(&env[n], "%s=%s", exec->env[i].key, exec->env[i].value) < 0) {
			env[n] = NULL;
			return NULL;
		}
		n++;
	}
	if (asprintf(&env[n], "KUBERNETES_EXEC_INFO=%s", info) < 0) {
		env[n] = NULL;
		return NULL;
	}
	return take_ptr(env);
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
	err = uv_spawn(uv, &p->process, &options);
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
	struct plugin *p = argv && env ? calloc(1, sizeof(*p)) : NULL;
	int err;

	if (!p)
		return -ENOMEM;
	p->loop = loop;
	p->c = c;
	p->timer = loop_timer_new(loop, PLUGIN_LIMIT_MS, 0, plugin_on_timer, p);
	if (!p->timer) {
		free(p);
		return -ENOMEM;
	}
	err = plugin_spawn(p, argv, env);
	if (err < 0) {
		*ret_text = not_run(c, err);
		p->exited = true;
		plugin_wind_up(p);
		return err;
	}
	p->events = *events;
	*ret = p;
	return 0;
}
