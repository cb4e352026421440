/* SPDX-License-Identifier: MIT */
/*
 * People who write files into submit/, and what was promised to them. Each content is written once and carries a tag,
 * by which its job is known at the server; so of each it can be said at any moment:
 *
 *	nobody has closed it whole	it is not launched
 *	its close returned 0		it has been launched, once; its job and NAME.job are there
 *	its close was refused, and	it has not been launched, and never will
 *	nothing says that this is
 *	not known
 *	anything else			it has been launched once, or not at all
 *
 * In the end, a while after the last fault: each name that was written has its verdict, and the verdict is true; jobs/
 * shows what the server has.
 */
#include <errno.h>
#include <fcntl.h>

#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define MOST_WRITES SIM_WRITERS
#define N_NAMES	    6
#define DURING_S    240 /* so long people begin to write */
#define REMOVED_S   15
#define CHUNK	    200
#define SCRATCH	    "submit/.scratch%u"

enum fate { WRITING, ASKED, ACCEPTED, REFUSED, DEAD };

struct write {
	unsigned tag, name;
	enum fate fate;
	unsigned created;
	char *job, *uid;
	int err;
	bool by_rename, dies;
	bool gone; /* its task has ended */
	/* On a machine: */
	unsigned life, boot; /* when it was asked for */
	unsigned not_started;
	bool removed; /* or is about to be */
};

static struct write writes[MOST_WRITES];
static unsigned n_writes;
static unsigned busy[N_NAMES]; /* who writes this name now */
static unsigned last[N_NAMES]; /* who was the last to ask, and 1; 0: nobody */
static bool alone
	[N_NAMES]; /* whoever asked last was the only one who wrote it then, and it was left so */
static bool judged;

static const char *const fates[] = {"being written", "asked for", "accepted", "refused",
				    "of a writer who died"};

/* --- what the server sees --- */

void users_created(const char *body, const char *name, const char *uid)
{
	const char *found = strstr(body, "echo tag-");
	unsigned long tag = found ? strtoul(found + strlen("echo tag-"), NULL, 10) : MOST_WRITES;
	struct write *w = &writes[min_of(tag, (unsigned long)MOST_WRITES - 1)];

	if (tag >= n_writes || !strstr(body, "-gat"))
		sim_fail("job %s was launched of what nobody has written", name);
	if (w->fate == WRITING || w->fate == REFUSED || w->fate == DEAD)
		sim_fail("tag %lu was launched as %s, which is %s", tag, name, fates[w->fate]);
	if (w->created++)
		sim_fail("tag %lu was launched twice: %s and %s", tag, w->job, name);
	w->job = text_copy(name);
	w->uid = text_copy(uid);
	sim_say("server", "job %s is of tag %lu", name, tag);
}

/* --- what a machine starts --- */

unsigned users_retries(unsigned tag)
{
	return tag % 3;
}

void users_started(unsigned tag, const char *job, unsigned life, unsigned boot)
{
	struct write *w = &writes[min_of(tag, MOST_WRITES - 1u)];

	if (tag >= n_writes)
		sim_fail("%s was started of what nobody has written", job);
	if (w->fate == WRITING || w->fate == REFUSED || w->fate == DEAD)
		sim_fail("tag %u was started as %s, which is %s", tag, job, fates[w->fate]);
	if (w->job && w->created && !streq(w->job, job))
		sim_fail("tag %u was launched twice: %s and %s", tag, w->job, job);
	/*
	 * Its writer was told nothing, or that this is not known; a start launches nothing by itself. Where its helper
	 * could not be started, and that could not be recorded, the next mount tries again.
	 */
	if (!w->created && w->fate == ASKED && life > w->life && boot == w->boot &&
	    !sim_faults.ended && !sim_faults.not_started)
		sim_fail(
			"tag %u was started as %s by a later mount, and its close has not returned 0",
			tag, job);
	if (!w->created++)
		w->job = text_copy(job);
	w->created = 1;
}

void users_not_started(unsigned tag)
{
	writes[tag].not_started++;
}

bool users_removed(const char *job)
{
	for (unsigned i = 0; i < n_writes; i++)
		if (writes[i].job && streq(writes[i].job, job))
			return writes[i].removed;
	return false;
}

