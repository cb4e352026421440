/* SPDX-License-Identifier: MIT */
/*
 * Replaces the C library's malloc. The header of each block records its owner: the life of kxfs
 * that allocated it, or the simulator. So the amount of memory that kxfs holds is known, no matter
 * which code frees a block. A sanitizer has its own malloc, so a build with one counts nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/sim/sim.h"

static size_t held;
static bool charged;

size_t sim_memory_held(void)
{
	return held;
}

bool sim_charge(bool yes)
{
	bool was = charged;

	charged = yes;
	return was;
}

void sim_memory_forget(void)
{
	held = 0;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

struct head {
	_Alignas(16) size_t n;
	unsigned owner; /* 0: the simulator; otherwise the number of a life of kxfs, plus 1 */
};

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

/*
 * Set the size of H to N bytes, count it if the current life of kxfs owns it, and return the memory
 * behind H.
 */
static void *note(struct head *h, size_t n)
{
	h->n = n;
	if (h->owner == sim_life() + 1)
		held += n;
	return h + 1;
}

static void unnote(const struct head *h)
{
	if (h->owner == sim_life() + 1)
		held -= h->n;
}

static void *begin(struct head *h, size_t n)
{
	if (!h)
		return NULL;
	h->owner = charged ? sim_life() + 1 : 0;
	return note(h, n);
}

void *malloc(size_t n)
{
	return begin(__libc_malloc(sizeof(struct head) + n), n);
}

void *calloc(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return begin(__libc_calloc(1, sizeof(struct head) + bytes), bytes);
}

void *realloc(void *p, size_t n)
{
	struct head *h = p ? (struct head *)p - 1 : NULL;

	if (!h)
		return malloc(n);
	unnote(h);
	h = __libc_realloc(h, sizeof(struct head) + n);
	return h ? note(h, n) : NULL;
}

void free(void *p)
{
	struct head *h = p ? (struct head *)p - 1 : NULL;

	if (!h)
		return;
	unnote(h);
	__libc_free(h);
}

#endif
