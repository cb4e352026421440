/* SPDX-License-Identifier: MIT */
/*
 * Where in a stream that ends which is known. Each of its lines that may be a known one, by its time, is a
 * guess of how the stream lies beside the output that is known; where times are not known every known line may
 * be it. A guess is dropped as soon as a line, or a part of one, does not begin where it should, or what is
 * between has another hash. What is left when all that is known has passed is right. Of two that are left the
 * one that more lines prove is better, or that which says that more of them are known, since nothing may be
 * doubled; if that shows to be wrong later, the next stream is taken to be like the other (doubts).
 */
#include <errno.h>

#include "spec/logline_impl.h"

#define GUESSES_MAX (2 * LOGLINE_RING)
/* Bytes by which a line without a time is recognised when there are others of which nothing is known. */
#define PROOF 256

/* The known line KNOWN is that which begins after STREAM_AT bytes of the stream, whose hash that is. */
struct logline_guess {
	struct logline_start known;
	uint64_t stream_at, stream_hash;
};

struct logline_match {
	uint64_t n, hash; /* of the stream's bytes */
	struct logline_guess guesses[GUESSES_MAX];
	size_t n_guesses;
	bool wrong; /* a guess was */
	/* All that is known ended at PASSED_AT, unless one of RIVALS guesses is better. */
	bool passed;
	uint64_t passed_at;
	unsigned rivals;
	/* The line at NEWER_AT is later than all that are known. */
	bool newer;
	uint64_t newer_at;
};

/* --- what is known --- */

static const struct logline_start *ring_at(const struct spec_logline *l, uint64_t i)
{
	return &l->ring[(l->n_lines - min_of(l->n_lines, (uint64_t)LOGLINE_RING) + i) %
			LOGLINE_RING];
}

/* From where on every line's beginning is known. */
static uint64_t covered_from(const struct spec_logline *l)
{
	return l->n_lines > 0 ? ring_at(l, 0)->at : UINT64_MAX;
}

/* The line that begins at AT; NULL: none does, or it is not known. */
static const struct logline_start *start_at(const struct spec_logline *l, uint64_t at)
{
	uint64_t low = 0, high = min_of(l->n_lines, (uint64_t)LOGLINE_RING);

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (ring_at(l, middle)->at < at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < min_of(l->n_lines, (uint64_t)LOGLINE_RING) && ring_at(l, low)->at == at)
		return ring_at(l, low);
	for (size_t i = 0; i < l->n_marks; i++)
		if (l->marks[i].at == at)
			return &l->marks[i];
	return l->first.at == at ? &l->first : NULL;
}

/* --- guesses --- */

/* Unless it is one of the first N_OLD. */
static void guess(struct logline_match *m, const struct logline_start *known, size_t n_old)
{
	for (size_t i = 0; i < n_old; i++)
		if (m->guesses[i].known.at - m->guesses[i].stream_at == known->at - m->n)
			return; /* the same */
	if (m->n_guesses < GUESSES_MAX)
		m->guesses[m->n_guesses++] = (struct logline_guess){*known, m->n, m->hash};
}

static void guess_by_time(const struct spec_logline *l, int64_t ns)
{
	struct logline_match *m = l->match;

	if (l->first.ns == ns)
		guess(m, &l->first, m->n_guesses);
	for (size_t i = 0; i < l->n_marks; i++)
		if (l->marks[i].ns == ns)
			guess(m, &l->marks[i], m->n_guesses);
	for (uint64_t i = 0; i < min_of(l->n_lines, (uint64_t)LOGLINE_RING); i++)
		if (ring_at(l, i)->ns == ns)
			guess(m, ring_at(l, i), m->n_guesses);
}

static void guess_untimed(const struct spec_logline *l)
{
	size_t n_old = l->match->n_guesses;

	for (uint64_t i = 0; i < min_of(l->n_lines, (uint64_t)LOGLINE_RING); i++)
		if (ring_at(l, i)->ns == LOGLINE_UNTIMED)
			guess(l->match, ring_at(l, i), n_old);
	if (l->first.ns == LOGLINE_UNTIMED && l->body_lines == 1)
		guess(l->match, &l->first, l->match->n_guesses);
}

/* Lines without times would have come by now. */
static bool untimed_passed(const struct spec_logline *l)
{
	return l->match->newer && l->match->n - l->match->newer_at >= l->untimed;
}

/* There may be lines in the stream that are known, but neither their times nor where they begin. */
static bool may_be_unseen(const struct spec_logline *l)
{
	return l->size - l->untimed < covered_from(l) && !untimed_passed(l);
}

static uint64_t known_at(const struct logline_match *m, const struct logline_guess *g)
{
	return g->known.at + (m->n - g->stream_at);
}

/* Is what the stream has since G the same as what is known up to AT, where the hash is HASH? */
static bool same(const struct logline_match *m, const struct logline_guess *g, uint64_t at,
		 uint64_t hash)
{
	uint64_t n = at - g->known.at;

	return logline_hash_between(g->known.hash, hash, n) ==
	       logline_hash_between(g->stream_hash, m->hash, n);
}

