/* SPDX-License-Identifier: MIT */
/*
 * Other users of the namespace, some of whom are malicious. The server validates metadata: names,
 * uids and owners are well-formed, and labels and annotations are text. All else in an object can
 * have any value ("Anybody may make an object that is larger or deeper than all others",
 * docs/facts.md). These users create:
 *
 *  a copy   a job with the contents of an existing job, including the UUID of the launch, under
 *           another name, often a similar one. It runs like any other job
 *  a pod    with the labels and annotations of a job's pod ("Anybody can copy labels"). It prints
 *           lines. Usually the job is not its controller: the pod has no owner, another owner, or
 *           the job only as an owner with `controller: false`. Sometimes the job is its
 *           controller, but does not have the replica that the pod names
 *  a job    with fields of a wrong type, or an unexpected value
 *  an event about a job or a pod, also with fields of a wrong type or unexpected values
 *  words    a termination message with unexpected characters
 *  notes    thousands of labels or annotations of a job
 *
 * The modules that check all jobs also check these: kxfs deletes only jobs of its users (server.c),
 * no log has a line of another job's pod (reader.c), no text moves the cursor of a terminal
 * (looker.c), and lists show what the server has (waiter.c).
 */
#include <stdio.h>

#include "spec/base/mem.h"
#include "tests/sim/cluster.h"

#define ACTS   16
#define EACH_S 30
#define NOTES  3000 /* labels or annotations */
#define LONG   20000
#define NESTED 150
#define CHANGE 4 /* at most this many values of an object are changed at once */

static struct object nobody = {.in = N_COLLECTIONS,
			       .name = (char *)(uintptr_t) "nobody",
			       .phase = ""};
static unsigned n_made;
static size_t bytes; /* the number of bytes that these users have added to objects */

/* --- unexpected values --- */

/*
 * Strings that contain a line break, a cursor movement or a zero byte, that look like a path or a
 * format, or that are not valid UTF-8.
 */
static const char *const words[] = {
	"two\\nlines",
	"a\\ttab",
	"\\u001b[2J\\u001b[1;31m",
	"a \\u0000 zero",
	"\\r\\u0008\\u007f\\u009b",
	"../../../etc/passwd",
	"\\ud800",
	"%s%n%s",
	"-",
	"",
};

static struct json_object *word(void)
{
	cleanup_free char *text =
		text_print("\"%s\"", words[sim_below(SIM_HOSTILE, array_size(words))]);

	return json_tokener_parse(text);
}

static struct json_object *long_word(void)
{
	cleanup_free char *text = mem_zero(LONG + 1);

	memset(text, 'x', LONG);
	return json_object_new_string(text);
}

static struct json_object *nested(void)
{
	struct json_object *ret = json_object_new_array();

	for (unsigned i = 0; i < NESTED; i++) {
		struct json_object *outer = json_object_new_array();

		json_object_array_add(outer, ret);
		ret = outer;
	}
	return ret;
}

static struct json_object *absurd(void)
{
	static const char *const values[] = {
		"null",
		"true",
		"[]",
		"{}",
		"-1",
		"9223372036854775807",
		"0.5",
		"1e99",
		"[1]",
		"4294967296",
		"{\"a\":{\"b\":1}}",
		"[null,{\"name\":7}]",
	};
	unsigned what = sim_below(SIM_HOSTILE, 10);

	if (what < 5)
		return word();
	if (what == 5)
		return long_word();
	if (what == 6)
		return nested();
	return json_tokener_parse(values[sim_below(SIM_HOSTILE, array_size(values))]);
}

/* Replace one value in O, at most DEEP levels below O. */
static void spoil(struct json_object *o, unsigned deep)
{
	bool map = json_object_is_type(o, json_type_object);
	bool list = json_object_is_type(o, json_type_array);
	size_t n = map	  ? (size_t)json_object_object_length(o)
		   : list ? json_object_array_length(o)
			  : 0;
	size_t at = 0, chosen;
	struct json_object *v = NULL;
	cleanup_free char *name = NULL;

	if (n == 0)
		return;
	chosen = sim_random(SIM_HOSTILE) % n;
	if (list) {
		v = json_object_array_get_idx(o, chosen);
	} else {
		json_object_object_foreach(o, key, value)
			if (at++ == chosen) {
				name = text_copy(key);
				v = value;
			}
	}
	if (deep &&
	    (json_object_is_type(v, json_type_object) || json_object_is_type(v, json_type_array)) &&
	    sim_chance(SIM_HOSTILE, 800))
		return spoil(v, deep - 1);
	if (list)
		json_object_array_put_idx(o, chosen, absurd());
	else
		json_object_object_add(o, name, absurd());
}

