/* SPDX-License-Identifier: MIT */
/*
 * state   | what is under way                   | what ends it          | next
 * IDLE    | nothing                             | keys are due          | READING
 * READING | the pool reads a file               | it has read           | IDLE; of a web identity ASKING
 *         |                                     | 10 s                  | IDLE
 * ASKING  | the token service is asked          | its answer            | IDLE
 *
 * Keys are due when there are none, a minute after a file was read, and some time before they expire. While there are
 * keys that are still good, nobody waits for new ones.
 */
#include "backend/archive/s3_keys.h"

#include <errno.h>
#include <utlist.h>

#include "backend/base/file.h"
#include "backend/client/http.h"
#include "spec/base/mem.h"
#include "spec/base/url.h"

#define FILE_MAX	(1u << 20)
#define FILES_MS	60000
#define FILES_LIMIT_MS	10000
#define FAILED_MS	5000
#define REFUSED_MS	5000
#define SERVICE_MS	20000
#define RENEW_BEFORE_NS INT64_C(300000000000)

struct waiter {
	uint64_t ticket;
	s3_keys_fn fn;
	void *data;
	struct waiter *prev, *next;
};

/* One reading of a file; it owns all of this while it is on the pool. */
struct reading {
	struct s3_keys *owner; /* NULL: nobody wants the result any more */
	char *file, *profile;  /* if PROFILE is NULL, the file is a token */
	char *token;
	struct spec_s3_keys keys;
	int err;
};

struct s3_keys {
	struct loop *loop;
	enum { IDLE, READING, ASKING } state;
	bool fixed;	      /* the keys are those of the environment */
	char *file;	      /* the token of a web identity, or the credentials file */
	char *role, *name;    /* for a web identity; NULL: there is none */
	char *profile;	      /* the profile in the file */
	struct http *service; /* NULL: no token service is asked */
	struct spec_connection connection;
	struct spec_s3_keys keys;
	bool known;
	uint64_t generation;
	uint64_t due_ms;     /* when keys are read or asked for again */
	uint64_t refused_ms; /* when a refusal last led to that; 0: none has */
	int err;	     /* error of the last try, which counts until DUE_MS; 0: none */
	char *text;
	struct reading *reading;
	struct loop_timer limit;
	struct waiter *waiters;
	uint64_t tickets;
};

static bool are_good(const struct s3_keys *k)
{
	return k->known && (!k->keys.expires || loop_time_ns() < k->keys.expires);
}

/* Answer all who have waited until now; one of them may ask again, or stop everything. */
static void answer_all(struct s3_keys *k)
{
	const uint64_t last = k->tickets;

	while (k->waiters && k->waiters->ticket <= last) {
		struct waiter *w = k->waiters;
		const bool good = are_good(k);

		DL_DELETE(k->waiters, w);
		w->fn(w->data,
		      good     ? 0
		      : k->err ? k->err
			       : -EACCES,
		      good ? &k->keys : NULL, k->generation, good || !k->text ? "" : k->text);
		free(w);
	}
}

static void failed(struct s3_keys *k, int err, const char *text)
{
	k->state = IDLE;
	k->err = err;
	k->due_ms = loop_now_ms() + FAILED_MS;
	text_set(&k->text, "%s", text);
	answer_all(k);
}

/* KEYS, which is taken over, are the keys from now on. */
static void succeeded(struct s3_keys *k, struct spec_s3_keys *keys)
{
	const int64_t life = keys->expires ? keys->expires - loop_time_ns() : 0;

	if (!k->known || !streq(keys->id, k->keys.id) || !streq(keys->secret, k->keys.secret) ||
	    !streq(keys->session, k->keys.session))
		k->generation++;
	spec_s3_keys_clear(&k->keys);
	k->keys = *keys;
	*keys = (struct spec_s3_keys){0};
	k->known = true;
	k->state = IDLE;
	k->err = 0;
	k->due_ms = loop_now_ms() + FILES_MS;
	if (life > 0)
		k->due_ms = loop_now_ms() +
			    (uint64_t)max_of(life - RENEW_BEFORE_NS, life / 2) / UINT64_C(1000000);
	answer_all(k);
}

