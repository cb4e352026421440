/* SPDX-License-Identifier: MIT */
/*
 * The state machine of one request for a log (see podlog.h):
 *
 *         state           what is in progress       what ends it                       next
 *         STREAMING       the stream                the stream ends                    (done)
 *         HELD            the stream                its head arrives, with status 200  ASKING
 *                                                   the stream ends                    (done)
 *         ASKING          the stream, and a         the reply confirms the run         STREAMING
 *                         request for the run       any other reply                    (done)
 *                                                   the stream ends                    ASKING_ENDED
 *         ASKING_ENDED    the request for the run   the reply                          (done)
 *
 * In STREAMING, a request for the last line may be in progress, and a timer may run: see set_doubt.
 */
#include "backend/client/podlog.h"

#include <assert.h>
#include <errno.h>

#include "backend/base/loop.h"
#include "backend/base/random.h"
#include "spec/api/object.h"
#include "spec/api/refusal.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

#define HEAD_MS 30000
/* If a stream that follows the log is silent for this long, kxfs reopens it. */
#define IDLE_MS 600000
/* A stream that does not follow the log has failed if it is silent for this long. */
#define FETCH_MS 60000
#define ASK_MS	 30000
/* If more bytes are held back, kxfs requests the stream again. */
#define HELD_MAX (256u << 10)
#define POD_MAX	 (4u << 20)
/*
 * If a stream in doubt is silent for DOUBT_MS, kxfs checks it (see set_doubt). If the check has no
 * result, the time until the next check doubles, up to DOUBT_MAX_MS.
 */
#define DOUBT_MS     2000
#define DOUBT_MAX_MS IDLE_MS
#define DOUBT_BYTES  (1u << 20) /* after this many more bytes, the stream is in doubt again */
/* a stream is in doubt only if its log has at least this size: no kubelet rotates smaller logs */
#define LOSABLE (256u << 10)

enum podlog_state { STREAMING, HELD, ASKING, ASKING_ENDED };

struct podlog {
	struct podlog_config config;
	struct podlog_result result; /* the members that are known so far */
	enum podlog_state state;
	struct spec_logline *l;
	struct http_request *stream, *question; /* NULL if not in progress */
	bool paused;				/* by the owner */
	uint64_t begun_ms;
	uint64_t came, came_ms;
	bool gap;
	char *held;
	size_t n_held;
	struct http_reply end; /* in ASKING_ENDED: how the stream ended */
	char *end_text;
	/* Used to check whether the kubelet still follows the log (set_doubt). */
	uint64_t size;	 /* of the log */
	int64_t last_ns; /* time of the log's last line; 0 if unknown */
	/* Runs while the stream is in doubt. */
	struct loop_timer doubt;
	unsigned doubt_ms;
	uint64_t doubt_came;  /* CAME when the timer was set */
	uint64_t doubt_again; /* value of CAME from which the stream is in doubt again */
	/* true if, at the last check, the kubelet had another last line than kxfs */
	bool other;
};

void podlog_stop(struct podlog *p)
{
	if (!p)
		return;
	http_drop(&p->stream);
	http_drop(&p->question);
	loop_timer_stop(&p->doubt);
	spec_logline_free(p->l);
	free(p->held);
	free(p->end_text);
	free(p);
}

bool podlog_pause(struct podlog *p)
{
	p->paused = !p->stream || http_pause(p->stream);
	return p->paused;
}

void podlog_resume(struct podlog *p)
{
	p->paused = false;
	if (p->stream)
		http_resume(p->stream);
}

bool podlog_is_unsure(const struct podlog *p)
{
	return p->state != STREAMING;
}

bool podlog_is_asking(const struct podlog *p)
{
	return p->state == ASKING || p->state == ASKING_ENDED;
}

bool podlog_has_begun(const struct podlog *p)
{
	return p->result.begun;
}

uint64_t podlog_came(const struct podlog *p)
{
	return p->came;
}

uint64_t podlog_came_ms(const struct podlog *p)
{
	return p->came_ms;
}

/* --- the outcome --- */

static void finish(struct podlog *p, enum podlog_outcome outcome, unsigned wait_ms,
		   const char *text)
{
	const struct podlog_config config = p->config;
	cleanup_free char *copy = text_copy(text);
	struct podlog_result result = p->result;

	result.outcome = outcome;
	result.text = copy;
	result.wait_ms = wait_ms;
	result.open_ms = result.begun ? loop_now_ms() - p->begun_ms : 0;
	podlog_stop(p);
	config.done(config.data, &result);
}

