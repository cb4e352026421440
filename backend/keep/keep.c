/* SPDX-License-Identifier: MIT */
/*
 * One thing is put at a time: the job that has waited longest, or the lines of a day. After an error of the archive
 * nothing is put for a while, which grows from failure to failure; meanwhile keep finds out how much waits, since it
 * has to tell that.
 *
 * WAITS  | nothing                               | a job is due: BUSY; it ends, and nothing is left: ENDING
 * BUSY   | an errand or a lister, the start, or  | that is over: WAITS
 *        | source.json is looked at              | it ends, and has waited long enough: ENDING
 * ENDING | the archive stops, and the pool       | that is over: OVER
 * OVER   | nothing                               |
 */
#include "backend/keep/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include <uthash.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/print.h"
#include "backend/base/random.h"
#include "backend/base/work.h"
#include "backend/keep/errand.h"
#include "backend/keep/lister.h"
#include "spec/base/sha256.h"
#include "spec/job/snapshot.h"

#define SOON_MS	   1000	  /* how long changes of a job are collected */
#define OFTEN_MS   300000 /* how often a job that goes on is put again */
#define LIST_MS	   30000  /* how long lines wait for others at most */
#define LOOK_MS	   60000  /* how often a job is looked at while the archive is away */
#define WAIT_MS	   1000	  /* the pause after the first failure */
#define WAIT_MAX   300000
#define SOURCE_MAX 4096
#define LEFT_MAX   (64u << 20)

enum state { WAITS, BUSY, ENDING, OVER };
/* Whose the archive is, by its source.json. */
enum whose { UNKNOWN, OURS, REFUSED };

struct kept {
	char *uid;
	const struct spec_job *job;
	struct keep_record *record; /* NULL: it was not read yet, or an errand has it */
	/* When it is due, by loop_now_ms; UINT64_MAX: when it changes. */
	uint64_t at;
	uint64_t looked;       /* when it was last looked at while the archive was away */
	uint64_t changes, put; /* how often it has changed, and which of these the archive has */
	uint64_t waiting;      /* bytes of output that waited when it was last looked at */
	char *line;	       /* its line, which has to be listed; NULL: none */
	bool left;	       /* it has left jobs/ for good */
	bool removed;	       /* it was removed from the history */
	bool noted;	       /* STATE/archive/UID.left is there, or is being written */
	UT_hash_handle hh;
};

struct keep {
	struct loop *loop;
	struct archive *archive;
	char *dir, *namespace, *source;
	const char *state_dir;
	unsigned stop_ms;
	keep_text_fn text;
	void *data;
	enum state state;
	enum whose whose;
	bool stopping;
	struct kept *all;
	struct errand *errand; /* the job of the errand */
	struct kept *busy;
	uint64_t busy_changes;
	struct lister *lister;
	struct group group;	 /* work of the pool that is under way */
	struct work_queue notes; /* the order of writes in STATE/archive */
	char day[11];		 /* the day of the lister */
	uint64_t list_at;	 /* since when lines wait; 0: none do */
	/* When the archive is tried again, and the pause before that; 0: the last try was fine. */
	uint64_t retry_at, wait_ms;
	struct loop_timer timer, late;
	uint64_t timer_at; /* when TIMER fires, while it is set */
	struct work load;
	struct keep_found {
		struct spec_job *job;
		struct keep_found *next;
	} * found;					      /* what the start has read */
	void (*begun)(void *data, int err, const char *text); /* NULL: it was called */
	void *begun_data;
	loop_fn put_all; /* all of a job that has ended was put; NULL: nobody wants to know */
	void *put_all_data;
	loop_fn stopped;
	void *stopped_data;
	atomic_ullong n_waiting, waiting, put, failures;
};

static void step(void *data);

/* --- jobs --- */

static struct kept *need(struct keep *k, const char *uid)
{
	struct kept *j;

