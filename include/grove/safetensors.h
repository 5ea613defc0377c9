/** @file safetensors.h
 * Files of named tensors in the safetensors format, which one call in PyTorch, JAX or NumPy reads.
 *
 * A file is: the length n of the header (8 bytes, little-endian), the header (n bytes of JSON: name -> dtype, shape,
 * data_offsets; "__metadata__" -> strings), then the data, row-major and little-endian, without holes.
 */
#ifndef GROVE_SAFETENSORS_H
#define GROVE_SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "grove/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Element types: enumerator's tail, bytes. The tail is the name in the file. */
#define GRV_SAFETENSORS_DTYPE_LIST(X)                                                        \
    X(BOOL, 1)                                                                               \
    X(U8, 1) X(I8, 1) X(U16, 2) X(I16, 2) X(F16, 2) X(BF16, 2) X(U32, 4) X(I32, 4) X(F32, 4) \
        X(U64, 8) X(I64, 8) X(F64, 8)

/** Element type of a tensor in a file. */
typedef enum grv_safetensors_dtype {
#define GRV_SAFETENSORS_ENUM(name, bytes) GRV_SAFETENSORS_##name,
    GRV_SAFETENSORS_DTYPE_LIST(GRV_SAFETENSORS_ENUM)
#undef GRV_SAFETENSORS_ENUM
} grv_safetensors_dtype;

/** Most dimensions of a tensor. */
enum { GRV_SAFETENSORS_MAX_DIMS = 8 };

/** Bytes of an element. Not collective. */
GRV_API int64_t grv_safetensors_dtype_bytes(grv_safetensors_dtype dtype);
/** Name in the file, "F32". A constant. Not collective. */
GRV_API const char *grv_safetensors_dtype_name(grv_safetensors_dtype dtype);

/** One tensor of a file. */
typedef struct grv_safetensors_tensor {
    const char *name;                        /**< UTF-8, borrowed until the reader is closed */
    grv_safetensors_dtype dtype;             /**< element type */
    int n_dims;                              /**< 0 for a number */
    int64_t shape[GRV_SAFETENSORS_MAX_DIMS]; /**< row-major, the last one fastest */
    int64_t bytes;                           /**< of all elements */
    int64_t file_offset;                     /**< of the first element in the file */
} grv_safetensors_tensor;

/** An open file. Reads of one reader may run in several threads at a time. */
typedef struct grv_safetensors grv_safetensors;

/** Opens a file and checks its header: lengths, offsets and names are consistent and cover the file. Close with
 * grv_safetensors_close. Not collective.
 * @errors GRV_E_NOT_FOUND, GRV_E_IO, GRV_E_FORMAT with the byte concerned, GRV_E_UNSUPPORTED for other element types or more
 * dimensions, GRV_E_NOMEM */
GRV_API grv_status grv_safetensors_open(const char *path, grv_safetensors **file) GRV_MUST_CHECK;
/** Closes it and sets *file to NULL; NULL is allowed. Not collective. */
GRV_API void grv_safetensors_close(grv_safetensors **file);
/** Number of tensors. Not collective. */
GRV_API int64_t grv_safetensors_count(const grv_safetensors *file);
/** The i-th tensor in the order of names (byte by byte). Borrowed until the file is closed. Not collective. */
GRV_API const grv_safetensors_tensor *grv_safetensors_get(const grv_safetensors *file, int64_t i);
/** The tensor of that name, NULL if there is none. Borrowed until the file is closed. Not collective. */
GRV_API const grv_safetensors_tensor *grv_safetensors_find(const grv_safetensors *file,
                                                           const char *name);
/** The text that the metadata hold under key, NULL if there is none. Borrowed until the file is closed. Not collective. */
GRV_API const char *grv_safetensors_metadata(const grv_safetensors *file, const char *key);
/** Reads a part of a tensor.
 * @param offset, bytes  the part, in bytes from the tensor's first element; within the tensor
 * @param data  [bytes], written
 * Not collective. @errors GRV_E_ARG, GRV_E_IO; GRV_E_FORMAT if the file shrank */
GRV_API grv_status grv_safetensors_read(const grv_safetensors *file,
                                        const grv_safetensors_tensor *tensor, int64_t offset,
                                        int64_t bytes, void *data) GRV_MUST_CHECK;

/** A file being written: all tensors are declared, then their bytes are written in any order and in pieces of any size, then
 * the file is published. Readers see all of it or nothing. */
typedef struct grv_safetensors_writer grv_safetensors_writer;

/** Begins a file. Nothing is on disk before the first byte is written. Free with grv_safetensors_writer_destroy.
 * Not collective: one rank writes; others send it their parts. @errors GRV_E_NOMEM */
GRV_API grv_status grv_safetensors_writer_create(const char *path,
                                                 grv_safetensors_writer **writer) GRV_MUST_CHECK;
/** Adds a text to the metadata. Before the first write. Not collective.
 * @errors GRV_E_ARG for a key that is there or a call that is too late, GRV_E_NOMEM */
GRV_API grv_status grv_safetensors_writer_set_metadata(grv_safetensors_writer *writer,
                                                       const char *key,
                                                       const char *value) GRV_MUST_CHECK;
/** Adds a tensor. Before the first write. Not collective.
 * @param name  not empty, copied
 * @param shape  [n_dims], each >= 0
 * @param index  number of the tensor for grv_safetensors_writer_write: 0, 1, ... in the order of calls
 * @errors GRV_E_ARG for a name that is there, a bad shape or a call that is too late, GRV_E_NOMEM */
GRV_API grv_status grv_safetensors_writer_declare(grv_safetensors_writer *writer, const char *name,
                                                  grv_safetensors_dtype dtype, int n_dims,
                                                  const int64_t *shape,
                                                  int64_t *index) GRV_MUST_CHECK;
/** Writes a part of a tensor. Each byte is to be written once; that is counted.
 * @param offset  of the part in bytes from the tensor's first element
 * Not collective. @errors GRV_E_ARG for a part outside of the tensor, GRV_E_IO */
GRV_API grv_status grv_safetensors_writer_write(grv_safetensors_writer *writer, int64_t index,
                                                int64_t offset, int64_t bytes,
                                                const void *data) GRV_MUST_CHECK;
/** Completes the file and gives it its name, replacing an older one. The writer can only be destroyed afterwards.
 * @param durable  fsync before
 * Not collective. @errors GRV_E_ARG if a tensor is incomplete or the file was published before, GRV_E_IO */
GRV_API grv_status grv_safetensors_writer_publish(grv_safetensors_writer *writer,
                                                  bool durable) GRV_MUST_CHECK;
/** Frees it and sets *writer to NULL; NULL is allowed. An unpublished file is removed. Not collective. */
GRV_API void grv_safetensors_writer_destroy(grv_safetensors_writer **writer);

#ifdef __cplusplus
}
#endif
#endif
