/* SPDX-License-Identifier: MIT */
/*
 * Tasks: helpers as the daemon sees them. A task is a connection to the helper's socket, made in the same way
 * whether this daemon has started the helper or an earlier one. When the connection ends, the helper has ended.
 * A helper that was started here is also a child process, which libuv waits for.
 */
#include "backend/local/task.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/process.h"
#include "backend/base/uv.h"
#include "spec/base/mem.h"

#define NEWS_A_TURN 16
#define HELLO_MS    200 /* how long a helper has to say that its program runs */

/* A helper that was started here. */
struct child {
	uv_process_t process;
	struct tasks *tasks;
	bool counted; /* in the group */
	struct child *prev, *next;
};

struct tasks {
	struct loop *loop;
	struct group *group;
	struct child *children;
};

struct task {
	struct tasks *tasks;
	char *dir, *name;
	int fd;
	struct loop_watch *watch;
	int pid; /* of the program; 0: not known yet */
	bool has_end;
	struct task_end end;
	const struct task_events *events;
	void *data;
};

/* --- what all share --- */

/* Each task needs a descriptor: raise our limit as far as possible; programs get the limit that was before. */
struct tasks *tasks_new(struct loop *loop, struct group *group)
{
	struct tasks *tasks = new0(struct tasks);

	tasks->loop = loop;
	tasks->group = group;
	process_allow_descriptors();
	return tasks;
}

void tasks_free(struct tasks *tasks)
{
	struct child *child, *next;

	if (!tasks)
		return;
	DL_FOREACH_SAFE(tasks->children, child, next)
		free(child);
	free(tasks);
}

/* --- names --- */

static char *file_of(const char *dir, const char *name, const char *end)
{
	return text_print("%s/" HELPER_DIR "/%s%s", dir, name, end);
}

/* The address of a socket in a folder whose path may be too long for one: through the descriptor AT of the folder. */
static socklen_t address(struct sockaddr_un *a, int at, const char *name)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%s" HELPER_SOCK, at, name);
	return sizeof(*a);
}

static int open_folder(const char *dir)
{
	cleanup_free char *path = text_print("%s/" HELPER_DIR, dir);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

static int connect_to(const char *dir, const char *name)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cleanup_fd int at = -1;
	struct sockaddr_un a;
	socklen_t len;

	if (fd < 0)
		return -errno;
	at = open_folder(dir);
	if (at < 0)
		return at;
	len = address(&a, at, name);
	if (connect(fd, (const struct sockaddr *)&a, len) < 0)
		return -errno;
	return take_fd(&fd);
}

/* --- news --- */

static void task_free(struct task *task)
{
	loop_watch_free(task->watch);
	close(task->fd);
	free(task->dir);
	free(task->name);
	free(task);
}

/* The helper has ended. If it has not said how the attempt ended, a file says so; if none does, it was killed. */
static void task_over(struct task *task)
{
	const struct task_events *events = task->events;
	void *data = task->data;
	struct task_end end = task->end;

	if (!task->has_end && helper_end_read(task->dir, task->name, &end) < 0) {
		end = (struct task_end){.how = TASK_KILLED,
					.exit_code = -1,
					.finished = loop_time_ns()};
		if (task->pid > 1)
			kill(-task->pid, SIGKILL);
	}
	task_free(task);
	events->ended(data, &end);
}

static void hear(struct task *task, const struct helper_news *news)
{
	static const struct helper_ask seen = {.sig = HELPER_SEEN};

	switch (news->kind) {
	case HELPER_STARTED:
		task->pid = news->value;
		task->events->started(task->data, news->time);
		break;
	case HELPER_GROWN:
		/* To be sent before the log is read: growth after that is reported again. */
		(void)send(task->fd, &seen, sizeof(seen), MSG_NOSIGNAL | MSG_DONTWAIT);
		task->events->grown(task->data);
		break;
	case HELPER_LOST:
		task->events->lost(task->data, news->value);
		break;
	case HELPER_ENDED:
		task->has_end = true;
		task->end = news->end;
		break;
	}
}

