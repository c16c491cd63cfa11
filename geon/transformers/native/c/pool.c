/* A pool of threads that share the tasks of one run; each thread in a run has a number (its seat).
 *
 * There is one pool per process. A run belongs to the thread that called geon_pool_run; a second
 * caller, or a task that calls it, finds the pool busy and runs its tasks alone. Workers join a run
 * only while it has free seats, so a run waits only for the workers that have joined it, never for
 * one that is still waking up.
 *
 * One 64-bit word, `state`, has the whole state: the number of the run (upper 32 bits), the free
 * seats, a flag for a sleeping caller, and the number of workers inside (lowest 15 bits). The
 * caller writes the run's task, argument and shares before its seats; a worker reads them only
 * after it took a seat.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#ifndef GEON_VERSION
#define GEON_VERSION "unknown"
#endif

/* How long a worker that has nothing to do, or a caller whose workers are not done, asks again and
 * again before it sleeps. Waking a sleeping thread takes 5 to 50 us, so a wait of up to that time
 * costs at most twice what the better of the two choices would have; and the kernels of one
 * program that run on one thread between two that run on many mostly take less. */
#define SPIN_NANOSECONDS 50000
/* How long waking takes the caller, where there are virtual processors: 7 us were measured. Runs that
 * are known to be shorter do not wake anybody, unless as much time as this went by in such runs that
 * followed each other closely. So they cost at most twice what the better choice would have. */
#define WAKING_NANOSECONDS 8000
/* Pauses between two looks at the clock, which takes as long as one pause or two. */
#define PAUSES 16
/* How long a caller asks before it lets other threads run in between: the worker it waits for may
 * be one that wants to run on the caller's own processor. */
#define ALONE_NANOSECONDS 10000
#define MOST_WORKERS 1023
/* A worker runs generated kernels, whose arrays on the stack are tiles; the default depends on
 * the limits of the shell. */
#define STACK_BYTES (4u << 20)
#define LINE 64
/* Threads beyond so many begin with a share that another has begun. */
#define MOST_SHARES 64

#define INSIDE ((uint64_t)0x7fff)
#define ASLEEP ((uint64_t)1 << 15)
#define SEAT ((uint64_t)1 << 16)
#define SEATS ((uint64_t)0xffff << 16)
#define RUN_SHIFT 32

typedef void (*geon_task)(void *argument, int64_t index);

static struct {
    /* What the run is: written by its caller while nobody is inside. */
    geon_task task __attribute__((aligned(LINE)));
    void *argument;
    uint64_t arithmetic;
    int32_t watched;
    int32_t seats; /* how many it began with */
    int32_t shares;
    /* The word described above. */
    uint64_t state __attribute__((aligned(LINE)));
    /* Whether a caller has the pool; the rest is written by that caller. */
    int32_t taken __attribute__((aligned(LINE)));
    int32_t workers;
    int32_t refused; /* the fewest workers that the system did not give; 0: it gave all */
    uint32_t run;
    /* Workers that sleep and were not woken yet, and workers that were but have not come to
     * know it: both change under the lock. */
    int32_t sleeping __attribute__((aligned(LINE)));
    int32_t woken;
    /* When a short run last found workers asleep, and how long those before it took together:
     * written by the caller that has the pool. */
    int64_t short_at, short_time;
    /* Workers that spin although there are as many as processors. */
    int32_t spinning;
    int32_t limit;      /* 0: none */
    int32_t processors; /* threads that can run at once */
    int32_t usual;      /* what geon_get_num_threads says where there is no limit */
} pool;

/* The next index of each share of the run that nobody has taken. */
static struct {
    int64_t next, end;
} __attribute__((aligned(LINE))) shares[MOST_SHARES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;

/* The seat that this thread has in the run it works on; the caller's is 0. */
static __thread int32_t seat;

/* Whether there was an interrupt since a call was last watched, and whether this thread works for
 * a call that is. */
int32_t geon_interrupt;
static __thread int32_t watched;
static struct sigaction python;

#define LOAD(place, order) __atomic_load_n(&(place), __ATOMIC_##order)
#define STORE(place, value, order) __atomic_store_n(&(place), (value), __ATOMIC_##order)
#define ADD(place, value, order) __atomic_fetch_add(&(place), (value), __ATOMIC_##order)

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* waits as pause does; yield mostly does nothing */
#endif
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* How this thread rounds and whether it flushes denormals: a task must give the same bits on
 * every thread, and a library may have changed it in the caller alone. */
static uint64_t arithmetic(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~(uint64_t)0x3f; /* without the flags that results raise */
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return 0;
#endif
}

static void set_arithmetic(uint64_t control)
{
    if (control == arithmetic())
        return;
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((unsigned)control);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(control));
#endif
}

