/* SPDX-License-Identifier: MIT */
/*
 * The state machine of one watch: LIST, then WATCH, without end. A version is a resourceVersion.
 *
 * state    | what is in progress    | what ends it                      | next
 * LISTING  | requests for a page    | a page, but not the last one      | LISTING
 *          | and the page after it  | the last page                     | ASKING
 *          |                        | 410: the list is too old by now   | LISTING or WAITING
 *          |                        | a failure, or no page in PAGE_MS  | WAITING
 * DOUBTING | a list of one object's | the server's version is not lower | ASKING
 *          | metadata, to get the   | the server's version is lower     | LISTING
 *          | server's version       | a failure, or no reply in PAGE_MS | WAITING
 * ASKING   | a watch, no reply yet  | the head of a 2xx reply           | STANDING
 *          |                        | 410: VERSION is too old by now    | LISTING or WAITING
 *          |                        | any other reply, or a failure     | WAITING
 *          |                        | watch_doubt                       | DOUBTING
 * STANDING | an accepted watch      | its end, after 5 s or more        | ASKING or DOUBTING
 *          |                        | its end, after less than 5 s      | WAITING
 *          |                        | watch_doubt                       | DOUBTING
 *          |                        | 410: VERSION is too old by now    | LISTING or WAITING
 *          |                        | an ERROR event, or invalid events | WAITING, then LISTING
 * WAITING  | a pause                | its end, or watch_retry_now       | ASKING or DOUBTING
 *          |                        | the same, if VERSION is NULL      | LISTING
 *
 * After a 410, kxfs relists immediately. But if requests have been failing, it first waits.
 *
 * DOUBTING follows an error of the connection or of the server, because the server may have been
 * restored from a backup. A restored server continues with lower versions. It accepts a watch from
 * a version that it does not have yet, but sends no events until it reaches that version. kxfs
 * checks at most once in CHECK_MS, because each successful check makes other, failing watches retry
 * early. If the server refused a connection, kxfs checks without delay. After watch_doubt, kxfs
 * also checks without delay, but at most once in DOUBT_MS.
 *
 * kxfs prefetches the page after the current one as soon as its token arrives. If the prefetch
 * fails while the current page is arriving, kxfs requests the page again when the current page is
 * complete.
 *
 * During a relist, the old cache remains valid. The cache is confirmed while kxfs assumes that it
 * is current. If a watch breaks, kxfs soon restarts it, and the cache remains confirmed unless the
 * restart fails. If watches break often, the pauses before restarts grow. During these pauses, the
 * cache is not confirmed.
 *
 * Servers send a bookmark every minute. If a watch is silent for longer, its connection may be
 * dead, or the server may hang, so kxfs restarts the watch. If no reply arrives soon, the cache is
 * no longer confirmed. If the restart was unnecessary, the next silence may last longer.
 */
#include "backend/client/watch.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/base/print.h"
#include "backend/base/random.h"
#include "spec/api/object.h"
#include "spec/api/refusal.h"
#include "spec/api/split.h"
#include "spec/base/encode.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"

#define HEAD_MS 30000 /* time limit for the head of a reply */
/*
 * Time limit for the head of a watch that follows a silent one. It is short, to detect a dead
 * connection soon.
 */
#define PROBE_MS     10000
#define LIST_IDLE_MS 30000
#define SILENT_MS    65000 /* a watch may be silent for this long at first */
/*
 * The requested duration of a watch, varied by up to a quarter so that not all watches end
 * together.
 */
#define WATCH_S	      384
#define WATCH_LATE_S  60 /* a watch that lasts this much longer than requested is dead */
#define SILENT_MAX_MS ((WATCH_S + WATCH_S / 4 + WATCH_LATE_S) * 1000u)
#define BACKOFF_MIN   250u
#define BACKOFF_MAX   24000u
/*
 * A server that has just started refuses every request for a moment. So a watch that was accepted
 * before counts as forbidden only after this many refusals.
 */
#define REFUSALS_MAX 5
/*
 * Later pages have about PAGE_BYTES bytes, but at most PAGE_MAX objects. The first page is smaller,
 * because a pod of a large job may have hundreds of KiB.
 */
#define PAGE_BYTES     (4u << 20)
#define PAGE_MAX       500
#define PAGE_MS	       300000 /* time limit of one page */
#define EMPTY_MAX      100    /* a list with more empty pages fails */
#define RETRY_EARLY_MS 2000   /* at most one early retry in this time */
/*
 * At most one check of the version in this time. Lower than SILENT_MS, so that a check is possible
 * after a silent watch.
 */
