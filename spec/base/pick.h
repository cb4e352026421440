/* SPDX-License-Identifier: MIT */
/*
 * Which members of an object somebody reads. Of an object of the cluster a dozen members of a hundred matter, so the
 * others are dropped where the text is cut (spec/api/split.h), before anything is stored. Private to spec/, but for the
 * tables that it gives out.
 */
#pragma once

#include "spec/base/base.h"

/* A row of a table of members. The last row has no KEY, and says of all other members whether they are kept. */
struct spec_pick {
	const char *key;
	bool keep;
	/*
	 * A table of what is kept within it, which is said of each item where the member is a list. A value that is
	 * neither an object nor a list is kept. NULL: KEEP says it of all that is in it.
	 */
	const struct spec_pick *of;
};
