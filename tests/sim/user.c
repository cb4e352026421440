/* SPDX-License-Identifier: MIT */
/*
 * Users who write files into submit/, and the promises to them. Each text is written once and
 * contains a tag. The job that is launched from it has the same tag. So for each text the simulator
 * knows at any moment which of these holds:
 *
 *	nobody has closed the whole text	it is not launched
 *	its close returned 0			it was launched, once; its job and NAME.job exist
 *	its close failed with a clear error	it was not launched, and never will be
 *	otherwise				it was launched once or not at all
 *
 * Some time after the last fault, each written name shows its result. NAME.job leads to the job of
 * the last accepted write, if that job exists. If nothing was launched, NAME.error has the reason
 * until the mount ends. jobs/ shows what the server has.
 */
#include <errno.h>
#include <fcntl.h>

#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define MOST_WRITES SIM_WRITERS
#define N_NAMES	    6
#define DURING_S    240 /* users begin to write within this time */
#define REMOVED_S   15	/* users wait at least this long before they remove a job */
/* Users wait at least this long before a removal if requests may be delayed. */
#define LATE_S	 90
#define BEGINS_S 90 /* the longest delay that a `begin` asks for */
#define CROWD_S	 30 /* users of a crowd begin at multiples of this time */
#define LIMIT_S	 20 /* the longest time limit of a program */
#define SOON_S	 8
/* kxfs shows within this time what the server has done. */
#define SEEN_S 60

enum fate { WRITING, ASKED, ACCEPTED, REFUSED, DEAD };

struct write {
	unsigned tag, name;
	const char *kind; /* the kind that its document names, or NULL */
	enum fate fate;
	unsigned created;
	bool undone;  /* removed by a restore of etcd */
	bool copied;  /* another user has replaced the job by a copy */
	bool shown;   /* kxfs has shown it as launched */
	bool unsure;  /* its removal returned an error, so the job may still run */
	bool gone;    /* the task of its user has ended */
	bool left;    /* the next mount may start it (users_left) */
	bool removed; /* its user has removed it or is about to */
	char *job, *uid;
	struct writing writing;
	uint64_t starts_us;
	int err;
	/* On a machine: */
	unsigned life, boot; /* when it was submitted */
	unsigned not_started;
	struct users_roles roles;
	/*
	 * SENT: the life in which kxfs last sent the job, unless the server refused it.
	 * RELEASED_IN: the life in which the user wrote `release`. Each is the number of the life
	 * plus 1, or 0 if there is none.
	 */
	unsigned sent, released_in;
	/*
	 * A held job waits for a release (HOLD), or for BEGIN_S seconds. FORGOTTEN: it was removed
	 * before it was launched.
	 */
	bool held, hold, released, forgotten;
	unsigned begin_s;
	/* A held job may also wait until the job of AFTER ends with the result WISH. */
	const struct write *after;
	const char *wish;
	uint64_t accepted_us;
	uint64_t asked_us, asked_awake; /* when it was submitted, by sim_now and sim_awake */
};

static struct write writes[MOST_WRITES];
static unsigned n_writes;
static unsigned busy[N_NAMES]; /* the number of tasks that write this name now */
/* The tag of the last write that submitted the name, plus 1; 0: none. */
static unsigned last[N_NAMES];
/*
 * True if no other task wrote the name when it was last submitted, and nobody has changed the file
 * since.
 */
static bool alone[N_NAMES];
/* The number, plus 1, of the life in which a late request may rename or remove the file; or 0. */
static unsigned late[N_NAMES];
static bool judged;

static const char *const fates[] = {"being written", "submitted", "accepted", "refused",
				    "of a killed writer"};

static bool is_damaged(const struct write *w, bool record)
{
	cleanup_free char *name = text_print("w%u", w->tag);

	return damage_hit(name, record);
}

/* --- held jobs --- */

/*
 * True if W's job has ended. *RET_CERTAIN is false if the job may have ended without being
 * launched.
 */
static bool is_over(const struct write *w, bool *ret_certain)
{
	*ret_certain =
		(w->created || w->removed || (w->hold && !w->released)) && !is_damaged(w, true);
	return w->created && !w->removed ? waiters_is_over(w->job) : w->removed;
}

