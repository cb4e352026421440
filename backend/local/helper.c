/* SPDX-License-Identifier: MIT */
/*
 * The helper of one attempt: a separate process, which outlives the daemon. It copies the program's
 * output from a pipe to logs/KEY, and the times of the lines to lines/KEY. It exchanges messages
 * with the daemon (helper.h). Its guard starts the program (guard.h). Before it exits, it writes to
 * disk how the attempt ended.
 *
 * Output is lost only if the log can't be written, or the helper gets SIGKILL.
 */
#include "backend/local/helper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <linux/sockios.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/loop.h"
#include "backend/local/guard.h"
#include "backend/output/lines.h"
#include "spec/base/mem.h"

#define ORDER_MAX (64u << 20)
#define COPY_MAX  LINES_SPAN /* the capacity of a pipe, and the most that lines_add takes */
/* how long the helper waits for processes that it can't kill and that have the pipe open */
#define LATE_MS	  2000
#define END_ROOM  512 /* size of tasks/NAME.new; maximum for tasks/NAME */
#define USED	  "used"
#define GPUS	  "gpus"
#define END_TRIES 60 /* number of tries, one per second, to write the end to a full disk */

struct instructions {
	char *text;
	const char *dir, *key, *name;
	uint64_t gpus;
	struct guard_program program;
};

struct helper {
	struct instructions instructions;
	struct guard guard;
	pid_t program;
	int dir_fd;		/* the job's folder */
	int listen_fd, conn_fd; /* conn_fd is -1 without a daemon */
	int guard_fd;		/* the guard's messages; -1 after their end */
	int in_fd;		/* the program's output; -1 after its end */
	int log_fd, lines_fd;	/* lines_fd is -1 if the table of lines can't be written */
	int end_fd;		/* tasks/NAME.new */
	struct lines_encoder lines;
	/*
	 * POKED: the daemon has not answered the last HELPER_GROWN. GROWN: the log has grown since
	 * the last HELPER_GROWN was sent.
	 */
	bool poked, grown;
	/* when to stop waiting for output, in ms of the monotonic clock; 0: not yet known */
	int64_t late_at;
	struct task_end end;
	struct task_usage usage; /* if USAGE.last is 0, the usage is unknown */
	char bytes[COPY_MAX];	 /* from the pipe to the log */
};

/* --- the helper and the daemon --- */

/*
 * Send a message to the daemon. If this fails, return false, and send no more on this connection,
 * but continue to read. A living daemon reconnects, and gets the current state.
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

/* Accept a connection of a daemon. Close the connection of the earlier daemon. */
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

static void hear_daemon(struct helper *h)
{
	struct helper_ask ask;
	ssize_t n = recv(h->conn_fd, &ask, sizeof(ask), MSG_DONTWAIT);

	/* After ECONNRESET, messages that the daemon sent before its end may still be unread. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return;
	if (n != sizeof(ask)) {
		close(h->conn_fd);
		h->conn_fd = -1;
	} else if (ask.sig != HELPER_SEEN) {
		if (h->program && !h->end.finished)
			guard_signal(&h->guard, h->program, ask.sig);
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

/* Copy up to MAX bytes from the pipe to the log. */
static void copy_output(struct helper *h, size_t max)
{
	ssize_t n = read(h->in_fd, h->bytes, min_of(max, sizeof(h->bytes)));
	int err;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == 0) {
		close_input(h);
		return;
	}
	err = n < 0 ? -errno : 0;
	if (err == 0) {
		uint8_t table[LINES_ADDED_MAX];
		size_t len = h->lines_fd < 0 ? 0
					     : lines_add(&h->lines, loop_time_ns(), h->bytes,
							 (size_t)n, table);

		/* If the table of lines can't be written, write only the log from now on. */
		if (len > 0 && file_write_all(h->lines_fd, (const char *)table, len) < 0) {
			close(h->lines_fd);
			h->lines_fd = -1;
		}
		err = file_write_all(h->log_fd, h->bytes, (size_t)n);
		send_grown(h);
	}
	if (err < 0) {
		const struct helper_news news = {.kind = HELPER_LOST, .value = -err};

		h->end.lost = -err;
		/* From now on, a program that writes output gets SIGPIPE. */
		close_input(h);
		send_news(h, &news);
	}
}

