/* SPDX-License-Identifier: MIT */
/*
 * An archive in a bucket of S3, or of a server that speaks as S3 does; each object of the archive is an object there.
 * Each call is one request, signed by libcurl. Over TLS the signature does not cover the bytes, since TLS protects
 * them; without TLS it covers their digest, which the pool computes.
 *
 *	state  | what is under way                  | what ends it                  | next
 *	POSTED | the loop, or the pool's digest     | that                          | KEYED
 *	KEYED  | keys are asked for                 | keys; a failure               | SENT; over
 *	SENT   | the request                        | its answer; once, after keys  | over; KEYED
 *	       |                                    |   that were refused           |
 *
 * A list may need several requests, if all names in an answer are names that no object of an archive can have.
 */
#include <assert.h>
#include <errno.h>
#include <utlist.h>

#include "backend/archive/kind.h"
#include "backend/archive/s3_keys.h"
#include "backend/base/work.h"
#include "backend/client/http.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/sha256.h"
#include "spec/base/time.h"
#include "spec/base/url.h"

#define ANSWER_MS 60000	     /* time for 8 MiB over a slow line */
#define LIST_MS	  20000	     /* time for a list of 1000 names */
#define LIST_MAX  (4u << 20) /* the largest list in bytes */
#define LISTS_MAX 100	     /* the most requests for one list */
#define EMPTY	  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
/* Among the names that an archive has below x/, none sorts behind x/ and this. */
#define LAST "\x7f"

struct archive_s3 {
	struct archive archive;
	struct loop *loop;
	char *where;  /* without a slash at its end */
	char *bucket; /* the bucket in the path; "": the name of the server has it */
	char *prefix; /* what names begin with: "", or a text that ends with a slash */
	char *region, *scope;
	bool writes, tls;
	struct spec_connection connection;
	struct http *http;
	struct s3_keys *keys;
	uint64_t leave_ms; /* until when the server has asked to be left alone */
	struct request *requests;
	struct group group; /* the requests that are under way */
	bool stopping;
	loop_fn stopped;
	void *data;
};

enum kind { PUT, GET, LIST };

struct request {
	struct archive_s3 *s;
	enum kind kind;
	enum { POSTED, KEYED, SENT } state;
	char *name; /* name of the object; for a list: the prefix */
	char *bytes;
	size_t n;
	uint64_t off;
	char *after; /* NULL: from the first */
	char *last;  /* the last name of the previous answer; NULL: there was none */
	unsigned lists;
	char digest[65];
	struct work work;
	uint64_t generation; /* generation of the keys */
	bool again;	     /* it was sent again with other keys */
	archive_done_fn done;
	archive_bytes_fn got;
	archive_list_fn listed;
	void *data;
	struct request *prev, *next;
};

static void request_free(struct request *rq)
{
	struct archive_s3 *s = rq->s;

	DL_DELETE(s->requests, rq);
	free(rq->name);
	free(rq->bytes);
	free(rq->after);
	free(rq->last);
	free(rq);
	group_leave(&s->group);
}

/* --- how it ends --- */

/* The request is over before whoever asked is told, since they may stop everything. */

static void fail(struct request *rq, int err, const char *words)
{
	cleanup_free char *text = text_print("%s/%s: %s", rq->s->where, rq->name, words);
	const struct request was = *rq;

	request_free(rq);
	if (was.kind == PUT)
		was.done(was.data, err, text);
	else if (was.kind == GET)
		was.got(was.data, err, text, NULL, 0);
	else
		was.listed(was.data, err, text, NULL, 0, false);
}

