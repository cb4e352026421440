/* SPDX-License-Identifier: MIT */
/*
 * How a LIST or a watch is split into objects: chunks of any size, members that are dropped,
 * limits, and refusals.
 */
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/api/split.h"
#include "tests/unit/unit.h"

static const char *const nodes[] = {"nodes", "templates", NULL};

struct seen {
	char *text; /* the objects, one per line */
	size_t len;
	unsigned n;
	unsigned stop_at; /* refuse this object */
};

static int see(void *data, const char *json, size_t len, int wrong)
{
	struct seen *seen = data;

	assert_int_equal(strlen(json), len);
	if (++seen->n == seen->stop_at)
		return -ENOSPC;
	seen->text = realloc(seen->text, seen->len + len + 3);
	assert_non_null(seen->text);
	if (wrong)
		seen->text[seen->len++] = wrong == -ELOOP ? '^' : '!';
	memcpy(seen->text + seen->len, json, len);
	seen->len += len + 1;
	memcpy(seen->text + seen->len - 1, "\n", 2);
	return 0;
}

/*
 * Feed TEXT in chunks of PIECE bytes, and return the objects. Assert that the result is WANT and
 * the list's metadata is META. malloc'ed.
 */
static char *cut(enum spec_split_form form, const char *const *ignored, const char *text,
		 size_t piece, int want, const char *meta)
{
	struct seen seen = {.text = text_copy("")};
	struct spec_split *s = spec_split_new(form, ignored, see, &seen);
	struct spec_list_meta got;
	size_t len = strlen(text);
	int err = 0;

	for (size_t at = 0; at < len && !err; at += piece)
		err = spec_split_feed(s, text + at, min_of(piece, len - at));
	err = err ? err : spec_split_end(s, &got);
	assert_int_equal(err, want);
	if (err)
		assert_int_equal(spec_split_feed(s, " ", 1), err);
	if (!err && meta) {
		cleanup_free char *both = text_print("%s|%s", got.resource_version, got.next);

		assert_string_equal(both, meta);
	}
	spec_split_free(s);
	return seen.text;
}

static void check(enum spec_split_form form, const char *const *ignored, const char *text,
		  const char *want, const char *meta)
{
	for (size_t piece = 1; piece <= strlen(text); piece += 1 + piece / 7) {
		char *got cleanup_free = cut(form, ignored, text, piece, 0, meta);

		assert_string_equal(got, want);
	}
}

static void refused(enum spec_split_form form, const char *text)
{
	for (size_t piece = 1; piece <= 3; piece++)
		free(cut(form, nodes, text, piece, -EINVAL, NULL));
}

static void test_list(void **state)
{
	check(SPEC_SPLIT_LIST, NULL,
	      "{\"kind\":\"JobList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"17\","
	      "\"continue\":\"tok\",\"remainingItemCount\":3},\"items\":[{\"a\":1}, { \"b\" : [ "
	      "] } ]}\n",
	      "{\"a\":1}\n{\"b\":[ ]}\n", "17|tok");
	check(SPEC_SPLIT_LIST, NULL,
	      "{ \"items\" : [ {} ] , \"metadata\" : { \"resourceVersion\" : \"17\" } , "
	      "\"kind\" : \"L\" }",
	      "{}\n", "17|");
	check(SPEC_SPLIT_LIST, NULL, "{\"metadata\":{},\"items\":null}", "", "|");
	check(SPEC_SPLIT_LIST, NULL, "{\"items\":[]}", "", "|");
	/* A name that is special in one place of an object is not special in others. */
	check(SPEC_SPLIT_LIST, NULL,
	      "{\"x\":{\"items\":[{\"no\":1}],\"metadata\":{\"resourceVersion\":\"no\"}},"
	      "\"items\":[{\"items\":[{}],\"metadata\":{\"resourceVersion\":\"5\"}}]}",
	      "{\"items\":[{}],\"metadata\":{\"resourceVersion\":\"5\"}}\n", "|");
}

