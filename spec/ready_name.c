/* SPDX-License-Identifier: MIT */
/*
 * A ready manifest under another name. A name with a random suffix stands for its job wherever it stands:
 * in the names of what an AppWrapper wraps, in hosts, labels and arguments. All of these get the new
 * one. Any other name may be a common word, so that only the object itself gets another.
 */
#include "spec/ready_name.h"

#include <ctype.h>
#include <errno.h>

#include "spec/limits.h"
#include "spec/name.h"
#include "spec/tree.h"
#include "spec/view_impl.h"
#include "spec/view_read.h"

/* Where the suffix that NAME has begins; NULL: it has none. */
static const char *suffix_of(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash && spec_name_is_suffix(dash + 1) ? dash : NULL;
}

/*
 * NAME with the suffix of V in place of the one that it has, if it has one: not longer then, since other names
 * are made of it. NULL: no memory.
 */
static char *renamed(const char *name, uint64_t v)
{
	const char *suffix = suffix_of(name);
	size_t n = suffix ? (size_t)(suffix - name) : strlen(name);
	cleanup_free char *base = strndup(name, min_of(n, (size_t)SPEC_MAX_NAME - SPEC_SUFFIX_MAX));
	char *ret = base ? spec_name_job(base, v) : NULL;

	if (ret && suffix && strlen(ret) > strlen(name))
		ret[strlen(name)] = '\0';
	return ret;
}

/* --- a name in texts ---------------------------------------------------------------------------- */

struct names {
	const char *from, *to;
};

static bool is_word(char c)
{
	return islower((unsigned char)c) || isdigit((unsigned char)c);
}

/* Where FROM next stands in TEXT, not as a part of a longer word; NULL: nowhere. */
static const char *find(const char *text, const char *begin, const char *from)
{
	const char *at = strstr(text, from);

	while (at && ((at > begin && is_word(at[-1])) || is_word(at[strlen(from)])))
		at = strstr(at + 1, from);
	return at;
}

static int replace_text(struct json_object *value, const struct names *names)
{
	const char *text = json_object_get_string(value), *p = text, *at;
	cleanup_free char *made = NULL;
	size_t len;
	FILE *f;

	if (!find(text, text, names->from))
		return 0;
	f = open_memstream(&made, &len);
	if (!f)
		return -ENOMEM;
	for (; (at = find(p, text, names->from)); p = at + strlen(names->from))
		fprintf(f, "%.*s%s", (int)(at - p), p, names->to);
	fputs(p, f);
	if (fclose(f) != 0 || !json_object_set_string_len(value, made, (int)len))
		return -ENOMEM;
	return 0;
}

/* In all texts below VALUE, which is as deep as a document may be. */
static int replace_all(struct json_object *value, const struct names *names)
{
	int err = 0;

	if (json_object_is_type(value, json_type_string))
		return replace_text(value, names);
	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member) {
			(void)key;
			err = err ? err : replace_all(member, names);
		}
	}
	for (size_t i = 0; json_object_is_type(value, json_type_array) && !err &&
			   i < json_object_array_length(value);
	     i++)
		err = replace_all(json_object_array_get_idx(value, i), names);
	return err;
}

/* --- the object --------------------------------------------------------------------------------- */

/* What OBJECT, called ID now, wraps must not be called as it is beside OLD. */
static int check_wrapped(struct json_object *object, const struct spec_kind *kind, const char *old,
			 const char *id, struct spec_errors *e)
{
	const char *key = "";
	struct json_object *list =
		kind->reader->wrapped ? kind->reader->wrapped(object, &key) : NULL;

	for (size_t i = 0; i < spec_read_count(list); i++) {
		struct json_object *wrapped = spec_read_map(spec_read_at(list, i), key);
		const char *name = spec_read_text(spec_read_map(wrapped, "metadata"), "name");

		if (*name && !find(name, name, id))
			return spec_errors_add(
				e, -EEXIST, 0, 0, "metadata.name",
				"a job named %s is there, and wraps %s %s: both need other names; "
				"nothing was launched",
				old, spec_read_text(wrapped, "kind"), name);
	}
	return 0;
}

int spec_ready_rename(struct json_object *object, const struct spec_kind *kind,
		      const struct spec_identity *who, char **id, struct spec_errors *e)
{
	cleanup_free char *old = take_ptr(*id);
	char *name = *id = renamed(old, who->random[0]);
	const struct names names = {old, name};
	struct spec_tree t = {0};

	if (!name || (suffix_of(old) && replace_all(object, &names) < 0))
		return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
	spec_tree_set(&t, json_object_object_get(object, "metadata"), "name",
		      spec_tree_string(&t, name));
	if (t.failed)
		return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
	return who->beside ? check_wrapped(object, kind, old, *id, e) : 0;
}
