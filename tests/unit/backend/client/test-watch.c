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
#include "tests/unit/noted.h"

static struct {
	struct watch *w;
	int err; /* the last arguments of on_state */
	char text[256];
} world;

static struct tally n_ends;

static void on_begin(void *data)
{
	note("begin");
}

static void on_object(void *data, const char *json, size_t len, bool gone, int wrong)
{
	const char *name = strstr(json, "\"name\":\"");

	assert_int_equal(strlen(json), len);
	note("%s%s%.*s", wrong ? "!" : "", gone ? "-" : "+",
	     name ? (int)strcspn(name + 8, "\"") : 1, name ? name + 8 : "?");
}

static void on_listed(void *data)
{
	note("listed");
}

static void on_state(void *data, int err, const char *text)
{
	world.err = err;
	snprintf(world.text, sizeof(world.text), "%s", text);
	note("state%d", err);
}

/* A watch that is freed at any moment leaves no request and no timer. */
static int teardown(void **state)
{
	watch_free(take_ptr(world.w));
	assert_null(fake.requests);
	assert_null(fake.timers);
	return 0;
}

/*
 * Start a watch in place of the previous one. FIELD is a field selector, as for a resource that the
 * user may not be allowed to list. If FIELD is NULL, the resource is required.
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

	teardown(NULL);
	memset(&fake, 0, sizeof(fake));
	memset(&world, 0, sizeof(world));
	forget_noted();
	fake.now = 1000;
	diag_setup(DIAG_ERROR, false);
	world.w = watch_new(&config);
	assert_non_null(world.w);
}

static void begin(void)
{
	begin_with(NULL);
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

/* Assert that the callbacks were WORDS, and that PART is in the path of the only request. */
static void expect(const char *words, const char *part)
{
	assert_done(words);
	request(part);
}

#define OBJECT(name, version)                                                                      \
	"{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define PAGE(version, next, items)                                                                 \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version                       \
	"\",\"continue\":\"" next "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version)   EVENT("BOOKMARK", OBJECT("", version))
#define ERROR(code)	    EVENT("ERROR", "{\"kind\":\"Status\",\"code\":" code "}")

/* --- what the server does with the only request under way --- */

static void answer(const char *part, int status, const char *body)
{
	fake_answer(request(part), status, body);
}

static void answer_page(const char *part, const char *page)
{
	answer(part, 200, page);
}

static void answer_later(int status, unsigned wait_ms)
{
	fake_end(request("limit="),
		 &(struct http_reply){.status = status, .wait_ms = wait_ms, .body = "{}"});
}

/* Break the connection before the reply has begun. */
static void break_off(const char *part, int err)
{
	fake_break(request(part), err, true);
}

/* Assert that kxfs waits, and let time pass until it sends a request, which is within MS. */
static void pause_up_to(uint64_t ms)
{
	assert_null(fake.requests);
	assert_true(fake_wait(ms));
}

/* Send a part of the reply. Return what kxfs returns to the client. */
static int send_part(struct http_request *rq, const char *text)
{
	return rq->call.bytes(rq->call.data, text, strlen(text));
}

static void accept_watch(void)
{
	struct http_request *rq = request("watch=true");

	rq->call.head(rq->call.data, 200);
}

static void feed(const char *text)
{
	assert_int_equal(send_part(request("watch=true"), text), 0);
}

/* End an accepted watch after MS. */
static void end_watch(uint64_t ms, int err)
{
	fake_pass(ms);
	fake_end(request("watch=true"),
		 &(struct http_reply){.err = err, .status = 200, .text = "it broke"});
}

