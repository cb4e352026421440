/* SPDX-License-Identifier: MIT */
/*
 * Starting: what an earlier daemon left. Processes that it did not end (it crashed) are ended, by
 * their mark and by the recorded pid and start time, and what they printed last is awaited; their
 * jobs are recorded as failed. All other records become snapshots in the store; nothing else of them
 * stays in memory.
 */
#include <dirent.h>
#include <errno.h>
#include <time.h>

#include "backend/local.h"
#include "spec/name.h"

#define GONE_LOOKS 200
#define GONE_NS	   10000000L
/* For the relays of all logs together: they end when the processes that print have ended. */
#define RELAYS_MS 5000

struct item {
	struct spec_record *rec; /* of a job that ran; else NULL */
	struct spec_job *job;
};

struct recover {
	struct local *l;
	struct item *v;
	size_t n, room;
	uint64_t deadline; /* of waiting for relays, loop_now_ms; 0: none was waited for yet */
	int err;
};

static void recover_free(struct recover *r)
{
	for (size_t i = 0; i < r->n; i++) {
		spec_record_free(r->v[i].rec);
		spec_job_unref(r->v[i].job);
	}
	free(r->v);
	free(r);
}

static void dir_close(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Did the daemon end before the job did? A cancelled job is CANCELLED while it still ends. */
static bool was_running(const struct spec_record *rec)
{
	if (!spec_state_is_final(rec->state) || rec->suspended)
		return true;
	for (size_t i = 0; i < rec->n_replicas; i++)
		if (!spec_state_is_final(rec->replicas[i].state) || rec->replicas[i].pid)
			return true;
	return false;
}

static bool is_alive(const struct spec_record_replica *rep)
{
	return rep->pid > 1 && rep->pid_start && rep->pid <= INT32_MAX &&
	       local_process_birth((pid_t)rep->pid) == rep->pid_start;
}

/* End its processes; the marks have ended all but those that changed their environment. */
static void end_processes(const struct spec_record *rec)
{
	const struct timespec pause = {.tv_nsec = GONE_NS};

	for (size_t i = 0; i < rec->n_replicas; i++)
		if (is_alive(&rec->replicas[i]))
			kill(-(pid_t)rec->replicas[i].pid, SIGKILL);
	for (size_t i = 0, looks = 0; i < rec->n_replicas && looks < GONE_LOOKS; looks++) {
		if (is_alive(&rec->replicas[i]))
			nanosleep(&pause, NULL);
		else
			i++, looks = 0;
	}
}

/* Wait until what its processes have printed is in their logs. */
static void await_output(struct recover *r, const struct spec_record *rec)
{
	if (!r->deadline)
		r->deadline = loop_now_ms() + RELAYS_MS;
	for (size_t i = 0; i < rec->n_replicas; i++) {
		const struct spec_record_replica *rep = &rec->replicas[i];
		cleanup_free char *key = spec_record_log_key(rec, rep, rep->attempt);
		cleanup_free char *dir = file_path(r->l->b->config.state_dir, rec->id, "logs");
		cleanup_free char *path = NULL;

		if (!key || !dir || asprintf(&path, "%s/%s", dir, key) < 0)
			path = NULL;
		if (path && !local_relay_await(path, r->deadline))
			diag(DIAG_WARNING, "%s: %s: may be written after it was taken for ended",
			     rec->id, key);
	}
}

static void mark_failed(struct spec_record *rec)
{
	int64_t now = loop_time_ns();

	for (size_t i = 0; i < rec->n_replicas; i++) {
		struct spec_record_replica *rep = &rec->replicas[i];

		if (!spec_state_is_final(rep->state)) {
			rep->state = rec->history ? SPEC_CANCELLED : SPEC_FAILED;
			rep->finished = now;
			local_say(&rep->reason, "KxfsRestarted");
		}
		rep->pid = 0;
		rep->pid_start = 0;
	}
	rec->suspended = false;
	rec->finished = now;
	rec->changed = now;
	if (rec->history) {
		local_say(&rec->phase, "Cancelled");
		return;
	}
	rec->state = SPEC_FAILED;
	/* A job that was being ended keeps the reason why. */
	if (!streq(rec->phase, "Terminating") || streq(rec->reason, "")) {
		local_say(&rec->reason, "KxfsRestarted");
		local_say(&rec->message,
			  "kxfs ended without stopping the job; its processes were ended when "
			  "kxfs was started again");
	}
	local_say(&rec->phase, "Failed");
}

static struct item *item_add(struct recover *r)
{
	if (r->n == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		struct item *v = realloc(r->v, room * sizeof(*v));

		if (!v)
			return NULL;
		r->v = v;
		r->room = room;
	}
	r->v[r->n] = (struct item){0};
	return &r->v[r->n++];
}

static int read_one(struct recover *r, const char *id)
{
	const char *state_dir = r->l->b->config.state_dir;
	cleanup(local_record_freep) struct spec_record *rec = NULL;
	struct item *item;
	bool ran;
	int err = local_record_read(state_dir, id, &rec);

	if (err == -ENOMEM)
		return err;
	if (err < 0) {
		diag(DIAG_WARNING,
		     "%s/jobs/%s/job.json %s; the job is not shown, and its output stays in that "
		     "folder",
		     state_dir, id, file_fault(err));
		return 0;
	}
	ran = was_running(rec);
	if (ran) {
		end_processes(rec);
		await_output(r, rec);
		mark_failed(rec);
		if (spec_transitions_add(&rec->transitions, rec->state, rec->phase, rec->changed) <
		    0)
			return -ENOMEM;
		err = local_record_write(state_dir, rec);
		if (err < 0)
			diag(DIAG_ERROR, "%s: its end can't be recorded: %s", id, strerror(-err));
	}
	item = item_add(r);
	if (!item)
		return -ENOMEM;
	item->job = spec_record_job(rec);
	if (ran)
		item->rec = take_ptr(rec);
	return item->job ? 0 : -ENOMEM;
}

static void recover_work(void *data)
{
	struct recover *r = data;
	cleanup_free char *path = NULL;
	cleanup(dir_close) DIR *dir = NULL;
	struct dirent *entry;

	local_scan_kill_all(r->l->mark);
	if (asprintf(&path, "%s/jobs", r->l->b->config.state_dir) < 0) {
		path = NULL;
		r->err = -ENOMEM;
		return;
	}
	dir = opendir(path);
	if (!dir) {
		r->err = -errno;
		return;
	}
	while (r->err == 0 && (entry = readdir(dir)))
		if (spec_name_is_file(entry->d_name))
			r->err = read_one(r, entry->d_name);
}

/* The logs of a job that ran until the crash, while the merged log gets what it lacks of them. */
struct logs {
	struct spool_job *spool;
	size_t open;
};

static void log_ended(void *data)
{
	struct logs *logs = data;

	if (--logs->open > 0)
		return;
	spool_job_end(logs->spool);
	spool_job_close(logs->spool);
	free(logs);
}

static void end_replica_logs(struct logs *logs, const struct spec_record *rec,
			     const struct spec_record_replica *rep)
{
	cleanup_free char *prefix = spec_record_log_prefix(rec, rep);

	for (unsigned a = 0; prefix && a <= rep->attempt; a++) {
		cleanup_free char *key = spec_record_log_key(rec, rep, a);

		if (!key || spool_log_begin(logs->spool, key, prefix, NULL) < 0)
			continue;
		logs->open++;
		spool_log_end(logs->spool, key, log_ended, logs);
	}
}

static void end_logs(struct local *l, const struct spec_record *rec)
{
	struct logs *logs = calloc(1, sizeof(*logs));

	if (logs)
		logs->spool = spool_job_open(l->b->spool, rec->id);
	if (!logs || !logs->spool) {
		diag(DIAG_ERROR, "%s: its logs can't be opened: %s", rec->id, strerror(errno));
		free(logs);
		return;
	}
	logs->open = 1; /* until all have been told to end */
	for (size_t i = 0; i < rec->n_replicas; i++)
		end_replica_logs(logs, rec, &rec->replicas[i]);
	log_ended(logs);
}

static void recover_done(void *data)
{
	struct recover *r = data;
	struct local *l = r->l;
	cleanup_free char *text = NULL;

	l->recovering = false;
	if (l->stopping)
		r->err = -ECANCELED; /* it took too long for who started it */
	for (size_t i = 0; i < r->n && r->err == 0; i++) {
		if (r->v[i].rec) {
			end_logs(l, r->v[i].rec);
			backend_launched(l->b, r->v[i].rec->file, r->v[i].rec->id,
					 r->v[i].rec->created);
		}
		r->err = store_put(l->b->store, r->v[i].job);
		if (r->err == 0)
			r->v[i].job = NULL; /* the store's now */
	}
	if (r->err < 0 && asprintf(&text, "%s/jobs can't be read: %s", l->b->config.state_dir,
				   strerror(-r->err)) < 0)
		text = NULL;
	backend_started(l->b, r->err, text);
	if (r->err == 0)
		keep_soon(l->keep);
	recover_free(r);
	local_check_stopped(l);
}

void local_recover(struct local *l)
{
	struct recover *r = calloc(1, sizeof(*r));

	if (!r) {
		backend_started(l->b, -ENOMEM, NULL);
		return;
	}
	r->l = l;
	l->recovering = true;
	loop_work(l->b->loop, recover_work, recover_done, r);
}
