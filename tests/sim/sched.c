/* SPDX-License-Identifier: MIT */
/*
 * Choose what happens next. Events are in a heap, ordered by time; events of the same time are in
 * random order. The loop of kxfs (loop.c) has its own order, so the scheduler asks it separately.
 * Time advances when nothing is left to do now. Each task has its own stack. It runs until it
 * waits, and continues when an event wakes it. A task of an ended life of kxfs never continues.
 * swapcontext makes a system call each time for the signal mask, which nothing here changes. So
 * setcontext is used only to enter a new task, and _longjmp for all other switches. With a
 * sanitizer, swapcontext does all switches, because a sanitizer must see each of them.
 */
#undef _FORTIFY_SOURCE /* it treats a jump to another stack as an error */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#include "spec/base/mem.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif
#define STACK_BYTES   (512u << 10)
#define MOST_AT_ONCE  200000 /* more events at one time are an endless loop */
#define MOST_IN_TRACE 1024

struct event {
	uint64_t at, order;
	enum sim_whose whose;
	unsigned life;
	sim_fn fn;
	void *data;
};

struct sim_task {
	ucontext_t context;
#if !defined(SANITIZED)
	jmp_buf at;   /* where it waits */
	bool entered; /* it has begun to run */
#endif
	void *stack;
	enum sim_whose whose;
	unsigned life;
	sim_fn fn;
	void *data;
	bool woken; /* an event will resume it */
	bool over;
	bool charged;		     /* its allocations are charged to kxfs */
	struct sim_process *process; /* NULL: none */
	struct sim_task *next;	     /* in the list of ended tasks, whose stacks are reused */
};

struct sim_faults sim_faults;
bool sim_trace, sim_machine;
const char **sim_failure;

static uint64_t streams[SIM_N];
static uint64_t now, still_until, stood_us, hash = 14695981039346656037u;
static unsigned life;
static struct event *heap;
static size_t n_events, max_events;
static struct sim_task *here, *idle;
#if defined(SANITIZED)
static ucontext_t scheduler;
#else
static jmp_buf scheduler_at;
#endif

/* --- random numbers: splitmix64 --- */

static uint64_t mix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void sim_seed(uint64_t seed)
{
	for (int i = 0; i < SIM_N; i++) {
		uint64_t state =
			i < SIM_LATER ? seed * SIM_LATER + (uint64_t)i : seed + ((uint64_t)i << 48);

		streams[i] = mix(&state);
	}
}

uint64_t sim_random(enum sim_stream stream)
{
	return mix(&streams[stream]);
}

unsigned sim_below(enum sim_stream stream, unsigned n)
{
	return (unsigned)(sim_random(stream) % n);
}

bool sim_chance(enum sim_stream stream, unsigned per_mille)
{
	return sim_below(stream, 1000) < per_mille;
}

uint64_t sim_delay(enum sim_stream stream, uint64_t us)
{
	uint64_t value = sim_random(stream);

	return value % (us >> sim_below(stream, 8) | 1);
}

