/* SPDX-License-Identifier: MIT */
/*
 * The ways in which programs write a file, each with its calls, descriptors and processes:
 *
 *  PLAIN    cp, tee, most programs: open, truncate, write, close
 *  SHELL    { a; b; } > FILE: the shell opens it as its standard output, which the commands inherit
 *  APPEND   : > FILE, and then a; b >> FILE
 *  RENAME   rsync, sed -i: write a file whose name does not submit, then rename it to one that does
 *  VIM      test whether files can be created (4913), rename the old file away, write a new one,
 *           sync it
 *  EMACS    create a lock, which is a symbolic link, and a backup; then overwrite the file
 *  INSTALL  install, mv from another file system: remove the old file, create a new one
 *  DD       dup2 the descriptor to another number before writing
 *  POPEN    subprocess.Popen(stdout=f), f.close(): only the child has the file, so no process gets
 *           the result of the close
 *
 * Some also send the descriptor through a socket and leave it there, so that the kernel releases
 * the file later, without a close by any process.
 *
 * The last close or rename submits the text, and its caller gets the result.
 */
#include <errno.h>
#include <fcntl.h>

#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define CHUNK	    200
#define DESCRIPTORS 4
#define DIES_S	    3
#define PASSED_S    10

/* Descriptors of the writer and of its children, some of them open. */
struct hands {
	struct writing *w;
	struct kernel_file f[DESCRIPTORS];
	bool open[DESCRIPTORS];
	size_t at; /* the number of bytes of the text that were written */
};

/* --- common steps --- */

static void on_lost(void *data)
{
	struct kernel_file *f = data;

	kernel_drop(f);
	free(f);
}

/* Send a copy of the first descriptor through a socket. The socket is closed later. */
static void pass(struct hands *h)
{
	struct kernel_file *f = new0(struct kernel_file);

	kernel_dup(&h->f[0], kernel_fork(KERNEL_SEEN), f);
	sim_after(1 + sim_delay(SIM_PASSED, PASSED_S * SIM_S), SIM_WORLD, on_lost, f);
	h->w->late = true;
}

static int open_it(struct hands *h, const char *path, int flags)
{
	int err = kernel_open(&h->f[0], h->w->pid, path, O_WRONLY | flags);

	h->open[0] = !err;
	if (!err && h->w->passed && path == h->w->path)
		pass(h);
	return err;
}

/* Make descriptor TO of PID a duplicate of FROM. */
static void dup_it(struct hands *h, unsigned from, pid_t pid, unsigned to)
{
	kernel_dup(&h->f[from], pid, &h->f[to]);
	h->open[to] = true;
}

static int close_it(struct hands *h, unsigned i)
{
	h->open[i] = false;
	return kernel_close(&h->f[i], 0);
}

/*
 * Return ERR, the result of a call that changes the name. If the call was interrupted, the change
 * may still happen later.
 */
static int renamed(struct hands *h, int err)
{
	h->w->late |= err == -EINTR || err == -ETIMEDOUT;
	return err;
}

/*
 * Write the text up to byte END, in chunks of random sizes. APPENDED: pass offset 0 each time, as
 * if the kernel's idea of the file size was out of date.
 */
static int put(struct hands *h, unsigned i, size_t end, bool appended)
{
	enum sim_stream stream = h->w->stream;
	int err = 0;

	while (h->at < end && !err) {
		size_t n = min_of(1 + (size_t)sim_below(stream, CHUNK), end - h->at);

		err = kernel_write(&h->f[i], h->w->text + h->at, n, appended ? 0 : (off_t)h->at);
		h->at += n;
		sim_sleep(sim_delay(stream, 100 * SIM_MS));
	}
	return err;
}

static int put_all(struct hands *h, unsigned i)
{
	return put(h, i, strlen(h->w->text), false);
}

/* Close descriptor I as the last step, which submits the text. */
static int ask(struct hands *h, unsigned i)
{
	struct writing *w = h->w;

	h->open[i] = false;
	/*
	 * The close submits unless the process was killed before the close. A killed process in
	 * another pid namespace submits too, because kxfs can't see that it was killed.
	 */
	if (!w->killed || w->sight == KERNEL_ELSEWHERE)
		writer_asks(w);
	return kernel_close(&h->f[i], w->interrupt_us);
}

