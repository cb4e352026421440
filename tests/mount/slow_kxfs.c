/* SPDX-License-Identifier: MIT */
/*
 * submit/ with a backend for tests. The document decides when and how the backend answers, so tests
 * of a slow cluster need no cluster. The backend knows these lines of a document:
 *
 *         # delay MS      answer after MS milliseconds
 *         # held          answer at SIGUSR2
 *         # refuse ERRNO  refuse it with ERRNO; a document without "roles" is refused with EINVAL
 *         # running       the job does not finish; other jobs finish when they are launched
 *
 * It prints "asked: NAME" when it gets a document. If the document has "# tell", it also prints
 * "launched: TEXT" at the launch, with TEXT in hexadecimal digits. A document in dryrun/ becomes
 * "kind: Made".
 *
 * MOUNT/jobs lists the jobs in the order of their launch. SIGWINCH: jobs that have finished expire,
 * as after eight days.
 *
 *         slow_kxfs MOUNTPOINT STATE [allow_other]
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "fs/submit/submit.h"
#include "fs/vfs/node.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "spec/base/encode.h"

#define EIGHT_DAYS (8 * 24 * 3600 * INT64_C(1000000000))
#define MAX_JOBS   65536

struct request {
	char *file;
	char *text;
	bool dry;
	unsigned number; /* the number of this request */
	bool owned;
	uid_t uid;
	gid_t gid;
	backend_reply_fn reply;
	void *data;
	struct loop_timer timer;
	struct request *prev, *next;
};

static struct loop *loop;
static struct lock lock = LOCK_INIT;
/* The jobs, with what a real backend has in their records. */
static struct {
	struct spec_job *job;
	char *file;
	char digest[65];
	int64_t time;
	unsigned number; /* the number of its request */
	bool owned;
	uid_t uid;
	gid_t gid;
	bool expired, unlinked;
} jobs[MAX_JOBS];
static size_t n_jobs;
static int64_t changed;
static struct request *waiting; /* only used on the I/O thread, as is N_REQUESTS */
static unsigned n_requests;

/* Return the number after WORD in TEXT, or 0 if there is none. */
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
	spec_set(&job->id, id);
	job->finished = strstr(r->text, "# running") ? 0 : loop_time_ns();
	jobs[n_jobs].job = job;
	jobs[n_jobs].file = strdup(r->file);
	spec_sha256(r->text, strlen(r->text), jobs[n_jobs].digest);
	jobs[n_jobs].time = changed = loop_time_ns();
	jobs[n_jobs].number = r->number;
	jobs[n_jobs].owned = r->owned;
	jobs[n_jobs].uid = r->uid;
	jobs[n_jobs++].gid = r->gid;
	return job;
}

static void tell(const char *text)
{
	if (!strstr(text, "# tell"))
		return;
	fputs("launched: ", stderr);
	for (const char *p = text; *p; p++)
		fprintf(stderr, "%02x", (unsigned char)*p);
	fputs("\n", stderr);
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
		tell(r->text);
	}
	r->reply(r->data, &result);
	DL_DELETE(waiting, r);
	loop_timer_stop(&r->timer);
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
	loop_timer_init(&r->timer, loop, answer, r);
	if (delay > 0)
		loop_timer_set(&r->timer, (uint64_t)delay);
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
	r->number = ++n_requests;
	r->owned = s->owned;
	r->uid = s->uid;
	r->gid = s->gid;
	r->reply = reply;
	r->data = data;
	loop_post(loop, begin, r);
}

/* The part of backend.h that submit/ uses. */
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

/*
 * Return the index of FILE's job with the last request, or -1 if NAME.job must not exist. The
 * caller holds the lock.
 */
static ssize_t job_of(const char *file)
{
	ssize_t newest = -1;

	for (size_t i = 0; i < n_jobs; i++)
		if (streq(jobs[i].file, file) &&
		    (newest < 0 || jobs[i].number > jobs[newest].number))
			newest = (ssize_t)i;
	return newest < 0 || jobs[newest].expired || jobs[newest].unlinked ? -1 : newest;
}

int backend_file(struct backend *b, const char *file, struct backend_file *ret)
{
	ssize_t i;

	(void)b;
	lock_scope(&lock);
	i = job_of(file);
	if (i < 0)
		return -ENOENT;
	*ret = (struct backend_file){
		.id = strdup(jobs[i].job->id),
		.place = BACKEND_JOBS,
		.time = jobs[i].time,
		.owned = jobs[i].owned,
		.uid = jobs[i].uid,
		.gid = jobs[i].gid,
	};
	memcpy(ret->digest, jobs[i].digest, sizeof(ret->digest));
	return 0;
}

size_t backend_files(struct backend *b, char ***ret)
{
	size_t n = 0;

	(void)b;
	lock_scope(&lock);
	*ret = calloc(n_jobs + 1, sizeof(char *));
	for (size_t i = 0; i < n_jobs; i++)
		if (job_of(jobs[i].file) == (ssize_t)i)
			(*ret)[n++] = strdup(jobs[i].file);
	return n;
}

int64_t backend_files_changed(struct backend *b)
{
	(void)b;
	lock_scope(&lock);
	return changed;
}

int backend_unlink_file(struct backend *b, const char *file)
{
	ssize_t i;

	(void)b;
	lock_scope(&lock);
	i = job_of(file);
	if (i < 0)
		return -ENOENT;
	jobs[i].unlinked = true;
	return 0;
}

bool backend_knows_digest(struct backend *b, const char *digest)
{
	(void)b;
	lock_scope(&lock);
	for (size_t i = 0; i < n_jobs; i++)
		if (streq(jobs[i].digest, digest))
			return true;
	return false;
}

