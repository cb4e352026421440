/* SPDX-License-Identifier: MIT */
/* Makes guesses at the place in the log where a stream begins, and checks them; see overlap.h. */
#include "spec/logline/overlap.h"

#include "spec/base/mem.h"
#include "spec/base/time.h"

#define GUESSES_MAX 256
/* number of bytes that a guess must match if no time confirms the guess */
#define PROOF 256
#define ENTRY 16384 /* bytes after which the runtime cuts a line */

struct guess {
	uint64_t at; /* offset in the log to which the stream's next byte belongs */
	uint64_t n;  /* number of bytes that have matched so far */
	bool timed;  /* the time of a line has confirmed the guess */
	/* for a later part of a cut line; the time of a part may be after that of its line */
	bool part;
};

struct overlap {
	struct spec_logline_known known;
	bool force;
	/* the minimum and the maximum of the times of known lines; an unknown time counts as 0 */
	int64_t earliest, latest;
	bool begun;   /* the first line of the stream has begun */
	int64_t ns;   /* the time of the stream's current line */
	bool skipped; /* a line newer than the known end may have been mistaken for a known line */
	struct guess guesses[GUESSES_MAX];
	size_t n_guesses;
	/*
	 * Only without FORCE: a guess has reached the end of the known output, and has PART set. If
	 * it is right, all later bytes are new. If it is wrong, the stream may be the output of
	 * another run.
	 */
	bool doubtful;

	/* a guess has reached the end of the known output; HELD has all bytes after it */
	bool reached;
	char *held;
	size_t n_held, held_room;
	struct spec_line *held_lines; /* AT is relative to the first held byte */
	size_t n_held_lines, held_lines_room;
};

struct overlap *overlap_new(struct spec_logline_known *known, bool force)
{
	struct overlap *o = new0(struct overlap);
	struct spec_line *lines = new0_n(struct spec_line, known->n_lines + 1);
	size_t n = 0;

	/*
	 * If the first record is after FROM, insert a record with an unknown time before it. Merge
	 * adjacent records with equal times.
	 */
	if (known->n_lines == 0 || known->lines[0].at > known->from)
		n++;
	for (size_t i = 0; i < known->n_lines; i++)
		if (known->lines[i].at < known->size &&
		    (n == 0 || known->lines[i].ns != lines[n - 1].ns))
			lines[n++] = known->lines[i];
	free(known->lines);
	o->force = force;
	o->known = *known;
	o->known.lines = lines;
	o->known.n_lines = n;
	*known = (struct spec_logline_known){0};
	o->earliest = INT64_MAX;
	for (size_t i = 0; i < o->known.n_lines; i++) {
		o->earliest = min_of(o->earliest, o->known.lines[i].ns);
		o->latest = max_of(o->latest, o->known.lines[i].ns);
	}
	return o;
}

void overlap_free(struct overlap *o)
{
	if (!o)
		return;
	free(o->known.bytes);
	free(o->known.lines);
	free(o->held);
	free(o->held_lines);
	free(o);
}

int64_t overlap_since(const struct overlap *o)
{
	/*
	 * If all bytes of the stored log are in memory, request the whole log. Then a clock that
	 * was set back does no harm.
	 */
	return o->known.from == 0 ? 0 : o->earliest / NS_PER_S * NS_PER_S;
}

