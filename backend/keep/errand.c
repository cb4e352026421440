/* SPDX-License-Identifier: MIT */
/*
 * state      | what is under way                           | next
 * LOOK       | the pool renders the texts of the job, and  | UID_GET; TEXT where the folder is known; over where
 *            | looks how long its logs are                 | nothing is to be put
 * UID_GET    | whose DAY/ID is                             | nobody's, or another's (then DAY/ID~UID8): UID_PUT; this
 *            |                                             | job's: TEXT
 * UID_PUT    | that it is this job's                       | TEXT
 * TEXT       | a text that has changed is put              | TEXT; when all are there KEY_GET of the first log
 * KEY_GET    | whose log.N is                              | nobody's: KEY_PUT; this log's: READ; another's: KEY_GET
 *            |                                             | of log.N+1
 * KEY_PUT    | that it is this log's                       | READ
 * READ       | the pool reads a part of the log            | GET
 * GET        | what the archive has of that part           | less: PUT; as much or more: READ of the next; other
 *            |                                             | bytes: KEY_GET of log.N+1
 * PUT        | the part                                    | READ of the next; after the last LINES_READ
 * LINES_READ | the pool reads a part of the table          | LINES_PUT
 * LINES_PUT  | the part                                    | LINES_READ; after the last the next log, or SAVE
 * SAVE       | the pool writes the record                  | over
 *
 * An error of the archive leads to SAVE, too.
 */
#include "backend/keep/errand.h"

#include <errno.h>
#include <fcntl.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "spec/base/sha256.h"
#include "spec/job/snapshot.h"
#include "spec/job/status.h"

#define ERRAND_MAX ((uint64_t)64 << 20) /* bytes of output that one errand puts, roughly */
#define UID_MAX	   4096			/* the largest file uid or key */
#define RECORD_MAX (64u << 20)

enum state {
	LOOK,
	UID_GET,
	UID_PUT,
	TEXT,
	KEY_GET,
	KEY_PUT,
	READ,
	GET,
	PUT,
	LINES_READ,
	LINES_PUT,
	SAVE
};

struct text {
	char *text; /* NULL: there is no such text, or the archive has it */
	size_t len;
	char digest[65];
};

struct errand {
	struct errand_context context;
	struct errand_job job;
	struct errand_end end;
	enum state state;
	struct text texts[KEEP_N_TEXTS], line;
	struct {
		uint64_t size, lines; /* sizes on disk, one for each log of the record */
	} * sizes;
	size_t i;    /* number of the text or the log */
	uint64_t at; /* where the part begins */
	char *part;
	size_t n;
	char *why;
	struct work work;
	bool working; /* the pool works on it */
	bool cancelled;
	void (*done)(void *data, struct errand_end *end);
	void *data;
};

static void enter(struct errand *e, enum state state);

static struct keep_log *log_of(const struct errand *e)
{
	return &e->job.record->logs[e->i];
}

static char *name_of(const struct errand *e, const char *file)
{
	return text_print("%s/%s/%s", e->context.namespace, e->job.record->folder, file);
}

/* --- on the pool --- */

/* Let TO be TEXT, which is taken over, unless the archive has that already. */
static void take_text(struct text *to, char *text, size_t len, const char *digest)
{
	spec_sha256(text, len, to->digest);
	if (streq(to->digest, digest)) {
		free(text);
		return;
	}
	to->text = text;
	to->len = len;
}

static void render(struct errand *e)
{
	const struct spec_job *job = e->job.job;
	struct spec_job *bare cleanup_job = spec_job_copy(job);
	struct keep_line line;
	char *text;
	size_t len;

	/* The job's object is left out, since manifest.yaml has it. */
	spec_text_unref(take_ptr(bare->object));

	for (size_t i = 0; i < KEEP_N_TEXTS; i++) {
		int err = 0;

		if (i == KEEP_STATUS)
			spec_status_json(job, &text, &len);
		else if (i == KEEP_WHY)
			spec_status_why(job, &text, &len);
		else if (i == KEEP_SNAPSHOT)
			len = strlen(text = spec_snapshot_text(bare));
		else
			err = e->context.text(e->context.data, job, (enum keep_text)i, &text, &len);
		if (err)
			continue;
		/* A cluster soon forgets the events of a job that has left, so having none then means nothing. */
		if (i == KEEP_EVENTS && e->job.left && len == 0)
			free(text);
		else
			take_text(&e->texts[i], text, len, e->job.record->digest[i]);
	}
	spec_status_json_line(job, &text, &len);
	keep_line_init(&line, job->uid, text);
	free(text);
	take_text(&e->line, line.text, line.len, e->job.record->line);
}