/* Each fault occurs in about one history of three, at a random rate. */
void sim_draw_faults(uint64_t set)
{
	static const struct {
		const char *name;
		unsigned *rate;
		unsigned most;
	} all[] = {
		{"refused", &sim_faults.refused, 300},
		{"lost", &sim_faults.lost, 300},
		{"late", &sim_faults.late, 500},
		{"silent", &sim_faults.silent, 100},
		{"proxied", &sim_faults.proxied, 400},
		{"busy", &sim_faults.busy, 300},
		{"quota", &sim_faults.quota, 300},
		{"cut", &sim_faults.cut, 100},
		{"slow", &sim_faults.slow, 30},
		{"disk_error", &sim_faults.disk_error, 20},
		{"killed", &sim_faults.killed, 1000},
		{"power_cut", &sim_faults.power_cut, 1000},
		{"writer_dies", &sim_faults.writer_dies, 300},
		{"interrupted", &sim_faults.interrupted, 300},
		{"forgotten", &sim_faults.forgotten, 300},
		{"evicted", &sim_faults.evicted, 500},
		{"rotated", &sim_faults.rotated, 200},
		{"copied", &sim_faults.copied, 500},
		{"removed", &sim_faults.removed, 500},
		{"paged", &sim_faults.paged, 1000},
		{"stranger", &sim_faults.stranger, 100},
		{"troubled", &sim_faults.troubled, 200},
		{"commanded", &sim_faults.commanded, 1000},
		{"rerun", &sim_faults.rerun, 1000},
		{"helper_killed", &sim_faults.helper_killed, 300},
		{"helper_stopped", &sim_faults.helper_stopped, 300},
		{"unsent", &sim_faults.unsent, 100},
		{"unreachable", &sim_faults.unreachable, 300},
		{"no_descriptor", &sim_faults.no_descriptor, 100},
		{"not_started", &sim_faults.not_started, 200},
		{"ended", &sim_faults.ended, 1000},
		{"lingers", &sim_faults.lingers, 1000},
		{"not_mounted", &sim_faults.not_mounted, 300},
		{"hangs", &sim_faults.hangs, 2},
		{"still", &sim_faults.still, 300},
		{"clock", &sim_faults.clock, 300},
		{"forbidden", &sim_faults.forbidden, 300},
		{"restored", &sim_faults.restored, 1000},
		{"away", &sim_faults.away, 1000},
		{"roles", &sim_faults.roles, 1000},
		{"queued", &sim_faults.queued, 1000},
		{"held", &sim_faults.held, 1000},
		{"hostile", &sim_faults.hostile, 1000},
		{"webhooks", &sim_faults.webhooks, 500},
		{"dry", &sim_faults.dry, 1000},
		{"after", &sim_faults.after, 1000},
		{"several", &sim_faults.several, 1000},
		{"kueue", &sim_faults.kueue, 1000},
		{"passed", &sim_faults.passed, 1000},
		{"archived", &sim_faults.archived, 1000},
		{"damaged", &sim_faults.damaged, 1000},
	};

	sim_machine = sim_chance(SIM_MACHINE, 333);
	sim_log("seed", "its jobs run %s", sim_machine ? "on a machine" : "in a cluster");
	for (size_t i = 0; i < array_size(all); i++) {
		enum sim_stream stream =
			all[i].rate < &sim_faults.forbidden ? SIM_FAULTS : SIM_LATER_FAULTS;
		unsigned rate = 1 + sim_below(stream, all[i].most);

		*all[i].rate = sim_chance(stream, 350) && (set >> i & 1) ? rate : 0;
		if (*all[i].rate)
			sim_log("faults", "%s %u/1000", all[i].name, *all[i].rate);
	}
	/* Files are only damaged between two lives, so some lives must end. */
	if (sim_faults.damaged)
		sim_faults.killed = max_of(sim_faults.killed, sim_faults.damaged);
}

/* --- trace and failures --- */

static void add_line(const char *who, const char *text)
{
	char line[MOST_IN_TRACE + 128];
	int n = snprintf(line, sizeof(line), "%6llu.%06llu %-9s %s\n",
			 (unsigned long long)(now / SIM_S), (unsigned long long)(now % SIM_S), who,
			 text);

	for (int i = 0; i < n && i < (int)sizeof(line) - 1; i++)
		hash = (hash ^ (unsigned char)line[i]) * 1099511628211u;
	if (sim_trace)
		fputs(line, stdout);
}

void sim_log(const char *who, const char *fmt, ...)
{
	char text[MOST_IN_TRACE];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = '|';
	add_line(who, text);
}

void sim_fail(const char *fmt, ...)
{
	char text[MOST_IN_TRACE];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	add_line("WRONG", text);
	*sim_failure = fmt;
	if (!sim_trace)
		fprintf(stderr, "%s\n", text);
	fflush(NULL);
	_exit(3);
}

uint64_t sim_trace_hash(void)
{
	return hash;
}

/* --- events --- */

uint64_t sim_now(void)
{
	return now;
}

unsigned sim_life(void)
{
	return life;
}

