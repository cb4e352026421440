/* SPDX-License-Identifier: MIT */
/*
 * The FUSE session. This file does three things that libfuse does not do reliably. It interrupts
 * the serving threads to end the session. It detects an unmount even while files are open (umount
 * -l). It unmounts only its own mount; libfuse would unmount whatever is mounted at the path.
 */
#include "fs/mount/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "backend/base/loop.h"
#include "fs/mount/mountpoint.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"

#define WAKE_MS 20

struct session {
	struct fs *fs;
	struct fuse_session *fuse;
	const char *mountpoint;
	pthread_t thread; /* the thread that called session_new */
	bool mounted;	  /* used only by THREAD */
	struct mountinfo mount;
	atomic_bool served; /* true if session_serve has returned */
	/* I/O thread: */
	bool stopping;
	struct loop_timer wake;
	int mounts_fd; /* a descriptor of /proc/self/mountinfo */
	struct loop_watch *watch;
};

static printf_like(2, 0) void log_fuse(enum fuse_log_level level, const char *fmt, va_list ap)
{
	cleanup_free char *text = text_vprint(fmt, ap);

	text[strcspn(text, "\n")] = 0;
	diag(level <= FUSE_LOG_ERR	 ? DIAG_ERROR
	     : level <= FUSE_LOG_WARNING ? DIAG_WARNING
					 : DIAG_DEBUG,
	     "%s", text);
}

static void on_wake_signal(int sig)
{
	(void)sig; /* the signal makes a waiting system call return */
}

static struct fuse_session *open_session(struct fs *fs, const struct options *o)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se = NULL;
	cleanup_free char *list =
		text_print("fsname=%s,subtype=kxfs,nosuid,nodev%s%s%s%s", o->source,
			   o->read_only ? ",ro" : "",
			   o->allow_other ? ",allow_other,default_permissions" : "",
			   o->mount_options[0] ? "," : "", o->mount_options);

	if (fuse_opt_add_arg(&args, "kxfs") == 0 && fuse_opt_add_arg(&args, "-o") == 0 &&
	    fuse_opt_add_arg(&args, list) == 0)
		se = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), fs);
	fuse_opt_free_args(&args);
	return se;
}

int session_new(struct fs *fs, const struct options *o, const char *mountpoint,
		struct session **ret)
{
	/* no SA_RESTART: the signal must make a waiting system call return */
	struct sigaction wake = {.sa_handler = on_wake_signal};
	struct fuse_session *se;

	fuse_set_log_func(log_fuse);
	sigaction(SIGUSR1, &wake, NULL);
	se = open_session(fs, o);
	if (!se)
		return -EINVAL;
	*ret = new0(struct session);
	(*ret)->fs = fs;
	(*ret)->fuse = se;
	(*ret)->mountpoint = mountpoint;
	(*ret)->thread = pthread_self();
	(*ret)->mounts_fd = -1;
	return 0;
}

/*
 * Signal the serving threads until session_serve has returned. One signal is not enough: libfuse
 * tests a flag and then reads. A signal between these two steps has no effect.
 */
static void wake(void *data)
{
	struct session *s = data;

	if (atomic_load(&s->served))
		return;
	pthread_kill(s->thread, SIGUSR1);
	serve_wake(s->fs->serve);
	loop_timer_set(&s->wake, WAKE_MS);
}

void session_stop(struct session *s)
{
	if (s->stopping)
		return;
	s->stopping = true;
	park_end(s->fs->park);
	fuse_session_exit(s->fuse);
	loop_timer_init(&s->wake, s->fs->loop, wake, s);
	loop_timer_set(&s->wake, 0);
}

static void check_mount(void *data)
{
	struct session *s = data;
	cleanup_mountinfo struct mountinfo now = {0};

	if (s->stopping || mountinfo_now(&s->mount, &now) != -ENOENT)
		return;
	diag(DIAG_INFO, "the mount on %s was removed", s->mountpoint);
	session_stop(s);
}

