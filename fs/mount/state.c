/* SPDX-License-Identifier: MIT */
/* Checks and locks the state directory. Error messages include the remedy. */
#include "fs/mount/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/loop.h"
#include "backend/base/print.h"
#include "backend/base/process.h"
#include "fs/mount/mountpoint.h"
#include "spec/base/mem.h"

#define PROBE_BYTES 65536 /* this many bytes must be free at the start */
#define RETRY_MS    100
#define NOTICE_MS   500 /* after this time, a message shows why locking takes long */
/* how long to wait until a killed process releases the lock */
#define DEAD_MS 5000

/*
 * Increase the number in VERSION_TEXT when the format of the state directory, or the protocol of
 * kxfs's helper processes, changes.
 */
#define VERSION_FILE "version"
#define VERSION_TEXT "kxfs state 5\n"
#define VERSION_MAX  64
#define LOCK_FILE    "lock"
#define PROBE_FILE   "probe"
#define READY_FILE   "ready"
#define NEW_FILE     ".version.new" /* the temporary name of VERSION_FILE in file_write */
#define WHERE_MAX    128

struct state {
	char *dir;
	char *mountpoint;
	/*
	 * kxfs locks both the directory and STATE/lock. The lock of the directory protects it even
	 * if somebody removes STATE/lock. But other machines that share the file system see only
	 * the lock of the file.
	 */
	int dir_fd, lock_fd;
	int flaw; /* -EROFS, -ENOSPC or -EDQUOT if writes fail, else 0 */
};

/* The contents of STATE/lock. */
struct holder {
	bool is_written; /* true if kxfs has written the file */
	bool is_here;	 /* true if PID is in our pid namespace */
	int pid;	 /* the holder of the locks; 0 if unknown */
	enum state_phase phase;
	char mountpoint[PATH_MAX]; /* a path in the mount namespace of PID */
};

static const char *const phases[] = {"starting", "mounted", "ending", "capturing"};

/* Set RET to a text that identifies this machine and pid namespace. */
static void find_where(char ret[static WHERE_MAX])
{
	struct utsname machine = {0};
	struct stat pids = {0};

	uname(&machine);
	stat("/proc/self/ns/pid", &pids);
	snprintf(ret, WHERE_MAX, "%s/pid:[%ju]", machine.nodename, (uintmax_t)pids.st_ino);
}

/* True for root, but not for root of a user namespace, who may not write to /var/lib. */
static bool is_root(void)
{
	return geteuid() == 0 && (access("/var/lib", W_OK) == 0 || errno != EACCES);
}

int state_default(const char *key, char **ret, char **ret_text)
{
	const char *xdg = getenv("XDG_STATE_HOME");
	cleanup_free char *home = NULL;

	/* The XDG specification demands that kxfs ignores a relative path. */
	if (xdg && xdg[0] == '/') {
		*ret = text_print("%s/kxfs/%s", xdg, key);
	} else if (is_root()) {
		*ret = text_print("/var/lib/kxfs/%s", key);
	} else {
		home = process_home();
		if (!home)
			return refuse(-ENOENT, ret_text,
				      "no home directory for storing the state: set HOME, or "
				      "give -o state=DIR");
		*ret = text_print("%s/.local/state/kxfs/%s", home, key);
	}
	return 0;
}

/*
 * Return DIR's canonical path, malloc'ed. The last components of DIR need not exist. On failure
 * return NULL and set errno.
 */
