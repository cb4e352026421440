/* SPDX-License-Identifier: MIT */
/*
 * One run: check, fork, make the modules, start them, serve, free them in reverse order. Threads
 * start only after the fork (rule T8). Signals arrive on the I/O thread; the rest runs on the main
 * thread.
 *
 * kxfs capture only captures output and results of jobs. It has no mount point, no tree, no submit/
 * and no session. A mount shows its metrics in .kxfs/metrics. kxfs capture writes them to the file
 * STATE/metrics instead, on the pool.
 */
#include "fs/mount/run.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/print.h"
#include "backend/base/process.h"
#include "backend/base/work.h"
#include "fs/mount/daemon.h"
#include "fs/mount/mountpoint.h"
#include "fs/mount/session.h"
#include "fs/mount/state.h"
#include "fs/submit/submit.h"
#include "fs/tree/tree.h"
#include "fs/vfs/fs.h"
#include "spec/base/mem.h"

/* the longest time that ending a run takes, not counting backend_stop, in s */
#define END_S	     11
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* after this time, a message shows why mounting takes long */
#define NOTICE_MS      3000
#define EXPIRE_MS      3600000
#define EXPIRE_SOON_MS 60000
#define ROOT_MAX       12
#define METRICS_MS     15000
#define METRICS_FILE   "metrics"

struct mount_run {
	struct options *options;
	struct loop *loop;
	struct loop_timer notice, expire;
	/* the work item that records STATE_ENDING in the state directory */
	struct work ending;
	struct backend *backend;
	struct fs *fs;
	struct tree tree;
	struct submit *submit, *dryrun;
	struct node_dir_class root_class;
	struct node_entry_def root[ROOT_MAX];
	int up_fd; /* the pipe to the parent (daemon_fork); -1 in the foreground */
	struct notify notify;
	struct state *state;
	struct session *session;
	/* Only kxfs capture uses the members up to METRICS_ERR. */
	sem_t over; /* posted when a signal ends the capture */
	struct loop_timer metrics_timer;
	struct work metrics;
	int metrics_err;     /* error of the last write of STATE/metrics, or 0 */
	char *mountpoint;    /* NULL for kxfs capture */
	int mountpoint_lock; /* lock from mountpoint_prepare; -1 if none, or when the mount is up */
	char *work_dir;
	char *submitter;
	char *home;   /* NULL if unknown */
	bool started; /* true if the loop runs */
	atomic_bool up;
	/* the result of loop_signal; the I/O thread sets it before backend_start returns */
	int signal_err;
};

static void clear(struct mount_run *r)
{
	state_close(r->state);
	base_close_fd(&r->mountpoint_lock);
	free(r->mountpoint);
	free(r->work_dir);
	free(r->submitter);
	free(r->home);
}

/*
 * Jobs run in the working directory. Refuse a directory inside the mount, because the jobs would
 * keep the mount busy forever.
 */
static int check_work_dir(struct mount_run *r, char **why)
{
	r->work_dir = getcwd(NULL, 0);
	if (!r->work_dir)
		return refuse(-errno, why,
			      "can't find the working directory, in which jobs "
			      "run: %m");
	if (r->mountpoint && file_is_below(r->work_dir, r->mountpoint))
		return refuse(-EINVAL, why,
			      "%s: jobs run in the working directory, and this directory is "
			      "inside the mount point: cd to another one first",
			      r->work_dir);
	return 0;
}

static unsigned grace_ms(const struct options *o)
{
	return (unsigned)o->grace * 1000;
}

struct backend_config run_config(const struct options *o)
{
	static const enum backend_capture capture[] = {
		[OPTIONS_CAPTURE_OWN] = BACKEND_CAPTURE_OWN,
		[OPTIONS_CAPTURE_ALL] = BACKEND_CAPTURE_ALL,
		[OPTIONS_CAPTURE_NONE] = BACKEND_CAPTURE_NONE,
	};

