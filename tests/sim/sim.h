/* SPDX-License-Identifier: MIT */
/*
 * The simulator: the unchanged code of kxfs on one thread, linked with a simulated loop, pool, disk, server, kernel and
 * clock (tests/sim/README.md). A history is one seed: users write files, a server answers requests, faults happen, kxfs
 * is killed and started again. Invariants are checked throughout.
 *
 *	sched.c   (this header) events in virtual time, tasks, streams of random numbers, the trace
 *	memory.c  replaces malloc
 *	loop.c    replaces backend/base's loop, pool, random, diag and process, and backend/impl's end
 *	disk.c    replaces backend/base/disk.c: a disk in memory
 *	http.c    replaces backend/client's http.c: requests on their way, and their faults (world.h)
 *	fuse.c    replaces libfuse, fs/vfs/park.c, fs/vfs/serve.c and fs/submit/writer.c: the kernel (kernel.h)
 *	server.c  an API server (world.h), whose jobs have controllers (volcano.c, controllers.c) and
 *	          kubelets (kubelet.c); cluster.h is their internal header
 *	process.c replaces backend/base/process.c, sockets and pipes: helpers of local jobs as processes
 *	machine.c replaces backend/local/guard.c: the programs of local jobs (world.h)
 *	kxfs.c    one life of kxfs: what fs/mount/run.c starts (world.h)
 *	user.c    users who launch jobs, and the promises to them (world.h)
 *	writer.c  the ways in which users write files, also into dryrun/ (world.h)
 *	kueue.c   Kueue, which suspends and resumes jobs (world.h)
 *	kinds.c   faults of one of several kinds (world.h)
 *	hostile.c other users of the server, some of them malicious (world.h)
 *	looker.c  users who list and read everything else, rm -r, and write to ctl (world.h)
 *	reader.c  readers of logs, and checks of the contents of logs (world.h)
 *	damage.c  a disk that damages files, and checks of what kxfs makes of them (world.h)
 *	archive.c checks of the archive (world.h)
 *	waiter.c  readers of files that block and of lists, and checks of both (world.h)
 *	main.c    histories, one process each
 *
 * All random numbers come from here. Each part of the world has a stream of its own, and nothing depends on an address:
 * the same seed gives the same trace, byte for byte.
 */
#pragma once

#include <limits.h>
#include <sys/types.h>

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
	SIM_WRITER, /* the first writer of files; each has one */
	SIM_LATER =
		SIM_WRITER + SIM_WRITERS, /* what was added since, which moves no other's draws */
	SIM_KIND = SIM_LATER,
	SIM_RIGHTS,
	SIM_LATER_FAULTS,
	SIM_HABITS, /* how the writers write */
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
	SIM_DAMAGE,
	SIM_N
};

#define SIM_MS 1000ull /* in us */
#define SIM_S  1000000ull

/* --- what differs between histories: rates in 1/1000; 0: this fault does not occur --- */