static char *canonical(const char *dir)
{
	cleanup_free char *head = text_copy(dir);
	cleanup_free char *real = NULL;
	char *slash;
	char *path;

	while (!(real = realpath(head[0] ? head : "/", NULL)) && errno == ENOENT) {
		slash = strrchr(head, '/');
		if (!slash) { /* only one component is left, as in "name" */
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

static int make(const char *dir)
{
	cleanup_free char *path = text_copy(dir);

	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = 0;
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
		if (!c)
			return 0;
		*p = c;
	}
}

static int explain(int err, const char *dir, char **ret_text)
{
	errno = -err;
	if (err == -ENOSPC || err == -EDQUOT)
		return refuse(err, ret_text,
			      "%s: no space for the state (%m): free some space, or give "
			      "another directory with -o state=DIR",
			      dir);
	return refuse(err, ret_text,
		      "%s: kxfs can't store its state here: %m: give another directory with -o "
		      "state=DIR",
		      dir);
}

/* --- the holder of the lock --- */

/*
 * Parse STATE/lock, which may be missing or empty. Return -EINVAL if it can't be read, or was not
 * written by kxfs.
 */
static int read_holder(const struct state *s, struct holder *ret)
{
	cleanup_fd int fd =
		openat(s->dir_fd, LOCK_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[PATH_MAX + 512], phase[16], where[WHERE_MAX], here[WHERE_MAX];
	ssize_t n = fd < 0 ? -errno : pread(fd, text, sizeof(text) - 1, 0);
	int at = 0;

	*ret = (struct holder){.phase = STATE_STARTING};
	if (n <= 0)
		return n == 0 || n == -ENOENT ? 0 : -EINVAL;
	text[n - (text[n - 1] == '\n')] = 0;
	if (sscanf(text, "pid %d\nphase %15s\nwhere %127s\nmountpoint %n", &ret->pid, phase, where,
		   &at) < 3 ||
	    !at)
		return -EINVAL;
	ret->is_written = true;
	find_where(here);
	ret->is_here = streq(where, here);
	snprintf(ret->mountpoint, sizeof(ret->mountpoint), "%s", text + at);
	for (size_t i = 0; i < array_size(phases); i++)
		if (streq(phases[i], phase))
			ret->phase = (enum state_phase)i;
	return 0;
}

/*
 * True if the holder is ending: STATE/lock shows this phase, or the holder's mount is gone. kxfs
 * can check the mount only if the holder is in the same pid namespace.
 */
static bool is_ending(const struct holder *h)
{
	return h->phase == STATE_ENDING ||
	       (h->phase == STATE_MOUNTED && h->is_here && mountpoint_passed(h->mountpoint) < 0 &&
		mountinfo_process_lacks(h->pid, h->mountpoint));
}

/* True if H's process is dead. Its last thread may still wait for the disk, and hold the locks. */
static bool is_dead(const struct holder *h)
{
	struct process_stat stat;

	return h->pid && h->is_here && (process_stat(h->pid, &stat) < 0 || stat.remains);
}

static int refuse_held(const struct state *s, const struct holder *h, char **ret_text)
{
	static const char advice[] = "use its mount, or give another directory with -o state=DIR";
	const char *where = h->is_here ? "" : " of another container or machine";
	cleanup_free char *kill =
		h->is_here ? text_print(", or kill -9 %d", h->pid) : text_copy("");

	if (!h->pid)
		return refuse(-EBUSY, ret_text, "%s: in use by another kxfs: %s", s->dir, advice);
	if (h->phase == STATE_CAPTURING)
		return refuse(-EBUSY, ret_text,
			      "%s: in use by process %d%s, a kxfs capture: end this process, or "
			      "give another directory with -o state=DIR",
			      s->dir, h->pid, where);
	if (is_ending(h))
		return refuse(-EBUSY, ret_text,
			      "%s: process %d%s is still ending its mount on %s: try again later%s",
			      s->dir, h->pid, where, h->mountpoint, kill);
	return refuse(-EBUSY, ret_text, "%s: in use by process %d%s, which %s on %s: %s", s->dir,
		      h->pid, where,
		      h->phase == STATE_STARTING ? "is about to mount" : "serves the mount",
		      h->mountpoint, advice);
}

/* --- the directory's contents --- */

/*
 * True if the directory is empty. Ignore lost+found, and files that remain if kxfs was killed at
 * its first start.
 */
static bool is_empty(const struct state *s)
{
	static const char *const made[] = {".",	       "..",	 LOCK_FILE,
					   PROBE_FILE, NEW_FILE, "lost+found"};
	cleanup_dir DIR *d = opendir(s->dir);
	const struct dirent *e;
	struct holder h;

	while (d && (e = readdir(d))) {
		size_t i = 0;

		while (i < array_size(made) && !streq(e->d_name, made[i]))
			i++;
		if (i == array_size(made))
			return false;
	}
	return d && read_holder(s, &h) == 0;
}

/*
 * Check that the directory belongs to this user, and is empty or has the version VERSION_TEXT.
 * Refuse a directory of another version of kxfs, because jobs of that version may still run there.
 * Refuse a directory with another purpose, such as $HOME. Until this has returned 0, kxfs changes
 * nothing in the directory, not even its permissions.
 */
static int check_ours(const struct state *s, char **ret_text)
{
	cleanup_free char *path = text_print("%s/" VERSION_FILE, s->dir);
	cleanup_free char *text = NULL;
	struct holder h;
	struct stat st;
	unsigned version;
	size_t len = 0;
	bool other;
	char end[2], more;
	int r;

	if (fstat(s->dir_fd, &st) < 0)
		return explain(-errno, s->dir, ret_text);
	if (st.st_uid != geteuid())
		return refuse(-EPERM, ret_text,
			      "%s: belongs to another user (uid %u), who could change your "
			      "jobs: give a directory of your own with -o state=DIR",
			      s->dir, (unsigned)st.st_uid);
	r = file_read(path, VERSION_MAX, &text, &len);
	if (r && file_fault_may_pass(r))
		return explain(r, path, ret_text);
	if ((r == 0 && streq(text, VERSION_TEXT)) || (r == -ENOENT && is_empty(s)))
		return 0;
	other = r == 0 && sscanf(text, "kxfs state %u%1[\n]%c", &version, end, &more) == 2;
	if (!other && (read_holder(s, &h) < 0 || !h.is_written))
		return refuse(-ENOTEMPTY, ret_text,
			      "%s: not empty, and not a state directory of kxfs: give an empty "
			      "directory with -o state=DIR",
			      s->dir);
	if (other)
		return refuse(
			-ENOTSUP, ret_text,
			"%s: another version of kxfs uses this state directory: end its jobs with that "
			"version and run 'mv %s %s.old', or give another directory with -o state=DIR",
			s->dir, s->dir, s->dir);
	return refuse(-EBADMSG, ret_text,
		      "%s: damaged: if this version of kxfs stored its state here, run 'rm -f %s' "
		      "and write the line '%.*s' into %s; else give another directory with -o "
		      "state=DIR",
		      path, path, (int)strlen(VERSION_TEXT) - 1, VERSION_TEXT, path);
}

/* True if a mount is useful despite ERR: users can read files, or remove some to free space. */
static bool is_disk_flaw(int err)
{
	return err == -EROFS || err == -ENOSPC || err == -EDQUOT;
}

/*
 * Set up the directory, and check that PROBE_BYTES can be written. If the disk is full or
 * read-only, but kxfs has used the directory before, set s->flaw and return 0.
 */
static int settle(struct state *s, char **ret_text)
{
	bool is_kept = faccessat(s->dir_fd, VERSION_FILE, F_OK, 0) == 0;
	cleanup_free char *zeros = mem_zero(PROBE_BYTES);
	cleanup_fd int fd = -1;
	struct stat st;
	int r = 0;

	if (fstat(s->dir_fd, &st) < 0 ||
	    ((st.st_mode & 0777) != 0700 && fchmod(s->dir_fd, 0700) < 0) ||
	    (fd = openat(s->dir_fd, PROBE_FILE,
			 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
		r = -errno;
	if (fd >= 0) {
		r = file_write_all(fd, zeros, PROBE_BYTES);
		unlinkat(s->dir_fd, PROBE_FILE, 0);
	}
	if (r == 0 && !is_kept)
		r = file_write(s->dir, VERSION_FILE, VERSION_TEXT, strlen(VERSION_TEXT));
	if (is_kept && is_disk_flaw(r))
		s->flaw = r;
	return r < 0 && !s->flaw ? explain(r, s->dir, ret_text) : 0;
}

/* --- the locks --- */

/* Take both locks. If the file system can't lock directories, lock only the file. */
static int try_lock(const struct state *s)
{
	if (flock(s->dir_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return -errno;
	return flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static int lock(const struct state *s, unsigned wait_ms, char **ret_text)
{
	uint64_t begin = loop_now_ms();
	bool notified = false;
	struct holder h;
	int r;

	while ((r = try_lock(s)) < 0) {
		if (r != -EWOULDBLOCK)
			return explain(r, s->dir, ret_text);
		read_holder(s, &h);
		if (is_dead(&h))
			wait_ms = max_of(wait_ms, (unsigned)DEAD_MS);
		else if (!is_ending(&h))
			return refuse_held(s, &h, ret_text);
		if (loop_now_ms() - begin >= wait_ms)
			return refuse_held(s, &h, ret_text);
		if (!notified && loop_now_ms() - begin >= NOTICE_MS)
			diag(DIAG_INFO,
			     "waiting for process %d, which is still ending its mount on %s (at most %u s)",
			     h.pid, h.mountpoint, wait_ms / 1000);
		notified |= loop_now_ms() - begin >= NOTICE_MS;
		usleep(RETRY_MS * 1000);
	}
	return 0;
}

static int take(struct state *s, unsigned wait_ms, char **ret_text)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int r = make(s->dir);

	if (r == 0 && (s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		r = -errno;
	if (r < 0)
		return explain(r, s->dir, ret_text);
	r = check_ours(s, ret_text);
	if (r < 0)
		return r;
	s->lock_fd = openat(s->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | flags, 0600);
	if (s->lock_fd < 0 && is_disk_flaw(-errno))
		s->lock_fd = openat(s->dir_fd, LOCK_FILE, O_RDONLY | flags);
	if (s->lock_fd < 0)
		return explain(-errno, s->dir, ret_text);
	r = lock(s, wait_ms, ret_text);
	/* Check again: another version of kxfs may have had the lock, and used the directory. */
	if (r == 0)
		r = check_ours(s, ret_text);
	if (r == 0)
		r = settle(s, ret_text);
	if (r == 0)
		state_enter(s, STATE_STARTING);
	return r;
}

int state_check(const char *dir, char **ret_text)
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
			       streq(there, path) ? "can be written" : "can be created",
			       (double)room.f_bavail * (double)room.f_frsize / (1 << 30));
	return 0;
}

int state_open(const char *dir, const char *mountpoint, unsigned wait_ms, struct state **ret,
	       char **ret_text)
{
	struct state *s = new0(struct state);
	int r;

	s->dir_fd = s->lock_fd = -1;
	s->mountpoint = text_copy(mountpoint);
	s->dir = canonical(dir);
	if (!s->dir)
		r = explain(-errno, dir, ret_text);
	else if (mountpoint[0] &&
		 (file_is_below(s->dir, mountpoint) || file_is_below(mountpoint, s->dir)))
		r = refuse(
			-EINVAL, ret_text,
			"%s: the state directory must not be inside or above the mount point %s: "
			"give another directory with -o state=DIR",
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

int state_flaw(const struct state *s)
{
	return s->flaw;
}

void state_enter(struct state *s, enum state_phase phase)
{
	cleanup_free char *text = NULL;
	char where[WHERE_MAX];

	find_where(where);
	text = text_print("pid %d\nphase %s\nwhere %s\nmountpoint %s\n", getpid(), phases[phase],
			  where, s->mountpoint);

	/*
	 * Ignore errors. Only people and waiting processes read this text, so a full disk must not
	 * end the mount.
	 */
	(void)!pwrite(s->lock_fd, text, strlen(text), 0);
	(void)!ftruncate(s->lock_fd, (off_t)strlen(text));
	if (phase == STATE_MOUNTED || phase == STATE_CAPTURING) {
		cleanup_fd int fd = openat(s->dir_fd, READY_FILE,
					   O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	} else {
		unlinkat(s->dir_fd, READY_FILE, 0);
	}
}

void state_close(struct state *s)
{
	if (!s)
		return;
	base_close_fd(&s->lock_fd);
	base_close_fd(&s->dir_fd);
	free(s->dir);
	free(s->mountpoint);
	free(s);
}
