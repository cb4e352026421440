/* SPDX-License-Identifier: MIT */
/*
 * Replaces the part of backend/base/process.c that starts programs, and the system calls for
 * sockets and pipes. kxfs starts helpers; each is a process with one task, which runs
 * backend/local/helper.c unchanged. kxfs and helpers communicate through sockets that preserve
 * message boundaries. Simulated descriptors are numbers far above the real ones. A listener has a
 * backlog of eight connections. Closing a connection with unread messages resets the other side.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <linux/sockios.h>

#include "backend/base/loop.h"
#include "backend/base/process.h"
#include "backend/local/helper.h"
#include "spec/base/mem.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define FIRST_FD      (1 << 21)
#define MOST_FDS      4096
#define FIRST_PID     500000
#define BACKLOG	      8
#define MOST_MESSAGES 200
#define HELLO_MS      20

struct message {
	char *bytes;
	size_t len;
	struct message *next;
};

/* One direction of a connection. */
struct side {
	struct message *first, **last;
	unsigned n;
	bool closed; /* the reader has closed its end */
	bool shut;   /* the writer has shut its end down */
	bool reset;  /* the next recv reports ECONNRESET, once */
};

struct connection {
	struct side to[2]; /* messages to the connecting side, and to the accepting side */
};

struct listener {
	struct connection *waiting[BACKLOG + 1];
	unsigned n, refs;
	bool listens;
};

struct sim_pipe {
	char *bytes;
	size_t at, len, room;
	bool closed; /* by the writer */
	bool unread; /* the reader has closed it */
	bool heard;  /* the reader has read everything */
};

struct loop_watch {
	int fd;
	loop_fn fn;
	void *data;
	bool freed, due;
};

/* A listener, a connection, a pipe, or a socket that is none of these yet. */
struct descriptor {
	bool open;
	struct sim_process *owner; /* NULL: kxfs */
	struct listener *listener;
	struct connection *connection;
	unsigned side;
	struct sim_pipe *pipe;
	struct loop_watch *watch;
};

struct poller {
	struct pollfd *fds;
	nfds_t n;
	struct sim_task *task;
	unsigned life;
	struct sim_process *process;
	bool over;
	struct poller *next;
};

static struct descriptor fds[MOST_FDS];
static int n_fds; /* only descriptors below this index are open */
static struct poller *pollers;
static struct sim_process **processes;
static size_t n_processes;
static loop_fn child_fn;
static void *child_data;
static bool mended;

int __real_poll(struct pollfd *p, nfds_t n, int ms);
ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __real_recv(int fd, void *buf, size_t n, int flags);
ssize_t __real_send(int fd, const void *buf, size_t n, int flags);
pid_t __real_waitpid(pid_t pid, int *status, int options);
int __real_kill(pid_t pid, int sig);

int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
ssize_t __wrap_read(int fd, void *buf, size_t n);
ssize_t __wrap___read_chk(int fd, void *buf, size_t n, size_t size);
int __wrap_ioctl(int fd, unsigned long what, ...);
ssize_t __wrap_recv(int fd, void *buf, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags);
int __wrap_shutdown(int fd, int how);
int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *a, socklen_t len);
int __wrap_listen(int fd, int backlog);
int __wrap_connect(int fd, const struct sockaddr *a, socklen_t len);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __wrap_kill(pid_t pid, int sig);

static int fail(int err)
{
	errno = err;
	return -1;
}

/* --- descriptors --- */

static struct descriptor *descriptor(int fd)
{
	if (fd < FIRST_FD || fd >= FIRST_FD + n_fds || !fds[fd - FIRST_FD].open)
		sim_fail("descriptor %d is used, but it is not open", fd);
	return &fds[fd - FIRST_FD];
}

static int fd_new(struct sim_process *owner)
{
	int i = 0;

	while (i < n_fds && fds[i].open)
		i++;
	if (i == MOST_FDS)
		sim_fail("too many sockets and pipes are open");
	n_fds = max_of(n_fds, i + 1);
	fds[i] = (struct descriptor){.open = true, .owner = owner};
	return FIRST_FD + i;
}

static bool is_readable(const struct descriptor *d)
{
	const struct side *s = d->connection ? &d->connection->to[d->side] : NULL;

	if (d->listener)
		return d->listener->n > 0;
	if (d->pipe)
		return d->pipe->at < d->pipe->len || d->pipe->closed;
	return s && (s->n > 0 || s->shut || s->reset || d->connection->to[!d->side].closed);
}

/* --- waiting for descriptors --- */

static void fire(void *data)
{
	struct loop_watch *w = data;
	const struct descriptor *d;

	w->due = false;
	if (w->freed)
		return;
	d = descriptor(w->fd);
	if (!is_readable(d))
		return;
	w->due = true;
	sim_loop_call(w->fn, w->data);
	w->due = false;
	if (!w->freed && is_readable(descriptor(w->fd))) {
		w->due = true;
		sim_after(0, SIM_OF_KXFS, fire, w);
	}
}

