/* SPDX-License-Identifier: MIT */
/*
 * The members of a LocalQueue of Kueue beyond those of all queues (watched.c). Private to
 * spec/view.
 */
#pragma once

#include "spec/base/read.h"
#include "spec/view/kueue.h"

/* Read a LocalQueue's object. malloc'ed. */
struct spec_local_queue *spec_local_queue_read(const struct spec_value *object);
void spec_local_queue_free(struct spec_local_queue *q); /* NULL is allowed */
bool spec_local_queue_same(const struct spec_local_queue *a, const struct spec_local_queue *b);
/* Like spec_queue_view_text, for a LocalQueue. */
void spec_local_queue_text(const struct spec_queue_view *v,
			   const struct spec_cluster_queue_view *cluster, size_t pending,
			   size_t running, char **ret, size_t *ret_len);