/* Let an accepted watch be silent until its timeout. */
static void fall_silent(void)
{
	end_watch(request("watch=true")->call.idle_ms, -ETIMEDOUT);
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

static void list_and_watch(void)
{
	begin();
	answer_page("limit=50&labelSelector=a%3Db%2Cc", PAGE("7", "", OBJECT("one", "5")));
	expect("begin, +one, listed, state0", "resourceVersion=7&labelSelector=a%3Db%2Cc");
	request("watch=true&allowWatchBookmarks=true");
}

/* The same, and the server accepts the watch. */
static void stand(void)
{
	list_and_watch();
	accept_watch();
}

/* --- lists --- */

/* The page size is chosen so that each page has about 4 MiB. */
static void test_pages(void **state)
{
	char *pad = malloc(2 << 20);
	struct http_request *rq;

	begin();
	rq = request("limit=50");
	assert_true(rq->call.compress && rq->call.retry && rq->call.stream);
	memset(pad, ' ', (2 << 20) - 1);
	pad[(2 << 20) - 1] = '\0';
	assert_int_equal(send_part(rq, pad), 0);
	free(pad);
	answer_page("limit=50", PAGE("7", "a/b=", OBJECT("one", "5") "," OBJECT("two", "6")));
	expect("begin, +one, +two", "limit=3&labelSelector=a%3Db%2Cc&continue=a%2Fb%3D");
	/* An empty page does not change the estimated object size. */
	answer_page("limit=", PAGE("7", "y", ""));
	expect("", "limit=3&");
	answer_page("continue=y", PAGE("7", "", OBJECT("three", "4")));
	expect("+three, listed, state0", "resourceVersion=7");
}

/*
 * A server ignores the limit and sends objects without end, or blanks. kxfs abandons the list at a
 * bound, and does not retry soon.
 */
static void test_list_endless(void **state)
{
	static const char item[] = OBJECT("one", "5") ",";
	static char thousand[1000 * sizeof(item)], blanks[(1 << 20) + 1];
	const struct {
		const char *begin, *chunk;
		int n; /* how many chunks kxfs takes */
	} rows[] = {{"{\"items\":[", thousand, 200}, {"", blanks, 511}};

	for (size_t i = 0; i < 1000; i++)
		strcpy(thousand + i * (sizeof(item) - 1), item);
	memset(blanks, ' ', sizeof(blanks) - 1);
	for (size_t i = 0; i < array_size(rows); i++) {
		int err, n = 0;

		begin();
		assert_int_equal(send_part(request("limit=50"), rows[i].begin), 0);
		while (!(err = send_part(request("limit=50"), rows[i].chunk)))
			n++;
		assert_int_equal(err, -EFBIG);
		assert_int_equal(n, rows[i].n);
		forget_noted();
		break_off("limit=50", err);
		assert_done("state-27");
		assert_string_equal(
			world.text,
			"list pods: the list has more than 200000 objects, or one of its pages "
			"more than 512 MiB; to list fewer objects, use -o mine");
		assert_false(fake_wait(299000));
		pause_up_to(301000);
		request("limit=50");
	}
}

/* Continue tokens without end end in an error, and kxfs waits before it retries. */
static void test_tokens_endless(void **state)
{
	size_t n = 0;

	begin();
	for (; !world.err; n++)
		answer_page("limit=50", PAGE("7", "more", ""));
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
		assert_int_equal(send_part(request("limit=50&"), " "), 0);
		fake_pass(5000);
	}
	assert_int_equal(world.err, -ETIMEDOUT);
	assert_in_range(fake.now - begun, 300000, 310000);
	fake_pass(1000);
	request("limit=25&");
}

/*
 * If a page of a list fails, the list continues with that page, because it may have a thousand
 * pages.
 */
static void test_page_again(void **state)
{
	begin();
	answer_page("limit=", PAGE("7", "next", OBJECT("one", "5")));
	break_off("continue=next", -EIO);
	assert_done("begin, +one, state-5");
	pause_up_to(500);
	answer("continue=next", 503, "{}");
	pause_up_to(1000);
	answer_page("continue=next", PAGE("7", "", OBJECT("two", "5")));
	assert_done("state-11, +two, listed, state0");
}

/*
 * A reply that is not a list never counts as an empty list, or as its last page. kxfs lists from
 * the start, and so it does if the server refuses the continue token.
 */
