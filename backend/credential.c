/* SPDX-License-Identifier: MIT */
/*
 * What a request carries, made of three sources: what never changes, files that are read on the pool, and a
 * plugin. Whoever asks while a source is out of date waits for it, together with all others who ask.
 */
#include "backend/credential_impl.h"

#include <assert.h>
#include <errno.h>
#include <utlist.h>

#include "backend/plugin.h"
#include "spec/base64.h"

#define HOLD_MS	   10000 /* a new answer is used for so long, whatever it says of its end */
#define REFUSED_MS 5000
#define SKEW_NS	   60000000000 /* a credential is renewed so long before its end, if it lives longer */

static void credential_refresh(struct credential *cr);

/* --- what the sources come to --- */

static void set_secret(char **to, char *text)
{
	if (*to)
		explicit_bzero(*to, strlen(*to));
	free(*to);
	*to = text;
}

static void clear_secret(char **p)
{
	set_secret(p, NULL);
}

static int make_line(const struct credential *cr, char **ret)
{
	const struct spec_connection *c = cr->c;
	const char *token = cr->files.token    ? cr->files.token
			    : *c->token	       ? c->token
			    : cr->answer_known ? cr->answer.token
					       : "";
	cleanup(clear_secret) char *pair = NULL, *code = NULL;

	*ret = NULL;
	if (*c->user) {
		if (asprintf(&pair, "%s:%s", c->user, c->password) < 0) {
			pair = NULL;
			return -ENOMEM;
		}
		code = spec_base64_encode(pair, strlen(pair));
		if (!code)
			return -ENOMEM;
	}
	if (!code && !*token)
		return 0;
	if (asprintf(ret, "Authorization: %s %s", code ? "Basic" : "Bearer", code ? code : token) <
	    0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int make_pair(const struct credential *cr, char **ret_cert, char **ret_key)
{
	const struct spec_connection *c = cr->c;
	const char *cert = *c->cert_pem ? c->cert_pem : cr->files.cert_pem;
	const char *key = *c->key_pem ? c->key_pem : cr->files.key_pem;

	*ret_cert = *ret_key = NULL;
	if (!cert && cr->answer_known && *cr->answer.cert_pem) {
		cert = cr->answer.cert_pem;
		key = cr->answer.key_pem;
	}
	if (!cert || !key)
		return 0;
	*ret_cert = strdup(cert);
	*ret_key = strdup(key);
	return *ret_cert && *ret_key ? 0 : -ENOMEM;
}

/* Replace the view by what the sources say now. */
static int credential_make(struct credential *cr)
{
	cleanup(clear_secret) char *line = NULL, *cert = NULL, *key = NULL;

	if (make_line(cr, &line) < 0 || make_pair(cr, &cert, &key) < 0)
		return -ENOMEM;
	if (streq(line, cr->line) && streq(cert, cr->cert) && streq(key, cr->key))
		return 0;
	cr->generation++;
	set_secret(&cr->line, take_ptr(line));
	set_secret(&cr->cert, take_ptr(cert));
	set_secret(&cr->key, take_ptr(key));
	return 0;
}

/* --- who waits --- */

static void credential_tell(struct credential *cr, credential_fn fn, void *data)
{
	struct credential_view view;

	if (cr->files_err < 0) {
		fn(data, cr->files_err, NULL, cr->files_text ? cr->files_text : "");
	} else if (cr->plugin_err < 0) {
		fn(data, cr->plugin_err, NULL, cr->plugin_text ? cr->plugin_text : "");
	} else if (credential_make(cr) < 0) {
		fn(data, -ENOMEM, NULL, "out of memory");
	} else {
		view = (struct credential_view){cr->line, cr->cert, cr->key, cr->generation};
		fn(data, 0, &view, "");
	}
}

/* Is there something to wait for? */
static bool credential_busy(const struct credential *cr)
{
	return cr->read_timer || cr->running;
}

void credential_answer(struct credential *cr)
{
	uint64_t last = cr->tickets;

	if (credential_busy(cr))
		return;
	while (cr->waiters && cr->waiters->ticket <= last) {
		struct credential_waiter *w = cr->waiters;

		DL_DELETE(cr->waiters, w);
		credential_tell(cr, w->fn, w->data);
		free(w);
	}
}

/* --- the plugin --- */

static bool answer_is_good(const struct credential *cr, int64_t now)
{
	return cr->answer_known && (cr->answer.expires == 0 || now < cr->answer.expires);
}

static void plugin_failed(struct credential *cr, int err, const char *text)
{
	cr->hold_ms = loop_now_ms() + CREDENTIAL_FAILED_MS;
	if (answer_is_good(cr, loop_time_ns()))
		return;
	cr->plugin_err = err;
	free(cr->plugin_text);
	cr->plugin_text = strdup(text);
}

static void plugin_done(void *data, int err, struct spec_credential *answer, const char *text)
{
	struct credential *cr = data;
	int64_t now = loop_time_ns(), life;

	cr->running = false;
	if (err < 0) {
		plugin_failed(cr, err, text);
	} else {
		spec_credential_clear(&cr->answer);
		cr->answer = *answer;
		*answer = (struct spec_credential){0};
		cr->answer_known = true;
		cr->plugin_err = 0;
		cr->hold_ms = loop_now_ms() + HOLD_MS;
		life = cr->answer.expires - now;
		cr->renew_ns = cr->answer.expires;
		if (cr->answer.expires && life > 0)
			cr->renew_ns -= min_of(life / 10, (int64_t)SKEW_NS);
	}
	credential_answer(cr);
}

static void plugin_gone(void *data)
{
	struct credential *cr = data;

	cr->run = NULL;
	if (!cr->waiters)
		return;
	credential_refresh(cr);
	credential_answer(cr);
}

static bool plugin_due(const struct credential *cr)
{
	if (!cr->c->exec.command || loop_now_ms() < cr->hold_ms)
		return false;
	return !cr->answer_known || (cr->renew_ns && loop_time_ns() >= cr->renew_ns);
}

static void plugin_refresh(struct credential *cr)
{
	const struct plugin_events events = {plugin_done, plugin_gone, cr};
	cleanup_free char *text = NULL;
	int err;

	cr->running = true;
	if (cr->run)
		return; /* until that has gone */
	err = plugin_start(cr->loop, cr->c, cr->info, &events, &cr->run, &text);
	if (err < 0) {
		cr->running = false;
		plugin_failed(cr, -EACCES, text ? text : "out of memory");
	}
}

/* --- asking --- */

static void credential_refresh(struct credential *cr)
{
	if (credential_files_due(cr))
		credential_files_refresh(cr);
	if (cr->running ? !cr->run : plugin_due(cr))
		plugin_refresh(cr);
}

uint64_t credential_get(struct credential *cr, credential_fn fn, void *data)
{
	struct credential_waiter *w;

	assert(loop_is_here(cr->loop));
	credential_refresh(cr);
	if (!credential_busy(cr)) {
		credential_tell(cr, fn, data);
		return 0;
	}
	w = calloc(1, sizeof(*w));
	if (!w) {
		fn(data, -ENOMEM, NULL, "out of memory");
		return 0;
	}
	*w = (struct credential_waiter){.ticket = ++cr->tickets, .fn = fn, .data = data};
	DL_APPEND(cr->waiters, w);
	return w->ticket;
}

void credential_cancel(struct credential *cr, uint64_t ticket)
{
	struct credential_waiter *w;

	DL_FOREACH(cr->waiters, w) {
		if (w->ticket == ticket) {
			DL_DELETE(cr->waiters, w);
			free(w);
			return;
		}
	}
}

bool credential_refused(struct credential *cr, uint64_t generation)
{
	uint64_t now = loop_now_ms();

	if (generation != cr->generation)
		return true;
	if (!credential_files_any(cr->c) && !cr->c->exec.command && !cr->load)
		return false;
	if (cr->refused_ms && now - cr->refused_ms < REFUSED_MS)
		return false;
	cr->refused_ms = now;
	cr->files_due_ms = 0;
	cr->reload = cr->load;
	cr->answer_known = false;
	cr->hold_ms = 0;
	return true;
}

/* --- life --- */

int credential_new(struct loop *loop, const struct spec_connection *c, struct credential **ret,
		   char **ret_text)
{
	struct credential *cr = calloc(1, sizeof(*cr));
	int err;

	*ret_text = NULL;
	if (!cr)
		return -ENOMEM;
	cr->loop = loop;
	cr->c = c;
	cr->generation = 1;
	err = credential_info(c, &cr->info, ret_text);
	if (err < 0) {
		credential_free(cr);
		return err;
	}
	*ret = cr;
	return 0;
}

void credential_set_load(struct credential *cr,
			 int (*load)(void *data, struct spec_connection *ret), void *data)
{
	cr->load = load;
	cr->load_data = data;
}

void credential_stop(struct credential *cr)
{
	while (cr->waiters) {
		struct credential_waiter *w = cr->waiters;

		DL_DELETE(cr->waiters, w);
		free(w);
	}
	cr->running = false;
	if (cr->run)
		plugin_stop(cr->run);
	credential_files_stop(cr);
}

void credential_free(struct credential *cr)
{
	if (!cr)
		return;
	plugin_free(cr->run);
	credential_files_clear(&cr->files);
	spec_credential_clear(&cr->answer);
	spec_connection_clear(&cr->fresh);
	set_secret(&cr->line, NULL);
	set_secret(&cr->cert, NULL);
	set_secret(&cr->key, NULL);
	free(cr->files_text);
	free(cr->plugin_text);
	free(cr->info);
	free(cr);
}
