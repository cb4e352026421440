/* SPDX-License-Identifier: MIT */
/*
 * Records of jobs. The states of a record, and the only allowed changes (set_state checks them):
 *
 *	state      | meaning                        | what ends it               | next
 *	HELD       | not launched yet; the job      | all conditions are met     | SUBMITTING
 *	           | waits for the conditions in    | a condition can't be met,  | NEVER
 *	           | the part `hold`                | or the user removes it     |
 *	SUBMITTING | the launch is in progress, or  | the job was launched       | LIVE
 *	           | its result is unknown          | the launch failed; the job | HELD, NEVER
 *	           |                                | was HELD before            |
 *	           |                                | the launch failed; the job | NEVER, removed
 *	           |                                | was not HELD before        |
 *	LIVE       | launched exactly once; the job | the job leaves jobs/       | HISTORY, removed
 *	           | is in jobs/                    |                            |
 *	HISTORY    | the job is in history/         | removal by user, or expiry | removed
 *	           |                                | the cluster shows the job  | LIVE
 *	           |                                | again                      |
 *	NEVER      | the job was not launched       | removal by user, or expiry | removed
 *	           |                                | the cluster shows the job  | LIVE
 *	           |                                | nevertheless               |
 *
 * If a job was not submitted through this state directory, its record is LIVE or HISTORY.
 *
 * The pool writes the file of a record for one request at a time. Further requests wait. A change
 * by records_note waits until TIMER expires, and so does the retry of a failed write.
 *
 * The table, the requests, and the loading at the start are in one file, because all of them change
 * records.
 */
#include "backend/jobs/records.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/random.h"
#include "backend/base/work.h"
#include "spec/base/encode.h"
#include "spec/base/key_table.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/job/status.h"

#define MAX_TEXTS    7
#define RETRY_MS     1000u
#define RETRY_MAX_MS 60000u
#define HIDE_MS	     1000 /* how long a write of the record from older_to_hide may be delayed */

enum request_kind { REQUEST_MAKE, REQUEST_COMMIT, REQUEST_MARK, REQUEST_SAVE, REQUEST_REMOVE };

/* A request to make, change or remove the file of a record. */
struct records_request {
	enum request_kind kind;
	struct record_change change; /* for COMMIT and MARK */
	enum record_state from;	     /* for COMMIT and MARK: the state at the time of the request */
	int64_t time;		     /* for MARK: the time of the move, set by the pool */
	struct record_rest rest;     /* for MAKE */
	char *texts[MAX_TEXTS];	     /* the strings of CHANGE and REST */
	size_t n_texts;
	bool *left;	 /* for MAKE: see records_make; may be NULL */
	bool ret_left;	 /* value for *LEFT, set by the pool */
	bool sync;	 /* for REMOVE: see record_file_remove */
	records_fn done; /* may be NULL */
	void *data;
	struct records_request *next;
};

/* The pending operations on a record. Freed when none is left. */
struct writer {
	struct record *r;
	struct work work;
	struct records_request *requests; /* the first one is in progress if WRITING is true */
	struct spec_head *next;		  /* the head that the pool writes */
	const struct spec_job *snapshot;  /* the snapshot that the pool writes, or NULL */
	bool writing;
	bool dirty; /* R differs from its file */
	struct backoff again;
	struct loop_timer timer; /* expires when R must be saved */
};

struct record {
	struct records *rs;
	struct spec_head *head;
	struct job_launch launch;   /* in FILES once the record is on disk */
	struct writer *writer;	    /* NULL if no operation is pending */
	unsigned pins;		    /* calls of record_pin without record_unpin */
	bool removed;		    /* its removal was requested */
	bool seen;		    /* the job's uid is known; if not, the record is in UNSEEN */
	bool has_uid;		    /* in BY_UID: the uid is known, and is not the key */
	struct record *prev, *next; /* in UNSEEN */
};

struct records_part {
	record_part_fn fn;
	void *data;
};

