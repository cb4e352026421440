/* SPDX-License-Identifier: MIT */
/* ctl on AppWrappers v1beta2, by their spec.suspend. */
#include "spec/kinds/kinds.h"
#include "spec/pods/suspend.h"

const struct spec_control spec_appwrapper_control = {
	.api_version = "workload.codeflare.dev/v1beta2",
	.plural = "appwrappers",
	.resource = "appwrappers.workload.codeflare.dev",
	.suspend = "suspend",
	.known = SUSPEND_KNOWN,
	.actions = suspend_actions,
	.refusal = suspend_refusal,
	.request = suspend_request,
	.outcome = suspend_outcome,
};