/* The errno for E, the error in an answer with the status of REPLY; *RET (malloc'ed) says what to do. */
static int refusal(const struct archive_s3 *s, const struct http_reply *reply,
		   const struct spec_s3_error *e, char **ret)
{
	static const struct {
		const char *code;
		int err;
	} codes[] = {
		{"NoSuchKey", -ENOENT},	    {"NoSuchBucket", -EHOSTUNREACH},
		{"QuotaExceeded", -ENOSPC}, {"XMinioStorageFull", -ENOSPC},
		{"ExpiredToken", -EACCES},
	};
	const char *region = *reply->wanted ? reply->wanted : e->region;
	const int64_t off = loop_time_ns() / NS_PER_S - reply->date;

	if (streq(e->code, "RequestTimeTooSkewed") && reply->date)
		*ret = text_print("the clock of this machine is %lld s %s that of the server; set "
				  "it right",
				  (long long)llabs((long long)off), off < 0 ? "behind" : "before");
	else if (*region && !streq(region, s->region) && spec_name_is_label(region) &&
		 (reply->status / 100 == 3 || streq(e->code, "AuthorizationHeaderMalformed")))
		*ret = text_print("the bucket is in another region: -o region=%s", region);
	else if (!*e->code)
		*ret = text_print("HTTP status %d, with no word of S3: is %s one of its servers?",
				  reply->status, s->connection.server);
	else
		*ret = text_print("%s%s%s", e->code, *e->message ? ": " : "", e->message);
	for (size_t i = 0; i < array_size(codes); i++)
		if (streq(e->code, codes[i].code))
			return codes[i].err;
	if (reply->status == 507)
		return -ENOSPC;
	return reply->status == 401 || reply->status == 403 ? -EACCES : -EIO;
}

/* Does S3 say that the keys are not valid, or not any more? */
static bool are_keys_refused(const struct spec_s3_error *e)
{
	static const char *const codes[] = {"ExpiredToken",	     "InvalidAccessKeyId",
					    "InvalidToken",	     "TokenRefreshRequired",
					    "SignatureDoesNotMatch", "InvalidClientTokenId"};

	for (size_t i = 0; i < array_size(codes); i++)
		if (streq(e->code, codes[i]))
			return true;
	return false;
}

static void ask_keys(struct request *rq);

/* Is REPLY no success? Then this ends RQ, or sends it again. */
static bool is_refused(struct request *rq, const struct http_reply *reply)
{
	struct archive_s3 *s = rq->s;
	struct spec_s3_error e cleanup(spec_s3_error_clear) = {0};
	cleanup_free char *text = NULL;
	int err = reply->err;

	if (!err && reply->status / 100 == 2)
		return false;
	if (err) {
		fail(rq, err == -ETIMEDOUT || err == -EHOSTUNREACH ? err : -EIO, reply->text);
		return true;
	}
	spec_s3_error_parse(reply->body, reply->len, &e);
	err = refusal(s, reply, &e, &text);
	if (reply->wait_ms)
		s->leave_ms = loop_now_ms() + reply->wait_ms;
	if (rq->again || !are_keys_refused(&e) || !s3_keys_refused(s->keys, rq->generation)) {
		fail(rq, err, text);
		return true;
	}
	rq->again = true;
	ask_keys(rq);
	return true;
}

/* --- what has come --- */

static void on_put(void *data, const struct http_reply *reply)
{
	struct request *rq = data;
	const struct request was = *rq;

	if (is_refused(rq, reply))
		return;
	request_free(rq);
	was.done(was.data, 0, "");
}

static void on_got(void *data, const struct http_reply *reply)
{
	struct request *rq = data;
	const struct request was = *rq;
	/* 416: the object has no byte from that offset on. */
	const bool none = !reply->err && reply->status == 416;
	/* A server that knows no ranges sends the whole object. */
	const size_t off = reply->status == 200 ? (size_t)min_of(rq->off, (uint64_t)reply->len) : 0;

	if (!none && is_refused(rq, reply))
		return;
	request_free(rq);
	was.got(was.data, 0, "", reply->body + off, none ? 0 : min_of(reply->len - off, was.n));
}

