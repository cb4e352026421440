/* SPDX-License-Identifier: MIT */
/* Helpers of local jobs as processes, and the sockets and pipes between them and kxfs. */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"
#include "tests/sim/sim.h"

/* A helper. It is never freed. */
struct sim_process {
	bool dead;
	bool guarded;		/* its guard is alive and holds the lock too */
	uint64_t stopped_until; /* us; it is stopped until then */
	pid_t pid;
	unsigned life; /* the life of kxfs that started it */
	int instructions_fd, listen_fd;
};

/* P was killed or has exited: close its descriptors and notify its parent. */
void process_end(struct sim_process *p);
/* kxfs was killed: close its descriptors. Connections that were not accepted yet keep waiting. */
void sim_process_kill_kxfs(void);
/* The machine has lost power: remove all processes and sockets. */
void sim_process_power_cut(void);
/* End all faults: every helper can be reached from now on. */
void sim_process_mend(void);

/* Make a pipe; *RET_FD is the read end, owned by the running process. */
struct sim_pipe *sim_pipe_new(int *ret_fd);
/* Return false if the read end is closed. */
bool sim_pipe_write(struct sim_pipe *p, const void *bytes, size_t n);
void sim_pipe_close(struct sim_pipe *p);
/* True if the read end was closed before the end of the data. */
bool sim_pipe_is_given_up(const struct sim_pipe *p);

/* Close FD. Return false if it is not a descriptor of process.c. */
bool sim_socket_close(int fd);
