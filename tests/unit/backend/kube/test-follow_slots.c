/* SPDX-License-Identifier: MIT */
/*
 * Which waiting log gets a slot. Also: what the key of a log means, and which state of its run the
 * pod's status shows.
 */
#include "backend/kube/follow.h"
#include "tests/unit/unit.h"

#define MAX 10
#define ALL 200

static struct {
	struct slots slots;
	struct slot all[ALL];
} rig;

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	rig.slots.max = MAX;
	return 0;
}

static struct slot *queue(size_t i, struct slot as)
{
	rig.all[i] = as;
	slots_set(&rig.slots, &rig.all[i], SLOT_QUEUED);
	return &rig.all[i];
}

/* Give all free slots to waiting logs. Return how many logs got one. */
static size_t fill(void)
{
	size_t n = 0;

	while (slots_next(&rig.slots))
		n++;
	return n;
}

/*
 * Logs get slots in the order of their requests, up to the bound. When a log releases its slot,
 * another log gets it.
 */
static void test_order(void **state)
{
	for (size_t i = 0; i < MAX + 5; i++)
		queue(i, (struct slot){0});
	for (size_t i = 0; i < MAX; i++)
		assert_ptr_equal(slots_next(&rig.slots), &rig.all[i]);
	assert_null(slots_next(&rig.slots));
	assert_int_equal(rig.slots.n[SLOT_TAKEN], MAX);
	assert_int_equal(rig.slots.n[SLOT_QUEUED], 5);
	slots_set(&rig.slots, &rig.all[3], SLOT_PAUSED);
	assert_ptr_equal(slots_next(&rig.slots), &rig.all[MAX]);
	assert_null(slots_next(&rig.slots));
	slots_set(&rig.slots, &rig.all[3], SLOT_QUEUED);
	slots_set(&rig.slots, &rig.all[4], SLOT_NONE);
	assert_ptr_equal(slots_next(&rig.slots), &rig.all[MAX + 1]);
	assert_int_equal(rig.slots.n[SLOT_PAUSED], 0);
	assert_int_equal(rig.slots.n[SLOT_QUEUED], 4);
}

/*
 * Urgent logs come before other logs. If all slots are taken, urgent logs get extra slots, up to a
 * bound.
 */
static void test_urgent(void **state)
{
	struct slot *late;

	for (size_t i = 0; i < MAX + 1; i++)
		queue(i, (struct slot){0});
	assert_int_equal(fill(), MAX);
	late = queue(MAX + 1, (struct slot){0});
	slots_hasten(&rig.slots, late);
	assert_ptr_equal(slots_next(&rig.slots), late);
	assert_null(slots_next(&rig.slots));
	for (size_t i = 0; i < 100; i++)
		queue(MAX + 2 + i, (struct slot){.urgent = true});
	assert_int_equal(fill(), SLOTS_URGENT - 1);
	/* A log that has a slot and becomes urgent keeps its slot. */
	slots_hasten(&rig.slots, &rig.all[0]);
	assert_int_equal(rig.all[0].state, SLOT_TAKEN);
	assert_int_equal(fill(), 0);
}

/*
 * Of the logs that readers wait for, only a few are followed at the same time, until their output
 * has arrived. They do not delay other logs.
 */
static void test_first(void **state)
{
	rig.slots.max = 100;
	for (size_t i = 0; i < SLOTS_FIRST + 3; i++)
		queue(i, (struct slot){.first = true});
	queue(20, (struct slot){0});
	assert_int_equal(fill(), SLOTS_FIRST + 1);
	assert_int_equal(rig.all[20].state, SLOT_TAKEN);
	slots_arrived(&rig.slots, &rig.all[0]);
	assert_ptr_equal(slots_next(&rig.slots), &rig.all[SLOTS_FIRST]);
	slots_set(&rig.slots, &rig.all[1], SLOT_NONE);
	assert_ptr_equal(slots_next(&rig.slots), &rig.all[SLOTS_FIRST + 1]);
	/* A log that has no slot yet may also be removed. */
	slots_arrived(&rig.slots, &rig.all[SLOTS_FIRST + 2]);
	assert_ptr_equal(slots_next(&rig.slots), &rig.all[SLOTS_FIRST + 2]);
}

/*
 * Of the logs that were refused before, only a few are followed at the same time, except those
 * whose pod is being deleted.
 */
static void test_retried(void **state)
{
	rig.slots.max = 100;
	for (size_t i = 0; i < SLOTS_RETRIED + 3; i++)
		queue(i, (struct slot){.retried = true});
	queue(20, (struct slot){.retried = true, .leaving = true});
	assert_int_equal(fill(), SLOTS_RETRIED + 1);
	assert_int_equal(rig.all[20].state, SLOT_TAKEN);
	assert_int_equal(rig.slots.n_retried, SLOTS_RETRIED + 1);
	slots_set(&rig.slots, &rig.all[0], SLOT_PAUSED);
	slots_set(&rig.slots, &rig.all[20], SLOT_NONE);
	assert_ptr_equal(slots_next(&rig.slots), &rig.all[SLOTS_RETRIED]);
	assert_null(slots_next(&rig.slots));
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
		cmocka_unit_test_setup(test_order, setup),
		cmocka_unit_test_setup(test_urgent, setup),
		cmocka_unit_test_setup(test_first, setup),
		cmocka_unit_test_setup(test_retried, setup),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