struct records {
	struct loop *loop;
	const char *state_dir;
	struct group group;
	struct job_files *files;
	struct records_part parts[RECORD_N_PARTS];
	record_snapshot_fn snapshot; /* may be NULL */
	void *snapshot_data;
	record_written_fn written; /* may be NULL */
	void *written_data;
	record_read_fn reader; /* may be NULL */
	void *reader_data;
	struct key_table by_key, by_uid;
	struct record *unseen;
	bool passive, stopping;
};

/* --- states --- */

static const unsigned allowed[] = {
	[RECORD_HELD] = 1u << RECORD_SUBMITTING | 1u << RECORD_NEVER,
	[RECORD_SUBMITTING] = 1u << RECORD_LIVE | 1u << RECORD_HELD | 1u << RECORD_NEVER,
	[RECORD_LIVE] = 1u << RECORD_HISTORY,
	[RECORD_HISTORY] = 1u << RECORD_LIVE,
	[RECORD_NEVER] = 1u << RECORD_LIVE,
};

/* No other function changes a state. */
static void set_state(struct spec_head *h, enum record_state to)
{
	if (h->state == to)
		return;
	assert(allowed[h->state] & 1u << to);
	/* A record becomes HELD again only if it was HELD before this launch. */
	assert(to != RECORD_HELD || h->held);
	h->held = to == RECORD_SUBMITTING && h->state == RECORD_HELD;
	if (to != RECORD_SUBMITTING && h->more)
		spec_set(&h->more->boot, "");
	h->state = to;
	h->since = loop_time_ns();
}

static void apply(struct spec_head *h, const struct record_change *c)
{
	set_state(h, c->state);
	if (c->id)
		spec_set(&h->id, c->id);
	if (c->uid)
		spec_set(&h->uid, c->uid);
	h->dropped |= c->dropped;
	h->unlinked |= c->unlinked;
	h->over |= c->over;
	if (!h->more)
		return;
	if (c->reason)
		spec_set(&h->more->reason, c->reason);
	if (c->why)
		spec_set(&h->more->why, c->why);
	if (c->boot)
		spec_set(&h->more->boot, c->boot);
}

/* --- the table --- */

static const char *key_of(const void *item)
{
	const struct record *r = item;

	return r->head->key;
}

static const char *uid_of(const void *item)
{
	const struct record *r = item;

	return r->head->uid;
}

/* If R's head now has the job's uid, make records_by_uid find R by this uid. */
static void learn_uid(struct record *r)
{
	struct records *rs = r->rs;

	if (r->seen || !*r->head->uid || records_by_uid(rs, r->head->uid))
		return;
	r->seen = true;
	DL_DELETE(rs->unseen, r);
	r->has_uid = !streq(r->head->uid, r->head->key);
	if (r->has_uid)
		key_table_add(&rs->by_uid, r);
}

static void forget_uid(struct record *r)
{
	if (r->has_uid)
		key_table_remove(&r->rs->by_uid, r);
	if (r->seen)
		DL_APPEND(r->rs->unseen, r);
	r->seen = r->has_uid = false;
}

static struct record *add(struct records *rs, struct spec_head *h)
{
	struct record *r = new0(struct record);

	r->rs = rs;
	r->head = h;
	key_table_add(&rs->by_key, r);
	DL_APPEND(rs->unseen, r);
	learn_uid(r);
	return r;
}

/* Apply C under the lock, because other threads read the head for NAME.job. */
static void change_head(struct record *r, const struct record_change *c)
{
	const struct spec_head *h = r->head;
	const bool news = c->state != h->state || (c->id && !streq(c->id, h->id)) ||
			  (c->unlinked && !h->unlinked);

	if (c->uid && !streq(c->uid, h->uid))
		forget_uid(r);
	{
		lock_scope(job_files_lock(r->rs->files));
		apply(r->head, c);
	}
	spec_head_forget(r->head);
	learn_uid(r);
	if (news)
		job_files_update(r->rs->files, &r->launch);
}

static void request_free(struct records_request *q)
{
	for (size_t i = 0; i < q->n_texts; i++)
		free(q->texts[i]);
	free(q);
}

