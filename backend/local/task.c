/* SPDX-License-Identifier: MIT */
/*
 * A task is a connection to a helper's socket. A helper of this daemon is also a child process,
 * which this file reaps. All disk access is on the pool.
 *
 *	step      | what is under way                   | what ends it             | next
 *	PREPARING | pool: make socket and instructions, | the helper was started   | CONNECTED
 *	          | start the helper                    | it can't be started      | over
 *	          |                                     | SIGTERM or SIGKILL       | over
 *	CONNECTED | receiving the helper's messages     | end of file, after ENDED | over
 *	          |                                     | end of file, no ENDED    | SEEKING
 *	SEEKING   | pool: task_find                     | RUNS                     | CONNECTED
 *	          |                                     | OVER, NONE, DROPPED      | over
 *	          |                                     | UNKNOWN                  | PAUSING
 *	PAUSING   | a pause                             | the timer                | SEEKING
 *
 * kxfs regards a helper as dead only if its socket has no listener and NAME.new is not locked.
 * After any other error, such as a shortage of descriptors, a retry may reach the helper.
 */
#include "backend/local/task.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/process.h"
#include "backend/base/random.h"
#include "backend/base/work.h"
#include "spec/base/mem.h"

#define NEWS_A_TURN 16
/* Pauses between tries to connect to a helper. After SEEK_TRIES failures, kxfs warns. */
#define SEEK_MIN_MS 50u
#define SEEK_MAX_MS 2000u
#define SEEK_TRIES  5
/*
 * New tasks must leave this number of descriptors free for kxfs itself. For connections to helpers
 * of the last daemon, which kxfs makes at its start, half of this number is enough.
 */
#define FDS_KEPT 32

/* A helper that this daemon has started. */
struct child {
	pid_t pid;
	bool counted; /* the helper has entered the group */
	struct child *prev, *next;
};

struct tasks {
	struct loop *loop;
	struct group *group;
	struct child *children;
	bool hears; /* the handler of SIGCHLD is set */
	rlim_t max_fds;
};

enum step { PREPARING, CONNECTED, SEEKING, PAUSING };

struct task {
	struct tasks *tasks;
	enum step step;
	char *dir, *name;
	char *instructions; /* only in PREPARING */
	size_t instructions_len;
	int instructions_fd, listen_fd; /* descriptors 0 and 1 of the helper */
	int fd;				/* the connection to the helper, or -1 */
	pid_t helper;			/* in PREPARING: the helper's pid; 0: not started */
	struct loop_watch *watch;
	struct work work;	      /* the work on the pool, in PREPARING and SEEKING */
	struct task_found found;      /* in SEEKING: the result of WORK */
	struct loop_timer timer;      /* in PAUSING */
	struct backoff seek;	      /* pauses after failures to connect */
	atomic_bool released;	      /* task_release was called during WORK */
	int stop_sig;		      /* the newest of SIGSTOP and SIGCONT, or 0 */
	atomic_int end_sig;	      /* the newest of SIGTERM and SIGKILL, or 0 */
	int pid;		      /* the program's pid; 0: not known yet */
	unsigned long long pid_known; /* when PID was received, by process_clock */
	bool pid_reused;	      /* in SEEKING: PID belongs to another process now */
	bool has_end;
	struct task_end end;
	const struct task_events *events;
	void *data;
};

/* --- shared by all tasks --- */

/* Raise the limit of descriptors, because each task needs one. Programs get the old limit. */
struct tasks *tasks_new(struct loop *loop, struct group *group)
{
	struct tasks *tasks = new0(struct tasks);

	tasks->loop = loop;
	tasks->group = group;
	tasks->max_fds = process_allow_descriptors();
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

/*
 * Set A to the address of the socket NAME in the folder with the descriptor AT. The folder's own
 * path may be too long for an address, so use the path of AT in /proc.
 */
static socklen_t address(struct sockaddr_un *a, int at, const char *name)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%s" HELPER_SOCK, at, name);
	return sizeof(*a);
}

static int connect_to(const char *dir, const char *name)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cleanup_free char *folder = text_print("%s/" HELPER_DIR, dir);
	cleanup_fd int at = -1;
	struct sockaddr_un a;
	socklen_t len;

	if (fd < 0)
		return -errno;
	at = disk_open(AT_FDCWD, folder, O_PATH | O_DIRECTORY);
	if (at < 0)
		return at;
	len = address(&a, at, name);
	if (connect(fd, (const struct sockaddr *)&a, len) < 0)
		return -errno;
	return take_fd(&fd);
}