/* Write the whole text to PATH and close it, which submits. Return the first error, or 0. */
static int write_new(struct hands *h, const char *path, int flags, bool sync)
{
	int err = open_it(h, path, flags);

	if (!err)
		err = put_all(h, 0);
	if (!err && sync)
		kernel_fsync(&h->f[0]);
	return err ? err : ask(h, 0);
}

/* --- each way --- */

static int plain(struct hands *h)
{
	return write_new(h, h->w->path, O_CREAT | O_TRUNC, false);
}

static int shell(struct hands *h)
{
	size_t n = strlen(h->w->text), part = n / 3;
	int err = open_it(h, h->w->path, O_CREAT | O_TRUNC);

	if (err)
		return err;
	dup_it(h, 0, h->w->pid, 1);
	err = close_it(h, 0);
	for (unsigned i = 0; i < 3 && !err; i++) {
		dup_it(h, 1, writer_child(h->w), 2);
		err = put(h, 2, i < 2 ? (i + 1) * part : n, false);
		/* The shell ignores the result of this close. */
		close_it(h, 2);
	}
	return err ? err : ask(h, 1);
}

static int append(struct hands *h)
{
	int err = open_it(h, h->w->path, O_CREAT | O_TRUNC);

	if (!err)
		err = close_it(h, 0);
	if (!err)
		err = open_it(h, h->w->path, O_CREAT | O_APPEND);
	if (!err)
		err = put(h, 0, strlen(h->w->text), true);
	return err ? err : ask(h, 0);
}

static int by_rename(struct hands *h)
{
	cleanup_free char *scratch = text_print("submit/.scratch%u", h->w->tag);
	int err = open_it(h, scratch, O_CREAT | O_TRUNC);

	if (!err)
		err = put_all(h, 0);
	if (!err)
		err = close_it(h, 0);
	if (err || h->w->killed)
		return err ? err : -EINTR;
	writer_asks(h->w);
	return renamed(h, kernel_rename(h->w->pid, scratch, h->w->path));
}

static int vim(struct hands *h)
{
	cleanup_free char *backup = text_print("%s~", h->w->path);
	pid_t pid = h->w->pid;
	int err;

	if (open_it(h, "submit/4913", O_CREAT | O_EXCL) == 0) {
		close_it(h, 0);
		kernel_unlink(pid, "submit/4913");
	}
	renamed(h, kernel_rename(pid, h->w->path, backup));
	err = write_new(h, h->w->path, O_CREAT | O_TRUNC, true);
	kernel_unlink(pid, backup);
	return err;
}

static int emacs(struct hands *h)
{
	cleanup_free char *lock = text_print("submit/.#%s", h->w->name);
	cleanup_free char *copy = text_print("submit/#%s#", h->w->name);
	pid_t pid = h->w->pid;

	if (kernel_symlink(pid, "ann@sim.1", lock) == 0)
		sim_fail("the symbolic link %s was created", lock);
	if (open_it(h, copy, O_CREAT | O_TRUNC) == 0) {
		kernel_write(&h->f[0], h->w->text, strlen(h->w->text) / 2, 0);
		close_it(h, 0);
		kernel_unlink(pid, copy);
	}
	return write_new(h, h->w->path, O_CREAT | O_TRUNC, true);
}

static int install(struct hands *h)
{
	renamed(h, kernel_unlink(h->w->pid, h->w->path));
	return write_new(h, h->w->path, O_CREAT | O_EXCL, false);
}

static int dd(struct hands *h)
{
	int err = open_it(h, h->w->path, O_CREAT);

	if (err)
		return err;
	dup_it(h, 0, h->w->pid, 1);
	err = close_it(h, 0);
	if (!err)
		err = kernel_truncate(&h->f[1], 0);
	if (!err)
		err = put_all(h, 1);
	return err ? err : ask(h, 1);
}

static int popen_it(struct hands *h)
{
	int err = open_it(h, h->w->path, O_CREAT | O_TRUNC);

	if (err)
		return err;
	dup_it(h, 0, writer_child(h->w), 1);
	err = close_it(h, 0);
	if (!err)
		err = put_all(h, 1);
	return err ? err : ask(h, 1);
}

