/* SPDX-License-Identifier: MIT */
/* Which of the logs that wait gets a place. */
#include "backend/kube/places.h"
#include "tests/unit/unit.h"

#define MAX 10
#define ALL 200

static struct {
	struct places places;
	struct place all[ALL];
} rig;

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	rig.places.max = MAX;
	return 0;
}

static struct place *queue(size_t i, struct place as)
{
	rig.all[i] = as;
	places_set(&rig.places, &rig.all[i], PLACE_QUEUED);
	return &rig.all[i];
}

/* Give away all places that there are. How many logs got one? */
static size_t fill(void)
{
	size_t n = 0;

	while (places_next(&rig.places))
		n++;
	return n;
}

/* The first that asks is the first that gets a place, up to the bound; one that leaves makes room for another. */
static void test_order(void **state)
{
	for (size_t i = 0; i < MAX + 5; i++)
		queue(i, (struct place){0});
	for (size_t i = 0; i < MAX; i++)
		assert_ptr_equal(places_next(&rig.places), &rig.all[i]);
	assert_null(places_next(&rig.places));
	assert_int_equal(rig.places.n[PLACE_TAKEN], MAX);
	assert_int_equal(rig.places.n[PLACE_QUEUED], 5);
	places_set(&rig.places, &rig.all[3], PLACE_PAUSED);
	assert_ptr_equal(places_next(&rig.places), &rig.all[MAX]);
	assert_null(places_next(&rig.places));
	places_set(&rig.places, &rig.all[3], PLACE_QUEUED);
	places_set(&rig.places, &rig.all[4], PLACE_NONE);
	assert_ptr_equal(places_next(&rig.places), &rig.all[MAX + 1]);
	assert_int_equal(rig.places.n[PLACE_PAUSED], 0);
	assert_int_equal(rig.places.n[PLACE_QUEUED], 4);
}

/*
 * Urgent logs come before the others, and have places of their own when all others are taken; but not without a bound.
 */
static void test_urgent(void **state)
{
	struct place *late;

	for (size_t i = 0; i < MAX + 1; i++)
		queue(i, (struct place){0});
	assert_int_equal(fill(), MAX);
	late = queue(MAX + 1, (struct place){0});
	places_hasten(&rig.places, late);
	assert_ptr_equal(places_next(&rig.places), late);
	assert_null(places_next(&rig.places));
	for (size_t i = 0; i < 100; i++)
		queue(MAX + 2 + i, (struct place){.urgent = true});
	assert_int_equal(fill(), PLACES_URGENT - 1);
	/* A log that has a place and becomes urgent keeps its place. */
	places_hasten(&rig.places, &rig.all[0]);
	assert_int_equal(rig.all[0].state, PLACE_TAKEN);
	assert_int_equal(fill(), 0);
}

/* Of the logs for which readers wait a few are followed at once, until each has arrived; they do not hold up others. */
static void test_first(void **state)
{
	rig.places.max = 100;
	for (size_t i = 0; i < PLACES_FIRST + 3; i++)
		queue(i, (struct place){.first = true});
	queue(20, (struct place){0});
	assert_int_equal(fill(), PLACES_FIRST + 1);
	assert_int_equal(rig.all[20].state, PLACE_TAKEN);
	places_arrived(&rig.places, &rig.all[0]);
	assert_ptr_equal(places_next(&rig.places), &rig.all[PLACES_FIRST]);
	places_set(&rig.places, &rig.all[1], PLACE_NONE);
	assert_ptr_equal(places_next(&rig.places), &rig.all[PLACES_FIRST + 1]);
	/* A log that has no place yet may go away too. */
	places_arrived(&rig.places, &rig.all[PLACES_FIRST + 2]);
	assert_ptr_equal(places_next(&rig.places), &rig.all[PLACES_FIRST + 2]);
}

/* The same of logs that were refused before, except those whose pod is on its way out. */
static void test_retried(void **state)
{
	rig.places.max = 100;
	for (size_t i = 0; i < PLACES_RETRIED + 3; i++)
		queue(i, (struct place){.retried = true});
	queue(20, (struct place){.retried = true, .leaving = true});
	assert_int_equal(fill(), PLACES_RETRIED + 1);
	assert_int_equal(rig.all[20].state, PLACE_TAKEN);
	assert_int_equal(rig.places.n_retried, PLACES_RETRIED + 1);
	places_set(&rig.places, &rig.all[0], PLACE_PAUSED);
	places_set(&rig.places, &rig.all[20], PLACE_NONE);
	assert_ptr_equal(places_next(&rig.places), &rig.all[PLACES_RETRIED]);
	assert_null(places_next(&rig.places));
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
