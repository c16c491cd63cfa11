/* The way from Python into captured graphs, for a call whose arguments are as those of one before.
 *
 * Such a call puts its arrays into pinned memory, launches its graphs, records an event behind them,
 * and waits for it when the results are asked for. Every other call is declined with
 * NotImplemented, which is no error: the caller then goes the long way.
 *
 * From the look at the locks of variables to the event all is done with the interpreter's lock held,
 * which is a few microseconds: what lay where it lay then does so when the graphs are launched. Long
 * copies and waiting let go of that lock.
 *
 * The functions of the driver are given by their addresses: neither its headers nor its library are
 * needed to build this.
 */
#include "../loading/extension.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#define NOT_READY 600      /* what the driver says of an event that has not come */
#define DISABLE_TIMING 2   /* a flag of events */
#define LONG (1 << 20)     /* bytes from which on other threads may run while they are copied */
#define SPINS 2000000      /* nanoseconds for which an event is looked at again and again */
#define PAUSE 50000        /* nanoseconds between looks from then on */
#define LOOKS 20           /* of these between looks at signals */
#define DECLINED INT64_MIN /* what no status is */

typedef struct {
    PyObject_HEAD
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*launch)(void *graph, void *stream);
    int (*record)(void *event, void *stream);
    int (*query)(void *event);
    int (*create)(void **event, unsigned flags);
    void *context;
    void *stream;
    PyObject *events; /* those that nobody uses, as numbers */
} Driver;

typedef struct {
    PyObject_HEAD
    Driver *driver;
    Values values;
    size_t bytes_in;
    size_t bytes_out;
    const int64_t *report; /* whose first word is 0 where no kernel failed; NULL: none can */
    Py_ssize_t parts;
    void **graphs;
    void *event;
    PyObject *held;
    long long taken;
} Steady;

static PyTypeObject *driver_type;
static PyObject *name_lock, *name_acquire, *name_release, *name_depth, *name_lost, *name_tentative;

/* The driver ---------------------------------------------------------------------------------- */

static PyObject *driver_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *given[8];
    Driver *driver = (Driver *)PyType_GenericNew(type, args, keywords);
    if (!driver)
        return NULL;
    if (!PyArg_ParseTuple(args, "(OOOOOO)OO", &given[0], &given[1], &given[2], &given[3],
                          &given[4], &given[5], &given[6], &given[7]))
        goto failed;
    driver->push = (int (*)(void *))PyLong_AsVoidPtr(given[0]);
    driver->pop = (int (*)(void **))PyLong_AsVoidPtr(given[1]);
    driver->launch = (int (*)(void *, void *))PyLong_AsVoidPtr(given[2]);
    driver->record = (int (*)(void *, void *))PyLong_AsVoidPtr(given[3]);
    driver->query = (int (*)(void *))PyLong_AsVoidPtr(given[4]);
    driver->create = (int (*)(void **, unsigned))PyLong_AsVoidPtr(given[5]);
    driver->context = PyLong_AsVoidPtr(given[6]);
    driver->stream = PyLong_AsVoidPtr(given[7]);
    driver->events = PyList_New(0);
    if (!PyErr_Occurred())
        return (PyObject *)driver;
failed:
    Py_DECREF(driver);
    return NULL;
}

static void driver_dealloc(PyObject *self)
{
    Py_XDECREF(((Driver *)self)->events);
    free_object(self);
}

/* An event that nobody uses, or a new one; NULL, and an error, where the driver makes none. */
static void *take_event(Driver *driver)
{
    void *event = NULL, *popped;
    Py_ssize_t last = PyList_Size(driver->events) - 1;
    if (last >= 0) {
        event = PyLong_AsVoidPtr(PyList_GetItem(driver->events, last));
        return PyList_SetSlice(driver->events, last, last + 1, NULL) ? NULL : event;
    }
    int status = driver->push(driver->context);
    if (!status) {
        status = driver->create(&event, DISABLE_TIMING);
        driver->pop(&popped);
    }
    if (status)
        PyErr_Format(PyExc_RuntimeError, "the driver makes no event: status %d", status);
    return status ? NULL : event;
}

