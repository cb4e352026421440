/* SPDX-License-Identifier: MIT */
/*
 * Runs kxfs again and again. Each run is called a life: this file creates and starts the modules as
 * fs/mount/run.c does, but without the state directory, the session and signals, which are not
 * simulated. Then kxfs is killed or unmounted, and after a while the next life begins.
 */

#include "fs/submit/submit.h"
#include "fs/tree/tree.h"
#include "fs/vfs/fs.h"
#include "fs/vfs/park.h"
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"
#include "tests/unit/table.h"

#define STATE	   "/state"
#define ME	   "ann@sim"
#define LIFE_S	   60
#define DOWN_S	   20
#define EACH_S	   10 /* how often the machine may be suspended or its clock may step */
#define STILL_S	   30
#define STEP_S	   7200
#define HISTORY_S  (7 * 24 * 3600)
#define ROOT_NAMES 8
#define GRACE_MS   2000

struct kxfs {
	struct loop *loop;
	struct backend *backend;
	struct fs *fs;
	struct tree tree;
	struct submit *submit, *dryrun;
	struct node_dir_class root_class;
	struct node_entry_def root[ROOT_NAMES];
};

struct fs *sim_fs;

static bool mended, ending;
static uint64_t mounted_at;
static struct kxfs *here; /* the kxfs of the current life */

static void live(void *data);

static void on_expired(void *data, const char *file, const char *digest)
{
	const struct kxfs *k = data;

	submit_expired(k->submit, file, digest);
}

static void on_job(void *data, const struct spec_job *old, const struct spec_job *job)
{
	struct kxfs *k = data;

	if (job && !job->held)
		users_shown(job->id);
	tree_job_event(&k->tree, old, job);
}

static void on_log(void *data, struct log *log)
{
	struct kxfs *k = data;

	tree_log_event(&k->tree, log);
}

/*
 * Return the kinds. With chains, a JobSet controls a Link and the Link controls the pods, so
 * JobSets need a kind file that names the Link.
 */
static const struct spec_kinds *table_of_kinds(void)
{
	static struct spec_kinds kinds;
	const struct spec_kinds *shipped = test_table_of_kinds();

	if (sim_machine || !server_has_chains())
		return shipped;
	for (size_t i = 0; !kinds.n && i < shipped->n; i++)
		kinds.v[i] = shipped->v[i];
	kinds.n = shipped->n;
	for (size_t i = 0; i < kinds.n; i++) {
		cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
		const char *text = spec_shipped_kinds[0].text, *part = strstr(text, "parts:");
		cleanup_free char *chained = NULL;
		struct spec_kind *kind;

		if (!streq(kinds.v[i]->name, "jobset") || kinds.v[i] != shipped->v[i])
			continue;
		chained = text_print(
			"%.*sparts: [{api: example.com/v1, kind: Link, plural: links}]\n%s",
			(int)(part - text), text, strstr(part, "roles:"));
		if (spec_kind_file_read(chained, strlen(chained), &spec_jobset, &kind, &e) < 0)
			sim_fail("the file of JobSets has no parts: %s", spec_errors_text(&e, ""));
		kinds.v[i] = kind;
	}
	return &kinds;
}

