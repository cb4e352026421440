/* SPDX-License-Identifier: MIT */
/*
 * LIST and WATCH, with a server that is played by the test: what is reported to the owner, and
 * when.
 */
#include <errno.h>

#include "tests/unit/backend/client/fake_net.h"

#include "backend/base/diag.h"
#include "backend/base/print.h"
#include "backend/client/watch.h"
#include "spec/base/mem.h"

static struct {
	struct watch *w;
	char told[65536]; /* one word for each callback */
	int err;	  /* the last arguments of on_state */
	char text[256];
} world;

static struct tally n_ends;

static void tell(const char *word)
{
	size_t n = strlen(world.told);

	snprintf(world.told + n, sizeof(world.told) - n, "%s ", word);
}

static void on_begin(void *data)
{
	tell("begin");
}

static void on_object(void *data, const char *json, size_t len, bool gone, int wrong)
{
	const char *name = strstr(json, "\"name\":\"");
	char word[64];

	assert_int_equal(strlen(json), len);
	snprintf(word, sizeof(word), "%s%s%.*s", wrong ? "!" : "", gone ? "-" : "+",
		 name ? (int)strcspn(name + 8, "\"") : 1, name ? name + 8 : "?");
	tell(word);
}

static void on_listed(void *data)
{
	tell("listed");
}

static void on_state(void *data, int err, const char *text)
{
	char word[32];

	world.err = err;
	snprintf(world.text, sizeof(world.text), "%s", text);
	snprintf(word, sizeof(word), "state%d", err);
	tell(word);
}

/*
 * Start a watch. FIELD is a field selector, as for a resource that the user may not be allowed to
 * list. If FIELD is NULL, the resource is required.
 */
static void begin_with(const char *field)
{
	const struct watch_config config = {
		.path = "/api/v1/namespaces/ns/pods",
		.selector = "a=b,c",
		.resource = "pods",
		.namespace = "ns",
		.page = 50,
		.field = field,
		.optional = field,
		.fewer = "-o mine",
		.ends = &n_ends,
		.begin = on_begin,
		.object = on_object,
		.listed = on_listed,
		.state = on_state,
	};

	memset(&fake, 0, sizeof(fake));
	memset(&world, 0, sizeof(world));
	fake.now = 1000;
	diag_setup(DIAG_ERROR, false);
	world.w = watch_new(&config);
	assert_non_null(world.w);
}

static void begin(void)
{
	begin_with(NULL);
}

static int teardown(void **state)
{
	watch_free(take_ptr(world.w));
	assert_null(fake.requests);
	assert_null(fake.timers);
	return 0;
}

/* Assert that the callbacks since the last call were WORDS. */
static void expect_told(const char *words)
{
	assert_string_equal(world.told, words);
	*world.told = '\0';
}

/* Return the only request under way, whose path must contain PART. */
static struct http_request *request(const char *part)
{
	assert_non_null(fake.requests);
	assert_null(fake.requests->next);
	assert_non_null(fake.requests->path);
	if (!strstr(fake.requests->path, part))
		fail_msg("%s is not in %s", part, fake.requests->path);
	return fake.requests;
}

#define OBJECT(name, version)                                                                      \
	"{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define PAGE(version, next, items)                                                                 \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version                       \
	"\",\"continue\":\"" next "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define ERROR(code)	    EVENT("ERROR", "{\"kind\":\"Status\",\"code\":" code "}")

static void list_and_watch(void)
{
	begin();
	fake_answer(request("limit=50&labelSelector=a%3Db%2Cc"), 200,
		    PAGE("7", "", OBJECT("one", "5")));
	expect_told("begin +one listed state0 ");
	request("watch=true&allowWatchBookmarks=true");
	request("resourceVersion=7&labelSelector=a%3Db%2Cc");
}

static void head(void)
{
	struct http_request *rq = request("watch=true");

	rq->call.head(rq->call.data, 200);
}

static int feed(const char *text)
{
	struct http_request *rq = request("watch=true");

	return rq->call.bytes(rq->call.data, text, strlen(text));
}

/* Let the watch run for five minutes, and end it without an error. */
static void end_in_time(void)
{
	fake_pass(300000);
	fake_end(request("watch=true"), &(struct http_reply){.status = 200});
}

static void test_pages(void **state)
{
	struct http_request *rq;

	begin();
	rq = request("limit=50");
	assert_true(rq->call.compress && rq->call.retry && rq->call.stream);
	fake_answer(rq, 200, PAGE("7", "a/b=", OBJECT("one", "5") "," OBJECT("two", "6")));
	expect_told("begin +one +two ");
	fake_answer(request("limit=500&labelSelector=a%3Db%2Cc&continue=a%2Fb%3D"), 200,
		    PAGE("7", "", OBJECT("three", "4")));
	expect_told("+three listed state0 ");
	request("resourceVersion=7");
}

