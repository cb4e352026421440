/* SPDX-License-Identifier: MIT */
/*
 * Parses Kubernetes' Quantity: a decimal number, then a decimal or binary suffix, or an exponent.
 */
#include "spec/base/amount.h"

#include "spec/base/mem.h"
#include "spec/base/value.h"

#define MAX_AMOUNTS 64 /* resources in a map; further ones are ignored */
#define MAX_DIGITS  40

/* Append an amount to A, whose array must have space for it. */
static void append(struct spec_amounts *a, const char *flavor, const char *name, const char *text)
{
	struct spec_amount *to = &a->v[a->n++];

	*to = (struct spec_amount){0};
	spec_read_copy(&to->flavor, flavor, READ_MAX_WORD);
	spec_read_copy(&to->name, name, READ_MAX_WORD);
	spec_read_copy(&to->text, text, READ_MAX_WORD);
}

void spec_amounts_read(struct spec_amounts *a, const struct spec_value *map)
{
	size_t n = min_of(spec_read_count(map), (size_t)MAX_AMOUNTS);

	if (n == 0)
		return;
	a->v = mem_grow(NULL, n, sizeof(*a->v));
	for (size_t i = 0; i < n; i++)
		append(a, "", spec_read_at(map, i)->key, spec_read_at(map, i)->text);
}

void spec_amounts_add(struct spec_amounts *a, const char *flavor, const char *name,
		      const char *text)
{
	a->v = mem_grow(a->v, a->n + 1, sizeof(*a->v));
	append(a, flavor, name, text);
}

void spec_amounts_clear(struct spec_amounts *a)
{
	for (size_t i = 0; i < a->n; i++)
		spec_unset(&a->v[i].flavor, &a->v[i].name, &a->v[i].text);
	free(a->v);
	*a = (struct spec_amounts){0};
}

const char *spec_amounts_get(const struct spec_amounts *a, const char *flavor, const char *name)
{
	for (size_t i = 0; i < a->n; i++)
		if (streq(a->v[i].flavor, flavor) && streq(a->v[i].name, name))
			return a->v[i].text;
	return "";
}

/* Return the factor of SUFFIX, or 0 if it is unknown. */
static double scale(const char *suffix)
{
	static const struct {
		const char *suffix;
		double by;
	} scales[] = {
		{"", 1},	{"n", 1e-9},	{"u", 1e-6},	{"m", 1e-3},
		{"k", 1e3},	{"M", 1e6},	{"G", 1e9},	{"T", 1e12},
		{"P", 1e15},	{"E", 1e18},	{"Ki", 0x1p10}, {"Mi", 0x1p20},
		{"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60},
	};
	char *end;
	long exponent;
	double by = 1;

	for (size_t i = 0; i < array_size(scales); i++)
		if (streq(scales[i].suffix, suffix))
			return scales[i].by;
	if ((*suffix != 'e' && *suffix != 'E') || !suffix[1])
		return 0;
	exponent = strtol(suffix + 1, &end, 10);
	if (*end || exponent < -18 || exponent > 18)
		return 0;
	for (; exponent > 0; exponent--)
		by *= 10;
	for (; exponent < 0; exponent++)
		by /= 10;
	return by;
}

double spec_amount_value(const char *text)
{
	size_t whole = strspn(text, "0123456789");
	size_t fraction = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
	size_t n = whole + (text[whole] == '.') + fraction;
	double value = 0, digit = 1, by = scale(text + n);

	/* Don't use strtod: it accepts other forms, and its decimal point depends on the locale. */
	if (whole + fraction == 0 || n > MAX_DIGITS || by == 0)
		return -1;
	for (size_t i = 0; i < whole; i++)
		value = value * 10 + (text[i] - '0');
	for (size_t i = 0; i < fraction; i++)
		value += (text[whole + 1 + i] - '0') * (digit /= 10);
	return value * by;
}

static bool is_bytes(const char *name)
{
	return strstr(name, "memory") || strstr(name, "storage") ||
	       strncmp(name, "hugepages-", strlen("hugepages-")) == 0;
}

/* Print VALUE with at most DIGITS digits after the decimal point, without trailing zeros. */
static void put_number(FILE *out, double value, int digits)
{
	char text[400];
	size_t n = (size_t)snprintf(text, sizeof(text), "%.*f", digits, value);

	while (digits > 0 && n > 0 && text[n - 1] == '0')
		n--;
	if (digits > 0 && n > 0 && (text[n - 1] < '0' || text[n - 1] > '9'))
		n--;
	fprintf(out, "%.*s", (int)n, text);
}

void spec_amount_print(FILE *out, const char *name, double value)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
	size_t unit = 0;

	if (!is_bytes(name)) {
		put_number(out, value, 3);
		return;
	}
	for (; value >= 1024 && unit + 1 < array_size(units); unit++)
		value /= 1024;
	put_number(out, value, 1);
	fprintf(out, " %s", units[unit]);
}
