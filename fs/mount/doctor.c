/* SPDX-License-Identifier: MIT */
/*
 * Prints the reports. This file checks the local machine, and backend_examine checks the cluster.
 * Each result is printed as soon as it is known. Shell completion reads the output of
 * --list-sources.
 */
#include "fs/mount/doctor.h"

#include <sys/utsname.h>

#include "backend/backend.h"
#include "backend/base/print.h"
#include "backend/base/process.h"
#include "fs/mount/mountpoint.h"
#include "fs/mount/run.h"
#include "fs/mount/state.h"
#include "fs/tree/tree.h"
#include "fs/vfs/fuse.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/yaml/libraries.h"

void about_version(const struct options *o)
{
	cleanup_free char *backend = backend_libraries(), *spec = spec_libraries();
	cleanup_free char *features = backend_features();

	printf("kxfs %s\nlibraries: libfuse %s, %s, %s\nfeatures: %s\nbackends:", KXFS_VERSION,
	       fuse_pkgversion(), backend, spec, features);
	for (size_t i = 0; source_backend_at(&o->kinds, i); i++)
		printf(" %s", source_backend_at(&o->kinds, i));
	printf("\n");
#ifdef KXFS_MISSED
	printf("missing, because kxfs was built with libraries older than %s\n", KXFS_MISSED);
#endif
}

int about_sources(const struct options *o)
{
	cleanup_free char *why = NULL;
	cleanup_free char **contexts = NULL;
	int r;

	for (size_t i = 0; source_backend_at(&o->kinds, i); i++)
		printf("%s:\n", source_backend_at(&o->kinds, i));
	r = backend_contexts(o->kubeconfig, &contexts, &why);
	if (r < 0) {
		refuse_print(r, why);
		return r;
	}
	for (char **c = contexts; *c; c++) {
		printf("%s\n", *c);
		free(*c);
	}
	return 0;
}

struct report {
	bool lacks, wrong;
	/* true if FUSE is not usable; kxfs capture would work nevertheless */
	bool no_fuse;
};

static void on_finding(void *data, enum backend_grade grade, const char *text)
{
	static const char *const words[] = {
		[BACKEND_FINE] = "ok",
		[BACKEND_LACKS] = "missing",
		[BACKEND_WRONG] = "wrong",
	};
	struct report *r = data;
	const char *end;

	r->lacks |= grade == BACKEND_LACKS;
	r->wrong |= grade == BACKEND_WRONG;
	printf("  %-9s", words[grade]);
	while ((end = strchr(text, '\n'))) {
		printf("%.*s\n%11s", (int)(end - text), text, "");
		text = end + 1;
	}
	printf("%s\n", text);
	fflush(stdout);
}

static void look_at_machine(const struct options *o, struct report *r)
{
	cleanup_free char *system = NULL, *why = NULL, *dir = NULL, *text = NULL;
	struct utsname u;
	int err = 0;
	cleanup_file FILE *f = NULL;
	char first[64];

	printf("This machine\n");
	uname(&u);
	system = text_print("%s %s %s", u.sysname, u.release, u.machine);
	on_finding(r, BACKEND_FINE, system);
	r->no_fuse = mountpoint_check_fuse(&why) < 0;
	if (r->no_fuse)
		on_finding(r, BACKEND_WRONG, why);
	else if (geteuid() == 0)
		on_finding(r, BACKEND_FINE, "FUSE: root may mount");
	else
		on_finding(r, BACKEND_FINE, "FUSE: /dev/fuse and fusermount3 can be used");
	r->wrong = false;
	/* If kxfs is process 1, it runs in a container with its own pid namespace. */
	f = fopen("/proc/1/comm", "re");
	if (f && fgets(first, sizeof(first), f) && streq(first, "kxfs\n"))
		on_finding(r, BACKEND_LACKS, "writers " CONTROL_OTHER_NAMESPACE);
	if (o->state[0])
		dir = text_copy(o->state);
	else
		err = state_default("", &dir, &text);
	if (!err)
		err = state_check(dir, &text);
	on_finding(r, err ? BACKEND_WRONG : BACKEND_FINE, text);
}

int doctor_main(const struct options *o)
{
	const struct backend_config config = run_config(o);
	cleanup_free char *submitter = NULL, *user = NULL, *text = NULL;
	cleanup_free char *why = NULL;
	struct report r = {0};
	bool here; /* true if a mount of local: would work */
	int err;

	diag_setup(o->log_level, true);
	about_version(o);
	look_at_machine(o, &r);
	here = !r.wrong && !r.no_fuse && !o->backend[0];
	if (!streq(o->backend, "local")) {
		printf("The cluster\n");
		fflush(stdout);
		if (o->mine) {
			submitter = process_submitter();
			user = spec_label_user(submitter);
			text = text_print("mine: the jobs with the label " SPEC_LABEL_USER "=%s",
					  user);
			on_finding(&r, BACKEND_FINE, text);
		}
		backend_examine(&config, on_finding, &r);
	}
	if (o->archive[0]) {
		printf("The archive\n");
		fflush(stdout);
		err = backend_examine_archive(o->archive, &why);
		free(text);
		text = text_print("archive %s%s", err ? why : o->archive,
				  err ? "" : ": can be written to");
		on_finding(&r, err ? BACKEND_LACKS : BACKEND_FINE, text);
	}
	printf("%s\n",
	       r.wrong && here
		       ? "Mounting will not work. Without a cluster, jobs can run as processes of this "
			 "machine: kxfs local: MOUNTPOINT"
	       : r.no_fuse && !r.wrong && !streq(o->backend, "local")
		       ? "Mounting will not work; kxfs capture, which needs no FUSE, will."
	       : r.wrong || r.no_fuse ? "Mounting will not work."
	       : r.lacks	      ? "Mounting will work, with the limitations listed above."
				      : "Mounting will work.");
	if (fflush(stdout) != 0 || ferror(stdout))
		return EXIT_FAILURE;
	return r.wrong || r.no_fuse ? EXIT_FAILURE : EXIT_SUCCESS;
}
