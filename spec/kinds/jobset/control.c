/* SPDX-License-Identifier: MIT */
/* ctl on JobSets: spec.suspend. */
#include "spec/kinds/kinds.h"
#include "spec/pods/suspend.h"

static void request(const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	suspend_request("jobset.x-k8s.io/v1alpha2", "jobsets", "jobsets.jobset.x-k8s.io", asked,
			ret);
}

const struct spec_control spec_jobset_control = {
	.known = SUSPEND_KNOWN,
	.actions = suspend_actions,
	.refusal = suspend_refusal,
	.request = request,
	.outcome = suspend_outcome,
};
