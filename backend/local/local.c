/* SPDX-License-Identifier: MIT */
/*
 * The local backend: jobs run as processes of this machine. This file has the backend's operations.
 * The other files, each after those that it uses:
 *
 *	helper	    the process that runs one attempt of a replica, writes its output and its end to
 *		    disk, and outlives the daemon; helper_main is its main(); guard is its child,
 *		    which runs the program
 *	task	    the daemon's side of one helper; orphans: running programs without a record
 *	program     arguments and environment of a program; messages on how it ended
 *	record	    the record of a job that is not over: its state, its file, its snapshot
 *	replica	    one replica of a job
 *	job	    jobs that are not over: their replicas, restarts and end
 *	saved	    jobs that are over; at a start, the recovery of all jobs
 *	request     requests that make jobs, or are about jobs
 *
 * A job owns its record and its replicas, and a replica owns the task of its newest attempt. The
 * file on disk and the snapshot in the store are made from the record. All objects belong to the
 * I/O thread; the pool does disk I/O with copies. The helper writes logs/ and lines/ of the job's
 * folder STATE/output/UUID. Until the job is over, this folder also has tasks/, where the next
 * start after a crash finds the helpers (helper.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/print.h"
#include "backend/local/job.h"
#include "backend/local/record.h"
#include "backend/local/request.h"
#include "backend/local/saved.h"
#include "spec/base/mem.h"

struct local {
	struct group group;
	struct local_jobs *jobs;
	struct saved *saved;
	struct local_requests *requests;
	struct spec_slots limits;
	struct spec_queue_view *queue; /* NULL if there are no limits */
};

static struct local *local_of(struct backend *b)
{
	return b->impl;
}

/* --- start and stop --- */

/* All local mounts of a user share one default state directory. */
static int local_key(const struct backend_config *config, char **ret, char **ret_text)
{
	*ret = text_copy(config->kind);
	return 0;
}

static int count_gpus(void)
{
	glob_t found = {0};
	int n = 0;

	if (access("/proc/driver/nvidia", F_OK) == 0 &&
	    glob("/dev/nvidia[0-9]*", GLOB_NOSORT, NULL, &found) == 0)
		n = (int)min_of(found.gl_pathc, (size_t)SPEC_MAX_GPUS);
	globfree(&found);
	return n;
}

/*
 * Parse LIST, the value of CUDA_VISIBLE_DEVICES. Like NVIDIA's libraries, ignore everything after a
 * -1. Return -EINVAL if LIST has names of GPUs that are not numbers, such as UUIDs.
 */
static int read_visible(const char *list, uint64_t *ret)
{
	unsigned long n;
	char *end;

	for (*ret = 0; *list && strncmp(list, "-1", 2) != 0; list = *end ? end + 1 : end) {
		n = strtoul(list, &end, 10);
		if (*list < '0' || *list > '9' || (*end && *end != ',') || n >= SPEC_MAX_GPUS)
			return -EINVAL;
		*ret |= UINT64_C(1) << n;
	}
	return 0;
}

/* Choose WANTED (-1: all) of the GPUs that this process may use. *RET gets one bit for each. */
static int choose_gpus(int wanted, uint64_t *ret, char **ret_text)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	const int here = wanted < 0 ? count_gpus() : wanted;

	*ret = spec_slots_first(UINT64_MAX, here);
	if (!list || here == 0)
		return 0;
	if (read_visible(list, ret) < 0) {
		*ret = 0;
		*ret_text = text_print("CUDA_VISIBLE_DEVICES=%s: list GPUs by number, or mount "
				       "with -o gpus=0",
				       list);
		return -EINVAL;
	}
	if (wanted > __builtin_popcountll(*ret)) {
		*ret_text = text_print("-o gpus=%d: CUDA_VISIBLE_DEVICES=%s lists fewer GPUs: list "
				       "more, or lower -o gpus",
				       wanted, list);
		return -EINVAL;
	}
	*ret = spec_slots_first(*ret, wanted < 0 ? SPEC_MAX_GPUS : wanted);
	return 0;
}

static int local_init(struct backend *b, char **ret_text)
{
	cleanup_free char *output = text_print("%s/output", b->config.state_dir);
	struct local *l;
	uint64_t gpus;
	int err = disk_mkdir(AT_FDCWD, output);

	if (err < 0 && err != -EEXIST) {
		*ret_text =
			text_print("state directory %s: %s", b->config.state_dir, strerror(-err));
		return err;
	}
	err = choose_gpus(b->config.gpus, &gpus, ret_text);
	if (err < 0)
		return err;
	l = new0(struct local);
	backend_set_impl(b, l);
	l->limits = (struct spec_slots){.jobs = b->config.jobs,
					.gpus = gpus,
					.passive = b->config.passive};
	if (l->limits.gpus || l->limits.jobs) {
		l->queue = spec_queue_view_new(LOCAL_QUEUE);
		l->queue->meta.created = l->queue->changed = loop_time_ns();
	}
	group_init(&l->group, b->loop);
	l->jobs = local_jobs_new(b, &l->group, &l->limits);
	l->saved = saved_new(b, &l->group, l->jobs);
	l->requests = local_requests_new(b, &l->group, l->jobs, l->saved,
					 (unsigned)__builtin_popcountll(gpus));
	return 0;
}