/* --- one write --- */

/* So nobody's draws move another's. */
static enum sim_stream stream_of(const struct write *w)
{
	return (enum sim_stream)(SIM_WRITER + w->tag);
}

static char *text_of(const struct write *w)
{
	if (sim_machine)
		return text_print("name: w%u\nroles:\n- name: main\n  image: x\n  entrypoint: sh\n"
				  "  # %0*d\n  retry_policy: REPLICA\n  max_retries: %u\n"
				  "  args: [-c, 'echo tag-%u-gat']\n%s",
				  w->tag, (int)(1 + sim_below(stream_of(w), 900)), 0,
				  users_retries(w->tag), w->tag,
				  w->tag % 4 ? "" : "scheduler_args: {time_limit: 20s}\n");
	return text_print("name: w%u\nroles:\n- name: main\n  image: busybox\n  entrypoint: sh\n"
			  "  resource: {cpu: 1, gpu: %s, memMB: 100}\n  # %0*d\n"
			  "  args: [-c, 'echo tag-%u-gat']\n",
			  w->tag, sim_chance(stream_of(w), 100) ? "all" : "0",
			  (int)(1 + sim_below(stream_of(w), 900)), 0, w->tag);
}

static bool is_unknown(int err)
{
	static const int all[] = {-EINTR, -ETIMEDOUT, -EINPROGRESS, -ENOTCONN};

	for (size_t i = 0; i < array_size(all); i++)
		if (err == all[i])
			return true;
	return false;
}

static bool is_at_server(const char *job)
{
	for (size_t i = 0; i < server_n_jobs(); i++)
		if (streq(server_job(i), job))
			return true;
	return false;
}

/* The same on a machine, where its program may not have begun yet. */
static void check_started(struct write *w, pid_t pid, unsigned life)
{
	cleanup_free char *link = text_print("submit/n%u.yaml.job", w->name), *target = NULL;
	int err = kernel_readlink(pid, link, &target);
	const char *id = err ? NULL : strrchr(target, '/');

	if (life != sim_life() || !alone[w->name])
		return;
	if (err || !id)
		sim_fail("tag %u was accepted, and %s is %s", w->tag, link,
			 err ? strerror(-err) : target);
	if (!w->job)
		w->job = text_copy(id + 1);
	else if (!streq(w->job, id + 1))
		sim_fail("tag %u was accepted as %s, and %s is %s", w->tag, w->job, link, target);
}

/* A verdict is there with the close: so says the mount, if it is still the same. */
static void check_accepted(struct write *w, pid_t pid, unsigned life)
{
	cleanup_free char *path = NULL, *link = text_print("submit/n%u.yaml.job", w->name);
	cleanup_free char *target = NULL;
	int err;

	if (sim_machine)
		return check_started(w, pid, life);
	if (w->created != 1)
		sim_fail("tag %u: the close returned 0, and nothing was launched", w->tag);
	path = text_print("jobs/%s", w->job);
	err = kernel_stat(pid, path);
	if (life == sim_life() && err == -ENOENT) {
		free(path);
		path = text_print("history/%s", w->job);
		err = kernel_stat(pid, path);
	}
	/*
	 * Where somebody answers in place of the server, or it does not say what is asked, a job may be known by
	 * its name alone; its watch brings the rest, after a while if etcd was restored.
	 */
	if (life == sim_life() && err && !sim_faults.proxied && !sim_faults.troubled &&
	    !sim_faults.stranger && is_at_server(w->job))
		sim_fail("tag %u was accepted, and %s is not there", w->tag, path);
	err = kernel_readlink(pid, link, &target);
	if (life == sim_life() && alone[w->name] && (err || !strstr(target, w->job)))
		sim_fail("tag %u was accepted as %s, and %s is %s", w->tag, w->job, link,
			 err ? strerror(-err) : target);
}

/* Is what NAME.error says of W certain? */
static bool says_unclear(const struct write *w, pid_t pid)
{
	cleanup_free char *path = text_print("submit/n%u.yaml.error", w->name), *text = NULL;

	if (kernel_read(pid, path, &text))
		return true;
	sim_say("user", "tag %u: %s", w->tag, text);
	return strstr(text, "could not be found out") || strstr(text, "or it has been removed");
}