static bool is_ready(struct poller *p)
{
	bool ready = false;

	for (nfds_t i = 0; i < p->n; i++) {
		p->fds[i].revents =
			p->fds[i].fd >= 0 && is_readable(descriptor(p->fds[i].fd)) ? POLLIN : 0;
		ready |= p->fds[i].revents;
	}
	return ready;
}

/* Some descriptors may have become readable. Wake everything that waits for one of them. */
static void changed(void)
{
	for (int i = 0; i < n_fds; i++) {
		struct loop_watch *w = fds[i].open ? fds[i].watch : NULL;

		if (w && !w->due && is_readable(&fds[i])) {
			w->due = true;
			sim_after(0, SIM_OF_KXFS, fire, w);
		}
	}
	for (struct poller **at = &pollers; *at;) {
		struct poller *p = *at;

		if ((p->process && p->process->dead) || (!p->process && p->life != sim_life())) {
			*at = p->next; /* its process or its life has ended */
			continue;
		}
		if (is_ready(p))
			sim_task_wake(p->task);
		at = &p->next;
	}
}

static void on_timeout(void *data)
{
	struct poller *p = data;

	if (p->over)
		free(p);
	else {
		p->over = true;
		sim_task_wake(p->task);
	}
}

int __wrap_poll(struct pollfd *f, nfds_t n, int ms)
{
	struct poller *p;
	bool timed = ms > 0, timed_out;
	int ready = 0;

	for (nfds_t i = 0; i < n; i++)
		if (f[i].fd >= 0 && f[i].fd < FIRST_FD)
			return __real_poll(f, n, ms);
	p = new0(struct poller);
	*p = (struct poller){.fds = f,
			     .n = n,
			     .task = sim_task_here(),
			     .life = sim_life(),
			     .process = sim_process_here()};
	if (!is_ready(p) && ms != 0) {
		p->next = pollers;
		pollers = p;
		if (timed)
			sim_after((uint64_t)ms * SIM_MS, SIM_OF_MACHINE, on_timeout, p);
		do
			sim_task_wait();
		while (!is_ready(p) && !p->over);
		for (struct poller **at = &pollers; *at; at = &(*at)->next)
			if (*at == p) {
				*at = p->next;
				break;
			}
	} else {
		timed = false;
	}
	for (nfds_t i = 0; i < n; i++)
		ready += f[i].revents != 0;
	timed_out = p->over;
	p->over = true;
	if (!timed || timed_out)
		free(p);
	return ready;
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, bool priority, loop_fn fn, void *data)
{
	struct loop_watch *w = new0(struct loop_watch);

	(void)loop, (void)priority;
	*w = (struct loop_watch){.fd = fd, .fn = fn, .data = data};
	descriptor(fd)->watch = w;
	changed();
	return w;
}

void loop_watch_free(struct loop_watch *w)
{
	if (!w)
		return;
	w->freed = true; /* don't free W: an event for it may still be scheduled */
	descriptor(w->fd)->watch = NULL;
}

int loop_signal(struct loop *loop, int sig, loop_fn fn, void *data)
{
	(void)loop;
	if (sig != SIGCHLD)
		sim_fail("kxfs handles signal %d", sig);
	child_fn = fn;
	child_data = data;
	return 0;
}

/* --- messages --- */

static void side_clear(struct side *s)
{
	struct message *m;

	while ((m = s->first)) {
		s->first = m->next;
		free(m->bytes);
		free(m);
	}
	s->last = &s->first;
	s->n = 0;
}

static struct connection *connection_new(void)
{
	struct connection *c = new0(struct connection);

	c->to[0].last = &c->to[0].first;
	c->to[1].last = &c->to[1].first;
	return c;
}

static void connection_leave(struct connection *c, unsigned side)
{
	c->to[side].closed = true;
	c->to[!side].reset |= c->to[side].n > 0 && !c->to[!side].closed;
	side_clear(&c->to[side]);
}

static void listener_end(struct listener *l)
{
	l->listens = false;
	while (l->n)
		connection_leave(l->waiting[--l->n], 1);
}

/* Close D. Don't wake the tasks that wait for it: they may belong to a life that has ended. */
static void descriptor_close(struct descriptor *d)
{
	d->open = false;
	if (d->watch)
		sim_fail("a watched descriptor is closed");
	if (d->listener && --d->listener->refs == 0)
		listener_end(d->listener);
	if (d->connection)
		connection_leave(d->connection, d->side);
	if (d->pipe)
		d->pipe->unread = true;
}

