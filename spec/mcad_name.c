/* SPDX-License-Identifier: MIT */
/*
 * TorchX's names for MCAD, with what does not work mended. Lengths count characters, as Python does.
 */
#include "spec/mcad_name.h"

#include <ctype.h>
#include <errno.h>

#include "spec/limits.h"
#include "spec/name.h"

#define MAX_SUFFIX   ((int64_t)14)
#define MIN_SUFFIX   ((int64_t)8)  /* still 3e11 values */
#define MIN_ROOM     ((int64_t)24) /* for name and suffix, however many roles there are */
#define NAME_RESERVE 7 /* of 63 characters for what is put behind names, and one more a role */

/* NAME's normal form without digits and dashes in front. */
static char *clean(const char *name)
{
	char *ret = spec_name_norm(name);

	if (ret) {
		size_t skip = strspn(ret, "0123456789-");

		memmove(ret, ret + skip, strlen(ret + skip) + 1);
	}
	return ret;
}

static size_t count_chars(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* The first N characters of S. */
static char *cut_chars(const char *s, size_t n)
{
	const char *end = s;

	for (; *end; end++) {
		if (((unsigned char)*end & 0xc0) != 0x80 && n-- == 0)
			break;
	}
	return strndup(s, (size_t)(end - s));
}

/* N characters of TorchX's alphabet; one random value is not enough for 14. */
static void make_suffix(const uint64_t random[2], size_t n, char ret[MAX_SUFFIX + 1])
{
	char more[SPEC_SUFFIX_MAX];
	size_t half = MAX_SUFFIX / 2, have;

	spec_name_suffix(random[0], ret);
	have = min_of(strlen(ret), half);
	spec_name_suffix(random[1], more);
	snprintf(ret + have, MAX_SUFFIX + 1 - have, "%.*s", (int)half, more);
	if (strlen(ret) > n)
		ret[n] = '\0';
}

int mcad_name_job(const char *app_name, size_t n_roles, const uint64_t random[2],
		  char **ret_app_name, char **ret)
{
	int64_t room = SPEC_MAX_NAME - NAME_RESERVE - (int64_t)n_roles;
	int64_t suffix_len = min_of(room - (int64_t)count_chars(app_name), MAX_SUFFIX);
	char suffix[SPEC_SUFFIX_MAX];
	char *cut cleanup_free = NULL;
	char *name cleanup_free = NULL;

	if (suffix_len < MIN_SUFFIX) {
		suffix_len = MIN_SUFFIX;
		room = max_of(room, MIN_ROOM);
	}
	make_suffix(random, (size_t)suffix_len, suffix);
	cut = cut_chars(app_name, (size_t)(room - suffix_len));
	if (cut)
		name = clean(cut);
	if (!name || asprintf(ret, "%s%s%s", name, *name ? "-" : "", suffix) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	*ret_app_name = take_ptr(cut);
	return 0;
}

char *mcad_name_hosts_env(const char *role)
{
	char *name cleanup_free = clean(role);
	char *ret, *to;

	if (!name || asprintf(&ret, "TORCHX_MCAD_%s_0_HOSTS", name) < 0)
		return NULL;
	to = ret;
	for (const char *from = ret; *from; from++) {
		if (*from != '-')
			*to++ = (char)toupper((unsigned char)*from);
	}
	*to = '\0';
	return ret;
}
