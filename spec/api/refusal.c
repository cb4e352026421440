/* SPDX-License-Identifier: MIT */
/*
 * Explains failed replies to users. A server, a webhook or a proxy may have sent the reply. If kxfs
 * has no text of its own for a reply, it quotes the reply's message, cleaned and shortened.
 */
#include "spec/api/refusal.h"

#include <ctype.h>
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/value.h"
#include "spec/base/words.h"

#define MESSAGE_MAX 600 /* bytes quoted from a message */
#define NOT_SERVED  "404 page not found\n"

struct reply {
	int status;
	const struct spec_asked *asked;
	const struct spec_value *object; /* NULL if the body is not a JSON object */
	char *message;			 /* "" if the reply has none */
	const char *reason;
	FILE *out; /* the message for the user is written to this stream */
};

/* --- reading --- */

static bool has(const struct reply *r, const char *part)
{
	return strstr(r->message, part) != NULL;
}

/* Find the text between FROM and TO in the message. If TO is "", the text ends with the message. */
static bool between(const struct reply *r, const char *from, const char *to, const char **ret,
		    int *n)
{
	const char *at = strstr(r->message, from), *end;

	if (!at)
		return false;
	at += strlen(from);
	end = *to ? strstr(at, to) : at + strlen(at);
	if (!end)
		return false;
	*ret = at;
	*n = (int)min_of(end - at, (ptrdiff_t)MESSAGE_MAX);
	return true;
}

/* Reduce an HTML page to its visible words. */
static void strip_page(char *text)
{
	char *to = text;
	const char *end;

	for (const char *p = text; *p; p = end ? end + 1 : p + strlen(p)) {
		size_t n = strcspn(p, "<");

		memmove(to, p, n);
		to += n;
		p += n;
		if (strncasecmp(p, "<script", 7) == 0 && strcasestr(p, "</script"))
			p = strcasestr(p, "</script");
		else if (strncasecmp(p, "<style", 6) == 0 && strcasestr(p, "</style"))
			p = strcasestr(p, "</style");
		end = strchr(p, '>');
		if (end)
			*to++ = ' ';
	}
	*to = '\0';
}

/* Return the message of the Status O or, if O is NULL, the visible text of BODY. */
static char *read_message(const struct spec_value *o, const char *body, size_t len)
{
	char *ret;

	while (len > 0 && isspace((unsigned char)*body))
		body++, len--;
	ret = o ? text_copy(spec_read_text(o, "message")) : mem_copy(body, len);
	if (!o && *ret == '<')
		strip_page(ret);
	(void)spec_words_undump(ret);
	if (spec_words_clean(ret, MESSAGE_MAX))
		text_set(&ret, "%s ...", ret);
	return ret;
}

/* --- writing --- */

/* Write the message for the user. Return ERR. */
printf_like(3, 4) static int put(struct reply *r, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(r->out, fmt, ap);
	va_end(ap);
	return err;
}

/* Write the request, WHAT happened to it, and the server's message. Return ERR. */
static int put_failed(struct reply *r, int err, const char *what)
{
	/* "create jobs.batch.volcano.sh NAME" */
	fprintf(r->out, "%s %s%s%s", r->asked->verb, r->asked->resource, *r->asked->name ? " " : "",
		r->asked->name);
	return put(r, err, ": %s (%d)%s%s", what, r->status, *r->message ? ": " : "", r->message);
}

/* --- the kinds of refusals --- */

/* The message is "... exceeded quota: q1, requested: pods=1, used: pods=2, limited: pods=2". */
static int quota(struct reply *r)
{
	const char *name, *requested, *used, *limited;
	int n[4];

	if (!between(r, "exceeded quota: ", ", requested: ", &name, &n[0]) ||
	    !between(r, ", requested: ", ", used: ", &requested, &n[1]) ||
	    !between(r, ", used: ", ", limited: ", &used, &n[2]) ||
	    !between(r, ", limited: ", "", &limited, &n[3]))
		return put_failed(r, -EDQUOT, "a quota is exhausted");
	return put(
		r, -EDQUOT,
		"the quota %.*s of namespace %s is exhausted: requested %.*s, used %.*s, limit "
		"%.*s\nRemove jobs that are no longer needed, or ask the cluster's administrator for a "
		"larger quota.",
		n[0], name, r->asked->namespace, n[1], requested, n[2], used, n[3], limited);
}

