/* SPDX-License-Identifier: MIT */
/*
 * Those who read logs, at any moment. A line is "UID NUMBER", so of each byte it is known which run of which pod has
 * printed it:
 *
 *	of an attempt	lines of one run from the first, each once, up to one of those that it has printed by now; some
 *			are missing only where its node had lost them; what was read once, or followed, is read again
 *	merged		the same of each run whose lines it has, behind their prefix; and what was read once is read
 *			again, as long as the machine stays up
 *
 * In the end a job that is there shows all that its last run has printed, and the one before in the same pod, if its
 * node still has it; and what was read of a job that kxfs has launched is in jobs/ or history/, whoever has its name by
 * now.
 */
#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define READS	    12
#define READ_EACH_S 25
#define UID	    SERVER_UID
#define MOST_RUNS   64 /* of a job */
#define MOST_LOGS   6  /* log.0 and so on that are read */
#define PREFIX	    "main/0 "

/* How far a log has shown a run. */
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

/* Whose lines a text has: those of one run, of a replica's runs one after the other, or of all with their prefix. */
enum form { ONE_RUN, ONE_REPLICA, MERGED };

/* Is LINE the begin of what S was to show next, or all of it but its end? */
static bool is_begun(const struct seen *s, const char *line)
{
	cleanup_free char *next = text_print("%s %zu", s->uid, s->next);

	return strncmp(next, line, strlen(line)) == 0;
}

/* The same, but not all of it. A pod that goes in the middle of a line leaves such a one. */
static bool is_cut(const struct seen *s, const char *line)
{
	cleanup_free char *next = text_print("%s %zu", s->uid, s->next);

	return is_begun(s, line) && strlen(line) < strlen(next);
}

/*
 * A crash of the machine, a disk that took a part of what was to be written, or a stream that was cut has left the log
 * in the middle of a line of S, and its node has lost the rest: LINE goes on with a later one, which is returned.
 */
static const char *behind_a_tear(enum form form, const struct seen *s, const char *line)
{
	const char *last = strrchr(line, ' ');
	const char *tail = last && last - line > UID ? last - UID : line;
	cleanup_free char *torn = mem_copy(line, (size_t)(tail - line));
	struct seen of = *s;
	struct server_run run;

	snprintf(of.uid, sizeof(of.uid), "%.*s", UID, tail);
	if (tail == line || !server_run(of.uid, &run))
		return line;
	/* Behind what a run had printed of a line when it ended, as far as it is known, comes the next one's. */
	if (form == ONE_REPLICA && !streq(of.uid, s->uid))
		return strlen(torn) < UID || is_begun(s, torn) ? tail : line;
	return run.kept > s->next && is_begun(&of, torn) ? tail : line;
}

/* LINE, without its end, may be whole or not. In a merged log each has an end. */
static void check_line(const char *path, const char *line, bool whole, enum form form,
		       const char *job, struct seen *seen)
{
	bool merged = form == MERGED;
	cleanup_free char *name = text_print("%s-main-0-0", job), *full = NULL;
	struct server_run run;
	struct seen *s = seen;
	char uid[UID + 1] = "";
	size_t number = 0;

	if ((strlen(line) < UID + 2 && (!whole || merged)) || (!whole && !strchr(line, ' ')))
		return; /* too little to say */
	while (*s->uid && s[1].uid[0])
		s++;
	line = behind_a_tear(form, s, line);
	s = seen;
	snprintf(uid, sizeof(uid), "%s", line);
	if (!server_run(uid, &run) || !streq(run.name, name))
		sim_fail("%s has a line that no pod of it has printed: %s", path, line);
	while (*s->uid && !streq(s->uid, uid))
		s++;
	if (s == seen + MOST_RUNS - 1)
		sim_fail("%s has too many runs", path);
	snprintf(s->uid, sizeof(s->uid), "%s", uid);
	number = strtoull(line + UID, NULL, 10);
	full = text_print("%s %zu", uid, number);
	if (!whole || (merged && !run.there && is_cut(s, line)))
		return;
	if (!streq(full, line) || number >= run.n)
		sim_fail("%s has a line that was not printed so: %s", path, line);
	if (number < s->next)
		sim_fail("%s has a line twice, or late: %s", path, line);
	if (number > s->next && !(run.kept > s->next))
		sim_fail("%s lacks what comes before: %s", path, line);
	s->next = number + 1;
}

/* TEXT is what PATH, a log of JOB, shows. SEEN, of MOST_RUNS, is what it has of each run. */
static void check_text(const char *path, const char *text, enum form form, const char *job,
		       struct seen *seen)
{
	bool merged = form == MERGED;
	const char *prefix = merged ? PREFIX : "";
	const char *at = text, *nl;

	while (*at) {
		cleanup_free char *line = NULL;

		nl = strchr(at, '\n');
/* OF begins with its replica, as is_of has it. */
		line = mem_copy(at, nl ? (size_t)(nl - at) : strlen(at));
		if (strncmp(line, prefix, strlen(prefix)) == 0)
			check_line(path, line + strlen(prefix), nl, form, job, seen);
		else if (nl)
			sim_fail("%s has a line without its prefix: %s", path, line);
		at = nl ? nl + 1 : at + strlen(at);
	}
	if (form == ONE_RUN && *seen[1].uid && !(sim_machine && sim_faults.power_cut))
		sim_fail("%s has lines of two runs, %s and %s", path, seen[0].uid, seen[1].uid);
}