	return (struct backend_config){
		.kinds = &o->kinds,
		.kind = o->backend,
		.context = o->context,
		.namespace = o->namespace,
		.kubeconfig = o->kubeconfig,
		.as = o->as,
		.selector = o->selector,
		.mine = o->mine,
		.capture = capture[o->capture],
		.args = o->args,
		.n_args = o->n_args,
		.grace_ms = grace_ms(o),
		.linger = o->linger,
		.passive = o->read_only || o->action == OPTIONS_CAPTURE,
		.jobs = (unsigned)o->jobs,
		.gpus = o->gpus == UINT64_MAX ? -1 : (int)o->gpus,
		.spool_limit = o->spool_limit,
		.history_keep = (int64_t)o->history_keep,
		.archive = o->archive[0] ? o->archive : NULL,
		.archives = o->archive[0] && !o->read_only,
	};
}

static struct backend_config config_of(const struct mount_run *r)
{
	struct backend_config ret = run_config(r->options);

	ret.state_dir = r->state ? state_dir(r->state) : NULL;
	ret.work_dir = r->work_dir;
	ret.mountpoint = r->mountpoint;
	ret.submitter = r->submitter;
	ret.home = r->home;
	return ret;
}

/* Return how long a run with these options may take to end, in seconds. */
static unsigned end_seconds(const struct mount_run *r)
{
	const struct options *o = r->options;

	return backend_stop_seconds(grace_ms(o), o->archive[0]) + END_S;
}

/* If there is no cluster, and the user has not named a backend, add a hint to *WHY. */
static void advise(const struct mount_run *r, int err, char **why)
{
	if ((err == -ENOENT || err == -EHOSTUNREACH) && *why && r->options->mountpoint &&
	    !*r->options->backend)
		text_set(why,
			 "%s\nWithout a cluster, jobs can run as processes of this machine: kxfs "
			 "local: %s",
			 *why, r->options->mountpoint);
}

/* Set *RET to the state directory of the options, or to the default, malloc'ed. */
static int choose_state(const struct mount_run *r, char **ret, char **why)
{
	const struct backend_config config = config_of(r);
	cleanup_free char *key = NULL;
	int err;

	if (r->options->state[0]) {
		*ret = text_copy(r->options->state);
		return 0;
	}
	err = backend_key(&config, &key, why);
	advise(r, err, why);
	return err ? err : state_default(key, ret, why);
}

/*
 * If the disk is read-only, make the mount read-only, too, so that users still see the files. But
 * refuse to run kxfs capture. Also refuse a passed descriptor, because kxfs can't make its mount
 * read-only. If the disk is full, mount normally, so that users can free space by removing jobs.
 */
static int heed_flaw(struct mount_run *r, char **why)
{
	int err = state_flaw(r->state);

	if (err == -EROFS && (!r->mountpoint || mountpoint_passed(r->mountpoint) >= 0))
		return refuse(err, why,
			      "%s: the disk is read-only, so kxfs can't store "
			      "anything there",
			      state_dir(r->state));
	if (err == -EROFS) {
		r->options->read_only = true;
		diag(DIAG_WARNING,
		     "%s: the disk is read-only, so the mount is read-only, too; running jobs "
		     "are shown and continue",
		     state_dir(r->state));
	} else if (err) {
		diag(DIAG_WARNING,
		     "%s: no space for the state (%s): nothing can be submitted until there is "
		     "space; rm -r of jobs in history/ frees some",
		     state_dir(r->state), strerror(-err));
	}
	return 0;
}

static int check(struct mount_run *r, char **why)
{
	const struct options *o = r->options;
	const bool passed = mountpoint_passed(o->mountpoint) >= 0;
	cleanup_free char *dir = NULL;
	int err = 0;

	if (passed && o->read_only)
		return refuse(-EINVAL, why,
			      "-o ro: another program has already mounted %s: leave this option "
			      "out, and set ro in that program",
			      o->mountpoint);
	if (o->mountpoint)
		err = mountpoint_resolve(o->mountpoint, &r->mountpoint, why);
	if (!err && r->mountpoint && file_is_below(o->archive, r->mountpoint))
		err = refuse(-EINVAL, why,
			     "-o archive=%s: this directory is inside the mount: give another one",
			     o->archive);
	if (!err)
		err = check_work_dir(r, why);
	r->submitter = process_submitter();
	r->home = process_home();
	if (!err && r->mountpoint && !passed)
		err = mountpoint_check_fuse(why);
	if (!err)
		err = choose_state(r, &dir, why);
	/* If an earlier run is ending, wait until it unlocks the directory. */
	if (!err)
		err = state_open(dir, r->mountpoint ? r->mountpoint : "", end_seconds(r) * 1000,
				 &r->state, why);
	if (!err)
		err = heed_flaw(r, why);
	if (!err && r->mountpoint && !passed)
		err = mountpoint_prepare(r->mountpoint, &r->mountpoint_lock, why);
	return err;
}