/* The page size is chosen so that each page has about 4 MiB. */
static void test_page_size(void **state)
{
	struct http_request *rq;
	char *pad = malloc(2 << 20);

	begin();
	rq = request("limit=50");
	memset(pad, ' ', (2 << 20) - 1);
	pad[(2 << 20) - 1] = '\0';
	assert_int_equal(rq->call.bytes(rq->call.data, pad, strlen(pad)), 0);
	fake_answer(rq, 200, PAGE("7", "x", OBJECT("one", "5")));
	free(pad);
	request("limit=1&");
	/* An empty page does not change the estimated object size. */
	fake_answer(request("continue=x"), 200, PAGE("7", "y", ""));
	request("limit=1&");
}

/*
 * A server ignores the limit and sends objects without end. kxfs abandons the list at a bound, and
 * does not retry soon.
 */
static void test_list_endless(void **state)
{
	static const char item[] = OBJECT("one", "5") ",";
	enum { EACH = 1000 };
	char *items = calloc(EACH, sizeof(item));
	struct http_request *rq;
	int err;

	begin();
	rq = request("limit=50");
	for (size_t i = 0; i < EACH; i++)
		strcpy(items + i * (sizeof(item) - 1), item);
	assert_int_equal(rq->call.bytes(rq->call.data, "{\"items\":[", 10), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(rq->call.bytes(rq->call.data, items, strlen(items)), 0);
	err = rq->call.bytes(rq->call.data, items, strlen(items));
	free(items);
	assert_int_equal(err, -EFBIG);
	*world.told = '\0';
	fake_end(rq, &(struct http_reply){.err = err, .status = 200});
	expect_told("state-27 ");
	assert_string_equal(world.text,
			    "list pods: the list has more than 200000 objects, or one of its pages "
			    "more than 512 MiB; to list fewer objects, use -o mine");
	assert_false(fake_wait(299000));
	assert_true(fake_wait(301000));
	request("limit=50");
}

/* A page without end, whose bytes are ignored or are not objects. */
static void test_page_endless(void **state)
{
	char *blanks = malloc(1 << 20);
	struct http_request *rq;
	int err = 0, n = 0;

	begin();
	rq = request("limit=50");
	memset(blanks, ' ', 1 << 20);
	while (!err && n++ < 1000)
		err = rq->call.bytes(rq->call.data, blanks, 1 << 20);
	free(blanks);
	assert_int_equal(err, -EFBIG);
	assert_int_equal(n, 512);
	fake_end(rq, &(struct http_reply){.err = err, .status = 200});
	expect_told("begin state-27 ");
	assert_non_null(strstr(world.text, "512 MiB"));
}

/* Continue tokens without end end in an error, and kxfs waits before it retries. */
static void test_tokens_endless(void **state)
{
	size_t n = 0;

	begin();
	for (; !world.err; n++)
		fake_answer(request("limit=50"), 200, PAGE("7", "more", ""));
	assert_int_equal(world.err, -EINVAL);
	assert_non_null(strstr(world.text, "never sends the last page"));
	assert_in_range(n, 50, 200);
	assert_null(fake.requests);
}

/*
 * A page that arrives very slowly is abandoned after five minutes. kxfs then requests half as many
 * objects.
 */
static void test_page_drips(void **state)
{
	uint64_t begun;

	begin();
	begun = fake.now;
	while (!world.err) {
		struct http_request *rq = request("limit=50&");

		assert_int_equal(rq->call.bytes(rq->call.data, " ", 1), 0);
		fake_pass(5000);
	}
	assert_int_equal(world.err, -ETIMEDOUT);
	assert_in_range(fake.now - begun, 300000, 310000);
	fake_pass(1000);
	request("limit=25&");
}

static void test_events(void **state)
{
	list_and_watch();
	head();
	/* Events may be split into chunks anywhere. */
	assert_int_equal(
		feed("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"two\",\"reso"), 0);
	expect_told("");
	assert_int_equal(feed("urceVersion\":\"8\"}}}\n" EVENT("MODIFIED", OBJECT("one", "9"))), 0);
	expect_told("+two +one ");
	assert_int_equal(feed(EVENT("DELETED", OBJECT("two", "10"))), 0);
	expect_told("-two ");
	end_in_time();
	request("resourceVersion=10&");
	expect_told("");
}

static void test_bookmark(void **state)
{
	list_and_watch();
	head();
	assert_int_equal(feed(EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"99\"}}")), 0);
	end_in_time();
	request("resourceVersion=99&");
	expect_told("");
}

/* Answer the request for the server's version with VERSION. */
static void tell_version(const char *version)
{
	struct http_request *rq = request("limit=1&labelSelector=a%3Db%2Cc");
	char page[256];

	assert_true(rq->call.metadata);
	snprintf(page, sizeof(page), PAGE("%s", "more", OBJECT("one", "5")), version);
	fake_answer(rq, 200, page);
}

/*
 * After a break, the watch continues at the same version. The objects stay confirmed while the
 * server is reachable.
 */
