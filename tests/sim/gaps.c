/* SPDX-License-Identifier: MIT */
/*
 * Checks of the reported gaps against what the nodes had. A log's file has only bytes of the program, so kxfs reports a
 * gap elsewhere: its place on disk (lines/KEY.gaps), a count in `status`, and a message in .kxfs/log. For a log whose
 * machine has not lost power:
 *
 *	place	 there is one between two lines that are not consecutive, and nowhere else. But if the node has lost the
 *		 last line that was shown, it is unknown whether one is missing after it, and a gap "may be" there
 *	count	 `status` counts each place and each missing end, and at most one more for each run whose pod
 *		 was removed, or whose container was restarted, before all of the run's output was captured
 *	message	 lost output is only reported for a pod whose node has lost some; a pod or a run is only reported as
 *		 removed if it was
 *
 * A local job never lacks output: its `status` shows 0.
 */
#include <stdio.h>

#include "spec/base/mem.h"
#include "tests/sim/disk.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define UID	  SERVER_UID
#define MOST_LOGS 6 /* log.0 and so on */

/* What a log shows of a run, and the gaps reported for it. */
struct shown {
	char uid[UID + 1];
	struct server_run run;
	size_t next;   /* number after the last line */
	size_t places; /* the number of places of gaps */
};

/*
 * Return the number of gaps in the log of RUN, whose text is TEXT, and their places, 8 bytes each,
 * in *RET. 0 if there is no such log: the disk may still have files of a removed log.
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
 * The same for the end of that line: a whole line may follow the beginning of one whose rest is
 * lost.
 */
static bool ends_with_line(const char *at, size_t n, const char *uid, size_t *ret)
{
	for (size_t i = 1; i < n; i++)
		if (is_line(at + i, n - i, uid, ret))
			return true;
	return false;
}

/*
 * Check the whole line NUMBER of S. BEFORE: one more than the number of the line before, or 0 if
 * that line is not whole. REPORTED: there is a gap between the two lines.
 */
static void check_place(const char *path, const struct shown *s, size_t number, size_t before,
			bool reported)
{
	if (before && number > before && !reported)
		sim_fail("%s lacks what comes before line %zu of %s, and no gap is reported there",
			 path, number, s->uid);
	if (before && number == before && reported && s->run.kept < before)
		sim_fail(
			"%s: a gap is reported before line %zu of %s, and nothing is missing there",
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
		/* A partial line is followed by another line, or by the end of the log. */
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

/* --- the count, in the end --- */

/* Read the count of gaps in `status` of PLACE. False if there is no such text. */
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
 * Return how many gaps without a place may be reported for the job UID, including the other
 * container of a pod.
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
	sim_log("user", "%s: %zu gaps are reported, of %zu to %zu", at, reported, least, most);
	if (reported < least)
		sim_fail("%s lacks output %zu times, and %zu gaps are reported", at, least,
			 reported);
	if (reported > most)
		sim_fail("%s reports %zu gaps, and lacks output %zu times at most", at, reported,
			 most);
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
				sim_fail("%s reports %zu gaps, and is of a local job", at,
					 reported);
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
		{"what it printed while it could not be followed may be lost", true, false, false},
		{"its end was lost by log rotation, perhaps with later output", true, false, false},
		{"the container has been restarted since", false, true, false},
		{"the pod, or this run of it, is gone", false, true, true},
		{": the pod is gone", false, false, true},
	};

	for (size_t i = 0; i < array_size(all) && !sim_machine && !sim_boots(); i++) {
		struct server_pod pod;

		if (!ends_with(text, all[i].words) || !server_pod_in(text, &pod))
			continue;
		if (!(all[i].rotated && pod.rotated) && !(all[i].again && pod.again) &&
		    !(all[i].gone && pod.gone))
			sim_fail("kxfs reports what is not so: %s", text);
	}
}