	HASH_FIND_STR(k->all, uid, j);
	if (j)
		return j;
	j = new0(struct kept);
	j->uid = text_copy(uid);
	HASH_ADD_KEYPTR(hh, k->all, j->uid, strlen(j->uid), j);
	return j;
}

static void kept_free(struct keep *k, struct kept *j)
{
	HASH_DEL(k->all, j);
	spec_job_unref(j->job);
	keep_record_free(j->record);
	free(j->line);
	free(j->uid);
	free(j);
}

/* Will nothing more come of JOB? */
static bool is_settled(const struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		for (size_t l = 0; l < job->replicas[i].n_logs; l++)
			if (!job->replicas[i].logs[l].complete && !job->replicas[i].logs[l].gap)
				return false;
	return true;
}

static bool is_over(const struct kept *j)
{
	return j->left || spec_job_is_over(j->job);
}

static bool is_put(const struct kept *j)
{
	return j->put == j->changes && j->put && !j->line;
}

/* A file in STATE/archive, about a job, that is to be written or removed. */
struct note {
	struct work work;
	const struct spec_job *job; /* with the job's snapshot, */
	char *text;		    /* or with this text; both NULL: the file is removed */
	char *dir, *file;
};

static void note_run(void *data)
{
	struct note *n = data;
	cleanup_free char *path = text_print("%s/%s", n->dir, n->file);

	if (n->job)
		n->text = spec_snapshot_text(n->job);
	if (n->text)
		n->work.err = file_write(n->dir, n->file, n->text, strlen(n->text));
	else
		(void)disk_unlink(AT_FDCWD, path);
}

static void note_done(void *data)
{
	struct note *n = data;

	if (n->work.err)
		diag(DIAG_WARNING, "%s/%s: %s", n->dir, n->file, strerror(-n->work.err));
	spec_job_unref(n->job);
	free(n->text);
	free(n->dir);
	free(n->file);
	free(n);
}

/* Write or remove a file of job UID. TEXT is taken over. */
static void note(struct keep *k, const char *uid, const char *end, const struct spec_job *job,
		 char *text)
{
	struct note *n = new0(struct note);

	n->job = job ? spec_job_ref(job) : NULL;
	n->text = text;
	n->dir = text_print("%s/" KEEP_DIR, k->state_dir);
	n->file = text_print("%s%s", uid, end);
	n->work = (struct work){.run = note_run, .done = note_done, .data = n, .group = &k->group};
	work_enqueue(&n->work, k->loop, &k->notes);
}

static void set(struct kept *j, const struct spec_job *job)
{
	spec_job_unref(j->job);
	j->job = spec_job_ref(job);
	j->changes++;
	j->removed = false;
	j->left = job->history;
	if (is_over(j) || !j->at || j->at == UINT64_MAX)
		j->at = loop_now_ms() + SOON_MS;
}

static void wake(struct keep *k, uint64_t at)
{
	uint64_t now = loop_now_ms();

	if (loop_timer_is_set(&k->timer) && k->timer_at <= at)
		return;
	k->timer_at = at;
	loop_timer_set(&k->timer, at > now ? at - now : 0);
}

void keep_job(struct keep *k, const struct spec_job *old, const struct spec_job *new_job)
{
	struct kept *j = need(k, new_job ? new_job->uid : old->uid);
	struct spec_job *gone = new_job || old->history ? NULL : spec_job_copy(old);

	/* If the job has left jobs/ without any output, it is told to the archive as if it were in the history. */
	if (gone) {
		gone->history = true;
		gone->changed = loop_time_ns();
	}
	if (gone && !spec_state_is_final(gone->state)) {
		gone->state = SPEC_CANCELLED;
		gone->finished = gone->changed;
	}
	if (gone || new_job) {
		set(j, gone ? gone : new_job);
	} else {
		j->removed = true;
		j->at = loop_now_ms() + SOON_MS;
	}
	spec_job_unref(gone);
	/* A job that was in the history when this run began has its snapshot in its folder, and needs no note. */
	if (old && !old->history && j->left) {
		j->noted = true;
		note(k, j->uid, KEEP_LEFT, j->job, NULL);
	}
	if (!j->job)
		kept_free(k, j);
	else if (k->state == WAITS && !k->stopping)
		wake(k, loop_now_ms() + SOON_MS);
}

