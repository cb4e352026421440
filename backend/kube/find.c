/* SPDX-License-Identifier: MIT */
/*
 * Which kind a cluster serves, asked before there is a backend, whose state directory is named after it: on a loop of
 * its own that ends with the answer.
 */
#include <errno.h>
#include <semaphore.h>

#include "backend/kube/discover.h"
#include "spec/base/mem.h"

/* All that it takes to ask a server. */
struct finding {
	struct spec_connection connection;
	struct loop *loop;
	struct credential *credential;
	struct http *http;
	struct discover *discover;
	const char *source;
	sem_t done; /* posted with the answer, and when all is stopped */
	const char *found;
	int err;
	char *text;
};

static void finding_clear(struct finding *f)
{
	http_free(f->http);
	credential_free(f->credential);
	loop_free(f->loop);
	spec_connection_clear(&f->connection);
	sem_destroy(&f->done);
	free(f->text);
}

static void on_found(void *data, const struct spec_served *served, int err, const char *text)
{
	struct finding *f = data;

	f->found = served ? served->source : NULL;
	f->err = err;
	f->text = text_copy(text);
	sem_post(&f->done);
}

static void finding_begin(void *data)
{
	struct finding *f = data;

	f->discover = discover_new(f->http, f->source, on_found, f);
}

static void on_stopped(void *data)
{
	struct finding *f = data;

	sem_post(&f->done);
}

static void finding_end(void *data)
{
	struct finding *f = data;

	discover_free(take_ptr(f->discover));
	credential_stop(f->credential);
	http_stop(f->http, on_stopped, f);
}

static void finding_wait(struct finding *f)
{
	while (sem_wait(&f->done) < 0)
		;
}

int backend_find_kind(const struct backend_config *config, const char **ret, char **ret_text)
{
	struct finding f cleanup(finding_clear) = {.source = config->kind};
	int err;

	sem_init(&f.done, 0, 0);
	err = discover_connection(config, &f.connection, ret_text);
	loop_new(&f.loop);
	if (!err)
		err = credential_new(f.loop, &f.connection, &f.credential, ret_text);
	if (!err)
		err = http_new(f.loop, &f.connection, f.credential, &f.http, ret_text);
	if (!err)
		err = loop_start(f.loop);
	if (err)
		return err;
	loop_post(f.loop, finding_begin, &f);
	finding_wait(&f);
	loop_post(f.loop, finding_end, &f);
	finding_wait(&f);
	loop_stop(f.loop);
	*ret = f.found;
	if (f.err < 0)
		*ret_text = take_ptr(f.text);
	return f.err;
}
