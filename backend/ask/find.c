/* SPDX-License-Identifier: MIT */
/* Which kind a cluster serves, asked before there is a backend, whose state directory is named after it. */

#include "backend/ask/asking.h"
#include "backend/ask/discover.h"
#include "spec/base/mem.h"

struct finding {
	struct asking *asking;
	struct discover *discover;
	const char *source;
	const char *found;
	int err;
	char *text;
};

static void on_found(void *data, const struct spec_served *served, int err, const char *text)
{
	struct finding *f = data;

	f->found = served ? served->source : NULL;
	f->err = err;
	f->text = text_copy(text);
	asking_over(f->asking);
}

static void finding_begin(void *data, struct asking *a, struct http *http)
{
	struct finding *f = data;

	f->asking = a;
	f->discover = discover_new(http, f->source, on_found, f);
}

static void finding_end(void *data)
{
	struct finding *f = data;

	discover_free(f->discover);
}

int backend_find_kind(const struct backend_config *config, const char **ret, char **ret_text)
{
	static const struct asking_ops ops = {.begin = finding_begin, .end = finding_end};
	struct spec_connection connection cleanup(spec_connection_clear) = {0};
	struct finding f = {.source = config->kind};
	int err = discover_connection(config, &connection, ret_text);

	if (!err)
		err = asking_run(&connection, &ops, &f, ret_text);
	if (err)
		return err;
	*ret = f.found;
	if (f.err < 0)
		*ret_text = take_ptr(f.text);
	free(f.text);
	return f.err;
}