static uint64_t size_of(const struct errand *e, const char *folder, const char *key)
{
	const struct spec_job *job = e->job.job;
	cleanup_free char *path =
		text_print("%s/jobs/%s/%s/%s", e->context.state_dir, job->id, folder, key);
	struct stat st;

	return disk_stat(AT_FDCWD, path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size
									  : 0;
}

static void look(void *data)
{
	struct errand *e = data;
	const struct spec_job *job = e->job.job;
	bool known = e->job.record;

	if (!known) {
		cleanup_free char *path =
			text_print("%s/" KEEP_DIR "/%s", e->context.state_dir, job->uid);
		cleanup_free char *text = NULL;
		size_t len;

		(void)file_read(path, RECORD_MAX, &text, &len);
		e->job.record = keep_record_parse(text ? text : "");
		/* Sizes of tables may be of bytes that a kill has replaced by others, so the tables are put again. */
		for (size_t i = 0; i < e->job.record->n_logs; i++) {
			struct keep_log *log = &e->job.record->logs[i];

			log->lines -= min_of(log->lines, (uint64_t)ARCHIVE_MAX);
		}
	}
	if (!known && e->job.left && e->job.record->final)
		return;
	render(e);
	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];

		for (size_t j = 0; j < r->n_logs; j++) {
			unsigned n;
			cleanup_free char *name = keep_log_name(r, j, &n);

			if (name)
				keep_record_log(e->job.record, r->logs[j].key, name, n);
		}
	}
	e->sizes = mem_zero_n(e->job.record->n_logs, sizeof(*e->sizes));
	for (size_t i = 0; i < e->job.record->n_logs; i++) {
		struct keep_log *log = &e->job.record->logs[i];

		e->sizes[i].size = size_of(e, "logs", log->key);
		e->sizes[i].lines = size_of(e, "lines", log->key);
		if (e->sizes[i].lines < log->lines)
			log->lines = 0;
		if (e->sizes[i].size > log->size)
			e->end.waiting += e->sizes[i].size - log->size;
	}
}

/* Read the part at AT of the file of log I below FOLDER, which has SIZE bytes. */
static void read_part(struct errand *e, const char *folder, uint64_t size)
{
	const struct spec_job *job = e->job.job;
	cleanup_free char *path = text_print("%s/jobs/%s/%s/%s", e->context.state_dir, job->id,
					     folder, log_of(e)->key);
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
	ssize_t n;

	free(e->part);
	e->part = NULL;
	e->n = (size_t)min_of(size - e->at, (uint64_t)ARCHIVE_MAX);
	if (fd < 0) {
		e->work.err = fd;
		return;
	}
	e->part = mem_grow(NULL, e->n, 1);
	n = file_read_at(fd, e->part, e->n, e->at);
	if (n >= 0 && (size_t)n < e->n)
		n = -EIO;
	e->work.err = n < 0 ? (int)n : 0;
}

static void read_log(void *data)
{
	struct errand *e = data;

	read_part(e, "logs", e->sizes[e->i].size);
}

static void read_lines(void *data)
{
	struct errand *e = data;

	read_part(e, "lines", e->sizes[e->i].lines);
}

static void save(void *data)
{
	struct errand *e = data;
	cleanup_free char *dir = text_print("%s/" KEEP_DIR, e->context.state_dir);
	cleanup_free char *text = keep_record_text(e->job.record);

	e->work.err = file_write(dir, e->job.job->uid, text, strlen(text));
}

/* --- I/O thread --- */

/* Free E, but for what its end has. */
static void errand_free(struct errand *e)
{
	for (size_t i = 0; i < KEEP_N_TEXTS; i++)
		free(e->texts[i].text);
	spec_job_unref(e->job.job);
	free(e->sizes);
	free(e->part);
	free(e->why);
	free(e);
}

void errand_cancel(struct errand *e)
{
	e->cancelled = true;
	if (e->working)
		return; /* the pool works on it, and it is freed afterwards */
	keep_record_free(e->job.record);
	free(e->line.text);
	errand_free(e);
}

