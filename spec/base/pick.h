/* SPDX-License-Identifier: MIT */
/*
 * Tables of the members of an object that kxfs reads. A cluster's object may have a hundred
 * members, but only a dozen matter. The splitter (spec/api/split.h) drops the others before
 * anything is stored. Private to spec/, except the tables that it exports.
 */
#pragma once

#include "spec/base/base.h"

/*
 * A row of a table of members. The last row has no KEY, and determines whether all other members
 * are kept.
 */
struct spec_pick {
	const char *key;
	bool keep;
	/*
	 * A table of the members to keep within this one; if it is a list, within each of its
	 * items. A value that is neither an object nor a list is kept. NULL: KEEP applies to all of
	 * it.
	 */
	const struct spec_pick *of;
};