static void on_expired(void *tree, const char *file, const char *digest)
{
	const struct mount_run *r = container_of(tree, struct mount_run, tree);

	submit_expired(r->submit, file, digest);
}

/*
 * rm -r of the whole mount removes the directories in the order of this table. When rm removes the
 * directories in jobs/, kxfs cancels the jobs and moves them to history/. history/ comes before
 * jobs/, so that rm does not remove these jobs from history/.
 */
static void make_root(struct mount_run *r)
{
	const struct node_entry_def root[ROOT_MAX] = {
		{.name = "submit", .class = &submit_class, .object = r->submit},
		{.name = "dryrun", .class = &dryrun_class, .object = r->dryrun},
		{.name = "history", .class = &history_class},
		{.name = "jobs", .class = &jobs_class},
		{.name = "archive", .class = &archive_link_class, .when = archive_is_known},
		{.name = "queues", .class = &queues_class, .when = queues_are_known},
		{.name = "list", .class = &list_jobs_table.text.class},
		{.name = "list.jsonl", .class = &list_jobs_json.text.class},
		{.name = "live", .class = &live_class.class},
		{.name = "changes", .class = &changes_link_class, .hidden = true},
		{.name = ".kxfs", .class = &control_class.class},
		{0},
	};

	memcpy(r->root, root, sizeof(root));
}

static int make_mount(struct mount_run *r, char **why)
{
	const struct options *o = r->options;
	const struct submit_config submit = {
		.backend = r->backend,
		.state_dir = state_dir(r->state),
		/* the path of a passed descriptor's mount is unknown */
		.mountpoint = mountpoint_passed(r->mountpoint) < 0 ? r->mountpoint : "",
		.submitter = r->submitter,
		.allow_other = o->allow_other,
	};
	int err;

	r->tree = (struct tree){
		.fs = r->fs,
		.backend = r->backend,
		.submitter = r->submitter,
		.may_end_own = o->cancel != OPTIONS_CANCEL_NONE,
		.may_end_mine = o->cancel == OPTIONS_CANCEL_ALL || o->cancel == OPTIONS_CANCEL_MINE,
		.may_end_others = o->cancel == OPTIONS_CANCEL_ALL,
		.read_only = o->read_only,
		.lists = lists_new(),
	};
	err = submit_new(r->fs, &submit, &submit_class, &r->submit, why);
	if (!err)
		err = submit_new(r->fs, &submit, &dryrun_class, &r->dryrun, why);
	if (!err)
		err = session_new(r->fs, o, r->mountpoint, &r->session);
	make_root(r);
	return err;
}

/* Make all modules, but start no thread yet. */
static int make(struct mount_run *r, char **why)
{
	const struct options *o = r->options;
	const struct fs_config fs = {(uid_t)o->uid, (gid_t)o->gid, (mode_t)o->umask,
				     state_dir(r->state)};
	const struct backend_config backend = config_of(r);
	const struct backend_events events = {
		.expired = on_expired,
		.job = tree_job_event,
		.log = tree_log_event,
		.data = &r->tree,
	};
	int err;

	loop_new(&r->loop);
	if (!r->mountpoint)
		return backend_new(r->loop, &backend, &(struct backend_events){0}, &r->backend,
				   why);
	r->root_class = (struct node_dir_class){.class = {.name = "root", NODE_DIR_OPS},
						.entries = r->root};
	r->fs = fs_new(r->loop, &fs, &r->root_class.class, &r->tree);
	err = backend_new(r->loop, &backend, &events, &r->backend, why);
	return err ? err : make_mount(r, why);
}

static void on_signal(void *data)
{
	struct mount_run *r = data;

	if (atomic_load(&r->up))
		diag(DIAG_INFO, "kxfs received a signal and ends this %s",
		     r->mountpoint ? "mount" : "capture");
	backend_give_up(r->backend);
	if (!r->mountpoint)
		sem_post(&r->over);
	else
		session_stop(r->session);
}