static bool goes_on(const struct write *w)
{
	bool certain, over = is_over(w, &certain);
	struct server_fate fate = {0};

	if (w->created)
		server_fate(w->job, &fate);
	/* A suspended job is CANCELLED until it is resumed. */
	return certain && !over && !fate.suspended;
}

/*
 * JOB is being launched. Check that the job for which it waits has ended. Skip this if helpers are
 * killed, because a program survives its helper for a moment.
 */
static void check_others(const struct write *w, const char *job)
{
	bool certain = !(sim_machine && sim_faults.helper_killed);

	if (w->after && certain && goes_on(w->after))
		sim_fail("%s is launched, but %s, for which it waits, has not ended", job,
			 w->after->job);
}

static void check_time(const struct write *w, const char *job)
{
	uint64_t begin_us = w->asked_us + w->begin_s * SIM_S;

	check_others(w, job);
	if (w->forgotten)
		sim_fail("%s was removed before it was launched, but it is launched", job);
	if (w->hold && !w->released)
		sim_fail("%s is launched, but nobody has released it", job);
	if (w->begin_s && !sim_faults.clock && sim_now() < begin_us)
		sim_fail("%s is launched %llu ms too early", job,
			 (unsigned long long)((begin_us - sim_now()) / SIM_MS));
}

static void draw_held(struct write *w)
{
	w->held = sim_chance(SIM_HELD, sim_faults.held);
	if (!w->held)
		return;
	w->hold = sim_chance(SIM_HELD, 500);
	w->begin_s = w->hold ? 0 : 1 + sim_below(SIM_HELD, BEGINS_S);
}

/* Decide at random whether W waits for another job, and for which of the accepted ones. */
static void draw_after(struct write *w)
{
	static const char *const wishes[] = {"ok", "failed", "any", "any"};
	size_t n = 0;

	if (w->held || !sim_faults.after || !sim_chance(SIM_AFTER, sim_faults.after))
		return;
	for (unsigned i = 0; i < n_writes; i++)
		if (writes[i].fate == ACCEPTED && writes[i].job && sim_random(SIM_AFTER) % ++n == 0)
			w->after = &writes[i];
	w->wish = wishes[sim_below(SIM_AFTER, array_size(wishes))];
	w->held = w->after;
}

/* Return the entry of W's scheduler_args that holds the job, malloc'ed. */
static char *when_of(const struct write *w)
{
	if (w->after)
		return text_print("after: ['%s:%s']", w->wish, w->after->job);
	if (w->begin_s)
		return text_print("begin: +%us", w->begin_s);
	return text_copy(w->hold ? "hold: true" : "");
}

unsigned users_limit_s(unsigned tag)
{
	return sim_machine && tag % 4 == 0 ? LIMIT_S : 0;
}

/* Return the scheduler_args of W's document, malloc'ed; "" if there are none. */
static char *args_of(const struct write *w)
{
	unsigned limit = users_limit_s(w->tag);
	cleanup_free char *begin = when_of(w), *time = text_print("time_limit: %us", limit);

	if (!limit && !w->held)
		return text_copy("");
	return text_print("scheduler_args: {%s%s%s}\n", limit ? time : "",
			  limit && w->held ? ", " : "", begin);
}

static bool is_at_server(const char *job)
{
	for (size_t i = 0; i < server_n_jobs(); i++)
		if (streq(server_job(i), job))
			return true;
	return false;
}

bool users_held(const char *job)
{
	unsigned long tag = job[0] == 'w' ? strtoul(job + 1, NULL, 10) : MOST_WRITES;

	/* A restore may remove our job, but keep another user's copy, which has the same name. */
	return tag < n_writes && writes[tag].held && !writes[tag].created && !is_at_server(job);
}

/*
 * True if kxfs may not know whether JOB, a held job, was launched: kxfs may have been killed while
 * it sent JOB, and the server does not have JOB now.
 */
bool users_may_be_not_known(const char *job)
{
	unsigned long tag = job[0] == 'w' ? strtoul(job + 1, NULL, 10) : MOST_WRITES;

	return !sim_machine && tag < n_writes && writes[tag].held && !is_at_server(job);
}

void users_copied(const char *job)
{
	unsigned long tag = job[0] == 'w' ? strtoul(job + 1, NULL, 10) : MOST_WRITES;

	if (tag < n_writes)
		writes[tag].copied = true;
}

/* --- what the server sees --- */