/* --- the token service --- */

static void on_reply(void *data, const struct http_reply *reply)
{
	struct s3_keys *k = data;
	struct spec_s3_error e;
	struct spec_s3_keys keys;
	cleanup_free char *text = NULL;

	if (http_succeeded(reply) && spec_s3_keys_reply(reply->body, reply->len, &keys))
		return succeeded(k, &keys);
	if (reply->err) {
		text = text_print("the token service: %s", reply->text);
		return failed(k, reply->err == -EFBIG ? -EIO : reply->err, text);
	}
	spec_s3_error_parse(reply->body, reply->len, &e);
	text = text_print("the token service gives no keys for AWS_ROLE_ARN: %d %s%s%s",
			  reply->status, e.code, *e.message ? ": " : "", e.message);
	spec_s3_error_clear(&e);
	failed(k, -EACCES, text);
}

static void ask_service(struct s3_keys *k, const char *token)
{
	cleanup_free char *role = spec_url_escape(k->role), *name = spec_url_escape(k->name);
	cleanup(text_wipe) char *escaped = spec_url_escape(token);
	cleanup(text_wipe) char *body =
		text_print("Action=AssumeRoleWithWebIdentity&RoleArn=%s&RoleSessionName=%s&"
			   "Version=2011-06-15&WebIdentityToken=%s",
			   role, name, escaped);

	k->state = ASKING;
	http_send(k->service, &(struct http_call){
				      .method = HTTP_POST,
				      .path = "/",
				      .headers = "Content-Type: application/x-www-form-urlencoded\n"
						 "Accept: application/xml\n",
				      .body = body,
				      .len = strlen(body),
				      .deadline_ms = SERVICE_MS,
				      .done = on_reply,
				      .data = k,
			      });
}

/* --- files --- */

static void reading_free(struct reading *r)
{
	free(r->file);
	free(r->profile);
	text_wipe(&r->token);
	spec_s3_keys_clear(&r->keys);
	free(r);
}

static void read_file(void *data)
{
	struct reading *r = data;
	cleanup(text_wipe) char *text = NULL;
	size_t len;

	r->err = file_read_other(r->file, FILE_MAX, &text, &len);
	if (r->err)
		return;
	if (r->profile) {
		r->err = spec_s3_keys_file(text, len, r->profile, &r->keys);
		if (r->err == -ENOENT)
			r->err = -ESRCH; /* the file is there, but has no such profile */
		return;
	}
	len = strcspn(text, " \t\r\n");
	r->token = mem_copy(text, len);
	if (len == 0)
		r->err = -EINVAL;
}

static void on_read(void *data)
{
	struct reading *r = data;
	struct s3_keys *k = r->owner;
	cleanup_free char *text = NULL;

	if (!k) {
		reading_free(r);
		return;
	}
	k->reading = NULL;
	loop_timer_stop(&k->limit);
	if (r->err == -ESRCH)
		text = text_print("%s: it has no profile %s (AWS_PROFILE)", r->file, r->profile);
	else if (r->err == -EINVAL && r->profile)
		text = text_print("%s: profile %s has no aws_access_key_id and "
				  "aws_secret_access_key",
				  r->file, r->profile);
	else if (r->err == -ENOENT && r->profile)
		text = text_print("no keys: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
				  "AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, are not set, and "
				  "%s is not there",
				  r->file);
	else if (r->err)
		text = text_print("%s: %s", r->file, file_fault(r->err));
	if (r->err)
		failed(k, -EACCES, text);
	else if (r->profile)
		succeeded(k, &r->keys);
	else
		ask_service(k, r->token);
	reading_free(r);
}

static void on_late(void *data)
{
	struct s3_keys *k = data;
	cleanup_free char *text = text_print("%s: can't be read in time", k->file);

	k->reading->owner = NULL;
	k->reading = NULL;
	failed(k, -ETIMEDOUT, text);
}

/* --- asking --- */

