/* SPDX-License-Identifier: MIT */
/* Macro replacement in any text. Text that is not replaced stays the same, and "$$" becomes "$". */
#include "fuzz.h"

#include "spec/app/app.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct spec_macros empty = {NULL, NULL, NULL, NULL, NULL};
	static const struct spec_macros macros = {"app-x1", "0", "", "DEPRECATED", "RANK0"};
	cleanup_free char *text = strndup((const char *)data, size);
	cleanup_free char *same = NULL, *got = NULL;
	const char *from, *to;

	if (!text)
		return 0;
	got = spec_macro_expand(text, &macros);
	same = spec_macro_expand(text, &empty);
	assert(got && same);
	for (from = text, to = same; *from; from++, to++) {
		assert(*from == *to);
		if (from[0] == '$' && from[1] == '$')
			from++;
	}
	assert(*to == '\0');
	return 0;
}
