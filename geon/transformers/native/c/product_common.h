/* Common definitions of both units of products. */

/* For functions written in vectors already: what more a compiler looks for costs it time. Where their
   loops happen to lie is 5 % of some. */
#if defined(__clang__)
#define QUICK_INSIDE
#else
#define QUICK_INSIDE __attribute__((optimize("O1", "align-loops=64")))
#endif
#define QUICK QUICK_INSIDE __attribute__((noinline))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))

#include "module.h"
#include "product.h"
#include "repeat.h"

typedef struct TAG(geon_operand) geon_operand;
typedef struct TAG(geon_product) geon_product;

/* How many blocks of a size there are. */
static QUICK int64_t geon_blocks(int64_t total, int64_t block)
{
    return (total + block - 1) / block;
}

#include "product_vector.h"
#include "product_parts.h"