static void test_watch(void **state)
{
	check(SPEC_SPLIT_WATCH, NULL,
	      "{\"type\":\"ADDED\",\"object\":{\"a\":\"}\"}}\n{\"object\":{},\"type\":\"DELETED\"}"
	      "{\"type\":\"torn",
	      "{\"type\":\"ADDED\",\"object\":{\"a\":\"}\"}}\n"
	      "{\"object\":{},\"type\":\"DELETED\"}\n",
	      "|");
}

#define FLOW                                                                                       \
	"{\"x\":{\"name\":\"p\"},\"metadata\":{\"name\":\"p\",\"managedFields\":["                 \
	"{\"x\":\"]}\\\"\"}],\"labels\":{\"managedFields\":1}},\"y\":\"},{\\\"\","                 \
	"\"status\":{\"nodes\":{\"a\":[\"}\"]},\"phase\":\"nodes\",\"list\":[{\"nodes\":1}],"      \
	"\"templates\":null,\"z\":-1},\"nodes\":1,\"zz\":true}"

#define FLOW_KEPT                                                                                  \
	"{\"x\":{\"name\":\"p\"},\"metadata\":{\"name\":\"p\",\"labels\":{\"managedFields\":1}},"  \
	"\"y\":\"},{\\\"\",\"status\":{\"phase\":\"nodes\",\"list\":[{\"nodes\":1}],\"z\":-1},"    \
	"\"nodes\":1,\"zz\":true}"

static void test_ignored(void **state)
{
	check(SPEC_SPLIT_LIST, nodes, "{\"items\":[" FLOW "," FLOW "]}",
	      FLOW_KEPT "\n" FLOW_KEPT "\n", "|");
	check(SPEC_SPLIT_WATCH, nodes, "{\"type\":\"ADDED\",\"object\":" FLOW "}",
	      "{\"type\":\"ADDED\",\"object\":" FLOW_KEPT "}\n", "|");
	/* Such members are kept. */
	check(SPEC_SPLIT_LIST, nodes,
	      "{\"items\":[{\"status\":{\"n\\u006fdes\":{\"x\":[{}]},"
	      "\"0123456789012345678901234567890123456789\":5}},{\"status\":[{\"nodes\":1}]}]}",
	      "{\"status\":{\"n\\u006fdes\":{\"x\":[{}]},"
	      "\"0123456789012345678901234567890123456789\":5}}\n{\"status\":[{\"nodes\":1}]}\n",
	      "|");
	/* Without a list, only managedFields of the metadata are dropped. */
	check(SPEC_SPLIT_LIST, NULL,
	      "{\"items\":[{\"metadata\":{\"managedFields\":[],\"labels\":{\"managedFields\":1}},"
	      "\"spec\":{\"containers\":[{\"env\":[]}]}}]}",
	      "{\"metadata\":{\"labels\":{\"managedFields\":1}},\"spec\":{\"containers\":["
	      "{\"env\":[]}]}}\n",
	      "|");
}

static void test_strings(void **state)
{
	check(SPEC_SPLIT_WATCH, nodes,
	      "{\"a\\\"\":\"\\\\\",\"b\":\"\\\\\\\"]}{[,:\",\"\":\"\\u00e9\xc3\xa9\",\"c\":-1.5e+"
	      "3}",
	      "{\"a\\\"\":\"\\\\\",\"b\":\"\\\\\\\"]}{[,:\",\"\":\"\\u00e9\xc3\xa9\",\"c\":-1.5e+3}"
	      "\n",
	      "|");
}