static void test_garbage(void **state)
{
	static char nested[2000];
	const struct {
		int status;
		const char *body;
	} replies[] = {
		{200, ""},
		{200, "{}"},
		{200, "[]"},
		{200, "<html>"},
		{200, "{\"items\":[]"},
		{200, "{\"items\":[{\"metadata\":{\"name\":\"one\"}}]}"},
		{200, nested},
		{400, "{}"},
	};
	char open[500] = "", close[500] = "";

	memset(open, '[', sizeof(open) - 1);
	memset(close, ']', sizeof(close) - 1);
	snprintf(nested, sizeof(nested), PAGE("7", "\",\"a\":%s%s,\"b\":\"", ""), open, close);
	for (size_t i = 0; i < array_size(replies); i++) {
		begin();
		answer_page("limit=", PAGE("7", "next", ""));
		answer("continue=next", replies[i].status, replies[i].body);
		assert_null(strstr(noted, "listed"));
		assert_true(world.err < 0);
		pause_up_to(500);
		assert_null(strstr(request("limit=")->path, "continue"));
	}
}

#define PAGE_HEAD "{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"th/ree\"},\"items\":["
#define PAGE_TAIL OBJECT("two", "5") "]}"
#define TWO	  PAGE("7", "th/ree", OBJECT("two", "5"))
#define THREE	  PAGE("7", "four", OBJECT("three", "5"))
#define FOUR	  PAGE("7", "", OBJECT("four", "5"))

/* Deliver the beginning of page "two". kxfs then requests page "three". */
static void ask_ahead(void)
{
	begin();
	answer_page("limit=50&", PAGE("7", "two", OBJECT("one", "5")));
	assert_int_equal(send_part(request("continue=two"), PAGE_HEAD), 0);
	assert_non_null(fake_find("limit=500&labelSelector=a%3Db%2Cc&continue=th%2Free"));
	assert_int_equal(fake.n_sent, 3);
	assert_done("begin, +one");
}

/*
 * kxfs requests the next page as soon as it has received the token for it. Either page may be
 * complete first. If the page that was requested ahead fails, kxfs ignores that until the list
 * reaches this page. It then requests the page again, and requests no further page ahead.
 */
static void test_page_ahead(void **state)
{
	static const struct {
		bool ahead; /* the page that was requested ahead is answered first */
		int status; /* of its reply */
		const char *told;
		size_t n_sent; /* requests until the end of the list */
	} rows[] = {
		{false, 200, "+two, +three, +four, listed, state0", 5},
		{true, 200, "+three, +two, +four, listed, state0", 5},
		{true, 503, "+two, +three, +four, listed, state0", 6},
		{true, 410, "+two, +three, +four, listed, state0", 6},
		{true, 400, "+two, +three, +four, listed, state0", 6},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		ask_ahead();
		if (rows[i].ahead)
			fake_answer(fake_find("continue=th"), rows[i].status, THREE);
		assert_int_equal(fake.n_sent, 3);
		fake_answer(fake_find("continue=two"), 200, PAGE_TAIL);
		if (!rows[i].ahead || rows[i].status != 200)
			answer_page("continue=th", THREE);
		answer_page("continue=four", FOUR);
		expect(rows[i].told, "resourceVersion=7&");
		assert_int_equal(fake.n_sent, rows[i].n_sent);
	}
	/* The reply is not a list. */
	ask_ahead();
	fake_answer(fake_find("continue=th"), 200, "{}");
	fake_answer(fake_find("continue=two"), 200, PAGE_TAIL);
	assert_done("+two, state-22");
	pause_up_to(500);
	assert_null(strstr(request("limit=")->path, "continue"));
}

