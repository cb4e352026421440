/* SPDX-License-Identifier: MIT */
/*
 * Processes of replicas, found in /proc: by the marks in the environment that they were started
 * with (KXFS_STATE, KXFS_JOB, KXFS_REPLICA), or by the session that their replica's process led.
 * So a daemon that has left its process group ends with its replica, as it would in a container.
 *
 * One look at /proc on the pool serves all replicas that have ended in the meantime; looks are
 * made one after another, in the order in which they were asked for.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <utlist.h>

#include "backend/local.h"
#include "spec/name.h"

/* Killed processes take a moment to go, and those that fork may hide once: look again, so often. */
#define LOOKS	    200
#define LOOK_NS	    10000000L
#define ENVIRON_MAX (8u << 20)

/* In the middle of an exec a process has no environment for a moment: look again, so often. */
#define EXEC_LOOKS 20
#define EXEC_NS	   1000000L

struct target {
	char *name;		   /* "ID/ROLE-K", or "ID/" for all of the job */
	struct local_replica *rep; /* I/O thread only */
};

struct local_scan {
	struct local_scan *prev, *next;
	struct local *l;
	const char *mark;
	int sig;
	bool all;	  /* whatever carries MARK */
	struct target *v; /* sorted by name */
	size_t n, room;
	pid_t *sessions; /* sorted */
	size_t n_sessions;
};

static void scan_free(struct local_scan *scan)
{
	for (size_t i = 0; i < scan->n; i++)
		free(scan->v[i].name);
	free(scan->v);
	free(scan->sessions);
	free(scan);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct target *)a)->name, ((const struct target *)b)->name);
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* The start environment of process PID. malloc'ed, ends with a NUL; NULL: can't be read, or gone. */
static char *read_environ(pid_t pid, size_t *ret_len)
{
	cleanup_free char *text = NULL;
	cleanup_fd int fd = -1;
	size_t len = 0, room = 0;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	for (;;) {
		ssize_t n;

		if (len + 1 >= room) {
			char *more;

			room = room ? 2 * room : 8192;
			more = room > ENVIRON_MAX ? NULL : realloc(text, room);
			if (!more)
				return NULL;
			text = more;
		}
		n = read(fd, text + len, room - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return NULL;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	*ret_len = len;
	return take_ptr(text);
}

/* The same of a process that may be in the middle of an exec. */
static char *read_environ_set(pid_t pid, size_t *ret_len)
{
	const struct timespec pause = {.tv_nsec = EXEC_NS};
	char *text = read_environ(pid, ret_len);

	for (int i = 0; i < EXEC_LOOKS && text && *ret_len == 0; i++) {
		if (local_process_birth(pid) == 0)
			break;
		nanosleep(&pause, NULL);
		free(text);
		text = read_environ(pid, ret_len);
	}
	return text;
}

/* The value, when PAIR begins with "KEY=" as PREFIX. */
static const char *value_of(const char *pair, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(pair, prefix, n) == 0 ? pair + n : NULL;
}

static bool is_target(const struct local_scan *scan, const char *job, const char *replica)
{
	cleanup_free char *name = NULL;
	struct target key;

	if (asprintf(&name, "%s/%s", job, replica) < 0) {
		name = NULL;
		return false;
	}
	if (scan->n == 0)
		return false;
	key.name = name;
	if (bsearch(&key, scan->v, scan->n, sizeof(key), by_name))
		return true;
	name[strlen(job) + 1] = '\0';
	return bsearch(&key, scan->v, scan->n, sizeof(key), by_name) != NULL;
}

static bool is_marked(const struct local_scan *scan, const char *text, size_t len)
{
	const char *job = NULL, *replica = NULL;
	bool ours = false;

	for (const char *p = text; p < text + len; p += strlen(p) + 1) {
		const char *value;

		if (streq(p, scan->mark))
			ours = true;
		else if ((value = value_of(p, "KXFS_JOB=")))
			job = value;
		else if ((value = value_of(p, "KXFS_REPLICA=")))
			replica = value;
	}
	return ours && (scan->all || (job && replica && is_target(scan, job, replica)));
}

/* Is process PID to be signalled? -EAGAIN: that can't be known now. */
static int is_wanted(const struct local_scan *scan, pid_t pid)
{
	cleanup_free char *text = NULL;
	pid_t session = getsid(pid);
	size_t len;

	/* The remains of a process that its parent has not fetched yet are no process any more. */
	if (session > 0 && scan->n_sessions &&
	    bsearch(&session, scan->sessions, scan->n_sessions, sizeof(session), by_pid))
		return local_process_birth(pid) != 0;
	errno = 0;
	/* Kernel threads, which are in no session, never have an environment. */
	text = session > 0 ? read_environ_set(pid, &len) : read_environ(pid, &len);
	if (text)
		return is_marked(scan, text, len);
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -EAGAIN : 0;
}

/* Signal all that is wanted. Is another look needed to be sure? */
static bool look(const struct local_scan *scan)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t self = getpid();
	bool again = false;

	if (!proc)
		return true;
	while ((entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		int wanted;

		if (pid <= 1 || *end || pid == self)
			continue;
		wanted = is_wanted(scan, (pid_t)pid);
		if (wanted < 0 || (wanted > 0 && kill((pid_t)pid, scan->sig) == 0))
			again = true;
	}
	closedir(proc);
	return again;
}

static void scan_run(struct local_scan *scan)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};

	if (scan->n)
		qsort(scan->v, scan->n, sizeof(*scan->v), by_name);
	if (scan->n_sessions)
		qsort(scan->sessions, scan->n_sessions, sizeof(*scan->sessions), by_pid);
	for (int i = 0; look(scan); i++) {
		if (scan->sig != SIGKILL)
			return;
		if (i == LOOKS) {
			diag(DIAG_WARNING, "not all processes of ended replicas are gone for sure, "
					   "though they were sent SIGKILL");
			return;
		}
		nanosleep(&pause, NULL);
	}
}

