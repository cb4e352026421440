/* SPDX-License-Identifier: MIT */
/*
 * Submissions that were under way when the last mount ended without a word (it was killed, the machine
 * went down): the backend knows which were launched, and the verdicts of all are told late.
 */
#include <errno.h>

#include "backend/diag.h"
#include "fs/submit_impl.h"

void submit_launched(struct submit *s, const char *file, const char *id, int64_t time)
{
	struct submit_verdict *v;

	lock_scope(&s->lock);
	v = submit_verdict_find(s, file);
	/* It was marked before it was asked for; an older job is that of an earlier write. */
	if (!v || !v->pending || time < v->pending_since || time < v->launched_time)
		return;
	free(v->launched);
	v->launched = strdup(id);
	v->launched_time = time;
}

/*
 * May F, held, be what the job ID was launched from? Not if it was to get its name by a rename, which came
 * too late, and another file still has it.
 */
static bool settle_is_launched(struct submit_file *f, const char *id)
{
	struct backend *b = f->s->fs->backend;
	const struct spec_job *job cleanup_job = backend_job(b, BACKEND_JOBS, id);
	char *sent cleanup_free = NULL;
	char *text cleanup_free = NULL;
	size_t n_sent, n;

	if (!job)
		job = backend_job(b, BACKEND_HISTORY, id);
	/* A job that runs twice is worse than a file that has to be copied. */
	if (!job || backend_text(b, job, BACKEND_APPDEF, &sent, &n_sent) < 0 ||
	    submit_read(f, &text, &n) < 0)
		return true;
	return n == n_sent && memcmp(text, sent, n) == 0;
}

/* What is in NAME, if it has launched the job ID: renaming it launches no other. */
static void settle_file(struct submit *s, const char *name, const char *id)
{
	struct submit_file *f cleanup_submit_file = submit_file_find(s, name);

	if (!f || submit_file_hold(f) < 0)
		return;
	if (settle_is_launched(f, id)) {
		lock_scope(&s->lock);
		f->accepted = f->content;
		f->modes++;
	}
	submit_file_save_mode(f);
	submit_file_drop(f);
}

static void settle(struct submit *s, const char *name, const char *id, struct submit_author author)
{
	char *text cleanup_free = NULL;
	uint64_t seq;

	{
		lock_scope(&s->lock);
		seq = ++s->seq;
	}
	if (id) {
		diag(DIAG_INFO, "%s: launched from %s when the last mount ended", id, name);
		settle_file(s, name, id);
		submit_verdict_accepted(s, name, seq, id, author);
		return;
	}
	if (asprintf(&text,
		     "%s: kxfs ended while this was being launched, and there is no job of it: "
		     "nothing "
		     "was launched, or it has been removed since. Write it again to launch it.\n",
		     name) < 0)
		text = NULL;
	submit_verdict_refused(s, name, seq, text ? text : strerror(ENOMEM), author);
}

void submit_settle(struct submit *s)
{
	struct submit_verdict *v;

	for (;;) {
		char *name cleanup_free = NULL;
		char *id cleanup_free = NULL;
		struct submit_author author;

		{
			lock_scope(&s->lock);
			for (v = s->verdicts; v && !v->pending; v = v->hh.next)
				;
			if (!v)
				return;
			v->pending = 0;
			v->pending_since = 0;
			name = strdup(v->name);
			id = take_ptr(v->launched);
			author = v->author;
		}
		if (!name)
			continue; /* the mark stays on disk for the next mount */
		settle(s, name, id, author);
	}
}
