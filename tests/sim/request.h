/* SPDX-License-Identifier: MIT */
/*
 * A request on its way from the kernel (kernel.c) to its handler and back (fuse.c). Of both it is plain data: who makes
 * it fills it in, and its answer is written where it is given.
 */
#pragma once

#include "fs/vfs/fuse.h"
#include "spec/base/base.h"

struct fs;
struct sim_task;

struct fuse_req {
	struct fuse_ctx ctx; /* as the handler sees it */
	pid_t pid;	     /* whose it is */
	void (*fn)(struct fuse_req *r);
	uint64_t node, to_node, n;
	const char *name, *to_name, *bytes;
	size_t size;
	off_t off;
	struct fuse_file_info fi;
	fuse_interrupt_func_t interrupt;
	void *interrupt_data;
	bool interrupted;
	bool forced; /* no signal ends the waiting for it before it was read */
	/* Of its handler: */
	char *buffer;
	struct sim_task *task; /* NULL: it has not begun, or has returned */
	bool held;	       /* it waits for the disk */
	struct fuse_req *kept; /* what lets go of its node meanwhile */
	/* The answer: */
	bool done;
	bool early;   /* by a signal or a deadline, while its handler waits for the disk */
	bool endless; /* it has no deadline, as it is to be */
	const char *what;
	unsigned most_ms; /* until it has to be answered, once it is parked */
	bool parked;
	/* sim_awake, when it was asked for, or parked, and when a signal came; 0: none has. */
	uint64_t since, signalled;
	int err;
	struct fuse_entry_param entry;
	char *ret;
	size_t ret_len;
	struct sim_task *waiter; /* NULL: nobody waits, it is freed when it is answered */
	struct fuse_req *prev, *next;
	struct fuse_req *after; /* in the queue of the device, or of those that are kept */
	bool lets_go;		/* of its node, or of an open file of it */
	struct fuse_req *disk_prev, *disk_next;
	struct fs *fs; /* whose it is */
};

/* PID (0: not to be known) makes a request that FN hands to its handler; NAME is borrowed. */
struct fuse_req *request_new(pid_t pid, void (*fn)(struct fuse_req *r), uint64_t node,
			     const char *name);
/* Nobody waits for the answer of R, which is not ours any more. */
void request_post(struct fuse_req *r);
/* In a task: the answer's errno; R stays. */
int request_ask(struct fuse_req *r);
/* What R was answered with is not needed any more. */
void request_drop(struct fuse_req *r);
/* A signal: R is interrupted, and has to be answered soon. */
void request_signal(struct fuse_req *r);
/* Who waits for R is killed: if nobody has read it yet it is taken back. */
void request_kill(struct fuse_req *r);
/* Call FN with each request that is not answered. */
void request_each(void (*fn)(struct fuse_req *r, void *data), void *data);
