/* SPDX-License-Identifier: MIT */
/* The program kxfs: main() calls the command; run.c mounts. */
#include "backend/backend.h"
#include "fs/cli/commands.h"
#include "fs/cli/options.h"
#include "fs/mount/doctor.h"
#include "fs/mount/run.h"

/* Return the exit status of a command that only prints. */
static int printed(void)
{
	return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct options o cleanup(options_clear) = {0};
	cleanup_free char *why = NULL;

	backend_helper(argv);
	if (options_parse(argc, argv, &o, &why) < 0) {
		fprintf(stderr, "kxfs: %s\n", why);
		return EXIT_FAILURE;
	}
	switch (o.action) {
	case OPTIONS_HELP:
		options_help(stdout);
		return printed();
	case OPTIONS_VERSION:
		about_version(&o);
		return printed();
	case OPTIONS_LIST_SOURCES:
		return about_sources(&o) < 0 ? EXIT_FAILURE : printed();
	case OPTIONS_CHECK_KIND:
		return kind_files_check(&o);
	case OPTIONS_DRY_RUN:
		return dry_run_main(&o);
	case OPTIONS_DOCTOR:
		if (!o.rbac)
			return doctor_main(&o);
		rbac_print(&o, stdout);
		return printed();
	case OPTIONS_CAPTURE:
	case OPTIONS_MOUNT:
		break;
	}
	return run(&o);
}
