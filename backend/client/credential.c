/* SPDX-License-Identifier: MIT */
/*
 * Makes the credential of requests from the kubeconfig, the files that the kubeconfig names, and a
 * plugin. kxfs reads the files again after a minute. After the server has refused the credential,
 * or the plugin has failed, kxfs also reads the kubeconfig again.
 *
 * files    | what is in progress                            | what ends it           | next
 * KNOWN    | nothing                                        | the files must be read | READING
 * READING  | the pool reads; requests wait                  | the pool is done       | KNOWN
 *          |                                                | 10 s have passed       | LATE
 * LATE     | the pool reads; requests get the last contents | the pool is done       | KNOWN
 *
 * plugin   | what is in progress                   | what ends it               | next
 * AWAY     | nothing                               | a request needs the plugin | ASKED
 * ASKED    | the plugin runs; requests wait        | a failure, if URGENT       | AGAIN
 *          |                                       | an answer or other failure | LEAVING
 * LEAVING  | the plugin's process has not ended    | the process ends           | AWAY
 *          |                                       | a request needs a new run  | AGAIN
 * AGAIN    | as LEAVING; requests wait for a rerun | the process ends           | AWAY, then ASKED
 *
 * The plugin fails if it has not answered after 60 s. A run is URGENT if a user has made a request
 * during the run. If it fails, kxfs runs the plugin again: the user may have logged in meanwhile.
 */
#include "backend/client/credential.h"

#include <assert.h>
#include <errno.h>
#include <utlist.h>

#include "backend/base/file.h"
#include "backend/base/print.h"
#include "backend/client/plugin.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"

/* Use the plugin's answer for at least this long, even if it expires earlier. */
#define ANSWER_MS 10000
/* After a failure of the plugin or of a read of the files, don't retry for this long. */
#define FAILED_MS 5000
/* Refresh a refused credential at most once in this time. */
#define REFUSED_MS 5000
/* Read the files again after FILES_MS. Requests wait for this at most FILES_LIMIT_MS. */
#define FILES_MS       60000
#define FILES_LIMIT_MS 10000
/*
 * Renew the plugin's answer when a tenth of its lifetime is left, but not earlier than SKEW_NS
 * before it expires.
 */
#define SKEW_NS	  60000000000
#define TOKEN_MAX (256u << 10)
#define PEM_MAX	  (1u << 20)

struct credential_waiter {
	uint64_t ticket;
	credential_fn fn;
	void *data;
	struct credential_waiter *prev, *next;
};

/* The pool reads the certificate and its key one right after the other, so that they match. */
struct credential_files {
	char *token; /* without surrounding white space; valid in a header line */
	char *cert_pem, *key_pem;
};

/* One read of the files. Until it has ended, only the pool uses the members, except CR. */
struct credential_reading {
	struct credential *cr; /* NULL if the result is no longer needed */
	const struct spec_connection *c;
	/* LOAD of credential_set_load; NULL if the kubeconfig need not be read */
	int (*load)(void *data, struct spec_connection *ret);
	void *load_data;
	/* true if LOAD has succeeded: FRESH and INFO replace the old connection */
	bool loaded;
	struct spec_connection fresh;
	char *info;
	struct credential_files files;
	int err;
	char *text;
};

struct credential {
	struct loop *loop;
	/* FRESH, or the connection that was passed to credential_new */
	const struct spec_connection *c;
	struct spec_connection fresh;
	int (*load)(void *data, struct spec_connection *ret); /* NULL if C never changes */
	void *load_data;
	char *info; /* the plugin's KUBERNETES_EXEC_INFO */
	struct credential_waiter *waiters;
	uint64_t tickets;
	uint64_t refused_ms; /* when a refusal last led to a refresh; 0: never */

	char *line, *cert, *key; /* the current credential */
	uint64_t generation;	 /* grows with each change of LINE, CERT or KEY */

	enum { KNOWN, READING, LATE } files_state;
	int files_err; /* of the last read of the files */
	char *files_text;
	struct credential_files files;
	uint64_t files_due_ms;
	struct credential_reading *reading; /* in READING and LATE */
	struct loop_timer limit;	    /* set in READING */