static int open_output(struct helper *h)
{
	cleanup_free char *log = text_print("logs/%s", h->instructions.key);
	cleanup_free char *lines = text_print("lines/%s", h->instructions.key);
	const int flags = O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK;
	struct stat st;
	int err;

	/* EEXIST is not an error: the daemon may make the same folders at the same time. */
	err = disk_mkdir(h->dir_fd, "logs");
	if (err < 0 && err != -EEXIST)
		return err;
	h->log_fd = disk_open(h->dir_fd, log, flags);
	err = h->log_fd < 0 ? h->log_fd : disk_stat(h->log_fd, "", &st);
	if (err < 0)
		return err;
	err = disk_mkdir(h->dir_fd, "lines");
	if (err == 0 || err == -EEXIST)
		h->lines_fd = disk_open(h->dir_fd, lines, flags);
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

int helper_end_read(const char *dir, const char *name, struct task_end *ret,
		    struct task_usage *ret_usage)
{
	cleanup_free char *path = text_print("%s/" HELPER_DIR "/%s", dir, name);
	cleanup_free char *text = NULL;
	struct task_end e = {0};
	struct task_usage u = {0};
	int how, why, n, end = 0;
	size_t len;
	int err = file_read(path, END_ROOM, &text, &len);

	if (err < 0)
		return err;
	/* N is 10 without the line of usage, and 17 with it. */
	n = sscanf(text,
		   "1 %d %d %d %d %d %d %d %d %" SCNd64 " %" SCNd64 " %n" USED " %" SCNd64
		   " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %n",
		   &how, &why, &e.err, &e.exit_code, &e.sig, &e.lost, &e.late, &e.left, &e.started,
		   &e.finished, &end, &u.cpu_us, &u.cpu_now, &u.memory_now, &u.memory_peak,
		   &u.samples, &u.first, &u.last, &end);
	if ((n != 10 && (n != 17 || !helper_usage_is_sane(&u))) || text[end] ||
	    how < TASK_NOT_STARTED || how > TASK_KILLED || why < TASK_HELPER || why > TASK_SEARCH ||
	    e.exit_code < -1 || e.exit_code > 255 || e.sig < 0 || e.sig > 127 || e.started < 0 ||
	    e.finished < 0)
		return -EINVAL;
	e.how = (enum task_how)how;
	e.why = (enum task_why)why;
	*ret = e;
	*ret_usage = u;
	return 0;
}

uint64_t helper_gpus_read(const char *dir, const char *name)
{
	cleanup_free char *path = text_print("%s/" HELPER_DIR "/%s" HELPER_NEW, dir, name);
	cleanup_free char *text = NULL;
	uint64_t gpus;
	size_t len;

	return file_read(path, END_ROOM, &text, &len) == 0 &&
			       sscanf(text, GPUS " %16" SCNx64, &gpus) == 1
		       ? gpus
		       : 0;
}

/*
 * Make NAME.new with the program's GPUs. Fill it with newlines, so that the end of the attempt can
 * be written even when the disk is full.
 */
static int open_end(struct helper *h)
{
	cleanup_free char *path = text_print(HELPER_DIR "/%s" HELPER_NEW, h->instructions.name);
	char blank[END_ROOM];
	int n;

	memset(blank, '\n', sizeof(blank));
	n = snprintf(blank, sizeof(blank), GPUS " %" PRIx64, h->instructions.gpus);
	blank[n] = '\n';
	h->end_fd = disk_open(h->dir_fd, path, O_RDWR | O_CREAT | O_TRUNC);
	if (h->end_fd < 0)
		return h->end_fd;
	/* Ignore an error: without locks, only the socket shows that this process lives. */
	flock(h->end_fd, LOCK_EX);
	return file_write_all(h->end_fd, blank, sizeof(blank));
}

static int write_end(struct helper *h)
{
	cleanup_free char *new_path = text_print(HELPER_DIR "/%s" HELPER_NEW, h->instructions.name);
	cleanup_free char *path = text_print(HELPER_DIR "/%s", h->instructions.name);
	cleanup_fd int folder = -1;
	char text[END_ROOM];
	size_t len = end_text(&h->end, &h->usage, text);
	int err = h->end_fd < 0 ? open_end(h) : 0;

	if (err == 0)
		err = file_pwrite_all(h->end_fd, text, len, 0);
	if (err == 0)
		err = disk_truncate(h->end_fd, len);
	if (err == 0)
		err = disk_sync(h->end_fd);
	if (err == 0)
		err = disk_rename(h->dir_fd, new_path, h->dir_fd, path);
	if (err < 0)
		return err;
	folder = disk_open(h->dir_fd, HELPER_DIR, O_RDONLY | O_DIRECTORY);
	return folder < 0 ? folder : disk_sync(folder);
}

/* --- the process of the helper --- */

/* Return the text at *AT, and move *AT past it. Return "" at END. */
static const char *instructions_next(char **at, const char *end)
{
	char *text = *at;

	if (text >= end)
		return "";
	*at += strlen(text) + 1;
	return text;
}

static int instructions_read(struct instructions *o, int fd)
{
	struct guard_program *p = &o->program;
	size_t len, n_args, n = 0;
	char *at, *end;
	int err = file_read_fd(fd, ORDER_MAX, &o->text, &len);

	if (err < 0)
		return err;
	at = o->text;
	end = at + len;
	o->dir = instructions_next(&at, end);
	o->key = instructions_next(&at, end);
	o->name = instructions_next(&at, end);
	p->cwd = instructions_next(&at, end);
	p->nofile = strtoull(instructions_next(&at, end), NULL, 10);
	p->limit_ms = strtoll(instructions_next(&at, end), NULL, 10);
	p->grace_ms = strtoll(instructions_next(&at, end), NULL, 10);
	o->gpus = strtoull(instructions_next(&at, end), NULL, 16);
	n_args = strtoul(instructions_next(&at, end), NULL, 10);
	for (const char *text = at; text < end; text += strlen(text) + 1)
		n++;
	if (n_args == 0 || n_args > n)
		return -EINVAL;
	p->args = new0_n(char *, n_args + 1);
	p->env = new0_n(char *, n - n_args + 1);
	for (size_t i = 0; i < n; i++)
		*(i < n_args ? &p->args[i] : &p->env[i - n_args]) =
			(char *)(uintptr_t)instructions_next(&at, end);
	return 0;
}

static void program_over(struct helper *h, int status, bool timed_out)
{
	h->end.how = TASK_ENDED;
	h->end.err = timed_out ? ETIMEDOUT : 0;
	h->end.finished = loop_time_ns();
	h->end.sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	h->end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Handle the end of the guard, which has exited or was killed. */
static void guard_over(struct helper *h)
{
	int sig;

	close(h->guard_fd);
	h->guard_fd = -1;
	if (!guard_end(&h->guard, &sig))
		h->end.left = 1;
	if (!h->end.finished) {
		h->end.how = TASK_KILLED;
		h->end.finished = loop_time_ns();
		h->end.sig = sig;
	}
	h->late_at = (int64_t)loop_now_ms() + LATE_MS;
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
		h->end.started = loop_time_ns();
		send_started(h);
		break;
	case GUARD_FAILED:
		h->end.how = TASK_NOT_STARTED;
		h->end.why = news.why;
		h->end.err = news.value;
		h->end.finished = loop_time_ns();
		break;
	case GUARD_OVER:
		program_over(h, news.value, news.timed_out);
		break;
	case GUARD_USED:
		h->usage = news.usage;
		/* If the daemon has not read everything yet, skip this sample. */
		if (h->conn_fd >= 0 && ioctl(h->conn_fd, SIOCOUTQ, &unread) == 0 && unread == 0)
			send_used(h);
		break;
	}
}

/*
 * Serve the daemon until guard and output have ended. Read no output before the program was started
 * or has failed to start. Otherwise a line could have a time before the start.
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
		int64_t left_ms = max_of(h->late_at - (int64_t)loop_now_ms(), INT64_C(0));

		if (poll(fds, array_size(fds), h->late_at ? (int)left_ms : -1) < 0)
			continue;
		if (fds[0].revents)
			copy_output(h, COPY_MAX);
		if (fds[1].revents)
			hear_guard(h);
		if (fds[3].revents && h->conn_fd >= 0)
			hear_daemon(h);
		if (fds[2].revents)
			take_daemon(h);
		if (h->late_at && h->in_fd >= 0 && (int64_t)loop_now_ms() >= h->late_at) {
			int left = 0;

			/* A process outside the attempt has the pipe open. Empty the pipe. */
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

/* Write the end to disk, and send it to the daemon. If both fail, retry for about a minute. */
static void conclude(struct helper *h)
{
	struct pollfd in = {.fd = h->listen_fd, .events = POLLIN};
	const struct helper_news news = {.kind = HELPER_ENDED, .end = h->end};
	bool written = false, sent;
	struct stat st;

	if (h->lines_fd >= 0 && h->end.lost && disk_stat(h->log_fd, "", &st) == 0)
		lines_mend(h->lines_fd, h->log_fd, (uint64_t)st.st_size, &h->lines);
	for (int i = 0; i < END_TRIES; i++) {
		written = written || write_end(h) == 0;
		sent = send_used(h) && send_news(h, &news);
		if (!sent) {
			take_daemon(h);
			sent = send_news(h, &news);
		}
		if (sent || written)
			return;
		poll(&in, 1, 1000);
	}
}

int helper_run(int instructions_fd, int listen_fd)
{
	struct helper h = {
		.listen_fd = listen_fd,
		.conn_fd = -1,
		.guard_fd = -1,
		.in_fd = -1,
		.log_fd = -1,
		.lines_fd = -1,
		.end_fd = -1,
		.end = {.exit_code = -1},
	};
	int err = instructions_read(&h.instructions, instructions_fd);

	close(instructions_fd);
	if (err == 0)
		h.dir_fd = err = disk_open(AT_FDCWD, h.instructions.dir, O_PATH | O_DIRECTORY);
	if (err < 0)
		return err;
	h.end.why = TASK_OUTPUT;
	err = open_output(&h);
	if (err == 0)
		err = open_end(&h);
	if (err == 0) {
		h.end.why = TASK_HELPER;
		err = guard_start(&h.instructions.program, listen_fd, &h.guard);
	}
	if (err == 0) {
		h.in_fd = h.guard.output_fd;
		h.guard_fd = h.guard.news_fd;
		serve(&h);
	} else {
		h.end.err = -err;
		h.end.finished = loop_time_ns();
	}
	conclude(&h);
	return 0;
}
