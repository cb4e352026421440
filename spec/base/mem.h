/* SPDX-License-Identifier: MIT */
/*
 * Small allocations (rule E4), on any thread. These functions end the program if memory is
 * exhausted. The files on disk are always consistent, so kxfs continues from them at its next
 * start. Check a size from outside against its bound (limits.h) first.
 */
#pragma once

#include "spec/base/base.h"

#define returns_memory __attribute__((malloc, returns_nonnull, warn_unused_result))

/* Return zeroed memory. If SIZE is 0, allocate one byte. */
returns_memory void *mem_zero(size_t size);
returns_memory void *mem_zero_n(size_t n, size_t size);
/* Like realloc, for N elements of SIZE bytes. P may be NULL. Added bytes are not initialized. */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_grow(void *p, size_t n, size_t size);
/*
 * Make space for one more element in P, an array of N elements. P is NULL if N is 0. Only this
 * function may have allocated P. The capacity doubles whenever N is a power of two, so the
 * caller need not store it.
 */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_more(void *p, size_t n, size_t size);
/* Return a copy of N BYTES, followed by a NUL. */
returns_memory char *mem_copy(const void *bytes, size_t n);

#define new0(type)	((type *)mem_zero(sizeof(type)))
#define new0_n(type, n) ((type *)mem_zero_n((n), sizeof(type)))

/* TEXT is not NULL. */
returns_memory char *text_copy(const char *text);
/* Return the text that printf would print. */
returns_memory printf_like(1, 2) char *text_print(const char *fmt, ...);
returns_memory printf_like(1, 0) char *text_vprint(const char *fmt, va_list ap);
/* Replace the text in *FIELD. The arguments may include the old text, which is freed afterwards. */
printf_like(2, 3) void text_set(char **field, const char *fmt, ...);
/*
 * Return the text that printf would print for the arguments of the calling variadic function. FMT
 * is its last parameter before "...".
 */
#define text_of_args(fmt)                                                                          \
	({                                                                                         \
		va_list args_;                                                                     \
		char *text_;                                                                       \
		va_start(args_, fmt);                                                              \
		text_ = text_vprint(fmt, args_);                                                   \
		va_end(args_);                                                                     \
		text_;                                                                             \
	})

/* Overwrite the secret in *FIELD, free it and set *FIELD to NULL. *FIELD may be NULL. */
void text_wipe(char **field);

/*
 * Open a stream that writes to memory. text_stream_close sets *RET to the text (malloc'ed and
 * NUL-terminated), and *RET_LEN to its length.
 */
__attribute__((returns_nonnull)) FILE *text_stream(char **ret, size_t *ret_len);
void text_stream_close(FILE *f);

/*
 * Return the static string that all empty texts of jobs share, since ten thousand jobs have many
 * empty texts. A field that may point to this string must be set by spec_set, and freed by
 * spec_unset.
 */
char *spec_empty(void);
/* Set *FIELD to a copy of VALUE, and free its old text. If VALUE is NULL, set "". */
void spec_set(char **field, const char *value);
/* Free the texts in the fields with the given addresses, and set the fields to NULL. */
#define spec_unset(...) mem_unset((char **const[]){__VA_ARGS__, NULL})
void mem_unset(char **const *fields); /* NULL ends FIELDS */

/* End the program because memory is exhausted. */
_Noreturn void mem_out(void);

/* Plain data: an immutable text with several owners, perhaps on several threads. */
struct spec_text {
	unsigned refs; /* atomic */
	size_t len;
	char text[]; /* with a NUL */
};

/*
 * Return a copy of TEXT with one reference. If TEXT is NULL, return LEN zeros, which the caller
 * must overwrite before it shares the result.
 */
struct spec_text *spec_text_new(const char *text, size_t len);
struct spec_text *spec_text_ref(struct spec_text *t);
void spec_text_unref(struct spec_text *t); /* NULL is allowed */

/* Plain data. */
struct spec_pair {
	char *key;
	char *value;
};

/* An ordered map. Plain data. */
struct spec_map {
	struct spec_pair *v;
	size_t n;
};

static inline void spec_map_clear(struct spec_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].key);
		free(m->v[i].value);
	}
	free(m->v);
	*m = (struct spec_map){0};
}
