/* SPDX-License-Identifier: MIT */
/*
 * The parts of a mount of a cluster, as whoever answers requests of users (submit.c, cancel.c, control.c, removal.c)
 * finds them. Made and written by kube.c alone; the parts know nothing of each other but what their headers say.
 */
#pragma once

#include "backend/impl/impl.h"
#include "backend/kube/publish.h"
#include "backend/kube/requests.h"
#include "backend/kube/watches.h"

struct kueue;
struct looks;
struct removals;

struct kube_parts {
	struct backend *b;
	const char *namespace;
	const char *user; /* value of SPEC_LABEL_USER, of who mounts */
	struct world *world;
	struct folders *folders;
	struct capture *capture;
	struct commands *commands;
	struct publish *publish;
	struct watches *watches;
	struct kueue *kueue;
	struct looks *looks;
	struct requests *requests;
	struct removals *removals;
};

static inline const struct kube_parts *kube_parts_of(const struct backend *b)
{
	return b->impl;
}

/* As backend_ops says. */
void kube_submit(struct backend *b, struct backend_request *rq); /* a dry run too */
void kube_cancel(struct backend *b, struct backend_request *rq);
void kube_control(struct backend *b, struct backend_request *rq);
void kube_forget(struct backend *b, struct backend_request *rq);

/* --- removal.c: what is kept of old jobs, and for how long --- */

/* FOLDERS tells it from then on when a snapshot has been written. */
struct removals *removals_new(struct backend *b, struct folders *folders, struct capture *capture,
			      struct publish *publish);
/* All jobs are known: look soon whether something is to be removed. */
void removals_soon(struct removals *r);
/* Nothing more is removed because of its age or its size. */
void removals_stop(struct removals *r);
void removals_free(struct removals *r); /* NULL is allowed */
