/* What the extensions share: arrays of dtypes and shapes that are known, objects whose attributes
 * are looked at, and modules of types. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

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
    PyObject *shape;
    PyObject *more; /* what makes a result, None: NumPy does; or the place in pinned memory */
    int dimensions;
    npy_intp lengths[NPY_MAXDIMS];
    npy_intp bytes;
    char number;
    Scalar scalar;
    void *place;
} Value;

/* The arguments and results of a call. */
typedef struct {
    Py_ssize_t inputs;
    Py_ssize_t outputs;
    Value *all; /* inputs, then outputs */
} Values;

/* Frees an object of a type that was made here, after what it refers to. */
static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* From (dtype, shape, more); a place is a number. */
static int read_value(Value *value, PyObject *row)
{
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a row is a tuple (dtype, shape, maker or place)");
        return 0;
    }
    if (!PyArg_ParseTuple(row, "O!OO", &PyArrayDescr_Type, &value->dtype, &value->shape,
                          &value->more)) {
        value->dtype = value->shape = value->more = NULL;
        return 0;
    }
    Py_INCREF(value->dtype);
    Py_INCREF(value->shape);
    Py_INCREF(value->more);
    value->place = PyLong_Check(value->more) ? PyLong_AsVoidPtr(value->more) : NULL;
    value->dimensions = PyArray_IntpFromSequence(value->shape, value->lengths, NPY_MAXDIMS);
    if (value->dimensions > NPY_MAXDIMS)
        PyErr_SetString(PyExc_ValueError, "a shape has more dimensions than NumPy's arrays");
    if (value->dimensions < 0 || value->dimensions > NPY_MAXDIMS)
        return 0;
    const PyArray_Descr *dtype = (PyArray_Descr *)value->dtype;
    npy_intp size = PyDataType_ELSIZE(dtype);
    value->bytes = size * PyArray_MultiplyList(value->lengths, value->dimensions);
    char kind = dtype->kind;
    int simple = kind == 'i' || kind == 'u' || (kind == 'f' && (size == 4 || size == 8));
    value->number = simple && !value->dimensions ? kind : 0;
    return 1;
}

/* From the tuples of rows of inputs and outputs; 0, and an error, where a row is not one. */
static int read_values(Values *values, PyObject *inputs, PyObject *outputs)
{
    Py_ssize_t count = PyTuple_Size(inputs), total = count + PyTuple_Size(outputs);
    values->all = PyMem_Calloc((size_t)total + 1, sizeof *values->all);
    if (!values->all) {
        PyErr_NoMemory();
        return 0;
    }
    values->inputs = count;
    values->outputs = total - count;
    for (Py_ssize_t k = 0; k < total; k++) {
        PyObject *row =
            k < count ? PyTuple_GetItem(inputs, k) : PyTuple_GetItem(outputs, k - count);
        if (!read_value(&values->all[k], row))
            return 0;
    }
    return !PyErr_Occurred();
}

static void free_values(Values *values)
{
    for (Py_ssize_t k = 0; values->all && k < values->inputs + values->outputs; k++) {
        Py_XDECREF(values->all[k].dtype);
        Py_XDECREF(values->all[k].shape);
        Py_XDECREF(values->all[k].more);
    }
    PyMem_Free(values->all);
}

/* Whether `object` is an array of the value's dtype and shape that can be used where it lies. */
static int is_array(const Value *value, PyObject *object, int flags)
{
    if (!PyArray_CheckExact(object))
        return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    return (PyObject *)PyArray_DESCR(array) == value->dtype && PyArray_CHKFLAGS(array, flags)
           && PyArray_NDIM(array) == value->dimensions
           && PyArray_CompareLists(PyArray_DIMS(array), value->lengths, value->dimensions);
}

/* A new array of the value's dtype and shape, by NumPy. */
static PyObject *new_array(const Value *value)
{
    Py_INCREF(value->dtype); /* which goes with the array */
    return PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)value->dtype, value->dimensions,
                                (npy_intp *)value->lengths, NULL, NULL, 0, NULL);
}

/* Names of attributes, made once. */
static PyObject *name_access, *name_epoch, *name_writer, *name_readers;
typedef struct {
    PyObject **name;
    const char *text;
} Name;

/* Makes names, up to one without a text; 0 where there is no memory for them. */
static int make_names(const Name *names)
{
    for (; names->text; names++)
        if (!(*names->name = PyUnicode_InternFromString(names->text)))
            return 0;
    return 1;
}

/* An attribute; NULL, and no error, where there is none of this name. */
static PyObject *attribute_of(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(object, name);
    if (!found)
        PyErr_Clear();
    return found;
}

/* Whether an attribute is this object. */
static int is_so(PyObject *object, PyObject *name, PyObject *expected)
{
    PyObject *found = attribute_of(object, name);
    Py_XDECREF(found);
    return found == expected;
}

/* Whether an attribute is this number. */
static int has_number(PyObject *object, PyObject *name, int64_t number)
{
    PyObject *found = attribute_of(object, name);
    int same = found && PyLong_CheckExact(found) && PyLong_AsLongLong(found) == number;
    if (PyErr_Occurred())
        PyErr_Clear(); /* it is larger */
    Py_XDECREF(found);
    return same;
}

/* Whether variables lie where they lay, and no call is at work on them: whoever took the lock of
 * rwlock.py is counted there. This stays so as long as no other thread can run. */
static int are_at_rest(PyObject *state, int64_t epoch)
{
    PyObject *access = attribute_of(state, name_access);
    int rests = access && is_so(access, name_writer, Py_None)
                && has_number(access, name_readers, 0) && has_number(state, name_epoch, epoch);
    Py_XDECREF(access);
    return rests;
}

/* A module with the text that it was built of and two types; NULL, and an error, without memory. */
static PyObject *make_extension(struct PyModuleDef *definition, const Name *names,
                                PyType_Spec *first, PyTypeObject **second, PyType_Spec *spec,
                                const char *const types[2])
{
    const Name common[] = {{&name_access, "access"}, {&name_epoch, "epoch"},
                           {&name_writer, "_writer"}, {&name_readers, "_readers"}, {NULL, NULL}};
    if (PyArray_ImportNumPyAPI() < 0 || !make_names(common) || !make_names(names))
        return NULL;
    PyObject *module = PyModule_Create(definition), *type = PyType_FromSpec(first);
    *second = (PyTypeObject *)PyType_FromSpec(spec);
    if (module && type && *second
        && PyModule_AddStringConstant(module, "source", GEON_SOURCE) == 0
        && PyModule_AddObjectRef(module, types[0], type) == 0
        && PyModule_AddObjectRef(module, types[1], (PyObject *)*second) == 0) {
        Py_DECREF(type);
        return module;
    }
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}

#define FAST(function, text) {#function, (PyCFunction)(void (*)(void))function, METH_FASTCALL, text}