/* Is G possible, when a line begins here? */
static bool may_be(const struct spec_logline *l, const struct logline_guess *g, int64_t ns)
{
	uint64_t at = known_at(l->match, g);
	const struct logline_start *s = start_at(l, at);

	if (!s)
		return at < covered_from(l);
	return (s->ns == ns || s->ns == LOGLINE_UNTIMED) && same(l->match, g, at, s->hash);
}

/* Is there a guess that the next line will prove, or prove wrong? */
static bool has_good_guess(const struct spec_logline *l)
{
	const struct logline_match *m = l->match;

	for (size_t i = 0; i < m->n_guesses; i++)
		if (known_at(m, &m->guesses[i]) >= covered_from(l))
			return true;
	return false;
}

static void drop(struct logline_match *m, size_t i)
{
	m->guesses[i] = m->guesses[--m->n_guesses];
}

/* --- a stream --- */

/* The stream shows nothing of what is known before a line that is newer. */
static int not_found(struct spec_logline *l)
{
	struct logline_match *m = l->match;

	if (m->wrong && l->asked_at > 0) {
		l->ask_below = l->asked_at;
		return -EAGAIN;
	}
	if (!l->force)
		return -ESTALE;
	if (m->newer_at == m->n)
		return LOGLINE_GAP;
	l->blind = true;
	return -EAGAIN;
}

/* What passed was right after all, as no rival was. */
static int no_rival(struct spec_logline *l)
{
	if (l->match->passed_at == l->match->n)
		return LOGLINE_NEW;
	l->doubts = l->match->rivals; /* what came since then is to be had again */
	return -EAGAIN;
}

/* No guess is left at the beginning of a line. */
static int no_guess(struct spec_logline *l)
{
	if (!l->match->newer)
		return LOGLINE_KNOWN; /* it came long ago */
	if (may_be_unseen(l))
		return LOGLINE_KNOWN;
	return not_found(l);
}

int logline_match_line(struct spec_logline *l, int64_t ns)
{
	struct logline_match *m = l->match;
	bool good;

	if (!m)
		m = l->match = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	for (size_t i = m->n_guesses; i-- > 0;)
		if (!may_be(l, &m->guesses[i], ns)) {
			drop(m, i);
			m->wrong = true;
		}
	if (l->force && l->blind && ns > l->last_ns)
		return LOGLINE_GAP;
	if (ns > l->last_ns && !m->newer) {
		m->newer = true;
		m->newer_at = m->n;
	}
	good = has_good_guess(l);
	if (!m->passed)
		guess_by_time(l, ns);
	if (!m->passed && ns >= l->last_ns && !good && !untimed_passed(l))
		guess_untimed(l);
	if (m->n_guesses > 0)
		return LOGLINE_KNOWN;
	return m->passed ? no_rival(l) : no_guess(l);
}

size_t logline_match_most(const struct spec_logline *l, size_t n)
{
	const struct logline_match *m = l->match;

	for (size_t i = 0; i < m->n_guesses; i++)
		n = (size_t)min_of((uint64_t)n, l->size - known_at(m, &m->guesses[i]));
	return n;
}

/* All that is known has passed, if G is right: no other that was proved by as much says that it has not. */
static int passed(struct spec_logline *l, struct logline_guess g)
{
	struct logline_match *m = l->match;

	for (size_t i = m->n_guesses; i-- > 0;)
		if (m->guesses[i].stream_at > g.stream_at)
			drop(m, i);
	m->passed = true;
	m->passed_at = m->n;
	m->rivals = (unsigned)m->n_guesses;
	return m->rivals <= l->doubts ? LOGLINE_NEW : LOGLINE_KNOWN;
}

static bool is_right(const struct spec_logline *l, const struct logline_guess *g)
{
	const struct logline_match *m = l->match;

	return same(m, g, l->size, l->hash) && (g->known.ns != LOGLINE_UNTIMED ||
						m->n - g->stream_at >= PROOF || !may_be_unseen(l));
}

int logline_match_bytes(struct spec_logline *l, const char *bytes, size_t n)
{
	struct logline_match *m = l->match;

	m->hash = logline_hash(m->hash, bytes, n);
	m->n += n;
	for (size_t i = m->n_guesses; i-- > 0;) {
		const struct logline_guess g = m->guesses[i];

		if (known_at(m, &g) < l->size)
			continue;
		drop(m, i);
		if (is_right(l, &g))
			return passed(l, g);
		m->wrong = true;
	}
	return m->passed && m->n_guesses == 0 ? no_rival(l) : LOGLINE_KNOWN;
}

int logline_match_end(struct spec_logline *l)
{
	struct logline_match *m = l->match;
	bool again;

	if (!m)
		return -ESTALE;
	/* A stream may end anywhere; but one that ends there twice is likely to be whole. */
	again = l->end_n == m->n && l->end_hash == m->hash;
	l->end_n = m->n;
	l->end_hash = m->hash;
	if (m->passed && again && m->passed_at == m->n)
		return 0; /* whichever is right, it has nothing new */
	if (m->passed && again)
		l->doubts = m->rivals;
	if (m->n_guesses > 0)
		return -EAGAIN;
	if (!m->newer)
		return -ESTALE;
	return min_of(not_found(l), -EAGAIN);
}