static void local_start(struct backend *b)
{
	saved_recover(local_of(b)->saved);
}

static bool local_is_settled(struct backend *b, const struct spec_job *job)
{
	return saved_is_settled(local_of(b)->saved, job);
}

static const char *local_namespace(struct backend *b)
{
	return "local";
}

static void local_request(struct backend *b, struct backend_request *rq)
{
	local_requests_take(local_of(b)->requests, rq);
}

static void local_take_charge(struct backend *b)
{
	local_jobs_take_charge(local_of(b)->jobs);
}

static void local_stop(struct backend *b)
{
	struct local *l = local_of(b);

	local_requests_stop(l->requests);
	saved_stop(l->saved);
	local_jobs_stop(l->jobs, b->config.linger);
	group_when_empty(&l->group, backend_stopped, b);
}

static void local_fini(struct backend *b)
{
	struct local *l = local_of(b);

	if (!l)
		return;
	local_jobs_free(l->jobs);
	local_requests_free(l->requests);
	saved_free(l->saved);
	spec_queue_view_unref(l->queue);
	free(l);
	backend_set_impl(b, NULL);
}

/* --- texts --- */

static int local_text(struct backend *b, const struct spec_job *job, enum backend_text which,
		      char **ret, size_t *ret_len)
{
	cleanup(spec_record_freep) struct spec_record *rec = NULL;
	cleanup(spec_head_freep) struct spec_head *head = NULL;
	const char *key = spec_job_key(job), *state_dir = b->config.state_dir;
	int err;

	if (which != BACKEND_MANIFEST)
		return record_file_read_rest(state_dir, key, false, ret, ret_len);
	err = record_file_read(state_dir, key, &head);
	if (!err)
		err = spec_record_parse(head->more->parts[RECORD_SNAPSHOT],
					head->more->parts[RECORD_PLAN], &rec);
	if (err)
		return err;
	local_record_read_app(state_dir, b->config.home, rec);
	spec_record_yaml(rec, head->file, ret, ret_len);
	return 0;
}

static struct spec_queue_view *local_queue(struct backend *b, const char *name)
{
	struct spec_queue_view *queue = local_of(b)->queue;

	return queue && streq(name, LOCAL_QUEUE) ? spec_queue_view_ref(queue) : NULL;
}

static int local_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n)
{
	*ret_n = local_of(b)->queue ? 1 : 0;
	if (*ret_n == 0)
		return -ENOENT;
	*ret = new0(struct spec_queue_view *);
	**ret = local_queue(b, LOCAL_QUEUE);
	return 0;
}

static void local_queue_text(struct backend *b, const struct spec_job *const *jobs, size_t n,
			     char **ret, size_t *ret_len)
{
	struct spec_slots now = local_of(b)->limits;

	now.taken = local_jobs_gpus(local_of(b)->jobs);
	spec_slots_text(&now, jobs, n, ret, ret_len);
}

static void local_info(struct backend *b, FILE *out)
{
	print_text(out, "state", b->config.state_dir);
	print_text(out, "work_dir", b->config.work_dir);
	fprintf(out, "grace: %u.%03u # seconds\n", b->config.grace_ms / 1000,
		b->config.grace_ms % 1000);
}

static void local_metrics(struct backend *b, FILE *out)
{
	local_jobs_metrics(local_of(b)->jobs, out);
}

const struct backend_ops local_ops = {
	.key = local_key,
	.init = local_init,
	.start = local_start,
	.take_charge = local_take_charge,
	.is_settled = local_is_settled,
	.namespace = local_namespace,
	.stop = local_stop,
	.fini = local_fini,
	.request[BACKEND_SUBMIT] = local_request,
	.request[BACKEND_DRY_RUN] = local_request,
	.request[BACKEND_CANCEL] = local_request,
	.request[BACKEND_CONTROL] = local_request,
	.request[BACKEND_FORGET] = local_request,
	.text = local_text,
	.queues = local_queues,
	.queue = local_queue,
	.queue_text = local_queue_text,
	.info = local_info,
	.metrics = local_metrics,
};
