/* SPDX-License-Identifier: MIT */
/*
 * If SOURCE is one word that may mean several kinds, the server is asked for one after the other (discover.h), at the
 * start and whenever it no longer serves the one that was found.
 *
 * In a mount of all kinds each word of SOURCE has a slot, and the jobs of a slot are a sort of the world. The kinds
 * that the cluster has are surveyed at the start, every SURVEY_MS, and once in between when a kind is no longer served:
 *
 *	state   | what is under way                | what ends it            | next
 *	IDLE    | a timer                          | it fires; a kind is not | GROUPS
 *	        |                                  | served any more         |
 *	GROUPS  | the list of what is served       | its reply               | RULES, PROBES; IDLE at a
 *	        |                                  |                         | failure
 *	RULES   | the list of what the user may do | its reply               | PROBES
 *	PROBES  | a list of one job of each kind   | the last reply          | IDLE
 *	        | that may be shown                |                         |
 *
 * Only a refusal keeps a kind out: whatever else is wrong with its list is the business of its watch. Where the server
 * refuses the list of what is served, each kind is probed. A survey costs two requests at most while nothing changes.
 * For then one kind that was kept out is probed again; of several the user's rules say which may be listed now; and
 * where a server can't tell all rules, they are probed in turn, one in a survey.
 */
#include "backend/kube/kinds.h"

#include <errno.h>

#include "backend/ask/discover.h"
#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/print.h"
#include "spec/api/refusal.h"
#include "spec/api/review.h"
#include "spec/base/mem.h"

/* How often there is a survey: a kind that is installed shows within ten minutes. */
#define SURVEY_MS   600000
#define DEADLINE_MS 30000
#define GROUPS_MAX  (4u << 20)
#define PROBE_MAX   (8u << 20) /* the reply may be one whole job */
#define RULES_MAX   (4u << 20)

/* One word of SOURCE, in a mount of all kinds. */
struct slot {
	struct kinds *k;
	/* The kind that the cluster serves of those that the word may mean; NULL: none. */
	const struct spec_served *row;
	const struct spec_served *probing; /* the kind that REQUEST asks for, or has asked for */
	struct http_request *request;
	bool wanted; /* it is probed in this survey */
	char *refused; /* under the lock: why it may not be listed; NULL: it is shown, or not served */
};

struct kinds {
	struct kinds_config config;
	enum { IDLE, GROUPS, RULES, PROBES } state;
	/* in a mount of one kind: what was found; NULL: the server was not asked */
	const struct spec_served *served;
	struct discover *discover;
	struct http_request *request; /* in GROUPS and RULES */
	struct loop_timer timer;      /* in IDLE, in a mount of all kinds */
	struct slot slots[SPEC_MAX_SOURCES];
	size_t n_probes; /* probes that are under way */
	size_t turn;	 /* the slot that was last probed in turn */
	bool no_rules;	 /* the server can't tell all rules of the user */
	bool found;	 /* the first survey is over */
	bool hurried;	 /* a survey was made before its time */
	bool changed;	 /* this survey has changed a slot */
	bool unserved;	 /* it has found that a kind that was refused is not served any more */
	bool stopped;
	struct lock lock;
};

static bool is_of_all(const struct kinds *k)
{
	return !*k->config.source;
}

static enum world_sort sort_of(const struct slot *at)
{
	return WORLD_JOBS + (enum world_sort)(at - at->k->slots);
}

static void say_found(struct kinds *k, int err, const char *text)
{
	k->found = true;
	k->config.events.found(k->config.events.data, err, text);
}

/* --- a mount of one kind --- */