/* Lets others use an event: it is recorded anew. */
static void give_event_back(Driver *driver, void *event)
{
    PyObject *number = event ? PyLong_FromVoidPtr(event) : NULL;
    if (number)
        PyList_Append(driver->events, number);
    Py_XDECREF(number);
}

/* What a call takes --------------------------------------------------------------------------- */

/* From the numbers that graphs are for the driver. */
static int read_graphs(Steady *steady, PyObject *graphs)
{
    steady->graphs = PyMem_Calloc((size_t)PyTuple_Size(graphs) + 1, sizeof *steady->graphs);
    if (!steady->graphs) {
        PyErr_NoMemory();
        return 0;
    }
    steady->parts = PyTuple_Size(graphs);
    for (Py_ssize_t k = 0; k < steady->parts; k++)
        steady->graphs[k] = PyLong_AsVoidPtr(PyTuple_GetItem(graphs, k));
    return !PyErr_Occurred();
}

static PyObject *steady_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    Steady *steady = (Steady *)PyType_GenericNew(type, args, keywords);
    PyObject *driver, *inputs, *outputs, *report, *graphs, *held;
    if (!steady)
        return NULL;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O", driver_type, &driver, &PyTuple_Type, &inputs,
                          &PyTuple_Type, &outputs, &PyLong_Type, &report, &PyTuple_Type, &graphs,
                          &held))
        goto failed;
    steady->driver = (Driver *)Py_NewRef(driver);
    steady->held = Py_NewRef(held);
    steady->report = PyLong_AsVoidPtr(report);
    if (!read_values(&steady->values, inputs, outputs))
        goto failed;
    for (Py_ssize_t k = 0; k < steady->values.inputs + steady->values.outputs; k++) {
        const Value *value = &steady->values.all[k];
        if (!PyLong_Check(value->more)) {
            PyErr_SetString(PyExc_TypeError, "a place in pinned memory is a number");
            goto failed;
        }
        *(k < steady->values.inputs ? &steady->bytes_in : &steady->bytes_out) +=
            (size_t)value->bytes;
    }
    if (read_graphs(steady, graphs) && (steady->event = take_event(steady->driver)))
        return (PyObject *)steady;
failed:
    Py_DECREF(steady);
    return NULL;
}

static void steady_dealloc(PyObject *self)
{
    Steady *steady = (Steady *)self;
    free_values(&steady->values);
    PyMem_Free(steady->graphs);
    if (steady->driver)
        give_event_back(steady->driver, steady->event);
    Py_XDECREF((PyObject *)steady->driver);
    Py_XDECREF(steady->held);
    free_object(self);
}

/* Beginning ----------------------------------------------------------------------------------- */

/* Whether these are arrays of the dtypes and shapes, whose bytes can be copied as they lie. */
static int fits(const Steady *steady, PyObject *const *arrays, Py_ssize_t count)
{
    if (count != steady->values.inputs)
        return 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (!is_array(&steady->values.all[k], arrays[k], NPY_ARRAY_CARRAY_RO))
            return 0;
    }
    return 1;
}

/* Copies arrays into pinned memory. */
static void put_inputs(const Steady *steady, PyObject *const *arrays)
{
    PyThreadState *thread = steady->bytes_in >= LONG ? PyEval_SaveThread() : NULL;
    for (Py_ssize_t k = 0; k < steady->values.inputs; k++) {
        const Value *value = &steady->values.all[k];
        if (value->bytes)
            memcpy(value->place, PyArray_DATA((PyArrayObject *)arrays[k]),
                   (size_t)value->bytes);
    }
    if (thread)
        PyEval_RestoreThread(thread);
}

/* Whether the transformer is of use, and, where its variables count (an epoch from 0 on), whether
 * they are at rest. */
static int is_usable(PyObject *state, int64_t epoch)
{
    if (!is_so(state, name_lost, Py_None))
        return 0;
    if (epoch < 0)
        return 1;
    PyObject *tentative = attribute_of(state, name_tentative);
    int rests = tentative && PyObject_IsTrue(tentative) == 0 && are_at_rest(state, epoch);
    Py_XDECREF(tentative);
    return rests;
}

