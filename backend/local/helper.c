/* SPDX-License-Identifier: MIT */
/*
 * The helper of one attempt of a replica: a process of its own, which is kxfs itself started again (task.c), so that
 * it goes on when the daemon dies. It has two processes.
 *
 *	helper	writes the program's output, a pipe, to logs/KEY, and the times of its lines to lines/KEY; talks to
 *		the daemon; writes how the attempt has ended to disk before it ends itself.
 *	guard	its child and the program's parent. When the program has ended it kills all that is left.
 *
 * Both are subreapers: every process that a program starts comes to the guard when its parent ends, whatever it does
 * with sessions and environments. A program that kills its parent kills the guard; then all its processes come to the
 * helper, which kills them.
 * The guard ends a program that runs longer than its limit of time: it waits for no disk.
 * When the helper is killed, the guard gets a signal and kills all. A program whose guard is killed is killed by the
 * kernel. Nothing a program does to its parent reaches the daemon or another replica.
 *
 * What is printed is taken as it comes, and nothing but a full disk or SIGKILL makes the helper lose a byte. One
 * thread each, but for that of the guard which looks at what is used (look.h). Both ignore the signals by which people
 * end "all of kxfs". This file is a whole program, and longer than others for that.
 */
#include "backend/local/helper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <linux/sockios.h>

#include "backend/backend.h"
#include "backend/base/file.h"
#include "backend/base/process.h"
#include "backend/base/spawn.h"
#include "backend/local/descent.h"
#include "backend/local/look.h"
#include "backend/output/lines.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

#define GUARD_NAME   "job-guard"
#define ORDER_MAX    (64u << 20)
#define COPY_MAX     LINES_SPAN /* what a pipe holds, and as much as lines_add takes at once */
#define KILL_MS	     5000 /* what was sent SIGKILL has gone by then, unless it can't be killed */
#define KILL_LOOK_MS 10
#define LATE_MS	     2000 /* for processes of others that still hold the pipe */
#define END_ROOM     512  /* bytes of the text of an end */
#define USED	     "used"
#define END_TRIES    60 /* a second each, to write the end to a disk that is full */

/* The kernel sends it to the guard when the helper has ended. By default it is ignored. */
#define ORPHAN_SIGNAL SIGURG

struct order {
	char *text;
	const char *dir, *key, *name, *cwd;
	rlim_t nofile;
	int64_t limit_ms, grace_ms;
	char **args, **env;
};

enum guard_kind { GUARD_STARTED, GUARD_FAILED, GUARD_USED, GUARD_OVER, GUARD_LEFT };

/*
 * From the guard to the helper, in this order: STARTED or FAILED, USED now and then, OVER, USED for the last time, and
 * LEFT if something can't be killed.
 */
struct guard_news {
	enum guard_kind kind;
	enum task_why why;
	int value;		 /* STARTED: pid; FAILED: errno; OVER: as of waitpid */
	bool timed_out;		 /* OVER: it was sent SIGTERM for its limit before it ended */
	struct task_usage usage; /* USED */
};

struct helper {
	struct order order;
	pid_t guard, program;
	int listen_fd, conn_fd; /* -1: no daemon is connected */
	int guard_fd;		/* the guard's news; -1: it has ended */
	int in_fd;		/* the output; -1: there is no more */
	int log_fd, lines_fd;	/* lines_fd: -1: the table can't be kept */
	int end_fd;		/* NAME.new */
	struct lines_encoder lines;
	bool poked, grown; /* HELPER_GROWN was sent and not answered; the log has grown since */
	int64_t late_at; /* ms of the monotonic clock: the output has ended by then; 0: not yet known */
	struct task_end end;
	struct task_usage usage; /* its last is 0: nothing is known */
};

/* --- processes --- */

static int64_t monotonic_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return spec_time_of(ts);
}

/*
 * Kill all that descends from this process, and fetch its remains. False: after some seconds something was left,
 * which belongs to another user or can't end.
 */
