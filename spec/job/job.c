/* SPDX-License-Identifier: MIT */
/*
 * The model of a job at one moment, and the texts that show it to users:
 *
 *   job.c         struct spec_job: a job, its roles, its replicas and their logs
 *   status.c      the texts of state, status (also of a replica), status.json, ctl and changes
 *   why.c         the text of why
 *   usage.c       the text of usage: the resources that the job has requested and used
 *   last_words.c  the last output of a program before it failed
 *   list.c        the texts of list and list.jsonl: all jobs of a directory
 *   snapshot.c    writes a job to disk, and reads it back
 *
 * A mount may show ten thousand jobs. To save memory, spec_job_pack moves a job and all that it
 * owns into one block, and all empty strings are one string. Without packing, the many short
 * strings of a job would need twice the memory. Copies of a job share only the JSON of its object.
 */
#include "spec/job/job.h"

#include <assert.h>
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/name.h"
#include "spec/job/job_tree.h"
#include "spec/yaml/field.h"

const char *const spec_state_words[SPEC_N_STATES + 1] = {SPEC_STATE_WORDS("")};

const char *spec_state_name(enum spec_state state)
{
	assert((unsigned)state < SPEC_N_STATES);
	return spec_state_words[state];
}

bool spec_state_is_final(enum spec_state state)
{
	return state == SPEC_SUCCEEDED || state == SPEC_FAILED || state == SPEC_CANCELLED;
}

static const struct {
	const char *name;
	const char *argument;
} actions[SPEC_N_ACTIONS] = {
	[SPEC_SUSPEND] = {"suspend"},
	[SPEC_RESUME] = {"resume"},
	[SPEC_RESTART] = {"restart"},
	[SPEC_TERMINATE] = {"terminate"},
	[SPEC_RELEASE] = {"release"},
	[SPEC_QUEUE] = {"queue", "NAME"},
	[SPEC_PRIORITY] = {"priority", "CLASS"},
};

const char *spec_action_name(enum spec_action action)
{
	assert((unsigned)action < SPEC_N_ACTIONS);
	return actions[action].name;
}

const char *spec_action_argument(enum spec_action action)
{
	assert((unsigned)action < SPEC_N_ACTIONS);
	return actions[action].argument;
}

int spec_action_parse(const char *text, char **ret)
{
	size_t len = strcspn(text, " \t\n");
	const char *rest = text + len + strspn(text + len, " \t\n");

	*ret = NULL;
	if (streq(text, "abort"))
		return SPEC_SUSPEND;
	for (int i = 0; i < SPEC_N_ACTIONS; i++) {
		if (strlen(actions[i].name) != len || strncmp(text, actions[i].name, len) != 0)
			continue;
		if (!actions[i].argument)
			return *rest ? -EINVAL : i;
		/* kxfs writes the argument into a label, so it must be a valid label value. */
		if (!spec_name_is_object(rest) || strlen(rest) > SPEC_MAX_NAME)
			return -EINVAL;
		*ret = text_copy(rest);
		return i;
	}
	return -EINVAL;
}

/* The offsets of the strings that a job owns, and of those that a replica owns. */
#define JOB(name) offsetof(struct spec_job, name)
static const size_t job_texts[] = {
	JOB(id),	 JOB(uid),
	JOB(app),	 JOB(phase),
	JOB(reason),	 JOB(message),
	JOB(last_words), JOB(cause.text),
	JOB(obstacle),	 JOB(owner),
	JOB(backend),	 JOB(namespace),
	JOB(queue),	 JOB(submitter),
	JOB(submission), JOB(cluster_queue),
	JOB(flavors),	 JOB(priority_class),
};
#define REPLICA(name) offsetof(struct spec_replica, name)
static const size_t replica_texts[] = {REPLICA(name),	REPLICA(pod),	  REPLICA(node),
				       REPLICA(reason), REPLICA(message), REPLICA(blamed)};

static char **text_at(void *owner, size_t offset)
{
	return (char **)((char *)owner + offset);
}

struct spec_job *spec_job_new(size_t n_roles, size_t n_replicas)
{
	size_t replicas_at = sizeof(struct spec_job) + n_roles * sizeof(struct spec_role_status);
	struct spec_job *job = mem_zero(replicas_at + n_replicas * sizeof(struct spec_replica));

