/* SPDX-License-Identifier: MIT */
/*
 * Run histories, one process each, so that none affects another. A history is five virtual minutes
 * with faults, ten without, and then the final checks. A failing history can be reduced to fewer
 * kinds of faults, fewer writers and less time, as long as it still fails in the same way.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/sim/sim.h"
#include "tests/sim/world.h"

/* Writes the coverage in the build of `tests/run coverage`. NULL in all other builds. */
int __llvm_profile_write_file(void) __attribute__((weak));

#define FAULTS_S 300
/*
 * After the last fault, kxfs may need 20 s until it is mounted. From then on it needs up to ten
 * minutes to find out the result of an earlier launch.
 */
#define CALM_S	  630
#define JUDGING_S 120
#define MOST_JOBS 16
#define KEPT_MAX  1000

/* The result of a history. */
struct end {
	uint64_t hash;	     /* of its trace */
	const char *failure; /* the format string of sim_fail, or NULL */
	int status;	     /* the wait status of its process */
};

/* A running history. */
struct running {
	pid_t pid; /* 0: none is running in this slot */
	uint64_t seed;
};

/* The result of the history in each slot of RUNNING, in memory that is shared with its process. */
static struct end *ends;
static struct running running[MOST_JOBS];
static bool quiet; /* don't print what histories report */

static _Noreturn void play(uint64_t seed, const struct sim_shape *shape, struct end *ret)
{
	static const bool never;
	uint64_t until = min_of(shape->seconds, (uint64_t)FAULTS_S) * SIM_S;

	sim_failure = &ret->failure;
	sim_seed(seed);
	sim_log("seed", "%llu", (unsigned long long)seed);
	sim_draw_faults(shape->faults);
	sim_disk_make();
	server_begin();
	sim_http_begin();
	sim_kxfs_begin();
	users_begin(shape->writers);
	readers_begin();
	archive_begin_looking();
	lookers_begin();
	waiters_begin();
	ctl_begin();
	hostile_begin();
	kinds_begin();
	dry_begin();
	sim_run(until, &never);
	sim_log("faults", "none from here on");
	sim_disk_mend();
	sim_http_mend();
	server_mend();
	sim_kxfs_mend();
	machine_mend();
	until += CALM_S * SIM_S;
	sim_run(until, &never);
	users_judge();
	sim_run(until + JUDGING_S * SIM_S, &never);
	if (!users_are_judged())
		sim_fail("the final checks do not end: some request waits for ever");
	ret->hash = sim_trace_hash();
	fflush(stdout);
	if (__llvm_profile_write_file)
		__llvm_profile_write_file();
	_exit(0);
}

/* Start a history in the free slot I. */
static void start(size_t i, uint64_t seed, const struct sim_shape *shape)
{
	pid_t pid;

	ends[i] = (struct end){0};
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		int null = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

		if (null >= 0)
			dup2(null, STDERR_FILENO);
		play(seed, shape, &ends[i]);
	}
	running[i] = (struct running){pid, seed};
}

/* Wait for a running history; return its slot. */
static size_t finish(void)
{
	int status;
	pid_t pid = waitpid(-1, &status, 0);
	size_t i = 0;

	while (i < MOST_JOBS && running[i].pid != pid)
		i++;
	if (pid < 0 || i == MOST_JOBS)
		abort();
	running[i].pid = 0;
	ends[i].status = status;
	return i;
}

static bool has_failed(const struct end *end)
{
	return !WIFEXITED(end->status) || WEXITSTATUS(end->status) != 0;
}

static struct end run(uint64_t seed, const struct sim_shape *shape)
{
	start(0, seed, shape);
	return ends[finish()];
}

/* --- reduce a failing history --- */

static bool fails_so(uint64_t seed, const struct sim_shape *shape, const struct end *as)
{
	struct end end = run(seed, shape);

	return has_failed(&end) && end.failure == as->failure && end.status == as->status;
}

/* Remove bits from *SET one after the other while the history still fails in the same way. */
static void leave_out(uint64_t seed, struct sim_shape *shape, uint64_t *set, const struct end *as)
{
	for (unsigned i = 0; i < 64; i++) {
		uint64_t before = *set;

		*set &= ~(UINT64_C(1) << i);
		if (*set != before && !fails_so(seed, shape, as))
			*set = before;
	}
}

static void shrink(uint64_t seed, struct sim_shape shape)
{
	struct end end = run(seed, &shape);
	uint64_t step = shape.seconds / 2;

	quiet = true;
	leave_out(seed, &shape, &shape.writers, &end);
	leave_out(seed, &shape, &shape.faults, &end);
	for (; step > 0; step /= 2) {
		struct sim_shape shorter = shape;

		shorter.seconds = shape.seconds - min_of(step, shape.seconds - 1);
		if (fails_so(seed, &shorter, &end))
			shape = shorter;
	}
	leave_out(seed, &shape, &shape.writers, &end);
	printf("tests/sim/run --from %llu --seeds 1 --trace --shape %llx.%llx.%llu\n",
	       (unsigned long long)seed, (unsigned long long)shape.faults,
	       (unsigned long long)shape.writers, (unsigned long long)shape.seconds);
	sim_trace = true;
	run(seed, &shape);
	quiet = sim_trace = false;
}

/* --- many histories --- */

