/* SPDX-License-Identifier: MIT */
/*
 * Reads objects and pods as a kind file describes them. Each role becomes a task. Names of roles
 * are compared in lower case, because some operators change them to lower case in labels of pods.
 */
#include <ctype.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/kindfile/file.h"
#include "spec/view/kueue.h"

static const struct spec_kind_file *file_of(const struct spec_reader *reader)
{
	return container_of(reader, struct spec_kind_file, reader);
}

/* --- tests of a row --- */

/* An object that is being read. */
struct kindfile_reading {
	const struct spec_kind_file *file;
	const struct spec_value *object, *status;
	/* The condition that the tests of a row have found, or NULL. */
	const struct spec_value *condition;
};

static bool has(const struct texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->n; i++)
		if (streq(texts->v[i], text))
			return true;
	return false;
}

/*
 * True if ANY allows a value. TEXT is the value's text, and THERE is true if the value is not
 * empty. In ANY, "*" allows all values that are not empty.
 */
static bool is_any(const struct texts *any, const char *text, bool there)
{
	return has(any, text) || (there && has(any, "*"));
}

static bool passes(const struct kindfile_reading *r, const struct kind_test *test)
{
	const struct value *value = test->phase ? &r->file->phase : &test->path;
	const struct spec_value *at = value_at(value, r->object);
	const char *text = value_text(value, r->object);

	return is_any(&test->any, text, *text || (at && at->n > 0));
}

static bool fits(struct kindfile_reading *r, const struct kind_tests *tests)
{
	const char *reason;
	bool ret;

	r->condition = NULL;
	for (size_t i = 0; i < tests->condition.n && !r->condition; i++) {
		r->condition = spec_view_condition(r->status, tests->condition.v[i]);
		if (!spec_view_is_true(r->condition))
			r->condition = NULL;
	}
	reason = spec_read_text(r->condition, "reason");
	ret = (r->condition || !tests->condition.n) &&
	      (!tests->reason.n || is_any(&tests->reason, reason, *reason));
	for (const struct kind_test *test = tests->first; test && ret; test = test->next)
		ret = passes(r, test);
	return ret;
}

/* --- reading the spec --- */

/* Return the I-th role that the row ROLE makes from OBJECT, or NULL. */
static const struct spec_value *item_of(const struct kind_role *role,
					const struct spec_value *object, size_t i)
{
	struct kindfile_reading r = {.object = object};

	if (!fits(&r, &role->tests))
		return NULL;
	if (!role->each.text)
		return i == 0 ? object : NULL;
	return spec_read_at(value_at(&role->each, object), i);
}

/*
 * Store the name of a task in RET. The role NAME has N copies, and the task is for copy I. Its name
 * is NAME.I, or NAME if there is only one copy.
 */
static void name_task(const struct spec_kind_file *f, const char *name, int i, int n, char *ret,
		      size_t size)
{
	if (n == 1)
		snprintf(ret, size, "%s", name);
	else
		snprintf(ret, size, "%.*s.%d", (int)size - 12, name, i);
	for (char *c = ret; *c && !f->from_pods; c++)
		*c = (char)tolower((unsigned char)*c);
}

/* Append the tasks of ITEM, a role, to the N tasks in *TASKS. Return the new number of tasks. */
static size_t add_tasks(const struct spec_kind_file *f, const struct kind_role *role,
			const struct spec_value *item, struct spec_task_source **tasks, size_t n)
{
	const struct spec_value *template = value_at(&role->template, item);
	const char *name =
		role->name.n ? values_text(&role->name, item) : spec_pod_choose_main(template, "");
	int copies = values_number(&role->copies, item, 1);
	int64_t pods = (int64_t)values_number(&role->replicas, item, 1) *
		       values_number(&role->times, item, 1);

	for (int i = 0; i < copies && n <= SPEC_MAX_REPLICAS; i++, n++) {
		struct spec_task_source *task;

		*tasks = mem_more(*tasks, n, sizeof(**tasks));
		task = *tasks + n;
		*task = (struct spec_task_source){.role = "", .grows = role->grows};
		name_task(f, name, i, copies, task->key, sizeof(task->key));
		task->replicas = task->minimum = (unsigned)min_of(pods, (int64_t)INT32_MAX);
		task->time_limit = spec_view_time_limit(template);
	}
	return n;
}

