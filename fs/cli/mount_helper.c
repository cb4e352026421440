/* SPDX-License-Identifier: MIT */
/*
 * Translates "mount.kxfs SOURCE MOUNTPOINT [-sfnv] [-N NAMESPACE] [-t TYPE] [-o OPTIONS]" into kxfs's own command line.
 */
#include "fs/cli/mount_helper.h"

#include <errno.h>
#include <getopt.h>

#include "fs/cli/refuse.h"
#include "spec/base/mem.h"

bool mount_helper_is(const char *name)
{
	const char *slash = strrchr(name, '/');

	return streq(slash ? slash + 1 : name, "mount.kxfs");
}

/*
 * Return the name of the unsupported feature that LETTER requests. NULL if kxfs does it anyway, or
 * if LETTER only concerns mount(8)'s own output and tables.
 */
static const char *not_done(int letter)
{
	switch (letter) {
	case 'f':
		return "-f: a fake mount is not possible";
	case 'N':
		return "-N: kxfs can't mount in another namespace; use nsenter(1)";
	case ':':
		return "-o needs a value";
	case '?':
		return "unknown option; mount(8) lists the options of helpers";
	default:
		return NULL;
	}
}

int mount_helper_args(int argc, char **argv, int *ret_argc, char ***ret_argv, char **ret_text)
{
	static char dash_o[] = "-o",
		    end[] = "--"; /* argv has char *, though it is not written to */
	cleanup_free char **words = new0_n(char *, 2 * (size_t)argc + 2);
	int n = 0, c;

	words[n++] = argv[0];
	optind = 0; /* so that getopt restarts, also in a second call */
	while ((c = getopt(argc, argv, ":sfnvN:t:o:")) != -1) {
		const char *why = not_done(c);

		if (why)
			return refuse(-EINVAL, ret_text, "%s", why);
		if (c != 'o')
			continue;
		words[n++] = dash_o;
		words[n++] = optarg;
	}
	words[n++] = end;
	while (optind < argc)
		words[n++] = argv[optind++];
	*ret_argc = n;
	*ret_argv = take_ptr(words);
	return 0;
}