/* The current page fails. kxfs requests the page ahead again, after the current one. */
static void test_page_before_fails(void **state)
{
	for (int whole = 0; whole < 2; whole++) {
		ask_ahead();
		if (whole)
			fake_answer(fake_find("continue=th"), 200, THREE);
		fake_break(fake_find("continue=two"), -EIO, true);
		pause_up_to(500);
		answer_page("continue=two", TWO);
		answer_page("continue=th", THREE);
		answer_page("continue=four", FOUR);
		assert_non_null(strstr(noted, "+two, +three, +four, listed, state0"));
	}
	/* The list has expired, so the page ahead is useless, and the list starts again. */
	ask_ahead();
	fake_answer(fake_find("continue=two"), 410, "{}");
	expect("begin", "limit=500&");
	answer_page("limit=500&", PAGE("8", "", OBJECT("five", "8")));
	expect("+five, listed, state0", "resourceVersion=8&");
	ask_ahead(); /* teardown frees the watch while both requests are under way */
}

/* --- watches --- */

static void test_events(void **state)
{
	stand();
	feed(EVENT("ADDED", OBJECT("two", "8")) EVENT("MODIFIED", OBJECT("one", "9")));
	feed(EVENT("DELETED", OBJECT("two", "10")) "{\"type\":\"ADDED\",\"obj");
	assert_done("+two, +one, -two");
	end_watch(300000, 0);
	expect("", "resourceVersion=10&");
	accept_watch();
	feed(BOOKMARK("99"));
	end_watch(300000, 0);
	expect("", "resourceVersion=99&");
}

/* Start the watch after a break, and break it 3 s later. */
static void flap(void)
{
	if (strstr(request("")->path, "limit=1&"))
		tell_version("7");
	accept_watch();
	end_watch(3000, -EIO);
}

/*
 * If watches break again and again, the pauses between them grow. The objects are not confirmed in
 * these pauses.
 */
static void test_flaps(void **state)
{
	list_and_watch();
	flap();
	assert_done("");
	pause_up_to(500); /* a short pause */
	for (int i = 0; i < 11; i++) {
		flap();
		assert_done(i ? "state0, state-11" : "state-11");
		assert_string_equal(world.text, "it broke");
		pause_up_to(60000);
	}
	if (strstr(request("")->path, "limit=1&"))
		tell_version("7");
	accept_watch();
	assert_done("state0");
	/* A watch that lasted long counts as working, so the next break counts as the first one. */
	end_watch(60000, -EIO);
	flap();
	assert_done("");
}

/* kxfs notices in little more than a minute that a server hangs or has disappeared. */
static void test_silent(void **state)
{
	struct http_request *rq;
	unsigned ms;

	stand();
	ms = request("watch=true")->call.idle_ms;
	fall_silent();
	assert_done("");
	rq = request("limit=1&");
	assert_true(rq->call.fresh);
	ms += rq->call.deadline_ms;
	assert_in_range(ms, 61000, 80000); /* the server sends a bookmark each minute */
	break_off("limit=1&", -ETIMEDOUT);
	assert_done("state-110");
	fake_pass(30000);
	assert_true(request("limit=1&")->call.fresh);
	tell_version("7");
	request("resourceVersion=7");
	accept_watch();
	assert_done("state0");
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
		accept_watch();
		fall_silent();
		tell_version("7");
	}
	assert_done("");
	assert_in_range(fake.n_sent - sent, 6, 24);
	accept_watch();
	feed(BOOKMARK("9"));
	fall_silent();
	tell_version("9");
	assert_in_range(request("resourceVersion=9")->call.idle_ms, 61000, 80000);
}

/* The watch reports an object that is too large as such, and continues after it. */
static void test_huge_event(void **state)
{
	char *huge = malloc(9 << 20);

	stand();
	memset(huge, 'x', (9 << 20) - 1);
	huge[(9 << 20) - 1] = '\0';
	feed("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"huge\","
	     "\"resourceVersion\":\"30\"},\"a\":\"");
	feed(huge);
	free(huge);
	feed("\"}}\n");
	assert_done("!+huge");
	assert_string_equal(watch_version(world.w), "30");
	/* Neither the object's name nor its change is known, so the version stays the same. */
	feed("{\"object\":{\"a\":");
	for (int i = 0; i < 200; i++)
		feed("[");
	for (int i = 0; i < 200; i++)
		feed("]");
	feed("},\"type\":\"ADDED\"}\n");
	expect("", "watch=");
	assert_string_equal(watch_version(world.w), "30");
}

