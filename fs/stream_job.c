/* SPDX-License-Identifier: MIT */
/*
 * The blocking files of a job and its replicas: wait (the final state, once there is one) and
 * follow (the output from its start, to its end). I/O thread only.
 */
#include <errno.h>

#include "fs/stream.h"
#include "spec/status.h"

static int job_stream_start(struct stream *s)
{
	(void)s;
	return 0;
}

static void job_stream_stop(struct stream *s)
{
	log_unref(s->log);
	free(s->key);
}

/* --- wait --- */

static ssize_t wait_read(struct stream *s, char *buf, size_t size, uint64_t off)
{
	const struct spec_job *job cleanup_job = backend_job_by_uid(s->fs->backend, s->uid);
	/* A job that is gone for good was removed by somebody. */
	enum spec_state state = job ? job->state : SPEC_CANCELLED;
	const char *text = spec_status_state(state);
	size_t len = strlen(text);

	if (!spec_state_is_final(state))
		return -EAGAIN;
	if (off >= len)
		return 0;
	size = min_of(size, len - off);
	if (buf)
		memcpy(buf, text + off, size);
	return (ssize_t)size;
}

const struct stream_class wait_stream = {
	.start = job_stream_start,
	.read = wait_read,
	.stop = job_stream_stop,
};

/* --- follow --- */

/*
 * The key of the attempt after the one that is being read (of the newest when none is). NULL: none
 * yet, then *LAST says that none will come.
 */
static const char *follow_next_key(const struct spec_replica *r, const char *key, bool *last)
{
	const char *newest = NULL;

	*last = r->finished != 0;
	for (size_t i = 0; i < r->n_logs; i++) {
		if (*r->logs[i].container)
			continue;
		if (key && newest && streq(newest, key))
			return r->logs[i].key;
		newest = r->logs[i].key;
	}
	return key ? NULL : newest;
}

/* Read the next log, which begins at BASE. 0; -ENODATA: there will be none; -EAGAIN: not yet. */
static int follow_switch(struct stream *s, uint64_t base)
{
	const struct spec_job *job cleanup_job = backend_job_by_uid(s->fs->backend, s->uid);
	const struct spec_replica *r;
	struct log *log = NULL;
	const char *key = NULL;
	bool last;
	int err;

	if (!job)
		return -ENODATA;
	if (*s->replica) {
		r = spec_job_replica(job, s->replica);
		key = r ? follow_next_key(r, s->key, &last) : NULL;
		if (!key)
			return !r || last ? -ENODATA : -EAGAIN;
	} else if (s->log) {
		/* Where nothing has been printed yet, the merged log ends before it begins. */
		return spec_job_is_over(job) ? -ENODATA : -EAGAIN;
	}
	err = backend_log(s->fs->backend, job, key, &log);
	if (err)
		return err;
	log_unref(s->log);
	s->log = log;
	s->base = base;
	free(s->key);
	s->key = key ? strdup(key) : NULL;
	return key && !s->key ? -ENOMEM : 0;
}

static ssize_t follow_read(struct stream *s, char *buf, size_t size, uint64_t off)
{
	for (;;) {
		struct log_stat st = {.ended = true};
		int err = s->log ? log_stat(s->log, &st) : 0;

		if (err)
			return err;
		if (off < s->base)
			return -ESPIPE;
		if (off < s->base + st.size)
			return buf ? log_read(s->log, buf, size, off - s->base) : 1;
		if (!st.ended)
			return -EAGAIN;
		err = follow_switch(s, s->base + st.size);
		if (err)
			return err == -ENODATA ? 0 : err;
	}
}

const struct stream_class follow_stream = {
	.start = job_stream_start,
	.read = follow_read,
	.stop = job_stream_stop,
};