/*
 * TEXT, a merged log or that of a run, begins with what was read before of the same: both begin with the same run,
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

/* The same of the first run in TEXT, unless somebody else has made it: its log is fetched anew where it was lost. */
static void check_known_run(const char *path, const char *text)
{
	cleanup_free char *uid = mem_copy(text, min_of(strlen(text), (size_t)UID));
	const char *end = text;
	struct server_run run;

	if (!server_run(uid, &run) || run.foreign)
		return;
	while (strncmp(end, uid, UID) == 0)
		end += strcspn(end, "\n") + (strchr(end, '\n') ? 1 : 0);
	check_known(path, mem_copy(text, (size_t)(end - text)));
}

/* Read NAME, a log of JOB. SEEN is filled in as in check_text. */
static void read_log(const char *job, const char *name, pid_t pid, struct seen *seen)
{
	cleanup_free char *path = text_print("jobs/%s/%s", job, name), *text = NULL;
	bool merged = streq(name, "log");
	int err = kernel_read(pid, path, &text);

	memset(seen, 0, MOST_RUNS * sizeof(*seen));
	sim_say("reader", "%s: %s", path, err ? strerror(-err) : "read");
	if (err)
		return;
	check_text(path, text, merged ? MERGED : ONE_RUN, job, seen);
	if (merged)
		check_known(path, take_ptr(text));
	else
		check_known_run(path, text);
}

/* Read the logs of JOB, of the earlier attempts N from FIRST on. LAST, MERGED: of the last one, and of all in one. */
static void read_job(const char *job, pid_t pid, unsigned first, unsigned n, struct seen *last,
		     struct seen *merged)
{
	for (unsigned i = first; i < first + n; i++) {
		cleanup_free char *name = text_print("main-0/log.%u", i);

		read_log(job, name, pid, merged);
	}
	read_log(job, "main-0/log", pid, last);
	read_log(job, "log", pid, merged);
}

void readers_followed(const char *path, const char *text, bool merged, bool ended, const char *job)
{
	struct seen seen[MOST_RUNS] = {0};
	struct server_run run;

	check_text(path, text, merged ? MERGED : ONE_REPLICA, job, seen);
	/* A line that the disk then refuses, and that can't be had again, is only taken back from who reads on. */
	if (merged)
		check_known(path, text_copy(text));
	else if (ended)
		check_known_run(path, text);
	for (const struct seen *s = seen; ended && *s->uid; s++)
		if (server_run(s->uid, &run) && run.there && s->next < run.n && run.kept <= s->next)
			sim_fail("%s ends with line %zu of %zu", path, s->next, run.n);
}

static void reader(void *data)
{
	pid_t pid = kernel_fork();

	(void)data;
	for (unsigned i = 0; i < READS; i++) {
		struct seen last[MOST_RUNS], merged[MOST_RUNS];
		cleanup_free char *job = NULL;
		unsigned first;
		size_t n;

		sim_sleep(sim_random(SIM_READERS) % (READ_EACH_S * SIM_S));
		n = server_n_jobs();
		if (!sim_fs || n == 0)
			continue;
		job = text_copy(server_job(sim_random(SIM_READERS) % n));
		first = sim_faults.rerun ? sim_below(SIM_READERS, MOST_LOGS) : 0;
		read_job(job, pid, first, 1, last, merged);
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
	struct server_run run;

	if (strncmp(k->text, PREFIX, strlen(PREFIX)) != 0)
		return;
	uid = mem_copy(k->text + strlen(PREFIX), UID);
	/* Nothing is shown of a job of a machine whose record could not be read, and that is said. */
	if (!server_run(uid, &run) || run.foreign || (sim_machine && sim_faults.disk_error))
		return;
	job = mem_copy(run.name, strlen(run.name) - strlen("-main-0-0"));
	for (size_t i = 0; i < 3; i++) {
		cleanup_free char *path =
			i < 2 ? text_print(i ? "history/%s/log" : "jobs/%s/log", job)
			      : text_print("history/%s~%.8s/log", job, run.job);
		cleanup_free char *text = NULL;

		if (kernel_read(pid, path, &text) == 0 &&
		    strncmp(text, k->text, strlen(k->text)) == 0)
			return;
	}
	sim_fail("what the log of %s had shown is nowhere any more", job);
}

/* SEEN has all that the run UID has printed, as far as its node still has it. */
static bool has_all(const struct seen *seen, const char *uid, const struct server_run *run)
{
	while (*seen->uid && !streq(seen->uid, uid))
		seen++;
	return seen->next >= run->n || run->kept > seen->next;
}

static void judge_job(const char *job, pid_t pid)
{
	struct seen last[MOST_RUNS], merged[MOST_RUNS];
	char uid[UID + 1];
	struct server_run run;

	read_job(job, pid, 0, sim_faults.rerun ? MOST_LOGS : 1, last, merged);
	/* While the folder of another of its name is moved away, who opens it finds nothing. */
	if (!*last->uid) {
		sim_sleep(SIM_S);
		read_job(job, pid, 0, 1, last, merged);
	}
	/* A folder that the disk does not let be moved away stays, and is said. */
	if (!server_job_run(job, 0, uid, &run) || (run.foreign && sim_faults.disk_error))
		return;
	if (run.n > run.kept && !streq(last->uid, uid))
		sim_fail("the log of %s shows %s, and not its last run", job,
			 *last->uid ? last->uid : "nothing");
	if (run.ended && !has_all(last, uid, &run))
		sim_fail("the log of %s ends with line %zu of %zu", job, last->next, run.n);
	if (!run.foreign && server_job_run(job, 1, uid, &run) && !has_all(merged, uid, &run))
		sim_fail("the log of %s lacks an end of the run before the last", job);
}

void readers_judge(void)
{
	pid_t pid = kernel_fork();

	for (size_t i = 0; i < server_n_jobs(); i++) {
		cleanup_free char *job = text_copy(server_job(i));

		judge_job(job, pid);
	}
	for (const struct known *k = all_known; k && !sim_faults.power_cut; k = k->next)
		judge_known(k, pid);
}
