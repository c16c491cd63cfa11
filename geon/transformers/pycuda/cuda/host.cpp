/* Runs kernels on a CPU: one block after another, the threads of a block as fibers that are
   switched where they wait for one another. One launch at a time. */
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#error "fibers are written for x86-64 and aarch64"
#endif

struct geon_index {
    unsigned x;
};
struct geon_host_barrier { /* as in ``host.hpp`` */
    uint16_t count, left;
    uint32_t passed;
};
extern "C" {
geon_index threadIdx, blockIdx, blockDim, gridDim;
void geon_switch(void **left, void *entered);

/* What CUDA's clock counts are ticks of its own; here nanoseconds. */
long long clock64(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
}

/* Leaves a fiber, whose stack pointer is put at `left`, and goes on with the one `entered`. */
#if defined(__x86_64__)
__asm__(".text\n.globl geon_switch\n.hidden geon_switch\n.type geon_switch,@function\n"
        "geon_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
enum { SAVED = 6 };
#else
__asm__(".text\n.globl geon_switch\n.hidden geon_switch\n.type geon_switch,%function\n"
        "geon_switch:\n"
        "sub sp, sp, #160\n"
        "stp x19, x20, [sp, #0]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
        "ldp x19, x20, [sp, #0]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\nret\n");
#endif

namespace {
enum Wait : unsigned char { RUNS, AT_WARP, AT_BLOCK, AT_MEETING, AT_BARRIER, ENDED };
const unsigned WARP = 32, MOST = 1024;
const size_t STACK = 64 << 10;

typedef void (*Call)(const uint64_t *words);
struct Fiber {
    void *place;
    Wait wait;
    uint64_t exchanged[2];
    struct alignas(16) {
        unsigned char bytes[32];
    } shown[2]; /* to all of its warp */
    unsigned turn, blocks_met, warps_met; /* how often it has passed a barrier of its block, warp */
    unsigned meeting;                     /* how many threads it waits for, from the first one on */
    const geon_host_barrier *awaited;
    unsigned parity;
};
Fiber fibers[MOST];
char *stacks;
void *outside;
unsigned current, fiber_count;
bool meets;
Call called;
const uint64_t *given;
char problem[200];
const size_t NOWHERE = (size_t)1 << 36;
char *nowhere; /* address space without memory */
sigjmp_buf launching;
struct sigaction former;

/* Ends a launch that looks at an array without elements; other faults are for others. */
void caught(int, siginfo_t *fault, void *)
{
    const size_t behind = (size_t)((char *)fault->si_addr - nowhere);
    if (nowhere && behind < NOWHERE)
        siglongjmp(launching, 1);
    sigaction(SIGSEGV, &former, NULL); /* who had them sees this one when it comes again */
}

void entry()
{
    called(given);
    fibers[current].wait = ENDED;
    geon_switch(&fibers[current].place, outside);
    abort();
}

void races_have_met(unsigned first, unsigned last);

void pause(Wait wait)
{
    if (!meets) {
        fprintf(stderr, "a kernel whose threads should not meet has a barrier\n");
        abort();
    }
    fibers[current].wait = wait;
    geon_switch(&fibers[current].place, outside);
}

void begin(unsigned k)
{
    uint64_t *top = (uint64_t *)(stacks + (k + 1) * STACK);
#if defined(__x86_64__)
    *--top = 0; /* as after a call: the stack is 8 bytes off a multiple of 16 */
    *--top = (uint64_t)(void *)entry;
    for (int saved = 0; saved < SAVED; saved++)
        *--top = 0;
#else
    top -= 20;
    memset(top, 0, 160);
    top[11] = (uint64_t)(void *)entry;
#endif
    fibers[k].place = top;
    fibers[k].wait = RUNS;
    fibers[k].turn = fibers[k].blocks_met = fibers[k].warps_met = fibers[k].meeting = 0;
}

/* Lets all threads from first to last go on if each waits so, or has ended; says whether any did. */
bool release(unsigned first, unsigned last, Wait wait)
{
    bool any = false;
    for (unsigned k = first; k < last; k++) {
        if (fibers[k].wait != wait && fibers[k].wait != ENDED)
            return false;
        any |= fibers[k].wait == wait;
    }
    bool orders = wait == AT_MEETING; /* so does a barrier of a warp, and no exchange */
    for (unsigned k = first; k < last; k++) {
        if (fibers[k].wait != wait)
            continue;
        fibers[k].wait = RUNS;
        orders |= wait == AT_WARP && fibers[k].meeting;
        fibers[k].meeting = 0;
    }
    if (orders)
        races_have_met(first, last);
    return any;
}

/* Lets all go on that wait for something else than each other and have it. */
bool release_others(unsigned count)
{
    bool any = false;
    for (unsigned k = 0; k < count; k++) {
        Fiber &fiber = fibers[k];
        if (fiber.wait == AT_MEETING)
            any |= release(0, fiber.meeting, AT_MEETING);
        else if (fiber.wait == AT_BARRIER && fiber.awaited->passed % 2 != fiber.parity) {
            fiber.wait = RUNS;
            any = true;
        }
    }
    return any;
}

const char *place_of(Wait wait)
{
    return wait == AT_WARP ? "its warp" : wait == AT_BARRIER ? "a stage" : "its block";
}

bool run_block(unsigned count)
{
    for (unsigned k = 0; k < count; k++)
        begin(k);
    for (;;) {
        bool ran = false, alive = false;
        for (unsigned k = 0; k < count; k++) {
            if (fibers[k].wait != RUNS)
                continue;
            current = k;
            threadIdx.x = k;
            geon_switch(&outside, fibers[k].place);
            ran = true;
        }
        for (unsigned w = 0; w < count; w += WARP)
            ran |= release(w, w + WARP < count ? w + WARP : count, AT_WARP);
        ran |= release(0, count, AT_BLOCK);
        ran |= release_others(count);
        for (unsigned k = 0; k < count; k++)
            alive |= fibers[k].wait != ENDED;
        if (!alive)
            return true;
        if (!ran) {
            unsigned k = 0;
            while (fibers[k].wait == ENDED)
                k++;
            snprintf(problem, sizeof problem, "thread %u of block %u waits at a barrier of %s "
                     "that others never come to", k, blockIdx.x, place_of(fibers[k].wait));
            return false;
        }
    }
}
}  // namespace

#include "races.hpp"

extern "C" {
void __syncthreads(void)
{
    pause(AT_BLOCK);
    threadIdx.x = current;
    fibers[current].blocks_met++;
}

void __syncwarp(unsigned)
{
    fibers[current].meeting = WARP;
    pause(AT_WARP);
    threadIdx.x = current;
    fibers[current].warps_met++;
}

/* What is arrived at and awaited, here as on a device: `parity` is that of the phase that must be
   over. */
void geon_host_begin_barrier(geon_host_barrier *barrier, unsigned count)
{
    barrier->count = barrier->left = (uint16_t)count;
    barrier->passed = 0;
    races_begin_barrier(barrier);
}

void geon_host_arrive(geon_host_barrier *barrier)
{
    races_arrive(barrier);
    if (--barrier->left)
        return;
    barrier->left = barrier->count;
    barrier->passed++;
}

void geon_host_await(geon_host_barrier *barrier, unsigned parity)
{
    fibers[current].awaited = barrier;
    fibers[current].parity = parity;
    pause(AT_BARRIER);
    threadIdx.x = current;
    races_pass(barrier);
}

/* A barrier of the first threads of a block, so many. */
void geon_host_meet(unsigned count)
{
    fibers[current].meeting = count;
    pause(AT_MEETING);
    threadIdx.x = current;
}

/* Two places in turn, so that a fast thread does not overwrite what a slow one has yet to read. An
   exchange orders no other memory, so it is not counted as a barrier. */
uint64_t geon_host_exchange(uint64_t value, int bits)
{
    const unsigned me = current, turn = fibers[me].turn++ & 1, other = me ^ (unsigned)bits;
    fibers[me].exchanged[turn] = value;
    pause(AT_WARP);
    threadIdx.x = current;
    return other < fiber_count ? fibers[other].exchanged[turn] : value;
}

/* Shows bytes, 32 at most, to the threads of the warp, and waits until each has shown its own. */
void geon_host_show(const void *bytes, unsigned count)
{
    memcpy(fibers[current].shown[fibers[current].turn++ & 1].bytes, bytes, count);
    pause(AT_WARP);
    threadIdx.x = current;
}

/* What a thread of the warp has shown last. */
const void *geon_host_shown(unsigned lane)
{
    const Fiber &other = fibers[current / WARP * WARP + lane];
    return other.shown[(fibers[current].turn - 1) & 1].bytes;
}

/* Runs all blocks; says whether they came to their end. */
static bool run_blocks(unsigned blocks, unsigned threads)
{
    for (unsigned b = 0; b < blocks; b++) {
        blockIdx.x = b;
        races_begin_block();
        if (meets) {
            if (!run_block(threads))
                return false;
            continue;
        }
        for (unsigned k = 0; k < threads; k++) {
            threadIdx.x = current = k;
            called(given);
        }
    }
    return true;
}

/* Where arrays without elements lie: a launch that looks there fails. */
uint64_t geon_host_nowhere(void)
{
    if (!nowhere) {
        void *made = mmap(NULL, NOWHERE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                          -1, 0);
        nowhere = made == MAP_FAILED ? NULL : (char *)made;
    }
    return nowhere ? (uint64_t)nowhere + NOWHERE / 2 : 0; /* some look before it */
}

/* Runs a kernel; gives what went wrong, or nothing. */
const char *geon_host_launch(Call call, const uint64_t *words, unsigned blocks, unsigned threads,
                             int meeting)
{
    if (threads == 0 || threads > MOST)
        return "a block has from 1 to 1024 threads";
    if (!stacks)
        stacks = (char *)aligned_alloc(64, MOST * STACK);
    if (!stacks)
        return "no memory for the stacks of threads";
    gridDim.x = blocks;
    blockDim.x = threads;
    called = call;
    given = words;
    meets = meeting;
    fiber_count = threads;
    struct sigaction watching = {};
    watching.sa_sigaction = caught;
    watching.sa_flags = SA_SIGINFO;
    bool ended = false;
    races_begin(call, blocks);
    if (sigsetjmp(launching, 1) == 0) {
        sigaction(SIGSEGV, &watching, &former);
        ended = run_blocks(blocks, threads);
    } else {
        snprintf(problem, sizeof problem, "thread %u of block %u looks at an element of an array "
                 "that has none", threadIdx.x, blockIdx.x);
    }
    sigaction(SIGSEGV, &former, NULL);
    return !ended || races_found() ? problem : NULL;
}
}
