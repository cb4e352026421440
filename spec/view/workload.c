/* SPDX-License-Identifier: MIT */
/* Parses Kueue's Workloads, without the podSets (the templates of all pods). */
#include <errno.h>

#include "spec/view/kueue.h"
#include "spec/view/steps.h"

/* Prefix of the reason if an admission check or a limit, not a user, has deactivated the job. */
#define OFF_BY "DeactivatedDueTo"

#define MAX_CHECKS 16 /* kxfs ignores further checks */

static const char *const types[SPEC_WORKLOAD_N_CONDITIONS] = {
	[SPEC_WORKLOAD_RESERVED] = "QuotaReserved",    [SPEC_WORKLOAD_ADMITTED] = "Admitted",
	[SPEC_WORKLOAD_EVICTED] = "Evicted",	       [SPEC_WORKLOAD_FINISHED] = "Finished",
	[SPEC_WORKLOAD_TARGET] = "DeactivationTarget", [SPEC_WORKLOAD_REQUEUED] = "Requeued",
};

void spec_workload_view_free(struct spec_workload_view *v)
{
	if (!v)
		return;
	spec_meta_clear(&v->meta);
	spec_unset(&v->queue, &v->cluster_queue, &v->flavors, &v->priority_class);
	for (size_t i = 0; i < SPEC_WORKLOAD_N_CONDITIONS; i++)
		spec_condition_clear(&v->conditions[i]);
	for (size_t i = 0; i < v->n_checks; i++)
		spec_unset(&v->checks[i].name, &v->checks[i].state, &v->checks[i].message);
	free(v->checks);
	free(v);
}

define_cleanup(workload_freep, struct spec_workload_view *, spec_workload_view_free)

void spec_condition_read(struct spec_condition_view *v, const struct spec_value *status,
			 const char *type)
{
	const struct spec_value *c = spec_view_condition(status, type);

	v->is_set = c;
	v->is_true = spec_view_is_true(c);
	v->since = spec_read_time(c, "lastTransitionTime");
	spec_read_copy_word(&v->reason, c, "reason");
	spec_read_copy_message(&v->message, c);
}

void spec_condition_clear(struct spec_condition_view *v)
{
	spec_unset(&v->reason, &v->message);
}

static void read_checks(struct spec_workload_view *v, const struct spec_value *list)
{
	size_t n = min_of(spec_read_count(list), (size_t)MAX_CHECKS);

	v->checks = new0_n(struct spec_check_view, n);
	for (size_t i = 0; i < n; i++) {
		const struct spec_value *c = spec_read_at(list, i);
		struct spec_check_view *to = &v->checks[v->n_checks];

		if (streq(spec_read_text(c, "state"), "Ready"))
			continue;
		v->n_checks++;
		spec_read_copy_word(&to->name, c, "name");
		spec_read_copy_word(&to->state, c, "state");
		spec_read_copy_message(&to->message, c);
	}
}

/*
 * Read the priority and its class. In v1beta2, the Workload refers to the class. In v1beta1, it has
 * the class's name and kind, or "" without a class. Kueue 0.14, which has only v1beta1, applies a
 * change of the class until it admits the job. But it adds no class to a Workload without one.
 */
static void read_priority(struct spec_workload_view *v, const struct spec_value *spec)
{
	const struct spec_value *ref = spec_read_map(spec, "priorityClassRef");
	const char *source = spec_read_text(spec, "priorityClassSource");
	const char *name = spec_read_text(ref ? ref : spec, ref ? "name" : "priorityClassName");
	const char *number = spec_read_word(spec, "priority");
	bool negative = *number == '-';

	v->priority = spec_read_digits(number + negative);
	v->priority = v->priority < 0 ? SPEC_NO_PRIORITY : negative ? -v->priority : v->priority;
	spec_read_copy(&v->priority_class, name, READ_MAX_WORD);
	if (ref)
		v->takes_priority = streq(spec_read_text(ref, "kind"), "WorkloadPriorityClass")
					    ? SPEC_PRIORITY_ANY
					    : SPEC_PRIORITY_FIXED;
	else if (streq(source, SPEC_KUEUE_GROUP "/workloadpriorityclass") ||
		 !spec_read_member(spec, "priorityClassSource"))
		v->takes_priority = SPEC_PRIORITY_WAITING;
}

static bool is_plain(const char *word)
{
	return *word && strlen(word) <= READ_MAX_WORD && !strpbrk(word, "=,");
}

