/* SPDX-License-Identifier: MIT */
/*
 * The simulator runs the unchanged code of kxfs on one thread, with a simulated loop, pool, disk,
 * server, kernel and clock (tests/sim/README.md). A history is one seed: users write files, a
 * server answers requests, faults happen, kxfs is killed and started again. Each run of kxfs is
 * called a life. Invariants are checked throughout.
 *
 *	sched.c   (this header) events in virtual time, tasks, streams of random numbers, the trace
 *	memory.c  replaces malloc
 *	loop.c    replaces loop, thread, random, diag and a part of process in backend/base
 *	disk.c    replaces backend/base/disk.c: disks in memory
 *	http.c    replaces backend/client's http.c: requests on their way, and their faults (world.h)
 *	fuse.c    replaces libfuse, fs/vfs/park.c and fs/vfs/serve.c: the FUSE device
 *	kernel.c  replaces fs/submit/writer.c: the kernel, as processes see it (kernel.h)
 *	server.c  an API server (world.h), whose jobs have controllers (volcano.c, controllers.c) and
 *	          kubelets (kubelet.c); cluster.h is their internal header
 *	process.c replaces process starts, sockets and pipes: helpers of local jobs as processes
 *	machine.c replaces backend/local/guard.c: the programs of local jobs (world.h)
 *	kxfs.c    one life of kxfs: what fs/mount/run.c starts (world.h)
 *	user.c    users who launch jobs, and the promises to them (world.h)
 *	writer.c  the ways in which users write files, also into dryrun/ (world.h)
 *	kueue.c   Kueue, which suspends and resumes jobs (world.h)
 *	kinds.c   faults that affect one kind of jobs (world.h)
 *	hostile.c other users of the server, some of them malicious (world.h)
 *	looker.c  users who list and read other files, run rm -r, and write to ctl (world.h)
 *	reader.c  readers of logs, and checks of the contents of logs (world.h)
 *	damage.c  a disk that damages files, and checks of what kxfs makes of them (world.h)
 *	archive.c checks of the archive (world.h)
 *	bounds.c  limits on requests, descriptors and memory of kxfs (world.h)
 *	waiter.c  readers of files that block and of lists, and checks of both (world.h)
 *	main.c    histories, one process each
 *
 * The streams below are the only source of random numbers, and each part of the simulation has its
 * own. No decision depends on the address of an object. So a seed always gives the same trace, byte
 * for byte.
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
	SIM_WRITER, /* the first of SIM_WRITERS streams, one for each writer of files */
	SIM_LATER =
		/*
		 * Streams from here on were added later. sim_seed seeds each of them independently,
		 * so that a new stream does not change the numbers of the others.
		 */
	SIM_WRITER + SIM_WRITERS,
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

/* --- faults --- */

/* The rates of this history's faults, in 1/1000; 0 if a fault does not occur. */
struct sim_faults {
	unsigned refused; /* connections that are refused before anything is sent */
	/* Requests whose connection breaks; the server may or may not have acted on them. */
	unsigned lost;
	/* Lost requests on which the server acts only after kxfs has seen the break. */
	unsigned late;
	unsigned silent;  /* requests that get no answer */
	unsigned proxied; /* replies that a proxy replaces by its own */
	unsigned busy;	  /* requests that the server itself answers with 429 or 503 */
	unsigned quota;	  /* creations that the server refuses because of a quota or a webhook */
	unsigned cut;	  /* chunks of a stream before which the stream breaks */
	unsigned slow;	  /* disk calls that take up to four seconds */
	/* Disk calls that fail. One in four failed writes makes all writes fail for a while. */
	unsigned disk_error;
	unsigned killed;      /* lives in which kxfs is killed after some virtual seconds */
	unsigned power_cut;   /* kills at which the whole machine loses power */
	unsigned writer_dies; /* writers that are killed while they write */
	unsigned interrupted; /* closes that a signal interrupts */
	unsigned forgotten;   /* watches and pages of lists whose resourceVersion has expired */
	unsigned evicted;     /* pods that are evicted */
	unsigned rotated;     /* requests for a log that the node has just rotated */
	unsigned copied;   /* jobs that another user removes and creates again from a saved copy */
	unsigned removed;  /* jobs that their user removes */
	unsigned paged;	   /* lists that the server sends in small pages */
	unsigned stranger; /* requests that the server answers with 401 */
	/* Requests that the server answers with 5xx although it may have acted on them. */
	unsigned troubled;
	unsigned commanded; /* occasions on which a user writes to ctl */
	unsigned rerun;	    /* pods whose container fails a few times and is restarted each time */
	/* Faults of histories on a machine: */
	unsigned helper_killed;	 /* programs whose helper or guard is killed */
	unsigned helper_stopped; /* programs whose helper is stopped for some time */
	unsigned unsent;	 /* messages that a helper fails to send */
	unsigned unreachable;	 /* connections to a helper that fail */
	/* Calls that create a socket or start a helper and fail because no descriptor is free. */
	unsigned no_descriptor;
	unsigned not_started; /* programs that can't be started */
	unsigned ended;	      /* lives in which kxfs is not killed but unmounted */
	unsigned lingers;     /* lives in which an unmount does not end running programs */
	unsigned not_mounted; /* starts of kxfs that fail after it has found its jobs */
	/* Faults of all histories: */
	/* Disk calls that hang for a while. In half of these cases all other calls hang too. */
	unsigned hangs;
	unsigned still; /* occasions on which the machine is suspended for some seconds */
	unsigned clock; /* occasions on which the wall clock steps forward or back */
	/* Later additions: sim_draw_faults draws them from SIM_LATER_FAULTS, in this order. */
	unsigned forbidden; /* occasions on which the mounting user loses a right for a while */
	/* Histories in which the server's etcd is restored from a backup. */
	unsigned restored;
	unsigned away;	   /* histories in which the server is unreachable for a while */
	unsigned roles;	   /* local jobs whose number of replicas and retry policy are random */
	unsigned queued;   /* histories that limit the number of running local jobs */
	unsigned held;	   /* files with `hold` or `begin` */
	unsigned hostile;  /* histories with other users who create malformed objects */
	unsigned webhooks; /* creations and changes that a webhook refuses or modifies */
	unsigned dry;	   /* users of dryrun/ */
	unsigned after;	   /* files with `after` */
	unsigned several;  /* histories of a cluster with jobs of several kinds */
	unsigned kueue;	   /* histories of a cluster that has Kueue */
	unsigned passed; /* writers that write a file and send its descriptor to another process */
	unsigned archived; /* histories with an archive */
	/* Lives before which a file is damaged; sim_draw_faults raises KILLED to this rate. */
	unsigned damaged;
};
extern struct sim_faults sim_faults;
/* True if the jobs of this history run on a machine (machine.c), false for a cluster (server.c). */
extern bool sim_machine;
/* Draw the faults of this seed that are in SET: bit K is the K-th member of struct sim_faults. */
void sim_draw_faults(uint64_t set);

