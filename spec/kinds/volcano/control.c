/* SPDX-License-Identifier: MIT */
/*
 * ctl on Volcano: Commands. Volcano accepts any Command, ignores the uid of its target, and deletes
 * it whether it obeys or not. So kxfs sends only Commands that Volcano obeys in the job's phase.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/tree.h"
#include "spec/kinds/kinds.h"
#include "spec/view/control.h"
#include "spec/view/view.h"

#define BIT(action) (1u << (action))

static const char *const commands[SPEC_N_ACTIONS] = {
	[SPEC_SUSPEND] = "AbortJob",
	[SPEC_RESUME] = "ResumeJob",
	[SPEC_RESTART] = "RestartJob",
	[SPEC_TERMINATE] = "TerminateJob",
};

/* The actions that Volcano obeys in each phase. It obeys none in any other phase. */
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

/*
 * Return the actions that would end JOB: each start is an attempt, and Volcano fails a job that has
 * none left.
 */
static unsigned in_vain(const struct spec_job_view *job)
{
	bool last = job->retry_limit && job->retries + 1 >= job->retry_limit;

	return last ? BIT(SPEC_RESUME) | BIT(SPEC_RESTART) : 0;
}

static unsigned actions(const struct spec_control_job *job)
{
	const struct spec_job_view *view = job->view;

	return view->meta.deleted ? 0 : in_phase(view->phase) & ~in_vain(view);
}

static int refusal(const struct spec_control_job *job, enum spec_action action,
		   const char **ret_why)
{
	const struct spec_job_view *view = job->view;

	*ret_why = NULL;
	if (view->meta.deleted)
		*ret_why = "it is being deleted";
	else if (in_phase(view->phase) & in_vain(view) & BIT(action))
		*ret_why = "it costs a retry, and the job has none left: Volcano would end it as "
			   "Failed";
	return -EINVAL;
}

static struct json_object *reference(const struct spec_job_view *job)
{
	struct json_object *o = spec_tree_map();

	spec_tree_text(o, "apiVersion", "batch.volcano.sh/v1alpha1");
	spec_tree_text(o, "kind", "Job");
	spec_tree_text(o, "name", job->meta.name);
	spec_tree_text(o, "uid", job->meta.uid);
	return o;
}

/*
 * The job is the Command's owner only so that the garbage collector removes the Command if the job
 * is deleted before Volcano has seen it. The reference has neither controller nor
 * blockOwnerDeletion, which would require another right.
 */
static void request(const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	struct json_object *o cleanup_json = spec_tree_map();
	struct json_object *meta = spec_tree_add(o, "metadata", spec_tree_map());
	struct json_object *owners;

	*ret = (struct spec_control_request){.resource = "commands.bus.volcano.sh"};
	spec_tree_text(o, "apiVersion", "bus.volcano.sh/v1alpha1");
	spec_tree_text(o, "kind", "Command");
	spec_tree_text(meta, "name", asked->name);
	spec_tree_text(meta, "namespace", asked->namespace);
	owners = spec_tree_add(meta, "ownerReferences", spec_tree_list(1));
	spec_tree_append(owners, reference(asked->job->view));
	spec_tree_text(o, "action", commands[asked->action]);
	spec_tree_add(o, "target", reference(asked->job->view));
	ret->body = text_copy(
		json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
							  JSON_C_TO_STRING_NOSLASHESCAPE));
	ret->path =
		text_print("/apis/bus.volcano.sh/v1alpha1/namespaces/%s/commands?fieldManager=kxfs",
			   asked->namespace);
}

static bool is_one_of(const char *phase, const char *a, const char *b)
{
	return streq(phase, a) || streq(phase, b);
}

/* A short phase may be missed, but the count of retries shows that a job was started again. */
static enum spec_control_outcome outcome(enum spec_action action,
					 const struct spec_control_mark *before,
					 const struct spec_control_job *job)
{
	const struct spec_job_view *now = job->view;
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
	/* The job may have restarted meanwhile, and be in a phase in which the action is obeyed. */
	if (is_one_of(now->phase, before->phase, "Restarting") ||
	    in_phase(now->phase) & BIT(action))
		return SPEC_CONTROL_OPEN;
	return SPEC_CONTROL_LATE;
}

const struct spec_control spec_volcano_control = {
	.known = (BIT(SPEC_N_ACTIONS) - 1) & ~BIT(SPEC_RELEASE),
	/*
	 * Volcano deletes a Command before any effect shows, so its name may be used again. A job
	 * that was restarted is soon in a phase in which it would be restarted once more.
	 */
	.once = BIT(SPEC_RESTART),
	.actions = actions,
	.refusal = refusal,
	.request = request,
	.outcome = outcome,
};
