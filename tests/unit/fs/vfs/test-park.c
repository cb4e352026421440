/* SPDX-License-Identifier: MIT */
/*
 * fs/vfs/park.h with a kernel that the test plays: the other end of a socket pair sends requests
 * and counts replies. Each request must get exactly one reply, whoever answers first.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <linux/fuse.h>

#include "backend/base/loop.h"
#include "fs/vfs/park.h"
#include "tests/unit/unit.h"

#define MANY 2000
/* The number of a request that is held, and its offset. */
#define HELD (MANY + 2)

struct fixture {
	struct fuse_session *se;
	struct park *park;
	int kernel; /* the test's end of the socket pair */
	pthread_t thread;
	unsigned deadline_ms;
	uint64_t before_stop; /* time before the stop, in ms */
	uint64_t tickets[HELD + 1];
	size_t n_tickets;
	pthread_mutex_t lock;
	pthread_cond_t parked;
	sem_t go_on; /* lets the handler of a held request go on */
	/* If true, the next reply of libfuse waits for REPLY. Set this when nothing replies. */
	bool slow_reply;
	sem_t replying, reply;
	fuse_req_t claimed; /* what the handler of a held request has claimed */
};

/* The handler of a held request: it answers the request when it has waited for a disk. */
static void hold(struct fixture *f, fuse_req_t req)
{
	sem_wait(&f->go_on);
	f->claimed = park_claim(f->park, f->tickets[HELD]);
	fuse_reply_buf(req, "x", 1);
}

/* Park every READ. OFFSET is the index of its ticket. The READ of the offset HELD is held. */
static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct fixture *f = fuse_req_userdata(req);
	uint64_t ticket = off == HELD ? park_hold(f->park, req, fuse_session_fd(f->se), HELD)
				      : park_add(f->park, req, PARK_READ, f->deadline_ms);

	(void)ino, (void)size, (void)fi;
	pthread_mutex_lock(&f->lock);
	f->tickets[off] = ticket;
	f->n_tickets++;
	pthread_cond_signal(&f->parked);
	pthread_mutex_unlock(&f->lock);
	if (off == HELD)
		hold(f, req);
}

static const struct fuse_lowlevel_ops ops = {.read = on_read};

static ssize_t io_writev(int fd, struct iovec *iov, int count, void *data)
{
	struct fixture *f = data;

	if (f->slow_reply) {
		f->slow_reply = false;
		sem_post(&f->replying);
		sem_wait(&f->reply);
	}
	return writev(fd, iov, count);
}

static ssize_t io_read(int fd, void *buf, size_t len, void *data)
{
	return read(fd, buf, len);
}

static void *run(void *data)
{
	struct fixture *f = data;

	fuse_session_loop(f->se);
	return NULL;
}

/* --- the kernel's side --- */

static void send_request(struct fixture *f, uint32_t opcode, uint64_t unique, const void *arg,
			 size_t size)
{
	struct fuse_in_header h = {
		.len = (uint32_t)(sizeof(h) + size),
		.opcode = opcode,
		.unique = unique,
		.nodeid = 1,
	};
	struct iovec iov[] = {{&h, sizeof(h)}, {(void *)(uintptr_t)arg, size}};

	assert_int_equal(writev(f->kernel, iov, 2), (ssize_t)h.len);
}

static void send_read(struct fixture *f, uint64_t unique, uint64_t off)
{
	struct fuse_read_in in = {.offset = off, .size = 10};

	send_request(f, FUSE_READ, unique, &in, sizeof(in));
}

static void send_interrupt(struct fixture *f, uint64_t of)
{
	struct fuse_interrupt_in in = {.unique = of};

	send_request(f, FUSE_INTERRUPT, of + 1, &in, sizeof(in));
}

/* Receive the next reply. Return its request, and set *ERR to its errno. */
static uint64_t receive(struct fixture *f, int *err)
{
	char buf[4096];
	struct fuse_out_header h;
	ssize_t n = read(f->kernel, buf, sizeof(buf));

	assert_true(n >= (ssize_t)sizeof(h));
	memcpy(&h, buf, sizeof(h));
	*err = -h.error;
	return h.unique;
}

