/* SPDX-License-Identifier: MIT */
/* A table of a few texts; a hash of snapshot and function is the index of a text. */
#include "fs/tree/rendered.h"

#include "spec/base/mem.h"

/* Enough for a user who watches some jobs; each text keeps its snapshot alive. */
#define SLOTS 16
/* A larger text is not cached: rendering it takes its time anyway. */
#define KEPT_MAX (64u << 10)

struct rendered {
	struct {
		/*
		 * a reference, so that no other snapshot has its address; NULL if the slot is empty
		 */
		const struct spec_job *job;
		rendered_fn fn;
		char *text;
		size_t len;
	} slots[SLOTS];
};

struct rendered *rendered_new(void)
{
	return new0(struct rendered);
}

void rendered_free(struct rendered *r)
{
	for (size_t i = 0; r && i < SLOTS; i++) {
		spec_job_unref(r->slots[i].job);
		free(r->slots[i].text);
	}
	free(r);
}

void rendered_text(struct rendered *r, const struct spec_job *job, rendered_fn fn, char **ret,
		   size_t *ret_len)
{
	size_t i = ((uintptr_t)job / 64 + (uintptr_t)fn / 16) % SLOTS;

	if (r->slots[i].job != job || r->slots[i].fn != fn) {
		fn(job, ret, ret_len);
		if (*ret_len > KEPT_MAX)
			return;
		spec_job_unref(r->slots[i].job);
		free(r->slots[i].text);
		r->slots[i].job = spec_job_ref(job);
		r->slots[i].fn = fn;
		r->slots[i].text = mem_copy(*ret, *ret_len);
		r->slots[i].len = *ret_len;
		return;
	}
	*ret = mem_copy(r->slots[i].text, r->slots[i].len);
	*ret_len = r->slots[i].len;
}