static int on_output(void *data, int64_t ns, const char *bytes, size_t n)
{
	struct podlog *p = data;
	int err;

	if (spec_logline_gap(p->l) && !p->gap) {
		p->gap = true;
		p->config.gap(p->config.data);
	}
	err = p->config.bytes(p->config.data, ns, bytes, n);
	if (err < 0)
		return err;
	p->result.more = true;
	p->size += n;
	p->last_ns = ns;
	return 0;
}

/*
 * Finish after a clean end of the stream. The kubelet reports an error as a message, a text without
 * a time, at the end of the stream. A message after output means that the kubelet could not read
 * the rest of the log. But a stream that follows the log also ends with a message if the container
 * is removed while the kubelet waits for more output.
 */
static void finish_stream(struct podlog *p)
{
	int err = spec_logline_end(p->l, on_output, p);
	const char *text = spec_logline_text(p->l);

	p->config.paused(p->config.data);
	if (*text && !(p->config.follow && spec_logline_has_lines(p->l)))
		finish(p, PODLOG_MESSAGE, 0, text);
	else if (err == -ESTALE)
		finish(p, PODLOG_OTHER, 0, "");
	else if (err == -EAGAIN)
		finish(p, PODLOG_LESS, 0, "");
	else if (err == -ENOBUFS)
		finish(p, PODLOG_SLOW, 0, "");
	else
		finish(p, PODLOG_ALL, 0, "");
}

/* Finish a stream that the server has refused. */
static void finish_refused(struct podlog *p, const struct http_reply *reply)
{
	const struct spec_asked asked = {
		.verb = "get",
		.resource = "pods/log",
		.namespace = p->config.namespace,
		.name = p->config.pod,
	};
	cleanup_free char *text = NULL;
	int err = spec_reply_errno(reply->status, reply->body, reply->len, &asked, &text);
	enum podlog_outcome outcome = PODLOG_REFUSED;

	p->result.forbidden = reply->status == 403;
	if (reply->status == 400)
		outcome = PODLOG_NO_RUN;
	else if (reply->status == 404 && err == -ENOENT)
		outcome = PODLOG_GONE;
	finish(p, outcome, reply->wait_ms, text ? text : "");
}

static void finish_reply(struct podlog *p, const struct http_reply *reply)
{
	switch (reply->err) {
	case 0:
		break;
	case -EAGAIN:
		finish(p, PODLOG_AGAIN, 0, "");
		return;
	case -ESTALE:
		finish(p, PODLOG_OTHER, 0, "");
		return;
	case -ENOBUFS:
		finish(p, PODLOG_SLOW, 0, "");
		return;
	case -ETIMEDOUT:
		finish(p, p->result.begun && p->config.follow ? PODLOG_SILENT : PODLOG_BROKEN, 0,
		       reply->text);
		return;
	case -EIO:
		finish(p, p->result.begun ? PODLOG_CUT : PODLOG_BROKEN, 0, reply->text);
		return;
	default:
		finish(p, PODLOG_BROKEN, 0, reply->text);
		return;
	}
	if (reply->status == 204)
		finish(p, PODLOG_NEVER_RAN, 0, "the pod never ran");
	else if (reply->status / 100 == 2)
		finish_stream(p);
	else
		finish_refused(p, reply);
}

/* Return the path of the request, with REST at the end of its query; malloc'ed. */
static char *path_of(const struct podlog *p, const char *rest)
{
	cleanup_free char *container = spec_url_escape(p->config.container);
	cleanup_free char *pod = spec_url_escape(p->config.pod);

	return text_print("/api/v1/namespaces/%s/pods/%s/log?container=%s&timestamps=true%s",
			  p->config.namespace, pod, container, rest);
}

/* --- does the kubelet still follow the log? --- */

/*
 * Set the timer that checks, after MS, whether the kubelet still follows the log.
 *
 * A kubelet notices a rotation only if it has already read the current file to its end. Otherwise
 * it follows the old file forever, although nothing writes to that file any more. (Before version
 * 1.29, this happens after every rotation.) So kxfs can't be sure that a stream follows the log. A
 * stream is in doubt when it begins, and again after many bytes.
 *
 * If a stream in doubt is silent, kxfs asks the kubelet for the last line of the log. If kxfs
 * already has this line, the kubelet has read the current file to its end, and the doubt is over.
 * Otherwise, if the stream remains silent, kxfs abandons the stream.
 */