void sim_next_life(void)
{
	life++;
	sim_memory_forget();
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put_event(struct event e)
{
	size_t i = n_events++;

	if (i == max_events) {
		sim_of_world();

		max_events = max_events ? 2 * max_events : 64;
		heap = mem_grow(heap, max_events, sizeof(*heap));
	}
	for (; i > 0 && is_before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

void sim_after(uint64_t us, enum sim_whose whose, sim_fn fn, void *data)
{
	put_event((struct event){now + us, sim_random(SIM_ORDER), whose, life, fn, data});
}

void sim_stand_still(uint64_t us)
{
	uint64_t until = max_of(still_until, now + us);

	stood_us += until - max_of(still_until, now);
	still_until = until;
}

uint64_t sim_awake(void)
{
	return now - (stood_us - (still_until > now ? still_until - now : 0));
}

static struct event take_event(void)
{
	struct event first = heap[0], last = heap[--n_events];
	size_t i = 0;

	for (;;) {
		size_t below = 2 * i + 1;

		if (below + 1 < n_events && is_before(&heap[below + 1], &heap[below]))
			below++;
		if (below >= n_events || !is_before(&heap[below], &last))
			break;
		heap[i] = heap[below];
		i = below;
	}
	heap[i] = last;
	return first;
}

/* Advance the time; check the invariants once a second. */
static void move_on(uint64_t to)
{
	bool next_second = to / SIM_S != now / SIM_S;

	now = to;
	if (next_second)
		bounds_check(still_until > now);
}

void sim_run(uint64_t until, const bool *over)
{
	unsigned n = 0;

	while (!*over) {
		uint64_t due = max_of(sim_loop_due(), still_until);
		bool event = n_events && heap[0].at <= now;

		if (++n > MOST_AT_ONCE)
			sim_fail("time does not advance: some events repeat without end");
		if (due <= now && (!event || sim_chance(SIM_ORDER, 500))) {
			sim_loop_turn();
		} else if (event) {
			struct event e = take_event();
			bool is_still = e.whose != SIM_WORLD && still_until > now;

			e.at = is_still ? still_until : e.at;
			if (is_still)
				put_event(e);
			else if (e.whose != SIM_OF_KXFS || e.life == life)
				e.fn(e.data);
		} else {
			uint64_t next = n_events ? min_of(heap[0].at, due) : due;

			if (next > until)
				break;
			move_on(next);
			n = 0;
		}
	}
	if (!*over)
		now = until;
}

/* --- tasks --- */

#if defined(__SANITIZE_ADDRESS__)
static const void *scheduler_stack;
static size_t scheduler_size;
#endif

/* Switch from the scheduler to T. */
static void enter(struct sim_task *t)
{
	here = t;
	sim_charge(t->charged);
#if defined(__SANITIZE_ADDRESS__)
	void *fake = NULL;

	__sanitizer_start_switch_fiber(&fake, t->stack, STACK_BYTES);
	swapcontext(&scheduler, &t->context);
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#elif defined(SANITIZED)
	swapcontext(&scheduler, &t->context);
#else
	if (_setjmp(scheduler_at))
		return;
	if (t->entered)
		_longjmp(t->at, 1);
	t->entered = true;
	setcontext(&t->context);
#endif
}

/* Switch from T to the scheduler. */
static void leave(struct sim_task *t)
{
	here = NULL;
	t->charged = sim_charge(false);
#if defined(__SANITIZE_ADDRESS__)
	void *fake = NULL;

	/*
	 * Save the fake stack even if the task has ended. Another task will continue in this frame,
	 * and NULL would release its fake stack.
	 */
	__sanitizer_start_switch_fiber(&fake, scheduler_stack, scheduler_size);
	swapcontext(&t->context, &scheduler);
	__sanitizer_finish_switch_fiber(fake, &scheduler_stack, &scheduler_size);
#elif defined(SANITIZED)
	swapcontext(&t->context, &scheduler);
#else
	if (!_setjmp(t->at))
		_longjmp(scheduler_at, 1);
#endif
}

static void task_main(void)
{
	struct sim_task *t = here;

#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_size);
#endif
	/* sim_task_start may reuse this stack for another task, which then continues here. */
	for (;;) {
		t->fn(t->data);
		t->over = true;
		leave(t);
	}
}

/* The compiler assumes that getcontext may return twice. So only this function calls it. */
static void make_context(struct sim_task *t)
{
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&t->context, task_main, 0);
	/* Otherwise ASan forgets, at each switch, what it knows of the frames on this stack. */
	t->context.uc_stack.ss_size = 0;
}

static void task_run(void *data)
{
	struct sim_task *t = data;
	const struct sim_process *p = t->process;

	if (p && p->dead)
		return;
	if (p && p->stopped_until > now)
		return sim_after(p->stopped_until - now, t->whose, task_run, t);
	t->woken = false;
	enter(t);
	if (t->over) {
		t->next = idle;
		idle = t;
	}
}

void sim_task_start(enum sim_whose whose, sim_fn fn, void *data)
{
	struct sim_task *t = idle;

	if (t) {
		idle = t->next;
	} else {
		sim_of_world();

		t = new0(struct sim_task);
		t->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (t->stack == MAP_FAILED)
			sim_fail("no memory for a stack");
		make_context(t);
	}
	t->whose = whose;
	t->life = life;
	t->fn = fn;
	t->data = data;
	t->process = NULL;
	t->over = false;
	t->charged = whose == SIM_OF_KXFS;
	t->woken = true;
	sim_after(0, whose, task_run, t);
}

struct sim_task *sim_task_here(void)
{
	return here;
}

void sim_task_join(struct sim_process *p)
{
	here->process = p;
}

struct sim_process *sim_process_here(void)
{
	return here ? here->process : NULL;
}

void sim_task_wait(void)
{
	leave(here);
}

void sim_sleep(uint64_t us)
{
	sim_after(us, here->whose, task_run, here);
	here->woken = true;
	sim_task_wait();
}

void sim_task_wake(struct sim_task *t)
{
	if (t->woken || t->over || (t->whose == SIM_OF_KXFS && t->life != life))
		return;
	t->woken = true;
	sim_after(0, t->whose, task_run, t);
}
