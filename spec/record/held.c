/* SPDX-License-Identifier: MIT */
/* Reads the conditions of held jobs, checks which are met, and makes snapshots. */
#include "spec/record/held.h"

#include <errno.h>

#include "spec/app/app.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/kinds/kinds.h"
#include "spec/record/record.h"
#include "spec/yaml/field.h"
#include "spec/yaml/yaml.h"

#define HELD(name, type, ...)  SPEC_FIELD(struct spec_held, name, type, __VA_ARGS__)
#define AFTER(name, type, ...) SPEC_FIELD(struct spec_held_after, name, type, __VA_ARGS__)

static const struct spec_field fields[] = {
	HELD(hold, SPEC_FIELD_BOOL),
	HELD(begin, SPEC_FIELD_TIME),
	{0},
};

static const struct spec_field after_fields[] = {
	AFTER(how, SPEC_FIELD_UNSIGNED, .max = SPEC_AFTER_FAILED),
	AFTER(id, SPEC_FIELD_TEXT),
	AFTER(uid, SPEC_FIELD_TEXT),
	AFTER(submission, SPEC_FIELD_TEXT),
	{0},
};

/* Set *RET to the conditions in ROOT. Return false if there are none, or if one is invalid. */
static bool find_conditions(const struct spec_yaml *root, const struct spec_held_place *place,
			    struct spec_held *ret)
{
	const struct spec_yaml *args =
		root->type == SPEC_YAML_MAP ? spec_yaml_get(root, "scheduler_args") : NULL;
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_json struct json_object *tree = NULL;
	cleanup_free struct spec_value *map = NULL;
	cleanup_free char *json = NULL;

	if (!args || args->type != SPEC_YAML_MAP)
		return false;
	tree = spec_yaml_to_json(args);
	json = spec_tree_print(tree);
	if (spec_value_parse(json, strlen(json), &map) < 0)
		return false;
	for (size_t i = 0; i < map->n; i++)
		spec_hold_read(ret, &map->items[i], place->now, place->local, &e);
	return !e.err && (ret->hold || ret->begin || ret->n_after);
}

int spec_held_read(const char *text, size_t len, const struct spec_held_place *place,
		   struct spec_held **ret, struct spec_errors *e)
{
	cleanup(spec_errors_clear) struct spec_errors other = SPEC_ERRORS_INIT;
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	cleanup(spec_held_freep) struct spec_held *h = new0(struct spec_held);

	*ret = NULL;
	if (spec_app_parse(text, len, &root, &other) < 0 || !find_conditions(root, place, h))
		return 0;
	for (size_t i = 0; i < h->n_after; i++) {
		cleanup_free char *name = text_copy(h->after[i].id);

		if (!place->find(place->data, name, &h->after[i]))
			spec_errors_add(e, -EINVAL, 0, 0, "scheduler_args.after",
					"%s is neither a job in jobs/ or history/, nor a file "
					"in submit/ that launched a job",
					name);
	}
	spec_errors_locate(e, spec_yaml_find, root);
	if (!e->err)
		*ret = take_ptr(h);
	return e->err;
}

char *spec_held_part(const struct spec_held *h)
{
	cleanup_json struct json_object *root = spec_tree_map();
	struct json_object *list = spec_tree_list(h->n_after);

	spec_fields_write(root, fields, h);
	spec_tree_add(root, "after", list);
	for (size_t i = 0; i < h->n_after; i++)
		if (h->after[i].wait != SPEC_WAIT_MET)
			spec_fields_write(spec_tree_append(list, spec_tree_map()), after_fields,
					  &h->after[i]);
	return spec_tree_print(root);
}

int spec_held_parse(const char *part, struct spec_held **ret)
{
	cleanup(spec_held_freep) struct spec_held *h = new0(struct spec_held);
	cleanup_free struct spec_value *root = NULL;
	const struct spec_value *list;
	int err = part ? spec_value_parse(part, strlen(part), &root) : 0;

	if (err)
		return err;
	list = spec_read_list(root, "after");
	if (spec_read_count(list) > SPEC_MAX_AFTER)
		return -EINVAL;
	if (part)
		err = spec_fields_read(root, fields, h);
	for (size_t i = 0; i < spec_read_count(list) && !err; i++)
		err = spec_fields_read(spec_read_at(list, i), after_fields, spec_held_add(h));
	if (!err)
		*ret = take_ptr(h);
	return err;
}