	job->refs = 1;
	job->ttl = -1;
	job->priority = SPEC_NO_PRIORITY;
	for (size_t i = 0; i < array_size(job_texts); i++)
		*text_at(job, job_texts[i]) = spec_empty();
	job->again = job->cause.reason = job->cause.advice = "";
	job->n_roles = (unsigned)n_roles;
	job->replicas = (void *)((char *)job + replicas_at);
	job->n_replicas = (unsigned)n_replicas;
	for (size_t i = 0; i < n_roles; i++)
		job->roles[i].name = spec_empty();
	for (size_t i = 0; i < n_replicas; i++) {
		for (size_t k = 0; k < array_size(replica_texts); k++)
			*text_at(&job->replicas[i], replica_texts[k]) = spec_empty();
		job->replicas[i].exit_code = -1;
	}
	return job;
}

void spec_log_lose_end(struct spec_log *log)
{
	log->gap += !log->lost_end;
	log->lost_end = true;
}

bool spec_job_has_ends(const struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		for (size_t j = 0; j < job->replicas[i].n_logs; j++)
			if (!job->replicas[i].logs[j].complete &&
			    !job->replicas[i].logs[j].lost_end)
				return false;
	return true;
}

void spec_replica_copy_log(struct spec_replica *r, const struct spec_log *from)
{
	const char *container = from->container ? from->container : "";
	struct spec_log log = {
		.complete = from->complete,
		.gap = from->gap,
		.lost_end = from->lost_end,
	};
	size_t at = r->n_logs;

	/* Put the log after older logs of its container. The main container's logs come first. */
	while (at > 0 && !streq(r->logs[at - 1].container, container))
		at--;
	if (at == 0 && *container)
		at = r->n_logs;
	spec_set(&log.key, from->key);
	spec_set(&log.container, container);
	r->logs = mem_grow(r->logs, r->n_logs + 1, sizeof(*r->logs));
	memmove(&r->logs[at + 1], &r->logs[at], (r->n_logs - at) * sizeof(*r->logs));
	r->logs[at] = log;
	r->n_logs++;
}

void spec_replica_add_log(struct spec_replica *r, const char *key, const char *container)
{
	const struct spec_log log = {.key = (char *)(uintptr_t)key,
				     .container = (char *)(uintptr_t)container};

	spec_replica_copy_log(r, &log);
}

char *spec_replica_log_prefix(const struct spec_replica *r)
{
	return text_print("%.*s/%u ", (int)(strrchr(r->name, '-') - r->name), r->name, r->id);
}

size_t spec_replica_logs_end(const struct spec_replica *r, size_t first)
{
	size_t end = first + 1;

	while (end < r->n_logs && streq(r->logs[end].container, r->logs[first].container))
		end++;
	return end;
}

char *spec_log_file(const char *container, size_t i, size_t n)
{
	const char *dot = *container ? "." : "";

	return i + 1 == n ? text_print("%s%slog", container, dot)
			  : text_print("%s%slog.%zu", container, dot, i);
}

/* Set *TO to a copy of FROM, or to NULL if FROM is NULL. */
static void set_copy(void *to, const void *from, size_t size)
{
	void *copy = from ? memcpy(mem_grow(NULL, 1, size), from, size) : NULL;

	free(*(void **)to);
	*(void **)to = copy;
}

void spec_replica_set_usage(struct spec_replica *r, const struct spec_usage *usage)
{
	set_copy(&r->usage, usage, sizeof(*usage));
}

void spec_role_set_request(struct spec_role_status *role, const struct spec_request *request)
{
	set_copy(&role->request, request, sizeof(*request));
}

const struct spec_job *spec_job_ref(const struct spec_job *job)
{
	struct spec_job *mutable = (struct spec_job *)(uintptr_t)job;

	__atomic_fetch_add(&mutable->refs, 1, __ATOMIC_RELAXED);
	return job;
}

/* --- transitions --- */

#define FIELD(name, type, ...) SPEC_FIELD(struct spec_transition, name, type, __VA_ARGS__)

static const struct spec_field fields[] = {
	FIELD(time, SPEC_FIELD_TIME),
	FIELD(state, SPEC_FIELD_WORD, .words = spec_state_words),
	FIELD(phase, SPEC_FIELD_TEXT),
	{0},
};