static size_t size_of(const struct object *o)
{
	return strlen(json_print(o->json));
}

/* Send an event for O, which has changed. Before the change, O's text had BEFORE bytes. */
static void changed(struct object *o, size_t before)
{
	bytes += max_of(size_of(o), before) - before;
	object_changed(o, "MODIFIED");
}

/* Replace an annotation by any text, or a label by a valid value that its reader may not expect. */
static void spoil_notes(struct json_object *meta)
{
	static const char *const labels[] = {"",    "0",    "99999999999", "0x7f",
					     "a.b", "NULL", "main-0",	   "-1x"};
	bool label = sim_chance(SIM_HOSTILE, 500);
	struct json_object *notes = json_at(meta, label ? "labels" : "annotations");
	size_t n = (size_t)json_object_object_length(notes), at = 0;
	size_t chosen = n ? sim_random(SIM_HOSTILE) % n : 0;
	cleanup_free char *name = NULL;

	json_object_object_foreach(notes, key, value)
		if (value && at++ == chosen)
			name = text_copy(key);
	if (!name)
		return;
	if (label)
		json_put(notes, name, labels[sim_below(SIM_HOSTILE, array_size(labels))]);
	else
		json_object_object_add(notes, name,
				       sim_chance(SIM_HOSTILE, 800) ? word() : long_word());
}

/* Replace some values of O. */
static void spoil_object(struct object *o)
{
	size_t before = size_of(o);
	static const char *const parts[] = {"metadata", "spec", "status", "involvedObject"};
	unsigned n = 1 + sim_below(SIM_HOSTILE, CHANGE);

	for (unsigned i = 0; i < n; i++) {
		const char *part = parts[sim_below(SIM_HOSTILE, array_size(parts))];
		struct json_object *at;

		if (!json_object_object_get_ex(o->json, part, &at))
			continue;
		if (streq(part, "metadata"))
			spoil_notes(at);
		else if (o->in != PODS && sim_chance(SIM_HOSTILE, 100))
			json_object_object_add(o->json, part, absurd());
		else
			spoil(at, 8);
	}
	changed(o, before);
}

static void note(struct object *o)
{
	static const char *const maps[] = {"labels", "annotations"};
	struct json_object *notes = json_at(json_at(o->json, "metadata"),
					    maps[sim_below(SIM_HOSTILE, array_size(maps))]);
	unsigned n = 1 + sim_below(SIM_HOSTILE, NOTES);
	size_t before = size_of(o);

	for (unsigned i = 0; i < n; i++) {
		char key[32];

		snprintf(key, sizeof(key), "example.com/note-%u", i);
		json_object_object_add(notes, key, word());
	}
	changed(o, before);
}

/* --- their objects --- */

/* Choose an existing object of the collection IN that is not hostile, or return NULL. */
static struct object *choose(enum collection in)
{
	size_t n = 0;
	struct object *ret = NULL, *o;

	for (size_t k = 0; (o = object_at(k)); k++)
		if (o->in == in && !o->gone && !o->hostile && !o->deleted &&
		    sim_random(SIM_HOSTILE) % ++n == 0)
			ret = o;
	return ret;
}

/* Create a hostile object called NAME from JSON, and take ownership of JSON. */
static struct object *make(const struct resource *of, struct json_object *json, const char *name)
{
	struct object *o;

	json_put(json_at(json, "metadata"), "name", name);
	o = object_add(of, json);
	o->hostile = o->foreign = true;
	o->job = &nobody;
	n_made++;
	bytes += size_of(o);
	return o;
}

static struct json_object *copy_of(const struct object *o)
{
	return json_parse(json_print(o->json));
}

/*
 * Return a copy of JOB for a job called NAME. In an AppWrapper, replace JOB's name everywhere,
 * because the names of its items contain it.
 */
static struct json_object *renamed(const struct object *job, const char *name)
{
	const char *text = json_print(job->json), *at;
	size_t n = strlen(job->name), len;
	cleanup_free char *ret = NULL;
	FILE *f;