#define CHECK_MS  60000
#define DOUBT_MS  10000 /* the same for checks that watch_doubt requests */
#define ABSENT_MS 60000 /* pause before retrying a resource that is not served */
#define STEADY_MS 5000	/* no backoff after a watch that lasted this long */

#define ERR_NONE_YET 1

struct watch_part {
	struct watch *w;
	struct http_request *request; /* NULL if the request has ended */
	struct spec_split *split;
	size_t objects, bytes;
	bool watching;
};

struct watch {
	struct watch_config config;
	char *path, *resource, *namespace; /* copies; CONFIG points to them */
	/* as part of a query: "", or "&..." */
	char *selectors;
	enum { WAITING, LISTING, DOUBTING, ASKING, STANDING } state;
	/* in WAITING: the pause; in LISTING and DOUBTING: the time limit PAGE_MS */
	struct loop_timer timer;
	struct watch_part *part;  /* the current page, or the watch; NULL in WAITING */
	struct watch_part *ahead; /* in LISTING: the page after PART, or NULL */
	/* don't prefetch pages for the rest of this list */
	bool ahead_failed;
	const char *verb; /* of the last request: "list", "watch" */
	char *version;	  /* from which to watch; NULL: a list comes first */
	char *next;	  /* token of the next page, escaped; NULL at the start of a list */
	unsigned page;
	size_t listed;	/* objects of this list so far */
	unsigned empty; /* pages of this list without any object */
	uint64_t since; /* when STANDING began */
	/* How many more refusals an optional resource may get before it counts as forbidden. */
	unsigned refusals;
	/* Only a watch that lasts STEADY_MS resets the pauses. */
	struct backoff backoff;
	unsigned silent;  /* restart the watch after this time without a byte */
	unsigned head_ms; /* time limit for the head of the next reply */
	uint64_t due;	  /* when WAITING ends */
	/* when watch_retry_now last caused a retry; 0: never */
	uint64_t retried_early;
	/* in WAITING: watch_retry_now may end the pause early */
	bool may_retry_early;
	bool doubt;	  /* the server may have been restored since the last list or check */
	uint64_t checked; /* when the server last reported its version; 0: check without delay */
	char *replied;	  /* highest version of watch_replied, if later than VERSION; or NULL */
	/* of the last reply; after -ETIMEDOUT, the next request uses a new connection */
	int reply_err;
	/* code of an ERROR event in the stream, or -1; 0 if there was none */
	int event_err;
	int err; /* last reported to the owner, or ERR_NONE_YET */
};

static void send_next(struct watch *w);
static void ask_ahead(struct watch *w);

/* Report ERR and TEXT to the owner. But if the cache remains confirmed (ERR 0), do nothing. */
static void notify(struct watch *w, int err, const char *text)
{
	if (err == 0 && w->err == 0)
		return;
	w->err = err;
	if (err == 0)
		w->refusals = REFUSALS_MAX;
	return w->config.state(w->config.data, err, text);
}

static void part_free(struct watch_part *part)
{
	if (!part)
		return;
	http_drop(&part->request);
	spec_split_free(part->split);
	free(part);
}

/* Record that the owner knows all changes up to VERSION. Take ownership of VERSION. */
static void set_version(struct watch *w, char *version)
{
	free(w->version);
	w->version = version;
	if (w->replied && spec_version_is_up_to(w->replied, version))
		free(take_ptr(w->replied));
}

/* Make the next request begin a new list. */
static void forget_version(struct watch *w)
{
	free(take_ptr(w->version));
	part_free(take_ptr(w->ahead));
	free(take_ptr(w->next));
}

/* --- waiting --- */

static void on_timer(void *data);

static void wait_ms(struct watch *w, unsigned ms)
{
	w->state = WAITING;
	w->due = loop_now_ms() + ms;
	loop_timer_set(&w->timer, ms);
}

void watch_retry_now(struct watch *w)
{
	uint64_t now = loop_now_ms();

	if (w->state != WAITING || !w->may_retry_early)
		return;
	/* The last early retry may have failed because the server was not running yet. */
	if (w->retried_early && now - w->retried_early < RETRY_EARLY_MS) {
		if (w->retried_early + RETRY_EARLY_MS < w->due)
			wait_ms(w, (unsigned)(w->retried_early + RETRY_EARLY_MS - now));
		return;
	}
	w->retried_early = now;
	on_timer(w);
}

