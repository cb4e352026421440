/* SPDX-License-Identifier: MIT */
/*
 * Users who read logs at random moments. A line is "UID NUMBER", so each line shows which run of
 * which pod has printed it. Each kind of log has its rules:
 *
 *  log of an attempt  It has lines of one run, from the first line on, each once, up to a line that
 *                     the run has printed by now. A line is missing only if the node has lost it.
 *                     What was read or followed once can be read again
 *  merged log         It has a prefix before each line. Without the prefixes, it shows each of its
 *                     runs as the log of an attempt does. What was read once can be read again
 *                     unless the machine loses power
 *
 * At the end the log of an existing job shows all output of its last run. It also shows all output
 * of the previous run in the same pod, if the node still has that output. What was read of a job
 * that kxfs launched is in jobs/ or history/, even if a later job has the same name.
 */
#include <stdio.h>

#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define READS	    12
#define READ_EACH_S 25
#define UID	    SERVER_UID
#define MOST_RUNS   64 /* of a job */
#define MOST_LOGS   6  /* the number of files log.0, log.1, ... to read */

/* A run, and how many of its lines a log has shown. */
struct seen {
	char uid[UID + 1];
	size_t next;
};

/* The contents of a merged log, or of a pod's log, when it was last read. */
struct known {
	char *text;
	struct known *next;
};

static struct known *all_known;

/* Return the length of the "ROLE/K " with which LINE begins, or 0. */
static size_t prefix_of(const char *line)
{
	size_t role = strspn(line, "abcdefghijklmnopqrstuvwxyz");
	size_t k = role && line[role] == '/' ? strspn(line + role + 1, "0123456789") : 0;

	return k && line[role + 1 + k] == ' ' ? role + 1 + k + 1 : 0;
}

/* True if WORDS begin with REPLICA, "ROLE-K", in one of the forms "ROLE/K " and "ROLE-K/". */
static bool is_of(const char *words, const char *replica)
{
	size_t role = strcspn(replica, "-"), k = strlen(replica + role + 1);

	return strncmp(words, replica, role) == 0 && strspn(words + role, "/-") == 1 &&
	       strncmp(words + role + 1, replica + role + 1, k) == 0 &&
	       strchr(" /", words[role + 1 + k]);
}

/*
 * The lines that a text has: those of one run, of a replica's runs one after the other, or of all
 * runs with prefixes.
 */
enum form { ONE_RUN, ONE_REPLICA, MERGED };

/* True if LINE is the next line of S or the beginning of it. LINE has no newline. */
static bool is_begun(const struct seen *s, const char *line)
{
	cleanup_free char *next = text_print("%s %zu", s->uid, s->next);

	return strncmp(next, line, strlen(line)) == 0;
}

/*
 * True if LINE is the beginning of the next line of S, but not the whole line. A pod that is
 * removed while it prints a line leaves such a beginning.
 */
static bool is_cut(const struct seen *s, const char *line)
{
	cleanup_free char *next = text_print("%s %zu", s->uid, s->next);

	return is_begun(s, line) && strlen(line) < strlen(next);
}

/*
 * True if TEXT is a sequence of incomplete lines. Each is of a run whose uid is equal to UID up to
 * the last "-". Don't check the numbers of the lines, because the node may have lost lines before
 * each of them.
 */
static bool are_begun(const char *text, const char *uid)
{
	size_t n = strlen(text), most = UID + 1, same = (size_t)(strrchr(uid, '-') - uid);
	bool begun = n == 0;

	if (n > most && text[UID] == ' ')
		most += strspn(text + most, "0123456789");
	for (n = min_of(n, most); n > 0 && !begun; n--)
		begun = strncmp(text, uid, min_of(n, same)) == 0 && are_begun(text + n, uid);
	return begun;
}

