/* A stand-in of librknnrt.so: the RKNN C API over vectors that were recorded, and failures that are asked for.
 *
 * Environment:
 *   FAKE_RKNN_RECORDINGS  folder of recordings. An engine's is `HASH.txt`, HASH the 64-bit FNV-1a of its file in hex;
 *                         an engine without one is refused as a damaged one is (-6).
 *   FAKE_RKNN_FAIL        what fails: `CALL[:COMMAND][@N]=CODE`, more of them after `;`. COMMAND is of rknn_query, N
 *                         the how-maniest call, all where it is left out. A CODE of `crash` ends the process.
 *   FAKE_RKNN_SHORT       `OUTPUT=BYTES`: this output comes with so many bytes less.
 *   FAKE_RKNN_UNWRITTEN   1: outputs are said to come whole, and nothing is written.
 *   FAKE_RKNN_CORES       1: a chip with one core, where rknn_set_core_mask always fails.
 *   FAKE_RKNN_UNREACHED   1: buffers of rknn_create_mem have no address; 2: they are too small.
 *   FAKE_RKNN_GROWN       bytes that this library's structures have more than the header's.
 *   FAKE_RKNN_API, FAKE_RKNN_DRIVER   versions.
 *   FAKE_RKNN_LOG         a file that calls are written to.
 *
 * A recording, a line an entry:
 *   custom TEXT
 *   memory WEIGHTS INTERNAL DMA
 *   input NAME FORMAT TYPE W_STRIDE DIMS...      in this order
 *   output NAME FORMAT TYPE W_STRIDE DIMS...
 *   run FILE...                                  of each input, then of each output (float32), beside the recording
 *
 * It is stricter than a board: what it is handed must be as the real library is said to want it (see attributes.py),
 * and inputs that were not recorded are an error. Buffers of zero-copy change hands by rknn_mem_sync only.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_layout.h"

#define API __attribute__((visibility("default")))

enum { MOST = 144, MOST_RUNS = 64, LINE = 16384 }; /* MOST: inputs or outputs; a step of CosyVoice2 has 134 */

static const char version_mark[] = "librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)";
#define VERSION_AT 19 /* behind "librknnrt version: " */

typedef struct {
    uint8_t *data;
    size_t size;
} bytes;

typedef struct {
    rknn_tensor_attr attr;
    bytes now;             /* what was handed over, or what a run gave */
    rknn_tensor_mem *bound;
} tensor;

typedef struct {
    int alive;
    uint32_t flags;
    char custom[MAX_CUSTOM_STRING];
    rknn_mem_size memory;
    int n_input, n_output, n_run;
    int has_run;
    tensor inputs[MOST], outputs[MOST];
    bytes runs[MOST_RUNS][2 * MOST];
} context;

static int live_contexts, live_memories;
static struct {
    char name[64];
    int count;
} counters[32];

API int fake_live_contexts(void) { return live_contexts; }
API int fake_live_memories(void) { return live_memories; }
API void fake_reset(void) { memset(counters, 0, sizeof counters); }

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static void noted(const char *text) {
    const char *path = setting("FAKE_RKNN_LOG", NULL);
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", text);
        fclose(file);
    }
}

static int counted(const char *name) {
    for (int i = 0; i < 32; i++) {
        if (!counters[i].name[0]) snprintf(counters[i].name, sizeof counters[i].name, "%s", name);
        if (!strcmp(counters[i].name, name)) return ++counters[i].count;
    }
    abort();
}

/* The code that was asked for in place of `name` (of rknn_query, `name:command`); 0 where none was. */
static int injected(const char *name) {
    char wanted[1024], numbered[96];
    snprintf(wanted, sizeof wanted, "%s", setting("FAKE_RKNN_FAIL", ""));
    snprintf(numbered, sizeof numbered, "%s@%d", name, counted(name));
    for (char *rest, *entry = strtok_r(wanted, ";", &rest); entry; entry = strtok_r(NULL, ";", &rest)) {
        char *code = strchr(entry, '=');
        if (!code) continue;
        *code++ = 0;
        if (strcmp(entry, name) && strcmp(entry, numbered)) continue;
        if (!strcmp(code, "crash")) abort();
        return atoi(code);
    }
    return CODE_SUCCESS;
}