static const struct {
	const char *name;
	int (*fn)(struct hands *h);
	bool untold, by_rename;
} habits[WRITER_HABITS] = {
	{"writes", plain, false, false},
	{"a shell, writes", shell, false, false},
	{"appends to", append, false, false},
	{"writes and renames to", by_rename, false, true},
	{"vim, writes", vim, false, false},
	{"emacs, writes", emacs, false, false},
	{"installs", install, false, false},
	{"dd, writes", dd, false, false},
	{"a child, writes", popen_it, true, false},
};

bool writer_is_told(unsigned habit)
{
	return !habits[habit].untold;
}

bool writer_renames(unsigned habit)
{
	return habits[habit].by_rename;
}

/* --- the end of a writer --- */

pid_t writer_child(struct writing *w)
{
	w->child = kernel_fork(w->sight);
	/* A killed writer starts no child, so kill the child before it makes a call. */
	if (w->killed)
		kernel_kill(w->child);
	return w->child;
}

static void on_death(void *data)
{
	struct writing *w = data;

	if (w->over)
		return;
	w->killed = true;
	sim_log("user", "tag %u: is killed", w->tag);
	kernel_kill(w->pid);
	if (w->child)
		kernel_kill(w->child);
}

int writer_write(struct writing *w)
{
	struct hands h = {.w = w};
	int err;

	if (w->dies)
		sim_after(sim_delay(SIM_HABITS, DIES_S * SIM_S), SIM_WORLD, on_death, w);
	sim_log("user", "tag %u: %s %s", w->tag, habits[w->habit].name, w->path);
	err = habits[w->habit].fn(&h);
	w->over = true;
	for (unsigned i = 0; i < DESCRIPTORS; i++)
		if (h.open[i])
			kernel_close(&h.f[i], 0);
	return err;
}

/* --- dryrun/ --- */

/*
 * Users who write into dryrun/, each under a separate name. After a close that returned 0, the file
 * shows what would be launched, including the tag of the document. Some documents are invalid, and
 * their close never returns 0. Nothing is launched: an object or program without a tag of user.c is
 * a bug.
 */

#define N_ASKING  3
#define ASKS	  6
#define EACH_S	  80
#define DRY_CHUNK 300
#define WAITS_S	  2

static unsigned n_asked;

/* Write TEXT to PATH in chunks. Return the result of the close, or of the first failed call. */
static int write_it(pid_t pid, const char *path, const char *text)
{
	struct kernel_file f;
	size_t at = 0, n = strlen(text);
	int err = kernel_open(&f, pid, path, O_WRONLY | O_CREAT | O_TRUNC), closed;

	if (err)
		return err;
	while (at < n && !err) {
		size_t piece = min_of(1 + (size_t)sim_below(SIM_DRY, DRY_CHUNK), n - at);

		err = kernel_write(&f, text + at, piece, (off_t)at);
		at += piece;
		sim_sleep(sim_delay(SIM_DRY, 100 * SIM_MS));
	}
	closed = kernel_close(&f, sim_chance(SIM_DRY, 100) ? 1 + sim_delay(SIM_DRY, WAITS_S * SIM_S)
							   : 0);
	return err ? err : closed;
}

static void dry_ask(pid_t pid, const char *path)
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
		sim_fail("%s was closed without an error, but %s is invalid", path, tag);
	err = kernel_read(pid, path, &shown);
	/* kxfs may have dropped the bytes from memory, and the disk may fail to return them. */
	if (life != sim_life() || !sim_fs ||
	    ((err == -EIO || err == -ESTALE) && sim_faults.disk_error) ||
	    (err == -ETIMEDOUT && sim_faults.hangs))
		return;
	if (err || streq(shown, text) || !strstr(shown, tag))
		sim_fail("%s was closed, but does not show what would be launched for %s: %s", path,
			 tag, err ? strerror(-err) : shown);
}

static void asking(void *data)
{
	cleanup_free char *path = text_print("dryrun/d%zu.yaml", (size_t)data);
	pid_t pid = kernel_fork(KERNEL_SEEN);

	for (unsigned i = 0; i < ASKS; i++) {
		sim_sleep(sim_random(SIM_DRY) % (EACH_S * SIM_S));
		if (sim_fs)
			dry_ask(pid, path);
	}
}

void dry_begin(void)
{
	for (size_t i = 0; i < N_ASKING && sim_chance(SIM_DRY, sim_faults.dry); i++)
		sim_task_start(SIM_WORLD, asking, (void *)i);
}
