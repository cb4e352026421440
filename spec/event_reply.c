/* SPDX-License-Identifier: MIT */
/*
 * What an answer that is no success means, in a user's words. Servers, webhooks and proxies all speak
 * through these answers; what is known is said in our words, the rest in theirs, cleaned and cut.
 */
#include "spec/event.h"

#include <ctype.h>
#include <errno.h>

#include "spec/limits.h"
#include "spec/tree.h"
#include "spec/view_read.h"
#include "spec/words.h"

#define MESSAGE_MAX 600 /* bytes of a text from outside that a person is shown */
#define MANY	    8	/* fields that are named; the rest is counted */

struct reply {
	int status;
	const struct spec_asked *asked;
	struct json_object *object; /* NULL: the body is no JSON object */
	char *message;		    /* "" none */
	const char *reason;
	char **text;
	size_t len;
	FILE *out;
};

/* --- reading -------------------------------------------------------------------------------- */

static bool has(const struct reply *r, const char *part)
{
	return strstr(r->message, part) != NULL;
}

/* The text between FROM and TO in the message, in *RET with its length; false: it is not there. */
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

/* What the server says, "" if it is nothing for people (a page of a proxy, a dump). */
static char *read_message(struct json_object *o, const char *body, size_t len)
{
	char *ret;

	if (o) {
		ret = strdup(spec_read_text(o, "message"));
	} else {
		while (len > 0 && isspace((unsigned char)*body))
			body++, len--;
		ret = strndup(body, len > 0 && *body == '<' ? 0 : len);
	}
	if (ret) {
		(void)spec_words_undump(ret);
		spec_words_clean(ret, MESSAGE_MAX);
	}
	return ret;
}

/* --- saying --------------------------------------------------------------------------------- */

static int say(struct reply *r, int err, const char *fmt, ...) printf_like(3, 4);
static int say(struct reply *r, int err, const char *fmt, ...)
{
	char *text cleanup_free = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = base_vformat(fmt, ap);
	va_end(ap);
	fputs(text ? text : "out of memory", r->out);
	return err;
}

/* "create jobs.batch.volcano.sh NAME" */
static void say_asked(struct reply *r)
{
	fprintf(r->out, "%s %s%s%s", r->asked->verb, r->asked->resource, *r->asked->name ? " " : "",
		r->asked->name);
}

/* What was asked, what came of it, and the server's own words. */
static int say_failed(struct reply *r, int err, const char *what)
{
	say_asked(r);
	return say(r, err, ": %s (%d)%s%s", what, r->status, *r->message ? ": " : "", r->message);
}

/* --- one kind of refusal each ---------------------------------------------------------------- */

