/* SPDX-License-Identifier: MIT */
/*
 * The program of a replica: its arguments and its environment, which inherits the daemon's own; and how an attempt of
 * it has ended, for people.
 */
#pragma once

#include "backend/local/helper.h"
#include "spec/record/record.h"

struct program {
	char **args, **env; /* NULL-terminated */
};

/* ERROR_FILE: where the program may write a structured error, unless the role names another file. */
void program_make(struct program *p, const struct spec_record *rec, const struct spec_replica *rep,
		  const char *error_file);
void program_clear(struct program *p);

/* Return the message of an end; "" if the attempt succeeded. malloc'ed. */
char *program_end_text(const struct spec_record *rec, const struct spec_replica *rep,
		       const struct task_end *end);
/* Return the reason, one word. AGAIN: kxfs ended the replica to restart it. */
const char *program_end_reason(bool again, const struct task_end *end);
/* True if the program was not started because of a shortage that may pass, such as memory. */
bool program_end_passes(const struct task_end *end);
