/* SPDX-License-Identifier: MIT */
/*
 * A FUSE request on its way from the kernel (kernel.c) to its handler and back (fuse.c). It is
 * plain data: the sender fills in the request, and the handler's reply fills in the answer.
 */
#pragma once

#include "fs/vfs/fuse.h"
#include "spec/base/base.h"

struct fs;
struct sim_task;

struct fuse_req {
	struct fuse_ctx ctx; /* as the handler sees it */
	pid_t pid;	     /* of the process that sent it */
	void (*fn)(struct fuse_req *r);
	uint64_t node, to_node, n;
	const char *name, *to_name, *bytes;
	size_t size;
	off_t off;
	struct fuse_file_info fi;
	fuse_interrupt_func_t interrupt;
	void *interrupt_data;
	bool interrupted;
	bool forced; /* a signal does not remove it from the queue */
	/* The handler of the request: */
	char *buffer;
	struct sim_task *task; /* NULL before the handler starts and after it returns */
	bool held;	       /* the handler waits for the disk */
	/* FORGETs and RELEASEs of the request's node, delayed until the handler returns */
	struct fuse_req *kept;
	/* The answer: */
	bool done;
	/* A signal or a deadline answered it while its handler was waiting for the disk. */
	bool early;
	bool endless; /* it is parked without a deadline, as intended */
	const char *what;
	unsigned most_ms; /* the longest time it may be parked */
	bool parked;
	/* sim_awake() when it was sent or parked, and when a signal arrived (0: none). */
	uint64_t since, signalled;
	int err;
	struct fuse_entry_param entry;
	char *ret;
	size_t ret_len;
	/* NULL if nobody waits for the answer; the request is then freed once it is answered */
	struct sim_task *waiter;
	struct fuse_req *prev, *next;
	struct fuse_req *after; /* next in the device's queue, or in a list of delayed requests */
	bool lets_go;		/* it is a FORGET or a RELEASE */
	struct fuse_req *disk_prev, *disk_next;
	struct fs *fs; /* the mount that serves it */
};

/* Make a request of PID (0: hidden from kxfs). FN passes it to its handler; NAME is borrowed. */
struct fuse_req *request_new(pid_t pid, void (*fn)(struct fuse_req *r), uint64_t node,
			     const char *name);
/* Send R without waiting for its answer, and take ownership of R. */
void request_post(struct fuse_req *r);
/* Send R, wait, and return the errno of the answer. The caller must drop R. Call this in a task. */
int request_ask(struct fuse_req *r);
/* Free the answer of R, which the caller has used. R itself is never freed (fuse.c). */
void request_drop(struct fuse_req *r);
/* Interrupt R with a signal: it must then be answered soon. */
void request_signal(struct fuse_req *r);
/*
 * The process that waits for R was killed. Remove R from the queue if kxfs has not read it;
 * otherwise interrupt it.
 */
void request_kill(struct fuse_req *r);
/* Call FN with each request that has no answer yet. */
void request_each(void (*fn)(struct fuse_req *r, void *data), void *data);
