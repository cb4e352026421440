/* SPDX-License-Identifier: MIT */
/*
 * Small helpers for every file: cleanup at the end of a scope (rule E3), transfer of ownership, and
 * a few macros.
 *
 * All parts of spec/ use this folder. mem.h has functions for text and memory, and error.h for the
 * errors of a document. tree.h writes JSON, value.h parses it, and span.h searches it. All
 * functions are pure, and may be called on any thread. The caller owns returned values.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Call FN(&variable) when the variable's scope ends, even if the variable is NULL. */
#define cleanup(fn)	       __attribute__((cleanup(fn)))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))
#define must_check	       __attribute__((warn_unused_result))

static inline void base_free_ptr(void *p)
{
	free(*(void **)p);
}

static inline void base_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void base_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* Define NAME for cleanup() of variables of TYPE. NAME calls END, which must accept NULL. */
#define define_cleanup(name, type, end)                                                            \
	static inline void name(type *variable)                                                    \
	{                                                                                          \
		end(*variable);                                                                    \
	}

#define cleanup_free cleanup(base_free_ptr)
#define cleanup_fd   cleanup(base_close_fd)
#define cleanup_file cleanup(base_fclose)

/* Return the value of the variable P, and set P to NULL, so that P's cleanup does nothing. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) *take_from_ = &(p);                                                  \
		__typeof__(p) taken_ = *take_from_;                                                \
		*take_from_ = NULL;                                                                \
		taken_;                                                                            \
	})

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define array_size(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member)                                                            \
	({                                                                                         \
		const __typeof__(((type *)0)->member) *member_ = (ptr);                            \
		(type *)((uintptr_t)member_ - offsetof(type, member));                             \
	})

#define min_of(a, b)                                                                               \
	({                                                                                         \
		__typeof__(a) min_a_ = (a);                                                        \
		__typeof__(b) min_b_ = (b);                                                        \
		min_a_ < min_b_ ? min_a_ : min_b_;                                                 \
	})

#define max_of(a, b)                                                                               \
	({                                                                                         \
		__typeof__(a) max_a_ = (a);                                                        \
		__typeof__(b) max_b_ = (b);                                                        \
		max_a_ > max_b_ ? max_a_ : max_b_;                                                 \
	})

/* True if A and B are equal texts, or both NULL. */
static inline bool streq(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* True if TEXT equals one of WORDS, an array that ends with NULL. */
static inline bool streq_any(const char *text, const char *const *words)
{
	while (*words && !streq(text, *words))
		words++;
	return *words;
}

/* True if TEXT is longer than END and ends with it. */
static inline bool has_end(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);

	return n > m && streq(text + n - m, end);
}
