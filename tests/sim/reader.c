/* SPDX-License-Identifier: MIT */
/*
 * Those who read logs, at any moment. A line is "UID NUMBER", so of each byte it is known which pod has printed it:
 *
 *	of a pod	its lines from the first, each once, up to one of those that it has printed by now; some are
 *			missing only where its node had lost them; what was read once, or followed, is read again
 *	merged		the same of each pod whose lines it has, behind their prefix; and what was read once is read
 *			again, as long as the machine stays up
 *
 * In the end a job that is there shows all that its last pod has printed, if its node still has it; and what was read
 * of a job that kxfs has launched is in jobs/ or history/, whoever has its name by now.
 */
#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define READS	    12
#define READ_EACH_S 25
#define UID	    36 /* characters */
#define MOST_PODS   16
#define PREFIX	    "main/0 "

/* How far a log has shown a pod. */
struct seen {
	char uid[UID + 1];
	size_t next;
};

/* What a merged log, or that of a pod, was when it was read last. */
struct known {
	char *text;
	struct known *next;
};

static struct known *all_known;

/* Is LINE the begin of what S was to show next? A pod that goes in the middle of a line leaves such a one. */
static bool is_cut(const struct seen *s, const char *line)
{
	cleanup_free char *next = text_print("%s %zu", s->uid, s->next);

	return strlen(line) < strlen(next) && strncmp(next, line, strlen(line)) == 0;
}

/*
 * A crash of the machine, or a disk that took a part of what was to be written, has cut the log in the middle of a line
 * of S, and its node has lost the rest: LINE goes on with a later one, which is returned.
 */
static const char *behind_a_tear(const struct seen *s, const char *line)
{
	const char *last = strrchr(line, ' ');
	const char *tail = last && last - line > UID ? last - UID : line;
	cleanup_free char *torn = mem_copy(line, (size_t)(tail - line));
	struct seen of = *s;
	struct server_pod pod;

	if ((!sim_faults.power_cut && !sim_faults.disk_error) || tail == line)
		return line;
	snprintf(of.uid, sizeof(of.uid), "%.*s", UID, tail);
	return server_pod(of.uid, &pod) && pod.kept > s->next && is_cut(&of, torn) ? tail : line;
}

/* LINE, without its end, may be whole or not. In a merged log each has an end. */
static void check_line(const char *path, const char *line, bool whole, bool merged, const char *job,
		       struct seen *seen)
{
	cleanup_free char *name = text_print("%s-main-0-0", job), *full = NULL;
	struct server_pod pod;
	struct seen *s = seen;
	char uid[UID + 1] = "";
	size_t number = 0;

	if (strlen(line) < UID + 2 && (!whole || merged))
		return; /* too little to say */
	while (*s->uid && s[1].uid[0])
		s++;
	line = behind_a_tear(s, line);
	s = seen;
	snprintf(uid, sizeof(uid), "%s", line);
	if (!server_pod(uid, &pod) || !streq(pod.name, name))
		sim_fail("%s has a line that no pod of it has printed: %s", path, line);
	while (*s->uid && !streq(s->uid, uid))
		s++;
	if (s == seen + MOST_PODS - 1)
		sim_fail("%s has too many pods", path);
	snprintf(s->uid, sizeof(s->uid), "%s", uid);
	number = strtoull(line + UID, NULL, 10);
	full = text_print("%s %zu", uid, number);
	if (!whole || (merged && !pod.there && is_cut(s, line)))
		return;
	if (!streq(full, line) || number >= pod.n)
		sim_fail("%s has a line that was not printed so: %s", path, line);
	if (number < s->next)
		sim_fail("%s has a line twice, or late: %s", path, line);
	if (number > s->next && !(pod.kept > s->next))
		sim_fail("%s lacks what comes before: %s", path, line);
	s->next = number + 1;
}

/* Whose lines a text has: those of one pod, of a replica's pods one after the other, or of all with their prefix. */
enum form { ONE_POD, ONE_REPLICA, MERGED };

/* TEXT is what PATH, a log of JOB, shows. SEEN, of MOST_PODS, is what it has of each pod. */
static void check_text(const char *path, const char *text, enum form form, const char *job,
		       struct seen *seen)
{
	bool merged = form == MERGED;
	const char *prefix = merged ? PREFIX : "";
	const char *at = text, *nl;

	while (*at) {
		cleanup_free char *line = NULL;

		nl = strchr(at, '\n');
		line = mem_copy(at, nl ? (size_t)(nl - at) : strlen(at));
		if (strncmp(line, prefix, strlen(prefix)) == 0)
			check_line(path, line + strlen(prefix), nl, merged, job, seen);
		else if (nl)
			sim_fail("%s has a line without its prefix: %s", path, line);
		at = nl ? nl + 1 : at + strlen(at);
	}
	if (form == ONE_POD && *seen[1].uid)
		sim_fail("%s has lines of two pods, %s and %s", path, seen[0].uid, seen[1].uid);
}

/*
 * TEXT, a merged log or that of a pod, begins with what was read before of the same: both begin with the same pod,
 * whatever the name of the job is by now. It is taken over.
 */
