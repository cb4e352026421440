/* SPDX-License-Identifier: MIT */
/* Says for people how an attempt has ended: the message and the reason of its replica. Pure. */
#pragma once

#include "backend/local/helper.h"
#include "spec/record/record.h"

/* The message; "" if it has ended well. malloc'ed. */
char *outcome_text(const struct spec_record *rec, const struct spec_replica *rep,
		   const struct task_end *end);
/* The reason, one word. AGAIN: kxfs has ended the replica in order to start it again. */
const char *outcome_reason(bool again, const struct task_end *end);
/* Was the program not started for want of something that may come back, such as memory? */
bool outcome_passes(const struct task_end *end);