static void set_doubt(struct podlog *p, unsigned ms)
{
	p->doubt_ms = ms;
	p->doubt_came = p->came;
	loop_timer_set(&p->doubt, random_about(ms));
}

/* If the stream is in doubt, set the timer. */
static void begin_doubt(struct podlog *p)
{
	if (p->config.follow && !loop_timer_is_set(&p->doubt) && !p->question &&
	    p->size >= LOSABLE && p->came >= p->doubt_again)
		set_doubt(p, DOUBT_MS << min_of(p->config.lost, 8u));
}

static void on_last_line(void *data, const struct http_reply *reply)
{
	struct podlog *p = data;
	bool silent = p->came == p->doubt_came;
	int64_t ns = 0;

	p->question = NULL;
	if (silent && !reply->err && reply->status == 200 &&
	    spec_time_parse(reply->body, reply->len, &ns) > 0) {
		p->other = ns != p->last_ns;
		if (p->other)
			set_doubt(p, p->doubt_ms);
		else
			p->doubt_again = p->came + DOUBT_BYTES;
	} else {
		/*
		 * This reply does not show whether the log has lines that the stream lacks: the
		 * stream was not silent, the request failed, or the log was just rotated and is
		 * still empty. So check again later.
		 */
		set_doubt(p, silent ? min_of(2 * p->doubt_ms, (unsigned)DOUBT_MAX_MS) : DOUBT_MS);
	}
}

static void on_doubt(void *data)
{
	struct podlog *p = data;
	bool silent = p->came == p->doubt_came && p->state == STREAMING && !p->paused;
	cleanup_free char *path = NULL;

	p->other &= silent;
	if (p->other)
		return finish(p, PODLOG_SILENT, 0,
			      "the kubelet has newer output, but does not send it on this stream");
	if (!silent)
		return set_doubt(p, DOUBT_MS);
	path = path_of(p, "&tailLines=1&limitBytes=64");
	p->question = http_send(p->config.http, &(struct http_call){
							.method = HTTP_GET,
							.path = path,
							.deadline_ms = ASK_MS,
							.done = on_last_line,
							.data = p,
						});
	assert(p->question);
}

/* --- the stream --- */

static int feed(struct podlog *p, const char *bytes, size_t n)
{
	int err = spec_logline_feed(p->l, bytes, n, on_output, p);

	p->config.paused(p->config.data);
	begin_doubt(p);
	return err;
}

static int on_bytes(void *data, const char *bytes, size_t n)
{
	struct podlog *p = data;

	p->came += n;
	p->came_ms = loop_now_ms();
	if (p->state == STREAMING)
		return feed(p, bytes, n);
	if (p->n_held + n > HELD_MAX)
		return -EAGAIN;
	p->held = mem_grow(p->held, p->n_held + n, 1);
	memcpy(p->held + p->n_held, bytes, n);
	p->n_held += n;
	return 0;
}

static void on_end(void *data, const struct http_reply *reply)
{
	struct podlog *p = data;

	p->stream = NULL;
	if (p->state != ASKING) {
		finish_reply(p, reply);
		return;
	}
	p->state = ASKING_ENDED;
	p->end = *reply;
	p->end_text = text_copy(reply->text);
	p->end.text = p->end_text;
	p->end.body = "";
	p->end.len = 0;
}

/* --- the run and the pod of the stream --- */

/* Call this when the stream is known to be from the requested run. Pass on the held output. */
static void accept_held(struct podlog *p)
{
	cleanup_free char *held = take_ptr(p->held);
	bool ended = p->state == ASKING_ENDED;
	int err;

	http_drop(&p->question);
	p->state = STREAMING;
	err = p->n_held > 0 ? feed(p, held, p->n_held) : 0;
	p->n_held = 0;
	if (err < 0) {
		const struct http_reply reply = {.err = err, .text = strerror(-err), .body = ""};

		finish_reply(p, &reply);
	} else if (ended) {
		finish_reply(p, &p->end);
	}
}

