/* SPDX-License-Identifier: MIT */
/*
 * Named resources: TorchX 0.7.0's table and the names that later versions add. Lookup is exact
 * first, then ignores case.
 */
#pragma once

#include "spec/app/app.h"

/* Fill RET for NAME. -ENOENT: no such name (*SUGGESTION is a near one or NULL). */
int spec_named_resource(const char *name, struct spec_resource *ret, const char **suggestion);

/* Free all that COUNTS owns; it is empty afterwards. */
void spec_counts_clear(struct spec_counts *counts);
void spec_resource_clear(struct spec_resource *r);

/* Return the I-th name of the table, NULL at its end: for documentation and tests. */
const char *spec_named_resource_name(size_t i);