/* Retry after a growing pause. AT_LEAST is the pause in ms that the server has requested, or 0. */
static void back_off(struct watch *w, unsigned at_least)
{
	w->may_retry_early = at_least == 0;
	wait_ms(w, backoff_next(&w->backoff, at_least));
}

/* Report a failed request to the owner, and retry later. */
static void failed(struct watch *w, const struct http_reply *reply)
{
	const struct spec_asked asked = spec_asked_of(w->verb, w->resource, w->namespace);
	bool forbidden = w->config.optional && !reply->err && reply->status == 403;
	cleanup_free char *text = NULL;
	int err = http_refusal(reply, &asked, &text);

	if (reply->err || reply->status >= 500)
		w->doubt = true;
	/*
	 * A server refuses connections during a restore, so check its version without delay. A
	 * proxy that only ends watches does not refuse connections.
	 */
	if (reply->err == -EHOSTUNREACH)
		w->checked = 0;
	/* A failed login shows nothing about the user's rights. */
	if (w->config.optional && (reply->err == -EACCES || (!reply->err && reply->status == 401)))
		err = -EKEYREJECTED;
	if (forbidden && w->refusals > 0) {
		w->refusals--;
		err = -EAGAIN;
	}
	/* Don't log the first failure, because the owner reports it to users. */
	if (w->err != err && w->err != ERR_NONE_YET)
		diag(DIAG_WARNING, "%s", text);
	if (err == -EOPNOTSUPP) {
		forget_version(w);
		wait_ms(w, ABSENT_MS);
		w->may_retry_early = false;
	} else if ((forbidden && err != -EAGAIN) || err == -EFBIG) {
		forget_version(w);
		wait_ms(w, WATCH_FORBIDDEN_MS);
		w->may_retry_early = false;
	} else {
		back_off(w, reply->wait_ms);
		w->may_retry_early &= reply->err || reply->status == 401 || reply->status >= 500;
	}
	return notify(w, err, text);
}

static void failed_with(struct watch *w, int err, const char *text)
{
	return failed(w, &(struct http_reply){.err = err, .text = text, .body = ""});
}

/* Relist, because the server no longer has the known version. */
static void expired(struct watch *w)
{
	diag(DIAG_INFO, "%s: the resource version of the watch has expired; relisting",
	     w->resource);
	forget_version(w);
	/* If requests have been failing, relist after a pause. */
	if (w->backoff.failures)
		return back_off(w, 0);
	(void)backoff_next(&w->backoff, 0);
	return send_next(w);
}

static bool is_expired(const struct watch *w, const struct http_reply *reply)
{
	return w->event_err == 410 || (!reply->err && reply->status == 410);
}

static bool is_refused(const struct http_reply *reply)
{
	return !reply->err && reply->status / 100 != 2;
}

/* --- a list --- */

static int pass_item(void *data, const char *json, size_t len, int wrong)
{
	return 0;
}

static int on_item(void *data, const char *json, size_t len, int wrong)
{
	struct watch_part *part = data;
	const struct watch_config *config = &part->w->config;

	part->objects++;
	if (++part->w->listed > SPEC_MAX_LISTED)
		return -EFBIG;
	config->object(config->data, json, len, false, wrong);
	return 0;
}

/* Handle a failed page. If the page was too slow, the retry requests fewer objects. */
static void page_failed(struct watch *w, const struct http_reply *reply)
{
	cleanup_free char *text =
		text_print("the list has more than %d objects, or one of its pages more than "
			   "%d MiB%s%s",
			   SPEC_MAX_LISTED, SPEC_MAX_PAGE_MIB,
			   w->config.fewer ? "; to list fewer objects, use " : "",
			   w->config.fewer ? w->config.fewer : "");
	bool passes = reply->err || reply->status >= 500 || reply->status == 429;

	if (!passes || reply->err == -EINVAL || reply->err == -EFBIG)
		forget_version(w);
	if (reply->err == -ETIMEDOUT || reply->status == 504)
		w->page = max_of(w->page / 2, 1u);
	return reply->err == -EFBIG ? failed_with(w, -EFBIG, text) : failed(w, reply);
}

static void page_done(struct watch *w);

/* Make the prefetched page the current one. */
static void take_ahead(struct watch *w)
{
	part_free(w->part);
	w->part = take_ptr(w->ahead);
	loop_timer_set(&w->timer, PAGE_MS);
	if (!w->part->request)
		return page_done(w);
	return ask_ahead(w);
}

