/* SPDX-License-Identifier: MIT */
/* Texts counted by references; see shared.h. */
#include "spec/base/shared.h"

#include "spec/base/mem.h"

struct spec_text *spec_text_new(const char *text, size_t len)
{
	struct spec_text *t = mem_zero(sizeof(*t) + len + 1);

	t->refs = 1;
	t->len = len;
	if (text)
		memcpy(t->text, text, len);
	return t;
}

struct spec_text *spec_text_ref(struct spec_text *t)
{
	__atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
	return t;
}

void spec_text_unref(struct spec_text *t)
{
	if (t && __atomic_fetch_sub(&t->refs, 1, __ATOMIC_ACQ_REL) == 1)
		free(t);
}
