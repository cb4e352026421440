/* SPDX-License-Identifier: MIT */
/* Decides which jobs may start on a machine, and prints the status of its queue. */
#include "spec/record/slots.h"

#include "spec/base/mem.h"
#include "spec/base/tree.h"
#include "spec/yaml/yaml.h"

uint64_t spec_slots_first(uint64_t set, int64_t n)
{
	uint64_t ret = 0;

	for (; n > 0 && set; n--, set &= set - 1)
		ret |= set & -set;
	return ret;
}

static int64_t need_of(const struct spec_role *role)
{
	return max_of(role->resource.gpu, INT64_C(0));
}

int64_t spec_slots_need(const struct spec_app *app)
{
	int64_t n = 0;

	for (size_t i = 0; app && i < app->n_roles; i++)
		n += need_of(&app->roles[i]) * app->roles[i].num_replicas;
	return n;
}

void spec_slots_take(struct spec_slots *t, const struct spec_record *r)
{
	t->running++;
	for (size_t i = 0; i < r->job->n_replicas; i++)
		t->taken |= r->job->replicas[i].gpus;
}

static uint64_t free_of(const struct spec_slots *t)
{
	return t->gpus & ~t->taken;
}

static int count_of(uint64_t set)
{
	return __builtin_popcountll(set);
}

/*
 * Return why a job that needs NEED GPUs waits, malloc'ed. T must count only the jobs ahead of this
 * job.
 */
static char *text_of_wait(const struct spec_slots *t, int64_t need)
{
	const int n_free = count_of(free_of(t));
	const bool full = t->jobs && t->running >= t->jobs;
	const size_t n = t->waiting;
	cleanup_free char *before = text_print("%zu job%s ahead of it", n, n == 1 ? "" : "s");
	cleanup_free char *missing = NULL;

	if (t->passive)
		return text_copy("waits for a slot; this mount is read-only and starts no jobs");
	if (need > n_free || (need > 0 && !full))
		missing = text_print("%lld GPU%s: %d of %d %s free", (long long)need,
				     need == 1 ? "" : "s", n_free, count_of(t->gpus),
				     n_free == 1 ? "is" : "are");
	else if (full)
		missing = text_print("a slot: %zu of %u %s in use", t->running, t->jobs,
				     t->running == 1 ? "is" : "are");
	else
		return text_print("waits in the queue: %s", before);
	return text_print("waits for %s%s%s", missing, n ? ", " : "", n ? before : "");
}

bool spec_slots_give(struct spec_slots *t, struct spec_record *r, bool *ret_moved)
{
	const int64_t need = t->gpus ? spec_slots_need(r->app) : 0;
	const bool never = need > count_of(t->gpus);
	struct spec_job *job = r->job;
	cleanup_free char *text = NULL;

	if (!t->passive && t->waiting == 0 && (!t->jobs || t->running < t->jobs) &&
	    need <= count_of(free_of(t))) {
		for (size_t i = 0; i < job->n_replicas; i++) {
			struct spec_replica *rep = &job->replicas[i];

			rep->gpus = need ? spec_slots_first(free_of(t),
							    need_of(&r->app->roles[rep->role]))
					 : 0;
			t->taken |= rep->gpus;
		}
		r->queue_number = 0;
		spec_slots_take(t, r);
		return true;
	}
	text = never ? text_print("waits for %lld GPUs, but this mount has only %d",
				  (long long)need, count_of(t->gpus))
		     : text_of_wait(t, need);
	*ret_moved = !streq(job->cause.text, text);
	spec_set(&job->cause.text, text);
	job->cause.reason = "Resources";
	job->cause.advice = never ? "Mount again with more GPUs (-o gpus=N), or remove the job's "
				    "directory."
				  : "";
	job->queue_position = never ? 0 : (unsigned)++t->waiting;
	return false;
}

char *spec_slots_numbers(uint64_t gpus)
{
	char *ret = text_copy("");

	for (; gpus; gpus &= gpus - 1)
		text_set(&ret, "%s%s%d", ret, *ret ? "," : "", __builtin_ctzll(gpus));
	return ret;
}

static void put_job(struct json_object *list, const struct spec_job *job)
{
	struct json_object *o = spec_tree_append(list, spec_tree_map()), *gpus;

	spec_tree_text(o, "id", job->id);
	spec_tree_text(o, "state", spec_state_name(job->state));
	spec_tree_text(o, "reason", *job->cause.reason ? job->cause.reason : job->reason);
	if (job->queue_position)
		spec_tree_number(o, "queue_position", job->queue_position);
	gpus = spec_tree_add(o, "gpus", spec_tree_map());
	for (size_t i = 0; i < job->n_replicas; i++) {
		cleanup_free char *numbers = spec_slots_numbers(job->replicas[i].gpus);

		if (*numbers)
			spec_tree_text(gpus, job->replicas[i].name, numbers);
	}
}

void spec_slots_text(const struct spec_slots *t, const struct spec_job *const *v, size_t n,
		     char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *o = spec_tree_map();
	struct json_object *list = spec_tree_list(n);
	cleanup_free char *numbers = NULL;
	size_t pending = 0, running = 0;

	for (size_t i = 0; i < n; i++) {
		if (spec_job_has_ended(v[i]) || v[i]->held)
			continue;
		put_job(list, v[i]);
		pending += v[i]->state == SPEC_PENDING;
		running += v[i]->state == SPEC_RUNNING;
	}
	numbers = spec_slots_numbers(free_of(t));
	spec_tree_text(o, "name", "local");
	spec_tree_number_or(o, "slots", t->jobs, 0);
	spec_tree_number(o, "gpus", count_of(t->gpus));
	spec_tree_text(o, "gpus_free", numbers);
	spec_tree_number(o, "pending", (int64_t)pending);
	spec_tree_number(o, "running", (int64_t)running);
	spec_tree_add(o, "jobs", list);
	spec_yaml_emit(o, 2, ret, ret_len);
}
