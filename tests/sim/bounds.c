/* SPDX-License-Identifier: MIT */
/*
 * Bounds, whatever fails:
 *
 *	requests	at any moment: of one thing (a list, a watch, a log, a job) no more than three a second for
 *			ten seconds. What fails is asked again after half a second or less, and then after twice as long
 *			each time (backend/client/watch.h, backend/kube/requests.h)
 *	descriptors	at any moment: so many, and some more where jobs have several replicas; in the end those of
 *			directories that stay open, and some for each job that goes on, whose output is being kept,
 *			and for each who follows one: of the merged log two of each of its runs, and one of its own
 *	memory		a fixed amount, and more for each job that was launched, for each read that waits for the
 *			disk, and for what others have put into their jobs; in the end, when nothing is under way,
 *			less. A sanitizer counts none (memory.c)
 *	those who wait	at any moment: who waits for an answer has it within a minute, a read of what blocks excepted;
 *			nobody who was answered stays parked (fuse.c)
 */
#include "spec/base/mem.h"
#include "tests/sim/disk.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define WINDOW_S     10
#define MOST_ASKED   30 /* in so long */
#define TRIES	     12 /* after which a log is given up for now, */
#define TRIED_S	     60 /* and asked for again within this */
#define OPEN	     128
#define OPEN_OF_MANY 256
#define STAYING	     10
#define OF_JOB	     4
#define OF_FOLLOW    31 /* a job has three attempts, each of them five runs */
#define TAG_LEN	     8
#define MOST_HELD    (640u << 10)
#define STAYS_HELD   (320u << 10)
#define HELD_OF_JOB  (24u << 10)
#define HELD_OF_READ (64u << 10) /* the buffer of a read that waits for the disk */
/* An object of others is there in its view, in what it was before, and in the texts that were made of it. */
#define HELD_COPIES 8

/* What is asked for, and how often since; LAST, and ALL: when it was asked for last, and how often in this life. */
struct asked {
	char *what;
	uint64_t since, last;
	unsigned life, n, all;
	struct asked *next;
};

static struct asked *all_asked;

/* What of QUERY makes it another thing: a list of one object's, a watch, the run before. malloc'ed. */
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
	/* Each job that is made is one of its own. */
	const char *tag = body ? strstr(body, "tag-") : NULL;
	cleanup_free char *part = part_of(query);
	cleanup_free char *what = text_print("%s %.*s %s%.*s", method, (int)(query - path), path,
					     part, tag ? TAG_LEN : 0, tag ? tag : "");
	struct asked *a = all_asked;

	/* Pages of a list may be as small as the server likes. */
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
		sim_fail("the server is asked %u times within %u s: %s", a->n, WINDOW_S, a->what);
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

/* Those of several replicas have more. */
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
		sim_fail("%zu bytes are held for %zu jobs", sim_memory_held(), users_launched());
}

void bounds_judge(void)
{
	size_t n = sim_disk_n_open(), going = 0, followed = waiters_following();

	for (size_t i = 0; i < server_n_jobs(); i++)
		going += !waiters_is_over(server_job(i));
	if (sim_memory_held() > STAYS_HELD + held_of_jobs())
		sim_fail("%zu bytes stay held for %zu jobs", sim_memory_held(), users_launched());
	if (n > STAYING + OF_JOB * going + OF_FOLLOW * followed)
		sim_fail("%zu descriptors are open, %zu jobs go on, and %zu follow one", n, going,
			 followed);
}
