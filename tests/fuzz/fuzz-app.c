/* SPDX-License-Identifier: MIT */
/* Any bytes as an AppDef. An accepted AppDef is within the bounds. A refused one gets an error. */
/* keep assert() in all builds */
#undef NDEBUG
#include <assert.h>

#include "spec/record/local.h"
#include "spec/base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct spec_machine machine = {.home = "/var/empty", .work_dir = "/w"};

static void check_bounds(const struct spec_app *app)
{
	int64_t replicas = 0;

	assert(app->name && *app->name && app->n_roles > 0);
	for (size_t i = 0; i < app->n_roles; i++) {
		const struct spec_role *role = &app->roles[i];

		assert(*role->name && *role->image && *role->entrypoint && role->metadata);
		assert(role->num_replicas >= 1 && role->min_replicas <= role->num_replicas);
		assert(role->max_retries >= 0);
		replicas += role->num_replicas;
	}
	assert(replicas <= SPEC_MAX_REPLICAS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	struct spec_terms terms = {0};
	int err = spec_local_parse((const char *)data, size, &machine, &app, &terms, &e);
	char *text = spec_errors_text(&e, "file");

	assert(text);
	assert(err == e.err && (err == 0) == (app != NULL) && (err < 0) == (e.n > 0));
	if (app) {
		check_bounds(app);
		assert(*terms.dir == '/' && terms.time_limit >= 0 && terms.ttl >= -1);
	}
	spec_terms_clear(&terms);
	spec_app_free(app);
	spec_errors_clear(&e);
	free(text);
	return 0;
}
