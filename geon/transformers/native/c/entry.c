/* The way from Python into a compiled module, for arguments that are as those of a call before.
 *
 * An entry knows the few bindings that were used last: the shapes that the arguments have, those
 * that the results get, and the table of pointers that the module takes. A call whose arguments
 * fit one of them puts their addresses into its table and runs the module; every other call is
 * declined with NotImplemented, which is no error: the caller then goes the long way.
 *
 * Python's and NumPy's structures and functions are declared here, since their headers are often
 * not installed. The functions are those of Python's stable ABI (docs.python.org/3/c-api/
 * stable.html) and PyObject_Vectorcall, which is in it from 3.12 on. Arrays are as NumPy's
 * reference says of PyArrayObject (numpy.org/doc/stable/reference/c-api/types-and-structures.html);
 * whoever loads this file compares what `describe` reads with what Python says.
 *
 * All of it runs with the interpreter's lock held, except for a module whose work is long. That
 * lock is what makes `busy` safe, and what lets short work on variables pass by their gate.
 */
#include <stddef.h>
#include <stdint.h>

typedef intptr_t Py_ssize_t;
typedef struct object {
    Py_ssize_t references;
    struct object *type;
} PyObject;
typedef PyObject *Function(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
typedef struct {
    const char *name;
    Function *function;
    int flags;
    const char *doc;
} PyMethodDef;
#define METH_FASTCALL 0x0080

PyObject *PyCFunction_NewEx(PyMethodDef *method, PyObject *self, PyObject *module);
PyObject *PyCapsule_New(void *pointer, const char *name, void (*destructor)(PyObject *));
void *PyCapsule_GetPointer(PyObject *capsule, const char *name);
PyObject *PyObject_Vectorcall(PyObject *callable, PyObject *const *arguments, size_t count,
                              PyObject *names);
PyObject *PyTuple_New(Py_ssize_t size);
Py_ssize_t PyTuple_Size(PyObject *tuple);
PyObject *PyTuple_GetItem(PyObject *tuple, Py_ssize_t position);
int PyTuple_SetItem(PyObject *tuple, Py_ssize_t position, PyObject *item);
PyObject *PyBool_FromLong(long value);
PyObject *PyLong_FromLongLong(long long value);
PyObject *PyLong_FromVoidPtr(void *pointer);
long long PyLong_AsLongLong(PyObject *number);
long long PyLong_AsLongLongAndOverflow(PyObject *number, int *overflow);
void *PyLong_AsVoidPtr(PyObject *number);
double PyFloat_AsDouble(PyObject *number);
PyObject *PyObject_GetAttr(PyObject *object, PyObject *name);
PyObject *PyErr_NoMemory(void);
void PyErr_Clear(void);
void PyErr_SetString(PyObject *type, const char *message);
PyObject *PyErr_Occurred(void);
void *PyMem_Calloc(size_t count, size_t size);
void PyMem_Free(void *memory);
void Py_IncRef(PyObject *object);
void Py_DecRef(PyObject *object);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *thread);

typedef struct {
    PyObject head;
    char *data;
    int dimensions;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    PyObject *base;
    PyObject *dtype;
    int flags;
} Array;
/* NPY_ARRAY_C_CONTIGUOUS, _ALIGNED and _WRITEABLE of numpy/core/include/numpy/ndarraytypes.h. */
#define READABLE (0x0001 | 0x0100)
#define WRITABLE (READABLE | 0x0400)

typedef int64_t Run(void *const *pointers, const int64_t *lengths, int32_t threads,
                    int64_t *report, void (*show)(int64_t kernel, const void *data));

typedef union {
    double f64;
    float f32;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
} Scalar;

/* An argument or a result. `number` is the kind of a scalar's dtype, for which a Python number
 * does as well: 'f', 'i' or 'u', else 0; `scalar` is where its value is put. */
typedef struct {
    PyObject *dtype;
    PyObject *dims;
    Py_ssize_t dimensions;
    Py_ssize_t *shape;
    Py_ssize_t bytes;
    Py_ssize_t itemsize;
    char number;
    Scalar scalar;
} Value;