static void on_discovered(void *data, const struct spec_served *served, int err, const char *text)
{
	struct kinds *k = data;
	cleanup_free char *why = NULL;
	bool same = !err && k->found && served->kind == world_kind(k->config.world, WORLD_JOBS);

	discover_free(take_ptr(k->discover));
	/* The cluster may now be one that serves another of the kinds that were meant, as MCAD's successor. */
	if (same || (err && k->found))
		return;
	if (!err)
		err = k->config.events.fits(k->config.events.data, served->kind, &why);
	if (err && k->found)
		diag(DIAG_WARNING, "the cluster now serves %s of %s, but: %s", served->plural,
		     served->api_version, why);
	if (!err) {
		diag(DIAG_INFO, "the cluster %sserves %s of %s", k->found ? "now " : "",
		     served->plural, served->api_version);
		k->served = served;
		world_set_kind(k->config.world, WORLD_JOBS, served->kind);
	}
	if (!k->found) {
		say_found(k, err, why ? why : text);
	} else if (!err) {
		watches_switch(k->config.watches);
		k->config.events.changed(k->config.events.data);
	}
}

/* --- a mount of all kinds --- */

/* AT is of ROW's kind now; NULL: it is not shown. */
static void set_slot(struct slot *at, const struct spec_served *row)
{
	struct kinds *k = at->k;
	const struct spec_kind *kind = row ? row->kind : NULL;
	enum world_sort sort = sort_of(at);
	const struct spec_kind *old = world_kind(k->config.world, sort);

	if (kind == old)
		return;
	k->changed = true;
	if (kind)
		diag(k->found ? DIAG_INFO : DIAG_DEBUG, "%s of %s are shown", row->plural,
		     row->api_version);
	else
		diag(DIAG_WARNING, "the cluster does not serve %s of %s any more", old->plural,
		     old->api_version);
	if (old)
		watches_drop(k->config.watches, sort);
	world_set_kind(k->config.world, sort, kind);
}

/* The survey is over. */
static void surveyed(struct kinds *k)
{
	const struct spec_kind *kinds[SPEC_MAX_SOURCES];
	cleanup_free char *why =
		text_copy("the cluster serves no Volcano jobs, AppWrappers, JobSets or "
			  "Jobs\nIs it the right cluster?");
	int err = -EOPNOTSUPP;

	k->state = IDLE;
	loop_timer_set(&k->timer, SURVEY_MS);
	if (k->found && k->changed)
		watches_switch(k->config.watches);
	/* What an earlier mount has seen of a kind that is not served any more can be told now. */
	if (k->found && (k->changed || k->unserved))
		k->config.events.changed(k->config.events.data);
	if (k->found)
		return;
	if (world_kinds(k->config.world, kinds) > 0) {
		say_found(k, 0, "");
		return;
	}
	for (size_t i = SPEC_MAX_SOURCES; i-- > 0;) {
		const struct slot *at = &k->slots[i];

		if (at->row && !at->row->kind)
			text_set(&why, "the cluster serves %s of %s, which kxfs does not know\n%s",
				 at->row->plural, at->row->api_version, at->row->instead);
		if (!at->refused)
			continue;
		err = -EACCES;
		text_set(&why, "%s", at->refused);
	}
	say_found(k, err, why);
}

static void set_refused(struct slot *at, char *text)
{
	struct kinds *k = at->k;
	lock_scope(&k->lock);

	k->unserved |= at->refused && !text && !at->row;
	world_set_refused(k->config.world, sort_of(at), text ? at->row->kind : NULL);
	free(at->refused);
	at->refused = text;
	if (!at->row)
		at->probing = NULL;
}

static void on_probed(void *data, const struct http_reply *reply)
{
	struct slot *at = data;
	struct kinds *k = at->k;
	const struct spec_served *row = at->probing;
	cleanup_free char *resource = spec_asked_resource(row->plural, row->api_version);
	const struct spec_asked asked = {
		.verb = "list",
		.resource = resource,
		.namespace = k->config.namespace,
		.name = "",
	};
	char *text = NULL;
	bool refused = !reply->err && reply->status == 403;

	at->request = NULL;
	if (refused) {
		http_refusal(reply, &asked, &text);
		if (!at->refused)
			diag(k->found ? DIAG_WARNING : DIAG_DEBUG, "%s", text);
		set_refused(at, text);
	} else if (reply->err || reply->status != 404) {
		set_refused(at, NULL);
		set_slot(at, row);
	}
	if (--k->n_probes == 0)
		surveyed(k);
}

