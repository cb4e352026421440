/* SPDX-License-Identifier: MIT */
/*
 * Keys are known until they are due: those of the environment for ever, those of the file for a minute, those of the
 * token service until shortly before they end. Then, or when the server has refused them, they are got anew, once for
 * all who wait. What fails leaves those that there were, as long as they are good.
 *
 *	state   | what is under way                                      | what ends it           | next
 *	KNOWN   | nothing                                                | they are due, refused  | READING
 *	READING | the pool reads the file, or the token                  | it has read            | KNOWN; ASKING
 *	        |                                                        | 10 s                   | LATE
 *	LATE    | the pool still reads; nobody waits for it any more     | it has read            | KNOWN; ASKING
 *	ASKING  | the token service is asked                             | its answer, 10 s       | KNOWN
 */
#include "backend/archive/s3_keys.h"

#include <errno.h>
#include <utlist.h>

#include "backend/base/file.h"
#include "backend/base/group.h"
#include "backend/client/http.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/s3/place.h"
#include "spec/s3/reply.h"

#define KEYS_FILE_MAX (1u << 20)
#define FILE_DUE_MS   60000
#define READ_MS	      10000
#define ASK_MS	      10000
#define FAILED_MS     5000	   /* a failure is the answer for so long */
#define EARLY_NS      300000000000 /* so long before they end they are renewed, if they live longer */
#define SECOND_NS     1000000000

struct keys_waiter {
	s3_keys_fn fn;
	void *data;
	struct keys_waiter *prev, *next;
};

/* One reading; it owns all of this while it is on the pool. */
struct keys_reading {
	struct s3_keys *k; /* NULL: nobody wants it any more */
	char *file, *profile;
	struct spec_s3_keys keys;
	char *token;
	int err;
	char *text;
};

struct s3_keys {
	struct loop *loop;
	char *file;	      /* NULL: the keys are those of the environment */
	char *profile;	      /* of the file; NULL: it holds a token */
	char *role, *session; /* for the token */
	char *service;	      /* its URL, for messages */
	struct http *http;    /* NULL: no token */
	struct spec_connection connection;
	enum { KNOWN, READING, LATE, ASKING } state;
	struct keys_reading *reading; /* in READING and LATE */
	struct loop_timer limit;      /* in READING */
	struct spec_s3_keys keys;     /* all NULL: none are known */
	uint64_t due_ms,
		end_ms; /* when they are to be got anew, and when they end; UINT64_MAX: never */
	uint64_t refused_ms; /* when a refusal last made them due; 0: never */
	int err;	     /* why there are none; until DUE_MS that is the answer */
	char *text;
	struct keys_waiter *waiters;
	struct group group; /* what is posted, and HTTP until it has stopped */
	bool posted;
};

/* --- who waits --- */

static bool keys_good(const struct s3_keys *k)
{
	return k->keys.id && loop_now_ms() < k->end_ms;
}

static void keys_answer(struct s3_keys *k)
{
	struct keys_waiter *w;
	struct spec_s3_keys keys = {0};
	size_t n;
	int err = keys_good(k) ? 0 : k->err ? k->err : -ETIMEDOUT;
	cleanup_free char *text = text_copy(!err ? "" : k->err ? k->text : "the keys have ended");

	if (!err)
		spec_s3_keys_copy(&keys, &k->keys);
	/* Who is called may ask again, or stop all. */
	DL_COUNT(k->waiters, w, n);
	while (n-- > 0 && (w = k->waiters)) {
		DL_DELETE(k->waiters, w);
		w->fn(w->data, err, &keys, text);
		free(w);
	}
	spec_s3_keys_clear(&keys);
}

bool s3_keys_refused(struct s3_keys *k, const struct spec_s3_keys *keys)
{
	uint64_t now = loop_now_ms();

	if (!k->file)
		return false;
	if (!spec_s3_keys_same(&k->keys, keys) || k->state == READING || k->state == ASKING)
		return true;
	if (k->refused_ms && now < k->refused_ms + FAILED_MS)
		return false;
	k->refused_ms = now;
	k->due_ms = now;
	return true;
}

/* --- getting them --- */

static void keys_failed(struct s3_keys *k, int err, const char *text)
{
	k->state = KNOWN;
	k->due_ms = loop_now_ms() + FAILED_MS;
	k->err = err;
	text_set(&k->text, "%s", text);
	return keys_answer(k);
}