static void page_done(struct watch *w)
{
	const struct watch_part *part = w->part;
	struct spec_list_meta meta;
	int err = spec_split_end(part->split, &meta);

	if (!err && !*meta.next && !*meta.resource_version)
		err = -EINVAL;
	if (err) {
		forget_version(w);
		return failed_with(w, err, "the list is incomplete");
	}
	free(w->next);
	w->next = *meta.next ? spec_url_escape(meta.next) : NULL;
	if (!w->next)
		set_version(w, text_copy(meta.resource_version));
	if (part->objects > 0)
		w->page = (unsigned)min_of((size_t)PAGE_MAX,
					   max_of((size_t)1,
						  PAGE_BYTES / (part->bytes / part->objects + 1)));
	if (w->next && part->objects == 0 && ++w->empty > EMPTY_MAX) {
		forget_version(w);
		return failed_with(w, -EINVAL, "the server never sends the last page of the list");
	}
	if (w->ahead)
		return take_ahead(w);
	if (w->version)
		w->doubt = false;
	send_next(w);
	if (!w->version)
		return;
	w->config.listed(w->config.data);
	return notify(w, 0, "");
}

static void on_list_done(void *data, const struct http_reply *reply)
{
	struct watch_part *part = data;
	struct watch *w = part->w;
	bool good = !reply->err && !is_refused(reply);

	part->request = NULL;
	if (part == w->ahead && good)
		return; /* the page before is not complete yet */
	if (part == w->ahead) {
		part_free(take_ptr(w->ahead));
		w->ahead_failed = true;
		return;
	}
	if (!good)
		part_free(take_ptr(w->ahead));
	w->head_ms = HEAD_MS;
	w->reply_err = reply->err;
	if (is_expired(w, reply))
		return expired(w);
	if (!good)
		return page_failed(w, reply);
	return page_done(w);
}

/* --- a watch --- */

static int on_event(void *data, const char *json, size_t len, int wrong)
{
	struct watch *w = ((struct watch_part *)data)->w;
	struct spec_event e cleanup(spec_event_clear) = {0};
	int err = spec_event_parse(json, len, &e);

	/* An event about an object that is too large may lack its version. */
	if (err)
		return wrong ? 0 : err;
	switch (e.type) {
	case SPEC_EVENT_ADDED:
	case SPEC_EVENT_MODIFIED:
	case SPEC_EVENT_DELETED:
		w->config.object(w->config.data, e.object, e.len, e.type == SPEC_EVENT_DELETED,
				 wrong);
		break;
	case SPEC_EVENT_BOOKMARK:
		break;
	case SPEC_EVENT_ERROR:
		w->event_err = e.code ? e.code : -1;
		return -ECANCELED;
	}
	set_version(w, take_ptr(e.resource_version));
	return 0;
}

/* The server has accepted the watch, which confirms the cache. */
static void on_watch_head(void *data, int status)
{
	struct watch *w = ((struct watch_part *)data)->w;

	w->state = STANDING;
	w->since = loop_now_ms();
	return notify(w, 0, "");
}

static void count_end(struct watch *w, const struct http_reply *reply)
{
	const char *why = is_expired(w, reply)	     ? "expired"
			  : is_refused(reply)	     ? "refused"
			  : reply->err == -ETIMEDOUT ? "silent"
			  : reply->err		     ? "broken"
						     : "ended";

	if (w->config.ends)
		tally_add(w->config.ends, (const char *const[]){w->resource, why, ""});
}

static void on_watch_done(void *data, const struct http_reply *reply)
{
	struct watch_part *part = data;
	struct watch *w = part->w;
	bool steady = w->state == STANDING && loop_now_ms() - w->since >= STEADY_MS;
	bool silent = reply->err == -ETIMEDOUT;
	bool flaps;

	part->request = NULL;
	w->head_ms = silent && steady ? PROBE_MS : HEAD_MS;
	w->reply_err = reply->err;
	count_end(w, reply);
	if (reply->err)
		w->doubt = true;
	if (silent && steady && !part->bytes)
		w->silent = min_of(w->silent * 2, SILENT_MAX_MS);
	if (steady)
		backoff_reset(&w->backoff);
	if (is_expired(w, reply))
		return expired(w);
	if (is_refused(reply)) {
		/* A server restored from a backup may refuse a VERSION that it never had. */
		if (reply->status == 400 || reply->status == 504)
			forget_version(w);
		return failed(w, reply);
	}
	if (w->event_err || reply->err == -EINVAL || reply->err == -EFBIG) {
		diag(DIAG_INFO, "%s: the watch ended with %s; relisting", w->resource,
		     w->event_err ? "a server error" : strerror(-reply->err));
		forget_version(w);
		return back_off(w, reply->wait_ms);
	}
	if (reply->status == 0)
		return failed(w, reply);
	if (steady)
		return send_next(w);
	flaps = reply->err && w->backoff.failures;
	back_off(w, reply->wait_ms);
	if (flaps)
		return notify(w, -EAGAIN, reply->text);
}

