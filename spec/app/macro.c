/* SPDX-License-Identifier: MIT */
/* Replaces macros in a text. A "$" that begins no macro is copied. */
#include "spec/app/app.h"

#include "spec/base/mem.h"

static bool is_ident(char c, bool first)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (!first && c >= '0' && c <= '9');
}

/*
 * TEXT begins with "$". If it begins with "$$" or a known macro, set *VALUE to the replacement, and
 * return the length of the replaced text. Otherwise return 0.
 */
static size_t match(const char *text, const struct spec_macros *m, const char **value)
{
	const struct {
		const char *name, *value;
	} known[] = {
		{"app_id", m->app_id},	     {"replica_id", m->replica_id},
		{"img_root", m->img_root},   {"base_img_root", m->base_img_root},
		{"rank0_env", m->rank0_env},
	};
	bool braced = text[1] == '{';
	const char *name = text + 1 + braced;
	size_t len = 0;

	if (text[1] == '$') {
		*value = "$";
		return 2;
	}
	while (is_ident(name[len], len == 0))
		len++;
	if (len == 0 || (braced && name[len] != '}'))
		return 0;
	for (size_t i = 0; i < array_size(known); i++) {
		*value = known[i].value;
		if (*value && strlen(known[i].name) == len && !memcmp(known[i].name, name, len))
			return 1 + len + 2 * braced;
	}
	return 0;
}

char *spec_macro_expand(const char *text, const struct spec_macros *m)
{
	char *ret;
	size_t len;
	FILE *out = text_stream(&ret, &len);

	for (;;) {
		const char *dollar = strchrnul(text, '$');
		const char *value;
		size_t n;

		fwrite(text, 1, (size_t)(dollar - text), out);
		if (!*dollar)
			break;
		n = match(dollar, m, &value);
		if (n)
			fputs(value, out);
		else
			fputc('$', out);
		text = dollar + (n ? n : 1);
	}
	text_stream_close(out);
	return ret;
}
