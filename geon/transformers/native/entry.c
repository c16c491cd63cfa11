/* The fast path from Python into a compiled module, for arguments of shapes that were used before.
 *
 * An entry remembers the few tables that were used last: the shapes of the arguments and of the
 * results, and the pointers that the module takes. If the arguments fit one of them, a call writes
 * their addresses into its table and runs the module. Every other call is declined with
 * NotImplemented, which is not an error: the caller then uses the Python path.
 *
 * All of it runs with the interpreter's lock held, except for a module with much work. The lock
 * makes `busy` safe, and lets short work on variables run without the variables' lock.
 */
#include "../loading/extension.h"

#include <float.h>
#include <math.h>

typedef int64_t Run(void *const *pointers, const int64_t *lengths, int32_t threads,
                    int64_t *report, void (*show)(int64_t kernel, const void *data));

typedef struct {
    PyObject_HEAD
    Run *run;
    Values values;
    Py_buffer pointers;
    Py_buffer lengths;
    int64_t report[4];
    int threads;
    int is_long;
    PyObject *checks; /* kernels that look at data, and fail before anything was changed */
    PyObject *decides; /* whether interrupts may end a call; NULL: they never do */
    void (*watch)(void);
    void (*unwatch)(void);
    PyObject *held;
    void *nothing; /* what pointers to arrays without elements point to */
} Tables;

#define KEPT 8
typedef struct {
    PyObject_HEAD
    int busy;
    int count;
    PyObject *tables[KEPT]; /* the one that was added last first */
    long long taken;
    int64_t epoch; /* of the variables that the tables point to */
} Entry;

static PyTypeObject *tables_type;

/* Tables -------------------------------------------------------------------------------------- */

/* From (who decides, the address of what begins to watch, that of what ends it). */
static int read_watching(Tables *tables, PyObject *row)
{
    PyObject *decides, *watch, *unwatch;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "what watches is a tuple (decides, watch, unwatch)");
        return 0;
    }
    if (!PyArg_ParseTuple(row, "OO!O!", &decides, &PyLong_Type, &watch, &PyLong_Type, &unwatch))
        return 0;
    tables->decides = Py_NewRef(decides);
    tables->watch = (void (*)(void))PyLong_AsVoidPtr(watch);
    tables->unwatch = (void (*)(void))PyLong_AsVoidPtr(unwatch);
    return 1;
}

static PyObject *tables_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    Tables *tables = (Tables *)PyType_GenericNew(type, args, keywords);
    PyObject *run, *inputs, *outputs, *checks, *watching, *held, *nothing;
    if (!tables)
        return NULL;
    if (!PyArg_ParseTuple(args, "O!O!O!w*y*ipO!OO!O", &PyLong_Type, &run, &PyTuple_Type, &inputs,
                          &PyTuple_Type, &outputs, &tables->pointers, &tables->lengths,
                          &tables->threads, &tables->is_long, &PyTuple_Type, &checks, &watching,
                          &PyLong_Type, &nothing, &held))
        goto failed;
    if (watching != Py_None && !read_watching(tables, watching))
        goto failed;
    tables->checks = Py_NewRef(checks);
    tables->held = Py_NewRef(held);
    tables->run = (Run *)PyLong_AsVoidPtr(run);
    tables->nothing = PyLong_AsVoidPtr(nothing);
    if (read_values(&tables->values, inputs, outputs))
        return (PyObject *)tables;
failed:
    Py_DECREF(tables);
    return NULL;
}

static void tables_dealloc(PyObject *self)
{
    Tables *tables = (Tables *)self;
    free_values(&tables->values);
    PyBuffer_Release(&tables->pointers);
    PyBuffer_Release(&tables->lengths);
    Py_XDECREF(tables->checks);
    Py_XDECREF(tables->decides);
    Py_XDECREF(tables->held);
    free_object(self);
}

/* Arguments ----------------------------------------------------------------------------------- */