static void writer_free(struct writer *w)
{
	struct records_request *q;

	while ((q = w->requests)) {
		LL_DELETE(w->requests, q);
		request_free(q);
	}
	loop_timer_stop(&w->timer);
	spec_head_free(w->next);
	spec_job_unref(w->snapshot);
	free(w);
}

static void record_free(struct record *r)
{
	key_table_remove(&r->rs->by_key, r);
	forget_uid(r);
	DL_DELETE(r->rs->unseen, r);
	if (r->writer)
		writer_free(r->writer);
	job_files_remove(r->rs->files, &r->launch);
	spec_head_free(r->head);
	free(r);
}

const struct spec_head *record_head(const struct record *r)
{
	return r->head;
}

bool record_is_newest(const struct record *r)
{
	return job_files_is_newest(r->rs->files, &r->launch);
}

char *record_take_part(struct record *r, enum record_part part)
{
	char *text = r->head->more ? take_ptr(r->head->more->parts[part]) : NULL;

	spec_head_forget(r->head);
	return text;
}

struct record *records_by_key(const struct records *rs, const char *key)
{
	return key_table_find(&rs->by_key, key);
}

struct record *records_by_uid(const struct records *rs, const char *uid)
{
	struct record *r = records_by_key(rs, uid);

	return r && r->seen && !r->has_uid ? r : key_table_find(&rs->by_uid, uid);
}

struct record *records_next_unseen(const struct records *rs, const struct record *r)
{
	return r ? r->next : rs->unseen;
}

bool record_is_going(const struct record *r)
{
	return r->removed;
}

static void write_next(struct writer *w);

void record_pin(struct record *r)
{
	r->pins++;
}

void record_unpin(struct record *r)
{
	if (--r->pins == 0 && r->writer && !r->writer->writing)
		write_next(r->writer);
}

struct job_files *records_files(struct records *rs)
{
	return rs->files;
}

void records_show(struct records *rs, const char *key, bool shown)
{
	struct record *r = records_by_key(rs, key);

	if (r)
		job_files_show(rs->files, &r->launch, shown);
}

static int by_age(const void *a, const void *b)
{
	return strcmp(key_of(*(const struct record *const *)a),
		      key_of(*(const struct record *const *)b));
}

void records_each(struct records *rs, void (*fn)(void *data, struct record *r), void *data)
{
	const size_t n = rs->by_key.n;
	cleanup_free struct record **all = new0_n(struct record *, n);

	for (size_t i = 0, at = 0; i < n; i++)
		all[i] = key_table_next(&rs->by_key, &at);
	qsort(all, n, sizeof(struct record *), by_age);
	for (size_t i = 0; i < n; i++)
		fn(data, all[i]);
}

/* --- the file of a record --- */

static void set_digest(struct spec_head *h, const struct record_rest *rest)
{
	char digest[65];

	spec_sha256(rest->document, rest->len, digest);
	spec_set(&h->digest, digest);
}

static void write_work(void *data)
{
	struct writer *w = data;
	const struct records *rs = w->r->rs;
	struct records_request *q = w->requests;

	if (w->snapshot) {
		free(w->next->more->parts[RECORD_SNAPSHOT]);
		w->next->more->parts[RECORD_SNAPSHOT] = spec_snapshot_text(w->snapshot);
	}
	switch (q->kind) {
	case REQUEST_MAKE:
		if (w->next->own)
			set_digest(w->next, &q->rest);
		w->work.err = record_file_make(rs->state_dir, w->next, &q->rest, &q->ret_left);
		break;
	case REQUEST_COMMIT:
	case REQUEST_SAVE:
		w->work.err = record_file_write(rs->state_dir, w->next);
		break;
	case REQUEST_MARK:
		q->time = loop_time_ns();
		w->work.err = record_file_mark(rs->state_dir, w->r->head->key, q->time);
		break;
	case REQUEST_REMOVE:
		w->work.err = record_file_remove(rs->state_dir, w->r->head->key, q->sync);
		break;
	}
	/* A network disk may return ESTALE, which records_commit uses for a changed state. */
	if (w->work.err == -ESTALE)
		w->work.err = -EIO;
}