/* If a request can't be created, the watch retries later. */
static void test_no_request(void **state)
{
	list_and_watch();
	fake.refusing = true;
	break_off("watch=", -EIO);
	pause_up_to(500);
	assert_null(fake.requests);
	fake.refusing = false;
	pause_up_to(30000);
	tell_version("7");
	request("resourceVersion=7");
}

/* --- servers that were restored from a backup --- */

/*
 * A server that was restored from a backup is at an older version than the watch. Its watch sends
 * nothing until it reaches the watch's version again. After an error of the connection, as when a
 * bookmark is overdue, kxfs requests the server's version.
 *
 * Here kxfs has checked the version a moment before the restore. If the server refuses a connection
 * meanwhile, kxfs checks again. Otherwise the silence of the next watch leads to a check.
 */
static void test_set_back_soon(void **state)
{
	static const int errs[] = {-EHOSTUNREACH, -EIO};

	for (size_t i = 0; i < array_size(errs); i++) {
		stand();
		feed(BOOKMARK("900"));
		end_watch(0, -EIO);
		pause_up_to(1000);
		tell_version("900");
		break_off("watch=true", errs[i]);
		pause_up_to(1000);
		if (errs[i] == -EIO) {
			accept_watch();
			fall_silent();
		}
		tell_version("899");
		request("limit=500&");
	}
}

/* During a restore, a proxy answers in the server's place. */
static void test_set_back_behind_proxy(void **state)
{
	list_and_watch();
	answer("watch=true", 502, "<html>");
	pause_up_to(1000);
	answer("limit=1&", 503, "<html>");
	pause_up_to(2000);
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
	answer_page("limit=500&", PAGE("6", "", OBJECT("one", "2")));
	assert_done("begin, +one, listed");
	accept_watch();
	fake_pass(9999);
	watch_doubt(world.w);
	request("resourceVersion=6&");
	fake_pass(1);
	watch_doubt(world.w);
	tell_version("8");
	accept_watch();
	watch_doubt(world.w);
	request("resourceVersion=6&");
	end_watch(300000, 0);
	tell_version("5");
	expect("begin", "limit=500&");
}

/*
 * A reply has an object that no event has reported. If the server's version is lower afterwards, a
 * restore has removed this object. While watches keep breaking, kxfs does not relist.
 */
static void test_set_back_replied(void **state)
{
	stand();
	watch_replied(world.w, "900");
	feed(BOOKMARK("900"));
	watch_replied(world.w, "850");
	fall_silent();
	tell_version("900");
	accept_watch();
	watch_replied(world.w, "950");
	watch_replied(world.w, "940");
	feed(BOOKMARK("945"));
	end_watch(0, -EIO);
	pause_up_to(1000);
	accept_watch();
	assert_done("");
	fall_silent();
	tell_version("949");
	answer_page("limit=500&", PAGE("949", "", ""));
	assert_done("begin, listed");
	accept_watch();
	end_watch(300000, 0);
	request("resourceVersion=949");
	accept_watch();
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
	break_off("watch=true", -EHOSTUNREACH);
	assert_done("state-113");
	pause_up_to(1000);
	answer("limit=1&", 200, "{\"kind\":\"PodList\",\"ite");
	assert_done("state-22");
	pause_up_to(2000);
	answer("limit=1&", 500, "");
	pause_up_to(4000);
	tell_version("x6");
	request("resourceVersion=7");
	accept_watch();
	assert_done("state-5, state0");
}

/* --- watches that end in an error --- */

/*
 * The server has dropped the version (410), does not know it (a restored server), or has sent what
 * kxfs does not understand. kxfs lists everything again: after a 410 immediately, otherwise soon.
 */