/* KEYS, which are taken, are good until END_MS. */
static void keys_take(struct s3_keys *k, struct spec_s3_keys *keys, uint64_t due_ms,
		      uint64_t end_ms)
{
	spec_s3_keys_clear(&k->keys);
	k->keys = *keys;
	*keys = (struct spec_s3_keys){0};
	k->state = KNOWN;
	k->due_ms = due_ms;
	k->end_ms = end_ms;
	k->err = 0;
	return keys_answer(k);
}

/* The service's own clock says how long its keys live: ours may be wrong. */
static void on_token_reply(void *data, const struct http_reply *reply)
{
	struct s3_keys *k = data;
	struct spec_s3_keys keys cleanup(spec_s3_keys_clear) = {0};
	const struct spec_s3_asked asked = {
		.verb = "AssumeRoleWithWebIdentity at",
		.name = k->service,
		.bucket = "",
	};
	cleanup_free char *text = NULL;
	int64_t end, now = reply->date ? reply->date * SECOND_NS : loop_time_ns();
	uint64_t lives;
	bool other;
	int err;

	if (reply->err)
		return keys_failed(k, reply->err, reply->text);
	if (reply->status != 200) {
		err = spec_s3_refusal(reply->status, reply->body, reply->len, &asked, &other,
				      &text);
		return keys_failed(k, err == -ENOENT ? -EACCES : err, text);
	}
	err = spec_s3_token_parse(reply->body, reply->len, &keys, &end);
	if (err || end <= now) {
		text = text_print("%s has not answered with keys that are good", k->service);
		return keys_failed(k, -EIO, text);
	}
	lives = (uint64_t)(end - now);
	return keys_take(k, &keys,
			 loop_now_ms() + (lives - min_of(lives / 2, (uint64_t)EARLY_NS)) / 1000000,
			 loop_now_ms() + lives / 1000000);
}

/* On the pool. */
static void keys_read(void *data)
{
	struct keys_reading *r = data;
	cleanup(text_wipe) char *text = NULL;
	size_t len;

	r->err = file_read_other(r->file, KEYS_FILE_MAX, &text, &len);
	if (r->err < 0) {
		r->text = text_print("%s: %s", r->file, strerror(-r->err));
	} else if (r->profile) {
		r->err = spec_s3_keys_read(text, r->file, r->profile, &r->keys, &r->text);
	} else {
		text[strcspn(text, " \t\r\n")] = '\0';
		if (!*text) {
			r->err = -EINVAL;
			r->text = text_print("%s: no token is in it", r->file);
		}
		r->token = take_ptr(text);
	}
}

static void keys_have_read(void *data)
{
	struct keys_reading *r = data;
	struct s3_keys *k = r->k;

	if (k) {
		k->reading = NULL;
		loop_timer_stop(&k->limit);
	}
	/* That there is no such file is not that there is no such object. */
	if (k && r->err < 0) {
		keys_failed(k, r->err == -ENOENT ? -EACCES : r->err, r->text);
	} else if (k && k->http) {
		cleanup(text_wipe) char *form = spec_s3_token_form(k->role, k->session, r->token);
		const struct http_call call = {
			.method = HTTP_POST,
			.path = "/",
			.body = form,
			.len = strlen(form),
			.type = "application/x-www-form-urlencoded",
			.deadline_ms = ASK_MS,
			.done = on_token_reply,
			.data = k,
		};

		k->state = ASKING;
		http_send(k->http, &call);
	} else if (k) {
		keys_take(k, &r->keys, loop_now_ms() + FILE_DUE_MS, UINT64_MAX);
	}
	free(r->file);
	free(r->profile);
	spec_s3_keys_clear(&r->keys);
	text_wipe(&r->token);
	free(r->text);
	free(r);
}

static void keys_read_late(void *data)
{
	struct s3_keys *k = data;
	cleanup_free char *text = text_print("%s: not read within %d s", k->file, READ_MS / 1000);

	keys_failed(k, -ETIMEDOUT, text);
	k->state = LATE;
}

/* --- who asks --- */

/* Somebody has asked: those who wait are answered by what there is, or it is got anew. */
static void keys_posted(void *data)
{
	struct s3_keys *k = data;

	k->posted = false;
	if (k->waiters && k->state == KNOWN && loop_now_ms() >= k->due_ms) {
		struct keys_reading *r = new0(struct keys_reading);

		r->k = k;
		r->file = text_copy(k->file);
		r->profile = k->profile ? text_copy(k->profile) : NULL;
		k->state = READING;
		k->reading = r;
		loop_timer_set(&k->limit, READ_MS);
		loop_work(k->loop, keys_read, keys_have_read, r);
	} else if (k->state == KNOWN || k->state == LATE) {
		keys_answer(k);
	}
	group_leave(&k->group);
}