bool sim_socket_close(int fd)
{
	if (fd < FIRST_FD)
		return false;
	descriptor_close(descriptor(fd));
	changed();
	return true;
}

ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags)
{
	struct descriptor *d;
	struct side *s;
	struct message *m;

	if (fd < FIRST_FD)
		return __real_send(fd, buf, n, flags);
	d = descriptor(fd);
	s = &d->connection->to[!d->side];
	if (s->closed || s->shut)
		return fail(EPIPE);
	if (s->n >= MOST_MESSAGES)
		return fail(EAGAIN);
	if (!mended && d->owner && sim_chance(SIM_MACHINE, sim_faults.unsent))
		return fail(ENOBUFS);
	m = new0(struct message);
	*m = (struct message){mem_copy(buf, n), n, NULL};
	*s->last = m;
	s->last = &m->next;
	s->n++;
	changed();
	return (ssize_t)n;
}

ssize_t __wrap_recv(int fd, void *buf, size_t n, int flags)
{
	struct descriptor *d;
	struct message *m;
	struct side *s;

	if (fd < FIRST_FD)
		return __real_recv(fd, buf, n, flags);
	d = descriptor(fd);
	s = &d->connection->to[d->side];
	if (s->reset) {
		s->reset = false;
		return fail(ECONNRESET);
	}
	m = s->first;
	if (!m && (s->shut || d->connection->to[!d->side].closed))
		return 0;
	if (!m)
		return fail(EAGAIN);
	n = min_of(n, m->len);
	memcpy(buf, m->bytes, n);
	s->first = m->next;
	if (!s->first)
		s->last = &s->first;
	s->n--;
	free(m->bytes);
	free(m);
	return (ssize_t)n;
}

int __wrap_shutdown(int fd, int how)
{
	struct descriptor *d = descriptor(fd);

	(void)how;
	d->connection->to[!d->side].shut = true;
	changed();
	return 0;
}

int __wrap_ioctl(int fd, unsigned long what, ...)
{
	const struct descriptor *d = descriptor(fd);
	va_list args;
	int *ret;

	va_start(args, what);
	ret = va_arg(args, int *);
	va_end(args);
	if (what == FIONREAD)
		*ret = (int)(d->pipe->len - d->pipe->at);
	else
		*ret = (int)d->connection->to[!d->side].n;
	return 0;
}

/* --- sockets --- */

/* True if the process is out of descriptors. kxfs or the helper then retries later. */
static bool has_no_descriptor(void)
{
	if (mended || !sim_chance(SIM_MACHINE, sim_faults.no_descriptor))
		return false;
	users_left();
	return true;
}

int __wrap_socket(int domain, int type, int protocol)
{
	(void)domain, (void)type, (void)protocol;
	if (has_no_descriptor())
		return fail(EMFILE);
	return fd_new(sim_process_here());
}

/* Parse the path "/proc/self/fd/AT/NAME". Return NAME, and store AT in *RET_AT. */
static const char *parse(const struct sockaddr *a, int *ret_at)
{
	const struct sockaddr_un *u = (const void *)a;
	const char *name = strrchr(u->sun_path, '/') + 1;

	*ret_at = atoi(u->sun_path + strlen("/proc/self/fd/"));
	return name;
}

int __wrap_bind(int fd, const struct sockaddr *a, socklen_t len)
{
	struct descriptor *d = descriptor(fd);
	int at, err;
	const char *name = parse(a, &at);

	(void)len;
	d->listener = new0(struct listener);
	d->listener->refs = 1;
	err = sim_disk_bind(at, name, d->listener);
	return err ? fail(-err) : 0;
}

int __wrap_listen(int fd, int backlog)
{
	(void)backlog;
	descriptor(fd)->listener->listens = true;
	return 0;
}

int __wrap_connect(int fd, const struct sockaddr *a, socklen_t len)
{
	static const int errors[] = {EAGAIN, ENOMEM, ENOBUFS};
	struct descriptor *d = descriptor(fd);
	struct listener *l;
	void *found = NULL;
	int at, err = sim_disk_find_socket((parse(a, &at), at), parse(a, &at), &found);

	(void)len;
	if (err)
		return fail(-err);
	l = found;
	if (!l || !l->listens)
		return fail(ECONNREFUSED);
	if (l->n > BACKLOG)
		return fail(EAGAIN);
	if (!mended && sim_chance(SIM_MACHINE, sim_faults.unreachable)) {
		/*
		 * If only kxfs has the listener, the helper has not started yet. The job's record
		 * exists, so kxfs or a later mount starts the job again.
		 */
		if (l->refs == 1)
			users_left();
		return fail(errors[sim_below(SIM_MACHINE, array_size(errors))]);
	}
	d->connection = connection_new();
	d->side = 0;
	l->waiting[l->n++] = d->connection;
	changed();
	return 0;
}

