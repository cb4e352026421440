/* SPDX-License-Identifier: MIT */
/*
 * Users who write into dryrun/, each under a name of its own; some documents are invalid. After a
 * close that returned 0 the file shows what would be launched, which contains what was written; the
 * close of an invalid document never returns 0. Nothing is launched: an object or program without a
 * tag of user.c is a bug.
 */
#include <errno.h>
#include <fcntl.h>

#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define N_ASKING 3
#define ASKS	 6
#define EACH_S	 80
#define CHUNK	 300
#define WAITS_S	 2

static unsigned n_asked;

/*
 * Write TEXT to PATH in chunks. Return the result of the close, or of the first call that failed.
 */
static int write_it(pid_t pid, const char *path, const char *text)
{
	struct kernel_file f;
	size_t at = 0, n = strlen(text);
	int err = kernel_open(&f, pid, path, O_WRONLY | O_CREAT | O_TRUNC), closed;

	if (err)
		return err;
	while (at < n && !err) {
		size_t piece = min_of(1 + (size_t)sim_below(SIM_DRY, CHUNK), n - at);

		err = kernel_write(&f, text + at, piece, (off_t)at);
		at += piece;
		sim_sleep(sim_delay(SIM_DRY, 100 * SIM_MS));
	}
	closed = kernel_close(&f, sim_chance(SIM_DRY, 100) ? 1 + sim_delay(SIM_DRY, WAITS_S * SIM_S)
							   : 0);
	return err ? err : closed;
}

static void ask(pid_t pid, const char *path)
{
	bool wrong = sim_chance(SIM_DRY, 200);
	cleanup_free char *tag = text_print("dry-%u-gat", n_asked++), *shown = NULL;
	cleanup_free char *text = text_print("name: d%u\nroles:\n- name: main\n  image: busybox\n"
					     "  entrypoint: sh\n%s  args: [-c, 'echo %s']\n",
					     n_asked, wrong ? "  max_retries: many\n" : "", tag);
	int err = write_it(pid, path, text);
	unsigned life = sim_life();

	sim_log("dry", "%s, %s: %s", path, tag, err ? strerror(-err) : "done");
	if (err)
		return;
	if (wrong)
		sim_fail("%s was closed, and %s is wrong", path, tag);
	err = kernel_read(pid, path, &shown);
	/* kxfs may have dropped its bytes from memory. */
	if (life != sim_life() || !sim_fs ||
	    ((err == -EIO || err == -ESTALE) && sim_faults.disk_error) ||
	    (err == -ETIMEDOUT && sim_faults.hangs))
		return;
	if (err || streq(shown, text) || !strstr(shown, tag))
		sim_fail("%s was closed, and does not show what would be made of %s: %s", path, tag,
			 err ? strerror(-err) : shown);
}

static void asking(void *data)
{
	cleanup_free char *path = text_print("dryrun/d%zu.yaml", (size_t)data);
	pid_t pid = kernel_fork(KERNEL_SEEN);

	for (unsigned i = 0; i < ASKS; i++) {
		sim_sleep(sim_random(SIM_DRY) % (EACH_S * SIM_S));
		if (sim_fs)
			ask(pid, path);
	}
}

void dry_begin(void)
{
	for (size_t i = 0; i < N_ASKING && sim_chance(SIM_DRY, sim_faults.dry); i++)
		sim_task_start(SIM_WORLD, asking, (void *)i);
}