/* --- requests --- */

static int on_bytes(void *data, const char *bytes, size_t n)
{
	struct watch_part *part = data;
	struct watch *w = part->w;
	int err;

	part->bytes += n;
	if (!part->watching && part->bytes >> 20 >= SPEC_MAX_PAGE_MIB)
		return -EFBIG;
	if (w->state != DOUBTING)
		w->silent = SILENT_MS;
	err = spec_split_feed(part->split, bytes, n);
	if (!err && part == w->part && w->state == LISTING)
		ask_ahead(w);
	return err;
}

static struct watch_part *send_call(struct watch *w, struct http_call *call)
{
	struct watch_part *part = new0(struct watch_part);
	bool watching = w->state == ASKING;

	part->w = w;
	part->watching = watching;
	part->split =
		spec_split_new(watching ? SPEC_SPLIT_WATCH : SPEC_SPLIT_LIST, w->config.ignored,
			       watching		      ? on_event
			       : w->state == DOUBTING ? pass_item
						      : on_item,
			       part);
	call->method = HTTP_GET;
	call->stream = true;
	call->deadline_ms = w->head_ms;
	call->fresh = (w->reply_err == -ETIMEDOUT);
	call->bytes = on_bytes;
	call->data = part;
	part->request = http_send(w->config.http, call);
	return part;
}

/* TOKEN is escaped, or NULL for the first page. */
static struct watch_part *send_page(struct watch *w, const char *token)
{
	cleanup_free char *path = text_print("%s?limit=%u%s%s%s", w->path, w->page, w->selectors,
					     token ? "&continue=" : "", token ? token : "");
	struct http_call call = {
		.path = path,
		.metadata = w->config.metadata ? HTTP_METADATA_LIST : HTTP_WHOLE,
		.idle_ms = LIST_IDLE_MS,
		/*
		 * Until the owner has a first result, http.c retries. Later, the watch itself
		 * retries, and reports each failure.
		 */
		.retry = w->err == ERR_NONE_YET,
		.compress = true,
		.done = on_list_done,
	};

	return send_call(w, &call);
}

/* Prefetch the next page, but not before the first page has shown how large objects are. */
static void ask_ahead(struct watch *w)
{
	const char *token = spec_split_next(w->part->split);
	cleanup_free char *escaped = NULL;

	if (!*token || w->ahead || w->ahead_failed || !w->next)
		return;
	escaped = spec_url_escape(token);
	w->ahead = send_page(w, escaped);
	if (w->ahead->request) {
		http_yield(w->part->request);
	} else {
		part_free(take_ptr(w->ahead));
		w->ahead_failed = true;
	}
}

static void take_part(struct watch *w, struct watch_part *part)
{
	part_free(w->part);
	w->part = part;
	w->event_err = 0;
	if (part->watching)
		loop_timer_stop(&w->timer);
	else
		loop_timer_set(&w->timer, PAGE_MS);
	if (!part->request)
		back_off(w, 1000);
}

static void send_list(struct watch *w)
{
	w->state = LISTING;
	w->verb = "list";
	if (!w->next) {
		w->ahead_failed = false;
		free(take_ptr(w->replied));
		w->listed = w->empty = 0;
		w->config.begin(w->config.data);
	}
	take_part(w, send_page(w, w->next));
}

static void send_watch(struct watch *w)
{
	unsigned seconds = random_about(WATCH_S);
	cleanup_free char *version = spec_url_escape(w->version);
	cleanup_free char *path =
		text_print("%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%u"
			   "&resourceVersion=%s%s",
			   w->path, seconds, version, w->selectors);
	struct http_call call = {
		.path = path,
		.metadata = w->config.metadata ? HTTP_METADATA : HTTP_WHOLE,
		.idle_ms = min_of((seconds + WATCH_LATE_S) * 1000, w->silent),
		.head = on_watch_head,
		.done = on_watch_done,
	};

	w->state = ASKING;
	w->verb = "watch";
	take_part(w, send_call(w, &call));
}