/* Reads a Python number as make_feed of feeding.py does; 0 where that takes a closer look. */
static int read_number(const Value *value, PyObject *object, Scalar *scalar)
{
    npy_intp size = value->bytes;
    double number = 0;
    long long whole = 0;
    if (PyLong_CheckExact(object)) {
        int overflow;
        whole = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (overflow)
            return 0;
        number = (double)whole;
    } else if (PyFloat_CheckExact(object) && value->number == 'f') {
        number = PyFloat_AsDouble(object);
    } else {
        return 0;
    }
    if (value->number == 'f') {
        if (whole > 1ll << 53 || whole < -(1ll << 53))
            return 0; /* would be rounded twice */
        if (size == 8)
            scalar->f64 = number;
        else
            scalar->f32 = (float)number;
        return fabs(number) <= (size == 8 ? DBL_MAX : (double)FLT_MAX);
    }
    int bits = (int)(8 * size) - (value->number == 'i');
    long long high = bits < 63 ? (1ll << bits) - 1 : INT64_MAX;
    if (whole > high || whole < (value->number == 'i' ? -high - 1 : 0))
        return 0;
    switch (size) { /* the same bits with and without a sign */
    case 1: scalar->i8 = (int8_t)whole; break;
    case 2: scalar->i16 = (int16_t)whole; break;
    case 4: scalar->i32 = (int32_t)whole; break;
    default: scalar->i64 = whole;
    }
    return 1;
}

static void *data_of(const Tables *tables, const Value *value, PyObject *array)
{
    return value->bytes ? PyArray_DATA((PyArrayObject *)array) : tables->nothing;
}

/* Whether these arguments can be used as they are. */
static int matches(const Tables *tables, PyObject *const *arguments, Py_ssize_t count)
{
    Scalar unused;
    if (count != tables->values.inputs)
        return 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        const Value *value = &tables->values.all[k];
        if (!is_array(value, arguments[k], NPY_ARRAY_CARRAY_RO)
            && !(value->number && read_number(value, arguments[k], &unused)))
            return 0;
    }
    return 1;
}

/* Puts the addresses of arguments that match into the table. */
static void put_inputs(Tables *tables, PyObject *const *arguments)
{
    void **pointers = tables->pointers.buf;
    for (Py_ssize_t k = 0; k < tables->values.inputs; k++) {
        Value *value = &tables->values.all[k];
        if (PyArray_CheckExact(arguments[k])) {
            pointers[k] = data_of(tables, value, arguments[k]);
        } else {
            read_number(value, arguments[k], &value->scalar);
            pointers[k] = &value->scalar;
        }
    }
}

/* Puts the addresses of arrays to write into the table; 0 where one does not fit, or shares memory
 * with an argument or another one. None stands for an array to be made. */
static int put_outputs(Tables *tables, PyObject *arrays)
{
    void **pointers = tables->pointers.buf;
    if (PyTuple_Size(arrays) != tables->values.outputs)
        return 0;
    for (Py_ssize_t k = tables->values.inputs; k < tables->values.inputs + tables->values.outputs; k++) {
        const Value *value = &tables->values.all[k];
        PyObject *array = PyTuple_GetItem(arrays, k - tables->values.inputs);
        pointers[k] = NULL;
        if (array == Py_None)
            continue;
        if (!is_array(value, array, NPY_ARRAY_CARRAY))
            return 0;
        const char *start = pointers[k] = data_of(tables, value, array);
        for (Py_ssize_t other = 0; other < k; other++) {
            const char *at = pointers[other];
            if (at && value->bytes && at < start + value->bytes
                && start < at + tables->values.all[other].bytes)
                return 0;
        }
    }
    return 1;
}

/* A new array for a result. */
static PyObject *new_result(const Value *value)
{
    if (value->more != Py_None)
        return PyObject_CallFunctionObjArgs(value->more, value->shape, value->dtype, NULL);
    return new_array(value);
}

/* NotImplemented for a kernel that looked at data and did not like them: the long way says what is
 * wrong. Another that fails had no memory, and what came before it must not be done again. */
static PyObject *after_failure(const Tables *tables, int64_t kernel)
{
    for (Py_ssize_t k = 0; k < PyTuple_Size(tables->checks); k++) {
        if (PyLong_AsLongLong(PyTuple_GetItem(tables->checks, k)) == kernel)
            return Py_NewRef(Py_NotImplemented);
    }
    PyErr_SetString(PyExc_MemoryError, "there is no memory for the work of a kernel");
    return NULL;
}

