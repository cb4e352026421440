/* SPDX-License-Identifier: MIT */
/* The arguments and the environment of a replica's program, which inherits the daemon's own environment. */
#pragma once

#include "spec/record/record.h"

struct program {
	char **args, **env; /* NULL-terminated */
};

/* ERROR_FILE: where the program may write a structured error, unless the role names another file. */
void program_make(struct program *p, const struct spec_record *rec, const struct spec_replica *rep,
		  const char *error_file);
void program_clear(struct program *p);