static void test_listed_again(void **state)
{
	static const struct {
		int status;
		const char *body;
		bool pause;
	} replies[] = {
		{410, "{\"code\":410}", false},
		{200, ERROR("410"), false},
		{400, "{}", true},
		{504, "{}", true},
		{200, ERROR("504"), true},
		{200, ERROR("\"x\""), true},
		{200, EVENT("ERROR", "{}"), true},
		{200, EVENT("SURPRISE", "{\"metadata\":{\"resourceVersion\":\"9\"}}"), true},
		{200, "no JSON\n", true},
	};

	for (size_t i = 0; i < array_size(replies); i++) {
		stand();
		answer("watch=true", replies[i].status, replies[i].body);
		if (replies[i].pause) {
			pause_up_to(500);
		}
		answer_page("limit=", PAGE("30", "", OBJECT("two", "29")));
		assert_non_null(strstr(noted, "begin, +two, listed"));
		request("resourceVersion=30&");
	}
}

/*
 * However often the server refuses requests, or ends them without any object or event, kxfs does
 * not retry constantly.
 */
static void test_backoff(void **state)
{
	static const char empty[] = PAGE("7", "", ""), added[] = EVENT("ADDED", OBJECT("x", "8"));
	static const struct {
		int status;
		const char *list; /* the reply to a list's first page, with STATUS */
		int end_status;
		const char *end; /* the reply to what follows: another page, or a watch */
	} servers[] = {
		{500, "{}", 0, NULL},
		{200, empty, 200, ""},
		{200, empty, 200, added},
		{200, empty, 410, "{\"kind\":\"Status\",\"code\":410}"},
		{200, empty, 200, EVENT("ADDED", OBJECT("x", "8")) ERROR("410")},
		{200, PAGE("7", "more", ""), 410, "{\"kind\":\"Status\",\"code\":410}"},
	};

	for (size_t i = 0; i < array_size(servers); i++) {
		begin();
		for (int pauses = 0; pauses < 30; pauses++) {
			uint64_t since = fake.now;

			/* The first 410 is followed by a list without a pause. */
			for (int n = 0; fake.requests; n++) {
				const char *path = request("")->path;
				bool follows =
					strstr(path, "watch=true") || strstr(path, "continue=");

				assert_true(n < 4);
				if (follows)
					answer("", servers[i].end_status, servers[i].end);
				else
					answer("", servers[i].status, servers[i].list);
			}
			pause_up_to(60000);
			/* 250 ms, doubled each time up to 24 s, and varied by a quarter */
			assert_in_range(fake.now - since, pauses < 8 ? 187 : 18000, 30000);
		}
	}
}

/*
 * kxfs waits at least as long as the server requests, however long that is. It adds a pause that
 * grows each time. After a watch that lasted long, the pause is short again.
 */
static void test_pause_of_the_server(void **state)
{
	uint64_t least = UINT64_MAX, most = 0;

	begin();
	for (int i = 0; i < 20; i++) {
		uint64_t since = fake.now;

		answer_later(429, 40000);
		pause_up_to(70000);
		assert_in_range(fake.now - since, 40000, 70000);
		least = min_of(least, fake.now - since);
		most = max_of(most, fake.now - since);
	}
	assert_true(most - least > 1000);
	answer_page("limit=", PAGE("7", "", ""));
	accept_watch();
	end_watch(300000, 0);
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
		break_off("limit=", -EHOSTUNREACH);
		pause_up_to(60000);
	}
	break_off("limit=", -EHOSTUNREACH);
	watch_retry_now(world.w);
	break_off("limit=", -EHOSTUNREACH);
	watch_retry_now(world.w);
	assert_null(fake.requests);
	fake_pass(1000);
	watch_retry_now(world.w);
	assert_null(fake.requests);
	fake_pass(1000); /* the server may have become reachable just after an early retry */
	answer_page("limit=", PAGE("7", "", ""));
	watch_retry_now(world.w); /* the watch is not waiting now */
	assert_int_equal(world.err, 0);
	request("watch=true");
	/* An early retry must not shorten the time that the server itself requested. */
	begin();
	answer_later(503, 40000);
	watch_retry_now(world.w);
	assert_null(fake.requests);
	begin();
	answer("limit=", 404, "{}");
	watch_retry_now(world.w);
	assert_null(fake.requests);
}