static void set_part(struct spec_head *h, enum record_part part, const char *text)
{
	free(h->more->parts[part]);
	h->more->parts[part] = text_copy(text);
}

/* Return the head that the pool will write: a copy of R's head with the change of Q. */
static struct spec_head *render(struct record *r, const struct records_request *q)
{
	struct spec_head *next = spec_head_copy(r->head);

	if (q->kind == REQUEST_COMMIT)
		apply(next, &q->change);
	for (size_t i = 0; i < RECORD_N_PARTS && q->kind != REQUEST_MAKE; i++) {
		const struct records_part *part = &r->rs->parts[i];

		free(take_ptr(next->more->parts[i]));
		if (part->fn)
			next->more->parts[i] = part->fn(part->data, r, next, (enum record_part)i);
	}
	if (q->change.plan)
		set_part(next, RECORD_PLAN, q->change.plan);
	if (q->change.snapshot)
		set_part(next, RECORD_SNAPSHOT, q->change.snapshot);
	return next;
}

/* True if the state of R has changed since Q was requested. False unless Q is COMMIT or MARK. */
static bool is_overtaken(const struct record *r, const struct records_request *q)
{
	return (q->kind == REQUEST_COMMIT || q->kind == REQUEST_MARK) && r->head->state != q->from;
}

static void write_done(void *data);
static void on_timer(void *data);

/*
 * Return the record to whose job NAME.job would link after the removal of R. Return NULL if R is
 * not the newest launch of its file, if no older record remains, or if the older one is unlinked.
 */
static struct record *older_to_hide(const struct record *r)
{
	const struct job_launch *l = &r->launch;

	if (!job_files_is_newest(r->rs->files, l))
		return NULL;
	while ((l = l->next)) {
		struct record *older = records_by_key(r->rs, l->head->key);

		if (!older->removed)
			return older->head->unlinked ? NULL : older;
	}
	return NULL;
}

/* Start the first request of W. Free W if nothing is left to do. */
static void write_next(struct writer *w)
{
	struct record *r = w->r;
	struct records_request *q = w->requests;

	if (!q && !w->dirty) {
		r->writer = NULL;
		return writer_free(w);
	}
	if (!q && r->rs->stopping)
		return on_timer(w);
	if (!q || (q->kind == REQUEST_REMOVE && r->pins))
		return;
	w->writing = true;
	w->work = (struct work){.run = write_work,
				.done = write_done,
				.group = &r->rs->group,
				.data = w};
	if (is_overtaken(r, q)) {
		w->work.run = NULL;
	} else if (q->kind != REQUEST_MARK && q->kind != REQUEST_REMOVE) {
		loop_timer_stop(&w->timer);
		w->dirty = false;
		w->next = render(r, q);
		if (r->rs->snapshot)
			w->snapshot = r->rs->snapshot(r->rs->snapshot_data, r);
	}
	work_start(&w->work, r->rs->loop);
}

static void add_request(struct record *r, struct records_request *q);

static struct records_request *request_new(enum request_kind kind, records_fn done, void *data)
{
	struct records_request *q = new0(struct records_request);

	q->kind = kind;
	q->done = done;
	q->data = data;
	return q;
}

/* Return a copy of TEXT (may be NULL) that lives as long as Q. */
static const char *keep(struct records_request *q, const char *text)
{
	return text ? q->texts[q->n_texts++] = text_copy(text) : NULL;
}

static void on_timer(void *data)
{
	struct writer *w = data;

	add_request(w->r, request_new(REQUEST_SAVE, NULL, NULL));
}

static struct writer *writer_of(struct record *r)
{
	struct writer *w = r->writer;

	if (w)
		return w;
	w = new0(struct writer);
	w->r = r;
	w->again = backoff_begin(RETRY_MS, RETRY_MAX_MS);
	loop_timer_init(&w->timer, r->rs->loop, on_timer, w);
	return r->writer = w;
}

