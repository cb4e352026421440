/* SPDX-License-Identifier: MIT */
/*
 * RFC 3339 by hand: strptime has no fractions and no bound, and both are needed for each line of a log.
 */
#include "spec/time.h"

#include <time.h>

#define NS_PER_S 1000000000

struct cursor {
	const char *at, *end;
};

static bool take_char(struct cursor *c, const char *set)
{
	if (c->at == c->end || !*c->at || !strchr(set, *c->at))
		return false;
	c->at++;
	return true;
}

/* Exactly N digits, from MIN to MAX. */
static bool take_number(struct cursor *c, size_t n, int min, int max, int *ret)
{
	int value = 0;

	if ((size_t)(c->end - c->at) < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (c->at[i] < '0' || c->at[i] > '9')
			return false;
		value = 10 * value + (c->at[i] - '0');
	}
	if (value < min || value > max)
		return false;
	c->at += n;
	*ret = value;
	return true;
}

/* Digits after a dot, as ns. */
static bool take_fraction(struct cursor *c, int64_t *ret)
{
	int64_t unit = NS_PER_S;
	const char *begin = c->at;

	for (*ret = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
		unit /= 10;
		*ret += unit * (*c->at - '0');
	}
	return c->at > begin;
}

static bool take_offset(struct cursor *c, int *ret)
{
	int sign, hours, minutes;

	*ret = 0;
	if (take_char(c, "Zz"))
		return true;
	if (c->at == c->end)
		return false;
	sign = *c->at == '-' ? -1 : 1;
	if (!take_char(c, "+-") || !take_number(c, 2, 0, 23, &hours) || !take_char(c, ":") ||
	    !take_number(c, 2, 0, 59, &minutes))
		return false;
	*ret = sign * (hours * 3600 + minutes * 60);
	return true;
}

static int64_t to_ns(int64_t seconds, int64_t fraction)
{
	int64_t ns;

	if (__builtin_mul_overflow(seconds, (int64_t)NS_PER_S, &ns) ||
	    __builtin_add_overflow(ns, fraction, &ns))
		return seconds < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

size_t spec_time_parse(const char *text, size_t len, int64_t *ret_ns)
{
	struct cursor c = {text, text + len};
	struct tm tm = {0};
	int64_t fraction = 0;
	int offset;

	if (!take_number(&c, 4, 0, 9999, &tm.tm_year) || !take_char(&c, "-") ||
	    !take_number(&c, 2, 1, 12, &tm.tm_mon) || !take_char(&c, "-") ||
	    !take_number(&c, 2, 1, 31, &tm.tm_mday) || !take_char(&c, "Tt") ||
	    !take_number(&c, 2, 0, 23, &tm.tm_hour) || !take_char(&c, ":") ||
	    !take_number(&c, 2, 0, 59, &tm.tm_min) || !take_char(&c, ":") ||
	    !take_number(&c, 2, 0, 60, &tm.tm_sec))
		return 0;
	if (take_char(&c, ".") && !take_fraction(&c, &fraction))
		return 0;
	if (!take_offset(&c, &offset))
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*ret_ns = to_ns((int64_t)timegm(&tm) - offset, fraction);
	return (size_t)(c.at - text);
}