void s3_keys_get(struct s3_keys *k, s3_keys_fn fn, void *data)
{
	struct keys_waiter *w = new0(struct keys_waiter);

	w->fn = fn;
	w->data = data;
	DL_APPEND(k->waiters, w);
	if ((k->state != KNOWN && k->state != LATE) || k->posted)
		return;
	k->posted = true;
	group_enter(&k->group);
	loop_post(k->loop, keys_posted, k);
}

/* --- life --- */

/* What VARIABLE of the environment says; NULL also when that is nothing. */
static const char *keys_variable(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value ? value : NULL;
}

/* A token is enough to take the role: it goes to this machine, or over TLS. */
static bool keys_service_ok(const char *url)
{
	static const char *const ok[] = {"https://", "http://127.0.0.1:", "http://localhost:"};

	for (size_t i = 0; i < array_size(ok); i++)
		if (!strncmp(url, ok[i], strlen(ok[i])))
			return true;
	return false;
}

static int keys_by_token(struct s3_keys *k, const char *region, const char *ca_file,
			 char **ret_text)
{
	const char *url = keys_variable("AWS_ENDPOINT_URL_STS");
	const char *session = keys_variable("AWS_ROLE_SESSION_NAME");
	cleanup_free char *why = NULL;
	int err;

	k->file = text_copy(keys_variable("AWS_WEB_IDENTITY_TOKEN_FILE"));
	k->role = text_copy(keys_variable("AWS_ROLE_ARN"));
	k->session = text_copy(session ? session : "kxfs");
	k->service = url ? text_copy(url) : text_print("https://sts.%s.amazonaws.com", region);
	if (!keys_service_ok(k->service)) {
		*ret_text = text_copy(
			"AWS_ENDPOINT_URL_STS must be a URL with https, since a token goes there");
		return -EINVAL;
	}
	spec_connection_bare(k->service, ca_file, &k->connection);
	err = http_new(k->loop, &k->connection, NULL, &k->http, &why);
	if (err)
		*ret_text = text_print("%s: %s", k->service, why);
	return err;
}

int s3_keys_new(struct loop *loop, const char *region, const char *ca_file, struct s3_keys **ret,
		char **ret_text)
{
	const char *file = keys_variable("AWS_SHARED_CREDENTIALS_FILE");
	const char *home = keys_variable("HOME");
	const char *profile = keys_variable("AWS_PROFILE");
	struct s3_keys *k = new0(struct s3_keys);
	int err = 0;

	k->loop = loop;
	group_init(&k->group, loop);
	loop_timer_init(&k->limit, loop, keys_read_late, k);
	if (keys_variable("AWS_ACCESS_KEY_ID")) {
		k->due_ms = k->end_ms = UINT64_MAX;
		err = spec_s3_keys_set(&k->keys, keys_variable("AWS_ACCESS_KEY_ID"),
				       keys_variable("AWS_SECRET_ACCESS_KEY"),
				       keys_variable("AWS_SESSION_TOKEN"), "the environment",
				       ret_text);
	} else if (keys_variable("AWS_WEB_IDENTITY_TOKEN_FILE") && keys_variable("AWS_ROLE_ARN")) {
		err = keys_by_token(k, region, ca_file, ret_text);
	} else if (file || home) {
		k->file = file ? text_copy(file) : text_print("%s/.aws/credentials", home);
		k->profile = text_copy(profile ? profile : "default");
	} else {
		*ret_text =
			text_copy("no keys: neither AWS_ACCESS_KEY_ID nor a file of them is named");
		err = -ENOKEY;
	}
	if (err)
		s3_keys_free(k);
	else
		*ret = k;
	return err;
}

static void keys_leave(void *data)
{
	struct s3_keys *k = data;

	group_leave(&k->group);
}

void s3_keys_stop(struct s3_keys *k, loop_fn fn, void *data)
{
	struct keys_waiter *w, *next;

	loop_timer_stop(&k->limit);
	if (k->reading)
		k->reading->k = NULL;
	DL_FOREACH_SAFE(k->waiters, w, next)
		free(w);
	k->waiters = NULL;
	if (k->http) {
		group_enter(&k->group);
		http_stop(k->http, keys_leave, k);
	}
	group_when_empty(&k->group, fn, data);
}

void s3_keys_free(struct s3_keys *k)
{
	if (!k)
		return;
	http_free(k->http);
	spec_connection_clear(&k->connection);
	spec_s3_keys_clear(&k->keys);
	free(k->file);
	free(k->profile);
	free(k->role);
	free(k->session);
	free(k->service);
	free(k->text);
	free(k);
}
