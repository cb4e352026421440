/* SPDX-License-Identifier: MIT */
/* The state directory: checks with words that say what to do, and its lock. */
#include "fs/mount/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/loop.h"
#include "backend/base/process.h"
#include "fs/cli/refuse.h"
#include "fs/mount/mountpoint.h"
#include "spec/base/mem.h"

#define PROBE_BYTES 65536 /* so much must have room at the start */
#define RETRY_MS    100
#define PATIENCE_MS 500 /* who waits longer is told for what */
/* How long a process that has been killed may still hold the lock. */
#define DEAD_MS 5000

/* STATE/version. What is kept here, and what is said to helpers of local jobs, changes with the number. */
#define VERSION_FILE "version"
#define VERSION_TEXT "kxfs state 2\n"
#define VERSION_MAX  64

struct state {
	char *dir;
	char *mountpoint;
	int lock_fd;
	bool locked; /* by this mount, not by another one */
	char *made; /* the first directory of the path that was made for this mount; NULL: none, or it is mounted */
};

/* What a lock file says. */
struct holder {
	int pid;
	enum state_phase phase;
	char mountpoint[PATH_MAX]; /* "" unknown */
};

static const char *const phases[] = {"starting", "mounted", "ending"};

int state_default(const char *key, char **ret, char **ret_text)
{
	const char *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	const struct passwd *pw;

	/* The XDG specification says that a relative path is to be ignored. */
	if (xdg && xdg[0] == '/') {
		*ret = text_print("%s/kxfs/%s", xdg, key);
	} else if (geteuid() == 0) {
		*ret = text_print("/var/lib/kxfs/%s", key);
	} else {
		if (!home || home[0] != '/') {
			pw = getpwuid(geteuid());
			home = pw && pw->pw_dir[0] == '/' ? pw->pw_dir : NULL;
		}
		if (!home)
			return refuse(-ENOENT, ret_text,
				      "no home directory for the state: set HOME, or give -o "
				      "state=DIR");
		*ret = text_print("%s/.local/state/kxfs/%s", home, key);
	}
	return 0;
}

/* The canonical path of DIR, whose last parts need not exist. malloc'ed; NULL with errno. */
static char *canonical(const char *dir)
{
	cleanup_free char *head = text_copy(dir);
	cleanup_free char *real = NULL;
	char *slash;
	char *path;

	while (!(real = realpath(head[0] ? head : "/", NULL)) && errno == ENOENT) {
		slash = strrchr(head, '/');
		if (!slash) { /* "name" in the working directory */
			real = realpath(".", NULL);
			head[0] = 0;
			break;
		}
		*slash = 0;
	}
	if (!real)
		return NULL;
	dir += strlen(head);
	dir += strspn(dir, "/");
	path = text_print("%s%s%s", streq(real, "/") ? "" : real,
			  dir[0] || streq(real, "/") ? "/" : "", dir);
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = 0;
	return path;
}

/* mkdir -p with mode 0700. *MADE: the first that was not there. */
static int make(const char *dir, char **made)
{
	cleanup_free char *path = text_copy(dir);

	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = 0;
		if (mkdir(path, 0700) == 0) {
			if (!*made)
				*made = text_copy(path);
		} else if (errno != EEXIST) {
			return -errno;
		}
		if (!c)
			return 0;
		*p = c;
	}
}

/* Directories in STATE that hold what is kept. */
static const char *const contents[] = {"jobs", "submit", "dryrun"};

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/*
 * Is DIR empty, or has a kxfs used it? A directory that holds other things is taken by mistake,
 * like state=$HOME, and its permissions are not for us to change.
 */
static bool is_ours(const char *dir)
{
	DIR *d cleanup(close_dir) = opendir(dir);
	bool others = false;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (streq(e->d_name, "lock"))
			return true;
		for (size_t i = 0; i < array_size(contents); i++)
			if (streq(e->d_name, contents[i]))
				return true;
		if (!streq(e->d_name, ".") && !streq(e->d_name, "..") &&
		    !streq(e->d_name, "lost+found"))
			others = true;
	}
	return d && !others;
}