static void add_transition(struct spec_transitions *t, const struct spec_transition *one)
{
	struct spec_transition copy = {.time = one->time, .state = one->state};

	spec_set(&copy.phase, one->phase);
	if (t->v && t->n == SPEC_MAX_TRANSITIONS) {
		spec_unset(&t->v[0].phase);
		memmove(t->v, t->v + 1, --t->n * sizeof(*t->v));
	}
	t->v = mem_grow(t->v, t->n + 1, sizeof(*t->v));
	t->v[t->n++] = copy;
}

void spec_transitions_add(struct spec_transitions *t, enum spec_state state, const char *phase,
			  int64_t time)
{
	const struct spec_transition *last = t->n ? &t->v[t->n - 1] : NULL;
	const struct spec_transition one = {
		.time = last ? max_of(time, last->time) : time,
		.state = state,
		.phase = (char *)(uintptr_t)phase,
	};

	if (!last || last->state != state || !streq(last->phase, phase))
		add_transition(t, &one);
}

void spec_transitions_copy(struct spec_transitions *to, const struct spec_transitions *from)
{
	for (size_t i = 0; i < from->n; i++)
		add_transition(to, &from->v[i]);
}

void spec_transitions_clear(struct spec_transitions *t)
{
	for (size_t i = 0; i < t->n; i++)
		spec_unset(&t->v[i].phase);
	free(t->v);
	*t = (struct spec_transitions){0};
}

void spec_transitions_write(struct json_object *o, const struct spec_transitions *t)
{
	struct json_object *list = spec_tree_add(o, "transitions", spec_tree_list(t->n));

	for (size_t i = 0; i < t->n; i++)
		spec_fields_write(spec_tree_append(list, spec_tree_map()), fields, &t->v[i]);
}

int spec_transitions_read(const struct spec_value *o, struct spec_transitions *t)
{
	const struct spec_value *list = spec_read_member(o, "transitions");

	if (!list)
		return 0;
	if (list->type != SPEC_VALUE_LIST || list->n > SPEC_MAX_TRANSITIONS)
		return -EINVAL;
	for (size_t i = 0; i < list->n; i++) {
		struct spec_transition one = {0};
		int err = spec_fields_read(&list->items[i], fields, &one);

		if (err == 0)
			add_transition(t, &one);
		spec_unset(&one.phase);
		if (err < 0)
			return err;
	}
	return 0;
}

/* --- copies --- */

typedef void (*string_fn)(char **field, void *data);

static void each_string(struct spec_job *job, string_fn fn, void *data)
{
	for (size_t i = 0; i < array_size(job_texts); i++)
		fn(text_at(job, job_texts[i]), data);
	for (size_t i = 0; i < job->n_roles; i++)
		fn(&job->roles[i].name, data);
	for (size_t i = 0; i < job->n_replicas; i++) {
		struct spec_replica *r = &job->replicas[i];

		for (size_t k = 0; k < array_size(replica_texts); k++)
			fn(text_at(r, replica_texts[k]), data);
		for (size_t k = 0; k < r->n_logs; k++) {
			fn(&r->logs[k].key, data);
			fn(&r->logs[k].container, data);
		}
	}
	for (size_t i = 0; i < job->transitions.n; i++)
		fn(&job->transitions.v[i].phase, data);
}

/* *FIELD points to the text of another job. Replace it by a copy of this text. */
static void own_string(char **field, void *data)
{
	const char *of_other = *field;

	*field = NULL;
	spec_set(field, of_other);
}

static void free_string(char **field, void *data)
{
	spec_unset(field);
}

struct spec_job *spec_job_copy(const struct spec_job *from)
{
	struct spec_job *job = spec_job_new(from->n_roles, from->n_replicas);
	struct spec_replica *replicas = job->replicas;
	/* Copy SILENT and all later members, but not REFS: other threads may be changing it. */
	const size_t head = offsetof(struct spec_job, silent);

	memcpy((char *)job + head, (const char *)from + head, sizeof(*job) - head);
	job->revision = 0;
	job->replicas = replicas;
	for (size_t i = 0; i < from->n_roles; i++) {
		job->roles[i] = from->roles[i];
		job->roles[i].request = NULL;
		spec_role_set_request(&job->roles[i], from->roles[i].request);
	}
	for (size_t i = 0; i < from->n_replicas; i++) {
		const struct spec_replica *r = &from->replicas[i];

		replicas[i] = *r;
		replicas[i].usage = NULL;
		spec_replica_set_usage(&replicas[i], r->usage);
		replicas[i].logs = NULL;
		set_copy(&replicas[i].logs, r->n_logs ? r->logs : NULL,
			 r->n_logs * sizeof(*r->logs));
	}
	job->transitions = (struct spec_transitions){0};
	each_string(job, own_string, NULL);
	spec_transitions_copy(&job->transitions, &from->transitions);
	if (from->object)
		job->object = spec_text_ref(from->object);
	return job;
}