/* Launches the graphs and records the event: 0, or the status that the driver gives. */
static int launch(const Steady *steady)
{
    const Driver *driver = steady->driver;
    void *popped;
    int status = driver->push(driver->context);
    if (status)
        return status;
    for (Py_ssize_t k = 0; k < steady->parts && !status; k++)
        status = driver->launch(steady->graphs[k], driver->stream);
    if (!status)
        status = driver->record(steady->event, driver->stream);
    driver->pop(&popped);
    return status;
}

/* Lets go of a lock. */
static void let_go(PyObject *lock)
{
    PyObject *nothing = PyObject_CallMethodObjArgs(lock, name_release, NULL);
    if (!nothing)
        PyErr_Clear();
    Py_XDECREF(nothing);
}

/* The lock of a device, taken; NULL where others have it, or where this thread is at work with the
 * device: it may be capturing, or have work in lanes that is not joined. */
static PyObject *take_device(PyObject *device)
{
    PyObject *lock = attribute_of(device, name_lock);
    PyObject *got = lock ? PyObject_CallMethodObjArgs(lock, name_acquire, Py_False, NULL) : NULL;
    int mine = got == Py_True;
    if (lock && !got)
        PyErr_Clear();
    Py_XDECREF(got);
    if (mine && is_so(device, name_lost, Py_None) && has_number(device, name_depth, 0))
        return lock;
    if (mine)
        let_go(lock);
    Py_XDECREF(lock);
    return NULL;
}

/* Begins a call with the arguments (device, state or None, epoch, arrays...): 0, or minus a status
 * of the driver, or DECLINED. */
static int64_t begin_call(Steady *steady, PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 3 || !PyLong_CheckExact(arguments[2]) || !fits(steady, arguments + 3, count - 3))
        return DECLINED;
    PyObject *device = arguments[0], *state = arguments[1];
    int64_t epoch = PyLong_AsLongLong(arguments[2]);
    if (PyErr_Occurred()) {
        PyErr_Clear(); /* no epoch is so large */
        return DECLINED;
    }
    put_inputs(steady, arguments + 3);
    PyObject *lock = take_device(device);
    int usable = lock && (state == Py_None || is_usable(state, epoch));
    int64_t status = usable ? -launch(steady) : DECLINED;
    steady->taken += usable;
    if (lock)
        let_go(lock);
    Py_XDECREF(lock);
    return status;
}

/* Ending -------------------------------------------------------------------------------------- */

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Looks at the event, for some time again and again and then a few times with pauses, until it has
 * come: what the driver says. */
static int look_for_event(const Steady *steady, int64_t start)
{
    const struct timespec pause = {0, PAUSE};
    int status = NOT_READY;
    for (int looks = 0; status == NOT_READY && looks < LOOKS;) {
        status = steady->driver->query(steady->event);
        if (status != NOT_READY)
            break;
        if (nanoseconds() - start < SPINS) {
            sched_yield();
        } else {
            nanosleep(&pause, NULL);
            looks++;
        }
    }
    return status;
}

/* Waits for the event: what the driver says of it, or -1 where a signal raised. With `held` that is
 * not the end of waiting: the error is set when the event has come. */
static int wait_for_event(const Steady *steady, int held)
{
    int status = steady->driver->query(steady->event), raised = 0;
    PyObject *type = NULL, *error = NULL, *trace = NULL;
    int64_t start = nanoseconds();
    while (status == NOT_READY) {
        PyThreadState *thread = PyEval_SaveThread();
        status = look_for_event(steady, start);
        PyEval_RestoreThread(thread);
        if (status == NOT_READY && !raised && PyErr_CheckSignals()) {
            raised = 1;
            if (!held)
                return -1;
            PyErr_Fetch(&type, &error, &trace);
        }
    }
    if (raised)
        PyErr_Restore(type, error, trace);
    return raised ? -1 : status;
}

/* The tuple of results, which are in pinned memory, as new arrays. */
static PyObject *copied_results(const Steady *steady)
{
    PyObject *results = PyTuple_New(steady->values.outputs);
    for (Py_ssize_t k = 0; results && k < steady->values.outputs; k++) {
        PyObject *array = new_array(&steady->values.all[steady->values.inputs + k]);
        if (!array) {
            Py_DECREF(results);
            return NULL;
        }
        PyTuple_SetItem(results, k, array);
    }
    if (!results)
        return NULL;
    PyThreadState *thread = steady->bytes_out >= LONG ? PyEval_SaveThread() : NULL;
    for (Py_ssize_t k = 0; k < steady->values.outputs; k++) {
        const Value *value = &steady->values.all[steady->values.inputs + k];
        if (value->bytes)
            memcpy(PyArray_DATA((PyArrayObject *)PyTuple_GetItem(results, k)), value->place,
                   (size_t)value->bytes);
    }
    if (thread)
        PyEval_RestoreThread(thread);
    return results;
}