bool keep_has(const struct keep *k, const char *uid)
{
	struct kept *j;

	if (!k)
		return true;
	HASH_FIND_STR(k->all, uid, j);
	return j && is_put(j) && is_over(j);
}

/* --- what is put --- */

/* A try to put something is over: note whether the archive can be used. */
static void tried(struct keep *k, int err, const char *text)
{
	k->state = WAITS;
	if (err) {
		if (!k->wait_ms)
			diag(DIAG_WARNING,
			     "archive: %s; what is not there is kept, and tried again", text);
		atomic_fetch_add(&k->failures, 1);
		k->wait_ms = k->wait_ms ? min_of(2 * k->wait_ms, (uint64_t)WAIT_MAX) : WAIT_MS;
		k->retry_at = loop_now_ms() + random_about((unsigned)k->wait_ms);
	} else if (k->wait_ms) {
		diag(DIAG_INFO, "%s: what is new is archived again", k->dir);
		k->wait_ms = k->retry_at = 0;
	}
	step(k);
}

/* If J has left, nothing will be added to it; note that, so that a later start need not look at it. */
static void finish(struct keep *k, struct kept *j)
{
	if (k->put_all && is_over(j) && is_put(j))
		k->put_all(k->put_all_data);
	if (!j->left || !is_put(j) || !is_settled(j->job))
		return;
	if (!j->record->final) {
		j->record->final = true;
		note(k, j->uid, "", NULL, keep_record_text(j->record));
	}
	if (j->noted)
		note(k, j->uid, KEEP_LEFT, NULL, NULL);
	j->noted = false;
}

static void on_listed(void *data, int err, const char *text)
{
	struct keep *k = data;

	k->lister = NULL;
	if (!err)
		k->list_at = 0;
	for (struct kept *j = k->all; j; j = j->hh.next) {
		char day[11];

		if (!j->line)
			continue;
		keep_day(j->job->created, day);
		if (err || !streq(day, k->day)) {
			k->list_at = k->list_at ? k->list_at : loop_now_ms();
			continue;
		}
		free(j->record->line);
		j->record->line = new0_n(char, 65);
		spec_sha256(j->line, strlen(j->line), j->record->line);
		free(take_ptr(j->line));
		note(k, j->uid, "", NULL, keep_record_text(j->record));
		finish(k, j);
	}
	tried(k, err, text);
}

/* List all lines that wait of the first one's day. */
static void list(struct keep *k)
{
	struct keep_line *lines = new0_n(struct keep_line, HASH_COUNT(k->all));
	size_t n = 0;

	for (struct kept *j = k->all; j; j = j->hh.next) {
		char day[11];

		if (!j->line)
			continue;
		keep_day(j->job->created, day);
		if (n == 0)
			memcpy(k->day, day, sizeof(day));
		if (!streq(day, k->day))
			continue;
		lines[n].text = text_copy(j->line);
		lines[n].len = strlen(j->line);
		lines[n].head = strlen("{\"uid\":\"\",") + strlen(j->uid);
		n++;
	}
	k->state = BUSY;
	k->lister = lister_start(k->loop, &k->group, k->archive, k->namespace, k->day, lines, n,
				 on_listed, k);
}