static void probe(struct slot *at)
{
	struct kinds *k = at->k;
	cleanup_free char *path =
		text_print("/apis/%s/namespaces/%s/%s?limit=1", at->row->api_version,
			   k->config.namespace, at->row->plural);

	k->n_probes++;
	{
		lock_scope(&k->lock);
		at->probing = at->row;
	}
	at->request = http_send(k->config.http, &(struct http_call){
							.method = HTTP_GET,
							.path = path,
							.deadline_ms = DEADLINE_MS,
							.max_body = PROBE_MAX,
							.done = on_probed,
							.data = at,
						});
}

/* Was AT probed, and is it not shown? */
static bool is_kept_out(const struct slot *at)
{
	return at->row && at->row == at->probing &&
	       world_kind(at->k->config.world, sort_of(at)) != at->row->kind;
}

/* Probe all slots that are wanted; if IN_TURN, also the one of those that are kept out whose turn it is. */
static void probe_all(struct kinds *k, bool in_turn)
{
	for (size_t i = 1; in_turn && i <= SPEC_MAX_SOURCES; i++) {
		size_t next = (k->turn + i) % SPEC_MAX_SOURCES;

		if (!is_kept_out(&k->slots[next]))
			continue;
		k->slots[next].wanted = true;
		k->turn = next;
		break;
	}
	k->state = PROBES;
	k->n_probes = 1; /* so that the probes are not over before all are sent */
	for (size_t i = 0; i < SPEC_MAX_SOURCES; i++)
		if (k->slots[i].wanted)
			probe(&k->slots[i]);
	if (--k->n_probes == 0)
		surveyed(k);
}

static void on_rules(void *data, const struct http_reply *reply)
{
	struct kinds *k = data;
	int err = http_succeeded(reply) ? 0 : -EINVAL;

	k->request = NULL;
	for (size_t i = 0; i < SPEC_MAX_SOURCES && !err; i++) {
		struct slot *at = &k->slots[i];
		cleanup_free char *group = NULL;

		if (!is_kept_out(at))
			continue;
		group = text_print("%.*s", (int)strcspn(at->row->api_version, "/"),
				   at->row->api_version);
		err = spec_rules_reply(reply->body, reply->len, group, at->row->plural, "list",
				       &at->wanted);
	}
	k->no_rules = err && !reply->err;
	probe_all(k, err);
}

/* The slots have their rows: find out which of them may be shown. OPEN: the cluster has said that it serves them. */
static void look(struct kinds *k, bool open)
{
	cleanup_free char *body = spec_rules_ask(k->config.namespace);
	size_t kept_out = 0;

	for (size_t i = 0; i < SPEC_MAX_SOURCES; i++) {
		struct slot *at = &k->slots[i];
		const struct spec_kind *shown = world_kind(k->config.world, sort_of(at));

		if (!at->row)
			set_refused(at, NULL);
		if (shown && (!at->row || at->row->kind != shown))
			set_slot(at, NULL);
		kept_out += is_kept_out(at);
		at->wanted = at->row && at->row->kind && at->row->kind != shown && !is_kept_out(at);
	}
	if (kept_out < 2 || !open || k->no_rules) {
		probe_all(k, true);
		return;
	}
	k->state = RULES;
	k->request = http_send(k->config.http, &(struct http_call){
						       .method = HTTP_POST,
						       .path = SPEC_RULES_PATH,
						       .body = body,
						       .len = strlen(body),
						       .deadline_ms = DEADLINE_MS,
						       .max_body = RULES_MAX,
						       .done = on_rules,
						       .data = k,
					       });
}