static void watch_mounts(void *data)
{
	struct session *s = data;

	s->mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (s->mounts_fd >= 0)
		s->watch = loop_watch_new(s->fs->loop, s->mounts_fd, true, check_mount, s);
	if (!s->watch)
		diag(DIAG_WARNING, "kxfs can't watch /proc/self/mountinfo (%m), so umount -l will "
				   "not end this process; unmount with fusermount3 -u");
	check_mount(s);
}

/* Answer the kernel's first request. Only then is the mount usable. */
static int serve_first(struct session *s)
{
	struct fuse_session *se = s->fuse;
	struct fuse_buf buf = {0};
	int n;

	do
		n = fuse_session_receive_buf(se, &buf);
	while (n == -EINTR && !fuse_session_exited(se));
	if (n > 0)
		fuse_session_process_buf(se, &buf);
	free(buf.mem);
	if (fuse_session_exited(se))
		return -ECANCELED;
	return n > 0 ? 0 : n < 0 ? n : -EIO;
}

int session_mount(struct session *s)
{
	const bool passed = mountpoint_passed(s->mountpoint) >= 0;
	int r;

	r = park_start(s->fs->park);
	if (r < 0)
		return r;
	if (fuse_session_exited(s->fuse))
		return -ECANCELED;
	if (fuse_session_mount(s->fuse, s->mountpoint) != 0)
		return -EIO;
	r = passed ? 0 : mountinfo_of(s->mountpoint, &s->mount);
	if (r < 0) {
		fuse_session_unmount(s->fuse);
		return r;
	}
	s->mounted = true;
	if (!passed)
		loop_post(s->fs->loop, watch_mounts, s);
	return serve_first(s);
}

int session_serve(struct session *s)
{
	return serve_run(s->fs->serve, s->fuse);
}

/* False if our file system has no mount left, or if an administrator has aborted the connection. */
static bool is_connected(const struct session *s)
{
	struct pollfd p = {.fd = fuse_session_fd(s->fuse)};

	return poll(&p, 1, 0) >= 0 && !(p.revents & POLLERR);
}

/*
 * Unmount our file system from its present path, unless another file system is mounted over it. If
 * ours is already unmounted, another mount may have got its numbers. Leave that mount alone: a
 * process serves it.
 */
static void detach(const struct session *s)
{
	cleanup_mountinfo struct mountinfo now = {0}, top = {0};

	if (mountinfo_now(&s->mount, &now) < 0 || mountinfo_of(now.path, &top) < 0 ||
	    top.major != now.major || top.minor != now.minor)
		return;
	if (!is_connected(s) && !mountpoint_is_dead(now.path))
		return;
	if (mountpoint_detach(now.path) == 0) {
		/* This may have removed a bind mount on top of ours, so check if ours is gone. */
		mountinfo_clear(&now);
		if (mountinfo_now(&s->mount, &now) < 0)
			return;
	}
	diag(DIAG_WARNING, "%s is still mounted: as root, run umount -l %s", now.path, now.path);
}

void session_end(struct session *s)
{
	sigset_t set;
	int fds[2];

	atomic_store(&s->served, true);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	park_end(s->fs->park);
	if (!s->mounted)
		return;
	if (mountpoint_passed(s->mountpoint) < 0)
		detach(s);
	/*
	 * Replace the descriptor of the FUSE device by a pipe without a reader. This closes the
	 * device, which ends all unanswered requests. The number of the descriptor remains in use,
	 * so a late answer can't reach another file. fuse_session_unmount takes such a pipe for a
	 * device without a mount, so it unmounts nothing else at this path.
	 */
	if (pipe2(fds, O_CLOEXEC) < 0) {
		diag(DIAG_ERROR, "pipe: %m");
		return;
	}
	close(fds[0]);
	dup3(fds[1], fuse_session_fd(s->fuse), O_CLOEXEC);
	close(fds[1]);
}

void session_free(struct session *s)
{
	if (!s)
		return;
	park_stop(s->fs->park);
	if (s->mounted)
		/* session_end has unmounted already, so this only frees memory */
		fuse_session_unmount(s->fuse);
	fuse_session_destroy(s->fuse);
	if (s->mounts_fd >= 0)
		close(s->mounts_fd);
	mountinfo_clear(&s->mount);
	free(s);
}