/* Return the write of the document from which kxfs made BODY, or NULL. */
static struct write *write_of(const char *body)
{
	const char *found = strstr(body, "echo tag-");
	unsigned long tag = found ? strtoul(found + strlen("echo tag-"), NULL, 10) : MOST_WRITES;

	return tag < n_writes ? &writes[tag] : NULL;
}

void users_sent(const char *body)
{
	struct write *w = write_of(body);
	unsigned now = sim_life() + 1;

	if (!w)
		return;
	damage_launches(w->tag, now - 1);
	if (w->sent && w->sent != now && w->released_in != now)
		sim_fail("tag %u was sent in life %u with an unknown result, but it is sent again",
			 w->tag, w->sent - 1);
	w->sent = now;
}

void users_refused(const char *body)
{
	struct write *w = write_of(body);

	if (w)
		w->sent = 0;
}

void users_created(const char *body, const char *name, const char *uid)
{
	const char *found = strstr(body, "echo tag-");
	unsigned long tag = found ? strtoul(found + strlen("echo tag-"), NULL, 10) : MOST_WRITES;
	struct write *w = &writes[min_of(tag, (unsigned long)MOST_WRITES - 1)];

	if (tag >= n_writes || !strstr(body, "-gat"))
		sim_fail("job %s was launched from a document that nobody has written", name);
	if (w->fate == WRITING || w->fate == REFUSED || w->fate == DEAD)
		sim_fail("tag %lu was launched as %s, but its document is %s", tag, name,
			 fates[w->fate]);
	check_time(w, name);
	/*
	 * A proxy may delay a POST that kxfs then retries. If a restore of etcd removes the job
	 * that the retry has created, the delayed POST may create it a second time.
	 */
	if (w->created++ || (w->undone && w->fate == ACCEPTED && !w->held && !sim_faults.late))
		sim_fail("tag %lu was launched twice: %s and %s", tag, w->job, name);
	if (w->held && w->job && !streq(w->job, name))
		sim_fail("tag %lu was held as %s, and launched as %s", tag, w->job, name);
	w->job = text_copy(name);
	w->uid = text_copy(uid);
	sim_log("server", "job %s is of tag %lu", name, tag);
}

void users_undone(const char *uid)
{
	for (unsigned i = 0; i < n_writes; i++) {
		struct write *w = &writes[i];

		if (w->created && streq(w->uid, uid)) {
			w->created = 0;
			w->undone = true;
		}
	}
}

/* --- what a machine starts --- */

const struct users_roles *users_roles(unsigned tag)
{
	return &writes[tag].roles;
}

static void draw_roles(struct write *w)
{
	struct users_roles *r = &w->roles;

	*r = (struct users_roles){1, 0, w->tag % 3, BY_REPLICA};
	if (!sim_machine || !sim_chance(SIM_ROLES, sim_faults.roles))
		return;
	r->main = 1 + sim_below(SIM_ROLES, 3);
	r->side = sim_below(SIM_ROLES, 3);
	r->policy = (enum users_policy)sim_below(SIM_ROLES, 3);
}

/*
 * Return role NAME with N replicas as YAML, malloc'ed; "" if N is 0. It contains a comment of ROOM
 * digits, which makes the document longer.
 */
static char *role_text(const struct write *w, const char *name, unsigned n, int room)
{
	static const char *const policies[] = {"REPLICA", "ROLE", "APPLICATION"};
	cleanup_free char *many = n > 1 ? text_print("  num_replicas: %u\n", n) : text_copy("");

	if (!n)
		return text_copy("");
	return text_print("- name: %s\n  image: x\n  entrypoint: sh\n%s"
			  "  # %0*d\n  retry_policy: %s\n  max_retries: %u\n"
			  "  args: [-c, 'echo tag-%u-gat']\n",
			  name, many, room, 0, policies[w->roles.policy], w->roles.retries, w->tag);
}

