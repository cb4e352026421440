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

/* The bytes of "ROLE/K " with which LINE begins; 0: it does not. */
static size_t prefix_of(const char *line)
{
	size_t role = strspn(line, "abcdefghijklmnopqrstuvwxyz");
	size_t k = role && line[role] == '/' ? strspn(line + role + 1, "0123456789") : 0;

	return k && line[role + 1 + k] == ' ' ? role + 1 + k + 1 : 0;
}

/* Do WORDS begin with "ROLE/K " or "ROLE-K/" of REPLICA, "ROLE-K"? */
static bool is_of(const char *words, const char *replica)
{
	size_t role = strcspn(replica, "-"), k = strlen(replica + role + 1);

	return strncmp(words, replica, role) == 0 && strspn(words + role, "/-") == 1 &&
	       strncmp(words + role + 1, replica + role + 1, k) == 0 &&
	       strchr(" /", words[role + 1 + k]);
}

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
 * Is TEXT what one run after the other has begun to print of its first line? Their uids begin alike, as UID does. Or is
 * it what a run has begun to print of one line after the other?
 */
static bool are_begun(const char *text, const char *uid)
{
	size_t n = strlen(text), same = (size_t)(strrchr(uid, '-') - uid);
	bool begun = n == 0;

	for (n = min_of(n, (size_t)UID + 1); n > 0 && !begun; n--)
		begun = strncmp(text, uid, min_of(n, same)) == 0 && are_begun(text + n, uid);
	return begun;
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
	if (form == ONE_REPLICA && !streq(of.uid, s->uid)) {
		struct seen first = {0};
		struct server_run other;

		snprintf(first.uid, sizeof(first.uid), "%s", torn);
		if (strlen(torn) < UID || is_begun(s, torn) || are_begun(torn, of.uid))
			return tail;
		/* Of that run no whole line is there. */
		return !streq(first.uid, s->uid) && is_begun(&first, torn) &&
				       server_run(first.uid, &other) &&
				       streq(other.job_name, run.job_name)
			       ? tail
			       : line;
	}
	if (!streq(of.uid, s->uid))
		of.next = 0; /* it is the first line of its run */
	return (run.kept > of.next || (run.kept && sim_faults.power_cut)) &&
			       (is_begun(&of, torn) || are_begun(torn, of.uid))
		       ? tail
		       : line;
}

/* LINE, without its end, may be whole or not. In a merged log each has an end. */
/* OF begins with its replica, as is_of has it. */
static void check_line(const char *path, const char *line, bool whole, enum form form,
		       const char *job, struct seen *seen, const char *of)
{
	bool merged = form == MERGED;
	cleanup_free char *full = NULL;
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
	if (!server_run(uid, &run) || !streq(run.job_name, job))
		sim_fail("%s has a line that no pod of it has printed: %s", path, line);
	if (!is_of(of, run.replica))
		sim_fail("%s has a line of %s as one of %s", path, run.replica, of);
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
	/*
	 * A crash of the machine may have lost the times of the last lines. Where their node had no more than a few
	 * bytes then, which prove nothing, these come once more behind a gap (spec/logline/overlap.h).
	 */
	if (number < s->next && !(sim_faults.power_cut && run.kept))
		sim_fail("%s has a line twice, or late: %s", path, line);
	if (number > s->next && !(run.kept > s->next))
		sim_fail("%s lacks what comes before: %s", path, line);
	s->next = number + 1;
}

/*
 * All of SEEN is of one job: others of its name have logs of their own. After a crash of a machine whose disk has
 * refused the uid of ours, nobody can tell a copy of it.
 */
static void check_job(const char *path, const struct seen *seen)
{
	struct server_run first, run;

	if (!server_run(seen->uid, &first))
		return;
	for (const struct seen *s = seen; *s->uid; s++)
		if (server_run(s->uid, &run) && !streq(run.job, first.job) &&
		    !((run.foreign || first.foreign) && sim_faults.power_cut &&
		      sim_faults.disk_error))
			sim_fail("%s has lines of two jobs, %s and %s", path, seen->uid, s->uid);
}

/* TEXT is what PATH, a log of JOB, shows. SEEN, of MOST_RUNS, is what it has of each run. */
static void check_text(const char *path, const char *text, enum form form, const char *job,
		       struct seen *seen)
{
	bool merged = form == MERGED;
	const char *at = text, *nl, *of = strchr(path + strlen("jobs/"), '/') + 1;

	while (*at) {
		cleanup_free char *line = NULL;

		nl = strchr(at, '\n');
		line = mem_copy(at, nl ? (size_t)(nl - at) : strlen(at));
		if (!merged || prefix_of(line))
			check_line(path, line + (merged ? prefix_of(line) : 0), nl, form, job, seen,
				   merged ? line : of);
		else if (nl)
			sim_fail("%s has a line without its prefix: %s", path, line);
		at = nl ? nl + 1 : at + strlen(at);
	}
	check_job(path, seen);
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

	head += prefix_of(text);
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
	if (!sim_faults.power_cut && !archive_makes_room() && strncmp(k->text, text, n) != 0)
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

	/* What was begun of a line, and the uid behind it, may look like another uid. */
	if (!server_run(uid, &run) || run.foreign || text[UID] != ' ')
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
	if (merged) {
		check_known(path, take_ptr(text));
	} else {
		check_known_run(path, text);
		gaps_check(path, text);
	}
}

/* Read the logs of JOB, of the earlier attempts N from FIRST on. LAST, MERGED: of the last one, and of all in one. */
static void read_job(const char *job, pid_t pid, unsigned first, unsigned n, struct seen *last,
		     struct seen *merged)
{
	const char *replica = machine_replica(job);
	cleanup_free char *newest = text_print("%s/log", replica);

