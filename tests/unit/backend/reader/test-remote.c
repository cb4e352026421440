/* SPDX-License-Identifier: MIT */
/* backend/reader/remote.h over an archive of the test's, which answers, refuses or keeps silent as it is told. */
#include "backend/reader/remote.h"

#include <pthread.h>
#include <stdatomic.h>

#include "backend/base/wait.h"
#include "spec/base/mem.h"
#include "tests/unit/clock.h"
#include "tests/unit/backend/base/loop_rig.h"

#define OBJECTS 2500

/* --- the archive --- */

struct question {
	archive_bytes_fn bytes;
	archive_list_fn list;
	void *data;
	char *after;
	uint64_t off;
	size_t n;
	bool silent; /* a call is answered when the test says so */
};

struct archive {
	char none;
};

static const char text[] = "what stands there";
static struct archive archive;
static struct question *unanswered; /* I/O thread */
static atomic_int asked, answer_err;
static atomic_bool silent;
static atomic_bool impatient; /* nobody waits for an answer that does not come */
static sem_t begun, stopped;

bool wait_for(sem_t *sem, unsigned seconds)
{
	if (impatient)
		return false;
	sem_wait_or_fail(sem);
	return true;
}

int archive_new(struct loop *l, const struct archive_address *place, const char *writer,
		struct archive **ret, char **ret_text)
{
	assert_null(writer);
	*ret = &archive;
	return 0;
}

void archive_free(struct archive *a)
{
}

bool archive_is_name(const char *name, bool prefix)
{
	return !strstr(name, "..");
}

static void answer_list(const struct question *q, int err)
{
	static char names[ARCHIVE_MAX_LIST][16];
	static struct archive_object objects[ARCHIVE_MAX_LIST];
	unsigned i = q->after ? (unsigned)strtoul(q->after, NULL, 10) + 1 : 0;
	size_t n = 0;

	for (; !err && i < OBJECTS && n < ARCHIVE_MAX_LIST; i++, n++) {
		snprintf(names[n], sizeof(names[n]), "%04u", i);
		objects[n] = (struct archive_object){names[n], i};
	}
	q->list(q->data, err, err ? "refused" : "", objects, n, i < OBJECTS);
}

static void answer(void *data)
{
	struct question *q = data;
	int err = answer_err;
	size_t n = min_of(q->n, sizeof(text) - 1 - q->off);

	if (q->list)
		answer_list(q, err);
	else
		q->bytes(q->data, err, err ? "refused" : "", err ? NULL : text + q->off,
			 err ? 0 : n);
	free(q->after);
	free(q);
}

static void ask(struct question q)
{
	struct question *copy = new0(struct question);

	*copy = q;
	atomic_fetch_add(&asked, 1);
	if (silent) {
		assert_null(unanswered);
		unanswered = copy;
	} else {
		loop_post(loop, answer, copy);
	}
	sem_post(&begun);
}

void archive_get(struct archive *a, const char *name, uint64_t off, size_t n, archive_bytes_fn done,
		 void *data)
{
	ask((struct question){.bytes = done, .data = data, .off = off, .n = n});
}

void archive_list(struct archive *a, const char *prefix, const char *after, archive_list_fn done,
		  void *data)
{
	ask((struct question){.list = done,
			      .data = data,
			      .after = after ? text_copy(after) : NULL});
}

void archive_stop(struct archive *a, loop_fn fn, void *data)
{
	loop_post(loop, fn, data);
}

/* --- a test's --- */

static struct remote *remote;

static int setup_remote(void **state)
{
	char *why;

	asked = answer_err = 0;
	silent = impatient = false;
	unanswered = NULL;
	sem_init(&begun, 0, 0);
	sem_init(&stopped, 0, 0);
	setup_started(state);
	return remote_new(loop, &(struct archive_address){.where = "/archive"}, &remote, &why);
}

static void stop(void *data)
{
	remote_stop(remote, post_sem, &stopped);
}

static int teardown_remote(void **state)
{
	call(stop, NULL);
	sem_wait_or_fail(&stopped);
	teardown(state);
	remote_free(remote);
	if (unanswered)
		free(unanswered->after);
	free(unanswered);
	return 0;
}

