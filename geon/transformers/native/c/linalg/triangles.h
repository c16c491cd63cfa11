/* Solve X T = B, or with `exchanged` X Tᵀ = B, in place for m rows X and a triangle T of LAPACK's
   order, columns first. In geon's order that is Tᵀ x = b, or T x = b, for m right-hand sides. */
typedef void (*PART(trsm))(const char *, const char *, const char *, const char *, const int *,
                           const int *, const TYPE *, const TYPE *, const int *, TYPE *,
                           const int *);
typedef void (*PART(trsv))(const char *, const char *, const char *, const int *, const TYPE *,
                           const int *, TYPE *, const int *);

static void PART(solve)(const char *part, int exchanged, const char *diagonal, int64_t n, int64_t m,
                        const TYPE *t, TYPE *x)
{
    const int size = (int)n, sides = (int)m, step = 1;
    const TYPE one = 1;
    if (m == 1) /* a vector: X T = x is Tᵀ x = x */
        ((PART(trsv))TRSV)(part, exchanged ? "N" : "T", diagonal, &size, t, &size, x, &step);
    else
        ((PART(trsm))TRSM)("R", part, exchanged ? "T" : "N", diagonal, &sides, &size, &one, t,
                           &size, x, &sides);
}

/* Solve T x = b for a triangle T in lanes, in place for m right-hand sides: rows are `row` apart in
   T, columns `column`. With `upper` substitution is backwards. */
static void PART(substitute)(const PART(lanes) *t, int64_t row, int64_t column, int upper, int unit,
                             int64_t n, int64_t m, PART(lanes) *x)
{
    for (int64_t step = 0; step < n; step++) {
        int64_t i = upper ? n - 1 - step : step;
        for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); k++)
            for (int64_t side = 0; side < m; side++)
                PART(less)(x[i * m + side], t[i * row + k * column], x[k * m + side]);
        for (int64_t side = 0; side < m && !unit; side++)
            PART(over)(x[i * m + side], t[i * row + i * column]);
    }
}
