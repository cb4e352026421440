/* SPDX-License-Identifier: MIT */
/*
 * A document's manifest on standard output, for tests in Python: kxfs-manifest [-y] [-n NAMESPACE]
 * [-o NAME=VALUE]... KIND FILE. As JSON, or with -y as YAML. Errors go to standard error, status 1.
 */
#include <err.h>
#include <sys/random.h>

#include "spec/manifest.h"

#define MAX_OPTIONS 32

static char *read_file(const char *path, size_t *len)
{
	cleanup_file FILE *f = fopen(path, "rbe");
	char *text = NULL;
	FILE *to = open_memstream(&text, len);
	char buffer[4096];
	size_t n;

	if (!f || !to)
		err(2, "%s", path);
	while ((n = fread(buffer, 1, sizeof(buffer), f)) > 0)
		fwrite(buffer, 1, n, to);
	fclose(to);
	return text;
}

static int print(const struct spec_manifest_request *rq, const char *path, bool yaml)
{
	cleanup(spec_manifest_freep) struct spec_manifest *m = NULL;
	struct spec_errors e = SPEC_ERRORS_INIT;
	size_t len, yaml_len;
	char *text cleanup_free = read_file(path, &len);
	char *out cleanup_free = NULL;

	if (spec_manifest_make(text, len, rq, &m, &e) < 0) {
		out = spec_errors_text(&e, path);
		fputs(out ? out : "out of memory\n", stderr);
		spec_errors_clear(&e);
		return 1;
	}
	if (!yaml)
		puts(m->json);
	else if (spec_manifest_yaml(m, &out, &yaml_len) < 0)
		errx(2, "out of memory");
	else
		fwrite(out, 1, yaml_len, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	struct spec_pair options[MAX_OPTIONS];
	struct spec_manifest_request rq = {
		.options = options,
		.home = getenv("HOME"),
		.identity =
			{
				.namespace = "default",
				.submission = "0aa07ef8-25f5-4b0e-9a3f-5b2c8e0f1d11",
				.submitter = "ada@login1",
			},
	};
	bool yaml = false;
	char *value;
	int c;

	while ((c = getopt(argc, argv, "yn:o:")) != -1) {
		switch (c) {
		case 'y':
			yaml = true;
			break;
		case 'n':
			rq.identity.namespace = optarg;
			break;
		case 'o':
			value = strchr(optarg, '=');
			if (!value || rq.n_options == MAX_OPTIONS)
				errx(2, "-o NAME=VALUE");
			*value++ = '\0';
			options[rq.n_options++] = (struct spec_pair){optarg, value};
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2 || !(rq.kind = spec_kind_find(argv[optind])))
		errx(2, "usage: kxfs-manifest [-y] [-n NAMESPACE] [-o NAME=VALUE]... KIND FILE");
	if (getrandom(rq.identity.random, sizeof(rq.identity.random), 0) < 0)
		err(2, "getrandom");
	return print(&rq, argv[optind + 1], yaml);
}
