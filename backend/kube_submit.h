/* SPDX-License-Identifier: MIT */
/*
 * A submission or a dry run under way. Private to kube_submit.c and kube_prepare.c. While op.working is
 * set it belongs to the pool, else to the I/O thread.
 */
#ifndef KXFS_BACKEND_KUBE_SUBMIT_H
#define KXFS_BACKEND_KUBE_SUBMIT_H

#include "backend/kube_request.h"
#include "spec/manifest.h"

#define KUBE_NAME_TRIES 16 /* a name has 64 random bits: a second try is already a surprise */

struct kube_submit {
	struct kube_op op;
	struct spec_manifest *m;
	char submission[37];
	bool lost;	/* a try may have been acted on, though no reply said so */
	unsigned names; /* tried */
	bool beside;	/* who has the first of them is still there */
	bool kept;	/* its directory is made */
	int err;	/* what is wrong; while the holder of the name is asked for: so far */
	char *text;	/* for people; of a dry run that was approved: the manifest */
};

static inline bool kube_submit_is_dry(const struct kube_submit *s)
{
	return s->op.rq->kind == BACKEND_DRY_RUN;
}

/* Pool: choose a name, make the manifest, keep what is kept; s->err and s->text say how that went. */
void kube_submit_prepare(void *data);

#endif