static size_t width_of(rknn_tensor_type type) {
    switch (type) {
    case TENSOR_INT64: return 8;
    case TENSOR_FLOAT32:
    case TENSOR_INT32:
    case TENSOR_UINT32: return 4;
    case TENSOR_INT8:
    case TENSOR_UINT8: return 1;
    default: return 2;
    }
}

static bytes contents(const char *folder, const char *name) {
    char path[LINE];
    bytes read = {NULL, 0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) return read;
    fseek(file, 0, SEEK_END);
    read.size = (size_t)ftell(file);
    rewind(file);
    read.data = malloc(read.size + 1);
    if (fread(read.data, 1, read.size, file) != read.size) abort();
    fclose(file);
    return read;
}

static void described(tensor *one, int index, char *text) {
    char *rest;
    rknn_tensor_attr *attr = &one->attr;
    attr->index = (uint32_t)index;
    snprintf(attr->name, sizeof attr->name, "%s", strtok_r(text, " ", &rest));
    attr->fmt = (rknn_tensor_format)atoi(strtok_r(NULL, " ", &rest));
    attr->type = (rknn_tensor_type)atoi(strtok_r(NULL, " ", &rest));
    attr->w_stride = (uint32_t)atoi(strtok_r(NULL, " ", &rest));
    attr->qnt_type = QUANTISED_AFFINE; /* as the real one tells of fp16, too */
    attr->scale = 1;
    attr->n_elems = 1;
    for (char *size = strtok_r(NULL, " ", &rest); size; size = strtok_r(NULL, " ", &rest)) {
        attr->dims[attr->n_dims++] = (uint32_t)atoi(size);
        attr->n_elems *= (uint32_t)atoi(size);
    }
    attr->size = attr->size_with_stride = attr->n_elems * (uint32_t)width_of(attr->type);
}

static int loaded(context *ctx, const uint8_t *model, uint32_t size) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < size; i++) hash = (hash ^ model[i]) * 0x100000001b3u;
    const char *folder = setting("FAKE_RKNN_RECORDINGS", ".");
    char path[LINE], line[LINE];
    snprintf(path, sizeof path, "%s/%016llx.txt", folder, (unsigned long long)hash);
    FILE *file = fopen(path, "r");
    if (!file) return CODE_MODEL_INVALID;
    while (fgets(line, sizeof line, file)) {
        char *rest;
        line[strcspn(line, "\n")] = 0;
        char *kind = strtok_r(line, " ", &rest);
        if (!kind) continue;
        if (!strcmp(kind, "custom")) {
            snprintf(ctx->custom, sizeof ctx->custom, "%s", rest);
        } else if (!strcmp(kind, "memory")) {
            unsigned long long dma;
            if (sscanf(rest, "%u %u %llu", &ctx->memory.total_weight_size, &ctx->memory.total_internal_size, &dma) != 3)
                abort();
            ctx->memory.total_dma_allocated_size = dma;
        } else if (!strcmp(kind, "input")) {
            described(&ctx->inputs[ctx->n_input], ctx->n_input, rest);
            ctx->n_input++;
        } else if (!strcmp(kind, "output")) {
            described(&ctx->outputs[ctx->n_output], ctx->n_output, rest);
            ctx->n_output++;
        } else if (!strcmp(kind, "run")) {
            char *more;
            int i = 0;
            for (char *name = strtok_r(rest, " ", &more); name; name = strtok_r(NULL, " ", &more))
                ctx->runs[ctx->n_run][i++] = contents(folder, name);
            ctx->n_run++;
        } else {
            abort();
        }
    }
    fclose(file);
    return CODE_SUCCESS;
}

static context *known(rknn_context handle) {
    context *ctx = (context *)(uintptr_t)handle;
    return ctx && ctx->alive ? ctx : NULL;
}

