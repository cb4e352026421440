/* SPDX-License-Identifier: MIT */
/*
 * Histories, one process each: what one leaves in memory, and how it ends, is no other's. A history of five virtual
 * minutes in which things fail is followed by ten in which nothing does, and by the judgement.
 */
#include <getopt.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "spec/base/mem.h"
#include "tests/sim/disk.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define FAULTS_S  300
#define CALM_S	  600
#define JUDGING_S 120

/* Those that have found something are always run, as long as they do so with the fault put back (faults/). */
static const uint64_t kept[] = {5, 7, 22, 77, 106};

static _Noreturn void play(uint64_t seed, int ret_fd)
{
	static const bool never;
	uint64_t hash;

	sim_seed(seed);
	sim_say("seed", "%llu", (unsigned long long)seed);
	sim_draw_faults();
	sim_disk_make();
	sim_kxfs_begin();
	users_begin();
	readers_begin();
	sim_run(FAULTS_S * SIM_S, &never);
	sim_say("faults", "end here");
	sim_disk_mend();
	sim_http_mend();
	sim_kxfs_mend();
	sim_run((FAULTS_S + CALM_S) * SIM_S, &never);
	users_judge();
	sim_run((FAULTS_S + CALM_S + JUDGING_S) * SIM_S, &never);
	if (!users_are_judged())
		sim_fail("who asks what became of it waits for ever");
	hash = sim_trace_hash();
	if (write(ret_fd, &hash, sizeof(hash)) != sizeof(hash))
		_exit(1);
	fflush(stdout);
	_exit(0);
}

/* *RET_HASH is that of the trace. False: something that must hold did not. */
static bool run(uint64_t seed, uint64_t *ret_hash)
{
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) < 0)
		abort();
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0)
		play(seed, fds[1]);
	close(fds[1]);
	*ret_hash = 0;
	(void)!read(fds[0], ret_hash, sizeof(*ret_hash));
	close(fds[0]);
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed,
		WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "see above");
	return false;
}

/* True: SEED fails, or is not the same twice. */
static bool fails(uint64_t seed, bool twice)
{
	uint64_t hash, again;

	if (!run(seed, &hash))
		return true;
	if (!twice || (run(seed, &again) && hash == again))
		return false;
	fprintf(stderr, "seed %llu: another trace the second time\n", (unsigned long long)seed);
	return true;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seeds", required_argument, NULL, 'n'},   {"from", required_argument, NULL, 'f'},
		{"minutes", required_argument, NULL, 'm'}, {"trace", no_argument, NULL, 't'},
		{"twice", no_argument, NULL, '2'},	   {"kept", no_argument, NULL, 'k'},
		{"first", no_argument, NULL, '1'},	   {0},
	};
	unsigned long long n = 100, from = 1, played = 0, failed = 0;
	double minutes = 0;
	bool twice = false, with_kept = false, first = false;
	time_t begin = time(NULL);
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'n')
			n = strtoull(optarg, NULL, 10);
		else if (c == 'f')
			from = strtoull(optarg, NULL, 10);
		else if (c == 'm')
			minutes = strtod(optarg, NULL);
		else if (c == 't')
			sim_trace = true;
		else if (c == '2')
			twice = true;
		else if (c == 'k')
			with_kept = true;
		else if (c == '1')
			first = true;
		else
			return 2;
	}
	for (size_t i = 0; with_kept && i < array_size(kept); i++, played++)
		failed += fails(kept[i], twice);
	for (unsigned long long i = 0; i < n && !(first && failed); i++, played++) {
		if (minutes > 0 && difftime(time(NULL), begin) > minutes * 60)
			break;
		failed += fails(from + i, twice);
	}
	if (!sim_trace)
		printf("%llu histories, %llu failed\n", played, failed);
	return failed > 0;
}
