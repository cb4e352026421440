/* SPDX-License-Identifier: MIT */
/*
 * A writer with threads, for test_submit_tools.py: "ends THREAD STEP..." with $DOC at its standard
 * output. All steps run in THREAD. "main" is the main thread. "second" is another thread, while the
 * main thread and idle threads exist. "last" is a thread that continues after the main thread has
 * ended. A step that fails ends the program with status 99, except for the close, which ends it
 * with the errno.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_t first;
static char **steps;

static void *idle(void *data)
{
	for (;;)
		pause();
	return data;
}

/* Write a part of the file $DOC to stdout. FROM and TO: 0 is its beginning, 1 its middle, 2 its end. */
static void write_halves(int from, int to)
{
	int fd = open(getenv("DOC"), O_RDONLY);
	char text[8192];
	ssize_t n = read(fd, text, sizeof(text)), off = n / 2 * from;

	if (to == 1)
		n /= 2;
	if (n < 0 || write(STDOUT_FILENO, text + off, (size_t)(n - off)) != n - off)
		err(99, "the document");
	close(fd);
}

static void wait_for(pid_t pid)
{
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		err(99, "a child");
}

static void spawn(void)
{
	char *argv[] = {"true", NULL};
	pid_t pid;

	if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) != 0)
		err(99, "posix_spawn");
	wait_for(pid);
}

/* Let a child write the second half and be killed by a signal. */
static void lose_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		write_halves(1, 2);
		raise(SIGKILL);
	}
	wait_for(pid);
}

static void vfork_child(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	wait_for(pid);
}

static void step(const char *name)
{
	static const struct {
		const char *name;
		int signal;
	} signals[] = {{"TERM", SIGTERM}, {"KILL", SIGKILL}, {"INT", SIGINT}, {"SEGV", SIGSEGV}};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (strcmp(name, signals[i].name) == 0)
			kill(getpid(), signals[i].signal);
	if (strcmp(name, "write") == 0)
		write_halves(0, 2);
	else if (strcmp(name, "half") == 0)
		write_halves(0, 1);
	else if (strcmp(name, "rest") == 0)
		write_halves(1, 2);
	else if (strcmp(name, "dup") == 0)
		close(dup(STDOUT_FILENO));
	else if (strcmp(name, "close") == 0 && close(STDOUT_FILENO) < 0)
		_exit(errno);
	else if (strcmp(name, "spawn") == 0)
		spawn();
	else if (strcmp(name, "vfork") == 0)
		vfork_child();
	else if (strcmp(name, "lose-child") == 0)
		lose_child();
	else if (strcmp(name, "cloexec") == 0)
		fcntl(STDOUT_FILENO, F_SETFD, FD_CLOEXEC);
	else if (strcmp(name, "exec") == 0)
		execlp("true", "true", NULL);
	else if (strcmp(name, "abort") == 0)
		abort();
	else if (strcmp(name, "wait") == 0)
		pause();
	else if (strcmp(name, "exit") == 0)
		exit(0);
	else if (strcmp(name, "fail") == 0)
		exit(1);
}

static void *run_steps(void *data)
{
	if (data)
		pthread_join(first, NULL);
	for (; *steps; steps++)
		step(*steps);
	return NULL;
}

int main(int argc, char **argv)
{
	bool last = argc > 1 && strcmp(argv[1], "last") == 0;
	pthread_t thread;

	first = pthread_self();
	steps = argv + 2;
	if (argc > 1 && !last)
		for (int i = 0; i < 3; i++)
			pthread_create(&thread, NULL, idle, NULL);
	if (argc > 1 && strcmp(argv[1], "main") == 0) {
		run_steps(NULL);
		return 0;
	}
	pthread_create(&thread, NULL, run_steps, last ? &first : NULL);
	if (last)
		pthread_exit(NULL);
	pthread_join(thread, NULL);
	return 0;
}
