/* Prints `structure size`, `structure.field offset size` and `NAME value` of what rknn_layout.h declares. */

#include <stddef.h>
#include <stdio.h>

#include "rknn_layout.h"

#define STRUCTURE(type) printf("%s %zu\n", #type, sizeof(type))
#define FIELD(type, field) \
    printf("%s.%s %zu %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field))
#define VALUE(name) printf("%s %d\n", #name, (int)(name))

int main(void) {
    STRUCTURE(rknn_input_output_num);
    FIELD(rknn_input_output_num, n_input);
    FIELD(rknn_input_output_num, n_output);

    STRUCTURE(rknn_tensor_attr);
    FIELD(rknn_tensor_attr, index);
    FIELD(rknn_tensor_attr, n_dims);
    FIELD(rknn_tensor_attr, dims);
    FIELD(rknn_tensor_attr, name);
    FIELD(rknn_tensor_attr, n_elems);
    FIELD(rknn_tensor_attr, size);
    FIELD(rknn_tensor_attr, fmt);
    FIELD(rknn_tensor_attr, type);
    FIELD(rknn_tensor_attr, qnt_type);
    FIELD(rknn_tensor_attr, fl);
    FIELD(rknn_tensor_attr, zp);
    FIELD(rknn_tensor_attr, scale);
    FIELD(rknn_tensor_attr, w_stride);
    FIELD(rknn_tensor_attr, size_with_stride);
    FIELD(rknn_tensor_attr, pass_through);
    FIELD(rknn_tensor_attr, h_stride);

    STRUCTURE(rknn_perf_run);
    FIELD(rknn_perf_run, run_duration);

    STRUCTURE(rknn_sdk_version);
    FIELD(rknn_sdk_version, api_version);
    FIELD(rknn_sdk_version, drv_version);

    STRUCTURE(rknn_mem_size);
    FIELD(rknn_mem_size, total_weight_size);
    FIELD(rknn_mem_size, total_internal_size);
    FIELD(rknn_mem_size, total_dma_allocated_size);
    FIELD(rknn_mem_size, total_sram_size);
    FIELD(rknn_mem_size, free_sram_size);
    FIELD(rknn_mem_size, reserved);

    STRUCTURE(rknn_custom_string);
    FIELD(rknn_custom_string, string);

    STRUCTURE(rknn_tensor_mem);
    FIELD(rknn_tensor_mem, virt_addr);
    FIELD(rknn_tensor_mem, phys_addr);
    FIELD(rknn_tensor_mem, fd);
    FIELD(rknn_tensor_mem, offset);
    FIELD(rknn_tensor_mem, size);
    FIELD(rknn_tensor_mem, flags);
    FIELD(rknn_tensor_mem, priv_data);

    STRUCTURE(rknn_input);
    FIELD(rknn_input, index);
    FIELD(rknn_input, buf);
    FIELD(rknn_input, size);
    FIELD(rknn_input, pass_through);
    FIELD(rknn_input, type);
    FIELD(rknn_input, fmt);

    STRUCTURE(rknn_output);
    FIELD(rknn_output, want_float);
    FIELD(rknn_output, is_prealloc);
    FIELD(rknn_output, index);
    FIELD(rknn_output, buf);
    FIELD(rknn_output, size);

    STRUCTURE(rknn_init_extend);
    FIELD(rknn_init_extend, ctx);
    FIELD(rknn_init_extend, real_model_offset);
    FIELD(rknn_init_extend, real_model_size);
    FIELD(rknn_init_extend, model_buffer_fd);
    FIELD(rknn_init_extend, model_buffer_flags);
    FIELD(rknn_init_extend, reserved);

    STRUCTURE(rknn_run_extend);
    FIELD(rknn_run_extend, frame_id);
    FIELD(rknn_run_extend, non_block);
    FIELD(rknn_run_extend, timeout_ms);
    FIELD(rknn_run_extend, fence_fd);

    STRUCTURE(rknn_output_extend);
    FIELD(rknn_output_extend, frame_id);

    VALUE(MAX_DIMS);
    VALUE(MAX_NAME_LENGTH);
    VALUE(MAX_VERSION_LENGTH);
    VALUE(MAX_CUSTOM_STRING);
    VALUE(CODE_SUCCESS);
    VALUE(CODE_FAIL);
    VALUE(CODE_TIMEOUT);
    VALUE(CODE_DEVICE_UNAVAILABLE);
    VALUE(CODE_MALLOC_FAIL);
    VALUE(CODE_PARAM_INVALID);
    VALUE(CODE_MODEL_INVALID);
    VALUE(CODE_CTX_INVALID);
    VALUE(CODE_INPUT_INVALID);
    VALUE(CODE_OUTPUT_INVALID);
    VALUE(CODE_DEVICE_UNMATCH);
    VALUE(CODE_INCOMPATIBLE_PRE_COMPILE);
    VALUE(CODE_INCOMPATIBLE_OPTIMIZATION);
    VALUE(CODE_TARGET_PLATFORM_UNMATCH);
    VALUE(FLAG_DEFAULT);
    VALUE(FLAG_COLLECT_MODEL_INFO_ONLY);
    VALUE(QUERY_IN_OUT_NUM);
    VALUE(QUERY_INPUT_ATTR);
    VALUE(QUERY_OUTPUT_ATTR);
    VALUE(QUERY_PERF_RUN);
    VALUE(QUERY_SDK_VERSION);
    VALUE(QUERY_MEM_SIZE);
    VALUE(QUERY_CUSTOM_STRING);
    VALUE(TENSOR_FLOAT32);
    VALUE(TENSOR_INT64);
    VALUE(FORMAT_NCHW);
    VALUE(FORMAT_NHWC);
    VALUE(FORMAT_NC1HWC2);
    VALUE(FORMAT_UNDEFINED);
    VALUE(SYNC_TO_DEVICE);
    VALUE(SYNC_FROM_DEVICE);
    VALUE(CORE_AUTO);
    VALUE(CORE_0);
    VALUE(CORE_1);
    VALUE(CORE_2);
    VALUE(CORE_0_1);
    VALUE(CORE_0_1_2);
    VALUE(CORE_ALL);
    return 0;
}