bool spec_held_means(const struct spec_held_after *after, const struct spec_job *job)
{
	if (*after->submission && job->own && streq(after->submission, job->submission))
		return true;
	return streq(after->uid, job->uid);
}

bool spec_held_settle(struct spec_held_after *after, const struct spec_job *old,
		      const struct spec_job *now)
{
	const struct spec_job *last = now ? now : old;
	/* A job that was removed before its end counts as cancelled, if its snapshot is known. */
	enum spec_state state = !last				 ? SPEC_UNKNOWN
				: now || spec_job_has_ended(old) ? last->state
								 : SPEC_CANCELLED;
	bool met;

	if (after->wait != SPEC_WAIT_OPEN ||
	    (now && (!spec_job_has_ended(now) || now->unexplained)))
		return false;
	met = after->how == SPEC_AFTER_ANY ||
	      (after->how == SPEC_AFTER_OK ? state == SPEC_SUCCEEDED
					   : state == SPEC_FAILED || state == SPEC_CANCELLED);
	after->wait = met ? SPEC_WAIT_MET : SPEC_WAIT_NEVER;
	if (!met && !last)
		spec_set(&after->end, "was removed, and its result is unknown");
	else if (!met)
		spec_set(&after->end, state == SPEC_SUCCEEDED ? "succeeded"
				      : state == SPEC_FAILED  ? "failed"
							      : "was cancelled");
	return true;
}

static const char *const required[] = {[SPEC_AFTER_OK] = "to succeed",
				       [SPEC_AFTER_ANY] = "to end",
				       [SPEC_AFTER_FAILED] = "to fail"};

enum spec_decision spec_held_judge(const struct spec_held *h, int64_t now, char **ret_why)
{
	bool waits = h->hold || h->begin > now;

	*ret_why = NULL;
	for (size_t i = 0; i < h->n_after; i++) {
		const struct spec_held_after *a = &h->after[i];

		waits |= a->wait == SPEC_WAIT_OPEN;
		if (a->wait != SPEC_WAIT_NEVER)
			continue;
		*ret_why = text_print("it waited for %s %s, but %s %s", a->id, required[a->how],
				      a->id, a->end);
		return SPEC_DECISION_NEVER;
	}
	return waits ? SPEC_DECISION_WAIT : SPEC_DECISION_GO;
}

struct spec_job *spec_held_shape(const char *text, size_t len, const char *home)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	struct spec_app_rules rules;
	struct spec_job *job;

	spec_kind_app_rules(&rules, NULL, home);
	spec_app_parse(text, len, &root, &e);
	if (root)
		spec_app_read(root, &rules, &app, &e);
	job = app ? spec_record_shape(app) : spec_job_new(0, 0);
	spec_set(&job->app, app ? app->name : "");
	return job;
}

/* Print what a job with the conditions H waits for. Return the snapshot's reason, one word. */
static const char *put_wait(FILE *out, const struct spec_held *h,
			    const struct spec_held_progress *progress)
{
	const char *reason = NULL;
	size_t n = 0;
	char time[32];

	if (h->hold) {
		fputs("waits to be released", out);
		reason = "Held";
	}
	for (size_t i = 0; i < h->n_after; i++) {
		const struct spec_held_after *a = &h->after[i];

		if (a->wait == SPEC_WAIT_OPEN && ++n == 1)
			fprintf(out, "%s%s %s", reason ? ", and for " : "waits for ", a->id,
				required[a->how]);
	}
	if (n > 1)
		fprintf(out, ", and for %zu more job%s", n - 1, n == 2 ? "" : "s");
	if (!reason && n)
		reason = "Dependency";
	if (h->begin > progress->now) {
		spec_time_text(h->begin, time);
		fprintf(out, "%s %s", reason ? ", and until" : "waits until", time);
		reason = reason ? reason : "BeginTime";
	}
	if (!reason && progress->passive)
		fputs("waits to be launched", out);
	if (progress->passive)
		fputs("; this mount is read-only and launches no jobs", out);
	if (reason || progress->passive)
		return reason ? reason : "ReadOnly";
	fputs(progress->refusal ? "the launch failed (kxfs retries): "
				: "waits until kxfs has launched it",
	      out);
	/* Print only the first line of a refusal. */
	if (progress->refusal)
		fwrite(progress->refusal, 1, strcspn(progress->refusal, "\n"), out);
	return progress->refusal ? "LaunchDelayed" : "Launching";
}