/*
 * Usually return LINE. But a power cut, a short write or a broken stream may leave the beginning of
 * a line, usually of the run S, at the end of the log. If the node has lost the rest of that line,
 * the next line follows without a newline between them. LINE then consists of the beginning of one
 * line and a second line. Return this second line.
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
	/* The incomplete last line of a run may be followed by a line of the next run. */
	if (form == ONE_REPLICA && !streq(of.uid, s->uid)) {
		struct seen first = {0};
		struct server_run other;

		snprintf(first.uid, sizeof(first.uid), "%s", torn);
		if (strlen(torn) < UID || is_begun(s, torn) || are_begun(torn, of.uid))
			return tail;
		/* TORN may be of a run that has no whole line in the log. */
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

/*
 * Check LINE, which is passed without its newline. WHOLE: the log has a newline after LINE. A
 * merged log may have a newline after an incomplete line, too. OF begins with the replica of the
 * line, in a form that is_of accepts.
 */
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
		return; /* too short to identify */
	while (*s->uid && s[1].uid[0])
		s++;
	line = behind_a_tear(form, s, line);
	s = seen;
	snprintf(uid, sizeof(uid), "%s", line);
	if (!server_run(uid, &run) || !streq(run.job_name, job))
		sim_fail("%s has a line that no pod of its job has printed: %s", path, line);
	if (!is_of(of, run.replica))
		sim_fail("%s shows a line of %s as a line of %s", path, run.replica, of);
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
		sim_fail("%s has a line that its run has not printed: %s", path, line);
	/*
	 * After a power cut, kxfs fetches the last lines again if it has lost their times. It does
	 * not recognize them if the node has only a few bytes of these lines, or if the first of
	 * them follows an incomplete line. Then they appear again after a gap
	 * (spec/logline/overlap.h, docs/known-limits.md).
	 */
	if (number < s->next && !(sim_faults.power_cut && run.kept))
		sim_fail("%s has a line twice, or late: %s", path, line);
	if (number > s->next && !(run.kept > s->next))
		sim_fail("%s lacks lines before: %s", path, line);
	s->next = number + 1;
}

/*
 * Check that all runs in SEEN belong to one job, since jobs of the same name have separate logs.
 * But if the disk refused to record our job's uid before kxfs was killed or the machine lost power,
 * kxfs can't distinguish a copy from our job (docs/known-limits.md).
 */
static void check_job(const char *path, const struct seen *seen)
{
	struct server_run first, run;

	if (!server_run(seen->uid, &first))
		return;
	for (const struct seen *s = seen; *s->uid; s++)
		if (server_run(s->uid, &run) && !streq(run.job, first.job) &&
		    !((run.foreign || first.foreign) && sim_faults.disk_error &&
		      (sim_faults.power_cut || sim_faults.killed)))
			sim_fail("%s has lines of two jobs, %s and %s", path, seen->uid, s->uid);
}

/*
 * Check TEXT, the contents of PATH, a log of JOB. Describe each run of TEXT in SEEN, an array of
 * MOST_RUNS zeroed elements.
 */
static void check_text(const char *path, const char *text, enum form form, const char *job,
		       struct seen *seen)
{
	bool merged = form == MERGED;
	const char *at = text, *nl, *of = strchr(path + strlen("jobs/"), '/') + 1;