/* Does NAME belong into the list that RQ asks for? *RET, borrowed, is then the part of it that the list shows. */
static bool is_listed(const struct request *rq, const char *name, const char **ret)
{
	const size_t above = strlen(rq->s->prefix) + strlen(rq->name);
	cleanup_free char *bare = NULL;
	size_t len;

	if (strncmp(name, rq->s->prefix, strlen(rq->s->prefix)) != 0 || strlen(name) <= above ||
	    strncmp(name + strlen(rq->s->prefix), rq->name, strlen(rq->name)) != 0)
		return false;
	*ret = name + above;
	len = strlen(*ret);
	bare = mem_copy(*ret, (*ret)[len - 1] == '/' ? len - 1 : len);
	return spec_name_is_file(bare) && !(rq->after && strcmp(*ret, rq->after) <= 0);
}

static void on_list(void *data, const struct http_reply *reply)
{
	struct request *rq = data;
	const struct request was = *rq;
	struct spec_s3_list list cleanup(spec_s3_list_clear) = {0};
	cleanup_free struct archive_object *objects = NULL;
	size_t n = 0;

	if (is_refused(rq, reply))
		return;
	if (!spec_s3_list_parse(reply->body, reply->len, &list) || list.n > ARCHIVE_MAX_LIST)
		return fail(rq, -EIO, "its list is none of S3");
	objects = new0_n(struct archive_object, list.n);
	for (size_t i = 0; i < list.n; i++) {
		objects[n].size = list.objects[i].size;
		n += is_listed(rq, list.objects[i].name, &objects[n].name);
	}
	if (n == 0 && list.more && list.n && ++rq->lists < LISTS_MAX) {
		text_set(&rq->last, "%s", list.objects[list.n - 1].name);
		return ask_keys(rq);
	}
	request_free(rq);
	was.listed(was.data, 0, "", objects, n, n && list.more);
}

/* --- what is sent --- */

/* The path for RQ. malloc'ed. */
static char *path_of(const struct request *rq)
{
	const struct archive_s3 *s = rq->s;
	cleanup_free char *whole = text_print("%s%s", s->prefix, rq->name);
	const char *last = rq->last ? rq->last : rq->after;
	cleanup_free char *after = last ? text_print("%s%s%s", rq->last ? "" : whole, last,
						     last[strlen(last) - 1] == '/' ? LAST : "")
					: NULL;
	cleanup_free char *begin = after ? spec_url_escape(after) : NULL;
	char *path = text_copy(s->bucket);
	char *rest = whole, *part;

	/* The parameters stand in the order of their names, since the query is signed as it stands. */
	if (rq->kind == LIST) {
		cleanup_free char *escaped = spec_url_escape(whole);

		text_set(&path, "%s%s?delimiter=%%2F&list-type=2&max-keys=%d&prefix=%s%s%s", path,
			 *path ? "" : "/", ARCHIVE_MAX_LIST, escaped, begin ? "&start-after=" : "",
			 begin ? begin : "");
		return path;
	}
	while ((part = strsep(&rest, "/"))) {
		cleanup_free char *escaped = spec_url_escape(part);

		text_set(&path, "%s/%s", path, escaped);
	}
	return path;
}