/* Print that it is unknown whether the job was launched. Return the snapshot's reason, one word. */
static const char *put_sending(FILE *out, enum spec_sending sending)
{
	if (sending == SPEC_SENDING) {
		fputs("kxfs has sent it to the server, which has not answered yet", out);
		return "Submitting";
	}
	if (sending == SPEC_SENDING_ASKED) {
		fputs("kxfs ended or lost the connection while it sent the job; the server "
		      "may have the job",
		      out);
		return "Submitting";
	}
	fputs("kxfs ended or lost the connection while it sent the job; the server does not have "
	      "the job now, but may have had it earlier",
	      out);
	return "LaunchUnknown";
}

/* Set the result of a job that was never launched. */
static void put_end(struct spec_job *job, const struct spec_head *head)
{
	spec_transitions_add(&job->transitions, job->state, job->phase, head->since);
	spec_set(&job->reason, head->more->reason);
	spec_set(&job->message, head->more->why);
	job->changed = job->finished = head->since;
	for (size_t i = 0; i < job->n_replicas; i++) {
		job->replicas[i].state = SPEC_CANCELLED;
		job->replicas[i].finished = head->since;
	}
}

/*
 * True if the snapshot shows that the launch has begun. While kxfs launches a job with conditions,
 * the snapshot still shows it as held, unless the result of the launch is unknown.
 */
static bool is_sent(const struct spec_head *head, const struct spec_held *h,
		    const struct spec_held_progress *progress)
{
	return head->state == RECORD_SUBMITTING && (!h || progress->sending != SPEC_SENDING);
}

static void put_cause(struct spec_job *job, const struct spec_head *head, const struct spec_held *h,
		      const struct spec_held_progress *progress)
{
	const bool sent = is_sent(head, h, progress);
	cleanup_free char *text = NULL;
	size_t len;
	FILE *out = text_stream(&text, &len);

	job->cause.reason = sent ? put_sending(out, progress->sending) : put_wait(out, h, progress);
	text_stream_close(out);
	spec_set(&job->cause.text, text);
	if (sent ? progress->sending == SPEC_SENDING_LOST : h && h->hold)
		job->actions = 1u << SPEC_RELEASE;
}

struct spec_job *spec_held_job(const struct spec_head *head, const struct spec_held *h,
			       const struct spec_job *shape,
			       const struct spec_held_progress *progress)
{
	struct spec_job *job = spec_job_copy(shape);
	const bool over = head->state == RECORD_NEVER;
	const bool failed = over && streq(head->more->reason, "LaunchFailed");
	const bool unknown = is_sent(head, h, progress);

	spec_set(&job->id, head->id);
	spec_set(&job->uid, head->key);
	spec_set(&job->submission, head->key);
	spec_set(&job->submitter, head->more->submitter);
	spec_set(&job->backend, head->backend);
	spec_set(&job->namespace, head->more->namespace);
	spec_set(&job->phase, failed	? "Failed"
			      : over	? "Cancelled"
			      : unknown ? "Submitting"
					: "Held");
	job->state = failed    ? SPEC_FAILED
		     : over    ? SPEC_CANCELLED
		     : unknown ? SPEC_SUBMITTED
			       : SPEC_PENDING;
	job->held = job->own = job->has_appdef = true;
	job->ttl = -1;
	job->created = job->changed = head->created;
	job->history = over;
	if (h)
		spec_transitions_add(&job->transitions, SPEC_PENDING, "Held", head->created);
	if (unknown)
		spec_transitions_add(&job->transitions, job->state, job->phase, head->since);
	if (over)
		put_end(job, head);
	else
		put_cause(job, head, h, progress);
	return spec_job_pack(job);
}