static void on_version(void *data, const struct http_reply *reply)
{
	struct watch_part *part = data;
	struct watch *w = part->w;
	const char *known = w->replied ? w->replied : w->version;
	struct spec_list_meta meta;

	part->request = NULL;
	w->head_ms = HEAD_MS;
	w->reply_err = reply->err;
	if (reply->err || is_refused(reply))
		return failed(w, reply);
	if (spec_split_end(part->split, &meta) < 0)
		return failed_with(w, -EINVAL, "the list is incomplete");
	w->doubt = false;
	w->checked = loop_now_ms();
	if (!streq(meta.resource_version, known) &&
	    spec_version_is_up_to(meta.resource_version, known)) {
		diag(DIAG_WARNING,
		     "%s: the server's resource version is %s now, but was %s before; relisting",
		     w->resource, meta.resource_version, known);
		forget_version(w);
	}
	return send_next(w);
}

/* Request the server's current version. */
static void send_version(struct watch *w)
{
	cleanup_free char *path = text_print("%s?limit=1%s", w->path, w->selectors);
	struct http_call call = {
		.path = path,
		.idle_ms = LIST_IDLE_MS,
		.metadata = HTTP_METADATA_LIST,
		.done = on_version,
	};

	w->state = DOUBTING;
	w->verb = "list";
	take_part(w, send_call(w, &call));
}

static void on_timer(void *data)
{
	static const struct http_reply late = {.err = -ETIMEDOUT,
					       .text = "the server sent no complete page of "
						       "the list within 300 s",
					       .body = ""};
	struct watch *w = data;

	if (w->state == WAITING)
		return send_next(w);
	part_free(take_ptr(w->part));
	part_free(take_ptr(w->ahead));
	return w->state == LISTING ? page_failed(w, &late) : failed(w, &late);
}

/* True if the server's version was not checked within the last MS. */
static bool may_check(const struct watch *w, unsigned ms)
{
	return !w->checked || loop_now_ms() - w->checked >= ms;
}

static void send_next(struct watch *w)
{
	if (!w->version)
		send_list(w);
	else if (w->doubt && may_check(w, CHECK_MS))
		send_version(w);
	else
		send_watch(w);
}

/* --- life cycle --- */

/* Return the part of a query that sets NAME to SELECTOR, malloc'ed. */
static char *selector_query(const char *name, const char *selector)
{
	cleanup_free char *escaped = spec_url_escape(selector);

	return *selector ? text_print("&%s=%s", name, escaped) : text_copy("");
}

struct watch *watch_new(const struct watch_config *config)
{
	cleanup_free char *labels = selector_query("labelSelector", config->selector);
	cleanup_free char *fields =
		selector_query("fieldSelector", config->field ? config->field : "");
	struct watch *w = new0(struct watch);

	w->config = *config;
	loop_timer_init(&w->timer, config->loop, on_timer, w);
	w->config.path = w->path = text_copy(config->path);
	w->config.resource = w->resource = text_copy(config->resource);
	w->config.namespace = w->namespace = text_copy(config->namespace);
	w->config.selector = w->config.field = NULL; /* SELECTORS has copies */
	w->selectors = text_print("%s%s", labels, fields);
	w->page = config->page;
	w->backoff = backoff_begin(BACKOFF_MIN, BACKOFF_MAX);
	w->silent = SILENT_MS;
	w->head_ms = HEAD_MS;
	w->err = ERR_NONE_YET;
	send_next(w);
	return w;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	part_free(w->part);
	loop_timer_stop(&w->timer);
	forget_version(w);
	free(w->replied);
	free(w->path);
	free(w->resource);
	free(w->namespace);
	free(w->selectors);
	free(w);
}

void watch_replied(struct watch *w, const char *version)
{
	if (!spec_version_is_up_to(version, w->replied ? w->replied : watch_version(w)))
		text_set(&w->replied, "%s", version);
}

void watch_doubt(struct watch *w)
{
	w->doubt = true;
	if ((w->state == ASKING || w->state == STANDING) && may_check(w, DOUBT_MS))
		send_version(w);
}

const char *watch_verb(const struct watch *w)
{
	return w->verb;
}

const char *watch_version(const struct watch *w)
{
	return w && w->version ? w->version : "";
}