static void on_put(void *data, struct errand_end *end)
{
	struct keep *k = data;
	struct kept *j = take_ptr(k->busy);
	uint64_t now = loop_now_ms();

	k->errand = NULL;
	j->record = end->record;
	j->waiting = end->waiting - min_of(end->put, end->waiting);
	j->looked = now;
	atomic_fetch_add(&k->put, end->put);
	if (end->line && (is_over(j) || !j->record->line)) {
		free(j->line);
		j->line = take_ptr(end->line);
		k->list_at = k->list_at ? k->list_at : now;
	}
	free(end->line);
	if (end->local) {
		diag(DIAG_WARNING, "%s: %s: %s; it is tried again", j->job->id, end->text,
		     strerror(-end->err));
		/* The job's folder may have got another name meanwhile. */
		j->at = k->busy_changes != j->changes ? now + SOON_MS : now + LOOK_MS;
	} else if (!end->err) {
		if (!end->more)
			j->put = k->busy_changes;
		j->at = end->more || k->busy_changes != j->changes ? now
			: is_over(j)				   ? UINT64_MAX
								   : now + random_about(OFTEN_MS);
		finish(k, j);
	}
	tried(k, end->local ? 0 : end->err, end->text);
}

static void on_looked(void *data, struct errand_end *end)
{
	struct keep *k = data;
	struct kept *j = take_ptr(k->busy);

	k->errand = NULL;
	j->record = end->record;
	j->waiting = end->waiting;
	j->looked = loop_now_ms();
	free(end->line);
	k->state = WAITS;
	step(k);
}

static void put(struct keep *k, struct kept *j, bool look)
{
	const struct errand_context context = {
		.loop = k->loop,
		.group = &k->group,
		.notes = &k->notes,
		.archive = k->archive,
		.namespace = k->namespace,
		.state_dir = k->state_dir,
		.text = k->text,
		.data = k->data,
	};
	const struct errand_job job = {
		.job = j->job,
		.left = j->left,
		.look = look,
		.record = take_ptr(j->record),
	};

	k->state = BUSY;
	k->busy = j;
	k->busy_changes = j->changes;
	k->errand = errand_start(&context, &job, look ? on_looked : on_put, k);
}

/* --- whose the archive is --- */

static void tell_begun(struct keep *k, int err, const char *text)
{
	void (*fn)(void *data, int err, const char *text) = take_ptr(k->begun);

	if (fn)
		fn(k->begun_data, err, text);
}

static void on_source_put(void *data, int err, const char *text)
{
	struct keep *k = data;

	k->whose = err ? UNKNOWN : OURS;
	tell_begun(k, 0, "");
	tried(k, err, text);
}

static void on_source(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct keep *k = data;
	cleanup_free char *name = keep_source_name(k->namespace), *why = NULL;

	if (err == -ENOENT)
		return archive_put(k->archive, name, text_copy(k->source), strlen(k->source),
				   on_source_put, k);
	if (err)
		return on_source_put(k, err, text);
	if (n == strlen(k->source) && memcmp(bytes, k->source, n) == 0)
		return on_source_put(k, 0, "");
	k->whose = REFUSED;
	why = text_print(
		"%s/%s: has the jobs of another cluster, or of an earlier namespace of that "
		"name: give another directory with -o archive=DIR, or remove source.json "
		"there if they are to stand together",
		k->dir, k->namespace);
	if (!k->begun)
		diag(DIAG_ERROR, "%s", why);
	k->state = WAITS;
	tell_begun(k, -EEXIST, why);
	step(k);
}

/* --- what is next --- */

static void on_worked(void *data)
{
	struct keep *k = data;

	k->state = OVER;
	k->stopped(k->stopped_data);
}

static void on_archive_stopped(void *data)
{
	struct keep *k = data;

	group_when_empty(&k->group, on_worked, k);
}