static void test_refused(void **state)
{
	static const char whole[] =
		"{\"items\":[{\"a\":\"}\"},{}],\"metadata\":{\"continue\":\"x\"}}";
	static const char *const others[] = {"x", "[]", "{}", "{\"code\":410}"};
	/* no lists of objects, and no ends of a list */
	static const char *const items[] = {
		"{}",	   "[1]",	    "[[]]",	    "[{]",	   "[{}{}]",
		"[{},]",   "[]}{",	    "[{\"a\":1,}]", "[{\"a\" 1}]", "[{\"a\"}]",
		"[{a:1}]", "[{\"a\":1 2}]", "[{\"a\":}]",   "[{\"a\":[}]", "[{\"a\":\"\n\"}]",
	};

	for (size_t i = 0; i < array_size(others); i++)
		refused(SPEC_SPLIT_LIST, others[i]);
	for (size_t i = 0; i < array_size(items); i++) {
		cleanup_free char *list = text_print("{\"items\":%s}", items[i]);

		refused(SPEC_SPLIT_LIST, list);
	}
	for (int n = 0; n < (int)strlen(whole); n++) {
		cleanup_free char *part = text_print("%.*s", n, whole);

		refused(SPEC_SPLIT_LIST, n > 0 ? part : " ");
	}
	check(SPEC_SPLIT_LIST, NULL, whole, "{\"a\":\"}\"}\n{}\n", "|x");
	refused(SPEC_SPLIT_LIST, "{\"items\":[{}],\"items\":[]}");
	refused(SPEC_SPLIT_LIST, "{\"items\":[],\"metadata\":[]}");
	refused(SPEC_SPLIT_LIST, "{\"items\":[],\"metadata\":{\"continue\":5}}");
	refused(SPEC_SPLIT_WATCH, "404 page not found\n");
	refused(SPEC_SPLIT_WATCH, "{\"type\":\"ADDED\"}x");
}

static void test_nul_in_string(void **state)
{
	struct seen seen = {0};
	struct spec_split *s = spec_split_new(SPEC_SPLIT_WATCH, NULL, see, &seen);

	assert_int_equal(spec_split_feed(s, "{\"a\":\"\0\"}", 10), -EINVAL);
	assert_int_equal(seen.n, 0);
	spec_split_free(s);
}

/* Return DEPTH nested lists. malloc'ed. */
static char *nested(int depth)
{
	char *text = text_print("%0*d", 2 * depth, 0);

	memset(text, '[', (size_t)depth);
	memset(text + depth, ']', (size_t)depth);
	return text;
}

/* The greatest allowed depth of an object, counted with the brackets of the event, and one more. */
static void test_depth(void **state)
{
	for (int depth = 2 * SPEC_MAX_DEPTH - 1; depth <= 2 * SPEC_MAX_DEPTH; depth++) {
		char *lists cleanup_free = nested(depth), *got cleanup_free = NULL;
		char *text cleanup_free = text_print("{\"a\":%s}", lists);

		got = cut(SPEC_SPLIT_WATCH, NULL, text, 64, 0, NULL);
		assert_int_equal(*got == '^', depth == 2 * SPEC_MAX_DEPTH);
	}
}

#define ONE "{\"metadata\":{\"name\":\"b\"}}"

/*
 * Only the object that is too deep is skipped, whatever its other contents are. Its owner is
 * reported. The depth of members that are dropped does not matter.
 */
static void test_deep_object(void **state)
{
	char *lists cleanup_free = nested(3000);
	char *list cleanup_free = text_print(
		"{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" ONE
		",{\"a\":1,\"metadata\":{\"labels\":{\"x\":[]},\"name\":\"deep\",\"uid\":\"u\","
		"\"resourceVersion\":\"7\"},\"spec\":{\"s\":\"]\\\"}\",\"l\":%s,\"managed\":{}},"
		"\"status\":{\"b\":\"c\"}}," ONE
		",{\"spec\":{\"containers\":%s}},{\"metadata\":%s},"
		"{\"metadata\":{\"managedFields\":%s}}],\"x\":%s}",
		lists, lists, lists, lists, lists);
	char *watch cleanup_free = text_print(
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"deep\"},\"spec\":%s}}\n"
		"{\"object\":{\"spec\":%s,\"metadata\":{\"name\":\"late\"}},\"type\":\"ADDED\"}"
		"{\"type\":\"ADDED\",\"object\":" ONE "}",
		lists, lists);

	check(SPEC_SPLIT_LIST, nodes, list,
	      ONE
	      "\n^{\"metadata\":{\"name\":\"deep\",\"uid\":\"u\",\"resourceVersion\":\"7\"}}\n" ONE
	      "\n^{\"metadata\":{}}\n^{\"metadata\":{}}\n{\"metadata\":{}}\n",
	      "9|");
	check(SPEC_SPLIT_WATCH, NULL, watch,
	      "^{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"deep\"}}}\n"
	      "^{\"object\":{\"metadata\":{}}}\n"
	      "{\"type\":\"ADDED\",\"object\":" ONE "}\n",
	      NULL);
}

