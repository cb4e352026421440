/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an AppDef. An accepted AppDef is within the bounds, and its JSON form is accepted
 * too and has the same JSON form again. A refused one gets an error.
 */
#include "fuzz.h"

#include "spec/base/limits.h"
#include "spec/record/local.h"

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

static void check_json(const struct spec_app *app)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *again = NULL;
	char *text = spec_app_json(app), *same;
	struct spec_terms terms = {0};

	assert(text);
	/* with all defaults filled in, it may exceed the limit for files */
	if (strlen(text) <= SPEC_MAX_FILE) {
		assert(spec_local_parse(text, strlen(text), &machine, &again, &terms, &e) == 0);
		same = spec_app_json(again);
		assert(streq(text, same));
		free(same);
		spec_terms_clear(&terms);
	}
	spec_app_free(again);
	spec_errors_clear(&e);
	free(text);
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
		check_json(app);
		assert(*terms.dir == '/' && terms.time_limit >= 0 && terms.ttl >= -1);
	}
	spec_terms_clear(&terms);
	spec_app_free(app);
	spec_errors_clear(&e);
	free(text);
	return 0;
}