void users_started(unsigned tag, const char *job, bool first, unsigned life, unsigned boot)
{
	struct write *w = &writes[min_of(tag, MOST_WRITES - 1u)];

	if (tag >= n_writes)
		sim_fail("%s was started from a document that nobody has written", job);
	if (w->fate == WRITING || w->fate == REFUSED || w->fate == DEAD)
		sim_fail("tag %u was started as %s, but its document is %s", tag, job,
			 fates[w->fate]);
	if (w->job && w->created && !streq(w->job, job))
		sim_fail("tag %u was launched twice: %s and %s", tag, w->job, job);
	damage_launches(tag, life);
	/*
	 * If the writer of a job got no result, or an unclear one, a later mount must not start the
	 * job. There are two exceptions: kxfs could neither start the helper nor record this
	 * failure, or a hanging disk delayed the start. Then the next mount starts the job.
	 */
	if (!w->created)
		check_time(w, job);
	if (!w->created && w->fate == ASKED && first && !w->not_started && !w->held &&
	    !machine_places() && !sim_faults.disk_error && sim_disk_hung_life() < w->life &&
	    life > w->life && boot == w->boot && !w->left)
		sim_fail(
			"tag %u was started as %s by a later mount, but its close has not returned 0",
			tag, job);
	if (!w->created++)
		w->job = text_copy(job);
	w->created = 1;
}

void users_not_started(unsigned tag, const char *job)
{
	writes[tag].not_started++;
	if (!writes[tag].job)
		writes[tag].job = text_copy(job);
}

void users_shown(const char *job)
{
	for (unsigned i = 0; i < n_writes; i++)
		writes[i].shown |= streq(writes[i].job, job);
}

void users_left(void)
{
	for (unsigned i = 0; i < n_writes; i++)
		writes[i].left |= writes[i].fate == ASKED && writes[i].life == sim_life();
}

bool users_removed(const char *job)
{
	for (unsigned i = 0; i < n_writes; i++)
		if (writes[i].job && streq(writes[i].job, job))
			return writes[i].removed;
	return false;
}

/* --- one submission --- */

/*
 * Return the stream of random numbers for W. Each submission has its own, so that its draws don't
 * affect others.
 */
static enum sim_stream stream_of(const struct write *w)
{
	return (enum sim_stream)(SIM_WRITER + w->tag);
}

/*
 * Return W's document. No prefix of it is a valid AppDef, because kxfs would launch a valid prefix:
 * if kxfs can't see a writing process that was killed, its close looks like any other.
 */
static char *text_of(struct write *w)
{
	/* The retries that documents request, except those for Volcano. */
	static const char *const retries[] = {"", "", "  max_retries: 1\n",
					      "  max_retries: 2\n  retry_policy: REPLICA\n",
					      "  max_retries: 1\n  retry_policy: REPLICA\n"};
	int n = (int)(1 + sim_below(stream_of(w), 900));
	cleanup_free char *name = text_print("name: w%u\n", w->tag), *role = NULL;
	cleanup_free char *args = args_of(w);
	bool unseen = w->writing.sight != KERNEL_SEEN;
	bool several = !sim_machine && server_n_kinds() > 1;
	/* A mount of several kinds uses the first unless the document names one. */
	bool chosen = several && sim_chance(stream_of(w), 800);
	size_t kind = chosen ? sim_below(stream_of(w), (unsigned)server_n_kinds()) : 0;
	bool tried = !sim_machine && chosen == several && !streq(server_kind(kind), "volcano");
	cleanup_free char *scheduler =
		chosen ? text_print("scheduler: %s\n", server_kind(kind)) : text_copy("");

	w->kind = chosen ? server_kind(kind) : NULL;
	if (sim_machine) {
		cleanup_free char *first = role_text(w, "main", w->roles.main, n);
		cleanup_free char *second = role_text(w, "side", w->roles.side, 1);

		role = text_print("roles:\n%s%s%s", first, second, args);
	} else {
		role = text_print("roles:\n- name: main\n  image: busybox\n  entrypoint: sh\n%s"
				  "  resource: {cpu: 1, gpu: %s, memMB: 100}\n  # %0*d\n"
				  "  args: [-c, 'echo tag-%u-gat']\n%s",
				  tried ? retries[w->tag % 5] : "",
				  sim_chance(stream_of(w), 100) ? "all" : "0", n, 0, w->tag, args);
	}
	return text_print("%s%s%s%s", unseen ? "" : name, scheduler, role, unseen ? name : "");
}

static bool is_unknown(int err)
{
	static const int all[] = {-EINTR, -ETIMEDOUT, -EINPROGRESS, -ENOTCONN};

	for (size_t i = 0; i < array_size(all); i++)
		if (err == all[i])
			return true;
	return false;
}

/* True if kxfs is still in its life LIFE, and mounted. */
static bool is_same(unsigned life)
{
	return life == sim_life() && sim_fs;
}

