/* SPDX-License-Identifier: MIT */
/*
 * Reads the AppDef, which a user or TorchX has written. Fields, types and defaults are those of
 * TorchX 0.7.0. kxfs also accepts the retry policy ROLE of later versions. kxfs reads an AppDef
 * strictly: an unknown field, a duplicate key, a wrong type or a missing required field is an error
 * with line, column and path. docs/appdef.5 is the manual.
 *
 * The files of this folder: app_document.c makes a YAML tree from a document. app.c reads a
 * spec_app and its roles from that tree. app_value.c reads single values, mount.c mounts, and
 * named_resource.c names of resources. app_json.c writes a spec_app with all defaults.
 * run_options.h has the options besides the AppDef. macro.c expands macros for the code that makes
 * cluster objects. The code in this folder does not depend on the kinds of jobs. Callers pass the
 * schedulers, their rules for names and their options.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/base/mem.h"
#include "spec/yaml/yaml.h"

struct spec_count {
	char *key;
	int64_t value;
};

/* An ordered map from text to whole numbers. Plain data: the caller fills it in. */
struct spec_counts {
	struct spec_count *v;
	size_t n;
};

enum spec_mount_type { SPEC_MOUNT_BIND, SPEC_MOUNT_VOLUME, SPEC_MOUNT_DEVICE };

/*
 * A mount of a role: a directory of the host (bind), a persistent volume claim (volume), or a
 * device. In a document, it is a map with "type", or a string in TorchX's comma form
 * ("type=bind,src=/a,dst=/b,readonly"). One string may contain several mounts. Plain data: mount.c
 * fills it in.
 */
struct spec_mount {
	enum spec_mount_type type;
	char *src; /* host path, or the claim's name */
	char *dst;
	bool read_only;	   /* true for a read-only bind or volume */
	char *permissions; /* for device: letters of "rwm"; NULL otherwise */
};

enum spec_retry {
	SPEC_RETRY_APPLICATION,
	SPEC_RETRY_REPLICA,
	SPEC_RETRY_ROLE,
	SPEC_RETRY_HOT_SPARE
};

/* The resources that a replica requests. Plain data: app.c fills it in. */
struct spec_resource {
	double cpu;    /* logical cores; <= 0 if not set */
	int64_t gpu;   /* <= 0 if not set */
	double mem_mb; /* decimal megabytes; <= 0 if not set */
	struct spec_map capabilities;
	struct spec_counts devices;
};

/* A role. Plain data: app.c fills it in. */
struct spec_role {
	char *name;
	char *image;
	/* NULL if not set. kxfs records it. Neither kxfs nor TorchX uses it. */
	char *base_image;
	char *entrypoint;
	char **args;
	size_t n_args;
	struct spec_map env; /* in the document's order */
	int64_t num_replicas;
	int64_t min_replicas; /* -1 if not set */
	int64_t max_retries;
	enum spec_retry retry_policy;
	struct spec_resource resource;
	struct spec_counts port_map;
	struct spec_mount *mounts;
	size_t n_mounts;
	char *metadata; /* JSON text of a map */
};

/* An AppDef. Plain data: app.c fills it in. It owns everything that it points to. */
struct spec_app {
	char *name;
	struct spec_role *roles;
	size_t n_roles; /* at least 1 */
	struct spec_map metadata;
	char *scheduler;      /* NULL if not set */
	char *scheduler_args; /* JSON text of a map; NULL if not set */
};

/* The properties of a scheduler that affect how AppDefs are read. */
struct spec_scheduler {
	const char *name; /* the name that a document uses in `scheduler`, such as "volcano" */
	/* NULL, or the name of another scheduler whose documents this scheduler also runs. */
	const char *also;
	/* TorchX's name for this scheduler; a document may use this name, too */
	const char *torchx;
	/*
	 * Returns the length of the longest pod name of a role. K is the number of the role's last
	 * replica, and LAST is the index of that replica's task in the job. APP and ROLE are the
	 * lengths of the two names after spec_name_norm. NULL if the scheduler shortens long names.
	 */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
};

#define SPEC_MAX_SCHEDULERS 8

/* The rules for reading an AppDef. The caller fills them in. */
struct spec_app_rules {
	/*
	 * The directory that replaces a leading "~" in the source of a bind mount in string form.
	 * If HOME is NULL, such a source is an error.
	 */
	const char *home;
	/*
	 * All schedulers that a document may name. The first one must have the strictest rules for
	 * names. Its rules apply if the document names no scheduler.
	 */
	struct spec_scheduler known[SPEC_MAX_SCHEDULERS];
	size_t n_known;
	/*
	 * The scheduler that will run the job. It is an error if the document names another one. If
	 * SCHEDULER is NULL, the document may name any known scheduler.
	 */
	const char *scheduler;
};

/*
 * True if ROOT is a ready manifest (an object for a cluster) and not an AppDef: it has apiVersion
 * or kind, and no roles.
 */
bool spec_app_is_manifest(const struct spec_yaml *root);

/*
 * Parse a submitted file, as spec_yaml_parse does. If the document is a ready manifest, finish it
 * (spec_yaml_finish) with the rules SPEC_YAML_KUBECTL. If the file has several objects or a List of
 * objects, add an error that lists them. If the document is the output of `torchx run --dryrun
 * --json`, *RET is the AppDef in that output, with the members `scheduler` and `scheduler_args`
 * added. All nodes keep their positions in the file.
 */
int spec_app_parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e);

/*
 * Read and check a document. RULES need not outlive the call. If E already has errors, read the
 * document nevertheless, but fail. Return 0 and *RET (free it with spec_app_free). Otherwise return
 * the errno of E, which then has at least one error.
 */
int spec_app_read(const struct spec_yaml *root, const struct spec_app_rules *rules,
		  struct spec_app **ret, struct spec_errors *e);
void spec_resource_clear(struct spec_resource *r);
void spec_app_free(struct spec_app *app);
define_cleanup(spec_app_freep, struct spec_app *, spec_app_free)

/* Return the checked AppDef with all defaults filled in, as JSON text, malloc'ed. */
char *spec_app_json(const struct spec_app *app);

/* Return the name of RETRY: "APPLICATION", "REPLICA", "ROLE" or "HOT_SPARE". */
const char *spec_retry_name(enum spec_retry retry);

/*
 * The values of the macros in args and env. Their grammar is that of Python's
 * string.Template.safe_substitute: "$$" becomes "$". "$name" and "${name}" are replaced if the name
 * is known, and remain unchanged otherwise. Macros in values are not expanded.
 */
struct spec_macros {
	const char *app_id;
	const char *replica_id; /* decimal */
	const char *img_root;
	const char *base_img_root;
	const char *rank0_env; /* name of the environment variable with the host of rank 0 */
};

/* Return TEXT with its macros replaced, malloc'ed. */
char *spec_macro_expand(const char *text, const struct spec_macros *m);