/* Begins to watch for interrupts that may end the call: whether it does, or -1 where one came
 * already. Short work ends by itself. */
static int begin_watching(const Tables *tables)
{
    if (!tables->is_long || !tables->decides)
        return 0;
    PyObject *decided = PyObject_CallNoArgs(tables->decides);
    if (!decided)
        return -1;
    int watching = decided == Py_True;
    Py_DECREF(decided);
    if (!watching)
        return 0;
    tables->watch();
    if (PyErr_CheckSignals() == 0)
        return 1;
    tables->unwatch();
    return -1;
}

/* Runs the module with the inputs that were put: the tuple of its results, or NotImplemented, or
 * NULL where there is no memory, or it was interrupted. `arrays` are those to write, or NULL; with a `state` it is run
 * only while nobody holds its lock. */
static PyObject *execute(Tables *tables, PyObject *arrays, PyObject *state, int64_t epoch)
{
    void **pointers = tables->pointers.buf;
    PyObject *results = PyTuple_New(tables->values.outputs);
    if (!results)
        return NULL;
    for (Py_ssize_t k = 0; k < tables->values.outputs; k++) {
        const Value *value = &tables->values.all[tables->values.inputs + k];
        PyObject *given = arrays ? PyTuple_GetItem(arrays, k) : Py_None;
        PyObject *array = given != Py_None ? Py_NewRef(given) : new_result(value);
        if (!array) {
            Py_DECREF(results);
            return NULL;
        }
        pointers[tables->values.inputs + k] = data_of(tables, value, array);
        PyTuple_SetItem(results, k, array);
    }
    if (state && !are_at_rest(state, epoch)) {
        Py_DECREF(results);
        return Py_NewRef(Py_NotImplemented);
    }
    int watching = begin_watching(tables);
    if (watching < 0) {
        Py_DECREF(results);
        return NULL;
    }
    PyThreadState *thread = tables->is_long ? PyEval_SaveThread() : NULL;
    int64_t failed =
        tables->run(pointers, tables->lengths.buf, tables->threads, tables->report, NULL);
    if (watching)
        tables->unwatch();
    if (thread)
        PyEval_RestoreThread(thread);
    if (failed < 0) {
        Py_DECREF(results);
        if (PyErr_CheckSignals() == 0) /* whoever holds a lock is told of it later */
            PyErr_SetNone(PyExc_KeyboardInterrupt);
        return NULL;
    }
    if (failed) {
        Py_DECREF(results);
        return after_failure(tables, failed - 1);
    }
    return results;
}

/* Entries ------------------------------------------------------------------------------------- */

static PyObject *try_tables(Entry *entry, PyObject *const *arguments, Py_ssize_t count,
                            PyObject *arrays, PyObject *state)
{
    PyObject *results = Py_NotImplemented;
    if (entry->busy)
        return Py_NewRef(results);
    entry->busy = 1; /* making an array may run a finalizer, and that may come here */
    for (int k = 0; k < entry->count; k++) {
        Tables *tables = (Tables *)entry->tables[k];
        if (!matches(tables, arguments, count) || (state && tables->is_long))
            continue;
        put_inputs(tables, arguments);
        if (arrays && !put_outputs(tables, arrays))
            continue;
        results = execute(tables, arrays, state, entry->epoch);
        entry->taken += results != Py_NotImplemented;
        entry->busy = 0;
        return results;
    }
    entry->busy = 0;
    return Py_NewRef(results);
}

static PyObject *enter(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return try_tables((Entry *)self, arguments, count, NULL, NULL);
}

static PyObject *enter_into(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return try_tables((Entry *)self, arguments + 1, count - 1, arguments[0], NULL);
}

static PyObject *enter_unlocked(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return try_tables((Entry *)self, arguments + 1, count - 1, NULL, arguments[0]);
}

static PyObject *fits(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    const Entry *entry = (Entry *)self;
    int found = 0;
    for (int k = 0; k < entry->count && !found; k++)
        found = matches((Tables *)entry->tables[k], arguments, count);
    return PyBool_FromLong(found);
}

