/* Whether a position lies outside the axis: HELD of the smallest and the largest are `found`. */
static int NAME(const TYPE *positions, int64_t count, int64_t length, int64_t *found)
{
    TYPE low = count ? positions[0] : 0, high = low;
    for (int64_t i = 0; i < count; i++) {
        low = positions[i] < low ? positions[i] : low;
        high = positions[i] > high ? positions[i] : high;
    }
    found[0] = HELD(low);
    found[1] = HELD(high);
    return count && (found[0] < -length || found[1] >= length);
}
