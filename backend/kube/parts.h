/* SPDX-License-Identifier: MIT */
/*
 * The parts of a mount of a cluster, for the files that answer requests of users (submit.c, control.c, removal.c). Only
 * kube.c makes the parts and writes this struct.
 */
#pragma once

#include "backend/impl/impl.h"
#include "backend/kube/publish.h"
#include "backend/kube/requests.h"
#include "backend/kube/watches.h"
#include "spec/api/kubeconfig.h"

struct kueue;
struct samples;
struct removals;

struct kube_parts {
	struct backend *b;
	const char *namespace;
	const char *user; /* value of SPEC_LABEL_USER of this mount's user */
	struct world *world;
	struct folders *folders;
	struct capture *capture;
	struct commands *commands;
	struct publish *publish;
	struct watches *watches;
	struct kueue *kueue;
	struct samples *samples;
	struct requests *requests;
	struct removals *removals;
};

static inline const struct kube_parts *kube_parts_of(const struct backend *b)
{
	return b->impl;
}

/* Read the kubeconfig that CONFIG names. Return 0, or a negative errno with *RET_TEXT. */
int kube_connection(const struct backend_config *config, struct spec_connection *ret,
		    char **ret_text);

/* See backend_ops. */
void kube_submit(struct backend *b, struct backend_request *rq); /* a dry run too */
void kube_cancel(struct backend *b, struct backend_request *rq);
void kube_control(struct backend *b, struct backend_request *rq);
void kube_forget(struct backend *b, struct backend_request *rq);

/* --- removal.c --- */

/* From then on FOLDERS reports to it each snapshot that is written. */
struct removals *removals_new(struct backend *b, struct folders *folders, struct capture *capture,
			      struct publish *publish);
/* All jobs are known: check soon whether any has to be removed. */
void removals_soon(void *removals);
/* See backend_ops. */
bool kube_is_settled(struct backend *b, const struct spec_job *job);
/* Stop removals because of age or size. */
void removals_stop(struct removals *r);
void removals_free(struct removals *r); /* NULL is allowed */
