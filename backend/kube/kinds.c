/* SPDX-License-Identifier: MIT */
/*
 * A mount has a slot for each kind that it may show: the kinds that SOURCE selects. All versions of
 * a kind share a slot. Each slot has its own value of enum world_type. A survey finds out which of
 * these kinds the cluster serves. kxfs makes a survey at the start and then every SURVEY_MS. When a
 * watch reports that a kind is no longer served, kxfs makes an early survey, but at most one
 * between two regular surveys. The states:
 *
 *	state   | what is in progress              | what ends it            | next
 *	IDLE    | a timer                          | the timer fires         | GROUPS
 *	        |                                  | a kind is not served    | GROUPS
 *	        |                                  | any more                |
 *	GROUPS  | GET of the API groups            | a list of groups        | PROBES
 *	        |                                  | a 403 or 404            | PROBES
 *	        |                                  | another failure         | IDLE
 *	PROBES  | for each served kind that is not | the last reply          | IDLE
 *	        | shown: a request for one job     |                         |
 *
 * If the server refuses the list of API groups (403 or 404), kxfs probes every kind. If the first
 * survey fails in GROUPS for another reason, the mount fails. kxfs does not show a kind whose probe
 * gets a 403 or 404. After any other error of the probe, kxfs shows the kind, so that the watch of
 * the kind reports the error. But if an earlier probe of this kind got a 403, kxfs does not show
 * it.
 */
#include "backend/kube/kinds.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/base/print.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"

#define SURVEY_MS   600000
#define DEADLINE_MS 30000
#define GROUPS_MAX  (4u << 20)
#define PROBE_MAX   (4u << 20)

struct kind_slot {
	struct kinds *k;
	/* the served version of the kind, or NULL; does not change during a probe */
	const struct spec_kind *served;
	struct http_request *request; /* the probe */
	char *refused;		      /* the server's refusal to list the kind, or NULL */
};

struct kinds {
	struct watches_access access;
	const struct spec_kinds *known;
	const char *source;
	struct kinds_events events;
	enum { IDLE, GROUPS, PROBES, STOPPED } state;
	struct http_request *request; /* the request in GROUPS */
	struct loop_timer timer;      /* runs in IDLE */
	struct kind_slot slots[SPEC_MAX_KINDS];
	size_t n_slots;
	size_t n_probes; /* number of probes in progress */
	bool found;	 /* true if the first survey has ended */
	bool early;	 /* true if kxfs has made an early survey since the last regular survey */
	/*
	 * The result of the current survey so far. CHANGED: a slot shows another kind, or none.
	 * UNSERVED: the cluster no longer serves a kind that the user had no right to list.
	 */
	enum { SAME, UNSERVED, CHANGED } survey;
};

static enum world_type type_of(const struct kind_slot *at)
{
	return WORLD_JOBS + (enum world_type)(at - at->k->slots);
}

static void report_found(struct kinds *k, int err, const char *text)
{
	k->found = true;
	k->events.found(k->events.data, err, text);
}

/* Make the slot AT show the jobs of KIND, or no jobs if KIND is NULL. */
static void set_slot(struct kind_slot *at, const struct spec_kind *kind)
{
	struct kinds *k = at->k;
	enum world_type type = type_of(at);
	const struct spec_kind *old = world_kind(k->access.world, type);

	if (kind == old)
		return;
	k->survey = CHANGED;
	if (kind)
		diag(k->found ? DIAG_INFO : DIAG_DEBUG, "kxfs shows %s of %s", kind->plural,
		     kind->api_version);
	else
		diag(DIAG_WARNING, "the cluster no longer serves %s of %s", old->plural,
		     old->api_version);
	if (old)
		watches_drop(k->access.watches, type);
	world_set_kind(k->access.world, type, kind);
}

static void surveyed(struct kinds *k)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	cleanup_free char *why = NULL;
	int err = -EOPNOTSUPP;

	k->state = IDLE;
	loop_timer_set(&k->timer, SURVEY_MS);
	if (k->found && k->survey == CHANGED)
		watches_switch(k->access.watches);
	/* publish.c then settles the jobs of kinds that are no longer served (publish_listed). */
	if (k->found && k->survey != SAME)
		k->events.changed(k->events.data);
	if (k->found)
		return;
	if (world_kinds(k->access.world, kinds) > 0) {
		report_found(k, 0, "");
		return;
	}
	why = text_print("the cluster serves no %s\n"
			 "Check that this is the right cluster, or ask the cluster's administrator "
			 "to install them.",
			 spec_kinds_text(k->known, k->source));
	for (size_t i = k->n_slots; i-- > 0;) {
		if (!k->slots[i].refused)
			continue;
		err = -EACCES;
		text_set(&why, "%s", k->slots[i].refused);
	}
	report_found(k, err, why);
}

/*
 * Record why the server refuses to list RESOURCE (TEXT), or that it does not refuse (TEXT is NULL).
 * Take ownership of TEXT.
 */
static void set_refused(struct kind_slot *at, const char *resource, char *text)
{
	struct kinds *k = at->k;
	enum world_type type = type_of(at);

	if (at->refused && !text && k->survey == SAME)
		k->survey = UNSERVED;
	world_set_refused(k->access.world, type, text ? at->served : NULL);
	watches_refuse(k->access.watches, REFUSED_KINDS + type - WORLD_JOBS, "list", resource,
		       "jobs of this kind are not shown", text);
	free(at->refused);
	at->refused = text;
}