/*
 * Decide whether the stream is from the requested run. NEWEST was the newest run at some time after
 * the stream had begun, so the stream is of NEWEST or an earlier run. While the container waits for
 * a restart, NEWEST has ended, and the server returns its log both with and without PREVIOUS.
 */
static void judge(struct podlog *p, const struct spec_listed_run *newest)
{
	unsigned restart = p->config.restart, restarts = (unsigned)newest->restarts;

	if (!streq(newest->uid, p->config.uid))
		finish(p, PODLOG_GONE, 0, "the pod is gone");
	else if (newest->restarts < 0 || restarts < restart)
		finish(p, PODLOG_WHICH_RUN, 0,
		       "the pod's status does not show which run of "
		       "the container this log belongs to");
	else if (restarts > restart + 1 || (restarts == restart + 1 && newest->between))
		finish(p, PODLOG_GONE, 0,
		       "this run's log no longer exists, because "
		       "the container was restarted again");
	else if (restarts == restart && p->config.previous && !newest->between)
		finish(p, PODLOG_NOT_YET, 0, "the pod's status does not show the restart yet");
	else if (restarts == restart + 1 && !p->config.previous)
		finish(p, PODLOG_NEXT_RUN, 0, "");
	else
		accept_held(p);
}

static void on_answer(void *data, const struct http_reply *reply)
{
	struct podlog *p = data;
	struct spec_listed_run newest;

	p->question = NULL;
	if (reply->err < 0 || reply->status != 200 ||
	    spec_object_listed_run(reply->body, reply->len, p->config.container, &newest) < 0) {
		finish(p, PODLOG_WHICH_RUN, reply->wait_ms,
		       *reply->text ? reply->text
				    : "the server does not report which run of the container this "
				      "log belongs to");
		return;
	}
	judge(p, &newest);
	free(newest.uid);
}

/* Request a list of pods, because the user may not have the right to get a single pod. */
static void ask_run(struct podlog *p)
{
	cleanup_free char *pod = spec_url_escape(p->config.pod);
	cleanup_free char *path =
		text_print("/api/v1/namespaces/%s/pods?fieldSelector=metadata.name%%3D%s",
			   p->config.namespace, pod);
	const struct http_call call = {
		.method = HTTP_GET,
		.path = path,
		.deadline_ms = ASK_MS,
		.max_body = POD_MAX,
		.retry = true,
		.done = on_answer,
		.data = p,
	};

	p->state = ASKING;
	p->question = http_send(p->config.http, &call);
	assert(p->question);
}

static void on_head(void *data, int status)
{
	struct podlog *p = data;

	p->result.begun = true;
	p->begun_ms = loop_now_ms();
	p->config.begun(p->config.data);
	if (p->state == HELD && status == 200)
		ask_run(p);
	else if (status == 200)
		begin_doubt(p);
}

struct podlog *podlog_start(struct podlog_config *config)
{
	struct podlog *p = new0(struct podlog);
	cleanup_free char *rest = NULL, *path = NULL;
	char since[32] = "";
	struct http_call call = {
		.method = HTTP_GET,
		.stream = true,
		.alone = config->alone,
		.deadline_ms = HEAD_MS,
		.idle_ms = config->follow ? IDLE_MS : FETCH_MS,
		.head = on_head,
		.bytes = on_bytes,
		.done = on_end,
		.data = p,
	};
	int64_t ns;

	p->size = config->known.size;
	if (config->known.n_lines > 0)
		p->last_ns = config->known.lines[config->known.n_lines - 1].ns;
	p->l = spec_logline_new(&config->known, config->force, config->past);
	p->config = *config;
	loop_timer_init(&p->doubt, config->loop, on_doubt, p);
	/*
	 * After a crash, kxfs may have a few bytes of the log without their time. A stream that
	 * repeats these bytes may still be from another run.
	 */
	p->state = config->force || p->last_ns == 0 ? HELD : STREAMING;
	if (spec_logline_since(p->l, &ns))
		spec_time_text(ns, since);
	rest = text_print("%s%s%s%s", config->follow ? "&follow=true" : "",
			  config->previous ? "&previous=true" : "", *since ? "&sinceTime=" : "",
			  since);
	path = path_of(p, rest);
	call.path = path;
	p->stream = http_send(config->http, &call);
	assert(p->stream);
	return p;
}
