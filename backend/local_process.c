/* SPDX-License-Identifier: MIT */
/*
 * One replica's process: its arguments and environment, starting it in a session of its own,
 * signalling its group. What it leaves behind is found by the marks in its
 * environment (local_scan.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/local.h"
#include "spec/macro.h"
#include "spec/name.h"

/* Which host rank 0 is on, by which variable ($rank0_env). */
#define RANK0 "TORCHX_RANK0_HOST"

struct strings {
	char **v; /* NULL-terminated once strings_end */
	size_t n;
	size_t room;
};

static void strings_clear(struct strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
}

/* Append TEXT, which is taken over also on failure. */
static int strings_take(struct strings *s, char *text)
{
	if (text && s->n + 1 >= s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		char **v = realloc(s->v, room * sizeof(*v));

		if (!v) {
			free(text);
			return -ENOMEM;
		}
		s->v = v;
		s->room = room;
	}
	if (!text)
		return -ENOMEM;
	s->v[s->n++] = text;
	s->v[s->n] = NULL;
	return 0;
}

static int strings_pair(struct strings *s, const char *key, const char *value)
{
	char *text;

	return strings_take(s, asprintf(&text, "%s=%s", key, value) < 0 ? NULL : text);
}

static int args_make(struct strings *s, const struct spec_role *role, const struct spec_macros *m)
{
	int err = strings_take(s, strdup(role->entrypoint));

	for (size_t i = 0; err == 0 && i < role->n_args; i++)
		err = strings_take(s, spec_macro_expand(role->args[i], m));
	return err;
}

static size_t key_len(const char *pair)
{
	return strcspn(pair, "=");
}

/* A variable as it was set, and how late; the latest counts. */
struct setting {
	char *pair;
	size_t order;
};

static int by_key_and_order(const void *a, const void *b)
{
	const struct setting *x = a, *y = b;
	size_t nx = key_len(x->pair), ny = key_len(y->pair);
	int cmp = memcmp(x->pair, y->pair, min_of(nx, ny));

	if (cmp != 0)
		return cmp;
	if (nx != ny)
		return nx < ny ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* Of variables that were set several times keep the last. */
static int env_unique(struct strings *s)
{
	cleanup_free struct setting *all = calloc(s->n + 1, sizeof(*all));
	size_t kept = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++)
		all[i] = (struct setting){s->v[i], i};
	qsort(all, s->n, sizeof(*all), by_key_and_order);
	for (size_t i = 0; i < s->n; i++) {
		size_t len = key_len(all[i].pair);

		if (i + 1 < s->n && key_len(all[i + 1].pair) == len &&
		    memcmp(all[i].pair, all[i + 1].pair, len) == 0)
			free(all[i].pair);
		else
			s->v[kept++] = all[i].pair;
	}
	s->n = kept;
	s->v[kept] = NULL;
	return 0;
}

/* The daemon's own environment, then the role's, then what kxfs itself relies on. */
static int env_make(struct strings *s, const struct local_replica *rep, const char *name,
		    const struct spec_macros *m)
{
	const struct local_job *job = rep->job;
	const struct spec_role *role = local_replica_role(rep);
	cleanup_free char *uri = NULL;
	int err = 0;

	for (char **e = environ; err == 0 && *e; e++)
		err = strings_take(s, strdup(*e));
	for (size_t i = 0; err == 0 && i < role->env.n; i++) {
		cleanup_free char *value = spec_macro_expand(role->env.v[i].value, m);

		err = value ? strings_pair(s, role->env.v[i].key, value) : -ENOMEM;
	}
	if (asprintf(&uri, "local://torchx/%s", job->rec->id) < 0) {
		uri = NULL;
		return -ENOMEM;
	}
	if (err == 0)
		err = strings_pair(s, "TORCHX_JOB_ID", uri);
	if (err == 0)
		err = strings_pair(s, RANK0, "localhost");
	if (err == 0)
		err = strings_pair(s, "KXFS_JOB", job->rec->id);
	if (err == 0)
		err = strings_pair(s, "KXFS_REPLICA", name);
	if (err == 0)
		err = strings_take(s, strdup(job->l->mark));
	return err < 0 ? err : env_unique(s);
}

/* Is FILE found on the PATH of ENV, as a file that can be executed? */
static bool on_path(const struct strings *env, const char *file)
{
	const char *path = "/bin:/usr/bin";

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], "PATH=", 5) == 0)
			path = env->v[i] + 5;
	for (;;) {
		size_t len = strcspn(path, ":");
		cleanup_free char *full = NULL;

		if (asprintf(&full, "%.*s/%s", len ? (int)len : 1, len ? path : ".", file) < 0) {
			full = NULL;
			return true;
		}
		if (access(full, X_OK) == 0)
			return true;
		if (!path[len])
			return false;
		path += len + 1;
	}
}