typedef struct {
    Run *run;
    Py_ssize_t inputs;
    Py_ssize_t outputs;
    Value *values; /* inputs, then outputs */
    void **pointers;
    int64_t *lengths;
    int64_t report[4];
    int32_t threads;
    int32_t is_long;
    PyObject *checks; /* kernels that look at data, and fail before anything was changed */
    PyObject *held;
} Bound;

#define KEPT 8
typedef struct {
    int busy;
    int count;
    PyObject *bounds[KEPT]; /* capsules, the one that was added last first */
    int64_t taken;
    int64_t epoch; /* of the variables that the tables point to */
} Entry;

static const char BOUND[] = "geon bound", ENTRY[] = "geon entry";
static PyObject *array_type, *float_type, *integer_type, *not_implemented, *none, *empty;
#define SPACIOUS (1 << 20) /* bytes of a result whose memory is kept: see spacious.py */
static PyObject *memory_error, *spacious;
static PyObject *name_gate, *name_epoch, *name_writer, *name_readers;
static char nothing[64]; /* what pointers to arrays without elements point to */

#define EXPORT __attribute__((visibility("default")))
EXPORT PyObject *geon_entry_start(PyObject *objects);

static PyObject *new_reference(PyObject *object)
{
    Py_IncRef(object);
    return object;
}

/* Bindings ------------------------------------------------------------------------------------ */

static void free_bound(Bound *bound)
{
    Py_ssize_t k;
    if (bound->values) {
        for (k = 0; k < bound->inputs + bound->outputs; k++) {
            if (bound->values[k].dtype)
                Py_DecRef(bound->values[k].dtype);
            if (bound->values[k].dims)
                Py_DecRef(bound->values[k].dims);
            PyMem_Free(bound->values[k].shape);
        }
    }
    PyMem_Free(bound->values);
    PyMem_Free(bound->pointers);
    PyMem_Free(bound->lengths);
    if (bound->checks)
        Py_DecRef(bound->checks);
    if (bound->held)
        Py_DecRef(bound->held);
    PyMem_Free(bound);
}

static void bound_destructor(PyObject *capsule)
{
    free_bound(PyCapsule_GetPointer(capsule, BOUND));
}

/* From (dtype, shape, bytes of an element, kind of a scalar's dtype or 0). */
static int read_value(Value *value, PyObject *row)
{
    Py_ssize_t k;
    value->dtype = new_reference(PyTuple_GetItem(row, 0));
    value->dims = new_reference(PyTuple_GetItem(row, 1));
    value->bytes = value->itemsize = PyLong_AsLongLong(PyTuple_GetItem(row, 2));
    value->number = (char)PyLong_AsLongLong(PyTuple_GetItem(row, 3));
    value->dimensions = PyTuple_Size(value->dims);
    value->shape = PyMem_Calloc((size_t)value->dimensions + 1, sizeof *value->shape);
    if (!value->shape)
        return 0;
    for (k = 0; k < value->dimensions; k++) {
        value->shape[k] = PyLong_AsLongLong(PyTuple_GetItem(value->dims, k));
        value->bytes *= value->shape[k];
    }
    return 1;
}

static void *copied(const void *source, size_t size)
{
    void *made = PyMem_Calloc(size + 1, 1);
    if (made)
        __builtin_memcpy(made, source, size);
    return made;
}

/* bind(run, inputs, outputs, pointers, their count, lengths, their count, threads, is_long, checks,
 * held): a capsule. The tables are given by address, and copied. */