static void add_request(struct record *r, struct records_request *q)
{
	struct writer *w = writer_of(r);
	struct records_request *removal = NULL;

	if (r->pins)
		LL_SEARCH_SCALAR(w->requests, removal, kind, REQUEST_REMOVE);
	if (removal && q != removal)
		LL_PREPEND_ELEM(w->requests, removal, q);
	else
		LL_APPEND(w->requests, q);
	if (!w->writing)
		write_next(w);
}

/* Retry a write that failed with ERR, unless the mount is ending. Log only the first failure. */
static void retry_later(struct writer *w, int err)
{
	const struct records *rs = w->r->rs;

	if (!w->again.failures)
		diag(DIAG_ERROR, "%s: its record %s/jobs/%s can't be written: %s%s", w->r->head->id,
		     rs->state_dir, w->r->head->key, strerror(-err),
		     rs->stopping ? "" : "; kxfs keeps retrying");
	w->dirty = !rs->stopping;
	if (w->dirty && !loop_timer_is_set(&w->timer))
		loop_timer_set(&w->timer, backoff_next(&w->again, 0));
}

/* Finish Q, whose write returned ERR, and update R. Return true if the caller must free R. */
static bool conclude(struct record *r, struct records_request *q, int err)
{
	struct writer *w = r->writer;
	const bool changes = q->kind == REQUEST_SAVE || q->kind == REQUEST_COMMIT;

	for (unsigned i = 0; i < RECORD_N_PARTS && q->kind == REQUEST_MAKE; i++)
		free(record_take_part(r, i));
	if (q->kind == REQUEST_MAKE && !err) {
		spec_set(&r->head->digest, w->next->digest);
		job_files_add(r->rs->files, &r->launch, r->head);
	}
	spec_head_free(take_ptr(w->next));
	spec_job_unref(take_ptr(w->snapshot));
	if (q->kind == REQUEST_MAKE && q->left)
		*q->left = q->ret_left;
	if (err && q->kind == REQUEST_MAKE)
		return true;
	if (err && q->kind == REQUEST_REMOVE)
		r->removed = false;
	if (!err && q->kind == REQUEST_REMOVE)
		return true;
	if (!err && (q->kind == REQUEST_COMMIT || q->kind == REQUEST_MARK))
		change_head(r, &q->change);
	if (!err && q->kind == REQUEST_MARK)
		r->head->since = q->time;
	if (err && err != -ESTALE && changes)
		retry_later(w, err);
	else if (!err && changes)
		backoff_reset(&w->again);
	return false;
}

static void write_done(void *data)
{
	struct writer *w = data;
	struct record *r = w->r;
	struct records_request *q = w->requests, *rest, *next;
	struct record *older = q->kind == REQUEST_REMOVE ? older_to_hide(r) : NULL;
	const records_fn done = q->done;
	void *arg = q->data;
	const int err = is_overtaken(r, q) ? -ESTALE : w->work.err;
	const bool rewrites = q->kind == REQUEST_COMMIT || q->kind == REQUEST_SAVE;

	LL_DELETE(w->requests, q);
	if (older && !err)
		records_note(older,
			     &(struct record_change){.state = older->head->state, .unlinked = true},
			     HIDE_MS);
	if (conclude(r, q, err)) {
		const int refusal = err ? err : -ENOENT;

		/* More requests may wait for this record. */
		rest = take_ptr(w->requests);
		record_free(r);
		request_free(q);
		if (done)
			done(arg, err);
		LL_FOREACH_SAFE(rest, q, next) {
			if (q->done)
				q->done(q->data, q->kind == REQUEST_REMOVE ? 0 : refusal);
			request_free(q);
		}
		return;
	}
	request_free(q);
	if (rewrites && err != -ESTALE && r->rs->written)
		r->rs->written(r->rs->written_data, r, err);
	/* DONE may make further requests. */
	if (done)
		done(arg, err);
	w->writing = false;
	write_next(w);
}

/* --- requests of other modules --- */