static void job_free(struct spec_job *job)
{
	if (!job->packed) {
		each_string(job, free_string, NULL);
		for (size_t i = 0; i < job->n_roles; i++)
			free(job->roles[i].request);
		for (size_t i = 0; i < job->n_replicas; i++) {
			free(job->replicas[i].usage);
			free(job->replicas[i].logs);
		}
		spec_transitions_clear(&job->transitions);
	}
	spec_text_unref(job->object);
	free(job);
}

/* --- packing --- */

/*
 * A packed job stores equal strings only once. To find them, packing compares each string with the
 * last N_RECENT different strings: adjacent replicas often have the same node or reason.
 */
#define N_RECENT 16

struct job_strings {
	char *recent[N_RECENT]; /* the last N_RECENT different strings */
	size_t n;		/* all strings that were put into RECENT, even if overwritten */
	size_t size;		/* bytes of all different strings, with their NULs */
	char *end;		/* where the next string will be stored */
};

static char *find_recent(const struct job_strings *s, const char *text)
{
	for (size_t i = 0; i < min_of(s->n, (size_t)N_RECENT); i++)
		if (streq(s->recent[i], text))
			return s->recent[i];
	return NULL;
}

static void count_string(char **field, void *data)
{
	struct job_strings *s = data;

	if (!**field || find_recent(s, *field))
		return;
	s->recent[s->n++ % N_RECENT] = *field;
	s->size += strlen(*field) + 1;
}

/* Copy N elements of SIZE bytes to *END, and move *END after the copy. */
static void *place(char **end, const void *from, size_t n, size_t size)
{
	void *to = *end;

	if (n)
		memcpy(to, from, n * size);
	*end += n * size;
	return to;
}

static void place_string(char **field, void *data)
{
	struct job_strings *s = data;
	char *same;

	if (!**field)
		return;
	same = find_recent(s, *field);
	*field = same ? same : place(&s->end, *field, strlen(*field) + 1, 1);
	if (!same)
		s->recent[s->n++ % N_RECENT] = *field;
}

struct spec_job *spec_job_pack(struct spec_job *from)
{
	size_t size = sizeof(*from) + from->n_roles * sizeof(*from->roles) +
		      from->n_replicas * sizeof(*from->replicas) +
		      from->transitions.n * sizeof(*from->transitions.v);
	struct job_strings counted = {0}, placed = {0};
	struct spec_job *job;
	char *end;

	assert(from->refs == 1);
	for (size_t i = 0; i < from->n_roles; i++)
		size += from->roles[i].request ? sizeof(*from->roles[i].request) : 0;
	for (size_t i = 0; i < from->n_replicas; i++)
		size += from->replicas[i].n_logs * sizeof(*from->replicas[i].logs) +
			(from->replicas[i].usage ? sizeof(*from->replicas[i].usage) : 0);
	each_string(from, count_string, &counted);
	end = mem_grow(NULL, size + counted.size, 1);
	/* Strings need no alignment, so they come last. */
	job = place(&end, from, 1, sizeof(*job));
	job->packed = true;
	place(&end, from->roles, job->n_roles, sizeof(*job->roles));
	job->replicas = place(&end, from->replicas, job->n_replicas, sizeof(*job->replicas));
	for (size_t i = 0; i < job->n_roles; i++) {
		struct spec_role_status *role = &job->roles[i];

		if (role->request)
			role->request = place(&end, role->request, 1, sizeof(*role->request));
	}
	for (size_t i = 0; i < job->n_replicas; i++) {
		struct spec_replica *r = &job->replicas[i];

		if (r->usage)
			r->usage = place(&end, r->usage, 1, sizeof(*r->usage));
		r->logs = place(&end, r->logs, r->n_logs, sizeof(*r->logs));
	}
	job->transitions = (struct spec_transitions){
		.v = place(&end, from->transitions.v, from->transitions.n,
			   sizeof(*from->transitions.v)),
		.n = from->transitions.n,
	};
	placed.end = end;
	each_string(job, place_string, &placed);
	from->object = NULL;
	job_free(from);
	return job;
}