static int forbidden(struct reply *r)
{
	const char *user = "this user", *quotas;
	int n = (int)strlen(user), quotas_n;

	if (has(r, "exceeded quota"))
		return quota(r);
	if (between(r, "status unknown for quota: ", ", resources: ", &quotas, &quotas_n))
		return put(r, -EAGAIN,
			   "the cluster has not computed the usage of quota %.*s of namespace "
			   "%s yet\n"
			   "Nothing was done. Try again in a moment.",
			   quotas_n, quotas, r->asked->namespace);
	if (has(r, "because it is being terminated"))
		return put(r, -EACCES, "namespace %s is being deleted and accepts no new objects",
			   r->asked->namespace);
	/*
	 * A message about the user's rights contains " cannot ". A message of an admission plugin
	 * does not.
	 */
	if (*r->message && !has(r, " cannot ") && strcmp(r->reason, "Forbidden") == 0)
		return put_failed(r, -EACCES, "forbidden");
	if (between(r, "User \"", "\"", &user, &n) && strncmp(user, "system:anonymous", 16) == 0)
		return put(
			r, -EACCES,
			"the server treats the request as anonymous, and user %.*s may not "
			"%s %s in namespace %s\n"
			"The kubeconfig has no credentials that this server accepts: log in again, "
			"or correct the user's entry.",
			n, user, r->asked->verb, r->asked->resource, r->asked->namespace);
	if (!*r->asked->namespace)
		return put(r, -EACCES,
			   "forbidden: user %.*s has no cluster-wide right to %s %s\n"
			   "Ask the cluster's administrator for this right.",
			   n, user, r->asked->verb, r->asked->resource);
	return put(r, -EACCES,
		   "forbidden: user %.*s may not %s %s in namespace %s, or this namespace does "
		   "not exist\n"
		   "Check the name of the namespace, or ask the cluster's administrator for "
		   "the right.",
		   n, user, r->asked->verb, r->asked->resource, r->asked->namespace);
}

/* kxfs has its own texts for known messages of Volcano's webhook. */
static int webhook(struct reply *r)
{
	const char *text = strstr(r->message, " denied the request: ");
	const char *queue, *state;
	int n, m;

	text = text ? text + strlen(" denied the request: ") : "a webhook denied the request";
	if (between(r, "queue.scheduling.volcano.sh \"", "\" not found", &queue, &n) &&
	    has(r, "unable to find job queue"))
		return put(r, -EINVAL,
			   "there is no queue \"%.*s\"\n"
			   "Name another queue: queue in scheduler_args, or -o queue=NAME of the "
			   "mount.",
			   n, queue);
	if (between(r, "`Open`, queue `", "` status is `", &queue, &n) &&
	    between(r, "` status is `", "`", &state, &m))
		return put(r, -EINVAL,
			   "the queue \"%.*s\" accepts no jobs: it is %.*s\n"
			   "Name another queue (queue in scheduler_args, or -o queue=NAME of "
			   "the mount), or ask the cluster's administrator to open it.",
			   n, queue, m, state);
	return put(r, -EINVAL, "the cluster refuses the request: %s", text);
}

static bool is_webhook(const struct reply *r)
{
	return strncmp(r->message, "admission webhook ", strlen("admission webhook ")) == 0;
}

static int bad_request(struct reply *r)
{
	const char *fields;
	int n;

	if (is_webhook(r))
		return webhook(r);
	/* The message is "... strict decoding error: unknown field "a.b", duplicate field "c"". */
	if (between(r, "strict decoding error: ", "", &fields, &n))
		return put(r, -EINVAL, "the server rejects these fields: %s", fields);
	if (!*r->message)
		return put_failed(r, -EINVAL, "the server refuses the request");
	if (has(r, "unable to parse requirement: "))
		return put(r, -EINVAL, "the label selector is invalid: %s",
			   strstr(r->message, "unable to parse"));
	return put(r, -EINVAL, "the cluster refuses the request: %s", r->message);
}

/* The message is "RESOURCE "NAME" is invalid: [FIELD: ERROR, FIELD: ERROR]". */
static int invalid(struct reply *r)
{
	const char *text = "invalid";
	int n;

	if (is_webhook(r))
		return webhook(r);
	if (!between(r, " is invalid: ", "", &text, &n) && *r->message)
		text = r->message;
	return put(r, -EINVAL, "the cluster refuses the request: %s", text);
}

static int not_found(struct reply *r)
{
	const char *name = spec_read_text(spec_read_map(r->object, "details"), "name");
	const char *kind = spec_read_text(spec_read_map(r->object, "details"), "kind");
	const char *resource = r->asked->resource;
	const char *product = strstr(resource, ".volcano.sh")	   ? "Volcano"
			      : strstr(resource, ".codeflare.dev") ? "MCAD"
								   : "the product that serves them";

	if (!*name)
		return put(r, -EOPNOTSUPP,
			   "the cluster has no %s: %s is not installed there, or not in a version "
			   "that kxfs supports\n"
			   "Check that this is the right cluster, or ask the cluster's "
			   "administrator to install it.",
			   resource, product);
	/*
	 * The kubelet has sent this reply. The API server knows the pod: otherwise it would not
	 * have asked the kubelet.
	 */
	if (strcmp(kind, "pods/log") == 0)
		return put(r, -EAGAIN,
			   "the kubelet does not know pod %s: either the pod is too new, or it no "
			   "longer exists",
			   r->asked->name);
	if (strcmp(kind, "namespaces") == 0)
		return put(r, -ENOENT, "there is no namespace %s", r->asked->namespace);
	return put(r, -ENOENT, "%s", *r->message ? r->message : "the object does not exist");
}