static bool kill_all(void)
{
	int64_t deadline = monotonic_ms() + KILL_MS;
	const struct timespec pause = {.tv_nsec = KILL_LOOK_MS * 1000000L};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		pid_t pid;

		do
			pid = waitpid(-1, NULL, WNOHANG);
		while (pid > 0);
		if (pid < 0 && errno == ECHILD)
			return true;
		if (monotonic_ms() > deadline)
			return false;
		descent_signal(getpid(), SIGKILL);
		sigtimedwait(&child, NULL, &pause);
	}
}

/* --- the guard --- */

/* Is FILE found on PATH as something that can be executed? */
static bool is_on_path(const char *file)
{
	const char *path = getenv("PATH");

	path = path ? path : "/bin:/usr/bin";
	for (;;) {
		size_t len = strcspn(path, ":");
		cleanup_free char *full =
			text_print("%.*s/%s", len ? (int)len : 1, len ? path : ".", file);

		if (access(full, X_OK) == 0)
			return true;
		if (!path[len])
			return false;
		path += len + 1;
	}
}

/* In the program's process: become the program. What kept it from that is written to FD. */
static _Noreturn void become_program(const struct order *order, int out_fd, int fd)
{
	struct guard_news news = {.kind = GUARD_FAILED, .why = TASK_EXEC};
	pid_t guard = getppid();
	sigset_t none;
	int null_fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard)
		_exit(1);
	setsid();
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	process_limit_descriptors(order->nofile);
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null_fd >= 0 && dup2(null_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0 &&
	    dup2(out_fd, STDERR_FILENO) >= 0) {
		if (chdir(order->cwd) == 0) {
			environ = order->env;
			execvp(order->args[0], order->args);
		} else {
			news.why = TASK_CWD;
		}
	}
	news.value = errno;
	if (news.why == TASK_EXEC && errno == ENOENT && !strchr(order->args[0], '/') &&
	    !is_on_path(order->args[0]))
		news.why = TASK_SEARCH;
	(void)!write(fd, &news, sizeof(news));
	_exit(1);
}

/* Start the program, and return when it is known whether that has succeeded. */
static void start_program(const struct order *order, int out_fd, struct guard_news *ret)
{
	int fds[2];
	pid_t pid;

	*ret = (struct guard_news){.kind = GUARD_FAILED, .why = TASK_HELPER};
	pid = pipe2(fds, O_CLOEXEC) < 0 ? -1 : fork();
	if (pid < 0) {
		ret->value = errno;
		return;
	}
	if (pid == 0)
		become_program(order, out_fd, fds[1]);
	close(fds[1]);
	/* Exec closes the pipe: if it ends without a word, the program has been started. */
	if (read(fds[0], ret, sizeof(*ret)) != sizeof(*ret))
		*ret = (struct guard_news){.kind = GUARD_STARTED, .value = pid};
	close(fds[0]);
}

/* The time until DUE_MS (0: none), or LOOK_PAUSE_MS, if that is less. */
static struct timespec time_until(int64_t due_ms)
{
	int64_t ms = due_ms ? max_of(due_ms - monotonic_ms(), INT64_C(0)) : LOOK_PAUSE_MS;

	ms = min_of(ms, (int64_t)LOOK_PAUSE_MS);
	return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

/* Tell the helper what is used, if it has heard all that was said before: it may wait for a disk. */
static void tell_used(struct look *look, int fd)
{
	struct guard_news news = {.kind = GUARD_USED};
	int unread = 0;

	if (ioctl(fd, FIONREAD, &unread) == 0 && unread == 0 && look_news(look, &news.usage))
		(void)!write(fd, &news, sizeof(news));
}

/*
 * Wait until process PID has ended, or the helper has (false). Remains of others are fetched meanwhile. If its limit of
 * time is over before, it is sent SIGTERM, and SIGKILL after its grace. The clock is one that nobody can set. What is
 * used meanwhile is told through FD.
 */
static bool await_program(const struct order *order, pid_t pid, pid_t helper, struct look *look,
			  int fd, struct guard_news *ret)
{
	int64_t due = order->limit_ms ? monotonic_ms() + order->limit_ms : 0;
	struct timespec pause;
	sigset_t set;
	pid_t gone;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, ORPHAN_SIGNAL);
	while (getppid() == helper) {
		while ((gone = waitpid(-1, &ret->value, WNOHANG)) > 0) {
			if (gone == pid)
				return true;
		}
		if (due && monotonic_ms() >= due) {
			kill(-pid, ret->timed_out ? SIGKILL : SIGTERM);
			kill(-pid, SIGCONT); /* a stopped process does not see SIGTERM */
			due = ret->timed_out ? 0 : monotonic_ms() + order->grace_ms;
			ret->timed_out = true;
		}
		tell_used(look, fd);
		pause = time_until(due);
		sigtimedwait(&set, NULL, &pause);
	}
	return false;
}