	while (*at && !damage_hit(job, false)) {
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
 * Check that TEXT, a merged log or the log of a run, agrees with what was read earlier from the log
 * with the same first run. The job may have another name by now. Take ownership of TEXT.
 */
static void check_known(const char *path, const char *job, char *text)
{
	size_t n = strlen(text), head = UID;
	struct known *k = all_known;

	head += prefix_of(text);
	if (n < head || damage_hit(job, false)) {
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

/*
 * Do the same as check_known for the first run in TEXT, unless its job belongs to another user:
 * kxfs fetches the log of such a job again if the log was lost.
 */
static void check_known_run(const char *path, const char *job, const char *text)
{
	cleanup_free char *uid = mem_copy(text, min_of(strlen(text), (size_t)UID));
	const char *end = text;
	struct server_run run;

	/* The beginning of a line and the uid after it may look like another uid. */
	if (!server_run(uid, &run) || run.foreign || text[UID] != ' ')
		return;
	while (strncmp(end, uid, UID) == 0)
		end += strcspn(end, "\n") + (strchr(end, '\n') ? 1 : 0);
	check_known(path, job, mem_copy(text, (size_t)(end - text)));
}

/* Read and check NAME, a log of JOB. SEEN as in check_text. */
static void read_log(const char *job, const char *name, pid_t pid, struct seen *seen)
{
	cleanup_free char *path = text_print("jobs/%s/%s", job, name), *text = NULL;
	bool merged = streq(name, "log");
	int err = kernel_read(pid, path, &text);

	memset(seen, 0, MOST_RUNS * sizeof(*seen));
	sim_log("reader", "%s: %s", path, err ? strerror(-err) : "read");
	if (err)
		return;
	check_text(path, text, merged ? MERGED : ONE_RUN, job, seen);
	if (merged) {
		check_known(path, job, take_ptr(text));
	} else {
		check_known_run(path, job, text);
		gaps_check(path, text);
	}
}

/*
 * Read and check logs of JOB: those of N attempts from FIRST on, that of the last attempt, and the
 * merged log. Describe the runs of the last two in LAST and MERGED.
 */
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
	/*
	 * Remember the log of a run only when this reader has reached its end. Before that, the
	 * disk may refuse a line that this reader has got already. If the node no longer has that
	 * line, later readers don't get it.
	 */
	if (merged)
		check_known(path, job, text_copy(text));
	else if (ended)
		check_known_run(path, job, text);
	for (const struct seen *s = seen; ended && *s->uid; s++)
		if (server_run(s->uid, &run) && run.there && s->next < run.n &&
		    run.kept <= s->next && !bounds_gives_up(job) && !server_hides_links())
			sim_fail("%s ends with line %zu of %zu", path, s->next, run.n);
}

/* True if SEEN has all lines of the run UID that its node still has. */
static bool has_all(const struct seen *seen, const char *uid, const struct server_run *run)
{
	while (*seen->uid && !streq(seen->uid, uid))
		seen++;
	return seen->next >= run->n || run->kept > seen->next;
}

/* True if KEY in STATUS is neither 0 nor null. */
static bool reports_some(const char *status, const char *key)
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

	if (sim_machine || kernel_read(pid, path, &status) ||
	    reports_some(status, "logs_waiting") || reports_some(status, "gap") ||
	    reports_some(status, "stale_since") || kernel_read(pid, newest, &log))
		return;
	check_text(newest, log, ONE_RUN, job, last);
	/*
	 * Check the status once more: reading a log that was removed to free space fetches it
	 * again, which may take long.
	 */
	free(take_ptr(status));
	if (kernel_read(pid, path, &status) || reports_some(status, "logs_waiting"))
		return;
	/*
	 * Check only a run that the log shows. kxfs may have missed a short run, and then can't
	 * report it.
	 */
	if (server_job_run(job, 0, uid, &run) && !run.foreign && run.ended &&
	    !damage_hit(job, false) && streq(last->uid, uid) && !has_all(last, uid, &run))
		sim_fail("wait of %s returns, but its log ends with line %zu of %zu", job,
			 last->next, run.n);
}

void readers_archived(const char *job, const char *log, const char *text, const char *status)
{
	cleanup_free char *path = text_print("jobs/%s/%s", job, log);
	struct seen last[MOST_RUNS] = {0};
	struct server_run run;

	check_text(path, text, ONE_RUN, job, last);
	if (!reports_some(status, "gap") && !reports_some(status, "stale_since") && *last->uid &&
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

/* Check that K, a merged log, can still be read, even if a later job has the name of its job. */
static void judge_known(const struct known *k, pid_t pid)
{
	cleanup_free char *uid = NULL, *job = NULL;
	struct server_run run;

	if (!prefix_of(k->text))
		return;
	uid = mem_copy(k->text + prefix_of(k->text), UID);
	/*
	 * kxfs shows nothing of a local job whose record can't be read. It also shows nothing of a
	 * job that a restore of etcd removed before the disk accepted its snapshot. kxfs reports
	 * both cases. If a restore of etcd has brought this job back, another job may have had the
	 * name meanwhile. Then kxfs may have moved this job's directory away.
	 */
	if (!server_run(uid, &run) || run.foreign || run.revived ||
	    damage_hit(run.job_name, false) ||
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
	 * If the archive can't be written, kxfs removes output and reports the loss. Output that
	 * kxfs fetches from a cluster again may be merged in another order.
	 */
	if (!archive_has(k->text) &&
	    !(archive_makes_room() && (!sim_machine || sim_faults.disk_error || sim_faults.hangs)))
		sim_fail("what the log of %s had shown can't be read any more", job);
}

/*
 * Check that following JOB, which has ended, returns all output of its last run, even if nobody has
 * read it before.
 */
static void judge_follow(const char *job, pid_t pid)
{
	cleanup_free char *path = text_print("jobs/%s/main-0/.live/follow", job), *text = NULL;
	char uid[UID + 1];
	struct server_run run;

	if (kernel_read(pid, path, &text))
		return;
	readers_followed(path, text, false, true, job);
	if (server_job_run(job, 0, uid, &run) && run.n > 0 && run.kept == 0 && !strstr(text, uid) &&
	    !(run.foreign && sim_faults.disk_error) && !damage_hit(job, false))
		sim_fail("%s ends without the output of %s", path, uid);
}

static void judge_job(const char *job, pid_t pid)
{
	struct seen last[MOST_RUNS], merged[MOST_RUNS];
	char uid[UID + 1];
	struct server_run run;

	/* A job that a restore of etcd set back may be suspended now and be resumed later. */
	if (waiters_is_over(job) && !server_is_suspended(job) && !users_removed(job))
		judge_follow(job, pid);
	read_job(job, pid, 0, sim_faults.rerun ? MOST_LOGS : 1, last, merged);
	/*
	 * If the disk refuses to move the directory of an earlier job away, the directory remains,
	 * and kxfs reports that.
	 */
	if (!server_job_run(job, 0, uid, &run) || (run.foreign && sim_faults.disk_error) ||
	    damage_hit(job, false))
		return;
	if (run.n > run.kept && !streq(last->uid, uid))
		sim_fail("the log of %s shows %s instead of its last run", job,
			 *last->uid ? last->uid : "nothing");
	if (run.ended && !has_all(last, uid, &run))
		sim_fail("the log of %s ends with line %zu of %zu", job, last->next, run.n);
	if (!run.foreign && server_job_run(job, 1, uid, &run) && !has_all(merged, uid, &run))
		sim_fail("the log of %s lacks the end of the run before the last", job);
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

/* --- gaps --- */

/*
 * Compare the gaps that kxfs reports with what the nodes had. A log contains only bytes of the
 * program, so kxfs reports a gap elsewhere: its offset in lines/KEY.gaps on disk, a count in
 * `status`, and a message in .kxfs/log. These rules hold unless the machine has lost power:
 *
 *  place    a gap is between two lines that are not consecutive, and nowhere else. But if the node
 *           has lost the last line that the log shows, kxfs can't know whether a line is missing
 *           after that line, and may report a gap there
 *  count    `status` counts each place and each missing end, and at most one more for each run
 *           whose pod was removed, or whose container was restarted, before its output was captured
 *  message  kxfs reports lost output only for a pod whose node has lost some, and a pod or a run as
 *           removed only if it was
 *
 * A local job never lacks output: its `status` shows 0.
 */

/* What a log shows of a run, and the gaps reported for it. */
struct shown {
	char uid[UID + 1];
	struct server_run run;
	size_t next;   /* one more than the number of the last line */
	size_t places; /* number of gaps with a known offset */
};

/*
 * Return the number of gaps in the log of RUN, whose text is TEXT. Store their places, 8 bytes
 * each, in *RET. Return 0 if no log on disk has this text: the disk may still have files of a
 * removed log.
 */
static size_t places_of(const struct server_run *run, const char *text, const unsigned char **ret)
{
	const unsigned char *kept;
	const char *key;
	size_t n;

	*ret = NULL;
	for (size_t i = 0; !*ret && (key = sim_disk_name("/state/output", i)); i++) {
		cleanup_free char *log = text_print("/state/output/%s/logs/%s.%s.%u", key,
						    run->pod_uid, run->container, run->restart);
		cleanup_free char *path = text_print("/state/output/%s/lines/%s.%s.%u.gaps", key,
						     run->pod_uid, run->container, run->restart);

		kept = sim_disk_look(log, &n);
		if (kept && memcmp(kept, text, min_of(n, strlen(text))) == 0)
			*ret = sim_disk_look(path, &n);
	}
	return *ret ? n / 8 : 0;
}

static size_t place(const unsigned char *v, size_t i)
{
	size_t at = 0;

	for (unsigned k = 8; k-- > 0;)
		at = at << 8 | v[8 * i + k];
	return at;
}

/* True if the N bytes at AT are a whole line of UID; *RET is its number. */
static bool is_line(const char *at, size_t n, const char *uid, size_t *ret)
{
	cleanup_free char *line = mem_copy(at, n), *full = NULL;

	if (n < UID + 2)
		return false;
	*ret = strtoull(line + UID, NULL, 10);
	full = text_print("%s %zu", uid, *ret);
	return streq(full, line);
}

/*
 * True if the N bytes at AT end with a whole line of UID; *RET is its number. Such a line may
 * follow the beginning of another line whose rest is lost.
 */
static bool ends_with_line(const char *at, size_t n, const char *uid, size_t *ret)
{
	for (size_t i = 1; i < n; i++)
		if (is_line(at + i, n - i, uid, ret))
			return true;
	return false;
}

/*
 * Check the whole line NUMBER of S. BEFORE is one more than the number of the previous line, or 0
 * if no whole line precedes. REPORTED: kxfs reports a gap between the two lines.
 */
static void check_place(const char *path, const struct shown *s, size_t number, size_t before,
			bool reported)
{
	if (before && number > before && !reported)
		sim_fail("%s lacks lines before line %zu of %s, but no gap is reported there", path,
			 number, s->uid);
	if (before && number == before && reported && s->run.kept < before)
		sim_fail(
			"%s: a gap is reported before line %zu of %s, but nothing is missing there",
			path, number, s->uid);
}

/* Check TEXT, the log at PATH of one run, and describe it in *RET. */
static void check_places(const char *path, const char *text, struct shown *ret)
{
	const unsigned char *v;
	size_t before = 0, number = 0, i = 0, n;
	const char *nl, *at = text;

	*ret = (struct shown){0};
	snprintf(ret->uid, sizeof(ret->uid), "%s", text);
	if (!server_run(ret->uid, &ret->run) || ret->run.foreign || sim_boots() ||
	    damage_hit(ret->run.job_name, false)) {
		ret->next = 0;
		return;
	}
	n = places_of(&ret->run, text, &v);
	for (; (nl = strchr(at, '\n')); at = nl + 1) {
		bool whole = is_line(at, (size_t)(nl - at), ret->uid, &number);
		size_t begin = (size_t)(at - text), end = (size_t)(nl - text);
		bool reported = i < n && place(v, i) == begin;

		if (whole)
			check_place(path, ret, number, before, reported);
		/*
		 * At a whole line, a gap can only be before the line. At a partial line, a gap can
		 * be before the line, in it or after it.
		 */
		while (i < n && place(v, i) <= (whole ? begin : end)) {
			if (place(v, i) < begin || place(v, i) == 0)
				sim_fail(
					"%s: a gap is reported at byte %zu, in the middle of a line",
					path, place(v, i));
			ret->places++;
			i++;
		}
		before = whole ? number + 1 : 0;
		if (whole || ends_with_line(at, (size_t)(nl - at), ret->uid, &number))
			ret->next = number + 1;
	}
}

void gaps_check(const char *path, const char *text)
{
	struct shown shown;

	if (!sim_machine)
		check_places(path, text, &shown);
}

/* --- the count, at the end --- */

/*
 * Read the count of gaps in the `status` of a replica of AT, a job's directory. Return false if it
 * can't be read.
 */
static bool count_in(const char *at, pid_t pid, size_t *ret)
{
	cleanup_free char *path = text_print("%s/main-0/status", at), *text = NULL;
	const char *gap;

	if (kernel_read(pid, path, &text))
		return false;
	gap = strstr(text, "\ngap: ");
	if (!gap)
		sim_fail("%s has no count of gaps", path);
	*ret = strtoull(gap + strlen("\ngap: "), NULL, 10);
	return true;
}

/*
 * Return the largest number of gaps without an offset that kxfs may report for JOB, a uid. The log
 * of a container that a webhook has added to a pod may have a gap, too.
 */
static size_t most_of(const char *job)
{
	struct server_run run;
	size_t n = 0;

	for (size_t k = 0; server_nth_run(job, k, &run); k++)
		n += (!run.there || run.kept) + (run.injected && run.restart == 0 && !run.there);
	return n;
}

/* Check the gaps that AT, a job's directory in jobs/ or history/, reports. */
static void judge_one(const char *at, pid_t pid)
{
	size_t reported, least = 0, places = 0, most;
	const char *job = NULL;

	for (unsigned i = 0; i <= MOST_LOGS; i++) {
		cleanup_free char *path = i < MOST_LOGS ? text_print("%s/main-0/log.%u", at, i)
							: text_print("%s/main-0/log", at);
		cleanup_free char *text = NULL;
		struct shown s;

		if (kernel_read(pid, path, &text))
			continue;
		check_places(path, text, &s);
		if (!s.next || !s.run.job || s.run.foreign)
			continue;
		job = s.run.job;
		places += s.places;
		least += s.places + (s.run.ended && s.next < s.run.n);
	}
	if (!job || sim_boots() || !count_in(at, pid, &reported))
		return;
	most = places + most_of(job);
	sim_log("user", "%s: %zu gaps are reported; between %zu and %zu are right", at, reported,
		least, most);
	if (reported < least)
		sim_fail("%s lacks output at %zu places, but %zu gaps are reported", at, least,
			 reported);
	if (reported > most)
		sim_fail("%s reports %zu gaps, but lacks output at %zu places at most", at,
			 reported, most);
}

void gaps_judge(void)
{
	static const char *const places[] = {"jobs", "history"};
	pid_t pid = kernel_fork(KERNEL_SEEN);

	for (size_t i = 0; i < array_size(places); i++) {
		struct kernel_names names cleanup(kernel_names_clear) = {0};

		if (kernel_list(pid, places[i], &names))
			continue;
		for (size_t k = 0; k < names.n; k++) {
			cleanup_free char *at = text_print("%s/%s", places[i], names.v[k].name);
			size_t reported;

			if (!sim_machine)
				judge_one(at, pid);
			else if (count_in(at, pid, &reported) && reported)
				sim_fail("%s reports %zu gaps, but a local job never lacks output",
					 at, reported);
		}
	}
}

/* --- messages --- */

/* True if the message TEXT ends with WORDS. */
static bool ends_with(const char *text, const char *words)
{
	size_t n = strlen(text), end = strlen(words);

	return n >= end && streq(text + n - end, words);
}

void gaps_reported(const char *text)
{
	static const struct {
		const char *words;
		bool rotated, again, gone; /* the message is right if one of these holds */
	} all[] = {
		{"kxfs could not follow the log for some time, and may have lost output from that "
		 "time",
		 true, false, false},
		{"log rotation removed the end of this output, and perhaps later output", true,
		 false, false},
		{"this run's log no longer exists, because the container was restarted again",
		 false, true, false},
		{"the pod, or this run of its container, no longer exists", false, true, true},
		{": the pod is gone", false, false, true},
	};

	for (size_t i = 0; i < array_size(all) && !sim_machine && !sim_boots(); i++) {
		struct server_pod pod;

		if (!ends_with(text, all[i].words) || !server_pod_in(text, &pod))
			continue;
		if (!(all[i].rotated && pod.rotated) && !(all[i].again && pod.again) &&
		    !(all[i].gone && pod.gone))
			sim_fail("kxfs reports something untrue: %s", text);
	}
}