static int make(struct kxfs *k, char **why)
{
	static char queue[] = "queue", its_name[] = "default";
	static const struct spec_pair args[] = {{queue, its_name}};
	bool one = !sim_machine && server_n_kinds() == 1;
	bool volcano = one && streq(server_kind(0), "volcano");
	const struct fs_config fs = {geteuid(), getegid(), 022, STATE};
	const struct backend_config config = {
		.kinds = table_of_kinds(),
		.kind = sim_machine ? "local"
			: one	    ? server_kind(0)
				    : "",
		.context = "",
		.namespace = "",
		.kubeconfig = "",
		.as = "",
		.selector = "",
		.capture = BACKEND_CAPTURE_OWN,
		.state_dir = STATE,
		.work_dir = "/",
		.home = "/",
		.grace_ms = GRACE_MS,
		.linger = sim_chance(SIM_MACHINE, sim_faults.lingers),
		.submitter = ME,
		.args = args,
		.n_args = volcano || (!sim_machine && kueue_is_here()) ? array_size(args) : 0,
		.jobs = machine_places(),
		.spool_limit = archive_makes_room() ? 2000 : 1u << 30,
		.archive = archive_is_here() ? SIM_ARCHIVE_DIR : NULL,
		.archives = archive_is_here(),
		.history_keep = HISTORY_S,
	};
	const struct backend_events events = {.job = on_job,
					      .expired = on_expired,
					      .log = on_log,
					      .data = k};
	struct submit_config submit = {
		.state_dir = STATE,
		.mountpoint = "/mnt",
		.submitter = ME,
	};
	int err;

	loop_new(&k->loop);
	k->root_class = (struct node_dir_class){.class = {.name = "root", NODE_DIR_OPS},
						.entries = k->root};
	k->fs = fs_new(k->loop, &fs, &k->root_class.class, &k->tree);
	err = backend_new(k->loop, &config, &events, &k->backend, why);
	if (err)
		return err;
	submit.backend = k->backend;
	k->tree = (struct tree){
		.fs = k->fs,
		.backend = k->backend,
		.submitter = ME,
		.may_end_own = true,
		.lists = lists_new(),
	};
	err = submit_new(k->fs, &submit, &submit_class, &k->submit, why);
	if (!err)
		err = submit_new(k->fs, &submit, &dryrun_class, &k->dryrun, why);
	if (err)
		return err;
	const struct node_entry_def root[] = {
		{.name = "submit", .class = &submit_class, .object = k->submit},
		{.name = "dryrun", .class = &dryrun_class, .object = k->dryrun},
		{.name = "history", .class = &history_class},
		{.name = "jobs", .class = &jobs_class},
		{.name = ".kxfs", .class = &control_class.class},
		{.name = "list", .class = &list_jobs_table.text.class},
		{0},
	};

	memcpy(k->root, root, sizeof(root));
	loop_start(k->loop);
	err = backend_start(k->backend, why);
	if (!err)
		park_start(k->fs->park);
	return err;
}

/*
 * End this life and schedule the next one. Nothing frees the memory of this life, because none of
 * its code runs any more.
 */
static void kill_it(bool power_cut)
{
	sim_log("kxfs", "-- %s --",
		power_cut ? "the machine loses power"
		: ending  ? "has ended"
			  : "killed");
	sim_fs = NULL;
	ending = false;
	sim_next_life();
	sim_loop_kill();
	sim_http_kill();
	sim_disk_kill();
	sim_process_kill_kxfs();
	if (power_cut) {
		machine_power_cut();
		archive_look();
		sim_disk_power_cut();
		archive_after_power_cut();
	}
	kernel_disconnect();
	sim_after(mended ? SIM_S : sim_delay(SIM_FAULTS, DOWN_S * SIM_S), SIM_WORLD, live,
		  (void *)(uintptr_t)sim_life());
}

static void on_killed(void *data)
{
	if ((uintptr_t)data != sim_life() || mended)
		return;
	kill_it(sim_chance(SIM_FAULTS, sim_faults.power_cut));
}

void sim_kxfs_kill(uint64_t us)
{
	sim_after(us, SIM_WORLD, on_killed, (void *)(uintptr_t)sim_life());
}

static void on_power_cut(void *data)
{
	if ((uintptr_t)data == sim_life() && !mended)
		kill_it(true);
}

void sim_kxfs_power_cut(uint64_t us)
{
	sim_after(us, SIM_WORLD, on_power_cut, (void *)(uintptr_t)sim_life());
}

/*
 * End kxfs, because it is unmounted or the mount has failed. As in a process that exits, its memory
 * is not freed.
 */