static size_t read_tasks(const struct spec_kind_file *f, const struct spec_value *object,
			 struct spec_job_view *v, struct spec_task_source **ret)
{
	const struct spec_value *item, *first = NULL;
	uint64_t replicas = 0;
	size_t n = 0;

	for (size_t i = 0; i < f->roles.n; i++) {
		for (size_t k = 0; (item = item_of(&f->roles.v[i], object, k)); k++) {
			first = first ? first : value_at(&f->roles.v[i].template, item);
			n = add_tasks(f, &f->roles.v[i], item, ret, n);
		}
	}
	v->hidden = n > SPEC_MAX_REPLICAS;
	n = min_of(n, (size_t)SPEC_MAX_REPLICAS);
	for (size_t i = 0; i < n; i++) {
		(*ret)[i].name = (*ret)[i].key;
		replicas += (*ret)[i].replicas;
		v->grows |= (*ret)[i].grows;
	}
	v->from_pods = f->from_pods;
	v->hidden |= replicas > SPEC_MAX_REPLICAS || v->grows || v->from_pods;
	v->minimum = (unsigned)min_of(replicas, (uint64_t)INT32_MAX);
	spec_read_copy_word(&v->app, spec_view_labels(first), "torchx.pytorch.org/app-name");
	return n;
}

static void read_attempts(const struct kind_attempts *a, const struct spec_value *object,
			  struct spec_job_view *v)
{
	int allowed = values_number(&a->allowed, object, 0);
	int alone = values_number(&a->alone, object, -1);

	v->alone = alone >= 0;
	v->max_retries = (unsigned)(v->alone ? alone : allowed);
	v->retry_limit = a->failed.n && !v->alone ? v->max_retries + 1 : 0;
	v->restarts = v->max_retries > 0;
	v->uncounted = !v->alone && !a->failed.n && !a->restarted.n;
}

static size_t read_job(const struct spec_reader *reader, const struct spec_value *object,
		       struct spec_job_view *v, struct spec_task_source **ret_tasks)
{
	const struct spec_kind_file *f = file_of(reader);
	size_t n = read_tasks(f, object, v, ret_tasks);

	v->minimum = (unsigned)values_number(&f->minimum, object, (int)v->minimum);
	read_attempts(&f->attempts, object, v);
	return n;
}

/* --- reading the status --- */

static const struct kind_state *state_of(struct kindfile_reading *r)
{
	const struct spec_kind_file *f = r->file;

	for (size_t i = 0; i < f->states.n; i++)
		if (fits(r, &f->states.v[i].tests))
			return &f->states.v[i];
	return NULL;
}

/* Return the job's phase. STATE is the row of the file's states that applies, or NULL. */
static const char *phase_of(const struct kindfile_reading *r, const struct kind_state *state)
{
	const char *phase = value_text(&r->file->phase, r->object);

	if (!state && (*phase || r->file->phase.text))
		return phase;
	/* Clients in Go create objects with an empty status, which has no phase yet. */
	if (!state)
		return r->status && r->status->n > 0 ? "Unknown" : "";
	if (state->shown)
		return state->shown;
	if (r->condition)
		return spec_read_text(r->condition, "type");
	for (const struct kind_test *test = state->tests.first; test; test = test->next)
		if (test->phase && *phase)
			return phase;
	return state->is->shown;
}

/* True if the reason or the message in V explains more than the job's pods (kind_state.exact). */
static bool is_exact(const struct kind_state *state, const struct spec_job_view *v)
{
	for (size_t i = 0; i < state->exact.n; i++) {
		const char *text = state->exact.v[i];

		/*
		 * Don't search the message for a single word: the message may quote the program's
		 * log, where the word may have another meaning.
		 */
		if (strchr(text, ' ') ? strcasestr(v->message, text) != NULL
				      : streq(v->reason, text))
			return true;
	}
	return false;
}

/* Set the reason why the job has ended or is ending. */
static void explain_end(const struct kindfile_reading *r, const struct kind_state *state,
			struct spec_job_view *v)
{
	if (r->condition) {
		spec_read_copy_word(&v->reason, r->condition, "reason");
		spec_read_copy_message(&v->message, r->condition);
	}
	if (r->file->reason.n)
		spec_read_copy(&v->reason, values_text(&r->file->reason, r->object), READ_MAX_WORD);
	if (r->file->message.n)
		spec_read_copy(&v->message, values_text(&r->file->message, r->object),
			       READ_MAX_MESSAGE);
	v->vague = !is_exact(state, v);
	/*
	 * SPEC_REASON_FAILURE_POLICY means that a policy has ended the job because a pod failed.
	 * The pod explains more than the policy.
	 */
	v->exact = !v->vague && !streq(v->reason, SPEC_REASON_FAILURE_POLICY);
}