	if (!streq(job->of->kind, "AppWrapper"))
		return copy_of(job);
	f = text_stream(&ret, &len);
	for (; (at = strstr(text, job->name)); text = at + n)
		fprintf(f, "%.*s%s", (int)(at - text), text, name);
	fputs(text, f);
	text_stream_close(f);
	return json_parse(ret);
}

/* --- what they do --- */

/* Create a copy of a job under a similar name. Its controller treats it like any other job. */
static void copy_near(void)
{
	const struct object *job = choose(JOBS);
	struct json_object *json;
	cleanup_free char *name = NULL;
	unsigned how = sim_below(SIM_HOSTILE, 4);
	struct object *copy;

	if (!job)
		return;
	if (how == 0)
		name = text_print("%.*s", (int)strlen(job->name) - 1, job->name);
	else
		name = text_print("%s%s%s", how == 1 ? "x" : "", job->name,
				  how == 2   ? "-main-0"
				  : how == 3 ? "0"
					     : "");
	if (object_find(JOBS, name))
		return;
	json = renamed(job, name);
	json_object_object_del(json, "status");
	copy = make(job->of, json, name);
	copy->hostile = false;
	sim_log("other", "job %s is a copy of %s", name, job->name);
	cluster_begins(copy);
}

static void pod_over(void *data)
{
	struct object *pod = data;

	if (pod->gone || pod->over)
		return;
	pod_end(pod);
	pod_ended(pod, "Succeeded", 0);
}

/*
 * Change META, the metadata of a pod, so that it names a replica that its job does not have. Return
 * false if META names no replica.
 */
static bool misplace(struct json_object *meta)
{
	static const char *const indexes[] = {"volcano.sh/task-index",
					      "batch.kubernetes.io/job-completion-index"};
	static const char *const maps[] = {"labels", "annotations"};
	bool ret = false;

	for (size_t i = 0; i < array_size(maps) * array_size(indexes); i++) {
		struct json_object *notes = json_at(meta, maps[i / array_size(indexes)]);
		const char *index = indexes[i % array_size(indexes)];

		if (!json_object_object_get_ex(notes, index, NULL))
			continue;
		/* Don't remove the index: a pod without one is valid if its Job is not indexed. */
		json_put(notes, index,
			 i % array_size(indexes) == 0 && sim_chance(SIM_FORGED, 500) ? "none"
										     : "4000");
		ret = true;
	}
	return ret;
}

/* Change META, the metadata of a job's pod, so that the job is no longer its controller. */
static void disown(struct json_object *meta)
{
	unsigned how = sim_below(SIM_HOSTILE, 3);
	struct json_object *owners, *owner;

	if (how == 0 || !json_object_object_get_ex(meta, "ownerReferences", &owners)) {
		json_object_object_del(meta, "ownerReferences");
		return;
	}
	owner = json_object_array_get_idx(owners, 0);
	if (how == 1) {
		json_object_object_add(owner, "controller", json_object_new_boolean(false));
		return;
	}
	json_put(owner, "uid", "0badc0de-0000-4000-8000-000000000000");
	json_put(owner, "name", "another");
}

static void make_pod(void)
{
	const struct object *like = choose(PODS);
	struct json_object *json, *meta;
	cleanup_free char *name = NULL;
	struct object *pod;
	bool misplaced;

	if (!like)
		return;
	name = text_print("%sx%u", like->name, n_made);
	json = copy_of(like);
	json_object_object_del(json, "status");
	meta = json_at(json, "metadata");
	misplaced = sim_chance(SIM_FORGED, 150) && misplace(meta);
	if (!misplaced)
		disown(meta);
	pod = make(like->of, json, name);
	pod->container = like->container;
	pod->owner = misplaced ? like->job : NULL;
	sim_log("other", "pod %s looks like %s: %s", name, like->name,
		json_print(json_at(meta, "ownerReferences")));
	pod_begin(pod);
	sim_after(sim_delay(SIM_HOSTILE, 100 * SIM_S), SIM_WORLD, pod_over, pod);
	/*
	 * Don't change a misplaced pod further. A random value might name a replica that the job
	 * has, and the pod would be indistinguishable from a real one.
	 */
	if (!misplaced && sim_chance(SIM_HOSTILE, 300))
		spoil_object(pod);
	if (sim_chance(SIM_HOSTILE, 500))
		sim_after(sim_delay(SIM_HOSTILE, 200 * SIM_S), SIM_WORLD, pod_removed, pod);
}