/* Lets subnormal numbers be 0 in this thread, where it is one of x86-64; how it computed before. */
uint64_t geon_flush_subnormals(void)
{
    const uint64_t before = arithmetic();
#if defined(__x86_64__)
    set_arithmetic(before | 0x8040);
#endif
    return before;
}

void geon_set_arithmetic(uint64_t control)
{
    set_arithmetic(control);
}

/* Runs the tasks that nobody has taken, until none is left: those of its own share first, which
 * are the same from run to run, so that a thread finds in its cache what it wrote there before. Of
 * two tasks each belongs to a seat. */
static void work(int32_t own)
{
    geon_task task = pool.task;
    void *argument = pool.argument;
    int64_t index;
    int32_t count = pool.shares, share;
    if (count == 0) {
        task(argument, seat);
        return;
    }
    share = own % count;
    for (int32_t i = 0; i < count; i++, share = share + 1 < count ? share + 1 : 0) {
        int64_t end = shares[share].end;
        while (LOAD(shares[share].next, RELAXED) < end &&
               (index = ADD(shares[share].next, 1, RELAXED)) < end)
            task(argument, index);
    }
}

/* Cuts the run's tasks into one share of neighbours for each thread; two tasks are two seats, and
 * no lines of memory but that of `state` go from one processor to another for them, which takes 0.03
 * to 0.2 us a line. */
static void cut(int64_t count, int32_t threads)
{
    int32_t number = pool.shares = count == 2 ? 0 : threads < MOST_SHARES ? threads : MOST_SHARES;
    for (int32_t share = 0; share < number; share++) {
        shares[share].next = count / number * share + count % number * share / number;
        shares[share].end = count / number * (share + 1) + count % number * (share + 1) / number;
    }
}

/* Whether the worker took a seat of a run that it has not been in. */
static int join(uint32_t *last)
{
    uint64_t state = LOAD(pool.state, SEQ_CST);
    while ((state & SEATS) && (uint32_t)(state >> RUN_SHIFT) != *last) {
        __builtin_prefetch(&pool.task);
        if (__atomic_compare_exchange_n(&pool.state, &state, state - SEAT + 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            *last = (uint32_t)(state >> RUN_SHIFT);
            seat = (int32_t)((state & SEATS) / SEAT); /* those left, this one included */
            return 1;
        }
    }
    return 0;
}

/* The caller runs the second of two tasks, where no worker has begun it. */
static void take_second(void)
{
    uint64_t state = LOAD(pool.state, RELAXED);
    if ((state & SEATS) &&
        __atomic_compare_exchange_n(&pool.state, &state, state - SEAT, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
        pool.task(pool.argument, 1);
}

static void leave(void)
{
    uint64_t before = __atomic_fetch_sub(&pool.state, 1, __ATOMIC_ACQ_REL);
    if ((before & INSIDE) == 1 && (before & ASLEEP)) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&left);
    }
}

/* Asks for a seat until the time is over. The time begins anew with each run that this worker
 * came too late for, so that it is awake for the next of many short ones; but only as many
 * workers as the run had seats stay awake for that. */
static int spin(uint32_t *last, int32_t rank)
{
    int64_t end = nanoseconds() + SPIN_NANOSECONDS;
    uint32_t seen = (uint32_t)(LOAD(pool.state, RELAXED) >> RUN_SHIFT), run;
    do {
        for (int i = 0; i < PAUSES; i++) {
            if (join(last))
                return 1;
            relax();
        }
        run = (uint32_t)(LOAD(pool.state, RELAXED) >> RUN_SHIFT);
        if (run != seen && rank < LOAD(pool.seats, RELAXED))
            end = nanoseconds() + SPIN_NANOSECONDS;
        seen = run;
    } while (nanoseconds() < end);
    return 0;
}

/* Sleeps until there is a seat or somebody wakes the worker; whether it took a seat. */
static int fall_asleep(uint32_t *last)
{
    int joined;
    pthread_mutex_lock(&lock);
    ADD(pool.sleeping, 1, SEQ_CST); /* before it looks again: see wake */
    while (!(joined = join(last)) && pool.woken == 0)
        pthread_cond_wait(&opened, &lock);
    if (pool.woken > 0)
        pool.woken--;
    else
        ADD(pool.sleeping, -1, SEQ_CST);
    pthread_mutex_unlock(&lock);
    return joined;
}

/* Spins, if no more workers do so than there are processors for; whether it took a seat. */
static int stay(uint32_t *last, int32_t rank)
{
    int32_t processors = LOAD(pool.processors, RELAXED);
    int joined = 0;
    if (LOAD(pool.workers, RELAXED) < processors)
        return spin(last, rank);
    if (ADD(pool.spinning, 1, RELAXED) + 1 < processors)
        joined = spin(last, rank);
    ADD(pool.spinning, -1, RELAXED);
    return joined;
}

static void *worker(void *argument)
{
    int32_t rank = (int32_t)(intptr_t)argument;
    uint32_t last = 0;
    for (;;) {
        while (!stay(&last, rank) && !fall_asleep(&last)) {
        }
        set_arithmetic(pool.arithmetic);
        watched = pool.watched;
        work(rank + 1);
        leave();
    }
    return NULL;
}

/* Makes workers up to this number, or as many as the system gives. They block every signal that
 * another thread could take, so that an interrupt reaches the program's own threads. */
static void hire(int32_t wanted)
{
    pthread_attr_t attributes;
    sigset_t blocked, before;
    if (pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&blocked);
    sigdelset(&blocked, SIGSEGV); /* a fault belongs to the thread that made it */
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGILL);
    sigdelset(&blocked, SIGTRAP);
    sigdelset(&blocked, SIGABRT);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    while (pool.workers < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, worker, (void *)(intptr_t)pool.workers) != 0) {
            pool.refused = wanted; /* not asked again until more are wanted than now */
            break;
        }
