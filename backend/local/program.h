/* SPDX-License-Identifier: MIT */
/*
 * The program of a replica: its arguments, its environment, which includes the daemon's, and texts
 * for people on how an attempt has ended.
 */
#pragma once

#include "backend/local/helper.h"
#include "spec/record/record.h"

struct program {
	char **args, **env; /* NULL-terminated */
};

/*
 * Set P for replica REP of REC. ERROR_FILE is the file for a structured error of the program,
 * unless the role names another.
 */
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