static PyObject *bind(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Bound *bound = PyMem_Calloc(1, sizeof *bound);
    PyObject *capsule;
    Py_ssize_t k, complete = 1;
    (void)self;
    (void)count;
    if (!bound)
        return PyErr_NoMemory();
    void *run = PyLong_AsVoidPtr(arguments[0]);
    __builtin_memcpy(&bound->run, &run, sizeof run);
    bound->inputs = PyTuple_Size(arguments[1]);
    bound->outputs = PyTuple_Size(arguments[2]);
    bound->values =
        PyMem_Calloc((size_t)(bound->inputs + bound->outputs) + 1, sizeof *bound->values);
    for (k = 0; bound->values && k < bound->inputs + bound->outputs; k++)
        complete &= read_value(&bound->values[k],
                               k < bound->inputs
                                   ? PyTuple_GetItem(arguments[1], k)
                                   : PyTuple_GetItem(arguments[2], k - bound->inputs));
    bound->pointers = copied(PyLong_AsVoidPtr(arguments[3]),
                             (size_t)PyLong_AsLongLong(arguments[4]) * sizeof(void *));
    bound->lengths = copied(PyLong_AsVoidPtr(arguments[5]),
                            (size_t)PyLong_AsLongLong(arguments[6]) * sizeof(int64_t));
    bound->threads = (int32_t)PyLong_AsLongLong(arguments[7]);
    bound->is_long = (int32_t)PyLong_AsLongLong(arguments[8]);
    bound->checks = new_reference(arguments[9]);
    bound->held = new_reference(arguments[10]);
    capsule = NULL;
    if (!complete || !bound->values || !bound->pointers || !bound->lengths)
        PyErr_NoMemory();
    else if (!PyErr_Occurred())
        capsule = PyCapsule_New(bound, BOUND, bound_destructor);
    if (!capsule)
        free_bound(bound);
    return capsule;
}

/* Arguments ----------------------------------------------------------------------------------- */

/* Whether `object` is an array of the value's dtype and shape that can be used where it lies. */
static int is_array(const Value *value, const PyObject *object, int flags)
{
    const Array *array = (const Array *)object;
    return object->type == array_type && array->dtype == value->dtype
           && (array->flags & flags) == flags && array->dimensions == value->dimensions
           && __builtin_memcmp(array->shape, value->shape,
                               (size_t)value->dimensions * sizeof *value->shape)
                  == 0;
}

/* Reads a Python number as make_feed of feeding.py does; 0 where that takes a closer look. */
static int read_number(const Value *value, PyObject *object, Scalar *scalar)
{
    double number = 0;
    long long whole = 0;
    if (object->type == integer_type) {
        int overflow;
        whole = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (overflow)
            return 0;
        number = (double)whole;
    } else if (object->type == float_type && value->number == 'f') {
        number = PyFloat_AsDouble(object);
    } else {
        return 0;
    }
    if (value->number == 'f') {
        if (whole > 1ll << 53 || whole < -(1ll << 53))
            return 0; /* would be rounded twice */
        if (value->itemsize == 8) {
            scalar->f64 = number;
            return __builtin_fabs(number) <= __DBL_MAX__;
        }
        scalar->f32 = (float)number;
        return __builtin_fabs(number) <= (double)__FLT_MAX__;
    }
    int bits = (int)(8 * value->itemsize) - (value->number == 'i');
    long long high = bits < 63 ? (1ll << bits) - 1 : INT64_MAX;
    if (whole > high || whole < (value->number == 'i' ? -high - 1 : 0))
        return 0;
    switch (value->itemsize) { /* the same bits with and without a sign */
    case 1: scalar->i8 = (int8_t)whole; break;
    case 2: scalar->i16 = (int16_t)whole; break;
    case 4: scalar->i32 = (int32_t)whole; break;
    default: scalar->i64 = whole;
    }
    return 1;
}

static void *data_of(const Value *value, PyObject *array)
{
    return value->bytes ? ((Array *)array)->data : nothing;
}

/* Whether these arguments can be used as they are. */
static int matches(const Bound *bound, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t k;
    Scalar unused;
    if (count != bound->inputs)
        return 0;
    for (k = 0; k < count; k++) {
        const Value *value = &bound->values[k];
        if (!is_array(value, arguments[k], READABLE)
            && !(value->number && read_number(value, arguments[k], &unused)))
            return 0;
    }
    return 1;
}