static void conclude(struct write *w, pid_t pid, unsigned life, int err)
{
	w->err = err;
	sim_say("user", "tag %u: %s", w->tag, err ? strerror(-err) : "accepted");
	if (!err) {
		w->fate = ACCEPTED;
		check_accepted(w, pid, life);
	} else if (!is_unknown(err) &&
		   (err == -EBUSY || (alone[w->name] && !says_unclear(w, pid)))) {
		if (w->created)
			sim_fail("tag %u: the close says %s, and it was launched as %s", w->tag,
				 strerror(-err), w->job);
		w->fate = REFUSED;
	}
}

static int put(struct write *w, pid_t pid, struct kernel_file *f, const char *text)
{
	size_t n = strlen(text), stop = w->dies ? sim_below(stream_of(w), (unsigned)n) : n;
	int err = 0;

	for (size_t at = 0; at < stop && !err;) {
		size_t chunk = min_of(1 + (size_t)sim_below(stream_of(w), CHUNK), stop - at);

		err = kernel_write(f, text + at, chunk, (off_t)at);
		at += chunk;
		sim_sleep(sim_delay(stream_of(w), 100 * SIM_MS));
	}
	if (w->dies)
		kernel_kill(pid);
	return err;
}

static void ask(struct write *w)
{
	w->fate = ASKED;
	w->life = sim_life();
	w->boot = sim_boots();
	last[w->name] = w->tag + 1;
	alone[w->name] = busy[w->name] == 1;
}

static void write_one(struct write *w, pid_t pid)
{
	cleanup_free char *text = text_of(w), *name = text_print("submit/n%u.yaml", w->name);
	cleanup_free char *path = w->by_rename ? text_print(SCRATCH, w->tag) : text_copy(name);
	uint64_t interrupt = sim_chance(stream_of(w), sim_faults.interrupted)
				     ? 1 + sim_delay(stream_of(w), SIM_S)
				     : 0;
	struct kernel_file f;
	unsigned life;
	int err;

	err = kernel_open(&f, pid, path, O_WRONLY | O_CREAT | O_TRUNC);
	if (err) {
		sim_say("user", "tag %u: open: %s", w->tag, strerror(-err));
		w->fate = DEAD;
		return;
	}
	life = f.life;
	sim_say("user", "tag %u: writes %s", w->tag, path);
	err = put(w, pid, &f, text);
	if (err || w->dies) {
		sim_say("user", "tag %u: %s", w->tag, err ? strerror(-err) : "is killed");
		w->fate = DEAD;
		last[w->name] = w->tag + 1;
		alone[w->name] = false;
		kernel_close(&f, 0);
		return;
	}
	if (!w->by_rename) {
		ask(w);
		conclude(w, pid, life, kernel_close(&f, interrupt));
		return;
	}
	err = kernel_close(&f, 0);
	if (!err) {
		ask(w);
		conclude(w, pid, life, kernel_rename(pid, path, name));
	} else {
		w->fate = DEAD;
	}
}

/* Who has launched a job removes it; not at once, since a try of the launch may still be on its way. */
static void remove_one(struct write *w, pid_t pid)
{
	cleanup_free char *path = NULL;
	unsigned life;
	int err;

	sim_sleep(REMOVED_S * SIM_S + sim_random(stream_of(w)) % (300 * SIM_S));
	path = text_print("jobs/%s", w->job);
	life = sim_life();
	w->removed = true;
	err = kernel_rmdir(pid, path);
	sim_say("user", "tag %u: rm -r %s: %s", w->tag, path, err ? strerror(-err) : "removed");
	if (!err && !sim_machine && life == sim_life() && server_has_job(w->uid))
		sim_fail("tag %u: %s was removed, and its job is there", w->tag, path);
}

static void writer(void *data)
{
	struct write *w = data;
/*
 * A part of it is never a whole AppDef: where kxfs can't see who writes it, the close of one who is killed can't be
 * told from another.
 */
	unsigned most = 60;
	pid_t pid = kernel_fork();

	sim_sleep(sim_random(stream_of(w)) % (DURING_S * SIM_S));
	/* It is mounted some time. */
	while (!sim_fs && most--)
		sim_sleep(SIM_S);
	busy[w->name]++;
	alone[w->name] = false;
	write_one(w, pid);
	busy[w->name]--;
	if (w->fate == ACCEPTED && w->job && sim_chance(stream_of(w), sim_faults.removed))
		remove_one(w, pid);
	w->gone = true;
}

