/* SPDX-License-Identifier: MIT */
/*
 * Tables of the members that are read of an object. An object of the cluster may have a hundred members, of which a
 * dozen matter; the others are dropped where the text is cut (spec/api/split.h), before anything is stored. Private to
 * spec/, but for the tables that it gives out.
 */
#pragma once

#include "spec/base/base.h"

/* A row of a table of members. The last row has no KEY, and says of all other members whether they are kept. */
struct spec_pick {
	const char *key;
	bool keep;
	/*
	 * A table of what is kept within the member; if the member is a list, within each of its items. A value that is
	 * neither an object nor a list is kept. NULL: KEEP holds for all that is in it.
	 */
	const struct spec_pick *of;
};