/* Puts the addresses of arguments that match into the table. */
static void put_inputs(Bound *bound, PyObject *const *arguments)
{
    Py_ssize_t k;
    for (k = 0; k < bound->inputs; k++) {
        Value *value = &bound->values[k];
        if (arguments[k]->type == array_type) {
            bound->pointers[k] = data_of(value, arguments[k]);
        } else {
            read_number(value, arguments[k], &value->scalar);
            bound->pointers[k] = &value->scalar;
        }
    }
}

/* Puts the addresses of arrays to write into the table; 0 where one does not fit, or shares memory
 * with an argument or another one. None stands for an array to be made. */
static int put_outputs(Bound *bound, PyObject *arrays)
{
    Py_ssize_t k, other;
    if (PyTuple_Size(arrays) != bound->outputs)
        return 0;
    for (k = bound->inputs; k < bound->inputs + bound->outputs; k++) {
        const Value *value = &bound->values[k];
        PyObject *array = PyTuple_GetItem(arrays, k - bound->inputs);
        bound->pointers[k] = NULL;
        if (array == none)
            continue;
        if (!is_array(value, array, WRITABLE))
            return 0;
        char *start = bound->pointers[k] = data_of(value, array);
        for (other = 0; other < k; other++) {
            const char *at = bound->pointers[other];
            if (at && value->bytes && at < start + value->bytes
                && start < at + bound->values[other].bytes)
                return 0;
        }
    }
    return 1;
}

/* The number that an attribute is; -1 where it is another object. */
static int64_t number_of(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(object, name);
    int64_t number = found && found->type == integer_type ? PyLong_AsLongLong(found) : -1;
    if (found)
        Py_DecRef(found);
    else
        PyErr_Clear();
    return number;
}

/* Whether variables lie where they lay, and no call is at work on them: whoever passed the gate of
 * gate.py is counted there. This stays so as long as no other thread can run. */
static int is_at_rest(PyObject *state, int64_t epoch)
{
    int64_t readers = -1;
    PyObject *writer = NULL, *gate = PyObject_GetAttr(state, name_gate);
    if (gate) {
        readers = number_of(gate, name_readers);
        writer = PyObject_GetAttr(gate, name_writer);
        Py_DecRef(gate);
    }
    if (writer)
        Py_DecRef(writer);
    else
        PyErr_Clear();
    return readers == 0 && writer == none && number_of(state, name_epoch) == epoch;
}

/* NotImplemented for a kernel that looked at data and did not like them: the long way says what is
 * wrong. Another that fails had no memory, and what came before it must not be done again. */
static PyObject *after_failure(const Bound *bound, int64_t kernel)
{
    Py_ssize_t k;
    for (k = 0; k < PyTuple_Size(bound->checks); k++) {
        if (PyLong_AsLongLong(PyTuple_GetItem(bound->checks, k)) == kernel)
            return new_reference(not_implemented);
    }
    PyErr_SetString(memory_error, "there is no memory for the work of a kernel");
    return NULL;
}

/* Runs the module with the inputs that were put: the tuple of its results, or NotImplemented, or
 * NULL where there is no memory. `arrays` are those to write, or NULL; with a `state` it is run
 * only while that is at rest. */
static PyObject *execute(Bound *bound, PyObject *arrays, PyObject *state, int64_t epoch)
{
    PyObject *results = PyTuple_New(bound->outputs);
    Py_ssize_t k;
    int64_t failed;
    if (!results)
        return NULL;
    for (k = 0; k < bound->outputs; k++) {
        const Value *value = &bound->values[bound->inputs + k];
        PyObject *array = arrays ? PyTuple_GetItem(arrays, k) : none;
        PyObject *const wanted[] = {value->dims, value->dtype};
        PyObject *const make = value->bytes >= SPACIOUS ? spacious : empty;
        array = array != none ? new_reference(array) : PyObject_Vectorcall(make, wanted, 2, NULL);
        if (!array) {
            Py_DecRef(results);
            return NULL;
        }
        bound->pointers[bound->inputs + k] = data_of(value, array);
        PyTuple_SetItem(results, k, array);
    }
    if (state && !is_at_rest(state, epoch)) {
        Py_DecRef(results);
        return new_reference(not_implemented);
    }
    void *thread = bound->is_long ? PyEval_SaveThread() : NULL;
    failed = bound->run(bound->pointers, bound->lengths, bound->threads, bound->report, NULL);
    if (thread)
        PyEval_RestoreThread(thread);
    if (failed) {
        Py_DecRef(results);
        return after_failure(bound, failed - 1);
    }
    return results;
}

