/* SPDX-License-Identifier: MIT */
/*
 * A disk that damages files of the state directory while kxfs is not mounted. It changes some
 * bytes, or cuts off the end of a file. What kxfs must do depends on the damaged part:
 *
 *  record    the next mount reports the damage and ignores the record, so it never sends or starts
 *            the job again. After that, kxfs shows a job of a cluster as if another user had
 *            created it. It does not show a local job
 *  document  of a launched job: kxfs shows the original document, or refuses to show it
 *  output    nothing is launched twice, and all states are right; the logs of the job may be wrong
 *
 * Other jobs are not affected. No checksum covers the letter in the first line of a record
 * (spec/record/head.h), so the letter is never damaged.
 */
#include "spec/base/mem.h"
#include "spec/record/head.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define MOST_FILES   64
#define MOST_BYTES   8
#define MOST_AT_ONCE 3
/*
 * The offset of the lengths in a record's first line. The checksum after them covers the lengths
 * and the head.
 */
#define LENGTHS	  (SPEC_HEAD_LETTER + 2)
#define LENGTHS_N 44 /* the lengths and the checksum */

struct damage {
	unsigned tag, life; /* LIFE: the first life (run of kxfs) that can find the damage */
	unsigned boots;
	enum { RECORD, DOCUMENT, OUTPUT } part;
	bool due; /* the next mount must report it */
	char *path, *bytes;
	size_t n;
	struct damage *next;
};

static struct damage *all;

/* --- what is damaged --- */

/* Return a copy of the file PATH, malloc'ed, or NULL. */
static char *text_at(const char *path, size_t *ret_n)
{
	const unsigned char *bytes = sim_disk_look(path, ret_n);

	return bytes ? mem_copy((const char *)bytes, *ret_n) : NULL;
}

/*
 * Return the path of a random file that is in the directory PATH or one level below it, malloc'ed,
 * or NULL.
 */
static char *choose(const char *path)
{
	char *files[MOST_FILES], *ret = NULL;
	const char *name, *below;
	size_t n = 0, len;

	for (size_t i = 0; (name = sim_disk_name(path, i)) && n < MOST_FILES; i++) {
		cleanup_free char *file = text_print("%s/%s", path, name);

		if (*name != '.' && sim_disk_look(file, &len) && len)
			files[n++] = text_copy(file);
		for (size_t k = 0; (below = sim_disk_name(file, k)) && n < MOST_FILES; k++) {
			cleanup_free char *deep = text_print("%s/%s", file, below);

			if (sim_disk_look(deep, &len) && len)
				files[n++] = text_copy(deep);
		}
	}
	if (n)
		ret = text_copy(files[sim_random(SIM_DAMAGE) % n]);
	while (n)
		free(files[--n]);
	return ret;
}

/* Change a few bytes of the file PATH, among the N bytes from FROM on. */
static void spoil(const char *path, size_t from, size_t n)
{
	size_t at = from + sim_random(SIM_DAMAGE) % n;
	size_t len = 1 + sim_below(SIM_DAMAGE, MOST_BYTES);

	/* Inverting a low bit usually turns a digit into a digit, and a letter into a letter. */
	sim_disk_flip(path, at, min_of(len, from + n - at), 1u << sim_below(SIM_DAMAGE, 4));
}

/* Damage the record at D's path, whose bytes are OLD. */
static void spoil_record(struct damage *d, const char *old)
{
	bool launched = !strstr(old, "\"HELD\"") && !strstr(old, "\"SUBMITTING\"");
	unsigned how = sim_below(SIM_DAMAGE, 10);
	struct spec_head_line line;
	size_t rest;

	if (how == 0 || spec_head_line_parse(old, d->n, &line))
		return sim_disk_cut(d->path, sim_random(SIM_DAMAGE) % d->n);
	rest = line.document + line.manifest;
	if (how == 1) {
		spoil(d->path, LENGTHS, LENGTHS_N);
	} else if (how < 4 && rest) {
		spoil(d->path, SPEC_HEAD_LINE + line.head, rest);
		if (launched)
			d->part = DOCUMENT;
	} else {
		spoil(d->path, SPEC_HEAD_LINE, line.head);
	}
}

static bool is_damaged(const char *path)
{
	for (const struct damage *d = all; d; d = d->next)
		if (streq(d->path, path))
			return true;
	return false;
}

/* Damage the record PATH, or a file of the output of its job. */
static void damage(const char *path)
{
	static const char id[] = "\"id\":\"w";
	cleanup_free char *output = text_print("/state/output/%s", strrchr(path, '/') + 1);
	struct damage *d = new0(struct damage);
	size_t n;
	cleanup_free char *record = text_at(path, &n), *old = NULL;
	const char *found = n > SPEC_HEAD_LINE ? strstr(record + SPEC_HEAD_LINE, id) : NULL;

	d->part = sim_chance(SIM_DAMAGE, 600) ? RECORD : OUTPUT;
	d->path = d->part == RECORD ? text_copy(path) : choose(output);
	/*
	 * Skip a record without a readable tag: its job was not submitted, or it is damaged. Damage
	 * a file only once, because a second damage may undo the first.
	 */
	if (!found || !d->path || is_damaged(path) || is_damaged(d->path))
		return;
	old = text_at(d->path, &d->n);
	if (d->part == RECORD)
		spoil_record(d, old);
	else if (sim_chance(SIM_DAMAGE, 500))
		spoil(d->path, 0, d->n);
	else
		sim_disk_cut(d->path, sim_random(SIM_DAMAGE) % d->n);
	d->tag = (unsigned)strtoul(found + strlen(id), NULL, 10);
	d->life = sim_life();
	d->boots = sim_boots();
	d->due = d->part == RECORD;
	d->bytes = text_at(d->path, &d->n);
	d->next = all;
	all = d;
	sim_log("disk", "%s of tag %u is damaged%s", d->path, d->tag,
		d->part == DOCUMENT ? " behind its head" : "");
}

void damage_some(void)
{
	for (unsigned i = 0; i < MOST_AT_ONCE && sim_faults.damaged; i++) {
		bool yes = sim_chance(SIM_DAMAGE, sim_faults.damaged);
		cleanup_free char *path = yes ? choose("/state/jobs") : NULL;

		if (path)
			damage(path);
	}
}

/* --- what kxfs makes of it --- */

void damage_reported(const char *text)
{
	for (struct damage *d = all; d; d = d->next)
		d->due &= !strstr(text, d->path);
}

void damage_mounted(void)
{
	for (struct damage *d = all; d; d = d->next) {
		size_t n;
		const unsigned char *bytes = d->due ? sim_disk_look(d->path, &n) : NULL;

		/* A power cut may have restored the file as it was before the damage. */
		if (bytes && n == d->n && memcmp(bytes, d->bytes, n) == 0)
			sim_fail("%s was damaged before life %u, but kxfs does not report it",
				 d->path, d->life);
		d->due = false;
	}
}

void damage_launches(unsigned tag, unsigned life)
{
	for (const struct damage *d = all; d; d = d->next)
		/* A power cut may have restored the record as it was before the damage. */
		if (d->part == RECORD && d->tag == tag && life >= d->life &&
		    d->boots == sim_boots())
			sim_fail("tag %u is launched in life %u although its record was damaged",
				 tag, life);
}

bool damage_hit(const char *job, bool record)
{
	for (const struct damage *d = all; d; d = d->next)
		if (job && *job == 'w' && strtoul(job + 1, NULL, 10) == d->tag &&
		    (!record || d->part == RECORD))
			return true;
	return false;
}
