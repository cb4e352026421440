/* SPDX-License-Identifier: MIT */
/* ctl on AppWrappers of v1beta2: spec.suspend. */
#include "spec/kinds/kinds.h"
#include "spec/pods/suspend.h"

static void request(const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	suspend_request("workload.codeflare.dev/v1beta2", "appwrappers",
			"appwrappers.workload.codeflare.dev", asked, ret);
}

const struct spec_control spec_appwrapper_control = {
	.known = SUSPEND_KNOWN,
	.actions = suspend_actions,
	.refusal = suspend_refusal,
	.request = request,
	.outcome = suspend_outcome,
};
