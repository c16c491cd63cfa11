#undef FEW
#undef LANES
#undef EACH_LANE
#undef SIDES