#if defined(__linux__)
        pthread_setname_np(thread, "geon");
#endif
        STORE(pool.workers, pool.workers + 1, RELAXED);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* Wakes as many workers as the run has seats that no waking worker will take. A worker that falls
 * asleep counts itself before it looks at `state` for the last time, and here `state` was written
 * before the count is read: one of the two sees the other. */
static void wake(int32_t seats)
{
    int32_t sleeping = LOAD(pool.sleeping, SEQ_CST);
    int32_t needed = seats - (pool.workers - sleeping);
    if (sleeping == 0 || needed <= 0)
        return;
    pthread_mutex_lock(&lock);
    sleeping = LOAD(pool.sleeping, RELAXED);
    if (needed > sleeping)
        needed = sleeping;
    pool.woken += needed;
    STORE(pool.sleeping, sleeping - needed, SEQ_CST);
    pthread_mutex_unlock(&lock);
    if (needed == sleeping)
        pthread_cond_broadcast(&opened);
    else
        while (needed-- > 0)
            pthread_cond_signal(&opened);
}

/* Whether a run that takes one thread so long may wake workers. */
static int may_wake(int32_t duration)
{
    int64_t now;
    if (duration >= WAKING_NANOSECONDS)
        return 1;
    if (LOAD(pool.sleeping, RELAXED) == 0)
        return 0;
    now = nanoseconds();
    if (now - pool.short_at > SPIN_NANOSECONDS)
        pool.short_time = 0;
    pool.short_at = now;
    pool.short_time += duration;
    if (pool.short_time < WAKING_NANOSECONDS)
        return 0;
    pool.short_time = 0;
    return 1;
}

/* Takes the seats away and waits until nobody is inside: asks, then yields, then sleeps. */
static void finish(int32_t threads)
{
    uint64_t state = LOAD(pool.state, ACQUIRE);
    int64_t begin, now;
    int crowded = threads > LOAD(pool.processors, RELAXED);
    if (state & SEATS)
        state = __atomic_and_fetch(&pool.state, ~SEATS, __ATOMIC_ACQ_REL);
    if (!(state & INSIDE))
        return;
    now = begin = nanoseconds();
    do {
        for (int i = 0; i < PAUSES; i++) {
            if (!(LOAD(pool.state, ACQUIRE) & INSIDE))
                return;
            relax();
        }
        if (crowded || now - begin > ALONE_NANOSECONDS)
            sched_yield();
        now = nanoseconds();
    } while (now - begin < SPIN_NANOSECONDS);
    pthread_mutex_lock(&lock);
    state = __atomic_or_fetch(&pool.state, ASLEEP, __ATOMIC_ACQ_REL);
    while (state & INSIDE) {
        pthread_cond_wait(&left, &lock);
        state = LOAD(pool.state, ACQUIRE);
    }
    pthread_mutex_unlock(&lock);
}

/* As geon_pool_run, for a run that takes one thread about as many nanoseconds: a short one is done
 * without workers that would have to be woken. */
