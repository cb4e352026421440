/* SPDX-License-Identifier: MIT */
/* Makes one replica of a job from its pods. Private to spec/view. */
#pragma once

#include "spec/view/state.h"

/*
 * Fill R, whose name, role and id are set, from its PODS and from BEFORE, the replica in the last
 * snapshot (or NULL).
 */
void spec_replica_fill(struct spec_replica *r, struct spec_placed_pods pods,
		       const struct spec_job_view *job, const struct spec_standing *standing,
		       const struct spec_replica *before);