static void test_broken_stream(void **state)
{
	list_and_watch();
	head();
	assert_int_equal(feed(EVENT("ADDED", OBJECT("two", "8")) "{\"type\":\"ADDED\",\"obj"), 0);
	fake_end(request("watch=true"), &(struct http_reply){.err = -EIO, .status = 200});
	expect_told("+two ");
	assert_null(fake.requests);
	assert_true(fake_wait(500));
	tell_version("8");
	request("resourceVersion=8&");
	fake_break(request("watch=true"), -EHOSTUNREACH, false);
	expect_told("state-113 ");
	assert_non_null(strstr(world.text, "it broke"));
	assert_true(fake_wait(1000));
	tell_version("8");
	head();
	expect_told("state0 ");
}

/* Start the watch after a break, and break it 3 s later. */
static void flap(void)
{
	if (strstr(request("")->path, "limit=1&"))
		tell_version("7");
	head();
	fake_pass(3000);
	fake_end(request("watch=true"),
		 &(struct http_reply){.err = -EIO, .status = 200, .text = "it broke again"});
}

/*
 * If watches break again and again, the pauses between them grow. The objects are not confirmed in
 * these pauses.
 */
static void test_flaps(void **state)
{
	list_and_watch();
	head();
	fake_pass(3000);
	fake_end(request("watch=true"), &(struct http_reply){.err = -EIO, .status = 200});
	expect_told("");
	assert_true(fake_wait(500)); /* a short pause */
	for (int i = 0; i < 10; i++) {
		flap();
		expect_told(i ? "state0 state-11 " : "state-11 ");
		assert_string_equal(world.text, "it broke again");
		assert_true(fake_wait(60000));
	}
	flap();
	expect_told("state0 state-11 ");
	assert_true(fake_wait(60000));
	if (strstr(request("")->path, "limit=1&"))
		tell_version("7");
	head();
	expect_told("state0 ");
	/* A watch that lasted long counts as working, so the next break counts as the first one. */
	fake_pass(60000);
	fake_end(request("watch=true"), &(struct http_reply){.err = -EIO, .status = 200});
	flap();
	expect_told("");
}

/*
 * Do WHAT N times, each time to the request under way. Return the shortest pause between two
 * requests.
 */
static uint64_t least_pause(unsigned n, void (*what)(struct http_request *rq))
{
	uint64_t least = UINT64_MAX, last = fake.now;
	size_t lists = 0;

	for (unsigned i = 0; i < n; i++) {
		struct http_request *rq = request("");
		bool list = !strstr(rq->path, "watch=true") && !strstr(rq->path, "continue=");

		if (list && lists++ > 1)
			least = min_of(least, fake.now - last);
		if (list)
			last = fake.now;
		what(rq);
		if (!fake.requests)
			assert_true(fake_wait(60000));
	}
	return least;
}

static void lists_then_410(struct http_request *rq)
{
	if (strstr(rq->path, "watch=true"))
		fake_answer(rq, 410, "{\"kind\":\"Status\",\"code\":410}");
	else
		fake_answer(rq, 200, PAGE("7", "", ""));
}

static void lists_then_event_410(struct http_request *rq)
{
	if (strstr(rq->path, "watch=true"))
		fake_answer(rq, 200, EVENT("ADDED", OBJECT("x", "8")) ERROR("410"));
	else
		fake_answer(rq, 200, PAGE("7", "", ""));
}

static void page_then_410(struct http_request *rq)
{
	if (strstr(rq->path, "continue="))
		fake_answer(rq, 410, "{\"kind\":\"Status\",\"code\":410}");
	else
		fake_answer(rq, 200, PAGE("7", "more", ""));
}

/* Let the watch be silent until its timeout. */
static void fall_silent(void)
{
	struct http_request *rq = request("watch=true");

	fake_pass(rq->call.idle_ms);
	fake_end(rq, &(struct http_reply){.err = -ETIMEDOUT, .status = 200, .text = "no byte"});
}

/* kxfs notices in little more than a minute that a server hangs or has disappeared. */
static void test_silent(void **state)
{
	struct http_request *rq;
	unsigned ms;

	list_and_watch();
	head();
	ms = request("watch=true")->call.idle_ms;
	fall_silent();
	expect_told("");
	rq = request("limit=1&");
	assert_true(rq->call.fresh);
	ms += rq->call.deadline_ms;
	assert_in_range(ms, 61000, 80000); /* the server sends a bookmark each minute */
	fake_break(rq, -ETIMEDOUT, true);
	expect_told("state-110 ");
	fake_pass(30000);
	assert_true(request("limit=1&")->call.fresh);
	tell_version("7");
	request("resourceVersion=7");
	head();
	expect_told("state0 ");
}

/*
 * A server that was restored from a backup is at an older version than the watch. Its watch sends
 * nothing until it reaches the watch's version again. After an error of the connection, as when a
 * bookmark is overdue, kxfs requests the server's version.
 */
static void test_set_back(void **state)
{
	list_and_watch();
	head();
	assert_int_equal(feed(EVENT("BOOKMARK", OBJECT("", "900"))), 0);
	fall_silent();
	tell_version("1000");
	head();
	fake_pass(60000);
	fake_end(request("watch=true"), &(struct http_reply){.err = -EIO, .status = 200});
	expect_told("");
	tell_version("899");
	fake_answer(request("limit=500&"), 200, PAGE("899", "", OBJECT("two", "800")));
	expect_told("begin +two listed ");
	request("resourceVersion=899");
	head();
	end_in_time();
	request("resourceVersion=899");
}