/*
 * True if more than KEPT descriptors remain free. FD was just opened. The kernel chooses the lowest
 * free descriptor, so all below FD are in use.
 */
static bool leaves(const struct tasks *tasks, int fd, int kept)
{
	return tasks->max_fds == RLIM_INFINITY || (rlim_t)fd + (rlim_t)kept < tasks->max_fds;
}

/* --- the connection --- */

static void task_free(struct task *task)
{
	loop_watch_free(task->watch);
	loop_timer_stop(&task->timer);
	if (task->fd >= 0)
		close(task->fd);
	if (task->instructions_fd >= 0)
		close(task->instructions_fd);
	if (task->listen_fd >= 0)
		close(task->listen_fd);
	free(task->instructions);
	free(task->dir);
	free(task->name);
	free(task);
}

static void task_over(struct task *task, const struct task_end *end)
{
	const struct task_events *events = task->events;
	void *data = task->data;
	struct task_end copy = *end;

	task_free(task);
	return events->ended(data, &copy);
}

static void seek_work(void *data)
{
	struct task *task = data;
	struct process_stat stat;

	task_find(task->tasks, task->dir, task->name, &task->found);
	task->pid_reused = task->pid > 1 && process_stat(task->pid, &stat) == 0 &&
			   stat.started > task->pid_known;
}

static void connected(struct task *task, int fd);

static void sought(void *data)
{
	struct task *task = data;
	const struct task_end killed = {.how = TASK_KILLED,
					.exit_code = -1,
					.finished = loop_time_ns()};

	if (task->released) {
		if (task->found.fd >= 0)
			close(task->found.fd);
		return task_free(task);
	}
	switch (task->found.state) {
	case TASK_RUNS:
		return connected(task, task->found.fd);
	case TASK_OVER:
		if (task->found.usage.last && task->events->used)
			task->events->used(task->data, &task->found.usage);
		return task_over(task, &task->found.end);
	case TASK_NONE:
	case TASK_DROPPED:
		/*
		 * While the program's process group exists, the kernel gives the program's pid to
		 * no other process.
		 */
		if (task->pid > 1 && !task->pid_reused)
			kill(-task->pid, SIGKILL);
		return task_over(task, &killed);
	case TASK_UNKNOWN:
		break;
	}
	task->step = PAUSING;
	if (task->seek.failures == SEEK_TRIES)
		diag(DIAG_WARNING,
		     "%s/" HELPER_DIR
		     "/%s: the helper process of this replica does not answer: %s; kxfs keeps "
		     "retrying",
		     task->dir, task->name, strerror(-task->found.err));
	loop_timer_set(&task->timer, backoff_next(&task->seek, 0));
}

static void seek(void *data)
{
	struct task *task = data;

	task->step = SEEKING;
	task->work.run = seek_work;
	task->work.done = sought;
	work_start(&task->work, task->tasks->loop);
}

