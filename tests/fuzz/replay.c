/* SPDX-License-Identifier: MIT */
/*
 * The main program of a fuzz target where no fuzzer is built in: gives each file of the
 * directories named on the command line to the target. A directory without files is an error, so
 * that a corpus that is not found does not pass as one that holds nothing bad.
 */
#include <dirent.h>
#include <err.h>
#include <sys/stat.h>

#include "spec/base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay_file(const char *path)
{
	cleanup_file FILE *f = fopen(path, "rbe");
	cleanup_free uint8_t *data = NULL;
	struct stat st;

	if (!f || fstat(fileno(f), &st) < 0)
		err(1, "%s", path);
	/* Of exactly the input's size, so that a sanitizer sees a read past its end. */
	data = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
	if (!data)
		err(1, "%s", path);
	if (fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		errx(1, "%s: short read", path);
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
}

static size_t replay_directory(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	if (!dir)
		err(1, "%s", path);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		cleanup_free char *file = NULL;

		if (entry->d_name[0] == '.')
			continue;
		if (asprintf(&file, "%s/%s", path, entry->d_name) < 0)
			err(1, "%s", path);
		replay_file(file);
		n++;
	}
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		errx(2, "usage: %s DIRECTORY...", argv[0]);
	for (int i = 1; i < argc; i++) {
		size_t n = replay_directory(argv[i]);

		if (n == 0)
			errx(1, "%s: no files", argv[i]);
		printf("%s: %zu inputs\n", argv[i], n);
	}
	return 0;
}
