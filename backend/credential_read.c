/* SPDX-License-Identifier: MIT */
/*
 * What of credentials is read on the pool: the files that the kubeconfig names, and, when the server has
 * refused what there is, the kubeconfig itself.
 */
#include "backend/credential_impl.h"

#include <errno.h>

#include "backend/file.h"

#define FILES_MS       60000 /* files are read again after this */
#define FILES_LIMIT_MS 10000 /* who waits for them waits no longer */
#define CA_MAX	       (1u << 20)

/* One reading; its own while it is on the pool. */
struct credential_read {
	struct credential *cr; /* NULL: nobody wants it any more */
	const struct spec_connection *c;
	int (*load)(void *data, struct spec_connection *ret); /* NULL: C is as it is */
	void *load_data;
	bool loaded; /* FRESH and INFO are to be used from now on */
	struct spec_connection fresh;
	char *info;
	struct credential_files files;
	int err;
	char *text;
};

static void files_failed(struct credential *cr, int err, char *text)
{
	if (cr->files_known || !credential_files_any(cr->c)) {
		free(text); /* what was read last is as good as ever */
		return;
	}
	cr->files_due_ms = loop_now_ms() + CREDENTIAL_FAILED_MS;
	cr->files_err = err;
	free(cr->files_text);
	cr->files_text = text;
}

int credential_info(const struct spec_connection *c, char **ret, char **ret_text)
{
	cleanup_free char *ca = NULL;
	size_t len;
	int err;

	if (!c->exec.command)
		return 0;
	if (c->exec.provide_cluster_info && *c->ca_file && !*c->ca_pem) {
		err = file_read_other(c->ca_file, CA_MAX, &ca, &len);
		if (err < 0 && asprintf(ret_text, "certificate authority %s: %s", c->ca_file,
					strerror(-err)) < 0)
			*ret_text = NULL;
		if (err < 0)
			return err;
	}
	*ret = spec_exec_info(c, ca);
	return *ret ? 0 : -ENOMEM;
}

/* The kubeconfig may be half written, gone, or of another cluster by now: then C stays. */
static void load_work(struct credential_read *r)
{
	cleanup_free char *text = NULL;

	if (r->load(r->load_data, &r->fresh) == 0 && streq(r->fresh.server, r->c->server) &&
	    credential_info(&r->fresh, &r->info, &text) == 0) {
		r->loaded = true;
		r->c = &r->fresh;
	}
}

static void read_work(void *data)
{
	struct credential_read *r = data;

	if (r->load)
		load_work(r);
	r->err = credential_files_read(r->c, &r->files, &r->text);
}

static void take_connection(struct credential *cr, struct credential_read *r)
{
	spec_connection_clear(&cr->fresh);
	cr->fresh = r->fresh;
	r->fresh = (struct spec_connection){0};
	cr->c = &cr->fresh;
	free(cr->info);
	cr->info = take_ptr(r->info);
}

static void take_read(struct credential *cr, struct credential_read *r)
{
	if (r->loaded && cr->run) {
		cr->reload = true; /* a plugin that runs has the old connection still */
		return;
	}
	if (r->loaded)
		take_connection(cr, r);
	credential_files_clear(&cr->files);
	cr->files = r->files;
	r->files = (struct credential_files){0};
	cr->files_known = true;
	cr->files_err = 0;
}

static void read_done(void *data)
{
	struct credential_read *r = data;
	struct credential *cr = r->cr;

	if (cr) {
		cr->read = NULL;
		loop_timer_free(take_ptr(cr->read_timer));
		cr->files_due_ms = loop_now_ms() + FILES_MS;
		if (r->err < 0)
			files_failed(cr, r->err, take_ptr(r->text));
		else
			take_read(cr, r);
		credential_answer(cr);
	}
	credential_files_clear(&r->files);
	spec_connection_clear(&r->fresh);
	free(r->info);
	free(r->text);
	free(r);
}

static void read_late(void *data)
{
	struct credential *cr = data;

	loop_timer_free(take_ptr(cr->read_timer));
	files_failed(cr, -ETIMEDOUT,
		     strdup("the files with the credentials can't be read in time"));
	credential_answer(cr);
}

bool credential_files_due(const struct credential *cr)
{
	return (cr->reload || credential_files_any(cr->c)) && !cr->read &&
	       loop_now_ms() >= cr->files_due_ms;
}

void credential_files_refresh(struct credential *cr)
{
	struct credential_read *r = calloc(1, sizeof(*r));
	struct loop_timer *timer = loop_timer_new(cr->loop, FILES_LIMIT_MS, 0, read_late, cr);

	if (!r || !timer) {
		free(r);
		loop_timer_free(timer);
		files_failed(cr, -ENOMEM, strdup("out of memory"));
		return;
	}
	r->cr = cr;
	r->c = cr->c;
	if (cr->reload) {
		r->load = cr->load;
		r->load_data = cr->load_data;
	}
	cr->reload = false;
	cr->read = r;
	cr->read_timer = timer;
	loop_work(cr->loop, read_work, read_done, r);
}

void credential_files_stop(struct credential *cr)
{
	loop_timer_free(take_ptr(cr->read_timer));
	if (cr->read)
		cr->read->cr = NULL;
	cr->read = NULL;
}
