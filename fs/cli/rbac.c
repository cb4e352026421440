/* SPDX-License-Identifier: MIT */
/* Prints spec_rights as YAML: a rule for each resource, with all of its verbs. */
#include "fs/cli/rbac.h"

#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "spec/kinds/right.h"

static bool same_resource(const struct spec_right *a, const struct spec_right *b)
{
	return streq(a->group, b->group) && streq(a->resource, b->resource) &&
	       a->cluster == b->cluster;
}

/* True if RIGHT changes something in the cluster. */
static bool writes(const struct spec_right *right)
{
	return !streq(right->verbs[0], "get") && !streq(right->verbs[0], "list");
}

/* True if one of the N rights at V permits VERB on the resource of RIGHT. */
static bool gives(const struct spec_right *v, size_t n, const struct spec_right *right,
		  const char *verb)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; same_resource(&v[i], right) && v[i].verbs[k]; k++)
			if (streq(v[i].verbs[k], verb))
				return true;
	return false;
}

/* Print the rule of the resource of V[I], unless it was printed for an earlier right. */
static void print_rule(FILE *out, const struct spec_right *v, size_t n, size_t i)
{
	static const char *const verbs[] = {"get", "list", "watch", "create", "delete", "patch"};
	const char *before = "[";

	for (size_t k = 0; k < i; k++)
		if (same_resource(&v[k], &v[i]))
			return;
	fprintf(out, "- apiGroups: [%s]\n  resources: [%s]\n  verbs: ",
		*v[i].group ? v[i].group : "\"\"", v[i].resource);
	for (size_t k = 0; k < array_size(verbs); k++) {
		if (!gives(v, n, &v[i], verbs[k]))
			continue;
		fprintf(out, "%s%s", before, verbs[k]);
		before = ", ";
	}
	fputs("]\n", out);
}

static void print_role(FILE *out, const struct spec_right *v, size_t n, bool cluster)
{
	bool begun = false;

	for (size_t i = 0; i < n; i++) {
		if (v[i].cluster != cluster)
			continue;
		if (!begun)
			fprintf(out,
				"%sapiVersion: rbac.authorization.k8s.io/v1\nkind: %s\n"
				"metadata:\n  name: %s\nrules:\n",
				cluster ? "---\n" : "", cluster ? "ClusterRole" : "Role",
				cluster ? "kxfs-queues" : "kxfs");
		begun = true;
		print_rule(out, v, n, i);
	}
}

void rbac_print(const struct options *o, FILE *out)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	struct spec_right *v cleanup_free = NULL;
	size_t n = 0, all, kept = 0;

	while ((kinds[n] = spec_kind_meant(&o->kinds, o->backend, n)) && n + 1 < SPEC_MAX_KINDS)
		n++;
	v = spec_rights(kinds, n, &all);
	for (size_t i = 0; i < all; i++)
		if (!o->read_only || !writes(&v[i]))
			v[kept++] = v[i];
	print_role(out, v, kept, false);
	print_role(out, v, kept, true);
}