/* Check an accepted local or held job, which may not have started yet. */
static void check_started(struct write *w, pid_t pid, unsigned life)
{
	cleanup_free char *link = text_print("submit/n%u.yaml.job", w->name), *target = NULL;
	int err = kernel_readlink(pid, link, &target);
	const char *id = err ? NULL : strrchr(target, '/');

	if (!is_same(life) || !alone[w->name])
		return;
	if (err || !id)
		sim_fail("tag %u was accepted, but %s is %s", w->tag, link,
			 err ? strerror(-err) : target);
	if (!w->job)
		w->job = text_copy(id + 1);
	else if (!streq(w->job, id + 1))
		sim_fail("tag %u was accepted as %s, but %s is %s", w->tag, w->job, link, target);
}

/* Check the result that the mount shows right after the close, unless that mount has ended. */
static void check_accepted(struct write *w, pid_t pid, unsigned life)
{
	cleanup_free char *path = NULL, *link = text_print("submit/n%u.yaml.job", w->name);
	cleanup_free char *target = NULL;
	int err;

	if (sim_machine || w->held)
		return check_started(w, pid, life);
	if (w->created != 1 && !w->undone)
		sim_fail("tag %u: the close returned 0, but nothing was launched", w->tag);
	path = text_print("jobs/%s", w->job);
	err = kernel_stat(pid, path);
	if (is_same(life) && err == -ENOENT) {
		free(path);
		path = text_print("history/%s", w->job);
		err = kernel_stat(pid, path);
	}
	/*
	 * If a proxy answers in the server's place, or the server refuses a request, kxfs may only
	 * know the job's name. Then it shows the job only after a watch event, which arrives later
	 * if etcd was restored.
	 */
	if (is_same(life) && err && !sim_faults.proxied && !sim_faults.troubled &&
	    !sim_faults.stranger && !sim_faults.forbidden && !server_restores() &&
	    is_at_server(w->job))
		sim_fail("tag %u was accepted, but %s does not exist", w->tag, path);
	err = kernel_readlink(pid, link, &target);
	if (is_same(life) && alone[w->name] && (err || !strstr(target, w->job)))
		sim_fail("tag %u was accepted as %s, but %s is %s", w->tag, w->job, link,
			 err ? strerror(-err) : target);
}

/* True if NAME.error reports an unclear result for W. */
static bool is_unclear(const struct write *w, pid_t pid)
{
	cleanup_free char *path = text_print("submit/n%u.yaml.error", w->name), *text = NULL;

	if (kernel_read(pid, path, &text))
		return true;
	sim_log("user", "tag %u: %s", w->tag, text);
	return strstr(text, "could not find out") || strstr(text, "or it has been removed");
}

static void conclude(struct write *w, pid_t pid, unsigned life, int err)
{
	w->err = err;
	sim_log("user", "tag %u: %s", w->tag, err ? strerror(-err) : "accepted");
	if (!err) {
		w->fate = ACCEPTED;
		w->accepted_us = sim_now();
		check_accepted(w, pid, life);
	} else if (!is_unknown(err) && (err == -EBUSY || (alone[w->name] && !is_unclear(w, pid)))) {
		if (w->created)
			sim_fail("tag %u: the close fails with %s, but it was launched as %s",
				 w->tag, strerror(-err), w->job);
		w->fate = REFUSED;
	}
}

/*
 * Check that the close of a local job returned soon. The close waits for the disk, but neither for
 * the start of the programs nor for a clock that was set back.
 */
static void check_soon(const struct write *w)
{
	uint64_t waited = sim_awake() - w->asked_awake;

	if (w->fate == ASKED && sim_machine && !w->held && waited > SOON_S * SIM_S &&
	    !sim_faults.slow && !sim_faults.hangs && !sim_faults.disk_error)
		sim_fail("tag %u: the close that submits a local job returns only after %llu ms",
			 w->tag, (unsigned long long)(waited / SIM_MS));
}

void writer_asks(struct writing *writing)
{
	struct write *w = container_of(writing, struct write, writing);

	w->fate = ASKED;
	w->asked_us = sim_now();
	w->asked_awake = sim_awake();
	w->life = sim_life();
	w->boot = sim_boots();
	last[w->name] = w->tag + 1;
	alone[w->name] = busy[w->name] == 1 && late[w->name] != sim_life() + 1;
}

