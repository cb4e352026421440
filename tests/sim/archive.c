/* SPDX-License-Identifier: MIT */
/*
 * Checks of the archive, a directory beside the state directory. A job's directory in the archive
 * must be complete and never change, whatever fails and whenever kxfs is killed or the machine
 * loses power. A complete directory has all files and all output of each run, except output that
 * the job's status reports as missing. The merged log has all lines of each replica's newest run.
 *
 * At the end kxfs reports no error of the archive, and no job has disappeared from the archive. The
 * archive has all output that was read earlier and is no longer in the state directory (reader.c).
 */
#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define EACH_S 1

/*
 * A job's directory in the archive, and its contents at the last check. THERE is false after a
 * power cut has removed the directory.
 */
struct copy {
	char *path, *text;
	bool there;
	struct copy *next;
};

static struct copy *copies;

bool archive_is_here(void)
{
	return sim_faults.archived;
}

bool archive_makes_room(void)
{
	return sim_faults.archived > 500;
}

static char *file_of(const char *dir, const char *name)
{
	cleanup_free char *path = text_print("%s/%s", dir, name);
	size_t n;
	const unsigned char *bytes = sim_disk_look(path, &n);

	return bytes ? mem_copy((const char *)bytes, n) : NULL;
}

/* Check that MERGED, the merged log in PATH, has each line of TEXT, the log of a run. */
static void check_merged(const char *path, const char *merged, const char *text)
{
	for (const char *nl; (nl = strchr(text, '\n')); text = nl + 1) {
		cleanup_free char *line = mem_copy(text, (size_t)(nl + 1 - text));

		if (!strstr(merged, line))
			sim_fail("%s/log lacks the line %s", path, line);
	}
}

/* Check that PATH, the directory ID in the archive, is complete. */
static void check_whole(const char *path, const char *id)
{
	static const char *const names[] = {"uid",	   "state", "status",
					    "status.json", "why",   "manifest.yaml"};
	cleanup_free char *status = NULL, *uid = NULL, *merged = file_of(path, "log");
	cleanup_free char *job = mem_copy(id, strcspn(id, "~"));
	const char *name;

	for (size_t i = 0; i < array_size(names); i++) {
		cleanup_free char *text = file_of(path, names[i]);

		/* `why` is empty for a job that has succeeded. */
		if (!text || (*text ? text[strlen(text) - 1] != '\n' : !streq(names[i], "why")))
			sim_fail("%s/%s is not whole", path, names[i]);
	}
	status = file_of(path, "status.json");
	uid = file_of(path, "uid");
	for (size_t i = 0; (name = sim_disk_name(path, i)); i++) {
		cleanup_free char *log = text_print("%s/log", name);
		cleanup_free char *dir = text_print("%s/%s", path, name);
		cleanup_free char *text = file_of(dir, "log");

		if (text) {
			readers_archived(job, log, text, status);
			/*
			 * Skip this check after a power cut, or if the disk has damaged a file of
			 * the job: then the merged log may lack a line.
			 */
			if (!sim_faults.power_cut && !damage_hit(job, false))
				check_merged(path, merged ? merged : "", text);
		}
	}
	sim_log("archive", "%s has all of %.*s", path, (int)strcspn(uid, "\n"), uid);
}

static void check_job(const char *path, const char *id)
{
	struct copy *c = copies;
	char *text = sim_disk_text(path);

	while (c && !streq(c->path, path))
		c = c->next;
	if (c && c->there && !streq(c->text, text))
		sim_fail("%s has changed", path);
	if (!c) {
		c = new0(struct copy);
		c->path = text_copy(path);
		c->next = copies;
		copies = c;
	}
	if (!c->there)
		check_whole(path, id);
	c->there = true;
	free(c->text);
	c->text = text;
}

void archive_look(void)
{
	const char *namespace, *day, *id;

	if (!archive_is_here())
		return;
	for (size_t i = 0; (namespace = sim_disk_name(SIM_ARCHIVE_DIR, i)); i++) {
		cleanup_free char *all = text_print(SIM_ARCHIVE_DIR "/%s", namespace);

		for (size_t j = 0; *namespace != '.' && (day = sim_disk_name(all, j)); j++) {
			cleanup_free char *jobs = text_print("%s/%s", all, day);

			for (size_t k = 0; *day != '.' && (id = sim_disk_name(jobs, k)); k++) {
				cleanup_free char *path = text_print("%s/%s", jobs, id);

				check_job(path, id);
			}
		}
	}
}

static void look(void *data)
{
	(void)data;
	archive_look();
	sim_after(EACH_S * SIM_S, SIM_WORLD, look, NULL);
}

void archive_begin_looking(void)
{
	if (archive_is_here())
		sim_after(EACH_S * SIM_S, SIM_WORLD, look, NULL);
}

void archive_after_power_cut(void)
{
	for (struct copy *c = copies; c; c = c->next) {
		cleanup_free char *text = sim_disk_text(c->path);

		/*
		 * The power cut may have undone the rename that finished this copy. kxfs then
		 * copies the job again.
		 */
		c->there = text != NULL;
	}
	archive_look();
}

bool archive_has(const char *text)
{
	for (const struct copy *c = copies; c; c = c->next)
		if (c->there && strstr(c->text, text))
			return true;
	return false;
}

void archive_judge(void)
{
	cleanup_free char *info = NULL;
	pid_t pid = kernel_fork(KERNEL_SEEN);

	if (!archive_is_here() || kernel_read(pid, ".kxfs/info", &info))
		return;
	archive_look();
	for (const struct copy *c = copies; c; c = c->next)
		if (c->there && !sim_disk_name(c->path, 0))
			sim_fail("%s is gone", c->path);
	if (!strstr(info, "archive_error: \"\"\n"))
		sim_fail("the archive is in order, and kxfs reports %s", strstr(info, "archive_e"));
}