static context *runnable(rknn_context handle) {
    context *ctx = known(handle);
    return ctx && !(ctx->flags & FLAG_COLLECT_MODEL_INFO_ONLY) ? ctx : NULL;
}

static void kept(bytes *place, const void *data, size_t size) {
    free(place->data);
    place->data = malloc(size + 1);
    place->size = size;
    memcpy(place->data, data, size);
}

API int rknn_init(rknn_context *handle, void *model, uint32_t size, uint32_t flags, rknn_init_extend *extend) {
    char text[LINE];
    snprintf(text, sizeof text, "rknn_init size=%u flags=0x%x", size, flags);
    noted(text);
    int code = injected("rknn_init");
    if (code) return code;
    if (!handle || !model || !size || extend) return CODE_PARAM_INVALID;
    context *ctx = calloc(1, sizeof *ctx);
    code = loaded(ctx, model, size);
    if (code) {
        free(ctx);
        return code;
    }
    memset(model, 0, size < 64 ? size : 64); /* what it is handed is the library's: its caller may not rely on it */
    ctx->alive = 1;
    ctx->flags = flags;
    live_contexts++;
    *handle = (rknn_context)(uintptr_t)ctx;
    return CODE_SUCCESS;
}

API int rknn_destroy(rknn_context handle) {
    context *ctx = known(handle);
    noted("rknn_destroy");
    if (!ctx) return CODE_CTX_INVALID;
    for (int i = 0; i < MOST; i++) {
        free(ctx->inputs[i].now.data);
        free(ctx->outputs[i].now.data);
    }
    for (int i = 0; i < ctx->n_run; i++)
        for (int k = 0; k < 2 * MOST; k++) free(ctx->runs[i][k].data);
    free(ctx);
    live_contexts--;
    return injected("rknn_destroy");
}

API int rknn_query(rknn_context handle, rknn_query_cmd command, void *info, uint32_t size) {
    char name[64];
    context *ctx = known(handle);
    snprintf(name, sizeof name, "rknn_query:%d", (int)command);
    int code = injected(name);
    if (code) return code;
    if (!ctx) return CODE_CTX_INVALID;
    size_t grown = (size_t)atoi(setting("FAKE_RKNN_GROWN", "0"));
    union {
        rknn_input_output_num number;
        rknn_tensor_attr attr;
        rknn_sdk_version version;
        rknn_mem_size memory;
        rknn_custom_string custom;
    } told;
    size_t needed;
    memset(&told, 0, sizeof told);
    switch (command) {
    case QUERY_IN_OUT_NUM:
        needed = sizeof told.number;
        told.number.n_input = (uint32_t)ctx->n_input;
        told.number.n_output = (uint32_t)ctx->n_output;
        break;
    case QUERY_INPUT_ATTR:
    case QUERY_OUTPUT_ATTR: {
        needed = sizeof told.attr;
        uint32_t index = ((rknn_tensor_attr *)info)->index;
        if (index >= (uint32_t)(command == QUERY_INPUT_ATTR ? ctx->n_input : ctx->n_output)) return CODE_PARAM_INVALID;
        told.attr = command == QUERY_INPUT_ATTR ? ctx->inputs[index].attr : ctx->outputs[index].attr;
        break;
    }
    case QUERY_SDK_VERSION:
        needed = sizeof told.version;
        snprintf(told.version.api_version, MAX_VERSION_LENGTH, "%s",
                 setting("FAKE_RKNN_API", version_mark + VERSION_AT));
        snprintf(told.version.drv_version, MAX_VERSION_LENGTH, "%s", setting("FAKE_RKNN_DRIVER", "0.9.8"));
        break;
    case QUERY_MEM_SIZE:
        needed = sizeof told.memory;
        told.memory = ctx->memory;
        break;
    case QUERY_CUSTOM_STRING:
        needed = sizeof told.custom;
        memcpy(told.custom.string, ctx->custom, sizeof told.custom.string);
        break;
    default:
        return CODE_PARAM_INVALID;
    }
    if ((ctx->flags & FLAG_COLLECT_MODEL_INFO_ONLY) && command != QUERY_MEM_SIZE && command != QUERY_SDK_VERSION)
        return CODE_CTX_INVALID;
    if (size < needed + grown) return CODE_PARAM_INVALID;
    memcpy(info, &told, needed);
    memset((uint8_t *)info + needed, 0xee, grown);
    return CODE_SUCCESS;
}

