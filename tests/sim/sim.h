/* SPDX-License-Identifier: MIT */
/*
 * The simulator: kxfs as it is, on one thread, with another loop, pool, disk, server, kernel and clock linked in place
 * of the real ones (tests/sim/README.md). A history is one seed: users write files, a server acts on what
 * it is asked, things fail, kxfs is killed and started again; what must hold is checked meanwhile.
 *
 *	sched.c   (here) events in virtual time, tasks that wait, streams of random numbers, the trace
 *	memory.c  in place of malloc
 *	loop.c    in place of backend/base's loop, pool, random, diag and process, and of backend/impl's end
 *	disk.c    in place of backend/base/disk.c: a disk in memory (disk.h)
 *	http.c    in place of backend/client's http.c: requests on their way, and what becomes of them (world.h)
 *	fuse.c    in place of libfuse, fs/vfs/park.c, fs/vfs/serve.c and fs/submit/writer.c: the kernel (kernel.h)
 *	server.c  an API server (world.h), whose jobs have controllers (volcano.c, mcad.c, controllers.c) and
 *	          kubelets (kubelet.c); cluster.h is what these share
 *	process.c in place of backend/base/spawn.c, sockets and pipes: helpers of local jobs as processes (process.h)
 *	machine.c in place of backend/local/guard.c: the programs of local jobs (world.h)
 *	kxfs.c    one life of kxfs, which puts together what fs/mount/run.c does (world.h)
 *	user.c    people, and what was promised to them (world.h)
 *	writer.c  how they write (world.h)
 *	kueue.c   Kueue, which suspends and resumes jobs (world.h)
 *	kinds.c   trouble of one of several kinds (world.h)
 *	hostile.c other users of the server, some of whom mean harm (world.h)
 *	dry.c     those who write into dryrun/ (world.h)
 *	looker.c  those who look at all else, and rm -r (world.h)
 *	reader.c  those who read logs, and what these may show (world.h)
 *	gaps.c    what is told where output is missing (world.h)
 *	archive.c what is in the archive (world.h)
 *	waiter.c  those who read what blocks, and lists, and what these may say (world.h)
 *	ctl.c     those who write to ctl
 *	main.c    histories, one process each
 *
 * All that is random comes from here, each part of the world has a stream of its own, and nothing depends on an
 * address: the same seed gives the same trace, to the byte.
 */
#pragma once

#include <limits.h>

#include "spec/base/base.h"

typedef void (*sim_fn)(void *data);

#define SIM_WRITERS 40

enum sim_stream {
	SIM_ORDER,
	SIM_DISK,
	SIM_NET,
	SIM_SERVER,
	SIM_USERS,
	SIM_KXFS,
	SIM_FAULTS,
	SIM_READERS,
	SIM_WAITERS,
	SIM_CTL,
	SIM_MACHINE,
	SIM_WRITER, /* the first of those who write files, each of whom has one */
	SIM_LATER =
		SIM_WRITER + SIM_WRITERS, /* what was added since, which moves no other's draws */
	SIM_KIND = SIM_LATER,
	SIM_RIGHTS,
	SIM_LATER_FAULTS,
	SIM_HABITS, /* how these write */
	SIM_SIGNALS,
	SIM_LOOKERS,
	SIM_ETCD,
	SIM_AWAY,
	SIM_ROLES,
	SIM_HELD,
	SIM_HOSTILE,
	SIM_WEBHOOKS,
	SIM_DRY,
	SIM_AFTER,
	SIM_KINDS,
	SIM_KUEUE,
	SIM_PASSED,
	SIM_FORGED,
	SIM_CHAINS,
	SIM_N
};

#define SIM_MS 1000ull /* in us */
#define SIM_S  1000000ull

/* --- what differs from history to history: rates in 1/1000, 0: this fault does not occur --- */

