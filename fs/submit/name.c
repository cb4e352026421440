/* SPDX-License-Identifier: MIT */
/* Names in submit/ and dryrun/; see name.h. */
#include "fs/submit/name.h"

#include <errno.h>

#include "spec/base/name.h"

enum submit_name submit_name_kind(const char *name, char ret_base[NAME_MAX + 1])
{
	static const struct {
		const char *suffix;
		enum submit_name kind;
	} kinds[] = {
		{SUBMIT_JOB_SUFFIX, SUBMIT_NAME_JOB},
		{SUBMIT_ERROR_SUFFIX, SUBMIT_NAME_ERROR},
	};
	size_t len = strlen(name);

	for (size_t i = 0; i < array_size(kinds) && len <= NAME_MAX; i++) {
		size_t n = strlen(kinds[i].suffix);

		if (len <= n || !streq(name + len - n, kinds[i].suffix))
			continue;
		memcpy(ret_base, name, len - n);
		ret_base[len - n] = '\0';
		if (kinds[i].kind == SUBMIT_NAME_ERROR || spec_name_submits(ret_base))
			return kinds[i].kind;
	}
	return SUBMIT_NAME_FILE;
}

int submit_name_check(const char *name)
{
	size_t max = NAME_MAX - (spec_name_submits(name) ? strlen(SUBMIT_ERROR_SUFFIX) : 0);
	char base[NAME_MAX + 1];

	if (strlen(name) > max)
		return -ENAMETOOLONG;
	/*
	 * Leading dots are for scratch files; the rest must be a name that the whole tree allows.
	 */
	if (!spec_name_is_file(name + strspn(name, ".")))
		return -EINVAL;
	return submit_name_kind(name, base) == SUBMIT_NAME_FILE ? 0 : -EPERM;
}

static bool is_one_of(const char *text, const char *const *all)
{
	while (*all && !streq(*all, text))
		all++;
	return *all;
}

bool submit_name_is_passing(const char *name)
{
	static const char *const endings[] = {".tmp", ".temp", ".part", ".partial", ".new", ".old",
					      ".bak", ".orig", ".swp",	".swx",	    NULL};
	static const char *const within[] = {".yaml", ".yml", ".json"};
	static const char *const mistakes[] = {".txt", ".jsonl", ".", NULL};
	const char *dot = strrchr(name, '.');
	size_t len = strlen(name);

	if ((dot && is_one_of(dot, mistakes)) || name[len - 1] == ' ')
		return false;
	for (size_t i = 0; i < array_size(within); i++)
		if (strcasestr(name, within[i]))
			return true;
	return strchr(".#~", *name) || strchr("~#", name[len - 1]) ||
	       strspn(name, "0123456789") == len || (dot && is_one_of(dot, endings)) ||
	       strncmp(name, "tmp", 3) == 0 || (strncmp(name, "sed", 3) == 0 && len == 9);
}
