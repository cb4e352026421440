/* SPDX-License-Identifier: MIT */
/*
 * Limits on what kxfs uses, whatever fails:
 *
 *  requests     at any moment: at most 30 in ten seconds for one resource (a list, a watch, a log,
 *               a job). kxfs retries a failed request after at most half a second, and doubles
 *               this time at each further retry (backend/client/watch.h, backend/kube/requests.c)
 *  descriptors  at any moment: a fixed number, which is higher if jobs have several replicas. At
 *               the end: ten for directories that remain open, and four for each running job whose
 *               output is captured. A reader of a merged log adds one, plus two for each run in it
 *  memory       at any moment: a fixed amount, plus more for each launched job, for each read that
 *               waits for the disk, and for what other users have put into their jobs. At the end,
 *               when kxfs is idle, the fixed amount is smaller. Not counted under a sanitizer
 *               (memory.c)
 *  answers      at any moment: kxfs answers a request within a minute, except a read of a file that
 *               blocks. No answered request stays parked (fs/vfs/park.h)
 */
#include "spec/base/mem.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define WINDOW_S     10
#define MOST_ASKED   30	 /* requests for one resource in WINDOW_S */
#define TRIES	     12	 /* after this many requests for a log, kxfs may pause */
#define TRIED_S	     60	 /* the longest pause */
#define OPEN	     128 /* descriptors at any moment */
#define OPEN_OF_MANY 256 /* the same, if jobs have several replicas */
#define STAYING	     10	 /* descriptors at the end, for directories */
#define OF_JOB	     4	 /* descriptors at the end for each running job */
/* One for the merged log, and two for each of its 15 runs: three attempts of five replicas. */
#define OF_FOLLOW    31
#define TAG_LEN	     8
#define MOST_HELD    (640u << 10)
#define STAYS_HELD   (320u << 10)
#define HELD_OF_JOB  (24u << 10)
#define HELD_OF_READ (64u << 10) /* the buffer of a read that waits for the disk */
/*
 * kxfs may have several copies of an object: the current and the previous parsed object, and texts
 * that it has rendered from them.
 */
#define HELD_COPIES 8

/*
 * A requested resource. N counts its requests since the time SINCE. ALL counts its requests in the
 * life (run of kxfs) number LIFE. LAST is the time of its last request.
 */
struct asked {
	char *what;
	uint64_t since, last;
	unsigned life, n, all;
	struct asked *next;
};

static struct asked *all_asked;

/*
 * Return the part of QUERY that distinguishes requests with the same path, malloc'ed. It shows
 * which object is selected, and whether the request is for a watch or for the log of the previous
 * run.
 */
static char *part_of(const char *query)
{
	const char *selector = strstr(query, "fieldSelector=");

	return text_print("%.*s%s%s", selector ? (int)strcspn(selector, "&") : 0,
			  selector ? selector : "", strstr(query, "watch=true") ? " watch" : "",
			  strstr(query, "previous=") ? " previous" : "");
}

void bounds_asked(const char *method, const char *path, const char *body)
{
	const char *query = path + strcspn(path, "?");
	/* Count the requests that create a job separately for each job, by its tag. */
	const char *tag = body ? strstr(body, "tag-") : NULL;
	cleanup_free char *part = part_of(query);
	cleanup_free char *what = text_print("%s %.*s %s%.*s", method, (int)(query - path), path,
					     part, tag ? TAG_LEN : 0, tag ? tag : "");
	struct asked *a = all_asked;

	/* Don't count further pages of a list: it may have any number of pages. */
	if (strstr(query, "continue="))
		return;
	while (a && !streq(a->what, what))
		a = a->next;
	if (!a) {
		a = new0(struct asked);
		*a = (struct asked){.what = take_ptr(what), .next = all_asked};
		all_asked = a;
	}
	if (a->life != sim_life())
		a->all = 0;
	if (a->life != sim_life() || sim_now() - a->since > WINDOW_S * SIM_S) {
		a->life = sim_life();
		a->since = sim_now();
		a->n = 0;
	}
	a->all++;
	a->last = sim_now();
	if (++a->n > MOST_ASKED)
		sim_fail("kxfs sends %u requests within %u s: %s", a->n, WINDOW_S, a->what);
}

bool bounds_gives_up(const char *job)
{
	cleanup_free char *pod = text_print("/pods/%s-", job);
	bool ret = false;

	for (const struct asked *a = all_asked; a; a = a->next)
		ret |= a->life == sim_life() && a->all >= TRIES &&
		       sim_now() - a->last < TRIED_S * SIM_S && strstr(a->what, pod) &&
		       strstr(a->what, "/log ");
	return ret;
}

/* Return the number of bytes that kxfs may hold for jobs. Jobs with several replicas need more. */
static size_t held_of_jobs(void)
{
	return (sim_faults.roles ? 3 : 1) * HELD_OF_JOB * (users_launched() + hostile_made()) +
	       HELD_COPIES * hostile_bytes();
}

void bounds_check(bool still)
{
	const size_t most = sim_faults.roles ? OPEN_OF_MANY : OPEN;

	if (sim_disk_n_open() > most)
		sim_fail("more than %zu descriptors are open", most);
	requests_check(still);
	if (sim_memory_held() > MOST_HELD + held_of_jobs() + HELD_OF_READ * requests_on_disk())
		sim_fail("kxfs holds %zu bytes of memory for %zu jobs", sim_memory_held(),
			 users_launched());
}

void bounds_judge(void)
{
	size_t n = sim_disk_n_open(), going = 0, followed = waiters_following();

	for (size_t i = 0; i < server_n_jobs(); i++)
		going += !waiters_is_over(server_job(i));
	if (sim_memory_held() > STAYS_HELD + held_of_jobs())
		sim_fail("kxfs still holds %zu bytes of memory at the end, for %zu jobs",
			 sim_memory_held(), users_launched());
	if (n > STAYING + OF_JOB * going + OF_FOLLOW * followed)
		sim_fail(
			"%zu descriptors are open at the end, with %zu unfinished jobs and %zu readers of follow",
			n, going, followed);
}
