/* Structures and numbers of the RKNN C API, as the public header of RKNPU2 2.x lays them out, written anew for tests:
 * the C compiler's view of what rknn_tts_runtime/npu/api.py declares, and the ground of the stand-in of librknnrt.so. */

#ifndef RKNN_LAYOUT_H
#define RKNN_LAYOUT_H

#include <stdint.h>

enum {
    MAX_DIMS = 16,
    MAX_NAME_LENGTH = 256,
    MAX_VERSION_LENGTH = 256,
    MAX_CUSTOM_STRING = 1024
};

enum {
    CODE_SUCCESS = 0,
    CODE_FAIL = -1,
    CODE_TIMEOUT = -2,
    CODE_DEVICE_UNAVAILABLE = -3,
    CODE_MALLOC_FAIL = -4,
    CODE_PARAM_INVALID = -5,
    CODE_MODEL_INVALID = -6,
    CODE_CTX_INVALID = -7,
    CODE_INPUT_INVALID = -8,
    CODE_OUTPUT_INVALID = -9,
    CODE_DEVICE_UNMATCH = -10,
    CODE_INCOMPATIBLE_PRE_COMPILE = -11,
    CODE_INCOMPATIBLE_OPTIMIZATION = -12,
    CODE_TARGET_PLATFORM_UNMATCH = -13
};

enum { FLAG_DEFAULT = 0, FLAG_COLLECT_MODEL_INFO_ONLY = 1 << 8 };

typedef enum {
    QUERY_IN_OUT_NUM,
    QUERY_INPUT_ATTR,
    QUERY_OUTPUT_ATTR,
    QUERY_PERF_DETAIL,
    QUERY_PERF_RUN,
    QUERY_SDK_VERSION,
    QUERY_MEM_SIZE,
    QUERY_CUSTOM_STRING
} rknn_query_cmd;

typedef enum {
    TENSOR_FLOAT32,
    TENSOR_FLOAT16,
    TENSOR_INT8,
    TENSOR_UINT8,
    TENSOR_INT16,
    TENSOR_UINT16,
    TENSOR_INT32,
    TENSOR_UINT32,
    TENSOR_INT64
} rknn_tensor_type;

typedef enum { QUANTISED_NONE, QUANTISED_FIXED_POINT, QUANTISED_AFFINE } rknn_tensor_qnt_type;

typedef enum { FORMAT_NCHW, FORMAT_NHWC, FORMAT_NC1HWC2, FORMAT_UNDEFINED } rknn_tensor_format;

typedef enum {
    CORE_AUTO = 0,
    CORE_0 = 1,
    CORE_1 = 2,
    CORE_2 = 4,
    CORE_0_1 = CORE_0 | CORE_1,
    CORE_0_1_2 = CORE_0 | CORE_1 | CORE_2,
    CORE_ALL = 0xffff
} rknn_core_mask;

typedef enum { SYNC_TO_DEVICE = 1, SYNC_FROM_DEVICE = 2 } rknn_mem_sync_mode;

#ifdef __arm__
typedef uint32_t rknn_context;
#else
typedef uint64_t rknn_context;
#endif

typedef struct {
    uint32_t n_input;
    uint32_t n_output;
} rknn_input_output_num;

typedef struct {
    uint32_t index;
    uint32_t n_dims;
    uint32_t dims[MAX_DIMS];
    char name[MAX_NAME_LENGTH];
    uint32_t n_elems;
    uint32_t size;
    rknn_tensor_format fmt;
    rknn_tensor_type type;
    rknn_tensor_qnt_type qnt_type;
    int8_t fl;
    int32_t zp;
    float scale;
    uint32_t w_stride;
    uint32_t size_with_stride;
    uint8_t pass_through;
    uint32_t h_stride;
} rknn_tensor_attr;

typedef struct {
    int64_t run_duration;
} rknn_perf_run;

typedef struct {
    char api_version[MAX_VERSION_LENGTH];
    char drv_version[MAX_VERSION_LENGTH];
} rknn_sdk_version;

typedef struct {
    uint32_t total_weight_size;
    uint32_t total_internal_size;
    uint64_t total_dma_allocated_size;
    uint32_t total_sram_size;
    uint32_t free_sram_size;
    uint32_t reserved[10];
} rknn_mem_size;

typedef struct {
    char string[MAX_CUSTOM_STRING];
} rknn_custom_string;

typedef struct {
    void *virt_addr;
    uint64_t phys_addr;
    int32_t fd;
    int32_t offset;
    uint32_t size;
    uint32_t flags;
    void *priv_data;
} rknn_tensor_mem;

typedef struct {
    uint32_t index;
    void *buf;
    uint32_t size;
    uint8_t pass_through;
    rknn_tensor_type type;
    rknn_tensor_format fmt;
} rknn_input;

typedef struct {
    uint8_t want_float;
    uint8_t is_prealloc;
    uint32_t index;
    void *buf;
    uint32_t size;
} rknn_output;

typedef struct {
    rknn_context ctx;
    int32_t real_model_offset;
    uint32_t real_model_size;
    int32_t model_buffer_fd;
    uint32_t model_buffer_flags;
    uint8_t reserved[112];
} rknn_init_extend;

typedef struct {
    uint64_t frame_id;
    int32_t non_block;
    int32_t timeout_ms;
    int32_t fence_fd;
} rknn_run_extend;

typedef struct {
    uint64_t frame_id;
} rknn_output_extend;

#endif