static void over(struct errand *e)
{
	e->end.record = e->job.record;
	e->end.text = e->why ? e->why : "";
	e->end.line = e->line.text;
	e->done(e->data, &e->end);
	errand_free(e);
}

/* End with ERR of the archive, or (LOCAL) of STATE; the record says what was done by then. */
static void fail(struct errand *e, int err, bool local, const char *text)
{
	e->end.err = err;
	e->end.local = local;
	text_set(&e->why, "%s", text);
	enter(e, SAVE);
}

/* --- texts --- */

static void next_text(struct errand *e);
static void next_log(struct errand *e);

static void on_text(void *data, int err, const char *text)
{
	struct errand *e = data;

	if (err)
		return fail(e, err, false, text);
	text_set(&e->job.record->digest[e->i], "%s", e->texts[e->i].digest);
	e->i++;
	next_text(e);
}

static void next_text(struct errand *e)
{
	while (e->i < KEEP_N_TEXTS && (!e->texts[e->i].text || e->texts[e->i].len > ARCHIVE_MAX)) {
		if (e->texts[e->i].text)
			diag(DIAG_WARNING, "%s: its %s is not archived: it has more than 8 MiB",
			     e->job.job->id, keep_text_name((enum keep_text)e->i));
		e->i++;
	}
	if (e->i < KEEP_N_TEXTS)
		return enter(e, TEXT);
	e->i = 0;
	next_log(e);
}

/* --- whose a name is --- */

/* Do the N bytes say VALUE and a newline? */
static bool says(const char *bytes, size_t n, const char *value)
{
	return n == strlen(value) + 1 && memcmp(bytes, value, n - 1) == 0 && bytes[n - 1] == '\n';
}

static void on_uid(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct errand *e = data;

	if (err == -ENOENT)
		return enter(e, UID_PUT);
	if (err)
		return fail(e, err, false, text);
	if (!says(bytes, n, e->job.job->uid)) {
		free(e->job.record->folder);
		e->job.record->folder = keep_folder(e->job.job, true);
		return enter(e, UID_PUT);
	}
	next_text(e);
}

static void on_uid_put(void *data, int err, const char *text)
{
	struct errand *e = data;

	if (err)
		return fail(e, err, false, text);
	next_text(e);
}

/* Log N is another log's: try the next number. */
static void try_next_number(struct errand *e)
{
	struct keep_log *log = log_of(e);

	log->claimed = false;
	log->size = log->lines = 0;
	if (++log->n > KEEP_MAX_LOGS)
		return fail(e, -EIO, true, "too many logs of one container");
	enter(e, KEY_GET);
}

static void on_key(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct errand *e = data;

	if (err == -ENOENT)
		return enter(e, KEY_PUT);
	if (err)
		return fail(e, err, false, text);
	if (!says(bytes, n, log_of(e)->key))
		return try_next_number(e);
	log_of(e)->claimed = true;
	next_log(e);
}

static void on_key_put(void *data, int err, const char *text)
{
	struct errand *e = data;

	if (err)
		return fail(e, err, false, text);
	log_of(e)->claimed = true;
	next_log(e);
}

/* --- parts --- */

/* The archive has the part that was read: go on behind it. */
static void has_part(struct errand *e)
{
	struct keep_log *log = log_of(e);

	log->size = e->at + e->n;
	e->end.more = e->end.put >= ERRAND_MAX;
	if (e->end.more)
		return enter(e, SAVE);
	next_log(e);
}

static void on_part(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct errand *e = data;

	if (err && err != -ENOENT)
		return fail(e, err, false, text);
	if (err)
		n = 0;
	if (n && memcmp(bytes, e->part, min_of(n, e->n)) != 0)
		return try_next_number(e);
	if (n >= e->n)
		return has_part(e);
	enter(e, PUT);
}

static void on_part_put(void *data, int err, const char *text)
{
	struct errand *e = data;

	if (err)
		return fail(e, err, false, text);
	e->end.put += e->at + e->n - log_of(e)->size;
	has_part(e);
}

static void on_lines_put(void *data, int err, const char *text)
{
	struct errand *e = data;

	if (err)
		return fail(e, err, false, text);
	log_of(e)->lines = e->at + e->n;
	next_log(e);
}

