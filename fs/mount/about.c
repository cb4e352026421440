/* SPDX-License-Identifier: MIT */
/* Prints --version and --list-sources; shell completion reads the second. */
#include "fs/mount/about.h"

#include "backend/backend.h"
#include "fs/cli/options.h"
#include "fs/cli/refuse.h"
#include "fs/cli/source.h"
#include "fs/vfs/fuse.h"
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
	printf("missing, since kxfs was built with an older library than %s\n", KXFS_MISSED);
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