/* The part of a history to run: bits of faults, bits of writers, and the seconds with faults. */
struct sim_shape {
	uint64_t faults, writers, seconds;
};

/* --- random numbers --- */

/*
 * C does not define the order of two draws in one expression, and two compilers would get different
 * histories from one seed. So write each draw as a statement of its own.
 */

void sim_seed(uint64_t seed);
uint64_t sim_random(enum sim_stream stream);
/* Return a random number below N. N is not 0. */
unsigned sim_below(enum sim_stream stream, unsigned n);
bool sim_chance(enum sim_stream stream, unsigned per_mille);
/* Return a random time of up to US microseconds, usually much shorter. */
uint64_t sim_delay(enum sim_stream stream, uint64_t us);

/* --- time and events --- */

uint64_t sim_now(void); /* us since the history began */
/*
 * The owner of an event or a task: kxfs, the machine, or the rest of the world. When kxfs is
 * killed, the scheduler drops the events and tasks of kxfs. While the machine is suspended, the
 * scheduler delays those of kxfs and of the machine. After a power cut, functions of the machine
 * are still called. They must check whether they have anything left to do.
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
 * Suspend the machine for US microseconds. During that time only events of SIM_WORLD happen. All
 * other events that fall due happen afterwards.
 */
void sim_stand_still(uint64_t us);
/* Return the time since the history began, in us, without the times of suspension. */
uint64_t sim_awake(void);
/* Run events until the time UNTIL, or until *OVER is true. */
void sim_run(uint64_t until, const bool *over);

/* --- tasks: code that can wait, each with a stack of its own --- */

struct sim_task;
void sim_task_start(enum sim_whose whose, sim_fn fn, void *data);
struct sim_task *sim_task_here(void); /* NULL if no task is running */
/* Call sim_sleep and sim_task_wait only in a task. */
void sim_sleep(uint64_t us);
void sim_task_wait(void);
/*
 * Make the current task part of process P. The task does not run while P is stopped, nor after P
 * has died.
 */
struct sim_process;
void sim_task_join(struct sim_process *p);
/* Return the process of the current task, or NULL. */
struct sim_process *sim_process_here(void);
/*
 * Resume the task T, which waits or is about to wait. Do nothing if T belongs to an earlier life of
 * kxfs.
 */
void sim_task_wake(struct sim_task *t);

/* --- memory --- */

/* Charge allocations to kxfs from now on, or stop doing so. Return the previous setting. */
bool sim_charge(bool yes);
static inline void sim_charge_again(const bool *was)
{
	sim_charge(*was);
}
/*
 * Put this into a function that kxfs calls and that never waits. Then its allocations are not
 * charged to kxfs.
 */
#define sim_of_world() const bool was_charged_ cleanup(sim_charge_again) = sim_charge(false)
/* Return the number of bytes that the current life of kxfs has allocated. */
size_t sim_memory_held(void);
/* Forget the allocations of the current life, which has ended. */
void sim_memory_forget(void);