/*
 * kxfs has checked the version a moment before the server is restored. If the server refuses a
 * connection meanwhile, kxfs checks again. Otherwise the silence of the next watch leads to a
 * check.
 */
static void test_set_back_soon(void **state)
{
	static const int errs[] = {-EHOSTUNREACH, -EIO};

	for (size_t i = 0; i < array_size(errs); i++) {
		list_and_watch();
		head();
		assert_int_equal(feed(EVENT("BOOKMARK", OBJECT("", "900"))), 0);
		fake_end(request("watch=true"), &(struct http_reply){.err = -EIO, .status = 200});
		assert_true(fake_wait(1000));
		tell_version("900");
		fake_break(request("watch=true"), errs[i], false);
		assert_true(fake_wait(1000));
		if (errs[i] == -EIO) {
			head();
			fall_silent();
		}
		tell_version("899");
		request("limit=500&");
		watch_free(take_ptr(world.w));
	}
}

/* During a restore, a proxy answers in the server's place. */
static void test_set_back_behind_proxy(void **state)
{
	list_and_watch();
	fake_answer(request("watch=true"), 502, "<html>");
	assert_true(fake_wait(1000));
	fake_answer(request("limit=1&"), 503, "<html>");
	assert_true(fake_wait(2000));
	tell_version("6");
	request("limit=500&");
}

/*
 * A reply has an object that the watch has passed without reporting it. kxfs requests the server's
 * version, but not often.
 */
static void test_doubt(void **state)
{
	list_and_watch();
	watch_doubt(world.w);
	tell_version("6");
	fake_answer(request("limit=500&"), 200, PAGE("6", "", OBJECT("one", "2")));
	expect_told("begin +one listed ");
	head();
	fake_pass(9999);
	watch_doubt(world.w);
	request("resourceVersion=6&");
	fake_pass(1);
	watch_doubt(world.w);
	tell_version("8");
	head();
	watch_doubt(world.w);
	request("resourceVersion=6&");
	end_in_time();
	tell_version("5");
	request("limit=500&");
	expect_told("begin ");
}

/*
 * A reply has an object that no event has reported. If the server's version is lower afterwards, a
 * restore has removed this object. While watches keep breaking, kxfs does not relist.
 */
static void test_set_back_replied(void **state)
{
	list_and_watch();
	head();
	watch_replied(world.w, "900");
	assert_int_equal(feed(EVENT("BOOKMARK", OBJECT("", "900"))), 0);
	watch_replied(world.w, "850");
	fall_silent();
	tell_version("900");
	head();
	watch_replied(world.w, "950");
	watch_replied(world.w, "940");
	assert_int_equal(feed(EVENT("BOOKMARK", OBJECT("", "945"))), 0);
	fake_end(request("watch=true"), &(struct http_reply){.err = -EIO, .status = 200});
	assert_true(fake_wait(1000));
	head();
	expect_told("");
	fall_silent();
	tell_version("949");
	fake_answer(request("limit=500&"), 200, PAGE("949", "", ""));
	expect_told("begin listed ");
	head();
	fall_silent();
	tell_version("949");
	request("resourceVersion=949");
}

/*
 * Versions that are not numbers can't be compared. If the server does not report its version, kxfs
 * asks again.
 */
static void test_version_unknown(void **state)
{
	list_and_watch();
	fake_break(request("watch=true"), -EHOSTUNREACH, false);
	expect_told("state-113 ");
	assert_true(fake_wait(1000));
	fake_answer(request("limit=1&"), 200, "{\"kind\":\"PodList\",\"ite");
	expect_told("state-22 ");
	assert_true(fake_wait(2000));
	fake_answer(request("limit=1&"), 500, "");
	assert_true(fake_wait(4000));
	tell_version("x6");
	request("resourceVersion=7");
	head();
	expect_told("state-5 state0 ");
}

/* A server sends no bookmarks and has no events. kxfs does not keep asking it every minute. */
static void test_quiet(void **state)
{
	uint64_t begin;
	size_t sent;

	list_and_watch();
	begin = fake.now;
	sent = fake.n_sent;
	while (fake.now - begin < 3600000) {
		head();
		fall_silent();
		tell_version("7");
	}
	expect_told("");
	assert_in_range(fake.n_sent - sent, 6, 24);
	head();
	assert_int_equal(feed(EVENT("BOOKMARK", OBJECT("", "9"))), 0);
	fall_silent();
	tell_version("9");
	assert_in_range(request("resourceVersion=9")->call.idle_ms, 61000, 80000);
}

/*
 * The server has dropped the version ("expired"). kxfs immediately lists everything again. If the
 * server repeats this, kxfs waits between its requests.
 */
