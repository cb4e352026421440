/* SPDX-License-Identifier: MIT */
/* How an attempt ended, for people: the message and the reason of its replica. Pure functions. */
#pragma once

#include "backend/local/helper.h"
#include "spec/record/record.h"

/* Return the message; "" if the attempt succeeded. malloc'ed. */
char *outcome_text(const struct spec_record *rec, const struct spec_replica *rep,
		   const struct task_end *end);
/* Return the reason, one word. AGAIN: kxfs ended the replica to restart it. */
const char *outcome_reason(bool again, const struct task_end *end);
/* True if the program was not started because of a shortage that may pass, such as memory. */
bool outcome_passes(const struct task_end *end);