void records_set_part(struct records *rs, enum record_part part, record_part_fn fn, void *data)
{
	rs->parts[part] = (struct records_part){fn, data};
}

void records_set_snapshot(struct records *rs, record_snapshot_fn fn, void *data)
{
	rs->snapshot = fn;
	rs->snapshot_data = data;
}

void records_set_reader(struct records *rs, record_read_fn fn, void *data)
{
	rs->reader = fn;
	rs->reader_data = data;
}

void records_set_written(struct records *rs, record_written_fn fn, void *data)
{
	rs->written = fn;
	rs->written_data = data;
}

struct record *records_make(struct records *rs, struct spec_head *h, const struct record_rest *rest,
			    bool *left, records_fn done, void *data)
{
	struct records_request *q = request_new(REQUEST_MAKE, done, data);
	struct record *r;

	assert(h->state != RECORD_NEVER && h->state != RECORD_HISTORY);
	assert(!records_by_key(rs, h->key));
	q->rest = *rest;
	q->rest.document = q->texts[q->n_texts++] = mem_copy(rest->document, rest->len);
	if (rest->manifest)
		q->rest.manifest = q->texts[q->n_texts++] =
			mem_copy(rest->manifest, rest->manifest_len);
	q->left = left;
	h->since = loop_time_ns();
	r = add(rs, h);
	add_request(r, q);
	return r;
}

void records_commit(struct record *r, const struct record_change *change, records_fn done,
		    void *data)
{
	struct records_request *q = request_new(REQUEST_COMMIT, done, data);

	q->change = (struct record_change){
		.state = change->state,
		.id = keep(q, change->id),
		.uid = keep(q, change->uid),
		.reason = keep(q, change->reason),
		.why = keep(q, change->why),
		.boot = keep(q, change->boot),
		.dropped = change->dropped,
		.unlinked = change->unlinked,
		.over = change->over,
		.plan = keep(q, change->plan),
		.snapshot = keep(q, change->snapshot),
	};
	q->from = r->head->state;
	add_request(r, q);
}

void records_mark(struct record *r, records_fn done, void *data)
{
	struct records_request *q = request_new(REQUEST_MARK, done, data);

	q->change.state = RECORD_HISTORY;
	q->from = RECORD_LIVE;
	add_request(r, q);
}

/* Write R, which differs from its file, within MS, and retry until this succeeds. */
static void records_save(struct record *r, unsigned ms)
{
	struct writer *w = writer_of(r);

	w->dirty = true;
	if (r->rs->stopping && !w->writing && !w->requests)
		return on_timer(w);
	if (!ms || !loop_timer_is_set(&w->timer))
		loop_timer_set(&w->timer, ms);
}

void records_note(struct record *r, const struct record_change *change, unsigned ms)
{
	assert(change->state == RECORD_LIVE || change->state == RECORD_HISTORY ||
	       change->state == r->head->state);
	change_head(r, change);
	records_save(r, ms);
}

void records_remove(struct record *r, bool sync, records_fn done, void *data)
{
	struct records_request *q = request_new(REQUEST_REMOVE, done, data);

	assert(r->head->state != RECORD_HELD && !r->removed);
	q->sync = sync;
	r->removed = true;
	add_request(r, q);
}

/* --- the start --- */

struct records_load {
	struct records *rs;
	struct work work;
	struct spec_head **heads;
	size_t n;
	int err;
	char *text;
	void (*done)(void *data, int err, const char *text);
	void *data;
};

/* True if the file NAME reserves space for a record that does not exist. */
static bool is_stray_room(int at, const char *name)
{
	cleanup_free char *key = text_copy(name + 1);

	if (!has_end(name, ".room"))
		return false;
	key[strlen(key) - strlen(".room")] = '\0';
	return disk_access(at, key, F_OK) == -ENOENT;
}