/* --- refusals --- */

/*
 * What the owner is told of a refusal, and how long kxfs waits: the resource may be installed
 * later, an optional resource may be allowed later, and a user may log in again. Without a login,
 * the user may still have the right to list an optional resource.
 */
static void test_refused(void **state)
{
	static const struct http_reply no_login = {.err = -EACCES, .text = "log in", .body = ""},
				       unauthorized = {.status = 401, .body = "{}"},
				       forbidden = {.status = 403, .body = "{}"},
				       absent = {.status = 404, .body = "{}"};
	static const struct {
		bool optional, watching; /* WATCHING: the server refuses the watch, not the list */
		const struct http_reply *reply;
		int err;
		uint64_t wait_ms; /* 0: as after any failure */
		const char *says;
		const char *next;
	} rows[] = {
		{false, false, &forbidden, -EACCES, 0, "list pods", "limit=50&"},
		{false, true, &forbidden, -EACCES, 0, "watch pods", "resourceVersion=7"},
		{false, false, &absent, -EOPNOTSUPP, 60000, "pods", "limit=50&"},
		{false, true, &absent, -EOPNOTSUPP, 60000, "pods", "limit=50&"},
		{true, false, &forbidden, -EACCES, WATCH_FORBIDDEN_MS, "list pods", "limit=50&"},
		{true, false, &no_login, -EKEYREJECTED, 0, "list pods: log in", "limit=50&"},
		{true, true, &no_login, -EKEYREJECTED, 0, "watch pods: log in", "limit=1&"},
		{true, false, &unauthorized, -EKEYREJECTED, 0, "log in again", "limit=50&"},
		{true, true, &unauthorized, -EKEYREJECTED, 0, "log in again", "resourceVersion=7"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		begin_with(rows[i].optional ? "metadata.name=q" : NULL);
		if (rows[i].optional)
			request("&fieldSelector=metadata.name%3Dq");
		if (rows[i].watching)
			answer_page("limit=50", PAGE("7", "", ""));
		fake_end(request(""), rows[i].reply);
		assert_int_equal(world.err, rows[i].err);
		if (!strstr(world.text, rows[i].says))
			fail_msg("%s", world.text);
		assert_string_equal(watch_verb(world.w), rows[i].watching ? "watch" : "list");
		if (rows[i].wait_ms)
			fake_pass(rows[i].wait_ms - 1);
		pause_up_to(rows[i].wait_ms ? 1 : 500);
		request(rows[i].next);
	}
}

/*
 * A server that was just started may refuse every user for a moment. That does not end the watch of
 * an optional resource.
 */
static void test_refused_for_a_moment(void **state)
{
	begin_with("metadata.name=q");
	answer_page("limit=", PAGE("7", "", ""));
	for (unsigned i = 0; i < 5; i++) {
		answer("watch=true", 403, "{}");
		assert_int_equal(world.err, -EAGAIN);
		pause_up_to(10000);
	}
	answer("watch=true", 403, "{}");
	assert_int_equal(world.err, -EACCES);
	fake_pass(WATCH_FORBIDDEN_MS - 1);
	pause_up_to(1);
	request("limit=");
}

int main(void)
{
#define TEST(t) cmocka_unit_test_teardown(test_##t, teardown)
	const struct CMUnitTest tests[] = {
		TEST(pages),
		TEST(list_endless),
		TEST(tokens_endless),
		TEST(page_drips),
		TEST(page_again),
		TEST(garbage),
		TEST(page_ahead),
		TEST(page_before_fails),
		TEST(events),
		TEST(flaps),
		TEST(silent),
		TEST(quiet),
		TEST(huge_event),
		TEST(no_request),
		TEST(set_back_soon),
		TEST(set_back_behind_proxy),
		TEST(doubt),
		TEST(set_back_replied),
		TEST(version_unknown),
		TEST(listed_again),
		TEST(backoff),
		TEST(pause_of_the_server),
		TEST(hurried),
		TEST(refused),
		TEST(refused_for_a_moment),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
