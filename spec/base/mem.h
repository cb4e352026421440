/* SPDX-License-Identifier: MIT */
/*
 * Small allocations (rule E4). These functions never fail: they end the program when memory is
 * exhausted. Then kxfs could not answer requests anyway, and the files on disk are always
 * consistent, so the next start continues. Callers check a size from outside that may be large (a
 * document, a body, a list) against its bound first. Any thread.
 */
#pragma once

#include "spec/base/base.h"

#define returns_memory __attribute__((malloc, returns_nonnull, warn_unused_result))

/* Allocate SIZE zero bytes (SIZE 0: at least one). */
returns_memory void *mem_zero(size_t size);
/* Allocate N elements of SIZE zero bytes each. */
returns_memory void *mem_zero_n(size_t n, size_t size);
/* Enlarge P (may be NULL) for N elements of SIZE bytes; new bytes are not set. */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_grow(void *p, size_t n, size_t size);
/*
 * Make room for one more element in P, an array of N elements of SIZE bytes that only this function
 * has allocated (NULL: an empty one). The capacity doubles when N is a power of two, so the caller
 * need not store it.
 */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_more(void *p, size_t n, size_t size);
/* Return a copy of N bytes, followed by a NUL. */
returns_memory char *mem_copy(const void *bytes, size_t n);

/* Allocate a zeroed TYPE; or N of them. */
#define new0(type)	((type *)mem_zero(sizeof(type)))
#define new0_n(type, n) ((type *)mem_zero_n((n), sizeof(type)))

/* Return a copy of TEXT, which is not NULL. */
returns_memory char *text_copy(const char *text);
/* Return the text that printf would print. */
returns_memory printf_like(1, 2) char *text_print(const char *fmt, ...);
returns_memory printf_like(1, 0) char *text_vprint(const char *fmt, va_list ap);
/* Free *FIELD and set it to the text that printf would print. The arguments may point into the old text. */
printf_like(2, 3) void text_set(char **field, const char *fmt, ...);
/*
 * For a function that has "..." after FMT: return the text that printf would print for these
 * arguments.
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

/* Overwrite *FIELD, a secret, free it and set it to NULL. It may be NULL. */
void text_wipe(char **field);

/*
 * Open a stream to memory. text_stream_close sets *RET to the written bytes (malloc'ed,
 * NUL-terminated) and *RET_LEN to their number.
 */
__attribute__((returns_nonnull)) FILE *text_stream(char **ret, size_t *ret_len);
void text_stream_close(FILE *f);

/*
 * A mount may show ten thousand jobs, and many texts of jobs, their parts, amounts and records are
 * empty. All these empty texts share one static string, so set and free such a field only by the
 * functions below.
 */
char *spec_empty(void);
/* Release *FIELD (NULL is allowed) and make it a copy of VALUE (NULL counts as ""). */
void spec_set(char **field, const char *value);
/* Release the texts in the fields whose addresses are given, and set the fields to NULL. */
#define spec_unset(...) mem_unset((char **const[]){__VA_ARGS__, NULL})
void mem_unset(char **const *fields); /* terminated by NULL */

/* End the program, as all functions above do when memory is exhausted. */
_Noreturn void mem_out(void);

/*
 * A text with several owners, for example snapshots of one job, or processes that have opened the
 * same file. It is immutable once published. The reference count is atomic, so any thread may hold
 * a reference. Plain data.
 */
struct spec_text {
	unsigned refs; /* atomic; only spec_text_ref and spec_text_unref touch it */
	size_t len;
	char text[]; /* the bytes, and a NUL */
};

/*
 * Return a copy of LEN bytes, with one reference; if TEXT is NULL, LEN zeros for the caller to
 * fill.
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

/* Release all that M owns; it is empty afterwards. */
static inline void spec_map_clear(struct spec_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].key);
		free(m->v[i].value);
	}
	free(m->v);
	*m = (struct spec_map){0};
}
