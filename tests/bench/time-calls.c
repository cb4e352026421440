/* SPDX-License-Identifier: MIT */
/*
 * Measures a call on a file. Prints the nanoseconds per round:
 *
 *	time-calls read FILE N    open, read to the end, close
 *	time-calls stat FILE N
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int do_read(const char *path)
{
	char buf[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	do
		n = read(fd, buf, sizeof(buf));
	while (n > 0);
	close(fd);
	return n < 0 ? -1 : 0;
}

static int do_stat(const char *path)
{
	struct stat st;

	return stat(path, &st);
}

int main(int argc, char **argv)
{
	int (*call)(const char *) = argc == 4 && strcmp(argv[1], "stat") == 0 ? do_stat : do_read;
	struct timespec a, b;
	long n;

	if (argc != 4)
		return 2;
	n = strtol(argv[3], NULL, 10);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (long i = 0; i < n; i++) {
		if (call(argv[2])) {
			perror(argv[2]);
			return 1;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.0f\n",
	       ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)n);
	return 0;
}
