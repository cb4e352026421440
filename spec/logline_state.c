/* SPDX-License-Identifier: MIT */
/*
 * What is known of an output: its hash, and the state as text. The hash is a polynomial modulo a prime:
 * that of any stretch follows from those before and after it, and no byte need be kept for it.
 */
#include <errno.h>
#include <inttypes.h>

#include "spec/logline_impl.h"

#define PRIME ((UINT64_C(1) << 61) - 1)
#define BASE  UINT64_C(0x1a2b3c4d5e6f7081)

/* Lines of the ring that are saved: what is lost with the others is lost only after a rotation. */
#define SAVED_RING 32

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

/* --- as text --- */

static void save_start(FILE *out, char kind, const struct logline_start *s)
{
	fprintf(out, "%c %" PRId64 " %" PRIu64 " %" PRIx64 "\n", kind, s->ns, s->at, s->hash);
}

char *spec_logline_save(const struct spec_logline *l, size_t *ret_len)
{
	char *ret = NULL;
	FILE *out = open_memstream(&ret, ret_len);
	uint64_t n = min_of(l->n_lines, (uint64_t)SAVED_RING);
	bool bad;

	if (!out)
		return NULL;
	fprintf(out,
		"kxfs-position 1\nsize %" PRIu64 " %" PRIx64 " %" PRId64 " %" PRIu64 " %u %d %d\n",
		l->size, l->hash, l->max_second, l->untimed, l->gaps, l->plain, l->midline);
	if (l->n_lines > 0)
		save_start(out, 'f', &l->first);
	for (size_t i = 0; i < l->n_marks; i++)
		save_start(out, 'm', &l->marks[i]);
	for (uint64_t i = l->n_lines - n; i < l->n_lines; i++)
		save_start(out, 'l', &l->ring[i % LOGLINE_RING]);
	fputs("end\n", out);
	bad = ferror(out);
	if (fclose(out) || bad) {
		free(ret);
		return NULL;
	}
	return ret;
}

/* One line of the text; false: it is none. */
static bool load_start(struct spec_logline *l, const char *line)
{
	struct logline_start s;
	char kind;

	if (sscanf(line, "%c %" SCNd64 " %" SCNu64 " %" SCNx64, &kind, &s.ns, &s.at, &s.hash) !=
		    4 ||
	    s.ns < LOGLINE_UNTIMED || s.at > l->size || s.hash >= PRIME)
		return false;
	if (kind == 'f') {
		l->first = s;
	} else if (kind == 'm' && l->n_marks < LOGLINE_MARKS) {
		l->marks[l->n_marks++] = s;
	} else if (kind == 'l' && l->n_lines < LOGLINE_RING) {
		l->ring[l->n_lines++] = s;
	} else {
		return false;
	}
	if (s.ns != LOGLINE_UNTIMED)
		l->last_ns = s.ns;
	return true;
}

static bool load(struct spec_logline *l, char *text)
{
	char *rest = text, *line = strsep(&rest, "\n");
	int plain, midline;

	if (!streq(line, "kxfs-position 1") || !rest)
		return false;
	line = strsep(&rest, "\n");
	if (sscanf(line, "size %" SCNu64 " %" SCNx64 " %" SCNd64 " %" SCNu64 " %u %d %d", &l->size,
		   &l->hash, &l->max_second, &l->untimed, &l->gaps, &plain, &midline) != 7 ||
	    l->hash >= PRIME || l->untimed > l->size)
		return false;
	l->plain = plain;
	l->midline = midline;
	while (rest && (line = strsep(&rest, "\n"))) {
		if (streq(line, "end"))
			return true;
		if (!load_start(l, line))
			return false;
	}
	return false;
}

int spec_logline_load(const char *text, size_t len, struct spec_logline **ret)
{
	cleanup(spec_logline_freep) struct spec_logline *l = spec_logline_new();
	cleanup_free char *copy = strndup(text, len);

	if (!l || !copy)
		return -ENOMEM;
	if (!load(l, copy))
		return -EINVAL;
	*ret = take_ptr(l);
	return 0;
}
