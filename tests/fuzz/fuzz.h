/* SPDX-License-Identifier: MIT */
/*
 * What every fuzz target includes first: its entry point, assert() in all builds, and json-c, whose
 * results are compared with those of spec/.
 */
#pragma once

#undef NDEBUG
#include <assert.h>
#include <json-c/json.h>

#include "spec/base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Return NULL if TEXT is not JSON, or is null. */
static inline struct json_object *fuzz_json_parse(const char *text, size_t len)
{
	struct json_tokener *tok = json_tokener_new_ex(256);
	struct json_object *ret;

	assert(tok);
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	ret = json_tokener_parse_ex(tok, text, (int)len);
	if (json_tokener_get_error(tok) != json_tokener_success) {
		json_object_put(ret);
		ret = NULL;
	}
	json_tokener_free(tok);
	return ret;
}

/* json-c accepts NaN too, which is not equal to itself. */
static inline bool fuzz_json_same(struct json_object *a, struct json_object *b)
{
	return json_object_equal(a, b) ||
	       streq(json_object_to_json_string(a), json_object_to_json_string(b));
}