static int conflict(struct reply *r)
{
	if (strcmp(r->asked->verb, "delete") == 0)
		return put(
			r, -ESTALE,
			"%s was removed, and another object has its name now; this object was not deleted",
			*r->asked->name ? r->asked->name : r->asked->resource);
	if (strcmp(r->reason, "Conflict") == 0)
		return put_failed(r, -EAGAIN,
				  "the object changed meanwhile, so nothing was "
				  "done; try again");
	return put(r, -EEXIST, "%s %s exists already in namespace %s", r->asked->resource,
		   r->asked->name, r->asked->namespace);
}

static bool is_too_large(int status, const char *message)
{
	return status == 413 || strstr(message, "request is too large") ||
	       strstr(message, "larger than max");
}

static int too_large(struct reply *r)
{
	size_t limit = SPEC_MAX_OBJECT;
	const char *text;
	int n;

	if (between(r, " vs. ", ")", &text, &n) || between(r, "limit is ", "", &text, &n))
		limit = strtoul(text, NULL, 10);
	return put(r, -EFBIG,
		   "the object has %zu bytes, but the cluster accepts at most %s%zu\n"
		   "Use fewer replicas, or shorter args and env.",
		   r->asked->sent, limit == SPEC_MAX_OBJECT ? "about " : "", limit);
}

static int server_error(struct reply *r)
{
	const char *name, *url, *why;
	int n, m = 0;

	if (between(r, "failed calling webhook \"", "\"", &name, &n)) {
		why = strrchr(r->message, ':');
		fprintf(r->out, "the cluster can't check the object: its webhook %.*s", n, name);
		/*
		 * Webhooks of different products may have the same name, so also print the service.
		 */
		if (between(r, "Post \"https://", "\"", &url, &m))
			fprintf(r->out, " (%.*s)", min_of(m, (int)strcspn(url, ":/?")), url);
		return put(r, -EIO, " does not answer%s\nInform the cluster's administrator.",
			   why ? why : "");
	}
	return put_failed(r, -EIO, "the server failed");
}

static int explain(struct reply *r)
{
	if (is_too_large(r->status, r->message))
		return too_large(r);
	switch (r->status) {
	case 401:
		return put(r, -EACCES,
			   "the server rejects the credentials (401)\nThe credentials in the "
			   "kubeconfig are wrong or have expired: log in again.");
	case 403:
		return is_webhook(r) ? webhook(r) : forbidden(r);
	case 404:
		return not_found(r);
	case 405:
		return put_failed(r, -EOPNOTSUPP, "the server does not support this request");
	case 409:
		return conflict(r);
	case 410:
		return put_failed(r, -ESTALE, "the requested resource version is too old");
	case 422:
		return invalid(r);
	case 429:
	case 503:
		return put_failed(r, -EAGAIN,
				  "the server is too busy or not ready, try again later");
	case 408:
	case 504:
		return put_failed(r, -ETIMEDOUT, "the server did not finish in time");
	default:
		if (r->status >= 500)
			return server_error(r);
		return r->status >= 400 ? bad_request(r)
					: put_failed(r, -EIO, "this reply is not from Kubernetes");
	}
}

int spec_reply_errno(int status, const char *body, size_t len, const struct spec_asked *asked,
		     char **ret_text)
{
	cleanup_free char *text = mem_copy(body ? body : "", body ? strnlen(body, len) : 0);
	struct spec_value *object cleanup_free = NULL;
	struct reply r = {.status = status, .asked = asked};
	cleanup_free char *message = NULL;
	size_t text_len;
	int err;

	if (spec_value_parse_map(text, strlen(text), &object) == 0)
		r.object = object;
	message = read_message(r.object, text, strlen(text));
	r.message = message;
	r.reason = spec_read_text(r.object, "reason");
	r.out = text_stream(ret_text, &text_len);
	err = explain(&r);
	text_stream_close(r.out);
	return err;
}

char *spec_asked_resource(const char *plural, const char *api_version)
{
	const char *end = strchr(api_version, '/');

	return end ? text_print("%s.%.*s", plural, (int)(end - api_version), api_version)
		   : text_copy(plural);
}

bool spec_reply_did_nothing(int status, const char *body, size_t len)
{
	struct spec_value *o cleanup_free = NULL;

	if (status == 401 || status == 413 || status == 429)
		return true;
	if (status / 100 == 2)
		return false;
	/* This is the API server's reply for an API that it does not serve. */
	if (status == 404 && len == strlen(NOT_SERVED) && memcmp(body, NOT_SERVED, len) == 0)
		return true;
	if (spec_value_parse_map(body, len, &o) < 0 || !streq(spec_read_text(o, "kind"), "Status"))
		return false;
	return status < 500 ||
	       (status == 503 && streq(spec_read_text(o, "reason"), "ServiceUnavailable")) ||
	       is_too_large(status, spec_read_text(o, "message"));
}

bool spec_reply_is_unchecked(int status, const char *body, size_t len)
{
	struct spec_value *o cleanup_free = NULL;

	return status == 500 && spec_value_parse_map(body, len, &o) == 0 &&
	       streq(spec_read_text(o, "kind"), "Status") &&
	       strstr(spec_read_text(o, "message"), "failed calling webhook \"");
}