API int rknn_inputs_set(rknn_context handle, uint32_t n_inputs, rknn_input inputs[]) {
    context *ctx = runnable(handle);
    int code = injected("rknn_inputs_set");
    if (code) return code;
    if (!ctx) return CODE_CTX_INVALID;
    if (n_inputs != (uint32_t)ctx->n_input) return CODE_INPUT_INVALID;
    for (uint32_t i = 0; i < n_inputs; i++) {
        char text[LINE];
        const rknn_input *one = &inputs[i];
        if (one->index >= (uint32_t)ctx->n_input) return CODE_INPUT_INVALID;
        tensor *place = &ctx->inputs[one->index];
        snprintf(text, sizeof text, "rknn_inputs_set %s type=%d fmt=%d size=%u pass_through=%d", place->attr.name,
                 (int)one->type, (int)one->fmt, one->size, one->pass_through);
        noted(text);
        if (place->attr.n_dims == 4 && one->fmt != FORMAT_NHWC) {
            fprintf(stderr, "Meet unsupported src layout for normalize: %d, only support NHWC src layout!\n", one->fmt);
            return CODE_PARAM_INVALID;
        }
        if (one->pass_through || one->fmt != place->attr.fmt || !one->buf) return CODE_PARAM_INVALID;
        if ((one->type == TENSOR_INT64) != (place->attr.type == TENSOR_INT64)) return CODE_PARAM_INVALID;
        if (one->size != place->attr.n_elems * width_of(one->type)) return CODE_PARAM_INVALID;
        kept(&place->now, one->buf, one->size);
    }
    return CODE_SUCCESS;
}

API int rknn_run(rknn_context handle, rknn_run_extend *extend) {
    context *ctx = runnable(handle);
    int code = injected("rknn_run");
    noted("rknn_run");
    if (code) return code;
    if (!ctx || extend) return CODE_CTX_INVALID;
    for (int r = 0; r < ctx->n_run; r++) {
        int same = 1;
        for (int i = 0; i < ctx->n_input && same; i++) {
            const bytes *has = &ctx->inputs[i].now, *recorded = &ctx->runs[r][i];
            same = has->data && has->size == recorded->size && !memcmp(has->data, recorded->data, has->size);
        }
        if (!same) continue;
        for (int i = 0; i < ctx->n_output; i++) {
            const bytes *recorded = &ctx->runs[r][ctx->n_input + i];
            kept(&ctx->outputs[i].now, recorded->data, recorded->size);
        }
        ctx->has_run = 1;
        return CODE_SUCCESS;
    }
    fprintf(stderr, "fake librknnrt: these inputs were not recorded\n");
    return CODE_INPUT_INVALID;
}

API int rknn_outputs_get(rknn_context handle, uint32_t n_outputs, rknn_output outputs[], rknn_output_extend *extend) {
    context *ctx = runnable(handle);
    int code = injected("rknn_outputs_get");
    if (code) return code;
    if (!ctx || !ctx->has_run || extend) return CODE_CTX_INVALID;
    if (n_outputs != (uint32_t)ctx->n_output) return CODE_OUTPUT_INVALID;
    const char *shorter = setting("FAKE_RKNN_SHORT", "-1=0");
    for (uint32_t i = 0; i < n_outputs; i++) {
        rknn_output *one = &outputs[i];
        if (one->index >= (uint32_t)ctx->n_output || !one->want_float || !one->is_prealloc) return CODE_OUTPUT_INVALID;
        const bytes *now = &ctx->outputs[one->index].now;
        size_t size = now->size;
        if (atoi(shorter) == (int)one->index) size -= (size_t)atoi(strchr(shorter, '=') + 1);
        if (one->size < size) return CODE_OUTPUT_INVALID;
        if (!atoi(setting("FAKE_RKNN_UNWRITTEN", "0"))) memcpy(one->buf, now->data, size);
        one->size = (uint32_t)size;
    }
    return CODE_SUCCESS;
}