static void test_expired(void **state)
{
	for (int form = 0; form < 2; form++) {
		list_and_watch();
		head();
		fake_pass(10000);
		if (form)
			fake_answer(request("watch=true"), 410, "{\"code\":410}");
		else
			assert_int_equal(feed(ERROR("410")), -ECANCELED);
		if (!form)
			fake_end(request("watch=true"),
				 &(struct http_reply){.err = -ECANCELED, .status = 200});
		fake_answer(request("limit="), 200, PAGE("20", "", OBJECT("two", "19")));
		expect_told("begin +two listed ");
		request("resourceVersion=20&");
		watch_free(take_ptr(world.w));
	}
	begin();
	assert_true(least_pause(40, lists_then_410) >= 125);
	assert_true(least_pause(10, lists_then_410) >= 15000);
	watch_free(take_ptr(world.w));
	begin();
	assert_true(least_pause(40, lists_then_event_410) >= 125);
	assert_true(least_pause(10, lists_then_event_410) >= 15000);
	watch_free(take_ptr(world.w));
	begin();
	assert_true(least_pause(40, page_then_410) >= 125);
	assert_true(least_pause(10, page_then_410) >= 15000);
}

/*
 * After any other error in the stream, even one without a code, kxfs lists everything again, but
 * not immediately.
 */
static void test_error_events(void **state)
{
	static const char *const events[] = {
		ERROR("504"),
		ERROR("\"x\""),
		EVENT("ERROR", "{}"),
		EVENT("SURPRISE", "{\"metadata\":{\"resourceVersion\":\"9\"}}"),
		"no JSON\n",
	};

	for (size_t i = 0; i < array_size(events); i++) {
		list_and_watch();
		fake_answer(request("watch=true"), 200, events[i]);
		assert_null(fake.requests);
		assert_true(fake_wait(500));
		fake_answer(request("limit="), 200, PAGE("30", "", ""));
		expect_told("begin listed ");
		watch_free(take_ptr(world.w));
	}
}

/*
 * A server that was restored does not know the watch's version, and refuses it with an HTTP status.
 */
static void test_version_refused(void **state)
{
	static const int codes[] = {400, 504};

	for (size_t i = 0; i < array_size(codes); i++) {
		list_and_watch();
		fake_answer(request("watch=true"), codes[i], "{}");
		assert_true(fake_wait(500));
		request("limit=");
		watch_free(take_ptr(world.w));
		*world.told = '\0';
	}
}

/*
 * If a page of a list fails, the list continues with that page, because it may have a thousand
 * pages.
 */
static void test_page_again(void **state)
{
	char open[500] = "", close[500] = "", page[2000];

	begin();
	fake_answer(request("limit="), 200, PAGE("7", "next", OBJECT("one", "5")));
	fake_end(request("continue=next"), &(struct http_reply){.err = -EIO, .status = 200});
	expect_told("begin +one state-5 ");
	assert_true(fake_wait(500));
	fake_answer(request("continue=next"), 503, "{}");
	assert_true(fake_wait(1000));
	fake_answer(request("continue=next"), 200, PAGE("7", "", OBJECT("two", "5")));
	expect_told("state-11 +two listed state0 ");
	watch_free(take_ptr(world.w));
	/* If the server refuses a continue token, kxfs lists from the start. */
	begin();
	fake_answer(request("limit="), 200, PAGE("7", "next", ""));
	fake_answer(request("continue=next"), 400, "{}");
	assert_true(fake_wait(500));
	assert_null(strstr(request("limit=")->path, "continue"));
	watch_free(take_ptr(world.w));
	/* The same if the page is malformed: its metadata is nested too deeply. */
	begin();
	fake_answer(request("limit="), 200, PAGE("7", "next", ""));
	memset(open, '[', sizeof(open) - 1);
	memset(close, ']', sizeof(close) - 1);
	snprintf(page, sizeof(page), PAGE("7", "\",\"a\":%s%s,\"b\":\"", ""), open, close);
	fake_answer(request("continue=next"), 200, page);
	assert_true(fake_wait(500));
	assert_null(strstr(request("limit=")->path, "continue"));
}

#define PAGE_HEAD(next)                                                                            \
	"{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"" next "\"},\"items\":["
#define PAGE_TAIL(items) items "]}"

/* Deliver the beginning of page "two". kxfs then requests page "three". */
static void ask_ahead(void)
{
	struct http_request *rq;

	begin();
	fake_answer(request("limit=50&"), 200, PAGE("7", "two", OBJECT("one", "5")));
	rq = request("continue=two");
	assert_int_equal(rq->call.bytes(rq->call.data, PAGE_HEAD("th/ree"),
					strlen(PAGE_HEAD("th/ree"))),
			 0);
	assert_non_null(fake_find("limit=500&labelSelector=a%3Db%2Cc&continue=th%2Free"));
	assert_int_equal(fake.n_sent, 3);
	expect_told("begin +one ");
}

/*
 * kxfs requests the next page as soon as it has received the token for it. Either page may be
 * complete first.
 */
