/* SPDX-License-Identifier: MIT */
/*
 * What the program of a replica is given: its arguments and its environment. Pure, but for the daemon's own
 * environment, which programs inherit.
 */
#pragma once

#include "spec/record/record.h"

struct program {
	char **args, **env; /* NULL-terminated */
};

/* ERROR_FILE: where the program may leave a structured error, unless the role names another place. */
void program_make(struct program *p, const struct spec_record *rec, const struct spec_replica *rep,
		  const char *error_file);
void program_clear(struct program *p);
