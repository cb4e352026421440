/* SPDX-License-Identifier: MIT */
/* Helpers of local jobs as processes, and what is between them and kxfs: sockets and pipes. */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"
#include "tests/sim/sim.h"

/* A helper. Its memory stays. */
struct sim_process {
	bool dead;
	bool guarded;		/* its guard lives, and holds the lock too */
	uint64_t stopped_until; /* us: it does not go on before */
	pid_t pid;
	unsigned life; /* of kxfs, whose child it is */
	int instructions_fd, listen_fd;
};

/* P has been killed, or has ended: its descriptors are closed, and its parent hears of it. */
void process_end(struct sim_process *p);
/* kxfs has been killed: its descriptors are closed. What waits for an accept waits on. */
void sim_process_kill_kxfs(void);
/* The machine has gone down: none of the processes is left, and no socket. */
void sim_process_power_cut(void);
/* From now on each helper can be reached. */
void sim_process_mend(void);

/* A pipe: the end that is read, of the process that runs, in *RET_FD. */
struct sim_pipe *sim_pipe_new(int *ret_fd);
/* False: nobody reads it any more. */
bool sim_pipe_write(struct sim_pipe *p, const void *bytes, size_t n);
void sim_pipe_close(struct sim_pipe *p);
/* Has its reader gone before its end? */
bool sim_pipe_is_given_up(const struct sim_pipe *p);

/* The close(2) of a descriptor. False: it is none of these. */
bool sim_socket_close(int fd);