static _Noreturn void run_guard(const struct order *order, pid_t helper, int out_fd, int fd)
{
	struct guard_news news;
	struct look *look = look_new();
	bool is_over;
	pid_t pid;

	prctl(PR_SET_NAME, GUARD_NAME);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, ORPHAN_SIGNAL);
	if (getppid() != helper)
		_exit(1);
	start_program(order, out_fd, &news);
	close(out_fd);
	pid = news.value;
	(void)!write(fd, &news, sizeof(news));
	if (news.kind == GUARD_STARTED) {
		look_begin(look);
		news = (struct guard_news){.kind = GUARD_OVER};
		if (await_program(order, pid, helper, look, fd, &news))
			(void)!write(fd, &news, sizeof(news));
	}
	is_over = kill_all();
	if (news.kind == GUARD_OVER) {
		news = (struct guard_news){.kind = GUARD_USED};
		look_end(look, &news.usage);
		(void)!write(fd, &news, sizeof(news));
	}
	if (!is_over) {
		news = (struct guard_news){.kind = GUARD_LEFT};
		(void)!write(fd, &news, sizeof(news));
	}
	_exit(0);
}

/* --- the helper and the daemon --- */

/*
 * False: the news could not be sent, and nothing more is. A daemon that is there connects again, and is told all that
 * counts. What a daemon has asked for before it went is heard first, up to the end of the connection.
 */