static void on_keys(void *data, int err, const struct spec_s3_keys *keys, uint64_t generation,
		    const char *text)
{
	static void (*const replied[])(void *data, const struct http_reply *reply) = {
		[PUT] = on_put,
		[GET] = on_got,
		[LIST] = on_list,
	};
	struct request *rq = data;
	const struct archive_s3 *s = rq->s;
	const bool puts = rq->kind == PUT;
	cleanup_free char *path = path_of(rq);
	cleanup_free char *range =
		text_print("Range: bytes=%llu-%llu\n", (unsigned long long)rq->off,
			   (unsigned long long)rq->off + max_of(rq->n, (size_t)1) - 1);
	cleanup(text_wipe) char *headers = NULL;
	struct http_key key = {.scope = s->scope};

	if (err)
		return fail(rq, err, text);
	headers = text_print("%sx-amz-content-sha256: %s\n%s%s%s",
			     puts	       ? "Content-Type: application/octet-stream\n"
			     : rq->kind == GET ? range
					       : "",
			     !puts    ? EMPTY
			     : s->tls ? "UNSIGNED-PAYLOAD"
				      : rq->digest,
			     *keys->session ? "x-amz-security-token: " : "", keys->session,
			     *keys->session ? "\n" : "");
	key.id = keys->id;
	key.secret = keys->secret;
	rq->generation = generation;
	rq->state = SENT;
	http_send(s->http, &(struct http_call){
				   .method = puts ? HTTP_PUT : HTTP_GET,
				   .path = path,
				   .headers = headers,
				   .key = &key,
				   .body = puts ? rq->bytes : NULL,
				   .len = puts ? rq->n : 0,
				   .deadline_ms = rq->kind == LIST ? LIST_MS : ANSWER_MS,
				   .max_body = rq->kind == LIST ? LIST_MAX : ARCHIVE_MAX,
				   .wanted = "x-amz-bucket-region",
				   .done = replied[rq->kind],
				   .data = rq,
			   });
}

static void ask_keys(struct request *rq)
{
	rq->state = KEYED;
	s3_keys_get(rq->s->keys, on_keys, rq);
}

/* --- calls --- */

static void on_posted(void *data)
{
	struct request *rq = data;

	if (rq->s->stopping)
		return request_free(rq);
	if (loop_now_ms() < rq->s->leave_ms)
		return fail(rq, -EIO, "the server has asked to be left alone for a while");
	ask_keys(rq);
}

/* Runs on the pool. */
static void digest(void *data)
{
	struct request *rq = data;

	spec_sha256(rq->bytes, rq->n, rq->digest);
}

static struct request *request_new(struct archive *a, enum kind kind, const char *name, void *data)
{
	struct archive_s3 *s = container_of(a, struct archive_s3, archive);
	struct request *rq = new0(struct request);

	assert(!s->stopping);
	rq->s = s;
	rq->kind = kind;
	rq->name = text_copy(name);
	rq->data = data;
	DL_APPEND(s->requests, rq);
	group_enter(&s->group);
	return rq;
}

static void s3_put(struct archive *a, const char *name, char *bytes, size_t n, archive_done_fn done,
		   void *data)
{
	struct request *rq = request_new(a, PUT, name, data);

	assert(rq->s->writes);
	rq->bytes = bytes;
	rq->n = n;
	rq->done = done;
	rq->work = (struct work){.run = digest, .done = on_posted, .data = rq};
	if (rq->s->tls)
		loop_post(rq->s->loop, on_posted, rq);
	else
		work_start(&rq->work, rq->s->loop);
}

static void s3_get(struct archive *a, const char *name, uint64_t off, size_t n,
		   archive_bytes_fn done, void *data)
{
	struct request *rq = request_new(a, GET, name, data);

	rq->off = off;
	rq->n = n;
	rq->got = done;
	loop_post(rq->s->loop, on_posted, rq);
}

static void s3_list(struct archive *a, const char *prefix, const char *after, archive_list_fn done,
		    void *data)
{
	struct request *rq = request_new(a, LIST, prefix, data);

	rq->after = after ? text_copy(after) : NULL;
	rq->listed = done;
	loop_post(rq->s->loop, on_posted, rq);
}

/* --- life --- */

static void on_empty(void *data)
{
	struct archive_s3 *s = data;

	return s->stopped(s->data);
}

static void on_keys_stopped(void *data)
{
	struct archive_s3 *s = data;

	group_when_empty(&s->group, on_empty, s);
}

static void on_http_stopped(void *data)
{
	struct archive_s3 *s = data;

	s3_keys_stop(s->keys, on_keys_stopped, s);
}