static void make_absurd(void)
{
	const struct object *job = choose(JOBS);
	cleanup_free char *name = text_print("h%u", n_made);
	struct object *o;

	if (!job)
		return;
	o = make(job->of, copy_of(job), name);
	o->phase = "Pending";
	spoil_object(o);
	sim_log("other", "job %s is a malformed copy of %s", name, job->name);
}

static void tell_of(void)
{
	static const char *const reasons[] = {"FailedScheduling", "FailedCreate", "FailedMount",
					      "Killing"};
	const struct object *of = choose(sim_chance(SIM_HOSTILE, 500) ? JOBS : PODS);
	cleanup_free char *name = text_print("h%u", n_made), *text = NULL;
	struct json_object *json;
	char when[32];

	if (!of)
		return;
	text = text_print(
		"{\"involvedObject\":{\"kind\":\"%s\",\"namespace\":\"team\",\"name\":\"%s\",\"uid\":\"%s\"},"
		"\"reason\":\"%s\",\"message\":\"\",\"type\":\"Warning\",\"count\":1,"
		"\"firstTimestamp\":\"%s\",\"lastTimestamp\":\"%s\"}",
		json_get(of->json, "kind"), of->name, object_uid(of),
		reasons[sim_below(SIM_HOSTILE, array_size(reasons))], cluster_time(when), when);
	json = json_tokener_parse(text);
	json_object_object_add(json, "message", word());
	if (sim_chance(SIM_HOSTILE, 300))
		json_object_object_add(json, sim_chance(SIM_HOSTILE, 500) ? "reason" : "type",
				       word());
	if (sim_chance(SIM_HOSTILE, 300))
		spoil(json_at(json, "involvedObject"), 3);
	make(resource_of(EVENTS), json, name);
	sim_log("other", "event %s of %s: %s", name, of->name, json_print(json));
}

static void note_it(void)
{
	struct object *job = choose(JOBS);

	if (!job)
		return;
	sim_log("other", "adds labels or annotations to job %s", job->name);
	note(job);
}

/* Remove or change a hostile object. */
static void change(void)
{
	struct object *o = NULL, *at;
	size_t n = 0;

	for (size_t k = 0; (at = object_at(k)); k++)
		if (at->hostile && !at->gone && sim_random(SIM_HOSTILE) % ++n == 0)
			o = at;
	if (!o)
		return;
	if (o->in == PODS)
		return pod_removed(o);
	if (sim_chance(SIM_HOSTILE, 500))
		return object_drop(o);
	sim_log("other", "%s is changed", o->name);
	spoil_object(o);
}

static void other(void *data)
{
	static void (*const acts[])(void) = {copy_near,	  make_pod, make_pod, make_absurd,
					     make_absurd, tell_of,  note_it,  change};

	(void)data;
	for (unsigned i = 0; i < ACTS; i++) {
		sim_sleep(sim_random(SIM_HOSTILE) % (EACH_S * SIM_S));
		if (!server_is_down())
			acts[sim_below(SIM_HOSTILE, array_size(acts))]();
	}
}

/*
 * The garbage collector removes pods whose owner is gone ("A pod goes when its owner is gone",
 * docs/facts.md).
 */
void hostile_gone(const struct object *job)
{
	struct object *o;

	for (size_t k = 0; (o = object_at(k)); k++)
		if (o->in == PODS && o->owner == job)
			sim_after(sim_delay(SIM_FORGED, 10 * SIM_S), SIM_WORLD, pod_removed, o);
}

const char *hostile_words(void)
{
	if (!n_made || !sim_chance(SIM_HOSTILE, 500))
		return "";
	return words[sim_below(SIM_HOSTILE, array_size(words))];
}

size_t hostile_made(void)
{
	return n_made;
}

size_t hostile_bytes(void)
{
	return bytes;
}

bool hostile_is(const char *name)
{
	const struct object *o = *name == 'h' ? object_find(JOBS, name) : NULL;

	return o && o->hostile;
}

void hostile_begin(void)
{
	if (sim_machine || !sim_chance(SIM_HOSTILE, sim_faults.hostile))
		return;
	nobody.json = json_tokener_parse("{\"metadata\":{\"uid\":\"nobody\"}}");
	sim_task_start(SIM_WORLD, other, NULL);
}
