/* SPDX-License-Identifier: MIT */
/*
 * Operations on a bucket. Each waits for keys and then is one request, or, when the server has refused the keys and
 * there are others, two; a list in which all is foreign goes on behind that. Names of objects are bounded by who asks,
 * replies here.
 */
#include "backend/archive/s3.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <utlist.h>

#include "backend/archive/s3_keys.h"
#include "backend/base/group.h"
#include "backend/client/http.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/s3/place.h"
#include "spec/s3/reply.h"

#define PUT_MS	  60000
#define READ_MS	  30000
#define AWAY_MS	  5000
#define PAGES_MAX 100 /* of a list in a row in which there is nothing of ours */
/* Earlier ones sign the hash of an empty body, whatever they are told. */
#define SIGNS_SINCE 0x075800

struct s3 {
	struct loop *loop;
	struct spec_s3_place place;
	struct spec_connection connection;
	struct http *http;
	struct s3_keys *keys;
	char *scope; /* of signatures */
	struct s3_op *ops;
	struct group group;  /* posted ends, and what has not stopped yet */
	uint64_t away_until; /* loop_now_ms: until then nothing is asked, and this is the answer: */
	int away_err;
	char *away_text;
};

struct s3_op {
	struct s3 *s;
	char *name;	   /* behind the archive's prefix */
	char *path;	   /* of the request */
	const char *bytes; /* of a put, the caller's; NULL: it is none */
	uint64_t at;
	size_t n;
	char *after;	/* of a list; NULL: from the first */
	unsigned pages; /* of it, so far */
	struct spec_s3_keys keys;
	struct http_signature signature;
	struct http_request *request; /* while it is under way */
	bool renewed;		      /* it was sent again with other keys */
	/* One of them is set. */
	archive_done_fn on_put;
	archive_bytes_fn on_get;
	archive_list_fn on_list;
	void *data;
	struct s3_op *prev, *next;
};

static void op_begin(struct s3_op *op);

/* --- its end --- */

static void op_free(struct s3_op *op)
{
	DL_DELETE(op->s->ops, op);
	free(op->name);
	free(op->path);
	free(op->after);
	spec_s3_keys_clear(&op->keys);
	free(op);
}

static void op_fail(struct s3_op *op, int err, const char *text)
{
	const struct s3_op was = *op;
	cleanup_free char *copy = text_copy(text);

	op_free(op);
	if (was.on_put)
		was.on_put(was.data, err, copy);
	else if (was.on_get)
		was.on_get(was.data, err, copy, NULL, 0);
	else if (was.on_list)
		was.on_list(was.data, err, copy, NULL, 0, false);
}

static void op_refused(struct s3_op *op, const struct http_reply *reply)
{
	cleanup_free char *name = text_print("/%s%s", op->s->place.prefix, op->name);
	const struct spec_s3_asked asked = {
		.verb = op->on_put   ? "write"
			: op->on_get ? "read"
				     : "list",
		.name = name,
		.bucket = op->s->place.bucket,
		.ahead = reply->date ? loop_time_ns() / 1000000000 - reply->date : 0,
	};
	cleanup_free char *text = NULL;
	bool other;
	int err = spec_s3_refusal(reply->status, reply->body, reply->len, &asked, &other, &text);

	if (other && !op->renewed && s3_keys_refused(op->s->keys, &op->keys)) {
		op->renewed = true;
		op_begin(op);
		return;
	}
	op_fail(op, err, text);
}

/* --- what an answer means --- */

static void listed(struct s3_op *op, const struct http_reply *reply)
{
	struct spec_s3_list list cleanup(spec_s3_list_clear) = {0};
	cleanup_free struct archive_object *objects = NULL;
	cleanup_free char *prefix = text_print("%s%s", op->s->place.prefix, op->name);
	const struct s3_op was = *op;

	if (spec_s3_list_parse(reply->body, reply->len, prefix, op->after, &list) < 0)
		return op_fail(op, -EIO, "the answer to a list is none, or lists the same again");
	if (list.n == 0 && list.more && ++op->pages < PAGES_MAX) {
		free(op->after);
		op->after = take_ptr(list.last);
		free(op->path);
		op->path = spec_s3_list_path(prefix, op->after);
		op_begin(op);
		return;
	}
	objects = new0_n(struct archive_object, list.n);
	for (size_t i = 0; i < list.n; i++)
		objects[i] = (struct archive_object){list.v[i].name, list.v[i].size};
	op_free(op);
	was.on_list(was.data, 0, "", objects, list.n, list.more);
}

static void on_reply(void *data, const struct http_reply *reply)
{
	struct s3_op *op = data;
	struct s3 *s = op->s;
	const struct s3_op was = *op;
	/* All of the object may come, though a part was asked for; of what is behind its end, nothing. */
	size_t skip = reply->status == 206 ? 0 : (size_t)min_of(op->at, (uint64_t)reply->len);
	size_t n = reply->status == 416 ? 0 : min_of(reply->len - skip, op->n);

	op->request = NULL;
	if (reply->err == -EHOSTUNREACH || reply->err == -ETIMEDOUT) {
		/* Nobody waits for a server that was not there a moment ago. */
		s->away_until = loop_now_ms() + AWAY_MS;
		s->away_err = reply->err;
		text_set(&s->away_text, "%s", reply->text);
	}
	if (reply->err)
		return op_fail(op, reply->err, reply->text);
	if (reply->status / 100 != 2 && !(op->on_get && reply->status == 416))
		return op_refused(op, reply);
	if (op->on_list)
		return listed(op, reply);
	op_free(op);
	if (was.on_put)
		was.on_put(was.data, 0, "");
	else if (was.on_get)
		was.on_get(was.data, 0, "", reply->body + skip, n);
}

