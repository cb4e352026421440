/* SPDX-License-Identifier: MIT */
/*
 * Run options on the command line. The kinds of jobs define the options; here they are collected
 * until the kind is known.
 */
#include "fs/cli/run_options.h"

#include <errno.h>

#include "fs/cli/refuse.h"
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"

const struct spec_option *run_option_find(const char *name)
{
	const struct spec_kind *kind = spec_kind_of_option(name);

	return kind ? spec_option_find(kind->options, name) : NULL;
}

int run_option_add(struct options *o, const struct spec_option *option, const char *value,
		   char **ret_text)
{
	if (!value && option->type != SPEC_OPTION_BOOL)
		return refuse(-EINVAL, ret_text, "-o %s needs a value: %s=VALUE", option->name,
			      option->name);
	o->args = mem_grow(o->args, o->n_args + 1, sizeof(*o->args));
	o->args[o->n_args++] =
		(struct spec_pair){text_copy(option->name), text_copy(value ? value : "true")};
	return 0;
}

/* Return the kind that has the option NAME, among those that the mount's SOURCE may select. */
static const struct spec_kind *meant_kind(const struct options *o, const char *name)
{
	const struct spec_kind *kind = spec_kind_find(&o->kinds, o->backend);
	const struct spec_kind *meant;

	for (size_t i = 0;
	     o->action == OPTIONS_MOUNT && (meant = spec_kind_meant(&o->kinds, o->backend, i));
	     i++) {
		if (spec_option_find(meant->options, name))
			return meant;
	}
	return kind ? kind : spec_kind_of_option(name);
}

int run_options_check(const struct options *o, char **ret_text)
{
	int r = 0;

	for (size_t i = 0; i < o->n_args && r == 0; i++) {
		const struct spec_kind *kind = meant_kind(o, o->args[i].key);

		r = spec_option_check(kind->name, kind->options, o->args[i].key, o->args[i].value,
				      ret_text);
	}
	return r;
}

size_t run_option_names(const struct spec_kinds *kinds, const char **ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < kinds->n; i++) {
		for (const struct spec_option *d = kinds->v[i]->options; d->name && n < max; d++)
			ret[n++] = d->name;
	}
	return n;
}

void run_options_help(const struct spec_kinds *kinds, FILE *out)
{
	static const char *const types[] = {"=TEXT", "=NAME", "=N", "", "=TIME"};

	for (size_t i = 0; i < kinds->n; i++) {
		const struct spec_kind *kind = kinds->v[i];

		fprintf(out, "\nRun options (-o) of %s:\n", kind->name);
		for (const struct spec_option *d = kind->options; d->name; d++) {
			char head[64];

			if (d->refusal)
				continue;
			snprintf(head, sizeof(head), "%s%s", d->name, types[d->type]);
			fprintf(out, "  %-35s %s%s\n", head, d->help,
				d->required ? " (required)" : "");
		}
	}
}
