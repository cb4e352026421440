/* SPDX-License-Identifier: MIT */
/* Makes the arguments and environment of a replica's program. Describes how an attempt ended. */
#pragma once

#include "backend/local/helper.h"
#include "spec/record/record.h"

struct program {
	char **args, **env; /* NULL-terminated */
};

/*
 * Make the arguments and the environment, which includes this process's environment. ERROR_FILE is
 * where the program may write a structured error, unless the role's environment names another file.
 */
void program_make(struct program *p, const struct spec_record *rec, const struct spec_replica *rep,
		  const char *error_file);
void program_clear(struct program *p);

/* Return a message that describes END, malloc'ed; "" if the attempt succeeded. */
char *program_end_text(const struct spec_record *rec, const struct spec_replica *rep,
		       const struct task_end *end);
/* Return the reason for END as one word. AGAIN is true if kxfs ended the replica to restart it. */
const char *program_end_reason(bool again, const struct task_end *end);
/* True if a temporary shortage, for example of memory, has prevented the start. */
bool program_end_passes(const struct task_end *end);
