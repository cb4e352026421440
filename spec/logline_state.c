/* SPDX-License-Identifier: MIT */
/*
 * What is known of an output: its hash, and the state as it is kept. The hash is a polynomial modulo a prime:
 * that of any stretch follows from those before and after it, and no byte need be kept for it.
 */
#include <assert.h>

#include "spec/logline_impl.h"

#define PRIME ((UINT64_C(1) << 61) - 1)
#define BASE  UINT64_C(0x1a2b3c4d5e6f7081)

__extension__ typedef unsigned __int128 wide;

static uint64_t reduce(wide value)
{
	uint64_t sum = (uint64_t)(value & PRIME) + (uint64_t)(value >> 61);

	sum = (sum & PRIME) + (sum >> 61);
	return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	return reduce((wide)a * b);
}

/* The powers of BASE from the highest down, for STEP bytes at once. */
#define STEP 8
static const uint64_t powers[STEP] = {
	UINT64_C(0x6bacbe1ccbd91f1),  /* 8 */
	UINT64_C(0xf296f460887012c),  /* 7 */
	UINT64_C(0x391546b8f5e2d29),  /* 6 */
	UINT64_C(0xb18e521cd1f982d),  /* 5 */
	UINT64_C(0x8c60e0edfe4b2d4),  /* 4 */
	UINT64_C(0xabcbd2819ea2a35),  /* 3 */
	UINT64_C(0x358a923b854e083),  /* 2 */
	UINT64_C(0x1a2b3c4d5e6f7081), /* 1 */
};

uint64_t logline_hash(uint64_t hash, const char *bytes, size_t n)
{
	for (; n >= STEP; n -= STEP, bytes += STEP) {
		wide sum = (wide)hash * powers[0] + (unsigned char)bytes[STEP - 1] + 1;

		for (size_t i = 1; i < STEP; i++)
			sum += (wide)((unsigned char)bytes[i - 1] + 1u) * powers[i];
		hash = reduce(sum);
	}
	for (size_t i = 0; i < n; i++)
		hash = reduce((wide)hash * BASE + (unsigned char)bytes[i] + 1);
	return hash;
}

uint64_t logline_hash_between(uint64_t before, uint64_t whole, uint64_t n)
{
	uint64_t power = 1, base = BASE;

	for (; n > 0; n >>= 1) {
		if (n & 1)
			power = multiply(power, base);
		base = multiply(base, base);
	}
	before = multiply(before, power);
	return whole >= before ? whole - before : whole + PRIME - before;
}

/* --- as it is kept --- */

#define MAGIC UINT64_C(0x32736f702d73786b)

/* A slot. Of this machine alone, hence in its own order of bytes. */
struct slot {
	uint64_t magic, sum; /* of what follows */
	uint64_t number;     /* of the saving */
	uint64_t size, hash;
	int64_t last_ns, max_second;
	uint64_t untimed;
	uint32_t gaps;
	uint8_t midline, plain;
	uint8_t n_marks, n_ring;
	struct logline_start first, marks[LOGLINE_MARKS], ring[LOGLINE_RING];
};

static_assert(sizeof(struct slot) <= SPEC_LOGLINE_SLOT, "a page");

static uint64_t slot_sum(const struct slot *s)
{
	const size_t head = offsetof(struct slot, number);

	return logline_hash(0, (const char *)s + head, sizeof(*s) - head);
}

void logline_sign(char *slot)
{
	struct slot s;

	memcpy(&s, slot, sizeof(s));
	s.magic = MAGIC;
	s.sum = slot_sum(&s);
	memcpy(slot, &s, sizeof(s));
}

