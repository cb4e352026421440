/* SPDX-License-Identifier: MIT */
/*
 * A replica's output on its way: its stdout and stderr are one pipe, and a process of its own
 * (relay.c) appends what comes out of it to the log. A log that were the program's stdout itself
 * could be cut by it: "echo x > /dev/stderr" opens the file behind the descriptor anew, truncated.
 * Here: starting such a process, its end, and those that a daemon that crashed has left.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include "backend/local.h"
#include "backend/relay.h"

/* For who has left the job and still holds the pipe, after all else of the replica is gone. */
#define LATE_MS	 2000
#define AGAIN_MS 500

#define LEFT_LATE_MS 1000
#define LEFT_LOOK_NS 20000000L

struct local_relay {
	uv_process_t process;
	struct local *l;
	struct local_replica *rep; /* NULL: nobody waits for it */
	struct loop_timer *timer;  /* until it is told that it is enough */
	bool ending;
	bool said_late;
};

static void relay_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Why it ended before its time. NULL: it did not. */
static char *relay_text(int64_t status, int sig)
{
	char *text = NULL, name[32];
	int n = 0;

	if (sig) {
		local_signal_text(sig, name);
		n = asprintf(&text,
			     "its output is cut: the process that keeps it was ended by "
			     "signal %s",
			     name);
	} else if (status) {
		n = asprintf(&text, "its output can't be written: %s", strerror((int)status));
	}
	return n < 0 ? NULL : text;
}

static void relay_exited(uv_process_t *process, int64_t status, int sig)
{
	struct local_relay *relay = process->data;
	struct local_replica *rep = relay->rep;
	struct local *l = relay->l;
	bool ending = relay->ending;

	loop_timer_free(take_ptr(relay->timer));
	uv_close((uv_handle_t *)process, relay_closed);
	l->n_relays--;
	if (rep) {
		rep->relay = NULL;
		if (status || sig)
			local_replica_lost(rep, relay_text(status, sig));
		if (ending)
			local_replica_drained(rep);
	}
	local_check_stopped(l);
}

/* The daemon's environment without the marks by which processes of replicas are found. */
static char **relay_env(void)
{
	static const char *const marks[] = {"KXFS_STATE=", "KXFS_JOB=", "KXFS_REPLICA="};
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 1, sizeof(*env));
	for (size_t i = 0; env && i < n; i++) {
		bool is_mark = false;

		for (size_t k = 0; k < array_size(marks); k++)
			is_mark |= strncmp(environ[i], marks[k], strlen(marks[k])) == 0;
		if (!is_mark)
			env[kept++] = environ[i];
	}
	return env;
}

static int relay_spawn(struct local_relay *relay, char **env, int in, int log_fd)
{
	char name[] = RELAY_NAME, self[] = "/proc/self/exe", root[] = "/";
	char *argv[] = {name, NULL};
	uv_stdio_container_t stdio[3] = {
		{.flags = UV_INHERIT_FD, .data.fd = in},
		{.flags = UV_INHERIT_FD, .data.fd = log_fd},
		{.flags = UV_IGNORE},
	};
	uv_process_options_t options = {
		.exit_cb = relay_exited,
		.file = self,
		.args = argv,
		.env = env,
		.cwd = root,
		.flags = UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = stdio,
	};

	relay->process.data = relay;
	return uv_spawn(loop_uv(relay->l->b->loop), &relay->process, &options);
}

/* One for REP that reads IN. */
static int relay_new(struct local_replica *rep, int in, int log_fd)
{
	cleanup_free char **env = relay_env();
	struct local_relay *relay = env ? calloc(1, sizeof(*relay)) : NULL;
	int err;

	if (!relay)
		return -ENOMEM;
	relay->l = rep->job->l;
	err = relay_spawn(relay, env, in, log_fd);
	if (err < 0) {
		uv_close((uv_handle_t *)&relay->process, relay_closed);
		return err;
	}
	relay->rep = rep;
	rep->relay = relay;
	relay->l->n_relays++;
	return 0;
}

int local_relay_start(struct local_replica *rep, int log_fd, int *ret_fd, char **ret_text)
{
	cleanup_fd int in = -1, out = -1;
	int fds[2];
	int err = 0;

	assert(!rep->relay);
	if (flock(log_fd, LOCK_EX | LOCK_NB) < 0 || pipe2(fds, O_CLOEXEC) < 0) {
		err = -errno;
	} else {
		in = fds[0];
		out = fds[1];
		err = relay_new(rep, in, log_fd);
	}
	if (err < 0) {
		if (asprintf(ret_text, "its output can't be kept: %s", strerror(-err)) < 0)
			*ret_text = NULL;
		return err;
	}
	*ret_fd = take_fd(&out);
	return 0;
}

void local_relay_drop(struct local_replica *rep)
{
	if (rep->relay)
		take_ptr(rep->relay)->rep = NULL;
}

/* It still runs: a process that is no longer the job's has the pipe open, or the disk is slow. */
static void relay_late(void *data)
{
	struct local_relay *relay = data;
	const struct local_replica *rep = relay->rep;

	if (rep && !relay->said_late)
		diag(DIAG_WARNING,
		     "%s: %s-%u: its output is still open %d s after its end, by a process that "
		     "has "
		     "left the job or because the disk is slow; what was printed until now is "
		     "kept, "
		     "nothing after it",
		     rep->job->rec->id, local_replica_role(rep)->name, rep->rec->id,
		     LATE_MS / 1000);
	relay->said_late = true;
	kill(relay->process.pid, RELAY_ENOUGH);
}

void local_relay_end(struct local_replica *rep)
{
	struct local_relay *relay = rep->relay;

	if (!relay) {
		local_replica_drained(rep);
		return;
	}
	relay->ending = true;
	relay->timer = loop_timer_new(relay->l->b->loop, LATE_MS, AGAIN_MS, relay_late, relay);
	if (!relay->timer)
		relay_late(relay);
}

/* --- what a crashed daemon has left; on the pool --- */

/* Tell it, if it can be found, that it is enough. */
static void left_enough(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 1)
		kill(lock.l_pid, RELAY_ENOUGH);
}

bool local_relay_await(const char *path, uint64_t deadline)
{
	const struct timespec pause = {.tv_nsec = LEFT_LOOK_NS};
	cleanup_fd int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	uint64_t late = loop_now_ms() + LEFT_LATE_MS;

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		uint64_t now = loop_now_ms();

		if (now >= deadline)
			return false;
		if (now >= late)
			left_enough(fd);
		nanosleep(&pause, NULL);
	}
	return true;
}