/*
 * Answer all requests that are held: at SIGUSR2, and when the mount ends, as a real backend does.
 */
static void answer_all(void *data)
{
	(void)data;
	while (waiting)
		answer(waiting);
}

struct mount {
	struct fs *fs;
	struct fuse_session *session;
	const char *mountpoint;
	struct submit *submit, *dryrun;
	struct node_dir_class root_class;
	struct node_entry_def root[4];
	struct loop_timer wake;
};

static void expire(void *data)
{
	const struct mount *m = data;

	for (size_t i = 0; i < n_jobs; i++) {
		if (!jobs[i].job->finished)
			continue;
		jobs[i].expired = true;
		submit_expired(m->submit, jobs[i].file, jobs[i].digest);
	}
	submit_expire_dryrun(m->dryrun, loop_time_ns() + EIGHT_DAYS);
}

static const struct node_class job_dir_class = {.name = "job", .mode = S_IFDIR | 0755};

static int jobs_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	lock_scope(&lock);
	for (size_t i = 0; i < n_jobs; i++)
		if (streq(jobs[i].job->id, name)) {
			*ret = node_get(fs, dir, &job_dir_class, name, NULL);
			return 0;
		}
	return -ENOENT;
}

static int jobs_list(struct fs *fs, struct node *dir, struct listing *l)
{
	(void)fs, (void)dir;
	lock_scope(&lock);
	for (size_t i = 0; i < n_jobs; i++)
		listing_add(l, jobs[i].job->id);
	return 0;
}

static const struct node_class jobs_dir_class = {
	.name = "jobs",
	.mode = S_IFDIR | 0755,
	.lookup = jobs_lookup,
	.list = jobs_list,
};

static int mount_it(struct mount *m, bool others)
{
	const char *own = "subtype=kxfs,fsname=slow";
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);

	fuse_opt_add_arg(&args, "slow_kxfs");
	fuse_opt_add_arg(&args, "-o");
	fuse_opt_add_arg(&args, own);
	if (others)
		fuse_opt_add_arg(&args, "-oallow_other,default_permissions");
	m->session = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), m->fs);
	fuse_opt_free_args(&args);
	if (!m->session)
		return -1;
	return fuse_session_mount(m->session, m->mountpoint);
}

/*
 * Wake the thread that reads requests. Repeat that, because a signal right before the read is lost.
 */
static void wake(void *data)
{
	struct mount *m = data;

	loop_timer_set(&m->wake, 50);
	serve_wake(m->fs->serve);
}

static void stop(void *data)
{
	struct mount *m = data;

	fuse_session_exit(m->session);
	loop_timer_set(&m->wake, 0);
}

static void ignore(int sig)
{
	(void)sig;
}

static void listen(void *data)
{
	if (loop_signal(loop, SIGWINCH, expire, data) < 0 ||
	    loop_signal(loop, SIGUSR2, answer_all, NULL) < 0 ||
	    loop_signal(loop, SIGTERM, stop, data) < 0)
		abort();
}

static void serve(struct mount *m)
{
	const struct sigaction woken = {.sa_handler = ignore}; /* no SA_RESTART */
	sigset_t asked;

	sigaction(SIGUSR1, &woken, NULL);
	/* Only the loop receives these signals. */
	sigemptyset(&asked);
	sigaddset(&asked, SIGWINCH);
	sigaddset(&asked, SIGUSR2);
	sigaddset(&asked, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &asked, NULL);
	loop_timer_init(&m->wake, loop, wake, m);
	loop_post(loop, listen, m);
	if (loop_start(loop) < 0 || park_start(m->fs->park) < 0)
		abort();
	serve_run(m->fs->serve, m->session);
	park_end(m->fs->park);
	fuse_session_unmount(m->session);
	loop_post(loop, answer_all, NULL);
	loop_stop(loop);
}

static void unmake(struct mount *m)
{
	fuse_session_destroy(m->session);
	fs_close(m->fs);
	submit_free(m->submit);
	submit_free(m->dryrun);
	fs_free(m->fs);
	loop_free(loop);
	for (size_t i = 0; i < n_jobs; i++) {
		spec_job_unref(jobs[i].job);
		free(jobs[i].file);
	}
}

int main(int argc, char **argv)
{
	struct fs_config config = {.uid = getuid(), .gid = getgid(), .umask = 022};
	struct submit_config submit = {.submitter = "ada@login1"};
	struct mount m = {0};
	char *why = NULL;

	if (argc < 3)
		return 2;
	m.mountpoint = submit.mountpoint = argv[1];
	config.disk = submit.state_dir = argv[2];
	submit.allow_other = argc > 3;
	diag_setup(DIAG_INFO, true);
	loop_new(&loop);
	m.root_class =
		(struct node_dir_class){.class = {.name = "root", NODE_DIR_OPS}, .entries = m.root};
	m.fs = fs_new(loop, &config, &m.root_class.class, NULL);
	if (submit_new(m.fs, &submit, &submit_class, &m.submit, &why) < 0 ||
	    submit_new(m.fs, &submit, &dryrun_class, &m.dryrun, &why) < 0) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	m.root[0] = (struct node_entry_def){.name = "submit",
					    .class = &submit_class,
					    .object = m.submit};
	m.root[1] = (struct node_entry_def){.name = "dryrun",
					    .class = &dryrun_class,
					    .object = m.dryrun};
	m.root[2] = (struct node_entry_def){.name = "jobs", .class = &jobs_dir_class};
	if (mount_it(&m, submit.allow_other) < 0)
		return 1;
	serve(&m);
	unmake(&m);
	return 0;
}