/* --- its request --- */

static void on_keys(void *data, int err, const struct spec_s3_keys *keys, const char *text)
{
	struct s3_op *op = data;
	struct s3 *s = op->s;
	struct http_call call = {
		.method = op->on_put ? HTTP_PUT : HTTP_GET,
		.path = op->path,
		.body = op->bytes,
		.len = op->n,
		.type = op->on_put ? "application/octet-stream" : NULL,
		.deadline_ms = op->on_put ? PUT_MS : READ_MS,
		.retry = !op->on_put,
		.impatient = true,
		.max_body = op->on_list ? SPEC_MAX_S3_REPLY : ARCHIVE_MAX,
		.signature = &op->signature,
		.done = on_reply,
		.data = op,
	};

	if (err)
		return op_fail(op, err, text);
	if (loop_now_ms() < s->away_until)
		return op_fail(op, s->away_err, s->away_text);
	if (op->on_get) {
		call.range_at = op->at;
		call.range = max_of(op->n, (size_t)1);
		call.len = 0;
	}
	spec_s3_keys_clear(&op->keys);
	spec_s3_keys_copy(&op->keys, keys);
	op->signature =
		(struct http_signature){s->scope, op->keys.id, op->keys.secret, op->keys.token};
	op->request = http_send(s->http, &call);
}

static void op_begin(struct s3_op *op)
{
	s3_keys_get(op->s->keys, on_keys, op);
}

static struct s3_op *op_new(struct s3 *s, const char *name, void *data)
{
	struct s3_op *op = new0(struct s3_op);

	assert(loop_is_here(s->loop));
	op->s = s;
	op->name = text_copy(name);
	op->data = data;
	DL_APPEND(s->ops, op);
	return op;
}

static char *object_path(const struct s3 *s, const char *name)
{
	cleanup_free char *key = text_print("%s%s", s->place.prefix, name);

	return spec_s3_object_path(key);
}

static void s3_put(void *impl, const char *name, const char *bytes, size_t n, archive_done_fn done,
		   void *data)
{
	struct s3_op *op = op_new(impl, name, data);

	assert(bytes && n <= ARCHIVE_MAX);
	op->path = object_path(impl, name);
	op->bytes = bytes;
	op->n = n;
	op->on_put = done;
	op_begin(op);
}

static void s3_get(void *impl, const char *name, uint64_t off, size_t n, archive_bytes_fn done,
		   void *data)
{
	struct s3_op *op = op_new(impl, name, data);

	op->path = object_path(impl, name);
	op->at = off;
	op->n = n;
	op->on_get = done;
	op_begin(op);
}

static void s3_list(void *impl, const char *prefix, const char *after, archive_list_fn done,
		    void *data)
{
	struct s3 *s = impl;
	struct s3_op *op = op_new(impl, prefix, data);
	cleanup_free char *whole = text_print("%s%s", s->place.prefix, prefix);

	op->path = spec_s3_list_path(whole, after);
	op->after = after ? text_copy(after) : NULL;
	op->on_list = done;
	op_begin(op);
}

/* --- life --- */

static void s3_leave(void *data)
{
	struct s3 *s = data;

	group_leave(&s->group);
}

static void s3_stop(void *impl, loop_fn fn, void *data)
{
	struct s3 *s = impl;

	/* No end of a request is told from here on, and no keys: nothing asks for what these ends free. */
	group_enter(&s->group);
	http_stop(s->http, s3_leave, s);
	group_enter(&s->group);
	s3_keys_stop(s->keys, s3_leave, s);
	while (s->ops)
		op_free(s->ops);
	group_when_empty(&s->group, fn, data);
}

static void s3_free(void *impl)
{
	struct s3 *s = impl;

	http_free(s->http);
	s3_keys_free(s->keys);
	spec_connection_clear(&s->connection);
	spec_s3_place_clear(&s->place);
	free(s->scope);
	free(s->away_text);
	free(s);
}

const struct archive_ops archive_s3_ops = {
	.put = s3_put,
	.get = s3_get,
	.list = s3_list,
	.stop = s3_stop,
	.free = s3_free,
};

static const char *first_of(const char *a, const char *b, const char *c)
{
	return a && *a ? a : b && *b ? b : c;
}

int archive_s3_new(struct loop *loop, const struct archive_config *config, void **ret_impl,
		   char **ret_text)
{
	const char *region = first_of(first_of(config->region, getenv("AWS_REGION"), NULL),
				      getenv("AWS_DEFAULT_REGION"), "us-east-1");
	const char *ca_file = first_of(getenv("AWS_CA_BUNDLE"), NULL, "");
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
	struct s3 *s = new0(struct s3);
	int err;

	*ret_text = NULL;
	s->loop = loop;
	group_init(&s->group, loop);
	err = spec_s3_place_parse(config->place, first_of(config->endpoint, NULL, ""), region,
				  &s->place, ret_text);
	if (!err && curl->version_num < SIGNS_SINCE) {
		*ret_text = text_print("archive=s3:// needs libcurl 7.88 or newer, and this is %s",
				       curl->version);
		err = -EOPNOTSUPP;
	}
	if (!err) {
		s->scope = text_print("aws:amz:%s:s3", s->place.region);
		spec_connection_bare(s->place.url, ca_file, &s->connection);
		err = s3_keys_new(loop, s->place.region, ca_file, &s->keys, ret_text);
	}
	if (!err)
		err = http_new(loop, &s->connection, NULL, &s->http, ret_text);
	if (err)
		s3_free(s);
	else
		*ret_impl = s;
	return err;
}