static void speak(void *data)
{
	answer(take_ptr(unanswered));
}

/* What remote_get returns for "a/b"; on success the bytes are right. */
static int get(uint64_t off, size_t n)
{
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int err = remote_get(remote, "a/b", off, n, &bytes, &len);

	if (!err) {
		assert_int_equal(len, min_of(n, sizeof(text) - 1 - off));
		assert_memory_equal(bytes, text + off, len);
	}
	return err;
}

static void assert_away(const char *why)
{
	cleanup_free char *said = NULL;
	int64_t since = remote_away(remote, &said);

	assert_true(!*why == !since);
	assert_string_equal(said, why);
}

static void test_get(void **state)
{
	cleanup_free char *bytes = NULL;
	size_t len;

	assert_int_equal(get(0, 100), 0);
	assert_int_equal(get(5, 6), 0);
	answer_err = -EACCES;
	assert_int_equal(get(0, 100), -EACCES);
	answer_err = -ENOENT;
	assert_int_equal(get(0, 100), -ENOENT);
	assert_int_equal(asked, 4);
	assert_int_equal(remote_get(remote, "../passwd", 0, 1, &bytes, &len), -ENOENT);
	assert_int_equal(asked, 4);
	assert_away("");
}

static void count(void *data, const struct archive_object *object)
{
	unsigned *n = data;

	assert_int_equal(strtoul(object->name, NULL, 10), *n);
	assert_int_equal(object->size, *n);
	(*n)++;
}

static void test_list(void **state)
{
	unsigned n = 0;

	assert_int_equal(remote_list(remote, "a/", 100000, count, &n), 0);
	assert_int_equal(n, OBJECTS);
	assert_int_equal(asked, 3);
	n = 0;
	assert_int_equal(remote_list(remote, "a/", 1200, count, &n), 0);
	assert_int_equal(n, 1200);
	assert_int_equal(asked, 5);
	n = 0;
	answer_err = -EIO;
	assert_int_equal(remote_list(remote, "a/", 1200, count, &n), -EIO);
	assert_int_equal(n, 0);
}

/* While the archive is away nobody who comes is kept waiting; and it is asked again when some time has passed. */
static void test_silent(void **state)
{
	silent = impatient = true;
	assert_int_equal(get(0, 100), -EHOSTUNREACH);
	sem_wait_or_fail(&begun);
	assert_away("/archive: does not answer");
	assert_int_equal(get(0, 100), -EHOSTUNREACH);
	assert_int_equal(asked, 1);
	call(speak, NULL); /* it answers when nobody waits any more */
	silent = impatient = false;
	clock_pass(loop, 9);
	assert_int_equal(get(0, 100), -EHOSTUNREACH);
	clock_pass(loop, 2);
	assert_int_equal(get(0, 100), 0);
	assert_int_equal(asked, 2);
	assert_away("");
}

static void test_away(void **state)
{
	answer_err = -EHOSTUNREACH;
	assert_int_equal(get(0, 100), -EHOSTUNREACH);
	assert_away("refused");
	answer_err = 0;
	assert_int_equal(get(0, 100), -EHOSTUNREACH);
	remote_try(remote);
	assert_int_equal(get(0, 100), 0);
	assert_away("");
}

static void *wait_in_vain(void *data)
{
	*(int *)data = get(0, 100);
	return NULL;
}

static void test_stop(void **state)
{
	pthread_t thread;
	int err = 0;

	silent = true;
	assert_int_equal(pthread_create(&thread, NULL, wait_in_vain, &err), 0);
	sem_wait_or_fail(&begun);
	call(stop, NULL);
	sem_wait_or_fail(&stopped);
	pthread_join(thread, NULL);
	assert_int_equal(err, -EHOSTUNREACH);
	assert_int_equal(get(0, 100), -EHOSTUNREACH);
	assert_int_equal(asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_get, setup_remote, teardown_remote),
		cmocka_unit_test_setup_teardown(test_list, setup_remote, teardown_remote),
		cmocka_unit_test_setup_teardown(test_silent, setup_remote, teardown_remote),
		cmocka_unit_test_setup_teardown(test_away, setup_remote, teardown_remote),
		cmocka_unit_test_setup_teardown(test_stop, setup_remote, teardown_remote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