void spec_job_unref(const struct spec_job *job)
{
	struct spec_job *mutable = (struct spec_job *)(uintptr_t)job;
	unsigned before;

	if (!job)
		return;
	/*
	 * Release: this thread's reads of the job happen before the count decreases. Acquire: the
	 * reads of all other threads happen before this thread frees the job.
	 */
	before = __atomic_fetch_sub(&mutable->refs, 1, __ATOMIC_ACQ_REL);
	assert(before > 0);
	if (before == 1)
		job_free(mutable);
}

/* Set *RET to the number after NAME's last dash. Return false if it is missing or too large. */
static bool trailing_number(const char *name, size_t *ret)
{
	const char *dash = strrchr(name, '-');
	size_t n = dash ? strspn(dash + 1, "0123456789") : 0;

	if (n == 0 || n > 9 || dash[1 + n])
		return false;
	*ret = strtoul(dash + 1, NULL, 10);
	return true;
}

const char *spec_job_key(const struct spec_job *job)
{
	return job->own && *job->submission ? job->submission : job->uid;
}

bool spec_job_has_ended(const struct spec_job *job)
{
	return spec_state_is_final(job->state) && !job->suspended;
}

bool spec_job_is_over(const struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (!job->replicas[i].finished && !job->outlived)
			return false;
	return spec_job_has_ended(job);
}

const struct spec_replica *spec_job_replica(const struct spec_job *job, const char *name)
{
	size_t k;

	/*
	 * The number in NAME is usually the replica's index in its role, so try this index before
	 * the slow search below.
	 */
	if (trailing_number(name, &k)) {
		for (size_t i = 0; i < job->n_roles; i++) {
			const struct spec_role_status *role = &job->roles[i];

			if (k < role->n && streq(job->replicas[role->first + k].name, name))
				return &job->replicas[role->first + k];
		}
	}
	for (size_t i = 0; i < job->n_replicas; i++)
		if (streq(job->replicas[i].name, name))
			return &job->replicas[i];
	return NULL;
}

/* --- the replicas that `status` and `why` name --- */

bool spec_replica_waits_for_gang(const struct spec_replica *r)
{
	return r->state == SPEC_PENDING && (strstr(r->message, "tasks in gang") ||
					    strstr(r->message, "pod group is not ready"));
}

/*
 * True if another role is a later attempt of R's role. Argo names the attempts of a step NAME(0),
 * NAME(1), and a step inside of an attempt NAME(0)[0].STEP.
 */
static bool is_retried(const struct spec_job *job, const struct spec_replica *r)
{
	const char *name = job->roles[r->role].name;

	if (!*job->namespace) /* the roles of local jobs may have any names */
		return false;
	for (const char *p = strchr(name, '('); p; p = strchr(p + 1, '(')) {
		char *end;
		unsigned long k = strtoul(p + 1, &end, 10);
		cleanup_free char *next = text_print("%.*s(%lu)", (int)(p - name), name, k + 1);

		/*
		 * The roles are in the order in which their first pods were created. The next
		 * attempt of a step is usually soon after R's role, so begin the search there.
		 */
		for (unsigned i = 1; *end == ')' && i < job->n_roles; i++)
			if (strncmp(job->roles[(r->role + i) % job->n_roles].name, next,
				    strlen(next)) == 0)
				return true;
	}
	return false;
}

const struct spec_replica *spec_job_first_failed(const struct spec_job *job, size_t *ret_n)
{
	const struct spec_replica *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];
		bool sooner = !first ||
			      (r->finished && (!first->finished || r->finished < first->finished));

		if (r->state != SPEC_FAILED || !(sooner || ret_n) || is_retried(job, r))
			continue;
		n++;
		first = sooner ? r : first;
	}
	if (ret_n)
		*ret_n = n;
	return first;
}

bool spec_job_any(const struct spec_job *job, enum spec_state state)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (job->replicas[i].state == state)
			return true;
	return false;
}

const struct spec_replica *spec_job_first_waiting(const struct spec_job *job, size_t *ret_n)
{
	const struct spec_replica *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];

		if (r->state != SPEC_PENDING || !*r->message ||
		    streq(r->reason, SPEC_REASON_RESTARTING) || spec_replica_waits_for_gang(r))
			continue;
		first = first ? first : r;
		n += streq(r->reason, first->reason);
	}
	if (ret_n)
		*ret_n = n;
	return first;
}
