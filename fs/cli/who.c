/* SPDX-License-Identifier: MIT */
/* Finds the user who runs this command in the user database, and their home. */
#include "fs/cli/who.h"

#include <limits.h>
#include <pwd.h>

#include "backend/base/process.h"
#include "spec/base/mem.h"

void who_am_i(char **submitter, char **home)
{
	const struct passwd *pw = getpwuid(getuid());
	char host[HOST_NAME_MAX + 1] = "localhost";
	char number[16];

	gethostname(host, sizeof(host) - 1);
	snprintf(number, sizeof(number), "%u", (unsigned)getuid());
	*submitter = text_print("%s@%s", pw ? pw->pw_name : number, host);
	*home = process_home();
}
