/* Races: accesses to one byte by two threads, one of them a write, without a barrier between them
   that both have passed, or that one has arrived at and the other awaited. A module that is compiled with -fsanitize=thread, and linked without,
   calls these functions at each access; others never do. Of reads the last two threads are kept. */
#include <dlfcn.h>
#include <link.h>
#include <unordered_map>

namespace {
struct Access {
    unsigned block, thread, blocks_met, warps_met, arrivals;
    bool there;
};
struct Cell {
    Access write, reads[2];
};
/* How many arrivals at barriers of each thread are known to have been, and what was before them. */
struct Known {
    unsigned arrivals[MOST];
};
Known known[MOST]; /* by each thread; of itself, how often it has arrived */
std::unordered_map<const void *, Known> at_barriers; /* by who passes one */
std::unordered_map<uintptr_t, Cell> shared_cells, other_cells;
uintptr_t module_start, module_end;
bool looking, racing;

int module_range(dl_phdr_info *info, size_t, void *address)
{
    uintptr_t low = ~(uintptr_t)0, high = 0;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[k];
        if (part->p_type != PT_LOAD)
            continue;
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        low = start < low ? start : low;
        high = end > high ? end : high;
    }
    if ((uintptr_t)address < low || (uintptr_t)address >= high)
        return 0;
    module_start = low;
    module_end = high;
    return 1;
}

void races_begin(Call call, unsigned)
{
    racing = false;
    if (!looking)
        return;
    other_cells.clear();
    dl_iterate_phdr(module_range, (void *)call);
}

/* Shared memory is another one in each block. */
void races_begin_block()
{
    if (!looking)
        return;
    shared_cells.clear();
    at_barriers.clear();
    memset(known, 0, sizeof known);
}

void learn(Known &who, const Known &what)
{
    for (unsigned k = 0; k < fiber_count; k++)
        if (who.arrivals[k] < what.arrivals[k])
            who.arrivals[k] = what.arrivals[k];
}

void races_begin_barrier(const void *barrier)
{
    if (looking)
        at_barriers.erase(barrier);
}

void races_arrive(const void *barrier)
{
    if (!looking)
        return;
    known[current].arrivals[current]++;
    learn(at_barriers[barrier], known[current]);
}

void races_pass(const void *barrier)
{
    if (looking)
        learn(known[current], at_barriers[barrier]);
}

/* When threads have met, each knows what any of them knew, and that they have been there. */
void races_have_met(unsigned first, unsigned last)
{
    if (!looking)
        return;
    static Known all;
    memset(&all, 0, sizeof all);
    for (unsigned k = first; k < last; k++) {
        known[k].arrivals[k]++;
        learn(all, known[k]);
    }
    for (unsigned k = first; k < last; k++)
        learn(known[k], all);
}

bool races_found() { return racing; }

bool is_apart(const Access &before, const Access &now)
{
    if (!before.there)
        return true;
    if (before.block != now.block)
        return false;
    if (before.thread == now.thread || before.blocks_met < now.blocks_met)
        return true;
    if (before.arrivals < known[now.thread].arrivals[before.thread])
        return true;
    return before.thread / WARP == now.thread / WARP && before.warps_met < now.warps_met;
}

void report(const Access &before, const Access &now, bool writes, bool is_shared)
{
    if (racing)
        return;
    racing = true;
    snprintf(problem, sizeof problem, "thread %u of block %u %s %s memory that thread %u of block %u "
             "uses without a barrier between them", now.thread, now.block,
             writes ? "writes" : "reads", is_shared ? "shared" : "global", before.thread,
             before.block);
}

void access(void *address, int size, bool writes)
{
    uintptr_t start = (uintptr_t)address, here = (uintptr_t)__builtin_frame_address(0);
    const uintptr_t low = (uintptr_t)stacks, near = 1 << 20;
    looking = true;
    if ((start >= low && start < low + MOST * STACK) || (start < here ? here - start : start - here) < near)
        return;
    const bool is_shared = start >= module_start && start < module_end;
    auto &cells = is_shared ? shared_cells : other_cells;
    const Fiber &fiber = fibers[current];
    const Access now = {blockIdx.x, current, meets ? fiber.blocks_met : 0,
                        meets ? fiber.warps_met : 0, known[current].arrivals[current], true};
    for (uintptr_t at = start; at < start + size; at++) {
        Cell &cell = cells[at];
        if (!is_apart(cell.write, now))
            report(cell.write, now, writes, is_shared);
        if (writes) {
            for (const Access &read : cell.reads)
                if (!is_apart(read, now))
                    report(read, now, writes, is_shared);
            cell.write = now;
            cell.reads[0].there = cell.reads[1].there = false;
        } else {
            if (cell.reads[0].there && cell.reads[0].thread != now.thread)
                cell.reads[1] = cell.reads[0];
            cell.reads[0] = now;
        }
    }
}
}  // namespace

#define SEEN(SIZE)                                                                                 \
    void __tsan_read##SIZE(void *address) { access(address, SIZE, false); }                        \
    void __tsan_write##SIZE(void *address) { access(address, SIZE, true); }                        \
    void __tsan_unaligned_read##SIZE(void *address) { access(address, SIZE, false); }              \
    void __tsan_unaligned_write##SIZE(void *address) { access(address, SIZE, true); }
extern "C" {
SEEN(1)
SEEN(2)
SEEN(4)
SEEN(8)
SEEN(16)
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
void __tsan_read_range(void *address, unsigned long size) { access(address, (int)size, false); }
void __tsan_write_range(void *address, unsigned long size) { access(address, (int)size, true); }
/* From the first module on that is looked at, launches begin with no accesses known. */
void geon_host_look(void) { looking = true; }
}