/* Entries ------------------------------------------------------------------------------------- */

static PyObject *try_bounds(Entry *entry, PyObject *const *arguments, Py_ssize_t count,
                            PyObject *arrays, PyObject *state)
{
    PyObject *results;
    int k;
    if (entry->busy)
        return new_reference(not_implemented);
    entry->busy = 1; /* np.empty may run a finalizer, and that may come here */
    for (k = 0; k < entry->count; k++) {
        Bound *bound = PyCapsule_GetPointer(entry->bounds[k], BOUND);
        if (!matches(bound, arguments, count) || (state && bound->is_long))
            continue;
        put_inputs(bound, arguments);
        if (arrays && !put_outputs(bound, arrays))
            continue;
        results = execute(bound, arrays, state, entry->epoch);
        entry->taken += results != not_implemented;
        entry->busy = 0;
        return results;
    }
    entry->busy = 0;
    return new_reference(not_implemented);
}

/* enter(*arguments): the tuple of results, or NotImplemented. */
static PyObject *enter(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return try_bounds(PyCapsule_GetPointer(self, ENTRY), arguments, count, NULL, NULL);
}

/* enter_into(arrays, *arguments): the same, the results in these arrays where they are not None. */
static PyObject *enter_into(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return try_bounds(PyCapsule_GetPointer(self, ENTRY), arguments + 1, count - 1, arguments[0],
                      NULL);
}

/* enter_at_rest(state, *arguments): as enter, for work on variables outside their gate: only what
 * is short, during which no other thread runs, and while nobody is inside the gate. */
static PyObject *enter_at_rest(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return try_bounds(PyCapsule_GetPointer(self, ENTRY), arguments + 1, count - 1, NULL,
                      arguments[0]);
}

/* fits(*arguments): whether enter would take them, if no call is inside. */
static PyObject *fits(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    const Entry *entry = PyCapsule_GetPointer(self, ENTRY);
    int k, found = 0;
    for (k = 0; k < entry->count && !found; k++)
        found = matches(PyCapsule_GetPointer(entry->bounds[k], BOUND), arguments, count);
    return PyBool_FromLong(found);
}

/* claim(): True, and from now on no call gets in; None where one is inside. */
static PyObject *claim(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Entry *entry = PyCapsule_GetPointer(self, ENTRY);
    (void)arguments;
    (void)count;
    if (entry->busy)
        return new_reference(none);
    entry->busy = 1;
    return PyBool_FromLong(1);
}

/* release(): let calls in again. */
static PyObject *release(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Entry *entry = PyCapsule_GetPointer(self, ENTRY);
    (void)arguments;
    (void)count;
    entry->busy = 0;
    return new_reference(none);
}

/* forget(): decline all calls until one is remembered; only while it is claimed. */
static PyObject *forget(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Entry *entry = PyCapsule_GetPointer(self, ENTRY);
    (void)arguments;
    (void)count;
    while (entry->count)
        Py_DecRef(entry->bounds[--entry->count]);
    return new_reference(none);
}

/* remember(bound, epoch): take calls that fit this one too; only while it is claimed. All that
 * are remembered have one epoch. */
