/* SPDX-License-Identifier: MIT */
/*
 * A writer with threads, for test_submit_ends.py: "ends HOW WHERE" writes the file $DOC to its standard output, and
 * ends by HOW, which its main thread calls (WHERE is "main"), another thread ("second"), or the only thread that is
 * left after the main thread has ended ("last"). With "half-HOW" it writes only the first half.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *how;

static void *idle(void *data)
{
	for (;;)
		pause();
	return data;
}

static void write_document(int part)
{
	int fd = open(getenv("DOC"), O_RDONLY);
	char text[8192];
	ssize_t n = read(fd, text, sizeof(text));

	if (n < 0 || write(STDOUT_FILENO, text, (size_t)n / part) != n / part)
		err(99, "the document");
	close(fd);
}

static void end(void)
{
	if (strcmp(how, "exit") == 0)
		exit(0);
	if (strcmp(how, "fail") == 0)
		exit(1);
	if (strcmp(how, "exec") == 0)
		execlp("true", "true", NULL);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "term") == 0)
		kill(getpid(), SIGTERM);
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
}

static void *second(void *data)
{
	end();
	return data;
}

int main(int argc, char **argv)
{
	bool half = argc == 3 && strncmp(argv[1], "half-", 5) == 0;
	pthread_t thread;

	if (argc != 3)
		errx(99, "usage: ends HOW main|second|last");
	how = argv[1] + (half ? 5 : 0);
	write_document(half ? 2 : 1);
	if (strcmp(argv[2], "last") != 0)
		for (int i = 0; i < 3; i++)
			pthread_create(&thread, NULL, idle, NULL);
	if (strcmp(argv[2], "main") == 0)
		end();
	pthread_create(&thread, NULL, second, NULL);
	if (strcmp(argv[2], "last") == 0)
		pthread_exit(NULL);
	pause();
}