/* ... "exceeded quota: q1, requested: count/jobs=1, used: count/jobs=2, limited: count/jobs=0" */
static int quota(struct reply *r)
{
	const char *name, *requested, *used, *limited;
	int n[4];

	if (!between(r, "exceeded quota: ", ", requested: ", &name, &n[0]) ||
	    !between(r, ", requested: ", ", used: ", &requested, &n[1]) ||
	    !between(r, ", used: ", ", limited: ", &used, &n[2]) ||
	    !between(r, ", limited: ", "", &limited, &n[3]))
		return say_failed(r, -EDQUOT, "a quota is used up");
	return say(
		r, -EDQUOT,
		"the quota %.*s of namespace %s has no room: requested %.*s, used %.*s, limit "
		"%.*s\nRemove jobs that are not needed any more, or ask who runs the cluster for a "
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
		return say(r, -EAGAIN,
			   "what is in use of the quota %.*s of namespace %s is not counted yet\n"
			   "Nothing was done. Try again in a moment.",
			   quotas_n, quotas, r->asked->namespace);
	if (has(r, "because it is being terminated"))
		return say(r, -EACCES, "namespace %s is being deleted: it takes nothing new",
			   r->asked->namespace);
	/* Not about rights: another part of the server does not like the object. */
	if (*r->message && !has(r, " cannot ") && strcmp(r->reason, "Forbidden") == 0)
		return say_failed(r, -EACCES, "forbidden");
	if (between(r, "User \"", "\"", &user, &n) && strncmp(user, "system:anonymous", 16) == 0)
		return say(
			r, -EACCES,
			"the server does not know who asks (%.*s): it may not %s %s in namespace "
			"%s\nThe kubeconfig's user has no credentials that this server takes.",
			n, user, r->asked->verb, r->asked->resource, r->asked->namespace);
	if (!*r->asked->namespace)
		return say(r, -EACCES,
			   "forbidden: user %.*s may not %s %s, which belong to the whole cluster\n"
			   "Ask who runs the cluster for the right.",
			   n, user, r->asked->verb, r->asked->resource);
	return say(
		r, -EACCES,
		"forbidden: user %.*s may not %s %s in namespace %s, which is missing or "
		"forbidden\nCheck the name of the namespace, or ask who runs the cluster for the "
		"right.",
		n, user, r->asked->verb, r->asked->resource, r->asked->namespace);
}

/* ... strict decoding error: unknown field "a.b", unknown field "c", duplicate field "d" */
static int strict(struct reply *r)
{
	const char *at = strstr(r->message, "strict decoding error: ");
	unsigned n = 0;

	at += strlen("strict decoding error: ");
	fputs("the server does not know all of it: ", r->out);
	for (const char *next; *at; at = next) {
		size_t len;

		next = strstr(at, ", unknown field ");
		next = next ? next : strstr(at, ", duplicate field ");
		len = next ? (size_t)(next - at) : strlen(at);
		if (n++ < MANY)
			fprintf(r->out, "%s%.*s", n > 1 ? ", " : "", (int)len, at);
		next = at + len + (next ? 2 : 0);
	}
	if (n > MANY)
		fprintf(r->out, " and %u more", n - MANY);
	return -EINVAL;
}

/* MESSAGE is what a webhook said of the object. */
static int webhook(struct reply *r)
{
	const char *text = strstr(r->message, " denied the request: ");
	const char *queue, *state;
	int n, m;

	text = text ? text + strlen(" denied the request: ") : "a webhook denied the request";
	if (between(r, "queue.scheduling.volcano.sh \"", "\" not found", &queue, &n) &&
	    has(r, "unable to find job queue"))
		return say(
			r, -EINVAL,
			"there is no queue \"%.*s\"\nName another: queue in scheduler_args, or -o "
			"queue=NAME of the mount.",
			n, queue);
	if (between(r, "`Open`, queue `", "` status is `", &queue, &n) &&
	    between(r, "` status is `", "`", &state, &m))
		return say(r, -EINVAL,
			   "the queue \"%.*s\" takes no jobs: it is %.*s\nName another (queue in "
			   "scheduler_args, or -o queue=NAME of the mount), or ask who runs the "
			   "cluster to open it.",
			   n, queue, m, state);
	return say(r, -EINVAL, "the cluster refuses it: %s", text);
}

static bool is_webhook(const struct reply *r)
{
	return strncmp(r->message, "admission webhook ", strlen("admission webhook ")) == 0;
}

static int bad_request(struct reply *r)
{
	if (is_webhook(r))
		return webhook(r);
	if (has(r, "strict decoding error: "))
		return strict(r);
	if (!*r->message)
		return say_failed(r, -EINVAL, "the server refuses it");
	if (has(r, "unable to parse requirement: "))
		return say(r, -EINVAL, "the selector of labels is wrong: %s",
			   strstr(r->message, "unable to parse"));
	return say(r, -EINVAL, "the cluster refuses it: %s", r->message);
}

/* 422: each cause has a field and a message. */
static int invalid(struct reply *r)
{
	struct json_object *causes = spec_read_list(spec_read_map(r->object, "details"), "causes");
	size_t n = causes ? json_object_array_length(causes) : 0;
	const char *text = strstr(r->message, " is invalid: ");

	if (is_webhook(r))
		return webhook(r);
	if (n == 0)
		return say(r, -EINVAL, "the cluster refuses it: %s",
			   text		 ? text + strlen(" is invalid: ")
			   : *r->message ? r->message
					 : "invalid");
	fputs("the cluster refuses it: ", r->out);
	for (size_t i = 0; i < n && i < MANY; i++) {
		struct json_object *cause = json_object_array_get_idx(causes, i);
		char *field cleanup_free = strdup(spec_read_text(cause, "field"));
		char *message cleanup_free = strdup(spec_read_text(cause, "message"));

		if (!field || !message)
			return -EINVAL;
		spec_words_clean(field, MESSAGE_MAX);
		spec_words_clean(message, MESSAGE_MAX);
		fprintf(r->out, "%s%s%s%s", i ? "; " : "", field, *field ? ": " : "", message);
	}
	if (n > MANY)
		fprintf(r->out, "; and %zu more", n - MANY);
	return -EINVAL;
}

/* What RESOURCE comes with. */
static const char *product(const char *resource)
{
	if (strstr(resource, ".volcano.sh"))
		return "Volcano";
	return strstr(resource, ".codeflare.dev") ? "MCAD" : "what they belong to";
}

static int not_found(struct reply *r)
{
	const char *name = spec_read_text(spec_read_map(r->object, "details"), "name");
	const char *kind = spec_read_text(spec_read_map(r->object, "details"), "kind");

	if (!*name)
		return say(r, -EOPNOTSUPP,
			   "the cluster has no %s: %s is not installed there, or in a version that "
			   "does not fit\nIs it the right cluster? Else ask who runs it to install "
			   "it.",
			   r->asked->resource, product(r->asked->resource));
	/* A kubelet's answer, passed on: the pod is there, or the server itself had said that it is not. */
	if (strcmp(kind, "pods/log") == 0)
		return say(r, -EAGAIN, "its node does not know the pod %s yet, or any more",
			   r->asked->name);
	if (strcmp(kind, "namespaces") == 0)
		return say(r, -ENOENT, "there is no namespace %s", r->asked->namespace);
	return say(r, -ENOENT, "%s", *r->message ? r->message : "it is not there");
}

static int conflict(struct reply *r)
{
	if (strcmp(r->asked->verb, "delete") == 0)
		return say(r, -ESTALE,
			   "%s is not the one that was meant: it is gone, and another of "
			   "this name is there",
			   *r->asked->name ? r->asked->name : r->asked->resource);
	if (strcmp(r->reason, "Conflict") == 0)
		return say_failed(r, -EAGAIN, "nothing was done, try again");
	return say(r, -EEXIST, "%s %s exists already in namespace %s", r->asked->resource,
		   r->asked->name, r->asked->namespace);
}

static bool is_too_large(const struct reply *r)
{
	return r->status == 413 || has(r, "request is too large") || has(r, "larger than max");
}

static int too_large(struct reply *r)
{
	size_t limit = SPEC_MAX_OBJECT;
	const char *text;
	int n;

	if (between(r, " vs. ", ")", &text, &n) || between(r, "limit is ", "", &text, &n))
		limit = strtoul(text, NULL, 10);
	return say(
		r, -EFBIG,
		"the object has %zu bytes, and the cluster takes at most %s%zu\nFewer replicas, or "
		"shorter args and env, make it smaller.",
		r->asked->sent, limit == SPEC_MAX_OBJECT ? "about " : "", limit);
}

static int server_error(struct reply *r)
{
	const char *name, *why;
	int n, m;

	if (between(r, "failed calling webhook \"", "\"", &name, &n)) {
		why = strrchr(r->message, ':');
		m = why ? (int)strlen(why) : 0;
		return say(r, -EIO,
			   "the cluster can't check it: its webhook %.*s does not answer%.*s\nTell "
			   "who "
			   "runs the cluster.",
			   n, name, m, why ? why : "");
	}
	return say_failed(r, -EIO, "the server failed");
}

static int explain(struct reply *r)
{
	if (is_too_large(r))
		return too_large(r);
	switch (r->status) {
	case 401:
		return say(r, -EACCES,
			   "the server does not accept who asks (401)\nThe credentials in the "
			   "kubeconfig are wrong or have expired: log in again.");
	case 403:
		return is_webhook(r) ? webhook(r) : forbidden(r);
	case 404:
		return not_found(r);
	case 405:
		return say_failed(r, -EOPNOTSUPP, "the server can't do that");
	case 409:
		return conflict(r);
	case 410:
		return say_failed(r, -ESTALE, "what was asked for is too old");
	case 422:
		return invalid(r);
	case 429:
	case 503:
		return say_failed(r, -EAGAIN,
				  "the server is too busy or not ready, try again later");
	case 408:
	case 504:
		return say_failed(r, -ETIMEDOUT, "the server did not finish in time");
	default:
		if (r->status >= 500)
			return server_error(r);
		return r->status >= 400 ? bad_request(r)
					: say_failed(r, -EIO, "this is no answer of Kubernetes");
	}
}

int spec_reply_errno(int status, const char *body, size_t len, const struct spec_asked *asked,
		     char **ret_text)
{
	cleanup_free char *text = strndup(body ? body : "", body ? len : 0);
	struct json_object *object cleanup_json = text ? spec_tree_parse(text) : NULL;
	bool is_status = json_object_is_type(object, json_type_object);
	struct reply r = {.status = status, .asked = asked, .object = is_status ? object : NULL};
	cleanup_free char *message = text ? read_message(r.object, text, strlen(text)) : NULL;
	int err = -EIO;

	*ret_text = NULL;
	r.message = message;
	r.reason = spec_read_text(r.object, "reason");
	r.out = message ? open_memstream(ret_text, &r.len) : NULL;
	if (!r.out)
		return err;
	err = explain(&r);
	if (fclose(r.out) != 0)
		free(take_ptr(*ret_text));
	return err;
}
