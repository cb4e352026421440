/* SPDX-License-Identifier: MIT */
/* Amounts of resources as Kubernetes writes them ("2400m", "456M", "1Gi"), and lists of them. */
#pragma once

#include "spec/base/base.h"

struct spec_value;

struct spec_amount {
	char *flavor; /* ResourceFlavor of Kueue, or "" */
	char *name;   /* "cpu" */
	char *text;   /* "2400m", as the server wrote it */
};

struct spec_amounts {
	struct spec_amount *v; /* in the server's order */
	size_t n;
};

/* Fill A, which must be empty, from a map of resource names to amounts. MAP may be NULL. */
void spec_amounts_read(struct spec_amounts *a, const struct spec_value *map);
/* Append an amount to A. The three texts are copied, and cut if they are long. */
void spec_amounts_add(struct spec_amounts *a, const char *flavor, const char *name,
		      const char *text);
void spec_amounts_clear(struct spec_amounts *a);
/* Return the text of the amount, borrowed; "" if A has no such amount. */
const char *spec_amounts_get(const struct spec_amounts *a, const char *flavor, const char *name);

/* Return the value in base units (cores, bytes, devices); negative if TEXT is not an amount. */
double spec_amount_value(const char *text);
/* Print VALUE, an amount of the resource NAME in base units, for users: "2.4", "1.5 GiB". */
void spec_amount_print(FILE *out, const char *name, double value);
