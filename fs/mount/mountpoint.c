/* SPDX-License-Identifier: MIT */
/* Reads mountinfo, checks mount points, and unmounts. Error messages include the remedy. */
#include "fs/mount/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "backend/base/file.h"
#include "backend/base/print.h"
#include "spec/base/mem.h"

#define MAX_DEAD    16	  /* the most dead mounts to remove from a path */
#define HELPER_MS   10000 /* timeout of fusermount3 */
#define FUSE_DEVICE "/dev/fuse"
#define FUSE_MAJOR  10 /* device number of FUSE_DEVICE */
#define FUSE_MINOR  229

/* --- mountinfo --- */

/* Replace escapes such as "\040" in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		unsigned c;

		if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
			*to++ = (char)c;
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}

static bool parse_line(const char *line, struct mountinfo *ret)
{
	const char *tail = strstr(line, " - ");

	*ret = (struct mountinfo){0};
	if (sscanf(line, "%d %*d %u:%u %*s %ms", &ret->id, &ret->major, &ret->minor, &ret->path) !=
		    4 ||
	    !tail || sscanf(tail, " - %ms", &ret->type) != 1) {
		mountinfo_clear(ret);
		return false;
	}
	unescape(ret->path);
	return true;
}

/* Find mount ID. Return 0, -ENOENT, or another negative errno if F can't be read. */
static int find(FILE *f, int id, struct mountinfo *ret)
{
	cleanup_free char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, f) > 0) {
		if (parse_line(line, ret) && ret->id == id)
			return 0;
		mountinfo_clear(ret);
	}
	return ferror(f) ? -EIO : -ENOENT;
}

static int mount_id(int fd)
{
	cleanup_file FILE *f = NULL;
	char path[64];
	char line[256];
	int id;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "mnt_id: %d", &id) == 1)
			return id;
	return -EIO;
}

int mountinfo_of(const char *path, struct mountinfo *ret)
{
	cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);
	cleanup_file FILE *f = NULL;
	int id;

	*ret = (struct mountinfo){0};
	if (fd < 0)
		return -errno;
	id = mount_id(fd);
	if (id < 0)
		return id;
	f = fopen("/proc/self/mountinfo", "re");
	if (!f)
		return -errno;
	return find(f, id, ret);
}

bool mountinfo_process_lacks(int pid, const char *path)
{
	cleanup_free char *name = text_print("/proc/%d/mountinfo", pid);
	cleanup_file FILE *f = fopen(name, "re");
	cleanup_free char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (f && !found && getline(&line, &size, f) > 0) {
		cleanup_mountinfo struct mountinfo m;

		found = parse_line(line, &m) && streq(m.path, path) &&
			streq(m.type, MOUNTPOINT_TYPE);
	}
	return f && !found && !ferror(f);
}

int mountinfo_now(const struct mountinfo *m, struct mountinfo *ret)
{
	cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
	int r;

	*ret = (struct mountinfo){0};
	r = f ? find(f, m->id, ret) : -EIO;
	if (r == 0 && (ret->major != m->major || ret->minor != m->minor)) {
		mountinfo_clear(ret);
		r = -ENOENT;
	}
	return r;
}

void mountinfo_clear(struct mountinfo *m)
{
	free(m->path);
	free(m->type);
	*m = (struct mountinfo){0};
}

/* --- mount points --- */