static void write_one(struct write *w, pid_t pid)
{
	cleanup_free char *text = text_of(w);
	cleanup_free char *name = text_print("n%u.yaml", w->name);
	cleanup_free char *path = text_print("submit/%s", name);
	struct writing *writing = &w->writing;
	int err;

	writing->tag = w->tag;
	writing->stream = stream_of(w);
	writing->text = text;
	writing->name = name;
	writing->path = path;
	writing->interrupt_us = sim_chance(stream_of(w), sim_faults.interrupted)
					? 1 + sim_delay(stream_of(w), SIM_S)
					: 0;
	err = writer_write(writing);
	check_soon(w);
	if (writing->late)
		late[w->name] = sim_life() + 1;
	if (w->fate == WRITING) {
		sim_log("user", "tag %u: %s", w->tag, strerror(-err));
		w->fate = DEAD;
		last[w->name] = w->tag + 1;
		alone[w->name] = false;
	} else if (writer_is_told(writing->habit)) {
		conclude(w, pid, w->life, err);
	}
}

/*
 * Let the user remove the job. Wait first, because a delayed request for the launch may still be on
 * its way: after the removal the name is free, and the request would launch the job again.
 */
static void remove_one(struct write *w, pid_t pid)
{
	cleanup_free char *path = NULL;
	unsigned life, restores;
	int err;

	sim_sleep((sim_faults.late ? LATE_S : REMOVED_S) * SIM_S +
		  sim_random(stream_of(w)) % (300 * SIM_S));
	path = text_print("jobs/%s", w->job);
	life = sim_life();
	restores = server_restores();
	w->removed = true;
	err = looker_remove(pid, path);
	sim_log("user", "tag %u: rm -r %s: %s", w->tag, path, err ? strerror(-err) : "removed");
	/* kxfs keeps a job whose launch is unclear. Other jobs continue to wait for its end. */
	if (err == -EAGAIN && !w->created)
		w->removed = false;
	w->unsure = err && err != -ENOENT;
	w->forgotten = !err && !w->created && !w->shown;
	if (!err && !sim_machine && life == sim_life() && restores == server_restores() && w->uid &&
	    server_has_job(w->uid))
		sim_fail("tag %u: %s was removed, but its job still exists", w->tag, path);
}

/* Let the user release the held job after some time. Retry until it succeeds or the job is gone. */
static void release_one(struct write *w, pid_t pid)
{
	cleanup_free char *path = text_print("jobs/%s/ctl", w->job);
	struct kernel_file f;
	int err;

	sim_sleep(sim_random(SIM_HELD) % (BEGINS_S * SIM_S));
	do {
		w->released = true;
		w->released_in = sim_life() + 1;
		err = kernel_open(&f, pid, path, O_WRONLY | O_TRUNC);
		if (!err) {
			err = kernel_write(&f, "release", strlen("release"), 0);
			kernel_close(&f, 0);
		}
		sim_log("user", "tag %u: release > %s: %s", w->tag, path,
			err ? strerror(-err) : "done");
		sim_sleep(SIM_S);
	} while (err && err != -EINVAL && err != -ENOENT && err != -EOPNOTSUPP);
}

static void writer(void *data)
{
	struct write *w = data;
	unsigned most = 60;
	pid_t pid = kernel_fork(KERNEL_SEEN);

	w->writing.pid = kernel_fork(w->writing.sight);
	if (sim_faults.interrupted)
		kernel_disturb(w->writing.pid);
	sim_sleep(w->starts_us);
	/* Wait until kxfs is mounted. */
	while (!sim_fs && most--)
		sim_sleep(SIM_S);
	busy[w->name]++;
	alone[w->name] = false;
	draw_after(w);
	write_one(w, pid);
	busy[w->name]--;
	if (w->fate == ACCEPTED && w->job && w->hold)
		release_one(w, pid);
	if (w->fate == ACCEPTED && w->job && sim_chance(stream_of(w), sim_faults.removed))
		remove_one(w, pid);
	w->gone = true;
}