static PyObject *remember(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Entry *entry = PyCapsule_GetPointer(self, ENTRY);
    PyObject *capsule = arguments[0];
    PyObject *dropped = NULL;
    int last = 0;
    (void)count;
    entry->epoch = PyLong_AsLongLong(arguments[1]);
    while (last < entry->count && entry->bounds[last] != capsule)
        last++;
    if (last == entry->count) {
        Py_IncRef(capsule);
        if (entry->count < KEPT)
            entry->count++;
        else
            dropped = entry->bounds[--last];
    }
    for (; last; last--)
        entry->bounds[last] = entry->bounds[last - 1];
    entry->bounds[0] = capsule;
    if (dropped)
        Py_DecRef(dropped);
    return new_reference(none);
}

/* taken(): how many calls got in. */
static PyObject *taken(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    const Entry *entry = PyCapsule_GetPointer(self, ENTRY);
    (void)arguments;
    (void)count;
    return PyLong_FromLongLong(entry->taken);
}

static void entry_destructor(PyObject *capsule)
{
    Entry *entry = PyCapsule_GetPointer(capsule, ENTRY);
    while (entry->count)
        Py_DecRef(entry->bounds[--entry->count]);
    PyMem_Free(entry);
}

#define METHOD(function) {#function, function, METH_FASTCALL, NULL}
#define COUNT(array) (Py_ssize_t)(sizeof array / sizeof *array)
static PyMethodDef methods[] = {
    METHOD(enter), METHOD(enter_into), METHOD(enter_at_rest), METHOD(fits),  METHOD(claim),
    METHOD(release), METHOD(forget), METHOD(remember), METHOD(taken),
};

static PyObject *functions(PyMethodDef *from, Py_ssize_t count, PyObject *self)
{
    PyObject *made = PyTuple_New(count);
    Py_ssize_t k;
    for (k = 0; made && k < count; k++) {
        PyObject *function = PyCFunction_NewEx(&from[k], self, NULL);
        if (!function) {
            Py_DecRef(made);
            return NULL;
        }
        PyTuple_SetItem(made, k, function);
    }
    return made;
}

/* make_entry(): the functions above, of a new entry. */
static PyObject *make_entry(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Entry *entry = PyMem_Calloc(1, sizeof *entry);
    PyObject *capsule, *made;
    (void)self;
    (void)arguments;
    (void)count;
    if (!entry)
        return PyErr_NoMemory();
    capsule = PyCapsule_New(entry, ENTRY, entry_destructor);
    if (!capsule) {
        PyMem_Free(entry);
        return NULL;
    }
    made = functions(methods, COUNT(methods), capsule);
    Py_DecRef(capsule);
    return made;
}

/* Arrays -------------------------------------------------------------------------------------- */

/* describe(array): (address, flags, dtype, *shape) as they are read here. */
static PyObject *describe(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    const Array *array = (const Array *)arguments[0];
    PyObject *made = PyTuple_New(3 + array->dimensions);
    int k;
    (void)self;
    (void)count;
    if (!made)
        return NULL;
    PyTuple_SetItem(made, 0, PyLong_FromVoidPtr(array->data));
    PyTuple_SetItem(made, 1, PyLong_FromLongLong(array->flags));
    PyTuple_SetItem(made, 2, new_reference(array->dtype));
    for (k = 0; k < array->dimensions; k++)
        PyTuple_SetItem(made, 3 + k, PyLong_FromLongLong(array->shape[k]));
    return made;
}

static PyMethodDef globals[] = {METHOD(bind), METHOD(make_entry), METHOD(describe)};

/* Takes (numpy.ndarray, float, int, NotImplemented, None, numpy.empty, spacious, MemoryError) and
 * the names of attributes of State and Gate, all of which it keeps; gives (bind, make_entry,
 * describe). */
PyObject *geon_entry_start(PyObject *objects)
{
    PyObject **const kept[] = {
        &array_type, &float_type,   &integer_type, &not_implemented, &none,        &empty,
        &spacious,   &memory_error, &name_gate,    &name_epoch,      &name_writer, &name_readers,
    };
    Py_ssize_t k;
    for (k = 0; k < COUNT(kept); k++)
        *kept[k] = new_reference(PyTuple_GetItem(objects, k));
    return functions(globals, COUNT(globals), NULL);
}
