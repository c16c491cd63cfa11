/* What products call beside tiles of packed panels: copies and transposes, few rows against an
   operand where it lies, and windows. A unit of its own, so that two processors compile products. */

#include "product_common.h"
#include "product_moves.h"
#include "product_view.h"
#include "product_windows.h"
#include "product_places.h"
#include "product_rows.h"
