/* SPDX-License-Identifier: MIT */
/* Which of the logs that wait gets a slot. */
#include "backend/kube/slots.h"
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

/* Give away all slots that there are. How many logs got one? */
static size_t fill(void)
{
	size_t n = 0;

	while (slots_next(&rig.slots))
		n++;
	return n;
}

/* The first that asks is the first that gets a slot, up to the bound; one that leaves makes room for another. */
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
 * Urgent logs come before the others, and have slots of their own when all others are taken; but not without a bound.
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

/* Of the logs for which readers wait a few are followed at once, until each has arrived; they do not hold up others. */
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
	/* A log that has no slot yet may go away too. */
	slots_arrived(&rig.slots, &rig.all[SLOTS_FIRST + 2]);
	assert_ptr_equal(slots_next(&rig.slots), &rig.all[SLOTS_FIRST + 2]);
}

/* The same of logs that were refused before, except those whose pod is on its way out. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_order, setup),
		cmocka_unit_test_setup(test_urgent, setup),
		cmocka_unit_test_setup(test_first, setup),
		cmocka_unit_test_setup(test_retried, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
