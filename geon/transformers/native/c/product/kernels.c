/* Functions of products other than tiles of packed panels: copies and transposes, few rows with an
   unpacked operand, and windows. It is a separate unit, so that two processors compile products. */

#include "product/packing.h"
#include "product/windows.h"
#include "product/window_row_tiles.h"
#include "product/window_column_tiles.h"
#include "product/few_rows.h"
