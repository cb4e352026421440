/* SPDX-License-Identifier: MIT */
/*
 * Reads the AppDef, which a user or TorchX has written. Fields, types and defaults are those of
 * TorchX 0.7.0, plus the retry policy ROLE, which later versions added. Unknown fields, duplicate
 * keys, wrong types and missing required fields are errors, with a line, a column and a path.
 * docs/appdef.5 is the manual.
 *
 * app_document.c makes a YAML tree from a file. app.c, app_value.c, mount.c and named_resource.c
 * read a spec_app from the tree, and app_json.c writes it. run_options.h reads run options, and
 * hold.h the conditions for launching a job. macro.c expands macros. This folder does not depend on
 * spec/kinds/: callers pass the schedulers with their rules and options.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/base/mem.h"
#include "spec/yaml/yaml.h"

struct spec_count {
	char *key;
	int64_t value;
};

/* An ordered map from text to whole numbers. Plain data. */
struct spec_counts {
	struct spec_count *v;
	size_t n;
};

enum spec_mount_type { SPEC_MOUNT_BIND, SPEC_MOUNT_VOLUME, SPEC_MOUNT_DEVICE };

/*
 * A mount of a role. A document contains it as a map with "type", or as a string in TorchX's form
 * ("type=bind,src=/a,dst=/b,readonly"). One string may contain several mounts. Plain data.
 */
struct spec_mount {
	enum spec_mount_type type;
	char *src; /* a host path, or the claim's name */
	char *dst;
	bool read_only;
	char *permissions; /* of a device: some of the letters r, w and m; NULL for other types */
};

enum spec_retry {
	SPEC_RETRY_APPLICATION,
	SPEC_RETRY_REPLICA,
	SPEC_RETRY_ROLE,
	SPEC_RETRY_HOT_SPARE
};

/* Plain data. */
struct spec_resource {
	double cpu;    /* logical cores; <= 0 if not set */
	int64_t gpu;   /* <= 0 if not set */
	double mem_mb; /* decimal megabytes; <= 0 if not set */
	struct spec_map capabilities;
	struct spec_counts devices;
};

/* Plain data. */
struct spec_role {
	char *name;
	char *image;
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

/* Owns everything that it points to. Plain data. */
struct spec_app {
	char *name;
	struct spec_role *roles;
	size_t n_roles;	      /* at least 1 */
	char *scheduler;      /* NULL if not set */
	char *scheduler_args; /* JSON text of a map; NULL if not set */
};

/* The properties of a scheduler that affect how AppDefs are read. */
struct spec_scheduler {
	const char *name; /* in a document's `scheduler`, such as "volcano" */
	/* a document may also name this other scheduler, such as "mcad"; NULL if none */
	const char *also;
	/* TorchX's name for this scheduler, which a document may also use */
	const char *torchx;
	/*
	 * Return the length of the longest pod name of a role. APP and ROLE are the lengths of the
	 * normalized names. K is the number of the role's last replica, and LAST is the index of
	 * that replica's task in the job. The function pointer is NULL if the scheduler shortens
	 * names.
	 */
	size_t (*pod_name_len)(size_t app, size_t role, size_t k, size_t last);
};

#define SPEC_MAX_SCHEDULERS 8

struct spec_app_rules {
	/* replaces a leading "~" in the source of a bind mount in string form; NULL if unknown */
	const char *home;
	/*
	 * The first scheduler must have the strictest rules for names. These rules apply if the
	 * document names no scheduler.
	 */
	struct spec_scheduler known[SPEC_MAX_SCHEDULERS];
	size_t n_known;
	/* The document must name this scheduler or none; if NULL, it may name any known one. */
	const char *scheduler;
};

/* True if ROOT is a manifest, not an AppDef: it has apiVersion or kind, and no roles. */
bool spec_app_is_manifest(const struct spec_yaml *root);

/*
 * Parse a submitted file, and call spec_yaml_finish with the rules for manifests or for AppDefs. A
 * file with several documents, or with a List of objects, is an error. If the document is the
 * output of `torchx run --dryrun --json`, *RET is the AppDef in that output, with the members
 * `scheduler` and `scheduler_args` added. All nodes keep their positions in the file.
 */
int spec_app_parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e);

/*
 * Read and check a document. Return 0 and *RET (free it with spec_app_free), or the errno of E. E
 * may already have errors: the function then still adds the document's errors, but does not set
 * *RET. RULES need not outlive the call.
 */
int spec_app_read(const struct spec_yaml *root, const struct spec_app_rules *rules,
		  struct spec_app **ret, struct spec_errors *e);
void spec_resource_clear(struct spec_resource *r);
void spec_app_free(struct spec_app *app);
define_cleanup(spec_app_freep, struct spec_app *, spec_app_free)

/* Return the checked AppDef with all defaults filled in, as JSON text, malloc'ed. */
char *spec_app_json(const struct spec_app *app);

const char *spec_retry_name(enum spec_retry retry);

/*
 * The values of the macros that args and env may contain. The grammar is that of Python's
 * string.Template.safe_substitute: "$$" becomes "$", and "$name" and "${name}" are replaced if the
 * name is known. A macro within such a value is not expanded.
 */
struct spec_macros {
	const char *app_id;
	const char *replica_id; /* decimal */
	const char *img_root;
	const char *base_img_root;
	const char *rank0_env; /* name of the variable that has the host of rank 0 */
};

/* Return TEXT with its macros replaced, malloc'ed. */
char *spec_macro_expand(const char *text, const struct spec_macros *m);