void users_begin(uint64_t set)
{
	unsigned n = 1 + sim_below(SIM_USERS, MOST_WRITES - 1);
	unsigned names = 1 + sim_below(SIM_USERS, N_NAMES);

	for (unsigned i = 0; i < n; i++) {
		struct write *w = &writes[n_writes++];

		w->tag = i;
		w->name = sim_below(SIM_USERS, names);
		w->by_rename = sim_chance(SIM_USERS, 250);
		w->dies = sim_chance(SIM_USERS, sim_faults.writer_dies);
		w->gone = !(set >> i & 1);
		if (!w->gone)
			sim_task_start(SIM_WORLD, writer, w);
	}
}

/* --- in the end --- */

static void judge_name(unsigned name, pid_t pid)
{
	const struct write *w = &writes[last[name] - 1];
	cleanup_free char *link = text_print("submit/n%u.yaml.job", name), *target = NULL;
	cleanup_free char *path = text_print("submit/n%u.yaml.error", name), *text = NULL;
	int no_link = kernel_readlink(pid, link, &target), no_error = kernel_read(pid, path, &text);

	/*
	 * A rename that the disk refuses tells its caller alone; what kxfs was not there to hear is told nobody. A
	 * refusal, or what was not known yet, is no more, heard or not, where the machine went down right after, or the
	 * disk did not take it.
	 */
	if (!alone[name] || (!w->created && w->err && (w->by_rename || w->err == -ENOTCONN)) ||
	    ((sim_faults.power_cut || sim_faults.disk_error) && w->fate == REFUSED && no_link &&
	     no_error))
		return;
	if (no_link && no_error)
		sim_fail("tag %u was closed, and there is neither %s nor %s", w->tag, link, path);
	if (no_error == 0 && w->fate == ASKED && strstr(text, "nothing was launched") &&
	    w->created && is_at_server(w->job))
		sim_fail("tag %u: %s says that nothing was launched, and %s is there", w->tag, path,
			 w->job);
	/*
	 * If the job is gone, or its folder can't be read, and kxfs did not come to note that all was told, it may
	 * show the one before. So it does where the machine went down after a writer that was interrupted.
	 */
	if (no_link == 0 && no_error && w->fate != REFUSED && !sim_faults.disk_error &&
	    !(w->job && (strstr(target, w->job) || !is_at_server(w->job))))
		sim_fail("tag %u, which was launched as %s: %s leads to %s", w->tag,
			 w->job ? w->job : "nothing", link, target);
}

/* Is there a reason for which no program of W, a job, was started? */
static bool may_not_have_run(const struct write *w)
{
	return w->removed || w->not_started || sim_faults.disk_error || sim_faults.no_descriptor ||
	       sim_faults.helper_killed || sim_faults.ended;
}

static void judge(void *data)
{
	pid_t pid = kernel_fork();
	int n;

	(void)data;
	for (unsigned i = 0; i < n_writes; i++) {
		if (!writes[i].gone)
			sim_fail("tag %u: its writer still waits", i);
		if (writes[i].fate == ACCEPTED && writes[i].created != 1 &&
		    !(sim_machine && may_not_have_run(&writes[i])))
			sim_fail("tag %u was accepted, and launched %u times", i,
				 writes[i].created);
	}
	if (!sim_fs)
		sim_fail("kxfs is not mounted, though nothing has failed for long");
	for (unsigned i = 0; i < N_NAMES; i++)
		if (last[i])
			judge_name(i, pid);
	n = kernel_count(pid, "jobs");
	if (sim_machine)
		machine_judge();
	else if (n < 0 || (size_t)n != server_n_jobs())
		sim_fail("jobs/ has %d names, and the server %zu jobs", n, server_n_jobs());
	readers_judge();
	waiters_judge();
	judged = true;
}

void users_judge(void)
{
	sim_task_start(SIM_WORLD, judge, NULL);
}

bool users_are_judged(void)
{
	return judged;
}