int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	struct listener *l = descriptor(fd)->listener;
	int got;

	(void)a, (void)len, (void)flags;
	if (!l->n)
		return fail(EAGAIN);
	got = fd_new(sim_process_here());
	descriptor(got)->connection = l->waiting[0];
	descriptor(got)->side = 1;
	l->n--;
	memmove(l->waiting, l->waiting + 1, l->n * sizeof(struct connection *));
	return got;
}

/* --- pipes --- */

struct sim_pipe *sim_pipe_new(int *ret_fd)
{
	struct sim_pipe *p = new0(struct sim_pipe);

	*ret_fd = fd_new(sim_process_here());
	descriptor(*ret_fd)->pipe = p;
	return p;
}

bool sim_pipe_write(struct sim_pipe *p, const void *bytes, size_t n)
{
	if (p->unread)
		return false;
	if (p->len + n > p->room) {
		p->room = 2 * (p->len + n);
		p->bytes = mem_grow(p->bytes, p->room, 1);
	}
	memcpy(p->bytes + p->len, bytes, n);
	p->len += n;
	changed();
	return true;
}

void sim_pipe_close(struct sim_pipe *p)
{
	p->closed = true;
	changed();
}

bool sim_pipe_is_given_up(const struct sim_pipe *p)
{
	return p->unread && !p->heard;
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	struct sim_pipe *p;

	if (fd < FIRST_FD)
		return __real_read(fd, buf, n);
	p = descriptor(fd)->pipe;
	n = min_of(n, p->len - p->at);
	if (!n && !p->closed)
		return fail(EAGAIN);
	p->heard |= !n;
	if (n)
		memcpy(buf, p->bytes + p->at, n);
	p->at += n;
	return (ssize_t)n;
}

ssize_t __wrap___read_chk(int fd, void *buf, size_t n, size_t size)
{
	(void)size;
	return __wrap_read(fd, buf, n);
}

/* --- helpers --- */

static void tell_parent(void *data)
{
	(void)data;
	if (child_fn)
		sim_loop_call(child_fn, child_data);
}

void process_end(struct sim_process *p)
{
	if (p->dead)
		return;
	p->dead = true;
	for (int i = 0; i < n_fds; i++)
		if (fds[i].open && fds[i].owner == p)
			descriptor_close(&fds[i]);
	sim_disk_close_of(p);
	if (p->life == sim_life())
		sim_after(0, SIM_OF_KXFS, tell_parent, NULL);
	changed();
}

static void helper(void *data)
{
	struct sim_process *p = data;

	sim_task_join(p);
	sim_sleep(1 + sim_delay(SIM_MACHINE, HELLO_MS * SIM_MS));
	helper_run(p->instructions_fd, p->listen_fd);
	process_end(p);
}

int spawn_self(char *const *argv, char *const *env, const int given[3], pid_t *ret)
{
	struct sim_process *p;

	sim_of_world();
	(void)argv, (void)env;
	if (has_no_descriptor())
		return -EAGAIN;
	p = new0(struct sim_process);
	p->pid = FIRST_PID + (pid_t)n_processes;
	p->life = sim_life();
	p->instructions_fd = sim_disk_give(given[0], p);
	p->listen_fd = fd_new(p);
	descriptor(p->listen_fd)->listener = descriptor(given[1])->listener;
	descriptor(p->listen_fd)->listener->refs++;
	processes = mem_grow(processes, n_processes + 1, sizeof(struct sim_process *));
	processes[n_processes++] = p;
	*ret = p->pid;
	sim_task_start(SIM_OF_MACHINE, helper, p);
	return 0;
}

int spawn_program(char *const *args, char *const *env, const int given[3], pid_t *ret)
{
	(void)args, (void)env, (void)given, (void)ret;
	sim_fail("kxfs starts a program that is not a helper");
}

void spawn_between(char **argv)
{
	(void)argv;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	const struct sim_process *p;

	if (pid < FIRST_PID || pid >= FIRST_PID + (pid_t)n_processes)
		return __real_waitpid(pid, status, options);
	p = processes[pid - FIRST_PID];
	return p->dead ? pid : 0;
}

int __wrap_kill(pid_t pid, int sig)
{
	if (pid >= 0)
		return __real_kill(pid, sig);
	machine_signal(-pid, sig);
	return 0;
}

/* --- kills and power cuts --- */

void sim_process_kill_kxfs(void)
{
	child_fn = NULL;
	for (int i = 0; i < n_fds; i++) {
		if (!fds[i].open || fds[i].owner)
			continue;
		fds[i].watch = NULL;
		descriptor_close(&fds[i]);
	}
	changed();
}

void sim_process_power_cut(void)
{
	for (size_t i = 0; i < n_processes; i++) {
		processes[i]->guarded = false;
		process_end(processes[i]);
	}
}

void sim_process_mend(void)
{
	mended = true;
	for (size_t i = 0; i < n_processes; i++)
		processes[i]->stopped_until = 0;
}
