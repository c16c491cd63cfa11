/* SORT_n(X): X(i, j) for the compare-exchanges that sort n elements, by Batcher's odd-even merges. */
#define SORT_2(X) X(0, 1)
#define SORT_FOUR(X, a, b, c, d) X(a, b) X(c, d) X(a, c) X(b, d) X(b, c)
#define MERGE_FOURS(X, a, b, c, d, e, f, g, h)                                                    \
    X(a, e) X(c, g) X(c, e) X(b, f) X(d, h) X(d, f) X(b, c) X(d, e) X(f, g)
#define SORT_EIGHT(X, a, b, c, d, e, f, g, h)                                                     \
    SORT_FOUR(X, a, b, c, d) SORT_FOUR(X, e, f, g, h) MERGE_FOURS(X, a, b, c, d, e, f, g, h)
#define SORT_4(X) SORT_FOUR(X, 0, 1, 2, 3)
#define SORT_8(X) SORT_EIGHT(X, 0, 1, 2, 3, 4, 5, 6, 7)
#define SORT_16(X)                                                                                \
    SORT_8(X) SORT_EIGHT(X, 8, 9, 10, 11, 12, 13, 14, 15)                                         \
    MERGE_FOURS(X, 0, 2, 4, 6, 8, 10, 12, 14) MERGE_FOURS(X, 1, 3, 5, 7, 9, 11, 13, 15)           \
    X(1, 2) X(3, 4) X(5, 6) X(7, 8) X(9, 10) X(11, 12) X(13, 14)

/* The pairs that sort what rises and then falls, or falls and then rises. */
#define CLEAN_2(X) X(0, 1)
#define CLEAN_FOUR(X, a, b, c, d) X(a, c) X(b, d) X(a, b) X(c, d)
#define CLEAN_EIGHT(X, a, b, c, d, e, f, g, h)                                                    \
    X(a, e) X(b, f) X(c, g) X(d, h) CLEAN_FOUR(X, a, b, c, d) CLEAN_FOUR(X, e, f, g, h)
#define CLEAN_4(X) CLEAN_FOUR(X, 0, 1, 2, 3)
#define CLEAN_8(X) CLEAN_EIGHT(X, 0, 1, 2, 3, 4, 5, 6, 7)
#define CLEAN_16(X)                                                                               \
    X(0, 8) X(1, 9) X(2, 10) X(3, 11) X(4, 12) X(5, 13) X(6, 14) X(7, 15)                         \
    CLEAN_8(X) CLEAN_EIGHT(X, 8, 9, 10, 11, 12, 13, 14, 15)

/* M(k) for each of so many. */
#define ROWS_2(M) M(0) M(1)
#define ROWS_4(M) ROWS_2(M) M(2) M(3)
#define ROWS_8(M) ROWS_4(M) M(4) M(5) M(6) M(7)
#define ROWS_16(M) ROWS_8(M) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)