/* The largest allowed object, and one byte more. Bytes that are dropped do not count. */
static void test_size(void **state)
{
	static const char head[] = "{\"items\":[{\"metadata\":{\"managedFields\":\"",
			  mid[] = "\",\"uid\":\"u\"},\"a\":\"";
	size_t want = SPEC_MAX_WATCHED - strlen("{\"metadata\":{\"uid\":\"u\"},\"a\":\"\"}");
	cleanup_free char *much = text_print("%0*d", SPEC_MAX_WATCHED, 0);

	for (size_t more = 0; more < 2; more++) {
		struct seen seen = {.text = text_copy("")};
		struct spec_split *s = spec_split_new(SPEC_SPLIT_LIST, NULL, see, &seen);

		assert_int_equal(spec_split_feed(s, head, strlen(head)), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(spec_split_feed(s, much, SPEC_MAX_WATCHED), 0);
		assert_int_equal(spec_split_feed(s, mid, strlen(mid)), 0);
		spec_split_feed(s, much, want + more);
		spec_split_feed(s, "\"},{}]}", 7);
		assert_int_equal(spec_split_end(s, NULL), 0);
		if (more)
			assert_string_equal(seen.text, "!{\"metadata\":{\"uid\":\"u\"}}\n{}\n");
		else
			assert_int_equal(seen.len, SPEC_MAX_WATCHED + 1 + strlen("{}\n"));
		spec_split_free(s);
		free(seen.text);
	}
}

/*
 * An object's metadata makes it too large. What precedes is known. A list's own metadata has a
 * limited size.
 */
static void test_large_metadata(void **state)
{
	cleanup_free char *object = text_print("{\"items\":[{\"metadata\":{\"name\":\"n\",\"uid\":"
					       "\"u\",\"owner\":\"%0*d\"}}]}",
					       SPEC_MAX_WATCHED, 0);
	cleanup_free char *list = text_print("{\"metadata\":{\"continue\":\"%0*d\"},\"items\":[]}",
					     SPEC_MAX_WATCHED, 0);
	cleanup_free char *got = cut(SPEC_SPLIT_LIST, NULL, object, SPEC_MAX_WATCHED, 0, NULL);

	assert_string_equal(got, "!{\"metadata\":{\"name\":\"n\",\"uid\":\"u\"}}\n");
	free(cut(SPEC_SPLIT_LIST, NULL, list, SPEC_MAX_WATCHED, -EINVAL, NULL));
}

static void test_stopped(void **state)
{
	struct seen seen = {.stop_at = 2};
	struct spec_split *s = spec_split_new(SPEC_SPLIT_LIST, NULL, see, &seen);
	const char *text = "{\"items\":[{},{},{}]}";

	assert_int_equal(spec_split_feed(s, text, strlen(text)), -ENOSPC);
	assert_int_equal(spec_split_end(s, NULL), -ENOSPC);
	assert_int_equal(seen.n, 2);
	spec_split_free(s);
	free(seen.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),	       cmocka_unit_test(test_watch),
		cmocka_unit_test(test_ignored),	       cmocka_unit_test(test_strings),
		cmocka_unit_test(test_refused),	       cmocka_unit_test(test_nul_in_string),
		cmocka_unit_test(test_depth),	       cmocka_unit_test(test_size),
		cmocka_unit_test(test_stopped),	       cmocka_unit_test(test_deep_object),
		cmocka_unit_test(test_large_metadata),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
