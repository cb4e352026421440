/* SPDX-License-Identifier: MIT */
/* Private to spec/kinds/job. */
#pragma once

struct spec_value;
struct spec_job_view;

/* The hook of struct spec_kind. */
void job_hook(const struct spec_value *object, struct spec_job_view *v);