void geon_pool_run_short(
    geon_task task, void *argument, int64_t count, int32_t threads, int32_t duration)
{
    int32_t limit = LOAD(pool.limit, RELAXED);
    uint64_t opened_state;
    if (limit > 0 && threads > limit)
        threads = limit;
    if (threads > count)
        threads = (int32_t)count;
    if (threads > MOST_WORKERS + 1)
        threads = MOST_WORKERS + 1;
    if (threads <= 1 || LOAD(pool.taken, RELAXED) ||
        __atomic_exchange_n(&pool.taken, 1, __ATOMIC_ACQUIRE)) {
        for (int64_t index = 0; index < count; index++)
            task(argument, index);
        return;
    }
    if (threads - 1 > pool.workers && (pool.refused == 0 || threads - 1 > pool.refused))
        hire(threads - 1);
    if (threads - 1 > pool.workers)
        threads = pool.workers + 1;
    pool.task = task;
    pool.argument = argument;
    cut(count, threads);
    pool.arithmetic = arithmetic();
    pool.watched = watched;
    STORE(pool.seats, threads - 1, RELAXED);
    pool.run++;
    opened_state = ((uint64_t)pool.run << RUN_SHIFT) | SEAT * (uint64_t)(threads - 1);
    if (may_wake(duration)) {
        STORE(pool.state, opened_state, SEQ_CST);
        wake(threads - 1);
    } else
        STORE(pool.state, opened_state, RELEASE); /* need not wait until all can see it */
    work(0);
    if (pool.shares == 0)
        take_second();
    finish(threads);
    STORE(pool.taken, 0, RELEASE);
}

/* Runs task(argument, 0) to task(argument, count - 1), each once and in any order, on at most
 * `threads` threads, the caller among them; what the tasks wrote can be read when it returns.
 * A task must not fork. */
void geon_pool_run(geon_task task, void *argument, int64_t count, int32_t threads)
{
    geon_pool_run_short(task, argument, count, threads, WAKING_NANOSECONDS);
}

/* Which of the threads of its run the calling one is, from 0 to below the number of threads: the
 * caller of geon_pool_run is 0. Each has a part of its own of the memory that a kernel works in. */
int32_t geon_seat(void)
{
    return seat;
}

/* Notes an interrupt, and does what was done about it before. */
static void note(int number, siginfo_t *info, void *context)
{
    STORE(geon_interrupt, 1, RELAXED);
    if (python.sa_flags & SA_SIGINFO)
        python.sa_sigaction(number, info, context);
    else
        python.sa_handler(number);
}

static int is_handled(const struct sigaction *found)
{
    return (found->sa_flags & SA_SIGINFO) ||
           (found->sa_handler != SIG_DFL && found->sa_handler != SIG_IGN);
}

/* From now on interrupts end the loops of this thread's calls, and of those who help it, where the
 * process has a handler for them; that runs as well. Only the thread that signals are handled in
 * may ask for it. */
void geon_watch(void)
{
    struct sigaction found, own;
    STORE(geon_interrupt, 0, RELAXED);
    if (sigaction(SIGINT, NULL, &found) != 0 || !is_handled(&found))
        return;
    watched = 1;
    if ((found.sa_flags & SA_SIGINFO) && found.sa_sigaction == note)
        return;
    python = own = found;
    own.sa_sigaction = note;
    own.sa_flags |= SA_SIGINFO;
    sigaction(SIGINT, &own, NULL);
}

/* Interrupts are handled as they were before geon_watch. */
void geon_unwatch(void)
{
    if (watched)
        sigaction(SIGINT, &python, NULL);
    watched = 0;
}

int32_t geon_is_watched(void)
{
    return watched;
}

/* The most threads a run may use, the caller included; 0 or less takes the limit away. */
void geon_set_num_threads(int32_t threads)
{
    STORE(pool.limit, threads > 0 ? threads : 0, RELAXED);
}

/* The limit; where there is none, the number of threads that runs usually have. */
int32_t geon_get_num_threads(void)
{
    int32_t limit = LOAD(pool.limit, RELAXED);
    return limit > 0 ? limit : LOAD(pool.usual, RELAXED);
}

/* How many threads can run at once (more than that do not spin), and how many a run usually has. */
void geon_pool_configure(int32_t processors, int32_t usual)
{
    STORE(pool.processors, processors > 1 ? processors : 1, RELAXED);
    STORE(pool.usual, usual > 1 ? usual : 1, RELAXED);
}

const char *geon_get_version(void)
{
    return GEON_VERSION;
}

/* A forked child has its one thread and no worker, whatever the parent's other threads were
 * doing: it starts with an empty pool that nobody has taken. */
static void after_fork(void)
{
    static const pthread_mutex_t new_lock = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_cond_t new_condition = PTHREAD_COND_INITIALIZER;
    lock = new_lock;
    opened = new_condition;
    left = new_condition;
    pool.state = (uint64_t)pool.run << RUN_SHIFT;
    pool.taken = 0;
    pool.workers = 0;
    pool.refused = 0;
    pool.sleeping = 0;
    pool.woken = 0;
    pool.spinning = 0;
}

__attribute__((constructor)) static void start(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    geon_pool_configure(online > 0 ? (int32_t)online : 1, online > 0 ? (int32_t)online : 1);
    pthread_atfork(NULL, NULL, after_fork);
}
