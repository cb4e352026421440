/* SPDX-License-Identifier: MIT */
/*
 * A spec_list stores some text for each job, in display order, to reuse it in the next list. For
 * list.jsonl, it stores the line of the job. For the table, it can't store the line, since the
 * width of a column depends on all jobs. It stores the cells of the line instead, except the age.
 * An age has one unit: 119s, 119m, 47h, 2d. Because of the coarse units, the age of an old job
 * rarely changes.
 */
#include "spec/job/list.h"

#include "spec/base/time.h"
#include "spec/base/utf8.h"
#include "spec/job/status.h"

enum column { ID, STATE, AGE, QUEUE, READY, RETRIES, SUBMITTER, KIND, REASON, N_COLUMNS };

static const char *const titles[N_COLUMNS] = {"ID",	 "STATE",     "AGE",  "QUEUE", "READY",
					      "RETRIES", "SUBMITTER", "KIND", "REASON"};

#define GAP 2 /* blanks between two columns */
/*
 * Width of the column of ids. An id is a directory's name, so it is never cut: a longer id makes
 * only its own line longer.
 */
#define ID_WIDTH   64
#define ID_MAX	   255
#define CELL_WIDTH 40
/* The last cell also has the position in the queue: "REASON (3 in QUEUE)". */
#define PLACE_WIDTH (CELL_WIDTH + 32)

struct row {
	uint64_t revision;
	int64_t changed, created; /* ns */
	const char *bytes;	  /* in spec_list.kept; malloc'ed if the row is FRESH */
	size_t len;
	bool fresh; /* the current update made BYTES, which are not in KEPT yet */
};

struct spec_list {
	enum spec_list_form form;
	struct row *rows; /* in display order */
	size_t n;
	/* hash table from revisions to rows: MASK + 1 slots, at most half of them used */
	struct row **index;
	size_t mask;
	struct spec_text *kept; /* the bytes of all rows */
};

/* --- the cells of a line; each cell ends with a NUL --- */

/* Write TEXT to TO as one word of at most MAX bytes and a NUL. Return the address after the NUL. */
static char *put_cell(char *to, const char *text, size_t max)
{
	char *const begin = to;
	const char *rest = text;

	while (*rest && (size_t)(to - begin) < max) {
		const unsigned char *c = (const unsigned char *)rest;
		uint32_t code;
		size_t n = spec_utf8_char(c, min_of(strlen(rest), (size_t)4), &code);

		*to++ = *c > ' ' && *c < 0x7f ? (char)*c : '?';
		rest += max_of(n, (size_t)1);
	}
	if (*rest)
		memcpy(to - 3, "...", 3);
	if (to == begin)
		*to++ = '-';
	*to++ = '\0';
	return to;
}

static void make_cells(const struct spec_job *job, char **ret, size_t *ret_len)
{
	char cells[ID_MAX + 1 + (N_COLUMNS - 2) * (CELL_WIDTH + 1) + PLACE_WIDTH];
	char ready[32], retries[16], *to = cells;
	uint64_t desired = 0;
	size_t n_ready = 0;

	for (size_t i = 0; i < job->n_roles; i++)
		desired += job->roles[i].desired;
	for (size_t i = 0; i < job->n_replicas; i++)
		n_ready += job->replicas[i].state == SPEC_RUNNING ||
			   job->replicas[i].state == SPEC_SUCCEEDED;
	snprintf(ready, sizeof(ready), "%zu/%llu", n_ready, (unsigned long long)desired);
	snprintf(retries, sizeof(retries), "%u", job->retries);
	to = put_cell(to, job->id, ID_MAX);
	to = put_cell(to, spec_state_name(job->state), CELL_WIDTH);
	to = put_cell(to, job->queue, CELL_WIDTH);
	to = put_cell(to, ready, CELL_WIDTH);
	to = put_cell(to, retries, CELL_WIDTH);
	to = put_cell(to, job->submitter, CELL_WIDTH);
	to = put_cell(to, job->backend, CELL_WIDTH);
	to = put_cell(to, *job->cause.reason ? job->cause.reason : job->reason, CELL_WIDTH);
	if (job->queue_position) {
		to += sprintf(to - 1, " (%u in ", job->queue_position) - 1;
		to = put_cell(to, job->queue, CELL_WIDTH);
		to = stpcpy(to - 1, ")") + 1;
	}
	*ret_len = (size_t)(to - cells);
	*ret = mem_copy(cells, *ret_len);
}