static void end(void *data)
{
	struct keep *k = data;
	size_t left = 0;

	if (k->state == ENDING || k->state == OVER)
		return;
	for (struct kept *j = k->all; j; j = j->hh.next)
		left += j->at == 0 || !is_put(j);
	if (left && k->whose != REFUSED)
		diag(DIAG_WARNING,
		     "%zu jobs are not archived as they are; the next start goes on with them",
		     left);
	k->state = ENDING;
	loop_timer_stop(&k->timer);
	loop_timer_stop(&k->late);
	archive_stop(k->archive, on_archive_stopped, k);
	if (k->errand)
		errand_cancel(take_ptr(k->errand));
	if (k->lister)
		lister_cancel(take_ptr(k->lister));
}

/*
 * The job that has been due for the longest time; NULL: none is. *RET_NEXT: when something else is to be done. A job
 * that was removed from the history is forgotten here.
 */
static struct kept *due(struct keep *k, bool away, uint64_t *ret_next)
{
	uint64_t now = loop_now_ms();
	uint64_t n = 0, bytes = 0;
	struct kept *first = NULL, *j, *next;

	HASH_ITER(hh, k->all, j, next) {
		uint64_t at = j->at;

		if (j->removed && at <= now) {
			note(k, j->uid, "", NULL, NULL);
			if (j->noted)
				note(k, j->uid, KEEP_LEFT, NULL, NULL);
			kept_free(k, j);
			continue;
		}
		n += at <= now || (is_over(j) && !is_put(j));
		bytes += j->waiting;
		if (away)
			at = max_of(at, j->looked ? j->looked + LOOK_MS : 0);
		if (at > now)
			*ret_next = min_of(*ret_next, at);
		else if (!first || j->at < first->at)
			first = j;
	}
	atomic_store(&k->n_waiting, n);
	atomic_store(&k->waiting, bytes);
	return first;
}

static void step(void *data)
{
	struct keep *k = data;
	uint64_t now = loop_now_ms();
	bool away = now < k->retry_at || k->whose != OURS;
	uint64_t next = now < k->retry_at ? k->retry_at : UINT64_MAX;
	cleanup_free char *source = keep_source_name(k->namespace);
	struct kept *j;

	if (k->state != WAITS)
		return;
	if (k->stopping && (k->wait_ms || k->whose == REFUSED))
		return end(k);
	if (k->whose == UNKNOWN && now >= k->retry_at) {
		k->state = BUSY;
		return archive_get(k->archive, source, 0, SOURCE_MAX, on_source, k);
	}
	if (k->list_at && !away && now >= k->list_at + LIST_MS)
		return list(k);
	j = due(k, away, &next);
	if (j)
		return put(k, j, away);
	if (k->list_at && !away && (k->stopping || now >= k->list_at + SOON_MS))
		return list(k);
	if (k->list_at && !away)
		next = min_of(next, k->list_at + SOON_MS);
	if (k->stopping)
		return end(k);
	if (next != UINT64_MAX)
		wake(k, next);
}

/* --- life --- */

/* Runs on the pool: read one of the jobs of which an earlier run has noted that they have left. */
static int load_one(void *data, int at, const char *name, unsigned char type)
{
	struct keep *k = data;
	const char *end = strstr(name, KEEP_LEFT);
	cleanup_fd int fd = -1;
	cleanup_free char *text = NULL;
	struct spec_job *job = NULL;
	struct keep_found *found;
	size_t len;

	if (!end || end[strlen(KEEP_LEFT)])
		return 0;
	fd = disk_open(at, name, O_RDONLY | O_NONBLOCK);
	if (fd < 0 || file_read_fd(fd, LEFT_MAX, &text, &len) < 0 ||
	    spec_snapshot_parse(text, len, &job) < 0)
		return 0;
	if (strlen(job->uid) != (size_t)(end - name) ||
	    memcmp(job->uid, name, (size_t)(end - name)) != 0) {
		spec_job_unref(job);
		return 0;
	}
	found = new0(struct keep_found);
	*found = (struct keep_found){job, k->found};
	k->found = found;
	return 0;
}

