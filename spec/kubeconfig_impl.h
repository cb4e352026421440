/* SPDX-License-Identifier: MIT */
/*
 * What kubeconfig.c (files and their entries), kubeconfig_field.c (an entry's fields) and
 * kubeconfig_connect.c (what they come to) share. Private to them.
 */
#ifndef KXFS_SPEC_KUBECONFIG_IMPL_H
#define KXFS_SPEC_KUBECONFIG_IMPL_H

#include "spec/kubeconfig.h"
#include "spec/yaml.h"

struct kubeconfig_file {
	char *name;		/* an absolute path */
	struct spec_yaml *root; /* a map; its lists of entries are checked */
};

struct spec_kubeconfig {
	struct kubeconfig_file *files; /* the first to say something wins */
	size_t n;
};

/* An entry of one of the lists: the map that it names, NULL when it says nothing. */
struct kubeconfig_entry {
	const struct kubeconfig_file *file;
	const struct spec_yaml *item; /* {name: NAME, KIND: body} */
	const struct spec_yaml *body;
};

/* The entry NAME of the KIND "context", "cluster" or "user". */
bool kubeconfig_find(const struct spec_kubeconfig *k, const char *kind, const char *name,
		     struct kubeconfig_entry *ret);

/* The name of the current context, and where that is said; NULL: nowhere. */
const struct spec_yaml *kubeconfig_current(const struct spec_kubeconfig *k,
					   const struct kubeconfig_file **ret_file);

/* Names of all entries of KIND, NULL-terminated, borrowed; to be freed. NULL: no memory. */
const char **kubeconfig_names(const struct spec_kubeconfig *k, const char *kind);

/* An error at NODE of FILE. Returns -EINVAL, or -ENOMEM. */
int kubeconfig_error(struct spec_errors *e, const struct kubeconfig_file *file,
		     const struct spec_yaml *node, const char *fmt, ...) printf_like(4, 5);

/* An entry that is read. */
struct kubeconfig_reader {
	const struct kubeconfig_file *file;
	const struct spec_yaml *body; /* NULL: it says nothing */
	struct spec_errors *e;
};

int kubeconfig_no_memory(struct kubeconfig_reader *r);
const struct spec_yaml *kubeconfig_field(const struct kubeconfig_reader *r, const char *key);

/* Each reads field KEY; one that is absent or null is "", or false. 0 or the errno of r->e. */
int kubeconfig_read_text(struct kubeconfig_reader *r, const char *key, char **ret);
/* Text that becomes part of a header line: no control characters. */
int kubeconfig_read_header(struct kubeconfig_reader *r, const char *key, char **ret);
/* A path; one that is relative is relative to the file's directory. */
int kubeconfig_read_path(struct kubeconfig_reader *r, const char *key, char **ret);
/* Base64 of PEM. */
int kubeconfig_read_pem(struct kubeconfig_reader *r, const char *key, char **ret);
int kubeconfig_read_bool(struct kubeconfig_reader *r, const char *key, bool *ret);
/* The fields "server" and "proxy-url". */
int kubeconfig_read_server(struct kubeconfig_reader *r, char **ret);
int kubeconfig_read_proxy(struct kubeconfig_reader *r, char **ret);

/* The text of node V, called KEY in messages. */
int kubeconfig_text(struct kubeconfig_reader *r, const struct spec_yaml *v, const char *key,
		    char **ret);
/* The same, of what becomes part of a header line. */
int kubeconfig_header(struct kubeconfig_reader *r, const struct spec_yaml *v, const char *key,
		      char **ret);
/* Make a relative PATH of r->file absolute. */
int kubeconfig_absolute(struct kubeconfig_reader *r, char **path);

/* kubeconfig_exec.c: the "exec" of a user, and what its cluster has to say to plugins. */
int kubeconfig_read_exec(struct kubeconfig_reader *user, struct spec_exec *ret);
int kubeconfig_read_extension(struct kubeconfig_reader *cluster, char **ret);

#endif