static void on_groups(void *data, const struct http_reply *reply)
{
	struct kinds *k = data;
	const struct spec_served *rows[SPEC_MAX_SOURCES];
	const struct spec_asked asked = {
		.verb = "get",
		.resource = "/apis",
		.namespace = "",
		.name = "",
	};
	bool closed = !reply->err && (reply->status == 403 || reply->status == 404);
	cleanup_free char *text = NULL;
	int err = -EINVAL;

	k->request = NULL;
	if (closed)
		err = k->found ? -EACCES : spec_served_find(NULL, 0, rows);
	else if (http_succeeded(reply))
		err = spec_served_find(reply->body, reply->len, rows);
	if (!err) {
		for (size_t i = 0; i < SPEC_MAX_SOURCES; i++)
			k->slots[i].row = rows[i];
		look(k, !closed);
		return;
	}
	if (k->found) { /* which kinds there are is not known, so all stays as it was */
		if (closed)
			look(k, false);
		else
			surveyed(k);
		return;
	}
	if (!http_succeeded(reply))
		err = http_refusal(reply, &asked, &text);
	say_found(k, err, text ? text : "the server's list of what it serves can't be read");
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
	k->changed = k->unserved = false;
	k->request = http_send(k->config.http, &call);
}

static void on_survey(void *data)
{
	struct kinds *k = data;

	k->hurried = false;
	survey(k);
}

/* --- either --- */

void kinds_start(struct kinds *k)
{
	if (is_of_all(k))
		survey(k);
	else if (world_kind(k->config.world, WORLD_JOBS))
		say_found(k, 0, "");
	else
		k->discover = discover_new(k->config.http, k->config.source, on_discovered, k);
}

void kinds_unserved(struct kinds *k)
{
	if (k->stopped)
		return;
	if (is_of_all(k) && k->state == IDLE && !k->hurried) {
		k->hurried = true;
		survey(k);
	}
	if (!is_of_all(k) && k->served && !k->discover && spec_served_at(k->served->source, 1))
		k->discover = discover_new(k->config.http, k->served->source, on_discovered, k);
}

struct kinds *kinds_new(const struct kinds_config *config)
{
	struct kinds *k = new0(struct kinds);

	k->config = *config;
	k->lock = (struct lock)LOCK_INIT;
	loop_timer_init(&k->timer, config->loop, on_survey, k);
	for (size_t i = 0; i < SPEC_MAX_SOURCES; i++)
		k->slots[i].k = k;
	return k;
}

void kinds_stop(struct kinds *k)
{
	k->stopped = true;
	loop_timer_stop(&k->timer);
	discover_free(take_ptr(k->discover));
	http_drop(&k->request);
	for (size_t i = 0; i < SPEC_MAX_SOURCES; i++)
		http_drop(&k->slots[i].request);
}

void kinds_free(struct kinds *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < SPEC_MAX_SOURCES; i++)
		free(k->slots[i].refused);
	free(k);
}

/* --- what .kxfs/info says --- */

void kinds_info(struct kinds *k, FILE *out)
{
	const struct spec_kind *kinds[SPEC_MAX_SOURCES];
	size_t n = world_kinds(k->config.world, kinds);

	if (!is_of_all(k)) {
		if (n)
			print_text(out, "api", kinds[0]->api_version);
		return;
	}
	if (n)
		print_text(out, "default_kind", kinds[0]->name);
	fputs(n ? "kinds:\n" : "kinds: []\n", out);
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *trouble =
			watches_trouble(k->config.watches,
					world_sort_of(k->config.world, kinds[i]));

		fprintf(out, "- kind: %s\n", kinds[i]->name);
		print_text(out, "  api", kinds[i]->api_version);
		if (trouble)
			print_text(out, "  trouble", trouble);
	}
}

void kinds_refused(struct kinds *k, struct watches_refused *list)
{
	for (size_t i = 0; i < SPEC_MAX_SOURCES; i++) {
		const struct slot *at = &k->slots[i];
		const struct spec_served *row = NULL;
		cleanup_free char *resource = NULL, *text = NULL;

		{
			lock_scope(&k->lock);
			if (at->refused) {
				row = at->probing;
				text = text_copy(at->refused);
			}
		}
		if (!row)
			continue;
		resource = spec_asked_resource(row->plural, row->api_version);
		watches_print_refused(list, "list", resource, "jobs of this kind are not shown",
				      text);
	}
}