/* Run fusermount3 without standard output. Return its exit status, or a negative errno. */
static int run_helper(char *const *argv)
{
	posix_spawn_file_actions_t files;
	cleanup_fd int fd = -1;
	int status;
	pid_t pid;
	int r;

	if (posix_spawn_file_actions_init(&files) != 0)
		return -ENOMEM;
	r = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (r == 0)
		r = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (r != 0)
		return -r;
	fd = (int)syscall(SYS_pidfd_open, pid, 0); /* glibc before 2.36 has no pidfd_open() */
	if (fd >= 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		do
			r = poll(&p, 1, HELPER_MS);
		while (r < 0 && errno == EINTR);
		if (r == 0)
			kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

int mountpoint_check_fuse(char **ret_text)
{
	char name[] = "fusermount3", arg[] = "--version";
	char *argv[] = {name, arg, NULL};
	cleanup_fd int fd = open(FUSE_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd >= 0 && geteuid() != 0 && run_helper(argv) != 0)
		return refuse(-ENOENT, ret_text,
			      "fusermount3 can't be run, but users other than root need it to "
			      "mount: install the package fuse3");
	if (fd >= 0)
		return 0;
	if (errno == EACCES)
		return refuse(-errno, ret_text,
			      FUSE_DEVICE
			      ": no permission to use FUSE: as root, run chmod 666 " FUSE_DEVICE
			      " (or add yourself to its group)");
	return refuse(-errno, ret_text,
		      FUSE_DEVICE ": %m: FUSE is not available: as root, run modprobe fuse; "
				  "a container needs --device " FUSE_DEVICE " --cap-add SYS_ADMIN");
}

int mountpoint_passed(const char *name)
{
	unsigned fd;
	int end = 0;

	if (!name || sscanf(name, "/dev/fd/%u%n", &fd, &end) != 1 || name[end] || fd > INT_MAX)
		return -1;
	return (int)fd > STDERR_FILENO ? (int)fd : -1;
}

int mountpoint_resolve(const char *name, char **ret_path, char **ret_text)
{
	const int passed = mountpoint_passed(name);
	cleanup_fd int fd = open(name, O_PATH | O_CLOEXEC);
	char link[64];
	char path[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (passed >= 0) {
		*ret_path = text_copy(name);
		if (fstat(passed, &st) == 0 && S_ISCHR(st.st_mode) &&
		    st.st_rdev == makedev(FUSE_MAJOR, FUSE_MINOR))
			return 0;
		return refuse(-EINVAL, ret_text,
			      "%s: not an open descriptor of " FUSE_DEVICE
			      ": open this device, mount with fd=%d, and pass the descriptor "
			      "to kxfs",
			      name, passed);
	}
	if (fd < 0 && errno == ENOENT)
		return refuse(-errno, ret_text, "%s: no such directory: mkdir -p %s", name, name);
	if (fd < 0)
		return refuse(-errno, ret_text, "%s: can't be reached: %m", name);
	if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
		return refuse(-ENOTDIR, ret_text, "%s: not a directory: give one to mount on",
			      name);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return refuse(-EIO, ret_text, "%s: can't be read: %m: is /proc mounted?", link);
	path[n] = 0;
	*ret_path = text_copy(path);
	return 0;
}

/* True if a kxfs, even a dead one, is mounted on PATH. This does not access the mount. */
static bool is_kxfs(const char *path)
{
	cleanup_mountinfo struct mountinfo m;

	return mountinfo_of(path, &m) == 0 && streq(m.path, path) && streq(m.type, MOUNTPOINT_TYPE);
}

int mountpoint_detach(const char *path)
{
	char name[] = "fusermount3";
	char how[] = "-uzq";
	char end[] = "--";
	cleanup_free char *copy = text_copy(path);
	char *argv[] = {name, how, end, copy, NULL};
	int r;

	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		return 0;
	r = run_helper(argv);
	return r > 0 ? -EPERM : r;
}

bool mountpoint_is_dead(const char *path)
{
	/* AT_STATX_FORCE_SYNC prevents an answer from the cache. */
	struct statx st;

	return statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_TYPE, &st) < 0 &&
	       (errno == ENOTCONN || errno == ECONNABORTED);
}

/*
 * Unmount dead mounts of kxfs on PATH. Refuse PATH if a live kxfs is mounted there, or a dead file
 * system that is not kxfs.
 */
static int replace_dead(const char *path, char **ret_text)
{
	for (int i = 0; i < MAX_DEAD && is_kxfs(path); i++) {
		if (!mountpoint_is_dead(path))
			return refuse(-EBUSY, ret_text,
				      "%s: a kxfs is mounted here already: use it, or unmount "
				      "it with fusermount3 -u %s",
				      path, path);
		if (mountpoint_detach(path) < 0)
			return refuse(-EBUSY, ret_text,
				      "%s: a kxfs that no longer runs is still mounted here, and "
				      "kxfs can't unmount it: as root, run umount -l %s",
				      path, path);
	}
	if (mountpoint_is_dead(path))
		return refuse(-errno, ret_text,
			      "%s: a file system whose process no longer runs is mounted here: as "
			      "root, run umount -l %s",
			      path, path);
	return 0;
}

/* Lock PATH itself: two kxfs processes may have no other file in common. */
static int lock_path(const char *path, int *ret, char **ret_text)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return refuse(-errno, ret_text, "%s: can't be read: %m", path);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		*ret = take_fd(&fd);
	else if (errno == EWOULDBLOCK)
		return refuse(-EBUSY, ret_text,
			      "%s: another kxfs is about to mount here: use its mount, or give "
			      "another directory",
			      path);
	return 0;
}

int mountpoint_prepare(const char *path, int *ret_lock, char **ret_text)
{
	int r = replace_dead(path, ret_text);
	cleanup_dir DIR *d = NULL;
	const struct dirent *e;

	if (r == 0)
		r = lock_path(path, ret_lock, ret_text);
	/* Check again: another process may have mounted here before this one got the lock. */
	if (r == 0)
		r = replace_dead(path, ret_text);
	if (r < 0)
		return r;
	if (access(path, W_OK) < 0 && errno != EROFS)
		return refuse(-errno, ret_text,
			      "%s: no permission to mount here: give a directory of your own",
			      path);
	d = opendir(path);
	if (!d)
		return refuse(-errno, ret_text, "%s: can't be read: %m", path);
	while ((e = readdir(d)))
		if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
			return refuse(-ENOTEMPTY, ret_text,
				      "%s: not empty: its files (%s ...) would be hidden; give an "
				      "empty directory",
				      path, e->d_name);
	return 0;
}