static void check_known(const char *path, char *text)
{
	size_t n = strlen(text), head = UID;
	struct known *k = all_known;

	if (strncmp(text, PREFIX, strlen(PREFIX)) == 0)
		head += strlen(PREFIX);
	if (n < head) {
		free(text);
		return;
	}
	while (k && strncmp(k->text, text, head) != 0)
		k = k->next;
	if (!k) {
		k = new0(struct known);
		*k = (struct known){text_copy(""), all_known};
		all_known = k;
	}
	n = min_of(strlen(k->text), strlen(text));
	if (!sim_faults.power_cut && strncmp(k->text, text, n) != 0)
		sim_fail("%s has changed", path);
	if (strlen(text) > n) {
		free(k->text);
		k->text = text;
	} else {
		free(text);
	}
}

/* The same of the first pod in TEXT, unless somebody else has made it: its log is fetched anew where it was lost. */
static void check_known_pod(const char *path, const char *text)
{
	cleanup_free char *uid = mem_copy(text, min_of(strlen(text), (size_t)UID));
	const char *end = text;
	struct server_pod pod;

	if (!server_pod(uid, &pod) || pod.foreign)
		return;
	while (strncmp(end, uid, UID) == 0)
		end += strcspn(end, "\n") + (strchr(end, '\n') ? 1 : 0);
	check_known(path, mem_copy(text, (size_t)(end - text)));
}

/* Read all logs of JOB. *RET_LAST: the pod of the last attempt, as its log shows it. */
static void read_job(const char *job, pid_t pid, struct seen *ret_last)
{
	static const char *const names[] = {"main-0/log.0", "main-0/log", "log"};

	*ret_last = (struct seen){0};
	for (size_t i = 0; i < array_size(names); i++) {
		cleanup_free char *path = text_print("jobs/%s/%s", job, names[i]), *text = NULL;
		struct seen seen[MOST_PODS] = {0};
		int err = kernel_read(pid, path, &text);

		sim_say("reader", "%s: %s", path, err ? strerror(-err) : "read");
		if (err)
			continue;
		check_text(path, text, i == 2 ? MERGED : ONE_POD, job, seen);
		if (i == 1)
			*ret_last = seen[0];
		if (i == 2)
			check_known(path, take_ptr(text));
		else
			check_known_pod(path, text);
	}
}

void readers_followed(const char *path, const char *text, bool merged, bool ended, const char *job)
{
	struct seen seen[MOST_PODS] = {0};
	struct server_pod pod;

	check_text(path, text, merged ? MERGED : ONE_REPLICA, job, seen);
	/* A line that the disk then refuses, and that can't be had again, is only taken back from who reads on. */
	if (merged)
		check_known(path, text_copy(text));
	else if (ended)
		check_known_pod(path, text);
	for (const struct seen *s = seen; ended && *s->uid; s++)
		if (server_pod(s->uid, &pod) && pod.there && s->next < pod.n && pod.kept <= s->next)
			sim_fail("%s ends with line %zu of %zu", path, s->next, pod.n);
}

static void reader(void *data)
{
	pid_t pid = kernel_fork();

	(void)data;
	for (unsigned i = 0; i < READS; i++) {
		cleanup_free char *job = NULL;
		struct seen last;
		size_t n;

		sim_sleep(sim_random(SIM_READERS) % (READ_EACH_S * SIM_S));
		n = server_n_jobs();
		if (!sim_fs || n == 0)
			continue;
		job = text_copy(server_job(sim_random(SIM_READERS) % n));
		read_job(job, pid, &last);
	}
}

void readers_begin(void)
{
	for (unsigned i = 0; i < 2; i++)
		sim_task_start(SIM_WORLD, reader, NULL);
}

/* K, which was captured, is still there, whatever has its name by now. */
static void judge_known(const struct known *k, pid_t pid)
{
	cleanup_free char *uid = NULL, *job = NULL;
	struct server_pod pod;

	if (strncmp(k->text, PREFIX, strlen(PREFIX)) != 0)
		return;
	uid = mem_copy(k->text + strlen(PREFIX), UID);
	if (!server_pod(uid, &pod) || pod.foreign)
		return;
	job = mem_copy(pod.name, strlen(pod.name) - strlen("-main-0-0"));
	for (size_t i = 0; i < 3; i++) {
		cleanup_free char *path =
			i < 2 ? text_print(i ? "history/%s/log" : "jobs/%s/log", job)
			      : text_print("history/%s~%.8s/log", job, pod.job);
		cleanup_free char *text = NULL;

		if (kernel_read(pid, path, &text) == 0 &&
		    strncmp(text, k->text, strlen(k->text)) == 0)
			return;
	}
	sim_fail("what the log of %s had shown is nowhere any more", job);
}

void readers_judge(void)
{
	pid_t pid = kernel_fork();

	for (size_t i = 0; i < server_n_jobs(); i++) {
		cleanup_free char *job = text_copy(server_job(i));
		struct server_pod pod;
		struct seen last;
		bool foreign;

		read_job(job, pid, &last);
		/* While the folder of another of its name is moved away, who opens it finds nothing. */
		if (!*last.uid) {
			sim_sleep(SIM_S);
			read_job(job, pid, &last);
		}
		if (*last.uid && server_pod(last.uid, &pod) && pod.there && pod.ended &&
		    last.next < pod.n && pod.kept <= last.next)
			sim_fail("the log of %s ends with line %zu of %zu", job, last.next, pod.n);
		/* A folder that the disk does not let be moved away stays, and is said. */
		if (!*last.uid && server_job_printed(job, &foreign) &&
		    !(foreign && sim_faults.disk_error))
			sim_fail("the log of %s is empty", job);
	}
	for (const struct known *k = all_known; k && !sim_faults.power_cut; k = k->next)
		judge_known(k, pid);
}