static void test_page_ahead(void **state)
{
	for (int first = 0; first < 2; first++) {
		ask_ahead();
		if (first)
			fake_answer(fake_find("continue=th"), 200,
				    PAGE("7", "four", OBJECT("three", "5")));
		fake_answer(fake_find("continue=two"), 200, PAGE_TAIL(OBJECT("two", "5")));
		if (!first)
			fake_answer(request("continue=th"), 200,
				    PAGE("7", "four", OBJECT("three", "5")));
		expect_told(first ? "+three +two " : "+two +three ");
		fake_answer(request("continue=four"), 200, PAGE("7", "", OBJECT("four", "5")));
		expect_told("+four listed state0 ");
		request("resourceVersion=7&");
		assert_int_equal(fake.n_sent, 5);
		watch_free(take_ptr(world.w));
	}
}

/*
 * If the page that was requested ahead fails, kxfs ignores that until the list reaches this page.
 * It then requests the page again, and requests no further page ahead.
 */
static void test_page_ahead_fails(void **state)
{
	static const int codes[] = {503, 410, 400};

	for (size_t i = 0; i < array_size(codes); i++) {
		ask_ahead();
		fake_answer(fake_find("continue=th"), codes[i], "{}");
		expect_told("");
		assert_int_equal(fake.n_sent, 3);
		fake_answer(request("continue=two"), 200, PAGE_TAIL(OBJECT("two", "5")));
		fake_answer(request("continue=th"), 200, PAGE("7", "four", OBJECT("three", "5")));
		expect_told("+two +three ");
		assert_int_equal(fake.n_sent, 5);
		/* The list has expired for good, and starts again. */
		fake_answer(request("continue=four"), 410, "{}");
		expect_told("begin ");
		fake_answer(request("limit=500&"), 200, PAGE("8", "", OBJECT("five", "8")));
		expect_told("+five listed state0 ");
		request("resourceVersion=8&");
		watch_free(take_ptr(world.w));
	}
	/* The reply is not a list. */
	ask_ahead();
	fake_answer(fake_find("continue=th"), 200, "{}");
	fake_answer(request("continue=two"), 200, PAGE_TAIL(OBJECT("two", "5")));
	expect_told("+two state-22 ");
	assert_null(fake.requests);
	assert_true(fake_wait(500));
	assert_null(strstr(request("limit=")->path, "continue"));
}

/* The current page fails. kxfs requests the page ahead again, after the current one. */
static void test_page_before_fails(void **state)
{
	for (int whole = 0; whole < 2; whole++) {
		ask_ahead();
		if (whole)
			fake_answer(fake_find("continue=th"), 200,
				    PAGE("7", "", OBJECT("three", "5")));
		fake_break(fake_find("continue=two"), -EIO, true);
		assert_null(fake.requests);
		assert_true(fake_wait(500));
		fake_answer(request("continue=two"), 200, PAGE("7", "th/ree", OBJECT("two", "5")));
		fake_answer(request("continue=th"), 200, PAGE("7", "", OBJECT("three", "5")));
		assert_non_null(strstr(world.told, "+two +three listed state0 "));
		watch_free(take_ptr(world.w));
	}
	/* The list has expired, so the page ahead is useless. */
	ask_ahead();
	fake_answer(fake_find("continue=two"), 410, "{}");
	expect_told("begin ");
	assert_null(strstr(request("limit=")->path, "continue"));
	watch_free(take_ptr(world.w));
	ask_ahead(); /* teardown frees the watch while both requests are under way */
}

/* If a page times out, kxfs requests smaller pages. */
static void test_page_shrinks(void **state)
{
	begin();
	fake_break(request("limit=50&"), -ETIMEDOUT, true);
	assert_true(fake_wait(500));
	request("limit=25&");
}

static void refuses(struct http_request *rq)
{
	fake_answer(rq, 500, "{}");
}

/*
 * End the request without any object or event. A server may do that, but kxfs must not retry
 * constantly.
 */
static void ends(struct http_request *rq)
{
	fake_answer(rq, 200, strstr(rq->path, "watch=true") ? "" : PAGE("7", "", ""));
}

static void tells_and_ends(struct http_request *rq)
{
	fake_answer(rq, 200,
		    strstr(rq->path, "watch=true") ? EVENT("ADDED", OBJECT("x", "8"))
						   : PAGE("7", "", ""));
}

static void test_backoff(void **state)
{
	static void (*const whats[])(struct http_request * rq) = {refuses, ends, tells_and_ends};
	uint64_t waited, least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < array_size(whats); i++) {
		uint64_t from;

		begin();
		from = fake.now;
		least_pause(100, whats[i]);
		assert_true(fake.now - from > 100 * 10000);
		watch_free(take_ptr(world.w));
	}
	/*
	 * kxfs waits at least as long as the server requests, however long that is. It adds a pause
	 * that grows each time.
	 */
	begin();
	for (int i = 0; i < 20; i++) {
		fake_end(request("limit="), &(struct http_reply){.status = 429,
								 .wait_ms = 40000,
								 .body = "{}",
								 .text = ""});
		waited = fake.now;
		assert_true(fake_wait(70000));
		waited = fake.now - waited;
		assert_in_range(waited, 40000, 70000);
		least = min_of(least, waited);
		most = max_of(most, waited);
	}
	assert_true(most - least > 1000);
	/* After a watch that lasted long, the pause is short again. */
	fake_answer(request("limit="), 200, PAGE("7", "", ""));
	head();
	end_in_time();
	request("resourceVersion=7");
}