/* Read the flavors of all resources. If several pod sets use the same flavor, list it once. */
static void read_flavors(struct spec_workload_view *v, const struct spec_value *assignments)
{
	cleanup_free char *all = text_copy(",");

	for (size_t i = 0; i < spec_read_count(assignments); i++) {
		const struct spec_value *flavors =
			spec_read_map(spec_read_at(assignments, i), "flavors");

		for (size_t k = 0; k < spec_read_count(flavors); k++) {
			const char *resource = spec_read_at(flavors, k)->key;
			const char *flavor = spec_read_text(flavors, resource);
			cleanup_free char *one = NULL;

			if (!is_plain(resource) || !is_plain(flavor))
				continue;
			one = text_print(",%s=%s,", resource, flavor);
			if (!strstr(all, one) && strlen(all) + strlen(one) <= READ_MAX_MESSAGE)
				text_set(&all, "%s%s", all, one + 1);
		}
	}
	if (all[1])
		all[strlen(all) - 1] = '\0';
	spec_read_copy(&v->flavors, all + 1, READ_MAX_MESSAGE);
}

int spec_workload_view_parse(const char *json, size_t len, struct spec_workload_view **ret)
{
	cleanup(workload_freep) struct spec_workload_view *v = NULL;
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *spec, *status, *requeue, *evictions;

	if (spec_value_parse_map(json, len, &o) < 0)
		return -EINVAL;
	v = new0(struct spec_workload_view);
	if (spec_meta_read(o, &v->meta) < 0)
		return -EINVAL;
	spec = spec_read_map(o, "spec");
	status = spec_read_map(o, "status");
	requeue = spec_read_map(status, "requeueState");
	spec_read_copy_word(&v->queue, spec, "queueName");
	v->active = spec_read_flag(spec, "active", true);
	spec_read_copy_word(&v->cluster_queue, spec_read_map(status, "admission"), "clusterQueue");
	read_priority(v, spec);
	read_flavors(v, spec_read_list(spec_read_map(status, "admission"), "podSetAssignments"));
	for (size_t i = 0; i < SPEC_WORKLOAD_N_CONDITIONS; i++)
		spec_condition_read(&v->conditions[i], status, types[i]);
	read_checks(v, spec_read_list(status, "admissionChecks"));
	evictions = spec_read_list(spec_read_map(status, "schedulingStats"), "evictions");
	for (size_t i = 0; i < spec_read_count(evictions); i++) {
		unsigned more = (unsigned)spec_read_int(spec_read_at(evictions, i), "count", 0);

		v->evictions = min_of(v->evictions + more, (unsigned)INT32_MAX);
	}
	v->requeued = (unsigned)spec_read_int(requeue, "count", 0);
	v->requeue_at = spec_read_time(requeue, "requeueAt");
	*ret = take_ptr(v);
	return 0;
}

/*
 * True if Kueue will never requeue the job although the Workload is active. This happens if a limit
 * or an admission check deactivated the job, and a user activated it again. Kueue then requeues the
 * job only if the condition Requeued is true, but never sets it to true
 * (pkg/cache/queue/cluster_queue.go, pkg/controller/core/workload_controller.go).
 */
static bool is_left_out(const struct spec_workload_view *w)
{
	const struct spec_condition_view *requeued = &w->conditions[SPEC_WORKLOAD_REQUEUED];

	return requeued->is_set && !requeued->is_true &&
	       strncmp(requeued->reason, OFF_BY, strlen(OFF_BY)) == 0 &&
	       !w->conditions[SPEC_WORKLOAD_RESERVED].is_true;
}

const char *spec_workload_put_out(const struct spec_workload_view *w)
{
	const struct spec_condition_view *evicted = &w->conditions[SPEC_WORKLOAD_EVICTED];
	const struct spec_condition_view *target = &w->conditions[SPEC_WORKLOAD_TARGET];
	const struct spec_condition_view *finished = &w->conditions[SPEC_WORKLOAD_FINISHED];

	if (finished->is_true && streq(finished->reason, "FailedToStart"))
		return finished->reason;
	if (w->active && !is_left_out(w))
		return "";
	if (target->is_true)
		return target->reason;
	if (evicted->is_true && strncmp(evicted->reason, OFF_BY, strlen(OFF_BY)) == 0)
		return evicted->reason + strlen(OFF_BY);
	return w->active ? w->conditions[SPEC_WORKLOAD_REQUEUED].reason + strlen(OFF_BY) : "";
}