static struct {
	unsigned long long n, from, jobs; /* N: 0 if not given */
	double minutes;
	bool twice, first, shrink;
	const char *keep; /* the file to which seeds that fail are added, or NULL */
	struct sim_shape shape;
} asked = {.from = 1, .jobs = 1, .shape = {UINT64_MAX, UINT64_MAX, FAULTS_S}};

static uint64_t kept[KEPT_MAX]; /* the seeds that read_seeds has read */
static size_t n_kept;

/* Read the seeds in the lines of the file PATH. Return false if it can't be read. */
static bool read_seeds(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[1024], *end;

	while (f && fgets(line, sizeof(line), f) && n_kept < KEPT_MAX) {
		uint64_t seed = strtoull(line, &end, 10);

		if (end > line)
			kept[n_kept++] = seed;
	}
	return f && fclose(f) == 0;
}

/* Add SEED, which has failed because of WHY, to the file of seeds. */
static void keep_seed(uint64_t seed, const char *why)
{
	FILE *f;

	for (size_t i = 0; i < n_kept; i++) {
		if (kept[i] == seed)
			return;
	}
	f = fopen(asked.keep, "ae");
	if (!f || fprintf(f, "%llu # %s\n", (unsigned long long)seed, why) < 0 || fclose(f) != 0)
		perror(asked.keep);
}

/* True if the history in slot I has failed, or differs between two runs. */
static bool look(size_t i)
{
	unsigned long long seed = running[i].seed;
	struct end end = ends[i], again = end;

	if (has_failed(&end)) {
		const char *died = WIFSIGNALED(end.status) ? strsignal(WTERMSIG(end.status)) : NULL;

		fprintf(stderr, "seed %llu: %s\n", seed, died ? died : "see above");
		if (asked.keep)
			keep_seed(seed, end.failure ? end.failure : died ? died : "failed");
		return true;
	}
	if (asked.twice)
		again = run(seed, &asked.shape);
	if (!has_failed(&again) && end.hash == again.hash)
		return false;
	fprintf(stderr, "seed %llu: a second run has another trace\n", seed);
	return true;
}

static size_t extra; /* the number of seeds in KEPT to run first */

static bool parse(int argc, char **argv)
{
	static const struct option options[] = {
		{"seeds", required_argument, NULL, 'n'},   {"from", required_argument, NULL, 'f'},
		{"minutes", required_argument, NULL, 'm'}, {"jobs", required_argument, NULL, 'j'},
		{"shape", required_argument, NULL, 's'},   {"trace", no_argument, NULL, 't'},
		{"twice", no_argument, NULL, '2'},	   {"kept", required_argument, NULL, 'k'},
		{"keep", required_argument, NULL, 'K'},	   {"first", no_argument, NULL, '1'},
		{"shrink", no_argument, NULL, 'S'},	   {0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		char *at = optarg;

		if (c == 'n')
			asked.n = strtoull(optarg, NULL, 10);
		else if (c == 'f')
			asked.from = strtoull(optarg, NULL, 10);
		else if (c == 'm')
			asked.minutes = strtod(optarg, NULL);
		else if (c == 'j')
			asked.jobs = strtoull(optarg, NULL, 10);
		else if (c == 's')
			asked.shape = (struct sim_shape){
				strtoull(at, &at, 16),
				*at ? strtoull(at + 1, &at, 16) : UINT64_MAX,
				*at ? strtoull(at + 1, &at, 10) : FAULTS_S,
			};
		else if (c == 't')
			sim_trace = true;
		else if (c == '2')
			asked.twice = true;
		else if (c == 'k' && read_seeds(optarg))
			extra = n_kept;
		else if (c == 'K' && (n_kept > 0 || read_seeds(optarg)))
			asked.keep = optarg;
		else if (c == '1')
			asked.first = true;
		else if (c == 'S')
			asked.shrink = true;
		else
			return false;
	}
	if (asked.n == 0)
		asked.n = asked.minutes > 0 ? ULLONG_MAX - KEPT_MAX : 100;
	return optind == argc && asked.jobs > 0 && asked.jobs <= MOST_JOBS &&
	       asked.shape.seconds > 0 && (asked.jobs == 1 || !asked.twice);
}

static double seconds_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

int main(int argc, char **argv)
{
	unsigned long long begun = 0, played = 0, failed = 0, n_running = 0;
	uint64_t first_failed = 0;
	struct timespec begin;
	double took;

	if (!parse(argc, argv)) {
		fprintf(stderr, "see the head of tests/sim/run\n");
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	ends = mmap(NULL, MOST_JOBS * sizeof(*ends), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ends == MAP_FAILED)
		abort();
	for (;;) {
		bool more = begun < asked.n + extra && !(asked.first && failed) &&
			    !(asked.minutes > 0 && seconds_since(&begin) > asked.minutes * 60);
		size_t i = 0;

		if (more && n_running < asked.jobs) {
			while (running[i].pid)
				i++;
			start(i, begun < extra ? kept[begun] : asked.from + begun - extra,
			      &asked.shape);
			begun++;
			n_running++;
			continue;
		}
		if (n_running == 0)
			break;
		i = finish();
		n_running--;
		played++;
		if (look(i) && failed++ == 0)
			first_failed = running[i].seed;
	}
	took = seconds_since(&begin);
	if (!sim_trace)
		printf("%llu histories, %llu failed; %.0f a minute\n", played, failed,
		       (double)played / took * 60);
	if (asked.shrink && failed)
		shrink(first_failed, asked.shape);
	return failed > 0;
}