/*
 * A watch is waiting because the server did not answer. When the server has answered somebody else,
 * the watch retries early, but not too often.
 */
static void test_hurried(void **state)
{
	begin();
	for (int i = 0; i < 20; i++) {
		fake_break(request("limit="), -EHOSTUNREACH, false);
		assert_true(fake_wait(60000));
	}
	fake_break(request("limit="), -EHOSTUNREACH, false);
	watch_retry_now(world.w);
	fake_break(request("limit="), -EHOSTUNREACH, false);
	watch_retry_now(world.w);
	assert_null(fake.requests);
	fake_pass(1000);
	watch_retry_now(world.w);
	assert_null(fake.requests);
	fake_pass(1000); /* the server may have become reachable just after an early retry */
	fake_answer(request("limit="), 200, PAGE("7", "", ""));
	watch_retry_now(world.w); /* the watch is not waiting now */
	assert_int_equal(world.err, 0);
	request("watch=true");
	watch_free(take_ptr(world.w));
	/* An early retry must not shorten the time that the server itself requested. */
	begin();
	fake_end(request("limit="),
		 &(struct http_reply){.status = 503, .wait_ms = 40000, .body = "{}", .text = ""});
	watch_retry_now(world.w);
	assert_null(fake.requests);
	watch_free(take_ptr(world.w));
	begin();
	fake_answer(request("limit="), 404, "{\"kind\":\"Status\",\"code\":404}");
	watch_retry_now(world.w);
	assert_null(fake.requests);
}

static void test_refused(void **state)
{
	begin();
	fake_answer(request("limit="), 403,
		    "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":"
		    "\"pods is forbidden: User \\\"ada\\\" cannot list resource\"}");
	assert_int_equal(world.err, -EACCES);
	watch_free(take_ptr(world.w));
	begin();
	fake_answer(request("limit="), 404, "{\"kind\":\"Status\",\"code\":404}");
	assert_int_equal(world.err, -EOPNOTSUPP);
	assert_non_null(strstr(world.text, "pods"));
	fake_pass(59999); /* the resource may be installed later */
	assert_null(fake.requests);
	fake_pass(1);
	fake_answer(request("limit="), 200, PAGE("7", "", ""));
	assert_int_equal(world.err, 0);
	/* The resource is removed again. When it is back, kxfs lists it again. */
	fake_answer(request("watch="), 404, "{\"kind\":\"Status\",\"code\":404}");
	assert_int_equal(world.err, -EOPNOTSUPP);
	assert_true(fake_wait(60000));
	request("limit=");
}

/* An optional resource is requested again after five minutes, whatever the refusal was. */
static void test_optional(void **state)
{
	static const char forbidden[] = "{\"kind\":\"Status\",\"code\":403}";

	begin_with("metadata.name=q");
	fake_answer(request("&fieldSelector=metadata.name%3Dq"), 403, forbidden);
	assert_int_equal(world.err, -EACCES);
	assert_string_equal(watch_verb(world.w), "list");
	fake_pass(WATCH_FORBIDDEN_MS - 1);
	assert_null(fake.requests);
	fake_pass(1);
	fake_answer(request("limit="), 200, PAGE("7", "", ""));
	assert_int_equal(world.err, 0);
	/*
	 * A server that was just started may refuse every user for a moment. That does not end the
	 * watch.
	 */
	for (unsigned i = 0; i < 5; i++) {
		fake_answer(request("watch=true"), 403, forbidden);
		assert_int_equal(world.err, -EAGAIN);
		assert_true(fake_wait(10000));
	}
	fake_answer(request("watch=true"), 403, forbidden);
	assert_int_equal(world.err, -EACCES);
	assert_string_equal(watch_verb(world.w), "watch");
	assert_null(fake.requests);
	fake_pass(WATCH_FORBIDDEN_MS);
	request("limit=");
}

/* A user who has to log in again may still have the right to list an optional resource. */
static void test_optional_without_login(void **state)
{
	static const struct http_reply none = {.err = -EACCES, .text = "log in", .body = ""};

	begin_with("metadata.name=q");
	fake_end(request("limit="), &none);
	assert_int_equal(world.err, -EKEYREJECTED);
	assert_string_equal(world.text, "list pods: log in");
	assert_true(fake_wait(10000));
	fake_answer(request("limit="), 200, PAGE("7", "", ""));
	assert_int_equal(world.err, 0);
	fake_end(request("watch=true"), &none);
	assert_int_equal(world.err, -EKEYREJECTED);
	assert_true(fake_wait(10000));
	fake_answer(request("limit=1&"), 401, "{\"kind\":\"Status\",\"code\":401}");
	assert_int_equal(world.err, -EKEYREJECTED);
	assert_true(fake_wait(10000));
	fake_answer(request("limit=1&"), 200, PAGE("7", "", ""));
	request("watch=true");
}