void s3_keys_get(struct s3_keys *k, s3_keys_fn fn, void *data)
{
	struct waiter *w;

	if (!k->fixed && loop_now_ms() >= k->due_ms && k->state == IDLE) {
		struct reading *r = new0(struct reading);

		r->owner = k;
		r->file = text_copy(k->file);
		r->profile = k->role ? NULL : text_copy(k->profile);
		k->state = READING;
		k->reading = r;
		loop_timer_set(&k->limit, FILES_LIMIT_MS);
		loop_work(k->loop, read_file, on_read, r);
	}
	if (are_good(k))
		return fn(data, 0, &k->keys, k->generation, "");
	if (k->state == IDLE)
		return fn(data, k->err, NULL, k->generation, k->text);
	w = new0(struct waiter);
	w->ticket = ++k->tickets;
	w->fn = fn;
	w->data = data;
	DL_APPEND(k->waiters, w);
}

bool s3_keys_refused(struct s3_keys *k, uint64_t generation)
{
	const uint64_t now = loop_now_ms();

	if (generation != k->generation)
		return true;
	if (k->fixed || (k->refused_ms && now - k->refused_ms < REFUSED_MS))
		return false;
	k->refused_ms = now;
	k->known = false;
	k->due_ms = 0;
	return true;
}

/* --- life --- */

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int s3_keys_new(struct loop *loop, const char *region, struct s3_keys **ret, char **ret_text)
{
	const char *id = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY");
	const char *token = variable("AWS_WEB_IDENTITY_TOKEN_FILE");
	const char *role = variable("AWS_ROLE_ARN"), *name = variable("AWS_ROLE_SESSION_NAME");
	const char *file = variable("AWS_SHARED_CREDENTIALS_FILE");
	const char *profile = variable("AWS_PROFILE"), *home = variable("HOME");
	const char *given = variable("AWS_ENDPOINT_URL_STS"), *ca = variable("AWS_CA_BUNDLE");
	cleanup_free char *service = text_print("https://sts.%s.amazonaws.com%s", region,
						strncmp(region, "cn-", 3) ? "" : ".cn");
	struct s3_keys *k = new0(struct s3_keys);
	int err = 0;

	k->loop = loop;
	k->generation = 1;
	loop_timer_init(&k->limit, loop, on_late, k);
	if (id || secret) {
		k->fixed = k->known =
			spec_s3_keys_set(&k->keys, id, secret, variable("AWS_SESSION_TOKEN"));
		err = k->fixed ? 0 : -EINVAL;
		if (err)
			*ret_text = text_copy("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not "
					      "both keys");
	} else if (token && role) {
		k->file = text_copy(token);
		k->role = text_copy(role);
		k->name = text_copy(name ? name : "kxfs");
		spec_connection_bare(&k->connection, given ? given : service);
		text_set(&k->connection.ca_file, "%s", ca ? ca : "");
		err = http_new(loop, &k->connection, NULL, &k->service, ret_text);
	} else {
		k->file = file ? text_copy(file)
			       : text_print("%s/.aws/credentials", home ? home : "");
		k->profile = text_copy(profile ? profile : "default");
	}
	if (err) {
		s3_keys_free(k);
		return err;
	}
	*ret = k;
	return 0;
}

void s3_keys_stop(struct s3_keys *k, loop_fn fn, void *data)
{
	struct waiter *w, *next;

	DL_FOREACH_SAFE(k->waiters, w, next)
		free(w);
	k->waiters = NULL;
	loop_timer_stop(&k->limit);
	if (k->reading)
		k->reading->owner = NULL;
	k->reading = NULL;
	if (k->service)
		http_stop(k->service, fn, data);
	else
		loop_post(k->loop, fn, data);
}

void s3_keys_free(struct s3_keys *k)
{
	if (!k)
		return;
	http_free(k->service);
	spec_connection_clear(&k->connection);
	spec_s3_keys_clear(&k->keys);
	free(k->file);
	free(k->role);
	free(k->name);
	free(k->profile);
	free(k->text);
	free(k);
}