void users_begin(uint64_t set)
{
	unsigned n = 1 + sim_below(SIM_USERS, MOST_WRITES - 1);
	unsigned names = 1 + sim_below(SIM_USERS, N_NAMES);
	/* In one history of three, several users may begin together. */
	unsigned crowded = sim_chance(SIM_HABITS, 333) ? sim_below(SIM_HABITS, 1000) : 0;

	for (unsigned i = 0; i < n; i++) {
		struct write *w = &writes[n_writes++];

		w->tag = i;
		w->name = sim_below(SIM_USERS, names);
		w->writing.habit = sim_below(SIM_HABITS, WRITER_HABITS);
		w->writing.sight = (enum kernel_sight)(
			sim_chance(SIM_HABITS, 800) ? KERNEL_SEEN : 1 + sim_below(SIM_HABITS, 2));
		w->writing.dies = sim_chance(SIM_HABITS, sim_faults.writer_dies);
		w->starts_us = sim_random(SIM_HABITS) % (DURING_S * SIM_S);
		if (sim_chance(SIM_HABITS, crowded))
			w->starts_us -= w->starts_us % (CROWD_S * SIM_S);
		w->writing.passed = sim_chance(SIM_PASSED, sim_faults.passed);
		draw_roles(w);
		draw_held(w);
		w->gone = !(set >> i & 1);
		if (!w->gone)
			sim_task_start(SIM_WORLD, writer, w);
	}
}

/* --- at the end --- */

static void judge_name(unsigned name, pid_t pid)
{
	const struct write *w = &writes[last[name] - 1];
	cleanup_free char *link = text_print("submit/n%u.yaml.job", name), *target = NULL;
	cleanup_free char *path = text_print("submit/n%u.yaml.error", name), *text = NULL;
	int no_link = kernel_readlink(pid, link, &target), no_error = kernel_read(pid, path, &text);
	bool there = w->created && !w->undone && !w->removed && !w->copied && is_at_server(w->job);
	struct server_fate fate = {0};

	if (w->job)
		server_fate(w->job, &fate);
	/*
	 * kxfs may have removed the record of the job, and a restore of etcd may then have brought
	 * the job back.
	 */
	there &= fate.n == 1;
	if (!alone[name] || is_damaged(w, true))
		return;
	if (there && (no_link || !strstr(target, w->job)))
		sim_fail("tag %u, which was launched as %s: %s leads to %s", w->tag, w->job, link,
			 no_link ? strerror(-no_link) : target);
	if (there && no_error == 0 && w->fate == ASKED && strstr(text, "nothing was launched"))
		sim_fail("tag %u: %s reports that nothing was launched, but %s exists", w->tag,
			 path, w->job);
	/*
	 * NAME.error shows the reason of a refusal until the mount ends. But if the disk refuses a
	 * rename, only the caller of rename gets the error. A job's link is removed together with
	 * its record.
	 */
	if (!w->created && !w->removed && !w->undone && w->life == sim_life() && no_link &&
	    no_error && !(w->err && (writer_renames(w->writing.habit) || w->err == -ENOTCONN)))
		sim_fail("tag %u was closed, but there is neither %s nor %s", w->tag, link, path);
}

/* Check that the job's app.yaml shows the text that W has written. */
static void judge_text(const struct write *w, pid_t pid)
{
	cleanup_free char *path = w->job ? text_print("jobs/%s/app.yaml", w->job) : NULL;
	cleanup_free char *tag = text_print("echo tag-%u-", w->tag), *text = NULL;

	if (w->created && is_at_server(w->job) && !w->removed && !w->undone &&
	    !sim_faults.disk_error &&
	    (kernel_read(pid, path, &text) ? !is_damaged(w, false) : !strstr(text, tag)))
		sim_fail("tag %u was launched as %s, but %s has %s", w->tag, w->job, path,
			 text ? text : "gone");
}

/* True if it is possible that no program of W was ever started. */
static bool may_not_have_run(const struct write *w)
{
	/* A job that is suspended between two attempts keeps its slot although no program runs. */
	bool waits = machine_is_full() || (sim_faults.queued && sim_faults.commanded);

	return w->removed || w->not_started || waits || sim_faults.disk_error ||
	       sim_faults.no_descriptor || sim_faults.helper_killed || sim_faults.ended;
}

/*
 * True if the job for which W waits may still run, for example because its removal failed, or may
 * have ended with a result that W does not wait for.
 */
static bool others_go_on(const struct write *w)
{
	const struct write *a = w->after;
	bool certain;

	return a && (!is_over(a, &certain) || !streq(w->wish, "any") ||
		     (a->unsure && (!a->created || !waiters_is_over(a->job))) ||
		     server_is_suspended(a->job));
}