static void explain_suspended(const struct kindfile_reading *r, const struct kind_state *state,
			      struct spec_job_view *v)
{
	cleanup_free char *text = NULL;

	if (*v->queue) {
		spec_job_view_queued(v, v->queue);
	} else if (v->owned) {
		text = text_print("The job waits until its owner, %s, lets it run", v->meta.owner);
		spec_set(&v->reason, "SuspendedByOwner");
		spec_read_copy(&v->message, text, READ_MAX_MESSAGE);
	}
}

static void explain_paused(const struct kindfile_reading *r, const struct kind_state *state,
			   struct spec_job_view *v)
{
	spec_set(&v->reason, "Paused");
	spec_set(&v->message,
		 "The job is suspended: its running pods continue, but its controller creates "
		 "no further pods until the job is resumed");
}

const struct kind_word kind_words[] = {
	{"Pending", NULL, {{.name = "pending", .state = SPEC_PENDING}}},
	{"Running", NULL, {{.name = "running", .state = SPEC_RUNNING, .by_pods = true}}},
	{"Restarting", NULL, {{.name = "between", .state = SPEC_RUNNING, .between = true}}},
	{"Ending", explain_end, {{.name = "ending", .state = SPEC_RUNNING, .ending = true}}},
	{"Suspending",
	 NULL,
	 {{.name = "suspending", .state = SPEC_RUNNING, .ending = true, .asked = true},
	  {.name = "suspending", .state = SPEC_RUNNING, .by_pods = true}}},
	{"Suspended",
	 explain_suspended,
	 {{.name = "suspended",
	   .state = SPEC_CANCELLED,
	   .ending = true,
	   .suspended = true,
	   .asked = true},
	  {.name = "suspended", .state = SPEC_PENDING}}},
	{"Paused",
	 explain_paused,
	 {{.name = "paused", .state = SPEC_RUNNING, .between = true, .asked = true},
	  {.name = "paused", .state = SPEC_RUNNING, .between = true}}},
	{"Succeeded", NULL, {{.name = "succeeded", .state = SPEC_SUCCEEDED, .ending = true}}},
	{"Failed", explain_end, {{.name = "failed", .state = SPEC_FAILED, .ending = true}}},
	{"Cancelled",
	 explain_end,
	 {{.name = "cancelled", .state = SPEC_CANCELLED, .ending = true}}},
	{0},
};

/* True if released_by contains the kind of the job's controller. */
static bool is_released(const struct spec_kind_file *f, const struct spec_job_view *v)
{
	cleanup_free char *owner =
		text_print("%.*s.%.*s", (int)strcspn(v->meta.owner, " "), v->meta.owner,
			   (int)strcspn(v->owner_api, "/"), v->owner_api);

	return has(&f->released_by, owner);
}

static void read_owner(const struct spec_kind_file *f, const struct spec_value *object,
		       struct spec_job_view *v)
{
	if (f->kind.in_kueue)
		spec_read_copy_word(&v->queue, spec_view_labels(object), SPEC_KUEUE_QUEUE);
	v->owned = *v->meta.owner_uid && !is_released(f, v);
	v->asked = streq(value_text(&f->suspend, object), "true") && !*v->queue && !v->owned;
}

static void read_status(const struct spec_reader *reader, const struct spec_value *object,
			struct spec_job_view *v)
{
	const struct spec_kind_file *f = file_of(reader);
	struct kindfile_reading r = {
		.file = f,
		.object = object,
		.status = spec_read_map(object, "status"),
	};
	const struct kind_state *state = state_of(&r);

	read_owner(f, object, v);
	v->changed = max_of(v->changed, spec_view_changed(r.status));
	v->changed = max_of(v->changed, value_time(&f->finished, object));
	v->began = value_time(&f->began, object);
	spec_read_copy(&v->phase, phase_of(&r, state), READ_MAX_WORD);
	if (state) {
		const struct spec_phase *row = v->rows = state->is->rows;

		v->firm = state->firm;
		if (state->is->explain)
			state->is->explain(&r, state, v);
		if (f->released_at_end && spec_state_is_final(row->state) && !row->suspended)
			v->owned = false;
	}
	if (f->attempts.restarted.n || !v->alone)
		v->retries = (unsigned)max_of(values_number(&f->attempts.failed, object, 0),
					      values_number(&f->attempts.restarted, object, 0));
	if (f->kind.hook)
		f->kind.hook(object, v);
}