	enum { AWAY, ASKED, LEAVING, AGAIN } plugin_state;
	int plugin_err; /* of the last run; 0 if it succeeded, or ANSWER is still valid */
	char *plugin_text;
	struct plugin *run; /* NULL in AWAY */
	struct spec_credential answer;
	int64_t renew_ns;   /* when ANSWER must be renewed; 0: never */
	uint64_t plugin_ms; /* when the plugin may run again, by loop_now_ms */
	/* true if a user has made a request during this run, and may have logged in meanwhile */
	bool urgent;

	bool reload;	  /* the next read of the files also reads the kubeconfig */
	bool files_known; /* FILES has the contents of the last successful read */
	bool answer_known;
};

static void refresh(struct credential *cr);

/* --- the credential from all sources --- */

static char *make_line(const struct credential *cr)
{
	const struct spec_connection *c = cr->c;
	const char *token = cr->files.token    ? cr->files.token
			    : *c->token	       ? c->token
			    : cr->answer_known ? cr->answer.token
					       : "";
	cleanup(text_wipe) char *pair = NULL, *code = NULL;

	if (*c->user) {
		pair = text_print("%s:%s", c->user, c->password);
		code = spec_base64_encode(pair, strlen(pair));
		return text_print("Authorization: Basic %s", code);
	}
	return *token ? text_print("Authorization: Bearer %s", token) : NULL;
}

static void make_pair(const struct credential *cr, char **ret_cert, char **ret_key)
{
	const struct spec_connection *c = cr->c;
	const char *cert = *c->cert_pem ? c->cert_pem : cr->files.cert_pem;
	const char *key = *c->key_pem ? c->key_pem : cr->files.key_pem;

	if (!cert && cr->answer_known && *cr->answer.cert_pem) {
		cert = cr->answer.cert_pem;
		key = cr->answer.key_pem;
	}
	if (!cert || !key)
		return;
	*ret_cert = text_copy(cert);
	*ret_key = text_copy(key);
}

static void wipe_parts(struct credential *cr)
{
	text_wipe(&cr->line);
	text_wipe(&cr->cert);
	text_wipe(&cr->key);
}

/* --- callers that wait --- */

static void answer_one(struct credential *cr, credential_fn fn, void *data)
{
	cleanup(text_wipe) char *line = NULL, *cert = NULL, *key = NULL;
	struct credential_parts parts;

	if (cr->files_err < 0)
		return fn(data, cr->files_err, NULL, cr->files_text);
	if (cr->plugin_err < 0)
		return fn(data, cr->plugin_err, NULL, cr->plugin_text);
	line = make_line(cr);
	make_pair(cr, &cert, &key);
	if (!streq(line, cr->line) || !streq(cert, cr->cert) || !streq(key, cr->key)) {
		cr->generation++;
		wipe_parts(cr);
		cr->line = take_ptr(line);
		cr->cert = take_ptr(cert);
		cr->key = take_ptr(key);
	}
	parts = (struct credential_parts){cr->line, cr->cert, cr->key, cr->generation};
	return fn(data, 0, &parts, "");
}

static bool must_wait(const struct credential *cr)
{
	return cr->files_state == READING || cr->plugin_state == ASKED ||
	       cr->plugin_state == AGAIN ||
	       (cr->reload && cr->plugin_state == LEAVING && loop_now_ms() >= cr->files_due_ms);
}

/* Reply to all callers that wait now, unless a refresh is still in progress. */
static void answer_all(struct credential *cr)
{
	uint64_t last = cr->tickets;

	if (must_wait(cr))
		return;
	while (cr->waiters && cr->waiters->ticket <= last) {
		struct credential_waiter *w = cr->waiters;

		DL_DELETE(cr->waiters, w);
		answer_one(cr, w->fn, w->data);
		free(w);
	}
}

/* --- files: on the pool --- */

static void files_clear(struct credential_files *f)
{
	text_wipe(&f->token);
	text_wipe(&f->cert_pem);
	text_wipe(&f->key_pem);
}

