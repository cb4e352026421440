/* SPDX-License-Identifier: MIT */
/*
 * Reading Volcano's objects: the part of spec_volcano (kind.h) that is not about making them.
 * Private to volcano*.c.
 */
#ifndef KXFS_SPEC_VOLCANO_READ_H
#define KXFS_SPEC_VOLCANO_READ_H

#include "spec/kind.h"

extern const struct spec_phase spec_volcano_phases[];

int spec_volcano_read_job(struct json_object *object, struct spec_job_view *v,
			  struct spec_task_source **tasks, size_t *n);
int spec_volcano_read_pod(struct json_object *object, struct spec_pod_view *v);

#endif
