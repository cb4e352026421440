/* SPDX-License-Identifier: MIT */
/* Who runs this command, by the user database and the environment. */
#include "fs/who.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>

int who_am_i(char **submitter, char **home)
{
	const struct passwd *pw = getpwuid(getuid());
	const char *dir = getenv("HOME");
	char host[HOST_NAME_MAX + 1] = "localhost";
	char number[16];

	gethostname(host, sizeof(host) - 1);
	snprintf(number, sizeof(number), "%u", (unsigned)getuid());
	if (asprintf(submitter, "%s@%s", pw ? pw->pw_name : number, host) < 0) {
		*submitter = NULL;
		return -ENOMEM;
	}
	if (!dir || dir[0] != '/')
		dir = pw ? pw->pw_dir : NULL;
	*home = dir ? strdup(dir) : NULL;
	return dir && !*home ? -ENOMEM : 0;
}