static PyObject *claim(PyObject *self, PyObject *unused)
{
    Entry *entry = (Entry *)self;
    (void)unused;
    if (entry->busy)
        Py_RETURN_FALSE;
    entry->busy = 1;
    Py_RETURN_TRUE;
}

static PyObject *release(PyObject *self, PyObject *unused)
{
    (void)unused;
    ((Entry *)self)->busy = 0;
    Py_RETURN_NONE;
}

static PyObject *forget(PyObject *self, PyObject *unused)
{
    Entry *entry = (Entry *)self;
    (void)unused;
    while (entry->count) {
        PyObject *last = entry->tables[--entry->count];
        Py_DECREF(last);
    }
    Py_RETURN_NONE;
}

static PyObject *remember(PyObject *self, PyObject *args)
{
    Entry *entry = (Entry *)self;
    PyObject *tables, *dropped = NULL;
    long long epoch;
    int last = 0;
    if (!PyArg_ParseTuple(args, "O!L", tables_type, &tables, &epoch))
        return NULL;
    entry->epoch = epoch;
    while (last < entry->count && entry->tables[last] != tables)
        last++;
    if (last == entry->count) {
        Py_INCREF(tables);
        if (entry->count < KEPT)
            entry->count++;
        else
            dropped = entry->tables[--last];
    }
    for (; last; last--)
        entry->tables[last] = entry->tables[last - 1];
    entry->tables[0] = tables;
    Py_XDECREF(dropped);
    Py_RETURN_NONE;
}

static void entry_dealloc(PyObject *self)
{
    Py_XDECREF(forget(self, NULL));
    free_object(self);
}

/* The module ---------------------------------------------------------------------------------- */

static PyMethodDef entry_methods[] = {
    FAST(enter, "enter(*arguments): the tuple of results, or NotImplemented."),
    FAST(enter_into,
         "enter_into(arrays, *arguments): the same, the results in these arrays, None excepted."),
    FAST(enter_unlocked,
         "enter_unlocked(state, *arguments): as enter, for short work on variables without their "
         "lock, while nobody holds it."),
    FAST(fits, "fits(*arguments): whether enter would take them, if no call is inside."),
    {"claim", claim, METH_NOARGS,
     "claim(): True, and from now on no call gets in; False where one is inside."},
    {"release", release, METH_NOARGS, "release(): let calls in again."},
    {"forget", forget, METH_NOARGS,
     "forget(): decline all calls until one is remembered; only while it is claimed."},
    {"remember", remember, METH_VARARGS,
     "remember(tables, epoch): take calls that fit these too; only while it is claimed. All that "
     "are remembered have one epoch."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef entry_members[] = {
    {"taken", T_LONGLONG, offsetof(Entry, taken), READONLY, "How many calls got in."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot entry_slots[] = {
    {Py_tp_new, PyType_GenericNew},   {Py_tp_dealloc, entry_dealloc},
    {Py_tp_methods, entry_methods},   {Py_tp_members, entry_members},
    {Py_tp_doc, "A way into a computation, by tables that are remembered."}, {0, NULL},
};
static PyType_Spec entry_spec = {
    "geon.transformers.native._entry.Entry", sizeof(Entry), 0, Py_TPFLAGS_DEFAULT, entry_slots,
};
static PyType_Slot tables_slots[] = {
    {Py_tp_new, tables_new},
    {Py_tp_dealloc, tables_dealloc},
    {Py_tp_doc, "Tables(run, inputs, outputs, pointers, lengths, threads, is_long, checks, watching, "
                "held): what a module takes in a call. A row of inputs and outputs is (dtype, shape, what "
                "makes a result or None)."},
    {0, NULL},
};
static PyType_Spec tables_spec = {
    "geon.transformers.native._entry.Tables", sizeof(Tables), 0, Py_TPFLAGS_DEFAULT, tables_slots,
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_entry", NULL, -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__entry(void)
{
    return make_extension(&definition, &(const Name){NULL, NULL}, &entry_spec, &tables_type,
                          &tables_spec, (const char *const[2]){"Entry", "Tables"});
}