static void end(void *data)
{
	struct kxfs *k = here;
	bool stopped;

	(void)data;
	sim_log("kxfs", "-- ends --");
	sim_fs = NULL;
	kernel_unmount(k->fs);
	stopped = backend_stop(k->backend);
	loop_stop(k->loop);
	sim_log("kxfs", "has stopped%s", stopped ? "" : ", but not completely");
	ending = true;
}

static void on_ended(void *data)
{
	if ((uintptr_t)data != sim_life() || !sim_fs)
		return;
	machine_unmounted();
	users_left();
	sim_task_start(SIM_OF_KXFS, end, NULL);
}

static void begin(void *data)
{
	struct kxfs *k = here = new0(struct kxfs);
	cleanup_free char *why = NULL;
	int err;

	(void)data;
	err = make(k, &why);
	if (!err && !mended && sim_chance(SIM_MACHINE, sim_faults.not_mounted)) {
		sim_log("kxfs", "can't be mounted");
		return end(NULL);
	}
	if (err) {
		sim_log("kxfs", "can't start: %s", why ? why : strerror(-err));
		/* As in a process that exits, its memory is not freed. */
		ending = true;
		return;
	}
	submit_find_owners(k->submit);
	backend_take_charge(k->backend);
	sim_fs = k->fs;
	sim_log("kxfs", "-- mounted --");
	mounted_at = sim_now();
	damage_mounted();
}

/* Once kxfs has ended or has failed to start, schedule the next life. */
static void look(void *data)
{
	if ((uintptr_t)data != sim_life())
		return;
	if (ending)
		kill_it(false);
	else
		sim_after(SIM_S, SIM_WORLD, look, data);
}

static void live(void *data)
{
	/*
	 * If the machine has lost power since this start was scheduled, the power cut has scheduled
	 * another start.
	 */
	if ((uintptr_t)data != sim_life())
		return;
	sim_log("kxfs", "-- life %u --", sim_life());
	if (!mended)
		damage_some();
	sim_task_start(SIM_OF_KXFS, begin, NULL);
	sim_after(SIM_S, SIM_WORLD, look, (void *)(uintptr_t)sim_life());
	if (!mended && sim_chance(SIM_FAULTS, sim_faults.killed))
		sim_kxfs_kill(sim_delay(SIM_FAULTS, LIFE_S * SIM_S));
	else if (!mended && sim_chance(SIM_MACHINE, sim_faults.ended))
		sim_after(sim_delay(SIM_MACHINE, LIFE_S * SIM_S), SIM_WORLD, on_ended,
			  (void *)(uintptr_t)sim_life());
}

/* Suspend the machine, or step its clock. */
static void shake(void *data)
{
	uint64_t still = sim_delay(SIM_FAULTS, STILL_S * SIM_S);
	int64_t step = (int64_t)sim_delay(SIM_FAULTS, STEP_S * SIM_S) * 1000;

	if (mended)
		return;
	if (sim_chance(SIM_FAULTS, sim_faults.still)) {
		sim_log("machine", "is suspended for %llu ms",
			(unsigned long long)(still / SIM_MS));
		sim_stand_still(still);
	}
	if (sim_chance(SIM_FAULTS, sim_faults.clock)) {
		step = sim_chance(SIM_FAULTS, 500) ? step : -step;
		sim_log("machine", "the clock of kxfs steps by %lld ms",
			(long long)(step / 1000000));
		sim_loop_step_clock(step);
	}
	sim_after(EACH_S * SIM_S, SIM_WORLD, shake, data);
}

void sim_kxfs_begin(void)
{
	live((void *)(uintptr_t)sim_life());
	sim_after(EACH_S * SIM_S, SIM_WORLD, shake, NULL);
}

uint64_t mounted_us(void)
{
	return sim_fs ? sim_now() - mounted_at : 0;
}

void sim_kxfs_mend(void)
{
	mended = true;
}