static void hear(struct task *task, const struct helper_news *news)
{
	static const struct helper_ask seen = {.sig = HELPER_SEEN};

	switch (news->kind) {
	case HELPER_STARTED:
		task->pid = news->value;
		task->pid_known = process_clock();
		if (task->events->started)
			task->events->started(task->data, news->time);
		break;
	case HELPER_GROWN:
		/* Send this before the log is read. Later output then causes a new HELPER_GROWN. */
		(void)send(task->fd, &seen, sizeof(seen), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (task->events->grown)
			task->events->grown(task->data);
		break;
	case HELPER_LOST:
		if (task->events->lost)
			task->events->lost(task->data, news->value);
		break;
	case HELPER_ENDED:
		task->has_end = true;
		task->end = news->end;
		break;
	case HELPER_USED: /* on_news has handled it */
		break;
	}
}

/* Handle the end of the connection: the helper has ended, or could not send a message. */
static void connection_over(struct task *task)
{
	if (task->has_end)
		return task_over(task, &task->end);
	loop_watch_free(take_ptr(task->watch));
	close(task->fd);
	task->fd = -1;
	seek(task);
}

static void on_news(void *data)
{
	struct task *task = data;
	union {
		enum helper_kind kind;
		struct helper_news news;
		struct helper_used used;
	} got;

	for (int i = 0; i < NEWS_A_TURN; i++) {
		ssize_t n = recv(task->fd, &got, sizeof(got), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* If the helper left messages unread, recv fails once, and then succeeds. */
		if (n < 0 && errno == ECONNRESET)
			continue;
		if (n == sizeof(got.used) && got.kind == HELPER_USED &&
		    helper_usage_is_sane(&got.used.usage)) {
			if (task->events->used)
				task->events->used(task->data, &got.used.usage);
		} else if (n == sizeof(got.news) && got.kind != HELPER_USED) {
			hear(task, &got.news);
		} else {
			return connection_over(task);
		}
	}
}

static void send_signal(const struct task *task, int sig)
{
	const struct helper_ask ask = {.sig = sig};

	/* If this fails because the helper has ended, the connection ends, too. */
	if (sig && send(task->fd, &ask, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		diag(DIAG_DEBUG, "%s: %s: signal %d: %s", task->dir, task->name, sig,
		     strerror(errno));
}

/* The helper may not have received what was sent on an earlier connection, so repeat it. */
static void connected(struct task *task, int fd)
{
	task->step = CONNECTED;
	task->fd = fd;
	backoff_reset(&task->seek);
	task->watch = loop_watch_new(task->tasks->loop, fd, false, on_news, task);
	assert(task->watch); /* a socket can be polled */
	send_signal(task, task->stop_sig);
	send_signal(task, task->end_sig);
}

static struct task *task_new(struct tasks *tasks, const char *dir, const char *name,
			     const struct task_events *events, void *data)
{
	struct task *task = new0(struct task);

	task->tasks = tasks;
	task->dir = text_copy(dir);
	task->name = text_copy(name);
	task->instructions_fd = task->listen_fd = task->fd = -1;
	task->work = (struct work){.group = tasks->group, .data = task};
	loop_timer_init(&task->timer, tasks->loop, seek, task);
	task->seek = backoff_begin(SEEK_MIN_MS, SEEK_MAX_MS);
	task->events = events;
	task->data = data;
	return task;
}

struct task *task_adopt(struct tasks *tasks, const char *dir, const char *name, int fd,
			const struct task_events *events, void *data)
{
	struct task *task = task_new(tasks, dir, name, events, data);

	if (fd >= 0)
		connected(task, fd);
	else
		seek(task);
	return task;
}

/* --- starting --- */

/* Reap helpers that have exited. A task ends later, when its connection ends. */
static void reap(void *data)
{
	struct tasks *tasks = data;
	struct group *group = tasks->group;
	struct child *child, *next;
	size_t n = 0;

	DL_FOREACH_SAFE(tasks->children, child, next) {
		if (waitpid(child->pid, NULL, WNOHANG) == 0)
			continue;
		DL_DELETE(tasks->children, child);
		n += child->counted;
		free(child);
	}
	while (n-- > 0)
		group_leave(group);
}

static void add_child(struct tasks *tasks, pid_t pid, bool counted)
{
	struct child *child = new0(struct child);

	tasks->hears = tasks->hears || loop_signal(tasks->loop, SIGCHLD, reap, tasks) == 0;
	child->pid = pid;
	child->counted = counted && tasks->hears;
	DL_APPEND(tasks->children, child);
	if (child->counted)
		group_enter(tasks->group);
	reap(tasks); /* the helper may have ended before SIGCHLD had a handler */
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

static void print_instructions(struct task *task, const struct task_config *c)
{
	size_t n_args = 0;
	FILE *f = open_memstream(&task->instructions, &task->instructions_len);

	if (!f)
		mem_out();
	while (c->args[n_args])
		n_args++;
	put(f, c->dir);
	put(f, c->key);
	put(f, c->name);
	put(f, c->cwd);
	fprintf(f, "%ju%c%" PRId64 "%c%u%c%" PRIx64 "%c%zu%c",
		(uintmax_t)process_given_descriptors(), '\0', c->limit_ms, '\0', c->grace_ms, '\0',
		c->gpus, '\0', n_args, '\0');
	for (char *const *arg = c->args; *arg; arg++)
		put(f, *arg);
	for (char *const *env = c->env; *env; env++)
		put(f, *env);
	if (fclose(f) != 0)
		mem_out();
}

/* Remove the files of an earlier start of the attempt, and make the helper's socket. */
static int listen_for(const struct task *task)
{
	static const char *const ends[] = {"", HELPER_NEW, HELPER_SOCK};
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cleanup_free char *folder = text_print("%s/" HELPER_DIR, task->dir);
	cleanup_fd int at = -1;
	struct sockaddr_un a;
	socklen_t len;
	int err;

	if (fd < 0)
		return -errno;
	err = disk_mkdir(AT_FDCWD, folder);
	/* The output (backend/output) may make the job's folder at the same time. */
	if (err == -ENOENT) {
		(void)disk_mkdir(AT_FDCWD, task->dir);
		err = disk_mkdir(AT_FDCWD, folder);
	}
	if (err < 0 && err != -EEXIST)
		return err;
	at = disk_open(AT_FDCWD, folder, O_PATH | O_DIRECTORY);
	if (at < 0)
		return at;
	for (size_t i = 0; i < array_size(ends); i++) {
		cleanup_free char *file = text_print("%s%s", task->name, ends[i]);

		err = disk_unlink(at, file);
		if (err < 0 && err != -ENOENT)
			return err;
	}
	len = address(&a, at, task->name);
	if (bind(fd, (const struct sockaddr *)&a, len) < 0 || listen(fd, 8) < 0)
		return -errno;
	return take_fd(&fd);
}

static void prepare_work(void *data)
{
	struct task *task = data;
	char name[] = HELPER_NAME;
	char *argv[] = {name, NULL};
	int err;

	task->instructions_fd = memfd_create("instructions", MFD_CLOEXEC);
	err = task->instructions_fd < 0 ? -errno
					: file_write_all(task->instructions_fd, task->instructions,
							 task->instructions_len);
	if (!err)
		task->listen_fd = err = listen_for(task);
	if (err >= 0)
		task->fd = err = connect_to(task->dir, task->name);
	if (err >= 0 && !leaves(task->tasks, task->fd, FDS_KEPT))
		err = -EMFILE;
	/* The disk may have been slow. Don't start if the start was cancelled meanwhile. */
	if (err >= 0 && !atomic_load(&task->released) && !atomic_load(&task->end_sig))
		err = spawn_self(argv, environ, (int[]){task->instructions_fd, task->listen_fd, -1},
				 &task->helper);
	task->work.err = min_of(err, 0);
}

static void prepared(void *data)
{
	struct task *task = data;
	struct task_end end = {.how = TASK_NOT_STARTED,
			       .why = TASK_HELPER,
			       .err = -task->work.err,
			       .exit_code = -1};
	int fd = task->fd;

	if (task->helper)
		add_child(task->tasks, task->helper, !task->released);
	if (task->released)
		return task_free(task);
	task->events->prepared(task->data);
	if (!task->helper && !end.err) {
		end.how = TASK_ENDED;
		end.sig = task->end_sig;
	}
	if (!task->helper)
		return task_over(task, &end);
	close(task->instructions_fd);
	close(task->listen_fd);
	task->instructions_fd = task->listen_fd = task->fd = -1;
	free(take_ptr(task->instructions));
	connected(task, fd);
}

struct task *task_start(struct tasks *tasks, const struct task_config *config,
			const struct task_events *events, void *data)
{
	struct task *task = task_new(tasks, config->dir, config->name, events, data);

	print_instructions(task, config);
	task->step = PREPARING;
	task->work.run = prepare_work;
	task->work.done = prepared;
	work_start(&task->work, tasks->loop);
	return task;
}

/* --- finding an attempt, signals, cleanup --- */

/*
 * Find out whether the helper of an attempt lives although it does not listen. Return TASK_NONE if
 * there is no NAME.new, or TASK_DROPPED if NAME.new is not locked. Otherwise the helper may still
 * run: return TASK_UNKNOWN, and set *RET_ERR to the reason.
 */
static enum task_state look_for_lock(const char *dir, const char *name, int *ret_err)
{
	cleanup_free char *path = text_print("%s/" HELPER_DIR "/%s" HELPER_NEW, dir, name);
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);

	if (fd == -ENOENT)
		return TASK_NONE;
	*ret_err = fd < 0 ? fd : -EWOULDBLOCK;
	if (fd < 0 || (flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK))
		return TASK_UNKNOWN;
	return TASK_DROPPED;
}

void task_find(struct tasks *tasks, const char *dir, const char *name, struct task_found *ret)
{
	int fd = connect_to(dir, name);

	*ret = (struct task_found){.fd = -1, .state = TASK_UNKNOWN, .err = fd};
	if (fd >= 0 && leaves(tasks, fd, FDS_KEPT / 2)) {
		*ret = (struct task_found){.fd = fd, .state = TASK_RUNS};
		return;
	}
	if (fd >= 0) {
		close(fd);
		ret->err = -EMFILE;
		return;
	}
	if (fd != -ENOENT && fd != -ECONNREFUSED)
		return;
	ret->err = helper_end_read(dir, name, &ret->end, &ret->usage);
	if (ret->err == 0)
		ret->state = TASK_OVER;
	else if (ret->err == -EINVAL)
		ret->state = TASK_DROPPED; /* the attempt is over, but the file NAME is damaged */
	else if (ret->err == -ENOENT)
		ret->state = look_for_lock(dir, name, &ret->err);
}

void task_signal(struct task *task, int sig)
{
	if (sig == SIGSTOP || sig == SIGCONT)
		task->stop_sig = sig;
	else
		task->end_sig = sig;
	if (task->step == CONNECTED)
		send_signal(task, sig);
}

void task_release(struct task *task)
{
	if (!task)
		return;
	task->released = true;
	if (task->step != PREPARING && task->step != SEEKING)
		task_free(task);
}

static int clean_one(void *data, int at, const char *name, unsigned char type)
{
	(void)disk_unlink(at, name);
	return 0;
}

void task_clean(const char *dir)
{
	cleanup_free char *path = text_print("%s/" HELPER_DIR, dir);
	struct stat st;
	int err;

	/* At a start, few finished jobs have this directory. stat is cheaper than rmdir. */
	if (disk_stat(AT_FDCWD, path, &st) == -ENOENT)
		return;
	err = disk_rmdir(AT_FDCWD, path);
	if (err == 0 || err == -ENOENT)
		return;
	(void)disk_list(AT_FDCWD, path, clean_one, NULL);
	(void)disk_rmdir(AT_FDCWD, path);
}

/* A helper of an orphan. TASK reports when the helper ends. */
struct helper_of {
	struct orphan *orphan;
	char *name;
	int fd;		   /* -1 if the helper lives, but no longer listens */
	struct task *task; /* NULL if the task has ended, or is not started yet */
};

struct orphan {
	struct tasks *tasks;
	char *dir;
	struct helper_of *v;
	size_t n;
	size_t live;
	uint64_t gpus;
	struct orphan **list;
	loop_fn fn;
	void *data;
	struct orphan *prev, *next;
};

/* --- orphans --- */

static int find_one(void *data, int at, const char *name, unsigned char type)
{
	struct orphan *o = data;
	cleanup_free char *task = NULL;
	struct task_found found;

	if (!has_end(name, HELPER_SOCK))
		return 0;
	task = mem_copy(name, strlen(name) - strlen(HELPER_SOCK));
	task_find(o->tasks, o->dir, task, &found);
	if (found.state != TASK_RUNS && found.state != TASK_UNKNOWN)
		return 0;
	o->gpus |= helper_gpus_read(o->dir, task);
	o->v = mem_more(o->v, o->n, sizeof(*o->v));
	o->v[o->n++] = (struct helper_of){.orphan = o, .name = take_ptr(task), .fd = found.fd};
	return 0;
}

struct orphan *orphan_find(struct tasks *tasks, const char *dir)
{
	cleanup_free char *folder = text_print("%s/" HELPER_DIR, dir);
	struct orphan *o = new0(struct orphan);

	o->tasks = tasks;
	o->dir = text_copy(dir);
	(void)disk_list(AT_FDCWD, folder, find_one, o);
	if (o->n)
		return o;
	orphan_free(o);
	return NULL;
}

void orphan_free(struct orphan *o)
{
	for (size_t i = 0; i < o->n; i++) {
		task_release(o->v[i].task);
		if (o->v[i].fd >= 0)
			close(o->v[i].fd);
		free(o->v[i].name);
	}
	free(o->v);
	free(o->dir);
	free(o);
}

static void on_orphan_ended(void *data, const struct task_end *end)
{
	struct helper_of *h = data;
	struct orphan *o = h->orphan;
	const loop_fn fn = o->fn;
	void *arg = o->data;

	h->task = NULL;
	if (--o->live)
		return;
	DL_DELETE(*o->list, o);
	orphan_free(o);
	return fn(arg);
}

void orphan_watch(struct orphan **list, struct orphan *o, loop_fn fn, void *data)
{
	static const struct task_events events = {.ended = on_orphan_ended};

	o->list = list;
	o->fn = fn;
	o->data = data;
	o->live = o->n;
	DL_APPEND(*list, o);
	for (size_t i = 0; i < o->n; i++) {
		struct helper_of *h = &o->v[i];
		const int fd = h->fd;

		h->fd = -1;
		h->task = task_adopt(o->tasks, o->dir, h->name, fd, &events, h);
	}
}

void orphans_take(const struct orphan *list, struct spec_slots *slots)
{
	for (const struct orphan *o = list; o; o = o->next) {
		slots->running++;
		slots->taken |= o->gpus;
	}
}

void orphans_release(struct orphan **list)
{
	struct orphan *o, *next;

	DL_FOREACH_SAFE(*list, o, next) {
		DL_DELETE(*list, o);
		orphan_free(o);
	}
}