/* --- pods --- */

/*
 * True if POD's controller has the name of the part. This name is the values PART->named in POD,
 * joined by dashes.
 */
static bool is_named(const struct kind_part *part, const struct spec_value *pod)
{
	cleanup_free char *name = text_copy("");

	for (size_t i = 0; i < part->named.n; i++)
		text_set(&name, "%s%s%s", name, i ? "-" : "", value_text(&part->named.v[i], pod));
	return streq(spec_read_text(spec_view_controller(pod), "name"), name);
}

static const char *owner_of(const struct spec_reader *reader, const struct spec_value *pod,
			    bool *ret_part)
{
	const struct spec_kind_file *f = file_of(reader);
	const struct spec_value *controller = spec_view_controller(pod);

	*ret_part = false;
	if (spec_view_is_a(controller, f->kind.api_version, f->kind.kind))
		return spec_read_text(controller, "uid");
	for (size_t i = 0; i < f->parts.n; i++) {
		const struct kind_part *part = &f->parts.v[i];

		if (!spec_view_is_a(controller, part->part.api_version, part->part.kind) ||
		    (part->named.n && !is_named(part, pod)))
			continue;
		*ret_part = !part->named.n || f->kind.n_parts > 0;
		return part->named.n ? values_text(&part->owner_uid, pod)
				     : spec_read_text(controller, "uid");
	}
	return NULL;
}

/* Return the row of "pods" for POD; an empty one if none applies. */
static const struct kind_pod *row_of(const struct spec_kind_file *f, const struct spec_value *pod)
{
	static const struct kind_pod none;
	struct kindfile_reading r = {.object = pod};

	for (size_t i = 0; i < f->pods.n; i++)
		if (fits(&r, &f->pods.v[i].tests))
			return &f->pods.v[i];
	return &none;
}

/*
 * Return ROLE without the name of POD's controller, malloc'ed. If the rest is empty or the number
 * of an attempt ("(1)"), put CONTAINER before it.
 */
static char *trim(const char *role, const struct spec_value *pod, const char *container)
{
	const char *owner = spec_read_text(spec_view_controller(pod), "name");
	size_t n = strlen(owner);

	if (strncmp(role, owner, n) == 0)
		role += n + (role[n] == '.');
	return text_print("%s%s", *role && *role != '(' ? "" : container, role);
}

static void read_pod(const struct spec_reader *reader, const struct spec_value *object,
		     struct spec_pod_view *v)
{
	const struct spec_kind_file *f = file_of(reader);
	const struct kind_pod *row = row_of(f, object);
	const char *role = values_text(&row->role, object);
	const char *container = row->main.n ? values_text(&row->main, object) : role;
	cleanup_free char *main = spec_name_norm(container); /* containers have normalized names */
	int index = values_number(&row->index, object, -1);
	int first = values_number(&row->first, object, 0);
	cleanup_free char *trimmed = NULL;
	char task[READ_MAX_WORD + 1];

	spec_read_copy(&v->main, spec_pod_choose_main(object, main), READ_MAX_WORD);
	if (row->trim) {
		trimmed = trim(role, object, v->main);
		role = trimmed;
	}
	name_task(f, role, values_number(&row->copy, object, 0),
		  values_number(&row->copies, object, 1), task, sizeof(task));
	/* Of the pods of batch Jobs, only those of Indexed Jobs have an index. */
	v->index = index < first ? UINT32_MAX : (unsigned)(index - first);
	v->failures = (unsigned)values_number(&row->failures, object, 0);
	v->retry = row->attempt.n ? (unsigned)values_number(&row->attempt, object, 0)
				  : SPEC_RETRY_UNKNOWN;
	spec_read_copy(&v->task, task, READ_MAX_WORD);
}

const struct spec_reader kind_file_reader = {
	.job = read_job,
	.status = read_status,
	.owner = owner_of,
	.pod = read_pod,
	.phases = (const struct spec_phase[]){{0}},
	.remade = true,
};
