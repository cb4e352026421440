/* SPDX-License-Identifier: MIT */
/*
 * A local job's record on disk, and its texts. Any thread; the record may wait for the disk.
 */
#include <errno.h>

#include "backend/local.h"

/* A record of the most replicas with the largest AppDef is a fraction of this. */
#define RECORD_MAX (64u << 20)

int local_record_read(const char *state_dir, const char *id, struct spec_record **ret)
{
	cleanup_free char *path = file_path(state_dir, id, "job.json");
	cleanup(local_record_freep) struct spec_record *rec = NULL;
	cleanup_free char *text = NULL;
	size_t len = 0;
	int err;

	if (!path)
		return -ENOMEM;
	err = file_read(path, RECORD_MAX, &text, &len);
	if (err == 0)
		err = spec_record_parse(text, len, &rec);
	if (err < 0)
		return err;
	/* A directory that was copied by hand is not this job. */
	if (!streq(rec->id, id))
		return -EINVAL;
	*ret = take_ptr(rec);
	return 0;
}

int local_record_write(const char *state_dir, const struct spec_record *rec)
{
	cleanup_free char *dir = file_path(state_dir, rec->id, NULL);
	cleanup_free char *text = spec_record_text(rec);

	if (!dir || !text)
		return -ENOMEM;
	return file_write(dir, "job.json", text, strlen(text));
}

void local_say(char **field, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list args;

	va_start(args, fmt);
	text = base_vformat(fmt, args);
	va_end(args);
	if (!text)
		return;
	if (spec_set(field, text) < 0)
		diag(DIAG_DEBUG, "no memory for the text \"%s\"", text);
}
