/* SPDX-License-Identifier: MIT */
/*
 * The generic options of mount(8), about which kxfs has nothing to say: some are handed to the kernel,
 * the others accepted, so that kxfs can stand in fstab.
 */
#include "fs/generic_options.h"

#include <errno.h>

/* Those without a mark are accepted and change nothing here. */
static const struct generic_def {
	const char *name;
	bool kernel; /* handed on */
} generic[] = {
	{"async", true},	  {"atime", true},	 {"auto", false},     {"comment", false},
	{"defaults", false},	  {"dev", false},	 {"diratime", false}, {"dirsync", true},
	{"exec", true},		  {"fsname", false},	 {"group", false},    {"lazytime", false},
	{"loud", false},	  {"_netdev", false},	 {"noatime", true},   {"noauto", false},
	{"nodev", false},	  {"nodiratime", false}, {"noexec", true},    {"nofail", false},
	{"nogroup", false},	  {"nolazytime", false}, {"noowner", false},  {"norelatime", false},
	{"nostrictatime", false}, {"nosuid", false},	 {"nouser", false},   {"nousers", false},
	{"owner", false},	  {"relatime", false},	 {"rw", false},	      {"silent", false},
	{"strictatime", false},	  {"subtype", false},	 {"suid", false},     {"sync", true},
	{"user", false},	  {"users", false},
};

size_t generic_option_names(const char **ret, size_t max)
{
	size_t n = min_of(array_size(generic), max);

	_Static_assert(array_size(generic) <= GENERIC_OPTIONS_MAX, "all fit");
	for (size_t i = 0; i < n; i++)
		ret[i] = generic[i].name;
	return n;
}

static int hand_on(struct options *o, const char *word)
{
	cleanup_free char *old = o->mount_options;

	o->mount_options = NULL;
	if (asprintf(&o->mount_options, "%s%s%s", old, old[0] ? "," : "", word) < 0) {
		o->mount_options = NULL;
		return -ENOMEM;
	}
	return 0;
}

int generic_option_set(struct options *o, const char *word, const char *name)
{
	if (strncasecmp(word, "x-", 2) == 0)
		return 0;
	if (streq(word, "rw"))
		o->read_only = false;
	for (size_t i = 0; i < array_size(generic); i++)
		if (streq(generic[i].name, name))
			return generic[i].kernel ? hand_on(o, name) : 0;
	return -ENOENT;
}