/* Why starting failed with ERR; exec's errno alone does not say of which file. */
static char *why_not(const struct local_replica *rep, const struct strings *env, int err)
{
	const char *entrypoint = local_replica_role(rep)->entrypoint;
	const char *dir = rep->job->rec->work_dir;
	struct stat st;
	char *text;
	int n;

	if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || access(dir, X_OK) < 0)
		n = asprintf(&text, "working directory \"%s\": %s", dir, strerror(-err));
	else if (err == -ENOENT && !strchr(entrypoint, '/') && !on_path(env, entrypoint))
		n = asprintf(&text, "exec: \"%s\": not found in PATH", entrypoint);
	else
		n = asprintf(&text, "exec: \"%s\": %s", entrypoint, strerror(-err));
	return n < 0 ? NULL : text;
}

static void child_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void child_exited(uv_process_t *process, int64_t status, int sig)
{
	struct local_child *child = process->data;
	struct local_replica *rep = child->rep;

	uv_close((uv_handle_t *)process, child_closed);
	if (!rep)
		return;
	atomic_fetch_sub(&rep->job->l->n_processes, 1);
	rep->child = NULL;
	/*
	 * The rest of the group, at once: its number stays taken while a member is left. The
	 * scan finds the others.
	 */
	kill(-process->pid, SIGKILL);
	local_replica_exited(rep, (int)status, sig);
}

/* Fork and exec. The handle must be closed even when that fails. */
static int child_spawn(struct local_replica *rep, int fd, char **argv, char **env)
{
	struct local_child *child = calloc(1, sizeof(*child));
	uv_stdio_container_t stdio[3] = {
		{.flags = UV_IGNORE},
		{.flags = UV_INHERIT_FD, .data.fd = fd},
		{.flags = UV_INHERIT_FD, .data.fd = fd},
	};
	uv_process_options_t options = {
		.exit_cb = child_exited,
		.file = argv[0],
		.args = argv,
		.env = env,
		.cwd = rep->job->rec->work_dir,
		.flags = UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = stdio,
	};
	int err;

	if (!child)
		return -ENOMEM;
	child->process.data = child;
	err = uv_spawn(loop_uv(rep->job->l->b->loop), &child->process, &options);
	if (err < 0) {
		uv_close((uv_handle_t *)&child->process, child_closed);
		return err;
	}
	child->rep = rep;
	rep->child = child;
	rep->rec->pid = child->process.pid;
	rep->rec->pid_start = local_process_birth(child->process.pid);
	return 0;
}

int local_process_start(struct local_replica *rep, int fd, char **ret_text)
{
	const struct spec_role *role = local_replica_role(rep);
	cleanup(strings_clear) struct strings args = {0}, env = {0};
	cleanup_free char *name = spec_name_replica_dir(role->name, rep->rec->id);
	char id[16];
	struct spec_macros m = {
		.app_id = rep->job->rec->id,
		.replica_id = id,
		.img_root = "",
		.base_img_root = "DEPRECATED",
		.rank0_env = RANK0,
	};
	int err = name ? 0 : -ENOMEM;

	*ret_text = NULL;
	snprintf(id, sizeof(id), "%u", rep->rec->id);
	if (err == 0)
		err = args_make(&args, role, &m);
	if (err == 0)
		err = env_make(&env, rep, name, &m);
	if (err == 0)
		err = child_spawn(rep, fd, args.v, env.v);
	if (err < 0) {
		*ret_text = why_not(rep, &env, err);
		return err;
	}
	atomic_fetch_add(&rep->job->l->n_processes, 1);
	return 0;
}

void local_process_signal(const struct local_replica *rep, int sig)
{
	/* ESRCH: it has ended and libuv has yet to say so; EPERM: all that is left is another user's. */
	if (rep->child && kill(-rep->child->process.pid, sig) < 0)
		diag(DIAG_DEBUG, "%s: signal %d: %s", rep->job->rec->id, sig, strerror(errno));
}

uint64_t local_process_birth(pid_t pid)
{
	char path[32], text[1024];
	cleanup_fd int fd = -1;
	unsigned long long birth;
	const char *p;
	ssize_t n;
	char state;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The name, in parentheses, may hold anything: what follows begins after the last one. */
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1,
			 " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			 "%*s %llu",
			 &state, &birth) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : birth;
}
