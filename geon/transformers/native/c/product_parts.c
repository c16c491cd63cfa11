/* Functions of products other than tiles of packed panels: copies and transposes, few rows with an
   unpacked operand, and windows. It is a separate unit, so that two processors compile products. */

#include "product_common.h"
#include "product_moves.h"
#include "product_view.h"
#include "product_windows.h"
#include "product_places.h"
#include "product_rows.h"
