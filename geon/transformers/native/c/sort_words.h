/* Words ascending: those given, or the others of as much memory, whichever hold them in the end. A
   word has a KEY of KEY_BYTES from bit DOWN on. A radix sort takes a byte of the keys at a time,
   the least significant first; up to FEW words insertion is faster, since a radix sort then spends
   its time on counters. */
#define FEW (24 + 8 * KEY_BYTES)
static WORD *PART(words)(WORD *words, WORD *other, int64_t n)
{
    if (n <= FEW) {
        for (int64_t i = 1; i < n; i++) {
            WORD word = words[i];
            int64_t j = i;
            for (; j > 0 && words[j - 1] > word; j--)
                words[j] = words[j - 1];
            words[j] = word;
        }
        return words;
    }
    int64_t starts[KEY_BYTES][256];
    __builtin_memset(starts, 0, sizeof starts);
    for (int64_t i = 0; i < n; i++) {
        KEY key = (KEY)(words[i] >> DOWN);
        for (int digit = 0; digit < KEY_BYTES; digit++)
            starts[digit][key >> 8 * digit & 255]++;
    }
    for (int digit = 0; digit < KEY_BYTES; digit++) {
        int64_t *start = starts[digit], total = 0;
        if (start[(KEY)(words[0] >> DOWN) >> 8 * digit & 255] == n)
            continue; /* all have the same byte here */
        for (int byte = 0; byte < 256; byte++) {
            int64_t count = start[byte];
            start[byte] = total;
            total += count;
        }
        for (int64_t i = 0; i < n; i++)
            other[start[(KEY)(words[i] >> DOWN) >> 8 * digit & 255]++] = words[i];
        WORD *sorted = other;
        other = words;
        words = sorted;
    }
    return words;
}