static void on_notice(void *data)
{
	struct mount_run *r = data;
	cleanup_free char *why = backend_trouble(r->backend);

	if (!atomic_load(&r->up))
		diag(DIAG_INFO,
		     "the list of jobs of %s has not arrived yet; kxfs keeps "
		     "trying%s%s",
		     r->options->source, why ? ": " : "", why ? why : "");
}

static void on_expire(void *data)
{
	struct mount_run *r = data;

	loop_timer_set(&r->expire, EXPIRE_MS);
	submit_expire_dryrun(r->dryrun, loop_time_ns());
}

/* This runs on the I/O thread before the backend starts. */
static void begin(void *data)
{
	struct mount_run *r = data;
	int err;

	err = loop_signal(r->loop, SIGTERM, on_signal, r);
	if (!err)
		err = loop_signal(r->loop, SIGINT, on_signal, r);
	if (!err && r->options->foreground)
		err = loop_signal(r->loop, SIGHUP, on_signal, r);
	loop_timer_init(&r->notice, r->loop, on_notice, r);
	loop_timer_init(&r->expire, r->loop, on_expire, r);
	loop_timer_set(&r->notice, NOTICE_MS);
	if (r->mountpoint)
		loop_timer_set(&r->expire, EXPIRE_SOON_MS);
	r->signal_err = err;
}

static int refuse_interrupted(char **why)
{
	return refuse(-ECANCELED, why, "stopped by a signal while starting");
}

static int start_mount(struct mount_run *r, char **why)
{
	int err = session_mount(r->session);

	if (err == -ECANCELED)
		return refuse_interrupted(why);
	if (err && mountpoint_passed(r->mountpoint) >= 0)
		return refuse(err, why,
			      "%s: nothing is mounted with this descriptor, or the mount was "
			      "removed: %s",
			      r->mountpoint, strerror(-err));
	if (err)
		return refuse(err, why, "can't mount on %s: see the message above%s", r->mountpoint,
			      r->options->allow_other && geteuid() != 0
				      ? "; allow_other needs user_allow_other in /etc/fuse.conf"
				      : "");
	submit_find_owners(r->submit);
	return 0;
}

static int start(struct mount_run *r, char **why)
{
	int err;

	err = loop_start(r->loop);
	if (err)
		return refuse(err, why, "can't start a thread: %s", strerror(-err));
	r->started = true;
	loop_post(r->loop, begin, r);
	notify_send(&r->notify, "STATUS=Reading %s", state_dir(r->state));
	err = backend_start(r->backend, why);
	atomic_store(&r->up, true);
	if (err == -ECANCELED)
		return refuse_interrupted(why);
	if (!err)
		err = r->signal_err;
	return err || !r->mountpoint ? err : start_mount(r, why);
}

/* Report to the parent, the user and systemd. Return a negative errno if the parent was killed. */
static int report_ready(struct mount_run *r)
{
	const struct options *o = r->options;
	cleanup_free char *what =
		r->mountpoint ? text_print("%s is mounted on %s", o->source, r->mountpoint)
			      : text_print("%s is captured in %s", o->source, state_dir(r->state));
	int err;

	state_enter(r->state, r->mountpoint ? STATE_MOUNTED : STATE_CAPTURING);
	base_close_fd(&r->mountpoint_lock);
	r->mountpoint_lock = -1;
	if (!o->foreground) {
		signal(SIGHUP, SIG_IGN);
		diag_setup(o->log_level, false);
	}
	err = daemon_ready(take_fd(&r->up_fd));
	if (err)
		return err;
	diag(DIAG_INFO, "%s", what);
	if (!o->read_only && r->mountpoint)
		backend_take_charge(r->backend);
	notify_send(&r->notify, "READY=1\nSTATUS=%s", what);
	return 0;
}

/* --- kxfs capture --- */

static void metrics_run(void *data)
{
	struct mount_run *r = data;
	cleanup_free char *text = NULL;
	size_t len;
	FILE *out = text_stream(&text, &len);

	backend_metrics(r->backend, out);
	text_stream_close(out);
	r->metrics.err = file_write(state_dir(r->state), METRICS_FILE, text, len);
}