API int rknn_outputs_release(rknn_context handle, uint32_t n_outputs, rknn_output outputs[]) {
    noted("rknn_outputs_release");
    return runnable(handle) && n_outputs && outputs ? injected("rknn_outputs_release") : CODE_CTX_INVALID;
}

#ifndef WITHOUT_CORE_MASK
API int rknn_set_core_mask(rknn_context handle, rknn_core_mask mask) {
    char text[LINE];
    snprintf(text, sizeof text, "rknn_set_core_mask %d", (int)mask);
    noted(text);
    int code = injected("rknn_set_core_mask");
    if (code) return code;
    if (!runnable(handle)) return CODE_CTX_INVALID;
    return atoi(setting("FAKE_RKNN_CORES", "3")) == 1 ? CODE_FAIL : CODE_SUCCESS;
}
#endif

#ifndef WITHOUT_ZERO_COPY
API rknn_tensor_mem *rknn_create_mem(rknn_context handle, uint32_t size) {
    if (injected("rknn_create_mem") || !runnable(handle)) return NULL;
    rknn_tensor_mem *memory = calloc(1, sizeof *memory);
    int unreached = atoi(setting("FAKE_RKNN_UNREACHED", "0"));
    memory->virt_addr = unreached == 1 ? NULL : malloc(size);
    memory->size = unreached == 2 ? size - 1 : size;
    live_memories++;
    return memory;
}

API int rknn_destroy_mem(rknn_context handle, rknn_tensor_mem *memory) {
    if (!runnable(handle) || !memory) return CODE_CTX_INVALID;
    free(memory->virt_addr);
    free(memory);
    live_memories--;
    return CODE_SUCCESS;
}

API int rknn_set_io_mem(rknn_context handle, rknn_tensor_mem *memory, rknn_tensor_attr *attr) {
    context *ctx = runnable(handle);
    int code = injected("rknn_set_io_mem");
    if (code) return code;
    if (!ctx || !memory) return CODE_CTX_INVALID;
    for (int is_output = 0; is_output < 2; is_output++) {
        tensor *tensors = is_output ? ctx->outputs : ctx->inputs;
        for (int i = 0; i < (is_output ? ctx->n_output : ctx->n_input); i++) {
            tensor *one = &tensors[i];
            if (strcmp(one->attr.name, attr->name) || one->attr.index != attr->index) continue;
            if (attr->pass_through || attr->fmt != one->attr.fmt) return CODE_PARAM_INVALID;
            if (memory->size < one->attr.n_elems * width_of(attr->type)) return CODE_PARAM_INVALID;
            if (is_output && attr->type != TENSOR_FLOAT32) return CODE_PARAM_INVALID;
            one->bound = memory;
            return CODE_SUCCESS;
        }
    }
    return CODE_PARAM_INVALID;
}

API int rknn_mem_sync(rknn_context handle, rknn_tensor_mem *memory, rknn_mem_sync_mode mode) {
    context *ctx = runnable(handle);
    int code = injected("rknn_mem_sync");
    if (code) return code;
    if (!ctx || !memory) return CODE_CTX_INVALID;
    for (int i = 0; i < MOST; i++) {
        if (mode == SYNC_TO_DEVICE && ctx->inputs[i].bound == memory)
            kept(&ctx->inputs[i].now, memory->virt_addr, memory->size);
        if (mode == SYNC_FROM_DEVICE && ctx->outputs[i].bound == memory && ctx->outputs[i].now.data)
            memcpy(memory->virt_addr, ctx->outputs[i].now.data, ctx->outputs[i].now.size);
    }
    return CODE_SUCCESS;
}
#endif
