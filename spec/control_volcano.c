/* SPDX-License-Identifier: MIT */
/*
 * ctl on Volcano: Commands. Volcano takes any Command and deletes it, whether it obeys or not, and never
 * looks at the uid of its target; so only those are sent that it obeys in the job's phase.
 */
#include <errno.h>

#include "spec/control.h"
#include "spec/tree.h"
#include "spec/view.h"

#define BIT(action) (1u << (action))

static const char *const commands[SPEC_N_ACTIONS] = {
	[SPEC_SUSPEND] = "AbortJob",
	[SPEC_RESUME] = "ResumeJob",
	[SPEC_RESTART] = "RestartJob",
	[SPEC_TERMINATE] = "TerminateJob",
};

/* In any other phase Volcano ignores all. */
static const struct {
	const char *phase;
	unsigned actions;
} obeyed[] = {
	{"Pending", BIT(SPEC_SUSPEND) | BIT(SPEC_RESTART) | BIT(SPEC_TERMINATE)},
	{"Running", BIT(SPEC_SUSPEND) | BIT(SPEC_RESTART) | BIT(SPEC_TERMINATE)},
	{"Aborting", BIT(SPEC_RESUME)},
	{"Aborted", BIT(SPEC_RESUME)},
};

static unsigned in_phase(const char *phase)
{
	for (size_t i = 0; i < array_size(obeyed); i++)
		if (streq(obeyed[i].phase, phase))
			return obeyed[i].actions;
	return 0;
}

/* Starting again costs a retry; a job that has used up all of them is made Failed instead. */
static unsigned in_vain(const struct spec_job_view *job)
{
	bool last = job->retry_limit && job->retries + 1 >= job->retry_limit;

	return last ? BIT(SPEC_RESUME) | BIT(SPEC_RESTART) : 0;
}

static unsigned actions(const struct spec_job_view *job)
{
	return job->meta.deleted ? 0 : in_phase(job->phase) & ~in_vain(job);
}

static const char *refusal(const struct spec_job_view *job, enum spec_action action)
{
	if (job->meta.deleted)
		return "it is being deleted";
	if (in_phase(job->phase) & in_vain(job) & BIT(action))
		return "it costs a retry, and the job has none left: Volcano would end it as "
		       "Failed";
	return NULL;
}

static struct json_object *reference(struct spec_tree *t, const struct spec_job_view *job)
{
	struct json_object *o = spec_tree_map(t);

	spec_tree_text(t, o, "apiVersion", "batch.volcano.sh/v1alpha1");
	spec_tree_text(t, o, "kind", "Job");
	spec_tree_text(t, o, "name", job->meta.name);
	spec_tree_text(t, o, "uid", job->meta.uid);
	return o;
}

/*
 * The owner has neither controller nor blockOwnerDeletion, which would take a right of its own: it is
 * only for the garbage collector, should the job go before Volcano has seen the Command.
 */
static int request(const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	struct spec_tree t = {0};
	struct json_object *o cleanup_json = spec_tree_map(&t);
	struct json_object *meta = spec_tree_add(&t, o, "metadata", spec_tree_map(&t));
	struct json_object *owners;

	*ret = (struct spec_control_request){.resource = "commands.bus.volcano.sh"};
	spec_tree_text(&t, o, "apiVersion", "bus.volcano.sh/v1alpha1");
	spec_tree_text(&t, o, "kind", "Command");
	spec_tree_text(&t, meta, "name", asked->name);
	spec_tree_text(&t, meta, "namespace", asked->namespace);
	owners = spec_tree_add(&t, meta, "ownerReferences", spec_tree_list(&t, 1));
	spec_tree_append(&t, owners, reference(&t, asked->job));
	spec_tree_text(&t, o, "action", commands[asked->action]);
	spec_tree_add(&t, o, "target", reference(&t, asked->job));
	if (t.failed)
		return -ENOMEM;
	ret->body =
		strdup(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
	if (asprintf(&ret->path,
		     "/apis/bus.volcano.sh/v1alpha1/namespaces/%s/commands?fieldManager=kxfs",
		     asked->namespace) < 0)
		ret->path = NULL;
	if (ret->body && ret->path)
		return 0;
	spec_control_request_clear(ret);
	return -ENOMEM;
}

static bool is_one_of(const char *phase, const char *a, const char *b)
{
	return streq(phase, a) || streq(phase, b);
}

/* Phases may pass unseen: a job that was started again tells so by its count of retries. */
static enum spec_control_outcome outcome(enum spec_action action,
					 const struct spec_control_mark *before,
					 const struct spec_job_view *now)
{
	bool again = now->retries > before->retries;
	bool there;

	switch (action) {
	case SPEC_SUSPEND:
		there = is_one_of(now->phase, "Aborting", "Aborted");
		break;
	case SPEC_TERMINATE:
		there = is_one_of(now->phase, "Terminating", "Terminated");
		break;
	default:
		there = again || streq(now->phase, "Restarting");
	}
	if (there)
		return SPEC_CONTROL_OBEYED;
	/* After a restart of its own the job may be where the action is obeyed. */
	if (is_one_of(now->phase, before->phase, "Restarting") ||
	    in_phase(now->phase) & BIT(action))
		return SPEC_CONTROL_OPEN;
	return SPEC_CONTROL_LATE;
}

const struct spec_control spec_volcano_control = {
	.known = BIT(SPEC_N_ACTIONS) - 1,
	/*
	 * A Command is deleted before anything of it shows, and its name may be used again. A job that was
	 * started again is soon where it would be started once more.
	 */
	.once = BIT(SPEC_RESTART),
	.actions = actions,
	.refusal = refusal,
	.request = request,
	.outcome = outcome,
};