static void metrics_done(void *data)
{
	struct mount_run *r = data;

	if (r->metrics.err && r->metrics.err != r->metrics_err)
		diag(DIAG_WARNING, "%s/" METRICS_FILE ": %s", state_dir(r->state),
		     strerror(-r->metrics.err));
	r->metrics_err = r->metrics.err;
	loop_timer_set(&r->metrics_timer, METRICS_MS);
}

static void write_metrics(void *data)
{
	struct mount_run *r = data;

	work_start(&r->metrics, r->loop);
}

static void capture(struct mount_run *r)
{
	r->metrics = (struct work){.run = metrics_run, .done = metrics_done, .data = r};
	loop_timer_init(&r->metrics_timer, r->loop, write_metrics, r);
	loop_post(r->loop, write_metrics, r);
	while (sem_wait(&r->over) < 0 && errno == EINTR)
		;
}

/* --- the end --- */

static void enter_ending(void *data)
{
	struct mount_run *r = data;

	state_enter(r->state, STATE_ENDING);
}

static void on_ending(void *data)
{
	struct mount_run *r = data;

	r->ending = (struct work){.run = enter_ending, .data = r};
	work_start(&r->ending, r->loop);
}

/*
 * End the run. Return false if a thread still waits for a hanging disk: it may continue at any
 * time, so the memory of the run must not be freed.
 */
static bool end(struct mount_run *r)
{
	bool stopped, idle;

	if (r->started)
		loop_post(r->loop, on_ending, r);
	/* The end may take longer than the unit's TimeoutStopSec=. */
	notify_send(&r->notify, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu\nSTATUS=Unmounting",
		    end_seconds(r) * 1000000ull);
	if (r->session)
		session_end(r->session);
	if (!r->started)
		return true;
	stopped = backend_stop(r->backend);
	idle = loop_stop(r->loop);
	if (!idle)
		diag(DIAG_WARNING,
		     "%s: the disk does not respond; kxfs abandons the requests "
		     "that wait for it",
		     state_dir(r->state));
	return stopped && idle;
}

/*
 * Do everything that follows the fork, in the child. In the foreground, there is no fork, and this
 * runs in the only process.
 */
static int live(struct mount_run *r, char **why)
{
	int err;
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
	sigset_t set;

	/* only the I/O thread receives these signals (loop_signal) */
	sigemptyset(&set);
	for (size_t i = 0; i < array_size(signals); i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	state_enter(r->state, STATE_STARTING);
	err = make(r, why);
	if (!err)
		err = start(r, why);
	advise(r, err, why);
	if (!err) {
		err = report_ready(r);
		if (!err && !r->mountpoint)
			capture(r);
		else if (!err)
			err = session_serve(r->session);
		if (err)
			diag(DIAG_ERROR, "kxfs stopped serving %s: %s", r->options->source,
			     strerror(-err));
	} else {
		refuse_print(err, *why);
	}
	/*
	 * If end() returns false, a thread may still use the memory. The exit releases the locks.
	 */
	if (!end(r))
		_exit(err ? EXIT_FAILURE : EXIT_SUCCESS);
	/* Free each module before those that it depends on. */
	if (r->fs)
		fs_close(r->fs);
	lists_free(r->tree.lists);
	rendered_clear(&r->tree.rendered);
	submit_free(r->submit);
	submit_free(r->dryrun);
	backend_free(r->backend);
	session_free(r->session);
	fs_free(r->fs);
	loop_free(r->loop);
	return err;
}

int run(struct options *o)
{
	struct mount_run r cleanup(clear) = {.options = o, .mountpoint_lock = -1, .up_fd = -1};
	cleanup_free char *why = NULL;
	int status;
	int err;

	sem_init(&r.over, 0, 0);
	daemon_prepare(mountpoint_passed(o->mountpoint));
	setenv("PATH", DEFAULT_PATH, false); /* mount(8) removes PATH */
	diag_setup(o->log_level, true);
	notify_init(&r.notify);
	err = check(&r, &why);
	if (err) {
		refuse_print(err, why);
		return EXIT_FAILURE;
	}
	if (!o->foreground) {
		err = daemon_fork(&r.up_fd, &status);
		if (err < 0)
			fprintf(stderr, "kxfs: fork: %s\n", strerror(-err));
		if (err)
			return err > 0 ? status : EXIT_FAILURE;
	}
	return live(&r, &why) ? EXIT_FAILURE : EXIT_SUCCESS;
}
