/* SPDX-License-Identifier: MIT */
/*
 * The list of -o: it is split at commas, and each word is found among our own options (option_table.c),
 * the run options of the kinds of jobs (run_options.c) and the generic ones of mount(8)
 * (generic_options.c).
 */
#include <errno.h>

#include "fs/generic_options.h"
#include "fs/option_table.h"
#include "fs/refuse.h"
#include "fs/run_options.h"
#include "spec/error.h"

static int suggest(const char *word, char **ret_text)
{
	const char *words[OPTIONS_MAX + GENERIC_OPTIONS_MAX + RUN_OPTIONS_MAX + 1];
	const char *near;
	size_t n = 0;

	for (const struct option_def *d = option_table; d->help; d++)
		if (!d->letter)
			words[n++] = d->name;
	n += generic_option_names(words + n, array_size(words) - 1 - n);
	n += run_option_names(words + n, array_size(words) - 1 - n);
	words[n] = NULL;
	near = spec_suggest(word, words);
	return refuse(-EINVAL, ret_text, "-o %s: unknown option%s%s%s; kxfs --help lists all", word,
		      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int set_word(struct options *o, const char *word, char **ret_text)
{
	const char *eq = strchr(word, '=');
	cleanup_free char *name = strndup(word, eq ? (size_t)(eq - word) : strlen(word));
	const struct spec_option *run_option;
	int r;

	if (!name)
		return -ENOMEM;
	for (const struct option_def *d = option_table; d->help; d++) {
		if (d->letter || !streq(d->name, name))
			continue;
		if (d->arg && (!eq || !eq[1]))
			return refuse(-EINVAL, ret_text, "-o %s needs a value: %s=%s", name, name,
				      d->arg);
		if (!d->arg && eq)
			return refuse(-EINVAL, ret_text, "-o %s takes no value", name);
		return d->set(o, d, eq ? eq + 1 : NULL, ret_text);
	}
	run_option = run_option_find(name);
	if (run_option)
		return run_option_add(o, run_option, eq ? eq + 1 : NULL, ret_text);
	r = generic_option_set(o, word, name);
	return r == -ENOENT ? suggest(name, ret_text) : r;
}

/* The list is split at commas; a comma that belongs to a value is written "\,". */
int option_set_list(struct options *o, const struct option_def *def, const char *list,
		    char **ret_text)
{
	cleanup_free char *word = malloc(strlen(list) + 1);
	size_t n = 0;
	int r;

	(void)def;
	if (!word)
		return -ENOMEM;
	for (const char *p = list;; p++) {
		if (*p == '\\' && (p[1] == ',' || p[1] == '\\')) {
			word[n++] = *++p;
			continue;
		}
		if (*p && *p != ',') {
			word[n++] = *p;
			continue;
		}
		word[n] = 0;
		r = n ? set_word(o, word, ret_text) : 0;
		if (r < 0 || !*p)
			return r;
		n = 0;
	}
}