/* Assert that the next reply is that to the request UNIQUE, with ERR. */
static void assert_reply(struct fixture *f, uint64_t unique, int err)
{
	int got;

	assert_int_equal(receive(f, &got), unique);
	assert_int_equal(got, err);
}

static void wait_parked(struct fixture *f, size_t n)
{
	pthread_mutex_lock(&f->lock);
	while (f->n_tickets < n)
		pthread_cond_wait(&f->parked, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

static void init_session(struct fixture *f)
{
	static const char *const argv[] = {"test", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(1, (char **)(uintptr_t)argv);
	static const struct fuse_custom_io io = {.writev = io_writev, .read = io_read};
	struct fuse_init_in in = {.major = FUSE_KERNEL_VERSION, .minor = 36, .max_readahead = 4096};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	f->kernel = pair[0];
	f->se = fuse_session_new(&args, &ops, sizeof(ops), f);
	assert_non_null(f->se);
	assert_int_equal(fuse_session_custom_io(f->se, &io, pair[1]), 0);
	fuse_opt_free_args(&args);
	assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
	send_request(f, FUSE_INIT, 1, &in, sizeof(in));
	assert_reply(f, 1, 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->parked, NULL);
	sem_init(&f->go_on, 0, 0);
	sem_init(&f->replying, 0, 0);
	sem_init(&f->reply, 0, 0);
	f->park = park_new();
	assert_int_equal(park_start(f->park), 0);
	init_session(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	park_end(f->park);
	close(f->kernel); /* then the session reads end of file */
	pthread_join(f->thread, NULL);
	park_free(f->park);
	fuse_session_destroy(f->se);
	free(f);
	return 0;
}

static void test_claimed_once(void **state)
{
	struct fixture *f = *state;
	fuse_req_t req;

	send_read(f, 10, 0);
	wait_parked(f, 1);
	assert_true(park_waits(f->park, f->tickets[0]));
	req = park_claim(f->park, f->tickets[0]);
	assert_non_null(req);
	assert_null(park_claim(f->park, f->tickets[0]));
	assert_false(park_waits(f->park, f->tickets[0]));
	fuse_reply_buf(req, "x", 1);
	assert_reply(f, 10, 0);
}

/* The kernel may send the interrupt before the request that it interrupts. */
static void test_interrupt_comes_first(void **state)
{
	struct fixture *f = *state;
	uint64_t unique;
	int err;

	send_interrupt(f, 10);
	send_read(f, 10, 0);
	unique = receive(f, &err);
	/* libfuse may answer the interrupt with EAGAIN after it has waited for the request. */
	if (unique == 11) {
		assert_int_equal(err, EAGAIN);
		unique = receive(f, &err);
	}
	assert_int_equal(unique, 10);
	assert_int_equal(err, EINTR);
}

static void test_deadline(void **state)
{
	struct fixture *f = *state;

	f->deadline_ms = 1;
	send_read(f, 10, 0);
	assert_reply(f, 10, ETIMEDOUT);
	/*
	 * If nothing is parked for some ticks, the ticks stop. The next request starts them again.
	 */
	usleep(500000);
	send_read(f, 12, 1);
	assert_reply(f, 12, ETIMEDOUT);
}

/* Deadlines of many requests, and of one that arrives while the others are counted. */
static void test_each_deadline_is_its_own(void **state)
{
	struct fixture *f = *state;
	int err;

	f->deadline_ms = 1000;
	for (uint64_t i = 0; i < 100; i++)
		send_read(f, 10 + 2 * i, i);
	wait_parked(f, 100);
	f->deadline_ms = 1;
	send_read(f, 1000, 100);
	assert_reply(f, 1000, ETIMEDOUT);
	for (uint64_t i = 0; i < 100; i++) {
		receive(f, &err);
		assert_int_equal(err, ETIMEDOUT);
	}
	assert_int_equal(park_count(f->park, PARK_READ), 0);
}

/* The machine is suspended for 4 s, and the reply arrives half a second later. */
static void *answer_late(void *data)
{
	struct fixture *f = data;
	uint64_t last = f->before_stop, now = loop_now_ms();
	fuse_req_t req;

	/* The machine may be suspended before this thread has started. */
	while (now - last < 2000) {
		usleep(10000);
		last = now;
		now = loop_now_ms();
	}
	usleep(500000);
	req = park_claim(f->park, f->tickets[0]);
	if (req)
		fuse_reply_buf(req, "x", 1);
	return NULL;
}

static void test_deadline_while_all_stands_still(void **state)
{
	struct fixture *f = *state;
	pthread_t answer;
	pid_t child;

	f->deadline_ms = 3500;
	send_read(f, 10, 0);
	wait_parked(f, 1);
	f->before_stop = loop_now_ms();
	pthread_create(&answer, NULL, answer_late, f);
	child = fork();
	if (child == 0) {
		kill(getppid(), SIGSTOP);
		sleep(4);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	assert_reply(f, 10, 0);
	pthread_join(answer, NULL);
	waitpid(child, NULL, 0);
}

static void test_end(void **state)
{
	struct fixture *f = *state;

	send_read(f, 10, 0);
	wait_parked(f, 1);
	park_end(f->park);
	assert_reply(f, 10, ENOTCONN);
	send_read(f, 12, 1);
	assert_reply(f, 12, ENOTCONN);
}

/* --- held requests --- */

static void *ender(void *data)
{
	struct fixture *f = data;

	park_end(f->park);
	return NULL;
}

/* The handler of a held request may answer it while the mount ends. */
static void test_held_request_is_answered_during_the_end(void **state)
{
	struct fixture *f = *state;
	pthread_t end;

	send_read(f, 10, 0);
	send_read(f, HELD, HELD);
	wait_parked(f, 2);
	f->slow_reply = true;
	pthread_create(&end, NULL, ender, f);
	sem_wait(&f->replying);
	sem_post(&f->go_on);
	assert_reply(f, HELD, 0);
	assert_non_null(f->claimed);
	sem_post(&f->reply);
	pthread_join(end, NULL);
	assert_reply(f, 10, ENOTCONN);
}

/* The handler of a held request owns it even after park has answered it, but can't claim it. */
static void test_held_request_remains_its_handlers(void **state)
{
	struct fixture *f = *state;

	send_read(f, HELD, HELD);
	wait_parked(f, 1);
	assert_int_equal(park_count(f->park, PARK_DISK), 1);
	park_end(f->park);
	assert_reply(f, HELD, ENOTCONN);
	sem_post(&f->go_on);
	assert_reply(f, HELD, 0);
	assert_null(f->claimed);
	assert_int_equal(park_count(f->park, PARK_DISK), 0);
}

/* --- interrupts, claims and deadlines at the same time --- */

static void *claimer(void *data)
{
	struct fixture *f = data;

	for (size_t i = 0; i < MANY; i++) {
		fuse_req_t req;
		uint64_t ticket;

		wait_parked(f, i + 1);
		pthread_mutex_lock(&f->lock);
		ticket = f->tickets[i];
		pthread_mutex_unlock(&f->lock);
		req = park_claim(f->park, ticket);
		if (req)
			fuse_reply_buf(req, "x", 1);
	}
	return NULL;
}

static void *interrupter(void *data)
{
	struct fixture *f = data;

	for (size_t i = 0; i < MANY; i++) {
		send_read(f, 100 + 2 * i, i);
		send_interrupt(f, 100 + 2 * i);
	}
	return NULL;
}

static void test_race(void **state)
{
	struct fixture *f = *state;
	pthread_t claim, interrupt;
	static char answered[MANY];
	size_t n = 0;

	memset(answered, 0, sizeof(answered));
	pthread_create(&claim, NULL, claimer, f);
	pthread_create(&interrupt, NULL, interrupter, f);
	while (n < MANY) {
		int err;
		uint64_t unique = receive(f, &err);

		if (unique % 2) /* the interrupt came too late for its request */
			continue;
		assert_true(err == 0 || err == EINTR);
		assert_int_equal(answered[(unique - 100) / 2]++, 0);
		n++;
	}
	pthread_join(claim, NULL);
	pthread_join(interrupt, NULL);
	assert_int_equal(park_count(f->park, PARK_READ), 0);
	/*
	 * libfuse keeps an interrupt of an answered request until the next request. It does not
	 * free it at the end of the session.
	 */
	send_read(f, 100 + 2 * MANY, MANY);
	wait_parked(f, MANY + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_claimed_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_interrupt_comes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_deadline_is_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadline_while_all_stands_still, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held_request_is_answered_during_the_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_held_request_remains_its_handlers, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_race, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