bool users_show_not_known(const char *job, pid_t pid)
{
	cleanup_free char *path = text_print("jobs/%s/state", job), *text = NULL;

	return users_may_be_not_known(job) && !kernel_read(pid, path, &text) &&
	       strncmp(text, "SUBMITTED", strlen("SUBMITTED")) == 0;
}

/*
 * True if kxfs does not know whether W was launched, because it was killed while it sent W to the
 * server or because sending took too long. Then kxfs shows the job as SUBMITTED, and never sends it
 * again. On a machine, kxfs always knows.
 */
static bool is_not_known(const struct write *w, pid_t pid)
{
	cleanup_free char *name = text_print("w%u-", w->tag);
	struct kernel_names names cleanup(kernel_names_clear) = {0};

	if (w->created || kernel_list(pid, "jobs", &names))
		return false;
	for (size_t i = 0; i < names.n; i++)
		if (strncmp(names.v[i].name, name, strlen(name)) == 0 &&
		    users_show_not_known(names.v[i].name, pid))
			return true;
	return false;
}

/*
 * True if W's job may remain held, for one of these reasons: it was not released, it was forgotten,
 * its launch was refused, its kind was removed, the clock was set back, or the mount could not read
 * its file and has reported that.
 */
static bool may_stay_held(const struct write *w)
{
	return w->held && !w->created &&
	       (w->removed || sim_faults.quota || sim_faults.webhooks || kinds_removed(w->kind) ||
		(w->begin_s && sim_faults.clock) || sim_faults.disk_error ||
		(w->hold && !w->released) || others_go_on(w));
}

/*
 * Check that jobs/ has the server's jobs and the held jobs. It also has jobs whose launch is
 * unclear, which the server may not have. A job that was just removed may remain for a while.
 */
static void judge_jobs(pid_t pid)
{
	size_t n = 0;
	int err = 0;

	for (unsigned s = 0; s < SEEN_S; s++) {
		struct kernel_names names cleanup(kernel_names_clear) = {0};

		err = kernel_list(pid, "jobs", &names);
		n = names.n;
		for (size_t i = 0; i < names.n; i++)
			n -= users_held(names.v[i].name) || hostile_is(names.v[i].name) ||
			     users_show_not_known(names.v[i].name, pid);
		if (!err && n == server_n_jobs())
			return;
		sim_sleep(SIM_S);
	}
	sim_fail("jobs/ has %zu names of launched jobs, but the server has %zu jobs: %s", n,
		 server_n_jobs(), strerror(-err));
}

static void judge(void *data)
{
	pid_t pid = kernel_fork(KERNEL_SEEN);

	(void)data;
	for (unsigned i = 0; i < n_writes; i++) {
		if (!writes[i].gone)
			sim_fail("tag %u: its writer still waits", i);
		if (writes[i].fate == ACCEPTED && writes[i].created != 1 && !writes[i].undone &&
		    !(sim_machine && may_not_have_run(&writes[i])) && !may_stay_held(&writes[i]) &&
		    !is_damaged(&writes[i], !sim_machine) && !is_not_known(&writes[i], pid))
			sim_fail("tag %u was accepted, but launched %u times", i,
				 writes[i].created);
	}
	if (!sim_fs)
		sim_fail("kxfs is not mounted, though nothing has failed for long");
	for (unsigned i = 0; i < N_NAMES; i++)
		if (last[i])
			judge_name(i, pid);
	for (unsigned i = 0; i < n_writes; i++)
		judge_text(&writes[i], pid);
	if (sim_machine)
		machine_judge();
	else
		judge_jobs(pid);
	/* Check the bounds first, because the other checks fetch the logs of other users' jobs. */
	bounds_judge();
	archive_judge();
	readers_judge();
	waiters_judge();
	kueue_judge();
	lookers_judge();
	gaps_judge();
	judged = true;
}

void users_judge(void)
{
	sim_task_start(SIM_WORLD, judge, NULL);
}

size_t users_launched(void)
{
	size_t n = 0;

	for (unsigned i = 0; i < n_writes; i++)
		n += writes[i].created || writes[i].undone || writes[i].held ||
		     (sim_machine && writes[i].fate == ACCEPTED); /* it may be in the queue */
	return n;
}

bool users_are_judged(void)
{
	return judged;
}
