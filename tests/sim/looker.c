/* SPDX-License-Identifier: MIT */
/*
 * Users who look around: ls -l of a job while it runs, cat of its texts, and rm -r. A directory
 * lists each name once; `state` is a TorchX state; `status` is that of the directory's job; no text
 * moves a cursor, whatever other users have written into it; rm -r may remove everything that it
 * finds.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/utf8.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define N_LOOKERS 2
#define LOOKS	  4
#define EACH_S	  80
#define DEEP	  2 /* levels of directories to look into */

/* --- checks of the texts --- */

static bool is_state(const char *text)
{
	static const char *const all[] = {"SUBMITTED\n", "PENDING\n",	"RUNNING\n", "SUCCEEDED\n",
					  "FAILED\n",	 "CANCELLED\n", "UNKNOWN\n"};

	for (size_t i = 0; i < array_size(all); i++)
		if (streq(text, all[i]))
			return true;
	return false;
}

static void check_text(const char *job, const char *name, const char *path, const char *text)
{
	cleanup_free char *id = text_print("id: %s\n", job);

	if (streq(name, "state") && !is_state(text))
		sim_fail("%s is %s", path, text);
	if (streq(name, "status") && strncmp(text, id, strlen(id)) != 0)
		sim_fail("%s is not of its job: %s", path, text);
	if (!spec_utf8_is_clean(text, "\n\t") && !damage_hit(job, false))
		sim_fail("%s moves the cursor of who reads it: %s", path, text);
}

/* --- ls -l, cat --- */

/*
 * Do ls -l of PATH, in the directory of JOB: get the attributes that the listing has not returned;
 * and read some files.
 */
static void look(const char *job, const char *path, pid_t pid, unsigned deep)
{
	struct kernel_names names cleanup(kernel_names_clear) = {0};

	if (kernel_list(pid, path, &names))
		return;
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.v[i].name;
		cleanup_free char *file = text_print("%s/%s", path, name), *text = NULL;

		for (size_t k = 0; k < i; k++)
			if (streq(names.v[k].name, name))
				sim_fail("%s lists %s twice", path, name);
		if (names.v[i].dir) {
			if (deep)
				look(job, file, pid, deep - 1);
		} else if (sim_chance(SIM_LOOKERS, 300) && kernel_size(pid, file) >= 0 &&
			   sim_chance(SIM_LOOKERS, 300) && !kernel_read(pid, file, &text) &&
			   deep == DEEP) {
			check_text(job, name, file, text);
		}
	}
}

static void looker(void *data)
{
	static const char *const folders[] = {"jobs", "history"};
	pid_t pid = kernel_fork(KERNEL_SEEN);

	(void)data;
	if (sim_faults.interrupted)
		kernel_disturb(pid);
	for (unsigned i = 0; i < LOOKS; i++) {
		cleanup_free char *job = NULL, *path = NULL;
		size_t n;

		sim_sleep(sim_random(SIM_LOOKERS) % (EACH_S * SIM_S));
		n = server_n_jobs();
		if (!sim_fs || n == 0)
			continue;
		job = text_copy(server_job(sim_random(SIM_LOOKERS) % n));
		path = text_print("%s/%s", folders[sim_chance(SIM_LOOKERS, 100)], job);
		look(job, path, pid, DEEP);
	}
}

void lookers_begin(void)
{
	for (unsigned i = 0; i < N_LOOKERS; i++)
		sim_task_start(SIM_WORLD, looker, NULL);
}

/* --- at the end --- */

void lookers_judge(void)
{
	static const char *const texts[] = {"state", "status", "status.json",
					    "why",   "events", "manifest.yaml"};
	struct kernel_names jobs cleanup(kernel_names_clear) = {0};
	pid_t pid = kernel_fork(KERNEL_SEEN);

	/* Only hostile users write text that kxfs would not. */
	if (!hostile_made() || kernel_list(pid, "jobs", &jobs))
		return;
	for (size_t i = 0; i < jobs.n; i++)
		for (size_t k = 0; k < array_size(texts); k++) {
			const char *job = jobs.v[i].name;
			cleanup_free char *path = text_print("jobs/%s/%s", job, texts[k]),
					  *text = NULL;

			if (!kernel_read(pid, path, &text))
				check_text(job, texts[k], path, text);
		}
}

/* --- rm -r --- */

/*
 * True if rm -r may fail with ERR because another user removes the same files, or because kxfs or
 * the disk fails.
 */
static bool may_be(int err)
{
	static const int all[] = {0, -ENOENT, -ENOTCONN, -EINTR, -ETIMEDOUT, -EIO, -ESTALE};

	for (size_t i = 0; i < array_size(all); i++)
		if (err == all[i])
			return true;
	return false;
}

int looker_remove(pid_t pid, const char *path)
{
	struct kernel_names names cleanup(kernel_names_clear) = {0};
	int err = kernel_list(pid, path, &names);

	if (!may_be(err))
		sim_fail("rm -r can't list %s: %s", path, strerror(-err));
	for (size_t i = 0; i < names.n; i++) {
		cleanup_free char *file = text_print("%s/%s", path, names.v[i].name);

		err = names.v[i].dir ? looker_remove(pid, file) : kernel_unlink(pid, file);
		if (!may_be(err))
			sim_fail("rm -r can't remove %s: %s", file, strerror(-err));
	}
	return kernel_rmdir(pid, path);
}
