/* SPDX-License-Identifier: MIT */
/*
 * Small allocations (rule E4), on any thread. These functions never fail: if memory is exhausted,
 * they end the program, since kxfs can't answer requests without memory. The files on disk are
 * always consistent, so kxfs continues from them at its next start. The caller checks a size from
 * outside against its bound (limits.h) first.
 */
#pragma once

#include "spec/base/base.h"

#define returns_memory __attribute__((malloc, returns_nonnull, warn_unused_result))

/* Allocate SIZE zeroed bytes, or at least one byte if SIZE is 0. */
returns_memory void *mem_zero(size_t size);
/* Allocate N elements of SIZE bytes each, zeroed. */
returns_memory void *mem_zero_n(size_t n, size_t size);
/* Reallocate P (may be NULL) for N elements of SIZE bytes each. Added bytes are not initialized. */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_grow(void *p, size_t n, size_t size);
/*
 * Return P, an array of N elements of SIZE bytes each, with space for at least one more element.
 * Reallocate P if necessary. P is NULL if N is 0, and only this function may have allocated P. The
 * capacity doubles whenever N is a power of two, so the caller need not store the capacity.
 */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_more(void *p, size_t n, size_t size);
/* Return a copy of N BYTES, followed by a NUL. */
returns_memory char *mem_copy(const void *bytes, size_t n);

/* Allocate one zeroed TYPE, or N of them. */
#define new0(type)	((type *)mem_zero(sizeof(type)))
#define new0_n(type, n) ((type *)mem_zero_n((n), sizeof(type)))

/* Return a copy of TEXT, which is not NULL. */
returns_memory char *text_copy(const char *text);
/* Return the text that printf would print. */
returns_memory printf_like(1, 2) char *text_print(const char *fmt, ...);
returns_memory printf_like(1, 0) char *text_vprint(const char *fmt, va_list ap);
/*
 * Set *FIELD to the text that printf would print, and free its old text. The arguments may point
 * into the old text.
 */
printf_like(2, 3) void text_set(char **field, const char *fmt, ...);
/*
 * Return the text that printf would print for FMT and the variadic arguments of the calling
 * function. FMT must be its last parameter before "...".
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
 * Open a stream that writes to memory. text_stream_close sets *RET to the written bytes (malloc'ed,
 * NUL-terminated) and *RET_LEN to their number.
 */
__attribute__((returns_nonnull)) FILE *text_stream(char **ret, size_t *ret_len);
void text_stream_close(FILE *f);

/*
 * A mount may show ten thousand jobs with many empty texts, so all empty texts share one static
 * string. Use only the functions below to set and free fields that have such texts.
 */
char *spec_empty(void);
/* Free the text in *FIELD (may be NULL) and set *FIELD to a copy of VALUE (NULL means ""). */
void spec_set(char **field, const char *value);
/* Free the texts in the fields with the given addresses, and set the fields to NULL. */
#define spec_unset(...) mem_unset((char **const[]){__VA_ARGS__, NULL})
void mem_unset(char **const *fields); /* terminated by NULL */

/* End the program because memory is exhausted. */
_Noreturn void mem_out(void);

/*
 * A text with several owners, for example the snapshots of one job, or the processes that have
 * opened the same file. The text must not change after it is shared. The reference count is atomic,
 * so each owner may be on another thread. Plain data.
 */
struct spec_text {
	unsigned refs; /* atomic; use only spec_text_ref and spec_text_unref to change it */
	size_t len;
	char text[]; /* the bytes, and a NUL */
};

/*
 * Return a text with one reference. It is a copy of the LEN bytes at TEXT. If TEXT is NULL, it has
 * LEN zeros, which the caller may overwrite before it shares the text.
 */
struct spec_text *spec_text_new(const char *text, size_t len);
struct spec_text *spec_text_ref(struct spec_text *t);
void spec_text_unref(struct spec_text *t); /* NULL is allowed */

/* Plain data: the caller sets both texts. */
struct spec_pair {
	char *key;
	char *value;
};

/* An ordered map of text to text. Plain data: the caller fills it in. */
struct spec_map {
	struct spec_pair *v;
	size_t n;
};

/* Free everything that M owns. Afterwards M is empty. */
static inline void spec_map_clear(struct spec_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].key);
		free(m->v[i].value);
	}
	free(m->v);
	*m = (struct spec_map){0};
}