/* A reply that is not a list never counts as an empty list. */
static void test_garbage(void **state)
{
	static const char *const lists[] = {
		"",
		"{}",
		"[]",
		"<html>",
		"{\"items\":[]",
		"{\"items\":[{\"metadata\":{\"name\":\"one\"}}]}",
	};

	for (size_t i = 0; i < array_size(lists); i++) {
		begin();
		fake_answer(request("limit="), 200, lists[i]);
		assert_null(strstr(world.told, "listed"));
		assert_true(world.err < 0);
		assert_true(fake_wait(500));
		request("limit=");
		watch_free(take_ptr(world.w));
	}
}

/* The watch reports an object that is too large as such, and continues after it. */
static void test_huge_event(void **state)
{
	char *huge = malloc(9 << 20);

	list_and_watch();
	memset(huge, 'x', (9 << 20) - 1);
	huge[(9 << 20) - 1] = '\0';
	head();
	assert_int_equal(feed("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"huge\","
			      "\"resourceVersion\":\"30\"},\"a\":\""),
			 0);
	assert_int_equal(feed(huge), 0);
	free(huge);
	assert_int_equal(feed("\"}}\n"), 0);
	expect_told("!+huge ");
	assert_string_equal(watch_version(world.w), "30");
	/* Neither the object's name nor its change is known, so the version stays the same. */
	assert_int_equal(feed("{\"object\":{\"a\":"), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(feed("["), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(feed("]"), 0);
	assert_int_equal(feed("},\"type\":\"ADDED\"}\n"), 0);
	expect_told("");
	assert_string_equal(watch_version(world.w), "30");
	assert_non_null(request("watch="));
}

/* A watch that is freed at any moment leaves no request and no timer. */
static void test_freed(void **state)
{
	for (int moment = 0; moment < 5; moment++) {
		begin();
		if (moment >= 1)
			fake_answer(request("limit="), 200, PAGE("7", "x", OBJECT("one", "5")));
		if (moment >= 2)
			fake_answer(request("limit="), 200, PAGE("7", "", OBJECT("two", "5")));
		if (moment >= 3)
			fake_break(request("watch="), -EIO, true);
		if (moment >= 4)
			assert_true(fake_wait(500));
		teardown(NULL);
	}
	watch_free(NULL);
}

/* If a request can't be created, the watch retries later. */
static void test_no_request(void **state)
{
	list_and_watch();
	fake.refusing = true;
	fake_break(request("watch="), -EIO, true);
	assert_true(fake_wait(500));
	assert_null(fake.requests);
	fake.refusing = false;
	assert_true(fake_wait(30000));
	tell_version("7");
	request("resourceVersion=7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_pages, teardown),
		cmocka_unit_test_teardown(test_page_size, teardown),
		cmocka_unit_test_teardown(test_page_again, teardown),
		cmocka_unit_test_teardown(test_page_ahead, teardown),
		cmocka_unit_test_teardown(test_page_ahead_fails, teardown),
		cmocka_unit_test_teardown(test_page_before_fails, teardown),
		cmocka_unit_test_teardown(test_page_shrinks, teardown),
		cmocka_unit_test_teardown(test_list_endless, teardown),
		cmocka_unit_test_teardown(test_page_endless, teardown),
		cmocka_unit_test_teardown(test_tokens_endless, teardown),
		cmocka_unit_test_teardown(test_page_drips, teardown),
		cmocka_unit_test_teardown(test_events, teardown),
		cmocka_unit_test_teardown(test_bookmark, teardown),
		cmocka_unit_test_teardown(test_broken_stream, teardown),
		cmocka_unit_test_teardown(test_flaps, teardown),
		cmocka_unit_test_teardown(test_silent, teardown),
		cmocka_unit_test_teardown(test_set_back, teardown),
		cmocka_unit_test_teardown(test_set_back_soon, teardown),
		cmocka_unit_test_teardown(test_set_back_behind_proxy, teardown),
		cmocka_unit_test_teardown(test_doubt, teardown),
		cmocka_unit_test_teardown(test_set_back_replied, teardown),
		cmocka_unit_test_teardown(test_version_unknown, teardown),
		cmocka_unit_test_teardown(test_quiet, teardown),
		cmocka_unit_test_teardown(test_expired, teardown),
		cmocka_unit_test_teardown(test_error_events, teardown),
		cmocka_unit_test_teardown(test_version_refused, teardown),
		cmocka_unit_test_teardown(test_backoff, teardown),
		cmocka_unit_test_teardown(test_hurried, teardown),
		cmocka_unit_test_teardown(test_refused, teardown),
		cmocka_unit_test_teardown(test_optional, teardown),
		cmocka_unit_test_teardown(test_optional_without_login, teardown),
		cmocka_unit_test_teardown(test_garbage, teardown),
		cmocka_unit_test_teardown(test_huge_event, teardown),
		cmocka_unit_test_teardown(test_freed, teardown),
		cmocka_unit_test_teardown(test_no_request, teardown),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