static void on_probed(void *data, const struct http_reply *reply)
{
	struct kind_slot *at = data;
	struct kinds *k = at->k;
	const struct spec_kind *kind = at->served;
	cleanup_free char *resource = spec_asked_resource(kind->plural, kind->api_version);
	const struct spec_asked asked = spec_asked_of("list", resource, k->access.namespace);
	char *text = NULL;
	bool refused = !reply->err && reply->status == 403;
	/* a 404 of a proxy does not show that the kind is absent */
	bool absent = !reply->err && reply->status == 404 && !http_is_unknown(reply);

	at->request = NULL;
	if (refused) {
		http_refusal(reply, &asked, &text);
		if (!at->refused)
			diag(k->found ? DIAG_WARNING : DIAG_DEBUG, "%s", text);
		set_refused(at, resource, text);
	} else if (!at->refused || absent || http_succeeded(reply)) {
		set_refused(at, resource, NULL);
		if (!absent)
			set_slot(at, kind);
	}
	if (--k->n_probes == 0)
		surveyed(k);
}

static void probe(struct kind_slot *at)
{
	struct kinds *k = at->k;
	cleanup_free char *path =
		text_print("/apis/%s/namespaces/%s/%s?limit=1", at->served->api_version,
			   k->access.namespace, at->served->plural);

	k->n_probes++;
	at->request = http_send(k->access.http, &(struct http_call){
							.method = HTTP_GET,
							.path = path,
							.deadline_ms = DEADLINE_MS,
							.max_body = PROBE_MAX,
							.metadata = true,
							.done = on_probed,
							.data = at,
						});
}

/* Probe each served kind that is not shown. Stop showing kinds that are no longer served. */
static void probe_all(struct kinds *k)
{
	k->state = PROBES;
	/* count one more while sending, so that no reply ends the survey early */
	k->n_probes = 1;
	for (size_t i = 0; i < k->n_slots; i++) {
		struct kind_slot *at = &k->slots[i];
		const struct spec_kind *shown = world_kind(k->access.world, type_of(at));

		if (!at->served)
			set_refused(at, NULL, NULL);
		if (shown && at->served != shown)
			set_slot(at, NULL);
		if (at->served && at->served != shown)
			probe(at);
	}
	if (--k->n_probes == 0)
		surveyed(k);
}

static void on_groups(void *data, const struct http_reply *reply)
{
	struct kinds *k = data;
	const struct spec_kind *served[SPEC_MAX_KINDS];
	const struct spec_asked asked = spec_asked_of("get", "/apis", "");
	bool closed = !reply->err && (reply->status == 403 || reply->status == 404);
	cleanup_free char *text = NULL;
	int err = -EINVAL;

	k->request = NULL;
	if (closed)
		err = k->found ? -EACCES : spec_kinds_served(k->known, NULL, 0, k->source, served);
	else if (http_succeeded(reply))
		err = spec_kinds_served(k->known, reply->body, reply->len, k->source, served);
	if (err >= 0) {
		for (size_t i = 0; i < k->n_slots; i++)
			k->slots[i].served = served[i];
		if (!closed)
			k->events.groups(k->events.data, reply->body, reply->len);
		return probe_all(k);
	}
	/* the served kinds are unknown, so keep all slots as they are */
	if (k->found)
		return closed ? probe_all(k) : surveyed(k);
	if (!http_succeeded(reply))
		err = http_refusal(reply, &asked, &text);
	report_found(k, err, text ? text : "the server's list of its APIs can't be read");
}

static void survey(void *data)
{
	struct kinds *k = data;
	const struct http_call call = {
		.method = HTTP_GET,
		.path = "/apis",
		.deadline_ms = DEADLINE_MS,
		.max_body = GROUPS_MAX,
		.retry = !k->found,
		.done = on_groups,
		.data = k,
	};

	loop_timer_stop(&k->timer);
	k->state = GROUPS;
	k->survey = SAME;
	k->request = http_send(k->access.http, &call);
}

static void on_survey(void *data)
{
	struct kinds *k = data;

	k->early = false;
	survey(k);
}

void kinds_start(struct kinds *k)
{
	survey(k);
}

void kinds_unserved(struct kinds *k)
{
	if (k->state != IDLE || k->early)
		return;
	k->early = true;
	survey(k);
}

struct kinds *kinds_new(const struct watches_access *access, const struct spec_kinds *known,
			const char *source, const struct kinds_events *events)
{
	const struct spec_kind *newest[SPEC_MAX_KINDS];
	struct kinds *k = new0(struct kinds);

	k->access = *access;
	k->known = known;
	k->source = source;
	k->events = *events;
	loop_timer_init(&k->timer, access->loop, on_survey, k);
	k->n_slots = (size_t)spec_kinds_served(known, NULL, 0, source, newest);
	for (size_t i = 0; i < k->n_slots; i++)
		k->slots[i].k = k;
	return k;
}

void kinds_stop(struct kinds *k)
{
	k->state = STOPPED;
	loop_timer_stop(&k->timer);
	http_drop(&k->request);
	for (size_t i = 0; i < k->n_slots; i++)
		http_drop(&k->slots[i].request);
}

void kinds_free(struct kinds *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n_slots; i++)
		free(k->slots[i].refused);
	free(k);
}

/* --- .kxfs/info --- */

void kinds_info(struct kinds *k, FILE *out)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	size_t n = world_kinds(k->access.world, kinds);

	if (n)
		print_text(out, "default_kind", spec_kind_default(kinds, n)->name);
	fputs(n ? "kinds:\n" : "kinds: []\n", out);
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *trouble =
			watches_trouble(k->access.watches,
					world_type_of(k->access.world, kinds[i]));

		fprintf(out, "- kind: %s\n", kinds[i]->name);
		print_text(out, "  api", kinds[i]->api_version);
		if (kinds[i]->users)
			fputs("  own_file: true\n", out);
		if (trouble)
			print_text(out, "  trouble", trouble);
	}
}