unsigned spec_logline_save(struct spec_logline *l, char *ret)
{
	const uint64_t n_ring = min_of(l->n_lines, (uint64_t)LOGLINE_RING);
	struct slot s = {
		.number = ++l->n_saved,
		.size = l->size,
		.hash = l->hash,
		.last_ns = l->last_ns,
		.max_second = l->max_second,
		.untimed = l->untimed,
		.gaps = l->gaps,
		.midline = l->midline,
		.plain = l->plain,
		.n_marks = (uint8_t)l->n_marks,
		.n_ring = (uint8_t)n_ring,
		.first = l->first,
	};

	memcpy(s.marks, l->marks, sizeof(s.marks));
	for (uint64_t i = 0; i < n_ring; i++)
		s.ring[i] = l->ring[(l->n_lines - n_ring + i) % LOGLINE_RING];
	memset(ret, 0, SPEC_LOGLINE_SLOT);
	memcpy(ret, &s, sizeof(s));
	logline_sign(ret);
	return l->n_saved % SPEC_LOGLINE_SLOTS;
}

/* May AT bytes of output have the hash HASH? */
static bool is_hash(uint64_t at, uint64_t hash)
{
	return at > 0 ? hash < PRIME : hash == 0;
}

/* In the order of the output. */
static bool are_starts(const struct slot *s, const struct logline_start *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].ns < LOGLINE_UNTIMED || !is_hash(v[i].at, v[i].hash) ||
		    v[i].at > s->size || (i > 0 && v[i].at < v[i - 1].at))
			return false;
	return true;
}

static bool is_slot(const struct slot *s)
{
	return s->magic == MAGIC && s->sum == slot_sum(s) && is_hash(s->size, s->hash) &&
	       s->untimed <= s->size && s->midline <= 1 && s->plain <= 1 &&
	       s->n_marks <= LOGLINE_MARKS && s->n_ring <= LOGLINE_RING &&
	       (s->n_ring > 0 || s->size == 0) && are_starts(s, &s->first, 1) && s->first.at == 0 &&
	       are_starts(s, s->marks, s->n_marks) && are_starts(s, s->ring, s->n_ring);
}

/* Of two that are cut to what is there: which knows more of it? The newer one may know what begins next. */
static bool is_better(const struct spec_logline *a, const struct spec_logline *b)
{
	return a->size != b->size ? a->size > b->size : a->n_saved > b->n_saved;
}

/* What S knows of a log of SIZE bytes. */
static struct spec_logline *load_slot(const struct slot *s, uint64_t size)
{
	struct spec_logline *l = spec_logline_new();

	if (!l)
		return NULL;
	l->size = s->size;
	l->hash = s->hash;
	l->last_ns = s->last_ns;
	l->max_second = s->max_second;
	l->untimed = s->untimed;
	l->gaps = s->gaps;
	l->midline = s->midline;
	l->plain = s->plain;
	l->first = s->first;
	memcpy(l->marks, s->marks, sizeof(l->marks));
	memcpy(l->ring, s->ring, sizeof(l->ring));
	l->n_marks = s->n_marks;
	l->n_lines = s->n_ring;
	l->n_saved = s->number;
	logline_cut(l, size);
	return l;
}

struct spec_logline *spec_logline_load(const char *kept, size_t len, uint64_t size)
{
	const size_t n = min_of(len / SPEC_LOGLINE_SLOT, (size_t)SPEC_LOGLINE_SLOTS);
	struct slot slots[SPEC_LOGLINE_SLOTS];
	struct spec_logline *best = NULL;
	uint64_t number = 0;
	unsigned gaps = 0;

	for (size_t i = 0; i < n; i++) {
		struct spec_logline *l;

		memcpy(&slots[i], kept + i * SPEC_LOGLINE_SLOT, sizeof(slots[i]));
		if (!is_slot(&slots[i]))
			continue;
		number = max_of(number, slots[i].number);
		gaps = max_of(gaps, (unsigned)slots[i].gaps);
		l = load_slot(&slots[i], size);
		if (!l || !best || is_better(l, best)) {
			spec_logline_free(best);
			best = l;
		} else {
			spec_logline_free(l);
		}
		if (!l)
			return NULL;
	}
	if (!best)
		return spec_logline_new();
	/* What is kept beyond it may come after a gap of the other. */
	if (best->size < size)
		best->gaps = gaps;
	/* The newest is the first to be replaced: it may tell of more than there will ever be. */
	best->n_saved = number - 1;
	return best;
}