static void s3_stop(struct archive *a, loop_fn fn, void *data)
{
	struct archive_s3 *s = container_of(a, struct archive_s3, archive);
	struct request *rq, *next;

	s->stopping = true;
	s->stopped = fn;
	s->data = data;
	http_stop(s->http, on_http_stopped, s);
	DL_FOREACH_SAFE(s->requests, rq, next)
		if (rq->state != POSTED)
			request_free(rq);
}

static void s3_free(struct archive *a)
{
	struct archive_s3 *s = container_of(a, struct archive_s3, archive);

	http_free(s->http);
	s3_keys_free(s->keys);
	spec_connection_clear(&s->connection);
	free(s->where);
	free(s->bucket);
	free(s->prefix);
	free(s->region);
	free(s->scope);
	free(s);
}

/* Is WHERE "s3://BUCKET[/PREFIX]"? Then S gets these parts. */
static bool is_place(struct archive_s3 *s, const char *where)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_";
	size_t len = strlen(where);
	const char *bucket = where + strlen("s3://"), *slash;
	cleanup_free char *parts = NULL;
	char *rest, *part;

	while (len && where[len - 1] == '/')
		len--;
	s->where = mem_copy(where, len);
	bucket = s->where + min_of(len, (size_t)(bucket - where));
	len = strspn(bucket, allowed);
	if (len < 3 || len > 255 || *bucket == '.' || *bucket == '-' ||
	    (bucket[len] && bucket[len] != '/'))
		return false;
	slash = bucket + len;
	s->bucket = mem_copy(bucket, len);
	s->prefix = *slash ? text_print("%s/", slash + 1) : text_copy("");
	parts = text_copy(*slash ? slash + 1 : "x");
	rest = parts;
	while ((part = strsep(&rest, "/")))
		if (!spec_name_is_file(part))
			return false;
	return true;
}

int archive_s3_new(struct loop *loop, const struct archive_address *place, bool writes,
		   struct archive **ret, char **ret_text)
{
	static const struct archive_ops ops = {s3_put, s3_get, s3_list, s3_stop, s3_free};
	const char *ca = getenv("AWS_CA_BUNDLE"), *region = place->region;
	struct archive_s3 *s = new0(struct archive_s3);
	cleanup_free char *why = NULL, *aws = NULL;
	int err = -EINVAL;
	bool in_name;

	region = region ? region : getenv("AWS_REGION");
	region = region && *region ? region : getenv("AWS_DEFAULT_REGION");
	s->archive.ops = &ops;
	s->loop = loop;
	s->writes = writes;
	s->region = text_copy(region && *region ? region : "us-east-1");
	s->scope = text_print("aws:amz:%s:s3", s->region);
	group_init(&s->group, loop);
	if (!is_place(s, place->where)) {
		why = text_copy("is no s3://BUCKET or s3://BUCKET/PREFIX");
	} else if (!spec_name_is_label(s->region)) {
		why = text_print("'%s' is no region", s->region);
	} else {
		/* With AWS the bucket stands in the server's name, if it can; else in the path. */
		in_name = !place->endpoint && !strpbrk(s->bucket, "._") && strlen(s->bucket) < 64;
		aws = text_print("https://%s%ss3.%s.amazonaws.com%s", in_name ? s->bucket : "",
				 in_name ? "." : "", s->region,
				 strncmp(s->region, "cn-", 3) ? "" : ".cn");
		spec_connection_bare(&s->connection, place->endpoint ? place->endpoint : aws);
		text_set(&s->connection.ca_file, "%s", ca ? ca : "");
		s->tls = strncmp(s->connection.server, "https:", 6) == 0;
		text_set(&s->bucket, "%s%s", in_name ? "" : "/", in_name ? "" : s->bucket);
		err = s3_keys_new(loop, s->region, &s->keys, &why);
		if (!err)
			err = http_new(loop, &s->connection, NULL, &s->http, &why);
	}
	if (err) {
		*ret_text = text_print("archive %s: %s", s->where, why ? why : strerror(-err));
		s3_free(&s->archive);
		return err;
	}
	*ret = &s->archive;
	return 0;
}