/* --- trace and failures --- */

extern bool sim_trace; /* write the trace to standard output */
void sim_log(const char *who, const char *fmt, ...) printf_like(2, 3);
/* Report a broken invariant: print the message, set *sim_failure to FMT, and end the history. */
extern const char **sim_failure;
_Noreturn void sim_fail(const char *fmt, ...) printf_like(1, 2);
uint64_t sim_trace_hash(void);

/* --- loop.c: the I/O thread of kxfs --- */

/*
 * Return the time, in us, at which the loop next has something to run, or UINT64_MAX if it has
 * nothing to run.
 */
uint64_t sim_loop_due(void);
/* Run one callback of the loop: the first post or the first timer that is due. */
void sim_loop_turn(void);
/* Call FN(DATA) as if on the I/O thread of kxfs. */
void sim_loop_call(void (*fn)(void *data), void *data);
/* Drop the loop and all its work, because this life of kxfs has ended. */
void sim_loop_kill(void);
/* Return the wall clock of everything except kxfs, in ns since 1970. */
int64_t sim_clock_ns(void);
/* Step the wall clock of kxfs forward or back. */
void sim_loop_step_clock(int64_t ns);

/* --- process.c: helpers of local jobs, and the sockets and pipes between them and kxfs --- */

/* A helper. It is never freed. */
struct sim_process {
	bool dead;
	bool guarded;		/* its guard is alive, and keeps the helper's lock */
	uint64_t stopped_until; /* us; it is stopped until then */
	pid_t pid;
	unsigned life; /* the life of kxfs that started it */
	int instructions_fd, listen_fd;
};

/* End P, which was killed or has exited: close its descriptors and notify its parent. */
void process_end(struct sim_process *p);
/* After a kill of kxfs, close its sockets and pipes. Connections not yet accepted keep waiting. */
void sim_process_kill_kxfs(void);
/* Simulate a power cut: remove all processes and sockets. */
void sim_process_power_cut(void);
/* End all faults: every helper can be reached from now on. */
void sim_process_mend(void);

/* Make a pipe; *RET_FD is the read end, owned by the running process. */
struct sim_pipe *sim_pipe_new(int *ret_fd);
/* Return false if the read end is closed. */
bool sim_pipe_write(struct sim_pipe *p, const void *bytes, size_t n);
void sim_pipe_close(struct sim_pipe *p);
/* True if the reader closed its end before it had read everything. */
bool sim_pipe_is_given_up(const struct sim_pipe *p);

/* Close FD. Return false if it is not a descriptor of process.c. */
bool sim_socket_close(int fd);

/* --- disk.c: the disks of the state directory and the archive --- */

/* The archive is on a second disk, which has its own faults. */
#define SIM_ARCHIVE_DIR "/archive"

/* Mount two empty disks on /state and SIM_ARCHIVE_DIR. */
void sim_disk_make(void);
/* After a kill of kxfs, close its descriptors. The effects of its disk calls remain. */
void sim_disk_kill(void);
/*
 * Simulate a power cut. Each file keeps its synced contents, and each block that was written later
 * is kept or lost at random. Each directory keeps the names that it had at its last sync, and a
 * random number of the later changes, the oldest first.
 */
void sim_disk_power_cut(void);
/*
 * Bind SOCKET to NAME in the directory AT. Return 0 or a negative errno; disk faults do not affect
 * this call.
 */
int sim_disk_bind(int at, const char *name, void *socket);
/*
 * Look up NAME in the directory AT. Store its socket in *RET, or NULL if NAME is another type of
 * file. Return 0 or a negative errno.
 */
int sim_disk_find_socket(int at, const char *name, void **ret);
/* Duplicate FD for P; return the new descriptor. */
int sim_disk_give(int fd, struct sim_process *p);
/* Return the number of descriptors that kxfs has open. */
size_t sim_disk_n_open(void);
/* Close all descriptors of P, or kxfs's if P is NULL. */
void sim_disk_close_of(const struct sim_process *p);
/*
 * Damage the file PATH. sim_disk_flip inverts BITS in each of the N bytes from AT on. sim_disk_cut
 * shortens the file to SIZE bytes.
 */
void sim_disk_flip(const char *path, size_t at, size_t n, unsigned bits);
void sim_disk_cut(const char *path, size_t size);
/* End all faults: calls neither fail nor hang from now on. */
void sim_disk_mend(void);
/* Return the last life of kxfs in which a disk call has hung, or 0. */
unsigned sim_disk_hung_life(void);
/* Return the current bytes of the file PATH, or NULL if there is no such file. */
const unsigned char *sim_disk_look(const char *path, size_t *ret_n);
/* Return the I-th name in the directory PATH, or NULL. */
const char *sim_disk_name(const char *path, size_t i);
/* Return all files below PATH with their bytes as a text, malloc'ed; NULL if PATH is missing. */
char *sim_disk_text(const char *path);