	for (unsigned i = first; i < first + n; i++) {
		cleanup_free char *name = text_print("%s/log.%u", replica, i);

		read_log(job, name, pid, merged);
	}
	read_log(job, newest, pid, last);
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
		if (server_run(s->uid, &run) && run.there && s->next < run.n &&
		    run.kept <= s->next && !bounds_gives_up(job))
			sim_fail("%s ends with line %zu of %zu", path, s->next, run.n);
}

/* SEEN has all that the run UID has printed, as far as its node still has it. */
static bool has_all(const struct seen *seen, const char *uid, const struct server_run *run)
{
	while (*seen->uid && !streq(seen->uid, uid))
		seen++;
	return seen->next >= run->n || run->kept > seen->next;
}

/* Does STATUS say of KEY anything but 0 and null? */
static bool says_some(const char *status, const char *key)
{
	cleanup_free char *name = text_print("\"%s\": ", key);

	for (const char *at = status; (at = strstr(at, name));) {
		at += strlen(name);
		if (*at != '0' && *at != 'n')
			return true;
	}
	return false;
}

void readers_waited(const char *job, pid_t pid)
{
	struct seen last[MOST_RUNS] = {0};
	cleanup_free char *path = text_print("jobs/%s/status.json", job), *status = NULL;
	cleanup_free char *newest = text_print("jobs/%s/main-0/log", job), *log = NULL;
	char uid[UID + 1];
	struct server_run run;

	if (sim_machine || kernel_read(pid, path, &status) || says_some(status, "logs_waiting") ||
	    says_some(status, "gap") || says_some(status, "stale_since") ||
	    kernel_read(pid, newest, &log))
		return;
	check_text(newest, log, ONE_RUN, job, last);
	/* A log that was removed to make room is fetched anew, which may take long. */
	free(take_ptr(status));
	if (kernel_read(pid, path, &status) || says_some(status, "logs_waiting"))
		return;
	/* Of a run that kxfs has not heard of in time it can say nothing. */
	if (server_job_run(job, 0, uid, &run) && !run.foreign && run.ended &&
	    streq(last->uid, uid) && !has_all(last, uid, &run))
		sim_fail("wait of %s returns, and its log ends with line %zu of %zu", job,
			 last->next, run.n);
}

void readers_archived(const char *job, const char *log, const char *text, const char *status)
{
	cleanup_free char *path = text_print("jobs/%s/%s", job, log);
	struct seen last[MOST_RUNS] = {0};
	struct server_run run;

	check_text(path, text, ONE_RUN, job, last);
	if (!says_some(status, "gap") && !says_some(status, "stale_since") && *last->uid &&
	    server_run(last->uid, &run) && run.ended && !has_all(last, last->uid, &run))
		sim_fail("%s in the archive ends with line %zu of %zu", path, last->next, run.n);
}

static void reader(void *data)
{
	pid_t pid = kernel_fork(KERNEL_SEEN);

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

	if (!prefix_of(k->text))
		return;
	uid = mem_copy(k->text + prefix_of(k->text), UID);
	/*
	 * Nothing is shown of a job of a machine whose record could not be read, nor of one that a restored etcd has
	 * taken away before the disk let its snapshot be written, and that is said. One that a restored etcd has
	 * brought back may have been followed by another of its name, and its folder moved away for that.
	 */
	if (!server_run(uid, &run) || run.foreign || run.revived ||
	    (sim_faults.disk_error && (sim_machine || sim_faults.restored)))
		return;
	job = text_copy(run.job_name);
	for (size_t i = 0; i < 3; i++) {
		cleanup_free char *path =
			i < 2 ? text_print(i ? "history/%s/log" : "jobs/%s/log", job)
			      : text_print("history/%s~%.8s/log", job, run.job);
		cleanup_free char *text = NULL;

		if (kernel_read(pid, path, &text) == 0 &&
		    strncmp(text, k->text, strlen(k->text)) == 0)
			return;
	}
	/*
	 * Of an archive that can't be written to it is said when what it lacks is removed; and what is fetched anew
	 * from a cluster may be merged in another order.
	 */
	if (!archive_has(k->text) &&
	    !(archive_makes_room() && (!sim_machine || sim_faults.disk_error || sim_faults.hangs)))
		sim_fail("what the log of %s had shown is nowhere any more", job);
}

/* Who follows JOB, which is over, is given all that its last run has printed, though nobody has read it before. */
static void judge_follow(const char *job, pid_t pid)
{
	cleanup_free char *path = text_print("jobs/%s/main-0/.live/follow", job), *text = NULL;
	char uid[UID + 1];
	struct server_run run;

	if (kernel_read(pid, path, &text))
		return;
	readers_followed(path, text, false, true, job);
	if (server_job_run(job, 0, uid, &run) && run.n > 0 && run.kept == 0 && !strstr(text, uid) &&
	    !(run.foreign && sim_faults.disk_error))
		sim_fail("%s ends without what %s has printed", path, uid);
}

static void judge_job(const char *job, pid_t pid)
{
	struct seen last[MOST_RUNS], merged[MOST_RUNS];
	char uid[UID + 1];
	struct server_run run;

	/* One that was set back may be suspended, and go on. */
	if (waiters_is_over(job) && !server_is_suspended(job) && !users_removed(job))
		judge_follow(job, pid);
	read_job(job, pid, 0, sim_faults.rerun ? MOST_LOGS : 1, last, merged);
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
	pid_t pid = kernel_fork(KERNEL_SEEN);

	for (size_t i = 0; i < server_n_jobs(); i++) {
		cleanup_free char *job = text_copy(server_job(i));

		judge_job(job, pid);
	}
	for (const struct known *k = all_known; k && !sim_faults.power_cut; k = k->next)
		judge_known(k, pid);
}