static int load_one(void *data, int at, const char *name, unsigned char type)
{
	struct records_load *l = data;
	struct records *rs = l->rs;
	cleanup(spec_head_freep) struct spec_head *head = NULL;
	int err;

	if (file_is_dir(at, name, type))
		return 0;
	if (*name == '.') {
		if (!rs->passive && (has_end(name, ".new") || is_stray_room(at, name)))
			(void)disk_unlink(at, name);
		return 0;
	}
	err = spec_name_is_file(name) ? record_file_read(rs->state_dir, name, &head) : -EINVAL;
	if (err == -ENOENT)
		return 0;
	if (!err && rs->reader)
		err = rs->reader(rs->reader_data, head);
	if (err && file_fault_may_pass(err)) {
		l->text = text_print("%s/jobs/%s can't be read: %s; to start without that job, "
				     "move %s/jobs/%s elsewhere",
				     rs->state_dir, name, strerror(-err), rs->state_dir, name);
		return l->err = err;
	}
	if (err) {
		record_file_put_aside(rs->state_dir, name, rs->passive, err);
		return 0;
	}
	l->heads = mem_more(l->heads, l->n, sizeof(struct spec_head *));
	l->heads[l->n++] = take_ptr(head);
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct spec_head *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

static void load_work(void *data)
{
	struct records_load *l = data;
	cleanup_free char *dir = text_print("%s/jobs", l->rs->state_dir);
	int err = disk_mkdir(AT_FDCWD, dir);

	/*
	 * Later writes sync only jobs/. Without this sync, a power cut could remove jobs/ itself.
	 */
	if ((!err || err == -EEXIST) && !l->rs->passive)
		err = file_sync_dir(l->rs->state_dir);
	/* A passive mount reads the records even if jobs/ can't be created on a read-only disk. */
	if (!err || l->rs->passive)
		err = disk_list(AT_FDCWD, dir, load_one, l);
	if (err && err != -ENOENT && !l->err) {
		l->text = text_print("%s can't be used: %s", dir, strerror(-err));
		l->err = err;
	}
	if (l->n)
		qsort(l->heads, l->n, sizeof(struct spec_head *), by_key);
}

static void load_done(void *data)
{
	struct records_load *l = data;
	cleanup_free char *text = l->text;
	void (*const done)(void *, int, const char *) = l->done;
	void *arg = l->data;
	const int err = l->err;

	for (size_t i = 0; i < l->n; i++) {
		struct record *r;

		if (err) {
			spec_head_free(l->heads[i]);
			continue;
		}
		r = add(l->rs, l->heads[i]);
		job_files_add(l->rs->files, &r->launch, r->head);
	}
	free(l->heads);
	free(l);
	done(arg, err, text);
}

void records_load(struct records *rs, void (*done)(void *data, int err, const char *text),
		  void *data)
{
	struct records_load *l = new0(struct records_load);

	l->rs = rs;
	l->done = done;
	l->data = data;
	l->work =
		(struct work){.run = load_work, .done = load_done, .group = &rs->group, .data = l};
	work_start(&l->work, rs->loop);
}

/* --- life --- */

struct records *records_new(struct loop *loop, const char *state_dir, bool passive)
{
	struct records *rs = new0(struct records);

	rs->loop = loop;
	rs->state_dir = state_dir;
	rs->passive = passive;
	rs->files = job_files_new();
	rs->by_key = (struct key_table){.key = key_of};
	rs->by_uid = (struct key_table){.key = uid_of};
	group_init(&rs->group, loop);
	return rs;
}

void records_stop(struct records *rs, loop_fn fn, void *data)
{
	struct record *r;

	rs->stopping = true;
	for (size_t i = 0; (r = key_table_next(&rs->by_key, &i));)
		if (r->writer && r->writer->dirty && !r->writer->requests)
			on_timer(r->writer);
	group_when_empty(&rs->group, fn, data);
}

void records_free(struct records *rs)
{
	struct record *r;

	if (!rs)
		return;
	/* Do not advance, because record_free may move another record to the freed slot. */
	for (size_t i = 0; (r = key_table_next(&rs->by_key, &i)); i--)
		record_free(r);
	key_table_clear(&rs->by_key);
	key_table_clear(&rs->by_uid);
	job_files_free(rs->files);
	free(rs);
}
