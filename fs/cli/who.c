/* SPDX-License-Identifier: MIT */
/* Who runs this command, by the user database and the environment. */
#include "fs/cli/who.h"

#include <limits.h>
#include <pwd.h>

#include "spec/base/mem.h"

void who_am_i(char **submitter, char **home)
{
	const struct passwd *pw = getpwuid(getuid());
	const char *dir = getenv("HOME");
	char host[HOST_NAME_MAX + 1] = "localhost";
	char number[16];

	gethostname(host, sizeof(host) - 1);
	snprintf(number, sizeof(number), "%u", (unsigned)getuid());
	*submitter = text_print("%s@%s", pw ? pw->pw_name : number, host);
	if (!dir || dir[0] != '/')
		dir = pw ? pw->pw_dir : NULL;
	*home = dir ? text_copy(dir) : NULL;
}