/* Begin what is next to be done for the logs. */
static void next_log(struct errand *e)
{
	for (; e->i < e->job.record->n_logs; e->i++) {
		const struct keep_log *log = log_of(e);
		bool more = e->sizes[e->i].size > log->size;

		if (!more && e->sizes[e->i].lines <= log->lines)
			continue;
		if (!log->claimed)
			return enter(e, KEY_GET);
		e->at = more ? log->size : log->lines;
		e->at -= e->at % ARCHIVE_MAX;
		return enter(e, more ? READ : LINES_READ);
	}
	enter(e, SAVE);
}

static void on_read(struct errand *e)
{
	if (e->work.err)
		return fail(e, e->work.err, true, "its output can't be read");
	enter(e, e->state == READ ? GET : LINES_PUT);
}

static void on_look(struct errand *e)
{
	if (e->job.look || !e->sizes)
		return over(e);
	if (e->job.record->folder)
		return next_text(e);
	e->job.record->folder = keep_folder(e->job.job, false);
	enter(e, UID_GET);
}

static void on_saved(struct errand *e)
{
	if (e->work.err && !e->end.err) {
		e->end.err = e->work.err;
		e->end.local = true;
		text_set(&e->why, "what is archived of it can't be noted");
	}
	over(e);
}

static void on_worked(void *data)
{
	struct errand *e = data;

	e->working = false;
	if (e->cancelled)
		return errand_cancel(e);
	switch (e->state) {
	case LOOK:
		return on_look(e);
	case SAVE:
		return on_saved(e);
	default:
		return on_read(e);
	}
}

/* Have the pool do the work of the present state. */
static void work(struct errand *e)
{
	e->working = true;
	e->work = (struct work){
		.run = e->state == LOOK	  ? look
		       : e->state == READ ? read_log
		       : e->state == SAVE ? save
					  : read_lines,
		.done = on_worked,
		.data = e,
		.group = e->context.group,
	};
	if (e->state == SAVE)
		work_enqueue(&e->work, e->context.loop, e->context.notes);
	else
		work_start(&e->work, e->context.loop);
}

static void enter(struct errand *e, enum state state)
{
	struct archive *a = e->context.archive;
	cleanup_free char *name = NULL, *part = NULL;
	char *value;

	e->state = state;
	switch (state) {
	case LOOK:
	case READ:
	case LINES_READ:
	case SAVE:
		return work(e);
	case UID_GET:
		name = name_of(e, "uid");
		return archive_get(a, name, 0, UID_MAX, on_uid, e);
	case UID_PUT:
		name = name_of(e, "uid");
		value = text_print("%s\n", e->job.job->uid);
		return archive_put(a, name, value, strlen(value), on_uid_put, e);
	case TEXT:
		name = name_of(e, keep_text_name((enum keep_text)e->i));
		return archive_put(a, name, take_ptr(e->texts[e->i].text), e->texts[e->i].len,
				   on_text, e);
	case KEY_GET:
	case KEY_PUT:
		break;
	case GET:
	case PUT:
		part = keep_part_name(log_of(e)->name, log_of(e)->n, "", e->at);
		name = name_of(e, part);
		if (state == GET)
			return archive_get(a, name, 0, ARCHIVE_MAX, on_part, e);
		return archive_put(a, name, take_ptr(e->part), e->n, on_part_put, e);
	case LINES_PUT:
		part = keep_part_name(log_of(e)->name, log_of(e)->n, ".lines", e->at);
		name = name_of(e, part);
		return archive_put(a, name, take_ptr(e->part), e->n, on_lines_put, e);
	}
	part = text_print("%s.%u.key", log_of(e)->name, log_of(e)->n);
	name = name_of(e, part);
	if (state == KEY_GET)
		return archive_get(a, name, 0, UID_MAX, on_key, e);
	value = text_print("%s\n", log_of(e)->key);
	archive_put(a, name, value, strlen(value), on_key_put, e);
}

struct errand *errand_start(const struct errand_context *context, const struct errand_job *job,
			    void (*done)(void *data, struct errand_end *end), void *data)
{
	struct errand *e = new0(struct errand);

	e->context = *context;
	e->job = *job;
	e->job.job = spec_job_ref(job->job);
	e->done = done;
	e->data = data;
	enter(e, LOOK);
	return e;
}
