/* SPDX-License-Identifier: MIT */
/*
 * submit/ on a backend of the tests' own, which takes as long and answers as the document says:
 * what waits for a slow cluster can be tested without one. Lines of a document that it knows:
 *
 *	# delay MS	answer after MS milliseconds
 *	# held		answer at SIGUSR2
 *	# refuse ERRNO	refuse it so; a document without "roles" is refused with EINVAL
 *	# running	the job does not finish; others have finished when they are launched
 *
 * It says "asked: NAME" when it gets a document. One in dryrun/ becomes "kind: Made".
 *
 * MOUNT/jobs lists the jobs in the order of their
 * launch. SIGUSR1: what was launched until now has been there for eight days.
 *
 *	slow_kxfs MOUNTPOINT STATE [allow_other]
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <utlist.h>

#include "backend/diag.h"
#include "backend/lock.h"
#include "fs/handle.h"
#include "fs/listing.h"
#include "fs/options.h"
#include "fs/park.h"
#include "fs/submit.h"

#define EIGHT_DAYS (8 * 24 * 3600 * INT64_C(1000000000))
#define MAX_JOBS   4096

struct request {
	char *file;
	char *text;
	bool dry;
	backend_reply_fn reply;
	void *data;
	struct loop_timer *timer;
	struct request *prev, *next;
};

static struct loop *loop;
static struct lock lock = LOCK_INIT;
static struct spec_job *jobs[MAX_JOBS];
static size_t n_jobs;
static struct request *waiting; /* I/O thread */

/* The number after WORD in TEXT; 0: it is not there. */
static int number(const char *text, const char *word)
{
	const char *p = strstr(text, word);

	return p ? atoi(p + strlen(word)) : 0;
}

static struct spec_job *launch(const struct request *r)
{
	struct spec_job *job = spec_job_new(0, 0);
	char id[32];

	lock_scope(&lock);
	assert(job && n_jobs < MAX_JOBS);
	snprintf(id, sizeof(id), "job-%zu", n_jobs + 1);
	if (spec_set(&job->id, id) < 0)
		abort();
	job->finished = strstr(r->text, "# running") ? 0 : loop_time_ns();
	jobs[n_jobs++] = job;
	return job;
}

static void answer(void *data)
{
	struct request *r = data;
	struct backend_result result = {.text = "", .id = "", .manifest = ""};
	char text[512];

	result.err = -number(r->text, "# refuse ");
	if (!result.err && !strstr(r->text, "roles"))
		result.err = -EINVAL;
	if (result.err) {
		snprintf(text, sizeof(text), "%s:1:1: refused: %s", r->file, strerror(-result.err));
		result.text = text;
	} else if (r->dry) {
		result.manifest = "kind: Made\n";
	} else {
		result.id = launch(r)->id;
	}
	r->reply(r->data, &result);
	DL_DELETE(waiting, r);
	loop_timer_free(r->timer);
	free(r->file);
	free(r->text);
	free(r);
}

static void begin(void *data)
{
	struct request *r = data;
	int delay = number(r->text, "# delay ");

	DL_APPEND(waiting, r);
	fprintf(stderr, "asked: %s\n", r->file);
	if (delay > 0)
		r->timer = loop_timer_new(loop, (unsigned)delay, 0, answer, r);
	else if (!strstr(r->text, "# held"))
		answer(r);
}

static void ask(const struct backend_submission *s, bool dry, backend_reply_fn reply, void *data)
{
	struct request *r = calloc(1, sizeof(*r));

	assert(r);
	r->dry = dry;
	r->file = strdup(s->file);
	r->text = strndup(s->text, s->len);
	r->reply = reply;
	r->data = data;
	loop_post(loop, begin, r);
}

/* Of backend.h, what submit/ uses. */
void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data)
{
	(void)b;
	ask(s, false, reply, data);
}

void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data)
{
	(void)b;
	ask(s, true, reply, data);
}

const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id)
{
	(void)b;
	lock_scope(&lock);
	for (size_t i = 0; place == BACKEND_JOBS && i < n_jobs; i++)
		if (streq(jobs[i]->id, id))
			return spec_job_ref(jobs[i]);
	return NULL;
}

/* At SIGUSR2, and as a backend does when the mount ends. */
static void answer_all(void *data)
{
	(void)data;
	while (waiting)
		answer(waiting);
}