struct sim_faults {
	unsigned refused; /* connections that are refused before anything is sent */
	unsigned
		lost; /* requests whose connection breaks, whether the server acts on them or not */
	unsigned late;	  /* of these: the server acts after kxfs has seen the break */
	unsigned silent;  /* requests that get no answer */
	unsigned proxied; /* replies that a proxy replaces */
	unsigned busy;	  /* replies 429 and 503 of the server itself */
	unsigned quota;	  /* creations that are refused, for a quota or by a webhook */
	unsigned cut;	  /* streams that break, per chunk */
	unsigned slow;	  /* disk calls that take up to some seconds */
	/* Disk calls that fail, after which the disk refuses all writes for a while. */
	unsigned disk_error;
	unsigned killed;      /* lives of kxfs that are killed, after some virtual seconds */
	unsigned power_cut;   /* of these: the machine loses power */
	unsigned writer_dies; /* writers that die */
	unsigned interrupted; /* closes that a signal interrupts */
	unsigned forgotten;   /* watches whose resourceVersion has expired */
	unsigned evicted;     /* pods that are evicted */
	unsigned rotated;     /* requests for a log that find it rotated */
	unsigned copied;   /* jobs that another user removes and creates again from a saved copy */
	unsigned removed;  /* jobs that their user removes */
	unsigned paged;	   /* lists that are served in small pages */
	unsigned stranger; /* requests that are answered 401 */
	unsigned
		troubled; /* requests that are answered 5xx, though the server may have acted on them */
	unsigned commanded; /* times at which a user may write to ctl */
	unsigned rerun;	    /* pods whose container fails and is restarted, a few times */
	/* Of a history of a machine: */
	unsigned helper_killed;	 /* helpers and guards, while their programs run */
	unsigned helper_stopped; /* helpers, for some time */
	unsigned unsent;	 /* messages of helpers that are not sent */
	unsigned unreachable;	 /* connections to a helper that fail */
	unsigned
		no_descriptor; /* sockets, and starts of helpers, that fail for lack of descriptors */
	unsigned not_started; /* programs that can't be started */
	unsigned ended;	      /* lives of kxfs that are not killed: it is unmounted */
	unsigned lingers;     /* of these: running programs continue */
	unsigned not_mounted; /* starts that fail after the jobs were found */
	/* Of all histories: */
	unsigned hangs; /* disk calls that hang for a while, only this call or all calls */
	unsigned still; /* times at which the machine may be suspended for some seconds */
	unsigned clock; /* times at which the wall clock may step forward or back */
	/* Of a cluster, drawn from SIM_LATER_FAULTS in their order: */
	unsigned forbidden; /* times at which the mounting user may lose a right for a while */
	/* Histories in which the server's etcd is restored from a backup. */
	unsigned restored;
	unsigned away;	   /* histories in which the server is unreachable for a while */
	unsigned roles;	   /* local jobs of several replicas, or with another policy */
	unsigned queued;   /* histories with a limit of running local jobs */
	unsigned held;	   /* files with `hold` or `begin` */
	unsigned hostile;  /* histories with other users who create malformed objects */
	unsigned webhooks; /* creations and changes that a webhook refuses */
	unsigned dry;	   /* users of dryrun/ */
	unsigned after;	   /* files with `after` */
	unsigned several;  /* histories of a cluster with jobs of several kinds */
	unsigned kueue;	   /* histories of a cluster that has Kueue */
	unsigned passed; /* writers that write a file and send its descriptor to another process */
	unsigned archived; /* histories with an archive */
	unsigned damaged;  /* lives before which a file is damaged; so many are killed, too */
};
extern struct sim_faults sim_faults;
/* The jobs of this history run on a machine (machine.c), not in a cluster (server.c). */
extern bool sim_machine;
/*
 * Draw the faults of this seed, but only those in SET: bit K is the K-th member of struct
 * sim_faults.
 */
void sim_draw_faults(uint64_t set);

/* The part of a history to run: bits of faults, bits of writers, and the duration of the faults. */
struct sim_shape {
	uint64_t faults, writers, seconds;
};

/* --- random numbers --- */

/*
 * C does not order two draws in one expression, so each needs a statement of its own: otherwise two
 * compilers get different histories from one seed.
 */

void sim_seed(uint64_t seed);
uint64_t sim_random(enum sim_stream stream);
/* Return a number below N, which is not 0. */
unsigned sim_below(enum sim_stream stream, unsigned n);
bool sim_chance(enum sim_stream stream, unsigned per_mille);
/* Return a time of up to US, mostly much shorter. */
uint64_t sim_delay(enum sim_stream stream, uint64_t us);

/* --- time and events --- */

uint64_t sim_now(void); /* us since the history began */
/*
 * The owner of an event or a task. One of kxfs is dropped when kxfs is killed, and one of the
 * machine when the machine loses power. Both are delayed while the machine is suspended.
 */
enum sim_whose { SIM_WORLD, SIM_OF_KXFS, SIM_OF_MACHINE };
void sim_after(uint64_t us, enum sim_whose whose, sim_fn fn, void *data);
/*
 * Return the number of the current life of kxfs. Events and tasks of SIM_OF_KXFS from earlier lives
 * never run.
 */
unsigned sim_life(void);
void sim_next_life(void);
/*
 * Suspend the machine for US: only events of SIM_WORLD happen. All others that were due happen
 * afterwards.
 */
void sim_stand_still(uint64_t us);
/* Return the time since the history began, in us, without the times of suspension. */
uint64_t sim_awake(void);
/* Run events until UNTIL, or until *OVER is true. */
void sim_run(uint64_t until, const bool *over);

/* --- tasks: code that can wait, each with a stack of its own --- */

