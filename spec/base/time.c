/* SPDX-License-Identifier: MIT */
/*
 * Parses RFC 3339 times. strptime does not suffice, because it can't parse the fractions of a
 * second in the times of a log.
 */
#include "spec/base/time.h"

struct cursor {
	const char *at, *end;
};

static bool take_char(struct cursor *c, char a, char b)
{
	if (c->at == c->end || (*c->at != a && *c->at != b))
		return false;
	c->at++;
	return true;
}

/* Parse a number of exactly N digits between MIN and MAX. */
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

/* Set *RET to the offset from UTC ("Z" or "+01:00") in seconds, positive in the east. */
static bool take_offset(struct cursor *c, int *ret)
{
	int sign, hours, minutes;

	*ret = 0;
	if (take_char(c, 'Z', 'z'))
		return true;
	if (c->at == c->end)
		return false;
	sign = *c->at == '-' ? -1 : 1;
	if (!take_char(c, '+', '-') || !take_number(c, 2, 0, 23, &hours) ||
	    !take_char(c, ':', ':') || !take_number(c, 2, 0, 59, &minutes))
		return false;
	*ret = sign * (hours * 3600 + minutes * 60);
	return true;
}

/*
 * Return the days since 1970-01-01. This function counts years from March to February, so that a
 * leap day is the last day of a year.
 */
static int64_t days_of(int year, int month, int day)
{
	static const int before_month[] = {306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275};
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t leap_days = (y >= 0 ? y / 4 - y / 100 + y / 400 : -1);

	return 365 * y + leap_days + before_month[month - 1] + day - 1 - 719468;
}

size_t spec_time_parse(const char *text, size_t len, int64_t *ret_ns)
{
	struct cursor c = {text, text + len};
	int year, month, day, hour, minute, second, offset;
	int64_t fraction = 0, unit = NS_PER_S, seconds;

	if (!take_number(&c, 4, 0, 9999, &year) || !take_char(&c, '-', '-') ||
	    !take_number(&c, 2, 1, 12, &month) || !take_char(&c, '-', '-') ||
	    !take_number(&c, 2, 1, 31, &day) || !take_char(&c, 'T', 't') ||
	    !take_number(&c, 2, 0, 23, &hour) || !take_char(&c, ':', ':') ||
	    !take_number(&c, 2, 0, 59, &minute) || !take_char(&c, ':', ':') ||
	    !take_number(&c, 2, 0, 60, &second))
		return 0;
	if (take_char(&c, '.', '.')) {
		for (; c.at < c.end && *c.at >= '0' && *c.at <= '9'; c.at++) {
			unit /= 10;
			fraction += unit * (*c.at - '0');
		}
		if (c.at[-1] == '.')
			return 0;
	}
	if (!take_offset(&c, &offset))
		return 0;
	if (day > 28 && month < 12 && day > days_of(year, month + 1, 1) - days_of(year, month, 1))
		return 0;
	seconds = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
	if (__builtin_mul_overflow(seconds, NS_PER_S, ret_ns) ||
	    __builtin_add_overflow(*ret_ns, fraction, ret_ns))
		*ret_ns = seconds < 0 ? INT64_MIN : INT64_MAX;
	return (size_t)(c.at - text);
}

void spec_time_text(int64_t ns, char ret[32])
{
	time_t seconds = ns / NS_PER_S;
	struct tm tm;

	ret[0] = '\0';
	if (ns && gmtime_r(&seconds, &tm))
		strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static const struct {
	char letter;
	int seconds;
} units[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};

bool spec_time_span_parse(const char *text, int64_t *ret_seconds)
{
	size_t digits = strspn(text, "0123456789"), i = array_size(units) - 1;

	if (!digits || (text[digits] && text[digits + 1]))
		return false;
	if (text[digits])
		for (i = 0; i < array_size(units) && units[i].letter != text[digits];)
			i++;
	if (i == array_size(units))
		return false;
	if (__builtin_mul_overflow(strtoll(text, NULL, 10), units[i].seconds, ret_seconds))
		*ret_seconds = INT64_MAX;
	return true;
}

void spec_time_span_text(int64_t seconds, char ret[24])
{
	size_t i = seconds ? 0 : array_size(units) - 1;

	while (seconds % units[i].seconds)
		i++;
	snprintf(ret, 24, "%lld%c", (long long)seconds / units[i].seconds, units[i].letter);
}
