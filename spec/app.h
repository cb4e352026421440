/* SPDX-License-Identifier: MIT */
/*
 * The AppDef: what a user writes. Fields, types and defaults are TorchX 0.7.0's (with the retry
 * policy ROLE of later versions), read strictly: an unknown field, a duplicate key, a wrong type
 * or a missing required field is an error with line, column and path. docs/appdef.5 is its manual.
 */
#ifndef KXFS_SPEC_APP_H
#define KXFS_SPEC_APP_H

#include "spec/error.h"
#include "spec/mount.h"

struct spec_pair {
	char *key;
	char *value;
};

/* An ordered map of text to text. */
struct spec_map {
	struct spec_pair *v;
	size_t n;
};

struct spec_count {
	char *key;
	int64_t value;
};

/* An ordered map of text to whole numbers. */
struct spec_counts {
	struct spec_count *v;
	size_t n;
};

enum spec_retry {
	SPEC_RETRY_APPLICATION,
	SPEC_RETRY_REPLICA,
	SPEC_RETRY_ROLE,
	SPEC_RETRY_HOT_SPARE
};

struct spec_resource {
	double cpu;    /* logical cores; <= 0: not set */
	int64_t gpu;   /* <= 0: not set */
	double mem_mb; /* decimal megabytes; <= 0: not set */
	struct spec_map capabilities;
	struct spec_counts devices;
};

struct spec_role {
	char *name;
	char *image;
	char *base_image; /* NULL: none; recorded, otherwise ignored as in TorchX */
	char *entrypoint;
	char **args;
	size_t n_args;
	struct spec_map env; /* in the document's order */
	int64_t num_replicas;
	int64_t min_replicas; /* -1: not given */
	int64_t max_retries;
	enum spec_retry retry_policy;
	struct spec_resource resource;
	struct spec_counts port_map;
	struct spec_mount *mounts;
	size_t n_mounts;
	char *metadata; /* JSON text of a map */
};

struct spec_app {
	char *name;
	struct spec_role *roles;
	size_t n_roles; /* at least 1 */
	struct spec_map metadata;
	char *scheduler;      /* NULL: not given */
	char *scheduler_args; /* JSON text of a map; NULL: not given */
};

/*
 * Parse and check a document (LEN bytes, at most SPEC_MAX_FILE: more is -EFBIG). HOME is what a
 * leading "~" of a string-form bind source stands for; NULL: such a source is refused.
 * 0 and *RET (free with spec_app_free), or the errno of E, which then holds at least one error.
 */
int spec_app_parse(const char *text, size_t len, const char *home, struct spec_app **ret,
		   struct spec_errors *e);
/*
 * The same of a document that is parsed already (errors in E do not matter, but make it fail).
 * SCHEDULER is what will run it ("volcano"): another one in the document is an error, and names
 * are checked by its rules. NULL: what the document says.
 */
int spec_app_read(const struct spec_yaml *root, const char *home, const char *scheduler,
		  struct spec_app **ret, struct spec_errors *e);
void spec_app_free(struct spec_app *app);
static inline void spec_app_freep(struct spec_app **app)
{
	spec_app_free(*app);
}

/*
 * The names of the fields that spec_app_parse knows, of the AppDef, a role and a resource in turn;
 * NULL at the end: for documentation and tests.
 */
const char *spec_app_field(size_t i);

/* The checked AppDef with all defaults filled in, as JSON text (malloc'ed; NULL: no memory). */
char *spec_app_json(const struct spec_app *app);

/* "APPLICATION", "REPLICA", "ROLE", "HOT_SPARE" */
const char *spec_retry_name(enum spec_retry retry);

#endif