struct sim_task;
void sim_task_start(enum sim_whose whose, sim_fn fn, void *data);
struct sim_task *sim_task_here(void); /* NULL if no task is running */
/* In a task only. */
void sim_sleep(uint64_t us);
void sim_task_wait(void);
/*
 * Make the current task one of process P: it does not run while P is dead or stopped.
 */
struct sim_process;
void sim_task_join(struct sim_process *p);
/* Return the process of the current task, or NULL. */
struct sim_process *sim_process_here(void);
/* Resume T, which waits or is about to. No-op if T is of an earlier life of kxfs. */
void sim_task_wake(struct sim_task *t);

/* --- memory --- */

/* Charge allocations to kxfs from now on, or stop doing so. Return the previous setting. */
bool sim_charge(bool yes);
static inline void sim_charge_again(const bool *was)
{
	sim_charge(*was);
}
/* In a function that kxfs calls and that does not wait: don't charge its allocations to kxfs. */
#define sim_of_world() const bool was_charged_ cleanup(sim_charge_again) = sim_charge(false)
/* Return the number of bytes that the current life of kxfs has allocated. */
size_t sim_memory_held(void);
/* That life has ended: forget its allocations. */
void sim_memory_forget(void);

/* --- trace and failures --- */

extern bool sim_trace; /* the trace is written to standard output */
void sim_log(const char *who, const char *fmt, ...) printf_like(2, 3);
/* An invariant is broken: print FMT, store it in *sim_failure, and end the history. */
extern const char **sim_failure;
_Noreturn void sim_fail(const char *fmt, ...) printf_like(1, 2);
uint64_t sim_trace_hash(void);

/* --- loop.c: the I/O thread of kxfs, which has its own order --- */

/* Return the time, in us, at which the loop is next due, or UINT64_MAX. */
uint64_t sim_loop_due(void);
/* Run the first post or timer that is due. */
void sim_loop_turn(void);
/* Call FN(DATA) as the I/O thread: for callbacks of http.c. */
void sim_loop_call(void (*fn)(void *data), void *data);
/* This life of kxfs has ended: drop the loop and all its work. */
void sim_loop_kill(void);
/* Return the wall clock of everything except kxfs, in ns since 1970. */
int64_t sim_clock_ns(void);
/* Step the wall clock of kxfs forward or back. */
void sim_loop_step_clock(int64_t ns);

/* --- process.c: helpers of local jobs, and the sockets and pipes between them and kxfs --- */

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

/* --- disk.c: the disk on which the state directory is; kxfs calls backend/base/disk.h --- */

/* The archive is on a second disk, which has its own faults. */
#define SIM_ARCHIVE_DIR "/archive"

/* Mount two empty disks on /state and SIM_ARCHIVE_DIR. */
void sim_disk_make(void);
/* kxfs was killed: close its descriptors. Calls that it has made remain in effect. */
void sim_disk_kill(void);
/*
 * The machine has lost power. Of each file the synced contents remain; of later writes each block
 * is kept or lost at random. Of each directory the names at its last sync remain; of later changes
 * a random number is kept, the oldest first.
 */
void sim_disk_power_cut(void);
/*
 * Bind SOCKET to NAME in the directory AT. Return 0 or a negative errno; disk faults do not affect
 * this call.
 */
int sim_disk_bind(int at, const char *name, void *socket);
/* *RET is NULL if NAME is not a socket. */
int sim_disk_find_socket(int at, const char *name, void **ret);
/* Duplicate FD for P; return the new descriptor. */
int sim_disk_give(int fd, struct sim_process *p);
/* Return the number of descriptors that kxfs has open. */
size_t sim_disk_n_open(void);
/* Close all descriptors of P, or kxfs's if P is NULL. */
void sim_disk_close_of(const struct sim_process *p);
/* Damage the file PATH: change BITS of the N bytes from AT on; or cut the file. */
void sim_disk_flip(const char *path, size_t at, size_t n, unsigned bits);
void sim_disk_cut(const char *path, size_t size);
/* End all faults: calls neither fail nor hang from now on. */
void sim_disk_mend(void);
/* Return the current bytes of the file PATH, or NULL if there is no such file. */
const unsigned char *sim_disk_look(const char *path, size_t *ret_n);
/* Return the I-th name in the directory PATH, or NULL. */
const char *sim_disk_name(const char *path, size_t i);
/*
 * Return all files below PATH with their bytes as a text, malloc'ed, or NULL if PATH does not
 * exist.
 */
char *sim_disk_text(const char *path);
