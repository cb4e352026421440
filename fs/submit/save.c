/* SPDX-License-Identifier: MIT */
/* The queue of changes on disk; see save.h. */
#include "fs/submit/save.h"

#include <errno.h>
#include <fcntl.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/loop.h"
#include "fs/vfs/fs.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

/* --- the queue --- */

struct save {
	struct work work;
	struct submit *s;
	enum save_what what;
	struct upload *file; /* a reference */
	char *text;
	save_fn fn;
	void *data;
};

static int load(const struct save *save)
{
	const struct submit *s = save->s;
	bool found = upload_look(save->file, NULL).state == CONTENT_FOUND;
	char digest[UPLOAD_DIGEST];
	uint64_t version;
	int err = upload_load(save->file, found ? &version : NULL, digest);
	bool known = !err && found && backend_knows_digest(s->config.backend, digest);

	if (!err && found)
		upload_set_state(save->file, version, known ? CONTENT_LAUNCHED : CONTENT_NEW);
	return err;
}

static int check(const struct save *save)
{
	char digest[UPLOAD_DIGEST];
	uint64_t version;
	int err = upload_load(save->file, &version, digest);

	return err || streq(digest, save->text) ? err : -ESTALE;
}

static int save_what(struct save *save)
{
	int err;

	switch (save->what) {
	case SAVE_BYTES:
		return upload_save(save->file);
	case SAVE_SYNC:
		err = upload_save(save->file);
		return err ? err : upload_sync(save->file);
	case SAVE_LOAD:
		return load(save);
	case SAVE_RENAME:
		return upload_save_name(save->file, save->text);
	case SAVE_TEXT:
		return upload_save_text(save->file, save->text);
	case SAVE_CHECK:
		return check(save);
	}
	return -EINVAL;
}

static void save_run(void *data)
{
	struct save *save = data;

	save->work.err = save_what(save);
}

static void save_done(void *data)
{
	struct save *save = data;
	int err = save->work.err;

	if (err && !save->fn)
		diag(DIAG_WARNING, "%s/%s can't be written: %s", save->s->name,
		     save->text ? save->text : "", strerror(-err));
	upload_unref(save->file);
	free(save->text);
	if (save->fn)
		save->fn(save->data, err);
	free(save);
}

static void save_begin(void *data)
{
	struct save *save = data;

	save->work = (struct work){.run = save_run, .done = save_done, .data = save};
	work_enqueue(&save->work, save->s->fs->loop, &save->s->queue);
}

void save_file(struct submit *s, struct upload *u, enum save_what what, const char *text,
	       save_fn fn, void *data)
{
	struct save *save = new0(struct save);

	*save = (struct save){.s = s, .what = what, .fn = fn, .data = data};
	save->file = upload_ref(u);
	save->text = text ? text_copy(text) : NULL;
	if (loop_is_here(s->fs->loop))
		save_begin(save);
	else
		loop_post(s->fs->loop, save_begin, save);
}

void save_soon(struct submit *s, struct upload *u)
{
	if (upload_want_save(u))
		save_file(s, u, SAVE_BYTES, NULL, NULL, NULL);
}

/* --- start --- */

static int found_file(void *data, int at, const char *name, unsigned char type)
{
	const struct submit *s = data;
	/* an earlier mount has launched or refused all files with submitting names */
	enum content_state state = spec_name_submits(name) ? CONTENT_LAUNCHED
				   : s->dry		   ? CONTENT_NEW
							   : CONTENT_FOUND;
	struct stat st;
	int err = disk_stat(at, name, &st);

	if (err)
		return err;
	if (S_ISREG(st.st_mode) && submit_name_check(name) == 0)
		names_add(s->names, name, upload_found(s->files, name, &st, state));
	else
		diag(DIAG_WARNING, "%s/%s: kxfs ignores this file, because kxfs did not write it",
		     s->dir, name);
	return 0;
}

int save_open(struct submit *s)
{
	return disk_list(AT_FDCWD, s->dir, found_file, s);
}