static void scan_next(void *data);

static void scan_work(void *data)
{
	scan_run(data);
}

static void scan_done(void *data)
{
	struct local_scan *scan = data;
	struct local *l = scan->l;

	DL_DELETE(l->scans, scan);
	l->scanning = false;
	for (size_t i = 0; i < scan->n; i++)
		if (scan->v[i].rep)
			local_replica_swept(scan->v[i].rep);
	scan_free(scan);
	scan_next(l);
	local_check_stopped(l);
}

static void scan_next(void *data)
{
	struct local *l = data;

	l->scan_posted = false;
	if (l->scanning || !l->scans)
		return;
	l->scanning = true;
	loop_work(l->b->loop, scan_work, scan_done, l->scans);
}

/* The scan for SIG that has not begun and to which a target can be added. NULL: no memory. */
static struct local_scan *scan_open(struct local *l, int sig)
{
	struct local_scan *scan = l->scans ? l->scans->prev : NULL;

	if (scan && scan->sig == sig && !(l->scanning && scan == l->scans))
		return scan;
	scan = calloc(1, sizeof(*scan));
	if (!scan)
		return NULL;
	scan->l = l;
	scan->mark = l->mark;
	scan->sig = sig;
	DL_APPEND(l->scans, scan);
	if (!l->scanning && !l->scan_posted) {
		/* Not at once: more replicas may end in this turn of the loop. */
		l->scan_posted = true;
		loop_post(l->b->loop, scan_next, l);
	}
	return scan;
}

static int scan_add(struct local_scan *scan, char *name, pid_t session, struct local_replica *rep)
{
	if (!name)
		return -ENOMEM;
	if (scan->n == scan->room) {
		size_t room = scan->room ? 2 * scan->room : 4;
		struct target *v = realloc(scan->v, room * sizeof(*v));
		pid_t *sessions = v ? realloc(scan->sessions, room * sizeof(*sessions)) : NULL;

		if (v)
			scan->v = v;
		if (!sessions) {
			free(name);
			return -ENOMEM;
		}
		scan->sessions = sessions;
		scan->room = room;
	}
	if (session > 0)
		scan->sessions[scan->n_sessions++] = session;
	scan->v[scan->n++] = (struct target){name, rep};
	return 0;
}

void local_scan_sweep(struct local_replica *rep)
{
	struct local_scan *scan = scan_open(rep->job->l, SIGKILL);
	cleanup_free char *dir = spec_name_replica_dir(local_replica_role(rep)->name, rep->rec->id);
	char *name;

	if (!scan || !dir || asprintf(&name, "%s/%s", rep->job->rec->id, dir) < 0)
		name = NULL;
	if (!name || scan_add(scan, name, (pid_t)rep->rec->pid, rep) < 0)
		local_replica_swept(rep); /* no memory to look: its group at least has ended */
}

void local_scan_signal(struct local_job *job, int sig)
{
	struct local_scan *scan = scan_open(job->l, sig);
	char *name;

	if (!scan || asprintf(&name, "%s/", job->rec->id) < 0)
		name = NULL;
	if (name)
		scan_add(scan, name, 0, NULL);
}

void local_scan_kill_all(const char *mark)
{
	struct local_scan scan = {.mark = mark, .sig = SIGKILL, .all = true};

	scan_run(&scan);
}
