/* SPDX-License-Identifier: MIT */
/* Small allocations (rule E4). */
#include "spec/base/mem.h"

void mem_out(void)
{
	fputs("kxfs: out of memory\n", stderr);
	abort();
}

void *mem_zero(size_t size)
{
	return mem_zero_n(1, size);
}

void *mem_zero_n(size_t n, size_t size)
{
	void *p = calloc(max_of(n, (size_t)1), max_of(size, (size_t)1));

	if (!p)
		mem_out();
	return p;
}

void *mem_grow(void *p, size_t n, size_t size)
{
	p = reallocarray(p, max_of(n, (size_t)1), max_of(size, (size_t)1));
	if (!p)
		mem_out();
	return p;
}

void *mem_more(void *p, size_t n, size_t size)
{
	return (n & (n - 1)) == 0 ? mem_grow(p, n ? 2 * n : 1, size) : p;
}

char *mem_copy(const void *bytes, size_t n)
{
	char *copy = n < SIZE_MAX ? malloc(n + 1) : NULL;

	if (!copy)
		mem_out();
	memcpy(copy, bytes, n);
	copy[n] = '\0';
	return copy;
}

char *text_copy(const char *text)
{
	return mem_copy(text, strlen(text));
}

char *text_vprint(const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		mem_out();
	return text;
}

char *text_print(const char *fmt, ...)
{
	return text_of_args(fmt);
}

void text_set(char **field, const char *fmt, ...)
{
	char *old = *field;

	*field = text_of_args(fmt);
	free(old);
}

void text_wipe(char **field)
{
	if (*field)
		explicit_bzero(*field, strlen(*field));
	free(*field);
	*field = NULL;
}

FILE *text_stream(char **ret, size_t *ret_len)
{
	FILE *f = open_memstream(ret, ret_len);

	if (!f)
		mem_out();
	return f;
}

void text_stream_close(FILE *f)
{
	bool failed = ferror(f);

	if (fclose(f) || failed)
		mem_out();
}

/* All fields with an empty text point to this text, which is never written or freed. */
static const char empty_text[] = "";

char *spec_empty(void)
{
	return (char *)(uintptr_t)empty_text;
}

void mem_unset(char **const *fields)
{
	for (; *fields; fields++) {
		if (**fields != empty_text)
			free(**fields);
		**fields = NULL;
	}
}

void spec_set(char **field, const char *value)
{
	char *copy = value && *value ? text_copy(value) : spec_empty();

	spec_unset(field);
	*field = copy;
}

/* --- texts with several owners --- */

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