static void expire(void *data)
{
	const struct fs *fs = data;

	submit_expire(fs->submit, loop_time_ns() + EIGHT_DAYS);
	submit_expire(fs->dryrun, loop_time_ns() + EIGHT_DAYS);
}

static const struct node_class job_dir_class = {.name = "job", .mode = S_IFDIR | 0755};

static int jobs_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = backend_job(NULL, BACKEND_JOBS, name);

	if (!job)
		return -ENOENT;
	*ret = node_get(fs, dir, &job_dir_class, name, NULL);
	return *ret ? 0 : -ENOMEM;
}

static int jobs_list(struct fs *fs, struct node *dir, struct listing *l)
{
	(void)fs, (void)dir;
	lock_scope(&lock);
	for (size_t i = 0; i < n_jobs; i++)
		if (listing_add(l, jobs[i]->id) < 0)
			return -ENOMEM;
	return 0;
}

static const struct node_class jobs_dir_class = {
	.name = "jobs",
	.mode = S_IFDIR | 0755,
	.lookup = jobs_lookup,
	.list = jobs_list,
};

static int root_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	static const struct node_entry_def table[] = {
		{"submit", &submit_class, false, NULL},
		{"dryrun", &dryrun_class, false, NULL},
		{"jobs", &jobs_dir_class, false, NULL},
		{0},
	};

	return node_lookup_static(fs, dir, table, name, ret);
}

static const struct node_class root_dir_class = {
	.name = "root",
	.mode = S_IFDIR | 0755,
	.lookup = root_lookup,
};

static int mount_it(struct fs *fs, bool others)
{
	const char *own = "subtype=kxfs,fsname=slow";
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int err;

	fuse_opt_add_arg(&args, "slow_kxfs");
	fuse_opt_add_arg(&args, "-o");
	fuse_opt_add_arg(&args, own);
	if (others)
		fuse_opt_add_arg(&args, "-oallow_other,default_permissions");
	fs->session = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), fs);
	fuse_opt_free_args(&args);
	if (!fs->session)
		return -1;
	err = fuse_set_signal_handlers(fs->session);
	return err ? err : fuse_session_mount(fs->session, fs->mountpoint);
}

static void listen(void *data)
{
	if (loop_signal(loop, SIGUSR1, expire, data) < 0 ||
	    loop_signal(loop, SIGUSR2, answer_all, NULL) < 0)
		abort();
}

static void serve(struct fs *fs)
{
	sigset_t asked;

	/* Only the loop takes them. */
	sigemptyset(&asked);
	sigaddset(&asked, SIGUSR1);
	sigaddset(&asked, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &asked, NULL);
	loop_post(loop, listen, fs);
	if (loop_start(loop) < 0)
		abort();
	fuse_session_loop(fs->session);
	park_end(fs->park);
	fuse_session_unmount(fs->session);
	loop_post(loop, answer_all, NULL);
	loop_stop(loop);
}

static void unmake(struct fs *fs)
{
	fuse_remove_signal_handlers(fs->session);
	fuse_session_destroy(fs->session);
	handles_free(fs->handles);
	node_fini(fs);
	submit_free(fs->submit);
	submit_free(fs->dryrun);
	park_free(fs->park);
	loop_free(loop);
	free(fs->buffer);
	for (size_t i = 0; i < n_jobs; i++)
		spec_job_unref(jobs[i]);
}

int main(int argc, char **argv)
{
	struct options options = {.uid = getuid(), .gid = getgid(), .umask = 022};
	struct fs fs = {.options = &options, .submitter = "ada@login1"};
	char *why = NULL;

	if (argc < 3)
		return 2;
	options.allow_other = argc > 3;
	fs.mountpoint = argv[1];
	fs.state_dir = argv[2];
	fs.started = loop_time_ns();
	diag_setup(DIAG_INFO, true);
	if (loop_new(&loop) < 0)
		return 1;
	fs.loop = loop;
	if (park_new(loop, &fs.park) < 0 || handles_new(&fs.handles) < 0 ||
	    node_init(&fs, &root_dir_class) < 0)
		return 1;
	if (submit_new(&fs, &submit_class, &fs.submit, &why) < 0 ||
	    submit_new(&fs, &dryrun_class, &fs.dryrun, &why) < 0) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	if (mount_it(&fs, options.allow_other) < 0)
		return 1;
	serve(&fs);
	unmake(&fs);
	return 0;
}