struct sim_faults {
	unsigned refused; /* connections: nothing is sent */
	unsigned lost;	  /* requests that break, whether the server acts on them or not */
	unsigned late;	  /* of these: it acts after kxfs has heard of the break */
	unsigned silent;  /* requests that nobody answers */
	unsigned proxied; /* replies in whose place a proxy answers */
	unsigned busy;	  /* 429 and 503 of the server's own */
	unsigned quota;	  /* creations that are refused, for a quota or by a webhook */
	unsigned cut;	  /* streams, at each piece */
	unsigned slow;	  /* calls of the disk that take up to some seconds */
	/* Calls of the disk that fail, and begin a time in which the disk takes no write. */
	unsigned disk_error;
	unsigned killed;      /* lives of kxfs, each some virtual seconds */
	unsigned power_cut;   /* of these: the machine goes down */
	unsigned writer_dies; /* writers */
	unsigned interrupted; /* closes */
	unsigned forgotten;   /* watches whose version the server has forgotten */
	unsigned evicted;     /* pods */
	unsigned rotated;     /* logs that are asked for */
	unsigned copied;    /* jobs that somebody else removes, and makes anew of what was saved */
	unsigned removed;   /* jobs that who has launched them removes */
	unsigned paged;	    /* lists that come in small pages */
	unsigned stranger;  /* requests whose credentials the server does not know */
	unsigned troubled;  /* of the server itself, which may act and says then that it failed */
	unsigned commanded; /* times at which somebody may write to ctl */
	unsigned rerun;	    /* pods whose container fails and runs again, some times */
	/* Of a history of a machine: */
	unsigned helper_killed;	 /* helpers and guards, while their programs run */
	unsigned helper_stopped; /* helpers, for some time */
	unsigned unsent;	 /* what helpers say */
	unsigned unreachable;	 /* connections to a helper */
	unsigned no_descriptor;	 /* sockets, and starts of helpers */
	unsigned not_started;	 /* programs */
	unsigned ended;		 /* of the lives of kxfs that are not killed: it is unmounted */
	unsigned lingers;	 /* of these: what runs goes on */
	unsigned not_mounted;	 /* starts that fail when the jobs have been found */
	/* Of any: */
	unsigned hangs; /* calls of the disk, which hang for a while, alone or with all others */
	unsigned still; /* times at which the machine may stand still for some seconds */
	unsigned clock; /* the same of its wall clock, which goes forward or back */
	/* Of a cluster, drawn from SIM_LATER_FAULTS in their order: */
	unsigned forbidden; /* times at which a right may be taken from who mounts, for a while */
	/* Histories in which the server's etcd is set back to what was saved of it. */
	unsigned restored;
	unsigned away;	   /* histories in which the server can't be reached for a while */
	unsigned roles;	   /* local jobs of several replicas, or with another policy */
	unsigned queued;   /* histories in which only some local jobs run at once */
	unsigned held;	   /* files whose job is to begin later */
	unsigned hostile;  /* histories in which other users make what nobody expects */
	unsigned webhooks; /* of what somebody asks a server to make, or to change */
	unsigned dry;	   /* who write into dryrun/ */
	unsigned after;	   /* files whose job is to begin when others are over */
	unsigned several;  /* histories of a cluster with jobs of several kinds */
	unsigned kueue;	   /* histories of a cluster that has Kueue */
	unsigned passed;   /* who write a file and send its descriptor to somebody */
	unsigned archived; /* histories with an archive */
};
extern struct sim_faults sim_faults;
/* The jobs of this history run on a machine (machine.c), not in a cluster (server.c). */
extern bool sim_machine;
/* Those of this seed that are in SET: bit K stands for the K-th of them above. */
void sim_draw_faults(uint64_t set);

/* What of a seed's history is played: bits of faults, of those who write, and for how long things fail. */
struct sim_shape {
	uint64_t faults, writers, seconds;
};

/* --- random numbers --- */

/* Of two draws in one expression C leaves the order open, and two compilers' histories of a seed differ. */

void sim_seed(uint64_t seed);
uint64_t sim_random(enum sim_stream stream);
/* Below N, which is not 0. */
unsigned sim_below(enum sim_stream stream, unsigned n);
bool sim_chance(enum sim_stream stream, unsigned per_mille);
/* Some time up to US; mostly much less. */
uint64_t sim_delay(enum sim_stream stream, uint64_t us);

/* --- time and events --- */

uint64_t sim_now(void); /* us since the history began */
/*
 * Is FN called by kxfs, so that it is not when that has been killed meanwhile, or by another process of its machine?
 * Both stand still with that.
 */
enum sim_whose { SIM_WORLD, SIM_OF_KXFS, SIM_OF_MACHINE };
void sim_after(uint64_t us, enum sim_whose whose, sim_fn fn, void *data);
/* Which life of kxfs this is. All that is SIM_OF_KXFS and of an earlier one does not happen any more. */
unsigned sim_life(void);
void sim_next_life(void);
/* For so long nothing happens that is not SIM_WORLD; then all of it that was due meanwhile. */
void sim_stand_still(uint64_t us);
/* us for which that was not so since the history began. */
uint64_t sim_awake(void);
/* Run what happens until UNTIL, or until *OVER. */
void sim_run(uint64_t until, const bool *over);

/* --- tasks: what waits, each with a stack of its own --- */

struct sim_task;
void sim_task_start(enum sim_whose whose, sim_fn fn, void *data);
struct sim_task *sim_task_here(void); /* NULL: none runs */
/* In a task. */
void sim_sleep(uint64_t us);
void sim_task_wait(void);
/* The task is P's from now on (process.h): it does not go on when that is dead, or stopped. */
struct sim_process;
void sim_task_join(struct sim_process *p);
/* Whose task runs; NULL: none of a process. */
struct sim_process *sim_process_here(void);
/* T, which waits or is about to, goes on. Of a life that is over: nothing. */
void sim_task_wake(struct sim_task *t);

/* --- memory --- */

/* From now on what is allocated is kxfs's; or not, if not YES. What it was before. */
bool sim_charge(bool yes);
static inline void sim_charge_again(const bool *was)
{
	sim_charge(*was);
}
/* In a function that kxfs calls: what is allocated here is the world's. It does not wait meanwhile. */
#define sim_of_world() const bool was_charged_ cleanup(sim_charge_again) = sim_charge(false)
/* Bytes that the present life of kxfs holds. */
size_t sim_memory_held(void);
/* That life is over. */
void sim_memory_forget(void);

/* --- words --- */

extern bool sim_trace; /* the trace is written to standard output */
void sim_say(const char *who, const char *fmt, ...) printf_like(2, 3);
/* What must hold does not: say so and end the history, with FMT in *sim_failure. */
extern const char **sim_failure;
_Noreturn void sim_fail(const char *fmt, ...) printf_like(1, 2);
uint64_t sim_trace_hash(void);
