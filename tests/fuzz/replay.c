/* SPDX-License-Identifier: MIT */
/*
 * The main program of a fuzz target that is built without a fuzzer. It replays the target's inputs
 * from a file, whose format is described in corpus.py. It fails if the file has no inputs for the
 * target. Otherwise, a missing corpus would look like a passed test.
 */
#include "fuzz.h"

#include <err.h>

/*
 * Convert the UTF-8 TEXT with characters from U+0000 to U+00FF to one byte per character. Return
 * the number of bytes.
 */
static size_t to_latin1(uint8_t *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		uint8_t c = text[i];

		if (c >= 0x80) {
			if (c > 0xc3 || ++i == len)
				errx(1, "a character beyond U+00FF in \"latin1\"");
			c = (uint8_t)((c << 6) | (text[i] & 0x3f));
		}
		text[n++] = c;
	}
	return n;
}

static void replay(struct json_object *row)
{
	struct json_object *text = json_object_object_get(row, "text");
	struct json_object *latin1 = json_object_object_get(row, "latin1");
	struct json_object *from = text ? text : latin1;
	size_t size = (size_t)json_object_get_string_len(from);
	cleanup_free uint8_t *copy = NULL, *data = NULL;

	if (!json_object_is_type(from, json_type_string))
		errx(1, "a line with neither \"text\" nor \"latin1\"");
	copy = malloc(size + 1);
	if (!copy)
		err(1, "malloc");
	memcpy(copy, json_object_get_string(from), size);
	if (latin1)
		size = to_latin1(copy, size);
	/*
	 * The buffer has exactly the input's size, so that a sanitizer finds reads beyond its end.
	 */
	data = malloc(size > 0 ? size : 1);
	if (!data)
		err(1, "malloc");
	memcpy(data, copy, size);
	LLVMFuzzerTestOneInput(data, size);
}

static bool is_of(struct json_object *row, const char *target)
{
	struct json_object *its = json_object_object_get(row, "target");

	return its && streq(json_object_get_string(its), target);
}

/* Replay the inputs of TARGET. Return their number. */
static size_t replay_file(const char *path, const char *target)
{
	cleanup_file FILE *f = fopen(path, "re");
	cleanup_free char *line = NULL;
	size_t size = 0, n = 0, number = 0;

	if (!f)
		err(1, "%s", path);
	while (getline(&line, &size, f) > 0) {
		struct json_object *row = json_tokener_parse(line);

		number++;
		if (!row)
			errx(1, "%s:%zu: not JSON", path, number);
		if (is_of(row, target)) {
			replay(row);
			n++;
		}
		json_object_put(row);
	}
	return n;
}

int main(int argc, char **argv)
{
	size_t n;

	if (argc != 3)
		errx(2, "usage: %s FILE TARGET", argv[0]);
	n = replay_file(argv[1], argv[2]);
	if (n == 0)
		errx(1, "%s: no inputs of %s", argv[1], argv[2]);
	printf("%zu inputs\n", n);
	return 0;
}