/*
 * Print the age of a job, like "12m"; "-" if CREATED (ns) is 0. If CREATED is after NOW (s),
 * because another machine's clock differs, the age is 0. If the printed age will change before
 * *UNTIL (s), set *UNTIL to the time of this change.
 */
static size_t print_age(int64_t created, int64_t now, char ret[32], int64_t *until)
{
	static const struct {
		int64_t seconds, below;
		char unit;
	} units[] = {{1, 120, 's'}, {60, 7200, 'm'}, {3600, 172800, 'h'}, {86400, INT64_MAX, 'd'}};
	int64_t age = max_of(now - created / NS_PER_S, (int64_t)0), number;
	char digits[32], *from = digits + sizeof(digits);
	size_t i = 0, len;

	if (!created)
		return (size_t)(stpcpy(ret, "-") - ret);
	while (age >= units[i].below)
		i++;
	number = age / units[i].seconds;
	*until = min_of(*until, created / NS_PER_S + (number + 1) * units[i].seconds);
	/* Don't use printf: it would take a third of the time of the whole table. */
	*--from = '\0';
	*--from = units[i].unit;
	do
		*--from = (char)('0' + number % 10);
	while (number /= 10);
	len = (size_t)(digits + sizeof(digits) - from);
	memcpy(ret, from, len);
	return len - 1;
}

struct table {
	size_t width[N_COLUMNS];
	bool kinds;  /* the jobs are of several kinds, so the table has the column KIND */
	size_t size; /* upper bound of the size of all lines */
	char *to;
};

static void measure(struct table *t, const struct row *rows, size_t n, int64_t now, int64_t *until)
{
	const char *kind = NULL;
	char age[32];
	size_t line = 1, long_ids = 0;

	for (size_t i = 0; i < N_COLUMNS; i++)
		t->width[i] = strlen(titles[i]);
	for (size_t i = 0; i < n; i++) {
		const char *cell = rows[i].bytes;

		t->width[AGE] = max_of(t->width[AGE], print_age(rows[i].created, now, age, until));
		for (size_t c = 0; c < N_COLUMNS; c++) {
			size_t len = c == AGE ? 0 : strlen(cell);

			if (c == AGE)
				continue;
			if (c == ID && len > ID_WIDTH) {
				long_ids += len;
				len = ID_WIDTH;
			}
			if (c == KIND) {
				t->kinds |= kind && !streq(kind, cell);
				kind = cell;
			}
			t->width[c] = max_of(t->width[c], len);
			cell += strlen(cell) + 1;
		}
	}
	for (size_t c = 0; c < N_COLUMNS; c++)
		line += t->width[c] + GAP;
	t->size = (n + 1) * line + long_ids;
}

/* Write a cell. Pad it to the width of its column, except in the last column. */
static void put_column(struct table *t, enum column column, const char *cell)
{
	size_t len = strlen(cell), all = max_of(t->width[column], len) + GAP;

	if (column == KIND && !t->kinds)
		return;
	memcpy(t->to, cell, len);
	t->to += len;
	if (column == N_COLUMNS - 1) {
		*t->to++ = '\n';
		return;
	}
	memset(t->to, ' ', all - len);
	t->to += all - len;
}

static struct spec_text *make_table(const struct spec_list *list, int64_t stale_since, int64_t now,
				    int64_t *ret_until)
{
	struct spec_text *text;
	struct table t = {0};
	char stale[128] = "", since[32];
	int64_t until = INT64_MAX / NS_PER_S;

	now /= NS_PER_S;
	if (stale_since) {
		spec_time_text(stale_since, since);
		snprintf(stale, sizeof(stale),
			 "stale_since: %s (kxfs can't reach the cluster, and shows the jobs as "
			 "they were at this time)\n",
			 since);
	}
	measure(&t, list->rows, list->n, now, &until);
	text = spec_text_new(NULL, strlen(stale) + t.size);
	t.to = stpcpy(text->text, stale);
	for (enum column c = 0; c < N_COLUMNS; c++)
		put_column(&t, c, titles[c]);
	for (size_t i = 0; i < list->n; i++) {
		const char *cell = list->rows[i].bytes;
		char age[32];

		print_age(list->rows[i].created, now, age, &until);
		for (enum column c = 0; c < N_COLUMNS; c++) {
			put_column(&t, c, c == AGE ? age : cell);
			if (c != AGE)
				cell += strlen(cell) + 1;
		}
	}
	text->len = (size_t)(t.to - text->text);
	text->text[text->len] = '\0';
	*ret_until = until * NS_PER_S;
	return text;
}