static bool send_all(struct helper *h, const void *message, size_t len)
{
	if (h->conn_fd >= 0 && send(h->conn_fd, message, len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return true;
	if (h->conn_fd >= 0)
		shutdown(h->conn_fd, SHUT_WR);
	return false;
}

static bool send_news(struct helper *h, const struct helper_news *news)
{
	return send_all(h, news, sizeof(*news));
}

static bool send_used(struct helper *h)
{
	const struct helper_used used = {.kind = HELPER_USED, .usage = h->usage};

	return !h->usage.last || send_all(h, &used, sizeof(used));
}

static void send_grown(struct helper *h)
{
	const struct helper_news news = {.kind = HELPER_GROWN};

	h->grown = true;
	if (h->conn_fd < 0 || h->poked)
		return;
	h->grown = false;
	h->poked = true;
	send_news(h, &news);
}

static void send_started(struct helper *h)
{
	const struct helper_news started = {.kind = HELPER_STARTED,
					    .value = h->program,
					    .time = h->end.started};
	const struct helper_news lost = {.kind = HELPER_LOST, .value = h->end.lost};

	send_news(h, &started);
	if (h->end.lost)
		send_news(h, &lost);
	send_used(h);
}

/* A daemon connects: the newest is the one that counts. */
static void take_daemon(struct helper *h)
{
	int fd = accept4(h->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (h->conn_fd >= 0)
		close(h->conn_fd);
	h->conn_fd = fd;
	h->poked = false;
	if (h->program)
		send_started(h);
	send_grown(h);
}

/* A signal goes to the program's group, as from a terminal; but SIGSTOP and SIGCONT to all of the attempt. */
static void obey(struct helper *h, int sig)
{
	if (!h->program || h->end.finished)
		return;
	if (sig == SIGTERM || sig == SIGKILL)
		kill(-h->program, sig);
	else if (sig == SIGSTOP || sig == SIGCONT)
		descent_signal(h->guard, sig);
	/* Once more, for processes that were being made meanwhile. */
	if (sig == SIGSTOP)
		descent_signal(h->guard, sig);
}

static void hear_daemon(struct helper *h)
{
	struct helper_ask ask;
	ssize_t n = recv(h->conn_fd, &ask, sizeof(ask), MSG_DONTWAIT);

	/* ECONNRESET: a daemon that has gone has left news unread; what it has sent before is still there. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return;
	if (n != sizeof(ask)) {
		close(h->conn_fd);
		h->conn_fd = -1;
	} else if (ask.sig != HELPER_SEEN) {
		obey(h, ask.sig);
	} else {
		h->poked = false;
		if (h->grown)
			send_grown(h);
	}
}

/* --- the output --- */

static void close_input(struct helper *h)
{
	close(h->in_fd);
	h->in_fd = -1;
}

/* If the table can't be written, it ends there; the log goes on without it. */
static void add_lines(struct helper *h, int64_t ns, const char *bytes, size_t n)
{
	uint8_t table[LINES_ADDED_MAX];
	size_t len = h->lines_fd < 0 ? 0 : lines_add(&h->lines, ns, bytes, n, table);

	if (len > 0 && file_write_all(h->lines_fd, (const char *)table, len) < 0) {
		close(h->lines_fd);
		h->lines_fd = -1;
	}
}

static void lose_output(struct helper *h, int err)
{
	const struct helper_news news = {.kind = HELPER_LOST, .value = err};

	h->end.lost = err;
	close_input(h); /* the program gets SIGPIPE, as if its reader had gone */
	send_news(h, &news);
}

/* Move up to MAX bytes from the pipe to the log. */
static void copy_output(struct helper *h, size_t max)
{
	static char buf[COPY_MAX];
	ssize_t n = read(h->in_fd, buf, min_of(max, sizeof(buf)));
	int err;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == 0) {
		close_input(h);
		return;
	}
	err = n < 0 ? -errno : 0;
	if (err == 0) {
		add_lines(h, now_ns(), buf, (size_t)n);
		err = file_write_all(h->log_fd, buf, (size_t)n);
		send_grown(h);
	}
	if (err < 0)
		lose_output(h, -err);
}

/* Open the log and its table for appending. 0 or a negative errno. */
static int open_output(struct helper *h)
{
	cleanup_free char *log = text_print("logs/%s", h->order.key);
	cleanup_free char *lines = text_print("lines/%s", h->order.key);
	const int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	struct stat st;

	/* The daemon makes the folders too, on its pool; whoever comes first is right. */
	if (mkdir("logs", 0700) < 0 && errno != EEXIST)
		return -errno;
	h->log_fd = open(log, flags, 0600);
	if (h->log_fd < 0 || fstat(h->log_fd, &st) < 0)
		return -errno;
	if (mkdir("lines", 0700) == 0 || errno == EEXIST)
		h->lines_fd = open(lines, flags, 0600);
	if (h->lines_fd >= 0 &&
	    lines_mend(h->lines_fd, h->log_fd, (uint64_t)st.st_size, &h->lines) < 0) {
		close(h->lines_fd);
		h->lines_fd = -1;
	}
	return 0;
}

/* --- the end of an attempt, on disk --- */

static size_t end_text(const struct task_end *e, const struct task_usage *u, char ret[END_ROOM])
{
	int n = snprintf(ret, END_ROOM, "1 %d %d %d %d %d %d %d %d %" PRId64 " %" PRId64 "\n",
			 (int)e->how, (int)e->why, e->err, e->exit_code, e->sig, e->lost, e->late,
			 e->left, e->started, e->finished);

	if (u->last)
		n += snprintf(ret + n, (size_t)(END_ROOM - n),
			      USED " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
				   " %" PRId64 " %" PRId64 "\n",
			      u->cpu_us, u->cpu_now, u->memory_now, u->memory_peak, u->samples,
			      u->first, u->last);
	assert(n < END_ROOM);
	return (size_t)n;
}

/* Is N known, and no more than can be, or not known? */
static bool is_figure(int64_t n)
{
	return n >= -1 && n <= HELPER_FIGURE_MAX;
}

bool helper_usage_is_sane(const struct task_usage *u)
{
	return u->cpu_us >= 0 && is_figure(u->cpu_us) && is_figure(u->cpu_now) &&
	       is_figure(u->memory_now) && is_figure(u->memory_peak) && u->samples >= 0 &&
	       is_figure(u->samples) && u->first > 0 && u->last >= u->first;
}

/* TEXT is the line that end_text writes of what was used, or is empty. */
static bool read_used(const char *text, struct task_usage *ret)
{
	struct task_usage u = {0};
	int end = 0;

	*ret = u;
	if (!*text)
		return true;
	if (sscanf(text,
		   USED " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
			" %" SCNd64 " %n",
		   &u.cpu_us, &u.cpu_now, &u.memory_now, &u.memory_peak, &u.samples, &u.first,
		   &u.last, &end) != 7 ||
	    text[end] || !helper_usage_is_sane(&u))
		return false;
	*ret = u;
	return true;
}

int helper_end_read(const char *dir, const char *name, struct task_end *ret,
		    struct task_usage *ret_usage)
{
	cleanup_free char *path = text_print("%s/" HELPER_DIR "/%s", dir, name);
	cleanup_free char *text = NULL;
	struct task_end e = {0};
	int how, why, end = 0;
	size_t len;
	int err = file_read(path, END_ROOM, &text, &len);

	if (err < 0)
		return err;
	if (sscanf(text, "1 %d %d %d %d %d %d %d %d %" SCNd64 " %" SCNd64 " %n", &how, &why, &e.err,
		   &e.exit_code, &e.sig, &e.lost, &e.late, &e.left, &e.started, &e.finished,
		   &end) != 10 ||
	    how < TASK_NOT_STARTED || how > TASK_KILLED || why < TASK_HELPER || why > TASK_SEARCH ||
	    e.exit_code < -1 || e.exit_code > 255 || e.sig < 0 || e.sig > 127 || e.started < 0 ||
	    e.finished < 0 || !read_used(text + end, ret_usage))
		return -EINVAL;
	e.how = (enum task_how)how;
	e.why = (enum task_why)why;
	*ret = e;
	return 0;
}

/* Make the file for the end of the attempt, with its room on disk, so that it can be written to a full disk. */
static int open_end(struct helper *h)
{
	cleanup_free char *path = text_print(HELPER_DIR "/%s" HELPER_NEW, h->order.name);
	char blank[END_ROOM];

	memset(blank, '\n', sizeof(blank));
	h->end_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (h->end_fd < 0)
		return -errno;
	/* Where there are no locks, the socket alone says that this process lives. */
	flock(h->end_fd, LOCK_EX);
	return file_write_all(h->end_fd, blank, sizeof(blank));
}

static int write_end(struct helper *h)
{
	cleanup_free char *new_path = text_print(HELPER_DIR "/%s" HELPER_NEW, h->order.name);
	cleanup_free char *path = text_print(HELPER_DIR "/%s", h->order.name);
	char text[END_ROOM];
	size_t len = end_text(&h->end, &h->usage, text);
	int err = h->end_fd < 0 ? open_end(h) : 0;

	if (err == 0 && (pwrite(h->end_fd, text, len, 0) != (ssize_t)len ||
			 ftruncate(h->end_fd, (off_t)len) < 0 || fsync(h->end_fd) < 0 ||
			 rename(new_path, path) < 0))
		err = -errno;
	return err < 0 ? err : file_sync_dir(HELPER_DIR);
}

/* --- the helper's life --- */

/* People who end "all of kxfs" by signals must not cut off programs that still run from their log. */
static void ignore_signals(void)
{
	static const int ignored[] = {SIGHUP,  SIGINT,	SIGQUIT, SIGTERM,
				      SIGPIPE, SIGUSR1, SIGUSR2, SIGXFSZ};
	sigset_t blocked;

	for (size_t i = 0; i < array_size(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigaddset(&blocked, ORPHAN_SIGNAL);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* The next text of what ends at END. */
static const char *order_next(char **at, const char *end)
{
	char *text = *at;

	if (text >= end)
		return "";
	*at += strlen(text) + 1;
	return text;
}

static int order_read(struct order *o)
{
	struct stat st;
	size_t n_args, n = 0;
	char *at, *end;

	if (fstat(STDIN_FILENO, &st) < 0 || st.st_size <= 0 || st.st_size > ORDER_MAX)
		return -EINVAL;
	o->text = mem_zero((size_t)st.st_size + 1);
	if (pread(STDIN_FILENO, o->text, (size_t)st.st_size, 0) != st.st_size)
		return -EIO;
	at = o->text;
	end = at + st.st_size;
	o->dir = order_next(&at, end);
	o->key = order_next(&at, end);
	o->name = order_next(&at, end);
	o->cwd = order_next(&at, end);
	o->nofile = strtoull(order_next(&at, end), NULL, 10);
	o->limit_ms = strtoll(order_next(&at, end), NULL, 10);
	o->grace_ms = strtoll(order_next(&at, end), NULL, 10);
	n_args = strtoul(order_next(&at, end), NULL, 10);
	for (const char *p = at; p < end; p += strlen(p) + 1)
		n++;
	if (n_args == 0 || n_args > n)
		return -EINVAL;
	o->args = new0_n(char *, n_args + 1);
	o->env = new0_n(char *, n - n_args + 1);
	for (size_t i = 0; i < n; i++)
		*(i < n_args ? &o->args[i] : &o->env[i - n_args]) =
			(char *)(uintptr_t)order_next(&at, end);
	return 0;
}

/* Move the socket away from descriptor 1. */
static int take_descriptors(struct helper *h)
{
	cleanup_fd int null_fd = -1;

	h->listen_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (h->listen_fd < 0 || null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
	    dup2(null_fd, STDOUT_FILENO) < 0)
		return -errno;
	/* A socket that was inherited as a standard descriptor is blocking. */
	return fcntl(h->listen_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int start_guard(struct helper *h)
{
	cleanup_fd int in = -1, out = -1, news_in = -1, news_out = -1;
	pid_t self = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	in = fds[0];
	out = fds[1];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	news_in = fds[0];
	news_out = fds[1];
	fcntl(in, F_SETFL, O_NONBLOCK);
	h->guard = fork();
	if (h->guard < 0)
		return -errno;
	if (h->guard == 0) {
		close(in);
		close(h->listen_fd);
		run_guard(&h->order, self, out, news_out);
	}
	h->in_fd = take_fd(&in);
	h->guard_fd = take_fd(&news_in);
	return 0;
}

static void program_over(struct helper *h, int status, bool timed_out)
{
	h->end.how = TASK_ENDED;
	h->end.err = timed_out ? ETIMEDOUT : 0;
	h->end.finished = now_ns();
	h->end.sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	h->end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The guard has ended, by itself or because somebody killed it: kill all that is left of the attempt. */
static void guard_over(struct helper *h)
{
	int status = 0;

	close(h->guard_fd);
	h->guard_fd = -1;
	waitpid(h->guard, &status, 0);
	if (!kill_all())
		h->end.left = 1;
	if (!h->end.finished) {
		h->end.how = TASK_KILLED;
		h->end.finished = now_ns();
		h->end.sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	}
	h->late_at = monotonic_ms() + LATE_MS;
}

static void hear_guard(struct helper *h)
{
	struct guard_news news;
	int unread = 0;
	ssize_t n = read(h->guard_fd, &news, sizeof(news));

	if (n < 0 && errno == EINTR)
		return;
	if (n != sizeof(news)) {
		guard_over(h);
		return;
	}
	switch (news.kind) {
	case GUARD_STARTED:
		h->program = news.value;
		h->end.started = now_ns();
		send_started(h);
		break;
	case GUARD_FAILED:
		h->end.how = TASK_NOT_STARTED;
		h->end.why = news.why;
		h->end.err = news.value;
		h->end.finished = now_ns();
		break;
	case GUARD_OVER:
		program_over(h, news.value, news.timed_out);
		break;
	case GUARD_USED:
		h->usage = news.usage;
		/* There will be newer figures, and those in the end. So they fill no connection. */
		if (h->conn_fd >= 0 && ioctl(h->conn_fd, SIOCOUTQ, &unread) == 0 && unread == 0)
			send_used(h);
		break;
	case GUARD_LEFT:
		h->end.left = 1;
		break;
	}
}

/* How long to wait for news, in ms; -1: for ever. */
static int patience(const struct helper *h)
{
	return h->late_at ? (int)max_of(h->late_at - monotonic_ms(), INT64_C(0)) : -1;
}

/*
 * Serve until the guard and the output have ended. Before the guard has said what became of the start, signals wait in
 * the daemon's connection, since there is nobody to send them to yet, and output in its pipe, since the daemon and the
 * times of lines have to know of the start first.
 */
static void serve(struct helper *h)
{
	while (h->guard_fd >= 0 || h->in_fd >= 0) {
		bool begun = h->program || h->end.finished;
		struct pollfd fds[] = {
			{.fd = begun ? h->in_fd : -1, .events = POLLIN},
			{.fd = h->guard_fd, .events = POLLIN},
			{.fd = h->listen_fd, .events = POLLIN},
			{.fd = begun ? h->conn_fd : -1, .events = POLLIN},
		};

		if (poll(fds, array_size(fds), patience(h)) < 0)
			continue;
		if (fds[0].revents)
			copy_output(h, COPY_MAX);
		if (fds[1].revents)
			hear_guard(h);
		if (fds[3].revents && h->conn_fd >= 0)
			hear_daemon(h);
		if (fds[2].revents)
			take_daemon(h);
		if (h->late_at && h->in_fd >= 0 && monotonic_ms() >= h->late_at) {
			int left = 0;

			/*
			 * All of the attempt is gone, and somebody else still has the pipe open: take what is in
			 * it now, and no more.
			 */
			h->end.late = 1;
			if (ioctl(h->in_fd, FIONREAD, &left) < 0)
				left = 0;
			while (h->in_fd >= 0 && left > 0) {
				int step = min_of(left, (int)COPY_MAX);

				copy_output(h, (size_t)step);
				left -= step;
			}
			if (h->in_fd >= 0)
				close_input(h);
		}
	}
}

/* Before it ends, the helper writes to disk how the attempt has ended, or tells it to a daemon. */
static void conclude(struct helper *h)
{
	struct pollfd in = {.fd = h->listen_fd, .events = POLLIN};
	const struct helper_news news = {.kind = HELPER_ENDED, .end = h->end};
	bool written = false, told;
	struct stat st;

	if (h->lines_fd >= 0 && h->end.lost && fstat(h->log_fd, &st) == 0)
		lines_mend(h->lines_fd, h->log_fd, (uint64_t)st.st_size, &h->lines);
	for (int i = 0; i < END_TRIES; i++) {
		written = written || write_end(h) == 0;
		told = send_used(h) && send_news(h, &news);
		if (!told) {
			take_daemon(h);
			told = send_news(h, &news);
		}
		if (told || written)
			return;
		poll(&in, 1, 1000);
	}
}

static int run_helper(struct helper *h)
{
	int err = order_read(&h->order);

	if (err < 0)
		return err;
	err = take_descriptors(h);
	if (err < 0)
		return err;
	if (chdir(h->order.dir) < 0)
		return -errno;
	h->end.why = TASK_OUTPUT;
	err = open_output(h);
	if (err == 0)
		err = open_end(h);
	if (err == 0) {
		h->end.why = TASK_HELPER;
		err = start_guard(h);
	}
	if (err == 0) {
		serve(h);
	} else {
		h->end.err = -err;
		h->end.finished = now_ns();
	}
	conclude(h);
	return 0;
}

void backend_helper(char **argv)
{
	struct helper h = {
		.listen_fd = -1,
		.conn_fd = -1,
		.guard_fd = -1,
		.in_fd = -1,
		.log_fd = -1,
		.lines_fd = -1,
		.end_fd = -1,
		.end = {.exit_code = -1},
	};

	spawn_helper(argv);
	if (!argv[0] || !streq(argv[0], HELPER_NAME))
		return;
	close_range(STDERR_FILENO + 1, ~0u, 0);
	ignore_signals();
	prctl(PR_SET_NAME, HELPER_NAME);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	_exit(-run_helper(&h));
}
