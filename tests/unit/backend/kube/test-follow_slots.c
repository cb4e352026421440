/* SPDX-License-Identifier: MIT */
/*
 * Which waiting log gets a slot. Also: what the key of a log means, and which state of its run the
 * pod's status shows.
 */
#include "backend/kube/follow.h"
#include "tests/unit/unit.h"

#define MAX    50
#define QUEUED 200

static struct slots slots;
static struct slot all[QUEUED];

static void queue(size_t n, struct slot as)
{
	memset(&slots, 0, sizeof(slots));
	slots.max = MAX;
	for (size_t i = 0; i < n; i++) {
		all[i] = as;
		slots_set(&slots, &all[i], SLOT_QUEUED);
	}
}

/* Give all free slots to waiting logs. Return how many logs got one. */
static size_t fill(void)
{
	size_t n = 0;

	while (slots_next(&slots))
		n++;
	return n;
}

/*
 * Many logs of the same sort wait, the first one longest. Only some get a slot, in order. When one
 * releases its slot, or its readers have got their output, the next one gets a slot.
 */
static void test_bounds(void **state)
{
	static const struct {
		struct slot as;
		size_t bound;
	} rows[] = {
		{{0}, MAX},
		{{.first = true}, SLOTS_FIRST},
		{{.retried = true}, SLOTS_RETRIED},
		{{.retried = true, .leaving = true}, MAX},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		const size_t bound = rows[i].bound;

		queue(QUEUED - 1, rows[i].as);
		assert_int_equal(fill(), bound);
		assert_int_equal(all[bound - 1].state, SLOT_TAKEN);
		assert_int_equal(slots.n[SLOT_QUEUED], QUEUED - 1 - bound);
		slots_set(&slots, &all[2], SLOT_PAUSED);
		assert_ptr_equal(slots_next(&slots), &all[bound]);
		assert_null(slots_next(&slots));
		slots_arrived(&slots, &all[3]);
		assert_int_equal(fill(), rows[i].as.first ? 1 : 0);
		/* These bounds delay no other logs. */
		all[QUEUED - 1] = (struct slot){0};
		slots_set(&slots, &all[QUEUED - 1], SLOT_QUEUED);
		assert_int_equal(fill(), bound < MAX ? 1 : 0);
	}
}

/*
 * A log that becomes urgent keeps its slot, or gets an extra one before the logs that wait longer.
 * The number of extra slots is limited.
 */
static void test_urgent(void **state)
{
	queue(MAX + 10, (struct slot){0});
	assert_int_equal(fill(), MAX);
	slots_hasten(&slots, &all[0]);
	assert_int_equal(all[0].state, SLOT_TAKEN);
	assert_int_equal(fill(), 0);
	slots_hasten(&slots, &all[MAX + 9]);
	assert_ptr_equal(slots_next(&slots), &all[MAX + 9]);
	assert_null(slots_next(&slots));
	queue(QUEUED, (struct slot){.urgent = true});
	assert_int_equal(fill(), MAX + SLOTS_URGENT);
}

static char main_name[] = "main", side_name[] = "main-side";

/*
 * A pod with the containers main and main-side. main_is sets the state of main and its number of
 * restarts.
 */
static struct spec_container_view containers[2];
static const struct spec_pod_view pod = {.containers = containers, .n_containers = 2};

static void main_is(enum spec_container_state state, unsigned restarts, int last_exit_code)
{
	containers[0] = (struct spec_container_view){.name = main_name,
						     .state = state,
						     .restarts = restarts,
						     .last_exit_code = last_exit_code,
						     .started = state == SPEC_WAITING ? 0 : 1};
	containers[1] = (struct spec_container_view){.name = side_name,
						     .state = SPEC_TERMINATED,
						     .last_exit_code = -1,
						     .started = 1};
}

static void test_find(void **state)
{
	static const struct {
		const char *key;
		int container; /* -1: no container matches */
		unsigned restart;
	} rows[] = {
		{"u.main.0", 0, 0},	   {"u.main.12", 0, 12},
		{"u.main-side.1", 1, 1},   {"u.main-side.0", 1, 0},
		{"u.mai.0", -1, 0},	   {"u.main-.0", -1, 0},
		{"u.main-side2.0", -1, 0}, {"u..0", -1, 0},
		{"u.main", -1, 0},	   {"u", -1, 0},
	};
	struct run run;

	main_is(SPEC_STARTED, 0, -1);
	assert_false(run_find(NULL, "u.main.0", &run));
	for (size_t i = 0; i < array_size(rows); i++) {
		bool found = run_find(&pod, rows[i].key, &run);

		if (found != (rows[i].container >= 0))
			fail_msg("%s", rows[i].key);
		if (!found)
			continue;
		assert_ptr_equal(run.container, &containers[rows[i].container]);
		assert_int_equal(run.restart, rows[i].restart);
	}
	assert_int_equal(run_pod_len("uid-1.main.0"), 5);
}

/* How the pod's status shows the end of run 2 of main. */
static void test_end(void **state)
{
	static const struct {
		enum spec_container_state state;
		unsigned restarts;
		int last_exit_code;
		bool begun, started;
		enum run_end end;
	} rows[] = {
		{SPEC_WAITING, 1, -1, false, false, RUN_RUNNING},
		{SPEC_STARTED, 1, 0, true, true, RUN_RUNNING},
		{SPEC_WAITING, 2, -1, false, false, RUN_RUNNING},
		{SPEC_WAITING, 2, 0, true, true, RUN_LAST}, /* between this run and the next one */
		{SPEC_STARTED, 2, 0, true, true, RUN_RUNNING},
		{SPEC_TERMINATED, 2, 0, true, true, RUN_LAST},
		{SPEC_WAITING, 3, -1, true, false, RUN_PREVIOUS},
		{SPEC_STARTED, 3, 0, true, true, RUN_PREVIOUS},
		{SPEC_TERMINATED, 3, 0, true, true, RUN_PREVIOUS},
		{SPEC_STARTED, 4, 0, true, true, RUN_GONE},
	};
	struct run run;

	for (size_t i = 0; i < array_size(rows); i++) {
		main_is(rows[i].state, rows[i].restarts, rows[i].last_exit_code);
		assert_true(run_find(&pod, "u.main.2", &run));
		if (run_has_begun(&run) != rows[i].begun || run_end(&run) != rows[i].end ||
		    run_was_started(&run) != rows[i].started)
			fail_msg("row %zu: %d %d %u", i, run_has_begun(&run), run_was_started(&run),
				 run_end(&run));
	}
}

/*
 * The number of runs without a known log: before the first known run, or between two runs of one
 * container.
 */
static void test_missed(void **state)
{
	static const struct {
		const char *before, *key;
		unsigned missed;
	} rows[] = {
		{NULL, "u.main.0", 0},	     {NULL, "u.main.2", 2},
		{"u.main.0", "u.main.1", 0}, {"u.main.0", "u.main.3", 2},
		{"u.side.2", "u.main.1", 1}, {"v.main.5", "u.main.1", 1},
		{"u.main.3", "u.main.1", 0}, {NULL, "local", 0},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_job *job = spec_job_new(0, 1);
		struct spec_replica *r = &job->replicas[0];

		if (rows[i].before)
			spec_replica_add_log(r, rows[i].before, NULL);
		spec_replica_add_log(r, rows[i].key, NULL);
		assert_int_equal(run_missed_before(r, r->n_logs - 1), rows[i].missed);
		spec_job_unref(job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_urgent),
		cmocka_unit_test(test_find),   cmocka_unit_test(test_end),
		cmocka_unit_test(test_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