/* True if C names files whose contents are needed. */
static bool files_any(const struct spec_connection *c)
{
	return *c->token_file || (*c->cert_file && !*c->cert_pem) || (*c->key_file && !*c->key_pem);
}

static int refuse_file(char **ret_text, int err, const char *what, const char *file,
		       const char *why)
{
	return refuse(err, ret_text, "%s file %s of the kubeconfig: %s", what, file, why);
}

static int read_token(const char *file, char **ret, char **ret_text)
{
	cleanup(text_wipe) char *text = NULL;
	size_t len, begin;
	int err = file_read_other(file, TOKEN_MAX, &text, &len);

	if (err < 0)
		return refuse_file(ret_text, err, "token", file, strerror(-err));
	begin = strspn(text, " \t\r\n");
	while (len > begin && strchr(" \t\r\n", text[len - 1]))
		len--;
	if (len == begin)
		return refuse_file(ret_text, -EINVAL, "token", file, "it is empty");
	for (size_t i = begin; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
			return refuse_file(ret_text, -EINVAL, "token", file,
					   "it contains a blank, a line break or a control "
					   "character");
	*ret = mem_copy(text + begin, len - begin);
	return 0;
}

static int read_pem(const char *what, const char *file, char **ret, char **ret_text)
{
	size_t len;
	int err = file_read_other(file, PEM_MAX, ret, &len);

	if (err < 0)
		return refuse_file(ret_text, err, what, file, strerror(-err));
	return strstr(*ret, "-----BEGIN ")
		       ? 0
		       : refuse_file(ret_text, -EINVAL, what, file, "it is not PEM");
}

/* If C has a token, an unreadable token file is not an error. */
static int read_files(const struct spec_connection *c, struct credential_files *ret,
		      char **ret_text)
{
	int err = 0;

	if (*c->cert_file && !*c->cert_pem)
		err = read_pem("client certificate", c->cert_file, &ret->cert_pem, ret_text);
	if (err == 0 && *c->key_file && !*c->key_pem)
		err = read_pem("client key", c->key_file, &ret->key_pem, ret_text);
	if (err < 0 || !*c->token_file)
		return err;
	err = read_token(c->token_file, &ret->token, ret_text);
	if (err == 0 || !*c->token)
		return err;
	free(take_ptr(*ret_text));
	return 0;
}

/* If C has a plugin, set *RET to its KUBERNETES_EXEC_INFO. After an error, set *RET_TEXT. */
static int read_info(const struct spec_connection *c, char **ret, char **ret_text)
{
	cleanup_free char *ca = NULL;
	size_t len;
	int err;

	if (!c->exec.command)
		return 0;
	if (c->exec.provide_cluster_info && *c->ca_file && !*c->ca_pem) {
		err = file_read_other(c->ca_file, PEM_MAX, &ca, &len);
		if (err < 0)
			return refuse(err, ret_text, "certificate authority %s: %s", c->ca_file,
				      strerror(-err));
	}
	*ret = spec_exec_info(c, ca);
	return 0;
}

static void read_work(void *data)
{
	struct credential_reading *r = data;

	if (r->load) {
		cleanup_free char *text = NULL;

		/* Ignore a kubeconfig that is incomplete or names another server. */
		if (r->load(r->load_data, &r->fresh) == 0 && streq(r->fresh.server, r->c->server) &&
		    read_info(&r->fresh, &r->info, &text) == 0) {
			r->loaded = true;
			r->c = &r->fresh;
		}
	}
	r->err = read_files(r->c, &r->files, &r->text);
}

/* --- files: on the I/O thread --- */

/* If an earlier read succeeded, keep its contents. Otherwise fail requests for FAILED_MS. */
static void files_failed(struct credential *cr, int err, const char *text)
{
	if (cr->files_known || !files_any(cr->c))
		return;
	cr->files_due_ms = loop_now_ms() + FAILED_MS;
	cr->files_err = err;
	text_set(&cr->files_text, "%s", text);
}

static void take_files(struct credential *cr, struct credential_reading *r)
{
	if (r->loaded && cr->plugin_state != AWAY) {
		/*
		 * The plugin still uses the old connection. Read again after the plugin has ended.
		 */
		cr->reload = true;
		cr->files_due_ms = 0;
		return;
	}
	if (r->loaded) {
		spec_connection_clear(&cr->fresh);
		cr->fresh = r->fresh;
		r->fresh = (struct spec_connection){0};
		cr->c = &cr->fresh;
		free(cr->info);
		cr->info = take_ptr(r->info);
		/*
		 * Forget an earlier failure of the plugin, because the old connection may have
		 * caused it.
		 */
		cr->plugin_err = 0;
		cr->plugin_ms = 0;
	}
	files_clear(&cr->files);
	cr->files = r->files;
	r->files = (struct credential_files){0};
	cr->files_known = true;
	cr->files_err = 0;
}

static void reading_free(struct credential_reading *r)
{
	files_clear(&r->files);
	spec_connection_clear(&r->fresh);
	free(r->info);
	free(r->text);
	free(r);
}

static void read_done(void *data)
{
	struct credential_reading *r = data;
	struct credential *cr = r->cr;

	if (!cr) {
		reading_free(r);
		return;
	}
	cr->files_state = KNOWN;
	cr->reading = NULL;
	loop_timer_stop(&cr->limit);
	cr->files_due_ms = loop_now_ms() + FILES_MS;
	if (r->err < 0)
		files_failed(cr, r->err, r->text);
	else
		take_files(cr, r);
	reading_free(r);
	if (cr->waiters)
		refresh(cr);
	answer_all(cr);
}

static void read_is_late(void *data)
{
	struct credential *cr = data;

	cr->files_state = LATE;
	files_failed(cr, -ETIMEDOUT,
		     "kxfs could not read the credential files of the "
		     "kubeconfig in time");
	if (cr->waiters)
		refresh(cr);
	answer_all(cr);
}

/* True if the files must be read. While a plugin runs, it uses the old connection, so wait. */
static bool files_due(const struct credential *cr)
{
	if (cr->reload && cr->plugin_state != AWAY)
		return false;
	return (cr->reload || files_any(cr->c)) && cr->files_state == KNOWN &&
	       loop_now_ms() >= cr->files_due_ms;
}

static void files_refresh(struct credential *cr)
{
	struct credential_reading *r = new0(struct credential_reading);

	r->cr = cr;
	r->c = cr->c;
	if (cr->reload) {
		r->load = cr->load;
		r->load_data = cr->load_data;
	}
	cr->reload = false;
	cr->files_state = READING;
	cr->reading = r;
	loop_timer_set(&cr->limit, FILES_LIMIT_MS);
	loop_work(cr->loop, read_work, read_done, r);
}

/* --- the plugin --- */

static bool answer_is_good(const struct credential *cr, int64_t now)
{
	return cr->answer_known && (cr->answer.expires == 0 || now < cr->answer.expires);
}

static void on_plugin_done(void *data, int err, struct spec_credential *answer, const char *text)
{
	struct credential *cr = data;

	cr->plugin_state = err < 0 && cr->urgent ? AGAIN : LEAVING;
	cr->urgent = false;
	if (err < 0) {
		cr->plugin_ms = loop_now_ms() + FAILED_MS;
		if (!answer_is_good(cr, loop_time_ns())) {
			cr->plugin_err = err;
			text_set(&cr->plugin_text, "%s", text);
		}
	} else {
		int64_t life = answer->expires - loop_time_ns();

		spec_credential_clear(&cr->answer);
		cr->answer = *answer;
		*answer = (struct spec_credential){0};
		cr->answer_known = true;
		cr->plugin_err = 0;
		cr->plugin_ms = loop_now_ms() + ANSWER_MS;
		cr->renew_ns = cr->answer.expires;
		if (cr->answer.expires && life > 0)
			cr->renew_ns -= min_of(life / 10, (int64_t)SKEW_NS);
	}
	if (cr->plugin_state == AGAIN)
		cr->plugin_ms = 0;
	/* The user may edit the kubeconfig to use another login, so read it again. */
	if (err < 0 && cr->load) {
		cr->reload = true;
		cr->files_due_ms = cr->plugin_ms;
	}
	answer_all(cr);
}

static void on_plugin_gone(void *data)
{
	struct credential *cr = data;

	cr->plugin_state = AWAY;
	cr->run = NULL;
	if (!cr->waiters)
		return;
	refresh(cr);
	answer_all(cr);
}

/* True if the plugin must run. A kubeconfig that is being read may name another one, so wait. */
static bool plugin_due(const struct credential *cr)
{
	if (cr->files_state == READING && cr->reading->load)
		return false;
	if (!cr->c->exec.command || loop_now_ms() < cr->plugin_ms)
		return false;
	return !cr->answer_known || (cr->renew_ns && loop_time_ns() >= cr->renew_ns);
}

static void plugin_refresh(struct credential *cr)
{
	const struct plugin_events events = {on_plugin_done, on_plugin_gone, cr};

	if (cr->plugin_state == LEAVING)
		cr->plugin_state = AGAIN;
	if (cr->plugin_state != AWAY)
		return;
	cr->run = plugin_start(cr->loop, cr->c, cr->info, &events);
	cr->plugin_state = ASKED;
}

/* --- requests for credentials --- */

static void refresh(struct credential *cr)
{
	if (files_due(cr))
		files_refresh(cr);
	if (plugin_due(cr))
		plugin_refresh(cr);
}

uint64_t credential_get(struct credential *cr, credential_fn fn, void *data)
{
	struct credential_waiter *w;

	assert(loop_is_here(cr->loop));
	refresh(cr);
	if (!must_wait(cr)) {
		answer_one(cr, fn, data);
		return 0;
	}
	w = new0(struct credential_waiter);
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
	if (!files_any(cr->c) && !cr->c->exec.command && !cr->load)
		return false;
	/* The result of a refresh that is in progress may help this request, too. */
	if (cr->refused_ms && now - cr->refused_ms < REFUSED_MS)
		return cr->reload || cr->files_state == READING ||
		       (cr->c->exec.command && !cr->answer_known);
	cr->refused_ms = now;
	cr->files_due_ms = 0;
	cr->reload = cr->load;
	cr->answer_known = false;
	cr->plugin_ms = 0;
	return true;
}

void credential_retry_now(struct credential *cr)
{
	cr->refused_ms = 0;
	cr->urgent = cr->plugin_state == ASKED;
	if (cr->plugin_err < 0) {
		cr->plugin_ms = 0;
		/* The user may have changed the kubeconfig to log in. */
		cr->reload = cr->load;
	}
	if (cr->plugin_err < 0 || cr->files_err < 0)
		cr->files_due_ms = 0;
}

/* --- life cycle --- */

int credential_new(struct loop *loop, const struct spec_connection *c, struct credential **ret,
		   char **ret_text)
{
	struct credential *cr = new0(struct credential);
	int err;

	*ret_text = NULL;
	cr->loop = loop;
	cr->c = c;
	cr->generation = 1;
	loop_timer_init(&cr->limit, loop, read_is_late, cr);
	err = read_info(c, &cr->info, ret_text);
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
	struct credential_waiter *w, *next;

	DL_FOREACH_SAFE(cr->waiters, w, next) {
		DL_DELETE(cr->waiters, w);
		free(w);
	}
	if (cr->plugin_state != AWAY) {
		cr->plugin_state = LEAVING;
		plugin_stop(cr->run);
	}
	loop_timer_stop(&cr->limit);
	if (cr->reading)
		cr->reading->cr = NULL;
	cr->reading = NULL;
	cr->files_state = KNOWN;
}

void credential_free(struct credential *cr)
{
	if (!cr)
		return;
	plugin_free(cr->run);
	files_clear(&cr->files);
	spec_credential_clear(&cr->answer);
	spec_connection_clear(&cr->fresh);
	wipe_parts(cr);
	free(cr->files_text);
	free(cr->plugin_text);
	free(cr->info);
	free(cr);
}