/* Return the index of the record of the line that contains the byte at AT. */
static size_t record_of(const struct overlap *o, uint64_t at)
{
	size_t low = 0, high = o->known.n_lines;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (o->known.lines[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* True if the N BYTES may be at the offset AT of the log. Unknown bytes count as equal. */
static bool is_same(const struct overlap *o, uint64_t at, const char *bytes, size_t n)
{
	const struct spec_logline_known *k = &o->known;

	if (at < k->from) {
		uint64_t unseen = min_of(k->from - at, (uint64_t)n);

		at += unseen;
		bytes += unseen;
		n -= (size_t)unseen;
	}
	n = (size_t)min_of((uint64_t)n, k->size - at);
	return n == 0 || memcmp(k->bytes + (at - k->from), bytes, n) == 0;
}

struct line_start {
	int64_t ns;
	const char *next; /* the first N bytes of the line */
	size_t n;
};

static void add_guess(struct overlap *o, struct guess g, const struct line_start *s)
{
	if (o->n_guesses < GUESSES_MAX && is_same(o, g.at, s->next, s->n))
		o->guesses[o->n_guesses++] = g;
}

/*
 * The lines between the offsets LINE and END share one record. Add a guess for each part that the
 * runtime may have cut from one of these lines. If EACH is true, also add a guess for the start of
 * each line, except the first. TIMED is true if these lines have the time of S.
 */
static void guess_within(struct overlap *o, uint64_t line, uint64_t end, bool each, bool timed,
			 const struct line_start *s)
{
	/* Bytes before FROM are not known. If LINE is before FROM, skip the rest of the line. */
	uint64_t at = max_of(line, o->known.from);
	bool is_start = at == line;

	while (at < end) {
		const char *begin = o->known.bytes + (at - o->known.from);
		const char *newline = memchr(begin, '\n', (size_t)(end - at));
		uint64_t next = newline ? at + (uint64_t)(newline - begin) + 1 : end;

		if (each && is_start && at != line)
			add_guess(o, (struct guess){.at = at, .timed = timed}, s);
		for (uint64_t part = at + ENTRY; is_start && part < next; part += ENTRY)
			add_guess(o, (struct guess){.at = part, .part = true}, s);
		is_start = true;
		at = next;
	}
}

/*
 * Add a guess for each known line, or part of a line, that may be S. FIRST is true if S is the
 * first line of the stream.
 */
static void make_guesses(struct overlap *o, const struct line_start *s, bool first)
{
	const struct spec_logline_known *k = &o->known;

	/* A stream begins at a whole second, so its first lines may be before FROM. Skip them. */
	if (s->ns < o->earliest)
		return;
	for (size_t i = 0; i < k->n_lines; i++) {
		const struct spec_line *line = &k->lines[i];
		uint64_t end = i + 1 < k->n_lines ? line[1].at : k->size;
		bool timed = line->ns == s->ns && line->ns > 0;
		bool any = line->ns == 0 || (line->ns < s->ns && i + 1 == k->n_lines);

		if (timed || line->ns == 0)
			add_guess(o,
				  (struct guess){.at = line->at,
						 .timed = timed || (first && line->at == 0)},
				  s);
		/* A part of a line may have a later time than the line. */
		if (timed || any || (line->ns < s->ns && end - line->at > ENTRY))
			guess_within(o, line->at, end, timed || any, timed, s);
	}
}

/*
 * True if a line with the time NS may begin at the offset of G. If the known line has this time,
 * also set G->timed.
 */
static bool may_begin(const struct overlap *o, struct guess *g, int64_t ns)
{
	size_t i = record_of(o, g->at);
	const struct spec_line *line = &o->known.lines[i];

	g->timed |= line->ns > 0 && line->ns == ns;
	if (line->ns > 0 && (line->at == g->at || i + 1 < o->known.n_lines))
		return ns == line->ns;
	return ns >= line->ns;
}

static void drop(struct overlap *o, size_t i)
{
	o->guesses[i] = o->guesses[--o->n_guesses];
}

static void hold_line(struct overlap *o)
{
	if (o->n_held_lines == o->held_lines_room) {
		o->held_lines_room = max_of(2 * o->held_lines_room, (size_t)16);
		o->held_lines =
			mem_grow(o->held_lines, o->held_lines_room, sizeof(o->held_lines[0]));
	}
	o->held_lines[o->n_held_lines++] = (struct spec_line){o->n_held, o->ns};
}

int overlap_release(struct overlap *o, spec_logline_fn fn, void *data)
{
	int err = 0;

	for (size_t i = 0; i < o->n_held_lines && err == 0; i++) {
		size_t at = (size_t)o->held_lines[i].at;
		size_t end = i + 1 < o->n_held_lines ? (size_t)o->held_lines[i + 1].at : o->n_held;

		if (end > at)
			err = fn(data, o->held_lines[i].ns, o->held + at, end - at);
	}
	return min_of(err, 0);
}

enum overlap_answer overlap_line(struct overlap *o, int64_t ns, const char *next, size_t n)
{
	const struct line_start start = {ns, next, n};
	bool first = !o->begun;

	o->begun = true;
	o->ns = ns;
	for (size_t i = o->n_guesses; i-- > 0;)
		if (!may_begin(o, &o->guesses[i], ns))
			drop(o, i);
	if (o->n_guesses == 0 && o->reached)
		return OVERLAP_NEW;
	if (o->n_guesses == 0 && o->doubtful)
		return OVERLAP_NONE;
	if (o->reached)
		hold_line(o);
	/* If no guess is left, no earlier line was a known line. This may be the first one. */
	if (o->n_guesses == 0)
		make_guesses(o, &start, first);
	if (o->n_guesses == 0 && ns > o->latest)
		return OVERLAP_NONE;
	o->skipped |= ns > o->latest;
	return OVERLAP_KNOWN;
}

static void reach(struct overlap *o, size_t i)
{
	const struct guess g = o->guesses[i];

	drop(o, i);
	if (g.part && !o->force) {
		o->doubtful = true;
		return;
	}
	if (!g.part && !g.timed && g.n < PROOF)
		return;
	o->reached = true;
	o->n_held = o->n_held_lines = 0;
	hold_line(o);
}

enum overlap_answer overlap_bytes(struct overlap *o, const char *bytes, size_t n, size_t *ret_n)
{
	bool guessed = o->n_guesses > 0;

	for (size_t i = 0; i < o->n_guesses; i++)
		n = (size_t)min_of((uint64_t)n, o->known.size - o->guesses[i].at);
	*ret_n = n;
	for (size_t i = o->n_guesses; i-- > 0;)
		if (!is_same(o, o->guesses[i].at, bytes, n))
			drop(o, i);
	if (o->reached && o->n_guesses == 0) {
		*ret_n = 0;
		return OVERLAP_NEW;
	}
	if (o->reached) {
		/*
		 * HELD can't become longer than the known output, because another guess is left:
		 * if it is right, the held bytes are known bytes.
		 */
		if (o->n_held + n > o->held_room) {
			o->held_room = max_of(2 * o->held_room, o->n_held + n);
			o->held = mem_grow(o->held, o->held_room, 1);
		}
		memcpy(o->held + o->n_held, bytes, n);
		o->n_held += n;
	}
	for (size_t i = o->n_guesses; i-- > 0;) {
		o->guesses[i].at += n;
		o->guesses[i].n += n;
		if (o->guesses[i].at == o->known.size)
			reach(o, i);
	}
	if (o->n_guesses > 0)
		return OVERLAP_KNOWN;
	if (o->reached)
		return OVERLAP_NEW;
	if (o->doubtful)
		return OVERLAP_NONE;
	return guessed && o->ns > o->latest ? OVERLAP_NONE : OVERLAP_KNOWN;
}

bool overlap_is_newer(const struct overlap *o, int64_t ns)
{
	return ns > o->latest;
}

bool overlap_has_skipped(const struct overlap *o)
{
	return o->skipped;
}

bool overlap_is_found(const struct overlap *o)
{
	return o->reached || o->n_guesses > 0;
}

enum overlap_answer overlap_end(struct overlap *o, bool again)
{
	return o->reached && again ? OVERLAP_NEW : OVERLAP_KNOWN;
}
