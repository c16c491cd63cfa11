/* HAS_PICK: 1 if the compiler has __builtin_shufflevector. */
#ifdef __has_builtin
#define HAS_PICK __has_builtin(__builtin_shufflevector)
#else
#define HAS_PICK 0
#endif
