/* SPDX-License-Identifier: MIT */
/* One replica of a job, out of its pods. Private to spec/view. */
#pragma once

#include "spec/view/state.h"

/*
 * Fill R, whose name, role and id are set, from its PODS and from BEFORE, what it was in the snapshot before (NULL:
 * it was in none).
 */
void spec_replica_fill(struct spec_replica *r, struct spec_placed_pods pods,
		       const struct spec_job_view *job, const struct spec_standing *standing,
		       const struct spec_replica *before);