static void on_news(void *data)
{
	struct task *task = data;
	struct helper_news news;

	for (int i = 0; i < NEWS_A_TURN; i++) {
		ssize_t n = recv(task->fd, &news, sizeof(news), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* Said once, before what the helper has said last, if it has left something unread. */
		if (n < 0 && errno == ECONNRESET)
			continue;
		if (n != sizeof(news))
			return task_over(task);
		hear(task, &news);
	}
}

struct task *task_adopt(struct tasks *tasks, const char *dir, const char *name, int fd,
			const struct task_events *events, void *data)
{
	struct task *task = new0(struct task);

	task->tasks = tasks;
	task->dir = text_copy(dir);
	task->name = text_copy(name);
	task->fd = fd;
	task->events = events;
	task->data = data;
	task->watch = loop_watch_new(tasks->loop, fd, false, on_news, task);
	if (!task->watch)
		mem_out();
	return task;
}

/* --- starting --- */

static void child_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void child_exited(uv_process_t *process, int64_t status, int sig)
{
	struct child *child = process->data;
	struct tasks *tasks = child->tasks;

	(void)status, (void)sig; /* the end of its connection is what counts */
	DL_DELETE(tasks->children, child);
	uv_close((uv_handle_t *)process, child_closed);
	if (child->counted)
		group_leave(tasks->group);
}

void tasks_outlive(struct tasks *tasks)
{
	struct child *child;

	DL_FOREACH(tasks->children, child) {
		if (child->counted)
			group_leave(tasks->group);
		child->counted = false;
	}
}

static void put(FILE *f, const char *text)
{
	fwrite(text, strlen(text) + 1, 1, f);
}

/* Write the order into a file in memory. Its descriptor or a negative errno. */
static int write_order(const struct task_config *c)
{
	cleanup_fd int fd = memfd_create("order", MFD_CLOEXEC);
	cleanup_free char *text = NULL;
	size_t len = 0, n_args = 0;
	FILE *f;
	int err;

	if (fd < 0)
		return -errno;
	f = open_memstream(&text, &len);
	if (!f)
		mem_out();
	while (c->args[n_args])
		n_args++;
	put(f, c->key);
	put(f, c->name);
	put(f, c->cwd);
	fprintf(f, "%ju%c%zu%c", (uintmax_t)process_given_descriptors(), '\0', n_args, '\0');
	for (char *const *arg = c->args; *arg; arg++)
		put(f, *arg);
	for (char *const *env = c->env; *env; env++)
		put(f, *env);
	if (fclose(f) != 0)
		mem_out();
	err = file_write_all(fd, text, len);
	return err < 0 ? err : take_fd(&fd);
}

/* Make the helper's socket, after removing what an earlier start of the attempt has left. */
static int listen_for(const struct task_config *c)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cleanup_free char *folder = text_print("%s/" HELPER_DIR, c->dir);
	cleanup_fd int at = -1;
	struct sockaddr_un a;
	socklen_t len;

	if (fd < 0)
		return -errno;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	for (size_t i = 0; i < 3; i++) {
		static const char *const ends[] = {"", HELPER_NEW, HELPER_SOCK};
		cleanup_free char *path = file_of(c->dir, c->name, ends[i]);

		if (unlink(path) < 0 && errno != ENOENT)
			return -errno;
	}
	at = open_folder(c->dir);
	if (at < 0)
		return at;
	len = address(&a, at, c->name);
	if (bind(fd, (const struct sockaddr *)&a, len) < 0 || listen(fd, 8) < 0)
		return -errno;
	return take_fd(&fd);
}

