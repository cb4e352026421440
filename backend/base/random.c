/* SPDX-License-Identifier: MIT */
/* Random bytes of getrandom(2), which returns all of them if at most 256 are requested. */
#include "backend/base/random.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "spec/base/name.h"

int random_bytes(void *p, size_t n)
{
	assert(n <= 256);
	return getrandom(p, n, 0) == (ssize_t)n ? 0 : -EIO;
}

unsigned random_about(unsigned ms)
{
	uint32_t any;

	if (random_bytes(&any, sizeof(any)) < 0)
		return ms;
	return ms - ms / 4 + any % (ms / 2 + 1);
}

int random_uuid(char ret[37])
{
	unsigned char b[16];
	int err = random_bytes(b, sizeof(b));

	if (err == 0)
		spec_name_uuid(b, ret);
	return err;
}

int random_name(uint64_t *ret)
{
	char suffix[SPEC_SUFFIX_MAX];

	do {
		int err = random_bytes(ret, sizeof(*ret));

		if (err < 0)
			return err;
		spec_name_suffix(*ret, suffix);
	} while (!spec_name_is_suffix(suffix));
	return 0;
}