/* Sort rows: the job that changed last comes first. If the times are equal, the newest job does. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->changed != y->changed)
		return x->changed > y->changed ? -1 : 1;
	if (x->created != y->created)
		return x->created > y->created ? -1 : 1;
	return x->revision > y->revision ? -1 : x->revision < y->revision;
}

/* Fill the hash table. Revisions are consecutive, so their low bits are a good hash. */
static void index_rows(struct spec_list *list)
{
	size_t room = 2;

	while (room < 2 * list->n)
		room *= 2;
	list->index = new0_n(struct row *, room);
	list->mask = room - 1;
	for (size_t r = 0; r < list->n; r++) {
		size_t i = list->rows[r].revision & list->mask;

		while (list->index[i])
			i = (i + 1) & list->mask;
		list->index[i] = &list->rows[r];
	}
}

/* Move the bytes of all N rows into one text, and return it. */
static struct spec_text *keep_rows(struct row *rows, size_t n)
{
	struct spec_text *kept;
	size_t size = 0;
	char *to;

	for (size_t i = 0; i < n; i++)
		size += rows[i].len;
	kept = spec_text_new(NULL, size);
	to = kept->text;
	for (size_t i = 0; i < n; i++) {
		memcpy(to, rows[i].bytes, rows[i].len);
		if (rows[i].fresh)
			free((char *)(uintptr_t)rows[i].bytes);
		rows[i].fresh = false;
		rows[i].bytes = to;
		to += rows[i].len;
	}
	return kept;
}

static void list_clear(struct spec_list *list)
{
	free(list->rows);
	free(list->index);
	spec_text_unref(list->kept);
}

static void list_update(struct spec_list *list, const struct spec_job *const *jobs, size_t n)
{
	struct row *rows = new0_n(struct row, n);
	struct spec_text *kept;

	for (size_t i = 0; i < n; i++) {
		const struct spec_job *job = jobs[i];
		size_t at = job->revision & list->mask;
		const struct row *old;
		char *bytes;

		while ((old = list->index[at]) && old->revision != job->revision)
			at = (at + 1) & list->mask;
		if (old && job->revision) {
			rows[i] = *old;
			continue;
		}
		rows[i] = (struct row){.revision = job->revision,
				       .changed = job->changed,
				       .created = job->created,
				       .fresh = true};
		if (list->form == SPEC_LIST_TABLE)
			make_cells(job, &bytes, &rows[i].len);
		else
			spec_status_json_line(job, &bytes, &rows[i].len);
		rows[i].bytes = bytes;
	}
	qsort(rows, n, sizeof(struct row), compare_rows);
	kept = keep_rows(rows, n);
	list_clear(list);
	list->rows = rows;
	list->n = n;
	list->kept = kept;
	index_rows(list);
}

struct spec_list *spec_list_new(enum spec_list_form form)
{
	struct spec_list *list = new0(struct spec_list);

	list->form = form;
	list->kept = spec_text_new("", 0);
	index_rows(list);
	return list;
}

void spec_list_free(struct spec_list *list)
{
	if (!list)
		return;
	list_clear(list);
	free(list);
}

struct spec_text *spec_list_text(struct spec_list *list, const struct spec_job *const *jobs,
				 size_t n, int64_t stale_since, int64_t now, int64_t *ret_until)
{
	list_update(list, jobs, n);
	*ret_until = INT64_MAX;
	return list->form == SPEC_LIST_JSON ? spec_text_ref(list->kept)
					    : make_table(list, stale_since, now, ret_until);
}