static int spawn(struct tasks *tasks, const struct task_config *c, int order_fd, int listen_fd)
{
	struct child *child = new0(struct child);
	char name[] = HELPER_NAME, self[] = "/proc/self/exe";
	char *argv[] = {name, NULL};
	uv_stdio_container_t stdio[3] = {
		{.flags = UV_INHERIT_FD, .data.fd = order_fd},
		{.flags = UV_INHERIT_FD, .data.fd = listen_fd},
		{.flags = UV_IGNORE},
	};
	uv_process_options_t options = {
		.exit_cb = child_exited,
		.file = self,
		.args = argv,
		.cwd = (char *)(uintptr_t)c->dir,
		.flags = UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = stdio,
	};
	int err;

	child->process.data = child;
	child->tasks = tasks;
	err = uv_spawn(loop_uv(tasks->loop), &child->process, &options);
	if (err < 0) {
		uv_close((uv_handle_t *)&child->process, child_closed);
		return err;
	}
	DL_APPEND(tasks->children, child);
	child->counted = true;
	group_enter(tasks->group);
	return 0;
}

int task_start(struct tasks *tasks, const struct task_config *config,
	       const struct task_events *events, void *data, struct task **ret)
{
	cleanup_fd int order_fd = write_order(config);
	cleanup_fd int listen_fd = -1, fd = -1;
	int err;

	if (order_fd < 0)
		return order_fd;
	listen_fd = listen_for(config);
	if (listen_fd < 0)
		return listen_fd;
	/* To be done before there is a helper: once it runs nothing may fail. */
	fd = connect_to(config->dir, config->name);
	if (fd < 0)
		return fd;
	err = spawn(tasks, config, order_fd, listen_fd);
	if (err < 0)
		return err;
	*ret = task_adopt(tasks, config->dir, config->name, take_fd(&fd), events, data);
	return 0;
}

/* --- afterwards --- */

/* Peek at the first message of a helper whose program runs; the task that adopts it reads it again. */
static int64_t peek_started(int fd)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};
	struct helper_news news;

	if (poll(&in, 1, HELLO_MS) != 1 ||
	    recv(fd, &news, sizeof(news), MSG_PEEK | MSG_DONTWAIT) != sizeof(news))
		return 0;
	return news.kind == HELPER_STARTED ? news.time : 0;
}

void task_find(const char *dir, const char *name, struct task_found *ret)
{
	cleanup_free char *begun = file_of(dir, name, HELPER_NEW);

	*ret = (struct task_found){.fd = connect_to(dir, name)};
	if (ret->fd >= 0) {
		ret->state = TASK_RUNS;
		ret->started = peek_started(ret->fd);
		return;
	}
	if (ret->fd != -ENOENT && ret->fd != -ECONNREFUSED)
		diag(DIAG_WARNING, "%s/" HELPER_DIR "/%s" HELPER_SOCK ": %s", dir, name,
		     strerror(-ret->fd));
	ret->fd = -1;
	if (helper_end_read(dir, name, &ret->end) == 0)
		ret->state = TASK_OVER;
	else
		ret->state = access(begun, F_OK) == 0 ? TASK_DROPPED : TASK_NONE;
}

void task_signal(struct task *task, int sig)
{
	const struct helper_ask ask = {.sig = sig};

	/* A helper that has ended takes no message; the end of its connection is on its way. */
	if (send(task->fd, &ask, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		diag(DIAG_DEBUG, "%s: %s: signal %d: %s", task->dir, task->name, sig,
		     strerror(errno));
}

void task_release(struct task *task)
{
	if (task)
		task_free(task);
}

void task_clean(const char *dir)
{
	cleanup_free char *path = text_print("%s/" HELPER_DIR, dir);
	struct dirent *entry;
	DIR *folder;

	/*
	 * At a start this is called for each finished job, nearly all of which have no such folder; to look is
	 * cheaper.
	 */
	if ((access(path, F_OK) < 0 && errno == ENOENT) || rmdir(path) == 0 || errno == ENOENT)
		return;
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	rmdir(path);
}
