/* SPDX-License-Identifier: MIT */
/*
 * Small allocations (rule E4). None of these functions fails: when memory is out they end the program, since
 * nobody could be answered any more, and what is on disk is whole at any moment, so the next start goes on. A size
 * that comes from outside and may be large (a document, a body, a list) is checked against its bound first.
 * Any thread.
 */
#pragma once

#include "spec/base/base.h"

#define returns_memory __attribute__((malloc, returns_nonnull, warn_unused_result))

/* SIZE zero bytes (SIZE 0: at least one). */
returns_memory void *mem_zero(size_t size);
/* N things of SIZE zero bytes each. */
returns_memory void *mem_zero_n(size_t n, size_t size);
/* P (NULL: nothing yet), made large enough for N things of SIZE bytes; new bytes are not set. */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_grow(void *p, size_t n, size_t size);
/*
 * P, an array of N things of SIZE bytes that was made by this function alone (NULL: an empty one), with room for one
 * more. The room doubles at powers of two, so nobody has to note how much there is.
 */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_more(void *p, size_t n, size_t size);
/* A copy of N bytes, and a '\0' behind them. */
returns_memory char *mem_copy(const void *bytes, size_t n);

/* A zeroed TYPE; N of them. */
#define new0(type)	((type *)mem_zero(sizeof(type)))
#define new0_n(type, n) ((type *)mem_zero_n((n), sizeof(type)))

/* A copy of TEXT, which is not NULL. */
returns_memory char *text_copy(const char *text);
/* The text that printf would print. */
returns_memory printf_like(1, 2) char *text_print(const char *fmt, ...);
returns_memory printf_like(1, 0) char *text_vprint(const char *fmt, va_list ap);
/* Free *FIELD and set it to the text that printf would print. The arguments may point into the old text. */
printf_like(2, 3) void text_set(char **field, const char *fmt, ...);
/* In a function with "..." behind its FMT: the text of its own arguments. */
#define text_of_args(fmt)                                                                          \
	({                                                                                         \
		va_list args_;                                                                     \
		char *text_;                                                                       \
		va_start(args_, fmt);                                                              \
		text_ = text_vprint(fmt, args_);                                                   \
		va_end(args_);                                                                     \
		text_;                                                                             \
	})

/* Overwrite *FIELD, a secret, and free it; it is NULL afterwards, and may be before. */
void text_wipe(char **field);

/* A stream whose bytes become *RET (malloc'ed, NUL-terminated) and *RET_LEN when it is closed. */
__attribute__((returns_nonnull)) FILE *text_stream(char **ret, size_t *ret_len);
void text_stream_close(FILE *f);

/*
 * Fields of which many are empty, since a mount may show ten thousand jobs: all empty ones are one static string. So
 * such a field is set and freed through these functions alone. The strings of a job, of its parts, of amounts and of a
 * record are of this sort.
 */
char *spec_empty(void);
/* Release *FIELD (NULL is allowed) and make it a copy of VALUE (NULL counts as ""). */
void spec_set(char **field, const char *value);
/* Release the texts to which the arguments point; these are NULL afterwards. */
#define spec_unset(...) mem_unset((char **const[]){__VA_ARGS__, NULL})
void mem_unset(char **const *fields); /* ends with NULL */

/* Ends the program, as all of the above do when memory is out. */
_Noreturn void mem_out(void);