static void load(void *data)
{
	struct keep *k = data;
	cleanup_free char *dir = text_print("%s/" KEEP_DIR, k->state_dir);

	k->load.err = disk_mkdir(AT_FDCWD, dir);
	if (k->load.err == -EEXIST)
		k->load.err = disk_list(AT_FDCWD, dir, load_one, k);
}

static void on_loaded(void *data)
{
	struct keep *k = data;
	struct keep_found *found;

	if (k->load.err)
		diag(DIAG_WARNING, "%s/" KEEP_DIR ": %s", k->state_dir, strerror(-k->load.err));
	while ((found = k->found)) {
		struct kept *j = need(k, found->job->uid);

		k->found = found->next;
		j->noted = true;
		if (!j->job)
			set(j, found->job);
		spec_job_unref(found->job);
		free(found);
	}
	k->state = WAITS;
	step(k);
}

void keep_set_put(struct keep *k, loop_fn fn, void *data)
{
	k->put_all = fn;
	k->put_all_data = data;
}

void keep_begin(struct keep *k, const char *namespace, const char *uid,
		void (*fn)(void *data, int err, const char *text), void *data)
{
	k->namespace = text_copy(namespace);
	k->source = keep_source_text(namespace, uid);
	k->begun = fn;
	k->begun_data = data;
	k->load = (struct work){.run = load, .done = on_loaded, .data = k, .group = &k->group};
	work_enqueue(&k->load, k->loop, &k->notes);
}

void keep_stop(struct keep *k, loop_fn fn, void *data)
{
	k->stopping = true;
	k->stopped = fn;
	k->stopped_data = data;
	loop_timer_stop(&k->timer);
	if (!k->namespace) { /* keep_begin was not called */
		k->state = WAITS;
		return end(k);
	}
	loop_timer_set(&k->late, k->stop_ms);
	for (struct kept *j = k->all; j; j = j->hh.next)
		if (!j->removed && (!is_put(j) || !is_over(j)))
			j->at = 0;
	step(k);
}

int keep_new(const struct keep_config *config, struct keep **ret, char **ret_text)
{
	cleanup_free char *who = text_print("%s %s", config->writer, config->state_dir);
	struct archive *archive;
	char writer[65];
	struct keep *k;
	int err;

	spec_sha256(who, strlen(who), writer);
	writer[12] = '\0';
	err = archive_new(config->loop, &config->place, writer, &archive, ret_text);
	if (err)
		return err;
	k = new0(struct keep);
	*k = (struct keep){
		.loop = config->loop,
		.archive = archive,
		.dir = text_copy(config->place.where),
		.state_dir = config->state_dir,
		.stop_ms = config->stop_ms,
		.text = config->text,
		.data = config->data,
		.state = BUSY, /* busy until keep_begin is done */
	};
	group_init(&k->group, config->loop);
	loop_timer_init(&k->timer, config->loop, step, k);
	loop_timer_init(&k->late, config->loop, end, k);
	*ret = k;
	return 0;
}

void keep_free(struct keep *k)
{
	struct kept *j, *next;

	if (!k)
		return;
	HASH_ITER(hh, k->all, j, next)
		kept_free(k, j);
	archive_free(k->archive);
	free(k->dir);
	free(k->namespace);
	free(k->source);
	free(k);
}

void keep_metrics(struct keep *k, FILE *out)
{
	const struct print_metric metrics[] = {
		{"archive_waiting_jobs", "gauge", "Jobs that wait to be archived",
		 atomic_load(&k->n_waiting)},
		{"archive_waiting_bytes", "gauge", "Output that waits to be archived",
		 atomic_load(&k->waiting)},
		{"archived_bytes_total", "counter", "Bytes of output that were archived",
		 atomic_load(&k->put)},
		{"archive_failures_total", "counter", "Tries to archive something that failed",
		 atomic_load(&k->failures)},
	};

	print_metrics(out, metrics, array_size(metrics));
}