/* Can a file of some size be written? */
static int probe(const char *dir)
{
	cleanup_free char *name = text_print("%s/probe-XXXXXX", dir);
	cleanup_free char *zeros = mem_zero(PROBE_BYTES);
	cleanup_fd int fd = mkostemp(name, O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = file_write_all(fd, zeros, PROBE_BYTES);
	unlink(name);
	return r;
}

static int explain(int err, const char *dir, char **ret_text)
{
	errno = -err;
	if (err == -ENOSPC || err == -EDQUOT)
		return refuse(
			err, ret_text,
			"%s: no room for the state (%m): make room, or give another directory "
			"with -o state=DIR",
			dir);
	return refuse(
		err, ret_text,
		"%s: the state can't be kept here: %m: give another directory with -o state=DIR",
		dir);
}

/* Everything that must be right of a directory that is there. */
static int check(const char *dir, char **ret_text)
{
	struct stat st;
	int r;

	if (stat(dir, &st) < 0)
		return explain(-errno, dir, ret_text);
	if (!S_ISDIR(st.st_mode))
		return explain(-ENOTDIR, dir, ret_text);
	if (st.st_uid != geteuid())
		return refuse(-EPERM, ret_text,
			      "%s: belongs to another user (uid %u), who could change jobs: give a "
			      "directory of your own with -o state=DIR",
			      dir, (unsigned)st.st_uid);
	if (!is_ours(dir))
		return refuse(
			-ENOTEMPTY, ret_text,
			"%s: not empty, and no kxfs has used it: give an empty directory with "
			"-o state=DIR",
			dir);
	if ((st.st_mode & 0777) != 0700 && chmod(dir, 0700) < 0)
		return explain(-errno, dir, ret_text);
	r = probe(dir);
	return r < 0 ? explain(r, dir, ret_text) : 0;
}

static void read_holder(int fd, struct holder *ret)
{
	char text[PATH_MAX + 64];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	char phase[16] = "";
	int at = 0;

	*ret = (struct holder){.phase = STATE_STARTING};
	text[max_of(n, 0)] = 0;
	if (sscanf(text, "pid %d\nphase %15s\nmountpoint %n", &ret->pid, phase, &at) < 2 || !at)
		return;
	for (size_t i = 0; i < array_size(phases); i++)
		if (streq(phases[i], phase))
			ret->phase = (enum state_phase)i;
	snprintf(ret->mountpoint, sizeof(ret->mountpoint), "%s", text + at);
	n = (ssize_t)strlen(ret->mountpoint);
	if (n > 0 && ret->mountpoint[n - 1] == '\n')
		ret->mountpoint[n - 1] = 0;
}

/* Has the holder's mount gone, so that it will end by itself? */
static bool is_ending(const struct holder *h)
{
	return h->phase == STATE_ENDING ||
	       (h->phase == STATE_MOUNTED && !mountpoint_is_kxfs(h->mountpoint));
}

static int refuse_held(const struct state *s, const struct holder *h, char **ret_text)
{
	static const char advice[] = "use that, or give another directory with -o state=DIR";

	if (!h->pid)
		return refuse(-EBUSY, ret_text, "%s: in use by another kxfs: %s", s->dir, advice);
	if (is_ending(h))
		return refuse(-EBUSY, ret_text,
			      "%s: process %d still ends the jobs of its mount on %s: try again "
			      "later, or kill -9 %d",
			      s->dir, h->pid, h->mountpoint, h->pid);
	return refuse(-EBUSY, ret_text, "%s: in use by process %d, which %s on %s: %s", s->dir,
		      h->pid, h->phase == STATE_STARTING ? "is about to mount" : "is mounted",
		      h->mountpoint, advice);
}

/*
 * Is H's process dead? It keeps the lock until the last of its threads is gone, which after a kill may be a moment
 * later, as long as one of them waits for the disk.
 */
static bool is_dead(const struct holder *h)
{
	struct process_stat stat;

	return h->pid && (process_stat(h->pid, &stat) < 0 || stat.remains);
}

static int lock(struct state *s, unsigned wait_ms, char **ret_text)
{
	uint64_t begin = loop_now_ms();
	bool told = false;
	struct holder h;

	while (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return explain(-errno, s->dir, ret_text);
		read_holder(s->lock_fd, &h);
		if (is_dead(&h))
			wait_ms = max_of(wait_ms, (unsigned)DEAD_MS);
		else if (!is_ending(&h))
			return refuse_held(s, &h, ret_text);
		if (loop_now_ms() - begin >= wait_ms)
			return refuse_held(s, &h, ret_text);
		if (!told && loop_now_ms() - begin >= PATIENCE_MS)
			diag(DIAG_INFO,
			     "waiting for process %d, which still ends the jobs of its mount on %s (at most %u s)",
			     h.pid, h.mountpoint, wait_ms / 1000);
		told |= loop_now_ms() - begin >= PATIENCE_MS;
		usleep(RETRY_MS * 1000);
	}
	return 0;
}

/* Does DIR hold anything that a kxfs has kept? */
static bool has_contents(const char *dir)
{
	for (size_t i = 0; i < array_size(contents); i++) {
		cleanup_free char *path = text_print("%s/%s", dir, contents[i]);

		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/*
 * Is what is kept in DIR of this version? What another one has kept is not touched, not even moved: jobs that it
 * started may still be running there.
 */
static int check_version(const char *dir, char **ret_text)
{
	cleanup_free char *path = text_print("%s/" VERSION_FILE, dir);
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = file_read(path, VERSION_MAX, &text, &len);

	if (r == -ENOENT && !has_contents(dir))
		r = file_write(dir, VERSION_FILE, VERSION_TEXT, strlen(VERSION_TEXT));
	else if (r == -ENOENT || (r == 0 && !streq(text, VERSION_TEXT)))
		return refuse(
			-ENOTSUP, ret_text,
			"%s: was kept by another version of kxfs, and this one can't read it: end the jobs that "
			"run there with that version, then mv %s %s.old, or give another directory with -o "
			"state=DIR",
			dir, dir, dir);
	return r < 0 ? explain(r, dir, ret_text) : 0;
}

/* Has the file that is locked been removed, by a mount that never came up? */
static bool lock_is_gone(const struct state *s)
{
	struct stat st;

	return fstat(s->lock_fd, &st) == 0 && st.st_nlink == 0;
}

static int make_and_lock(struct state *s, unsigned wait_ms, char **ret_text)
{
	cleanup_free char *path = text_print("%s/lock", s->dir);
	int r = make(s->dir, &s->made);

	if (r < 0)
		return explain(r, s->dir, ret_text);
	r = check(s->dir, ret_text);
	if (r < 0)
		return r;
	base_close_fd(&s->lock_fd);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return explain(-errno, s->dir, ret_text);
	r = lock(s, wait_ms, ret_text);
	s->locked = r == 0;
	return r;
}

static int take(struct state *s, unsigned wait_ms, char **ret_text)
{
	int r;

	do
		r = make_and_lock(s, wait_ms, ret_text);
	while (r == 0 && lock_is_gone(s));
	if (r == 0)
		r = check_version(s->dir, ret_text);
	if (r == 0)
		state_enter(s, STATE_STARTING);
	return r;
}

int state_look(const char *dir, char **ret_text)
{
	cleanup_free char *path = canonical(dir);
	cleanup_free char *there = path ? text_copy(path) : NULL;
	struct statvfs room;

	if (!path)
		return explain(-errno, dir, ret_text);
	while (access(there, F_OK) < 0 && errno == ENOENT && strlen(there) > 1)
		*max_of(strrchr(there, '/'), there + 1) = '\0';
	if (access(there, W_OK | X_OK) < 0 || statvfs(there, &room) < 0)
		return explain(-errno, path, ret_text);
	*ret_text = text_print("%s %s, %.1f GiB free", path,
			       streq(there, path) ? "can be written" : "can be made",
			       (double)room.f_bavail * (double)room.f_frsize / (1 << 30));
	return 0;
}

int state_open(const char *dir, const char *mountpoint, unsigned wait_ms, struct state **ret,
	       char **ret_text)
{
	struct state *s = new0(struct state);
	int r;

	s->lock_fd = -1;
	s->mountpoint = text_copy(mountpoint);
	s->dir = canonical(dir);
	if (!s->dir)
		r = explain(-errno, dir, ret_text);
	else if (file_is_below(s->dir, mountpoint) || file_is_below(mountpoint, s->dir))
		r = refuse(-EINVAL, ret_text,
			   "%s: the state directory and the mount point %s must not lie in each "
			   "other: give another directory with -o state=DIR",
			   s->dir, mountpoint);
	else
		r = take(s, wait_ms, ret_text);
	if (r < 0) {
		state_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

const char *state_dir(const struct state *s)
{
	return s->dir;
}

void state_enter(struct state *s, enum state_phase phase)
{
	cleanup_free char *text = text_print("pid %d\nphase %s\nmountpoint %s\n", getpid(),
					     phases[phase], s->mountpoint);

	/* Only people and waiters read it: a full disk must not end the mount. */
	(void)!pwrite(s->lock_fd, text, strlen(text), 0);
	(void)!ftruncate(s->lock_fd, (off_t)strlen(text));
	if (phase == STATE_MOUNTED)
		state_leave(s);
}

void state_leave(struct state *s)
{
	free(take_ptr(s->made));
}

static bool is_empty_but_lock(DIR *d)
{
	const struct dirent *e;
	bool others = false;

	rewinddir(d);
	while ((e = readdir(d)))
		others |= !streq(e->d_name, ".") && !streq(e->d_name, "..") &&
			  !streq(e->d_name, "lock");
	return !others;
}

/* Remove what every start writes, if there is nothing else. */
static void discard_contents(const char *dir)
{
	DIR *d cleanup(close_dir) = opendir(dir);
	const struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d)))
		if (!streq(e->d_name, ".") && !streq(e->d_name, "..") && !streq(e->d_name, "lock"))
			unlinkat(dirfd(d), e->d_name,
				 streq(e->d_name, VERSION_FILE) ? 0 : AT_REMOVEDIR);
	if (is_empty_but_lock(d))
		unlinkat(dirfd(d), "lock", 0);
}

/* The mount never came up: remove the directories that were made for it, as far as they are empty. */
static void discard(const struct state *s)
{
	cleanup_free char *path = text_copy(s->dir);

	if (s->locked)
		discard_contents(s->dir);
	while (strlen(path) >= strlen(s->made) && rmdir(path) == 0)
		*strrchr(path, '/') = '\0';
}

void state_close(struct state *s)
{
	if (!s)
		return;
	if (s->made)
		discard(s);
	free(s->made);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s->dir);
	free(s->mountpoint);
	free(s);
}
