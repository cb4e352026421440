/* SPDX-License-Identifier: MIT */
/*
 * Sizes, times and plain numbers of options. strtoull takes signs, blanks and 0x, which no
 * option has; so the digits are looked at before it is called.
 */
#include "fs/quantity.h"

#include <errno.h>

struct unit {
	char letter;
	uint64_t factor;
};

static int parse(const char *text, int base, const struct unit *units, uint64_t min, uint64_t max,
		 uint64_t *ret)
{
	size_t digits = strspn(text, base == 8 ? "01234567" : "0123456789");
	uint64_t factor = 1;
	uint64_t v;

	if (!digits)
		return -EINVAL;
	if (text[digits]) {
		while (units->letter && units->letter != text[digits])
			units++;
		if (!units->letter || text[digits + 1])
			return -EINVAL;
		factor = units->factor;
	}
	errno = 0;
	v = strtoull(text, NULL, base);
	if (errno || __builtin_mul_overflow(v, factor, &v) || v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int quantity_size(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const struct unit units[] = {
		{'K', UINT64_C(1) << 10},
		{'M', UINT64_C(1) << 20},
		{'G', UINT64_C(1) << 30},
		{'T', UINT64_C(1) << 40},
		{0},
	};

	return parse(text, 10, units, min, max, ret);
}

int quantity_time(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const struct unit units[] = {
		{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {0},
	};

	return parse(text, 10, units, min, max, ret);
}

int quantity_number(const char *text, int base, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const struct unit none[] = {{0}};

	return parse(text, base, none, min, max, ret);
}