/* What a call gives once its event is waited for. */
static PyObject *end_call(const Steady *steady, int status)
{
    if (status < 0)
        return NULL;
    if (status)
        return PyLong_FromLong(status);
    if (steady->report && *steady->report)
        Py_RETURN_NONE;
    return copied_results(steady);
}

/* Methods ------------------------------------------------------------------------------------- */

static PyObject *begin(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    int64_t status = begin_call((Steady *)self, arguments, count);
    return status == DECLINED ? Py_NewRef(Py_NotImplemented) : PyLong_FromLongLong(status);
}

static PyObject *done(PyObject *self, PyObject *unused)
{
    const Steady *steady = (Steady *)self;
    (void)unused;
    return PyBool_FromLong(steady->driver->query(steady->event) != NOT_READY);
}

static PyObject *finish(PyObject *self, PyObject *unused)
{
    const Steady *steady = (Steady *)self;
    (void)unused;
    return end_call(steady, wait_for_event(steady, 0));
}

static PyObject *run(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Steady *steady = (Steady *)self;
    int64_t status = begin_call(steady, arguments, count);
    if (status == DECLINED)
        return Py_NewRef(Py_NotImplemented);
    return status ? PyLong_FromLongLong(status) : end_call(steady, wait_for_event(steady, 1));
}

/* The module ---------------------------------------------------------------------------------- */

static PyMethodDef steady_methods[] = {
    FAST(begin,
         "begin(device, state, epoch, *arrays): 0 once the call is on its way, minus a status of "
         "the driver where that fails, NotImplemented where the call is declined."),
    {"done", done, METH_NOARGS, "done(): whether the call that was begun has ended."},
    {"finish", finish, METH_NOARGS,
     "finish(): waits, and gives the tuple of results, None where the report has a failure, or a "
     "status of the driver. Raises what a signal raises, and may be called again then."},
    FAST(run,
         "run(device, state, epoch, *arrays): begin and finish. What a signal raises it raises once "
         "the call has ended."),
    {NULL, NULL, 0, NULL},
};
static PyMemberDef steady_members[] = {
    {"taken", T_LONGLONG, offsetof(Steady, taken), READONLY, "How many calls were begun."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot steady_slots[] = {
    {Py_tp_new, steady_new},
    {Py_tp_dealloc, steady_dealloc},
    {Py_tp_methods, steady_methods},
    {Py_tp_members, steady_members},
    {Py_tp_doc, "Steady(driver, inputs, outputs, report, graphs, held): a captured call, one at a "
                "time. A row of inputs and outputs is (dtype, shape, place in pinned memory)."},
    {0, NULL},
};
static PyType_Spec steady_spec = {
    "geon.transformers.pycuda._steady.Steady", sizeof(Steady), 0, Py_TPFLAGS_DEFAULT, steady_slots,
};
static PyType_Slot driver_slots[] = {
    {Py_tp_new, driver_new},
    {Py_tp_dealloc, driver_dealloc},
    {Py_tp_doc, "Driver((push, pop, launch, record, query, create), context, stream): addresses of "
                "functions, and numbers of what they work on."},
    {0, NULL},
};
static PyType_Spec driver_spec = {
    "geon.transformers.pycuda._steady.Driver", sizeof(Driver), 0, Py_TPFLAGS_DEFAULT, driver_slots,
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_steady", NULL, -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__steady(void)
{
    const Name names[] = {{&name_lock, "lock"}, {&name_acquire, "acquire"},
                          {&name_release, "release"}, {&name_depth, "depth"},
                          {&name_lost, "lost"}, {&name_tentative, "tentative"}, {NULL, NULL}};
    return make_extension(&definition, names, &steady_spec, &driver_type, &driver_spec,
                          (const char *const[2]){"Steady", "Driver"});
}
