/* grove info: what this build is and what it runs on. */
#include <stdio.h>

#include "cli/cli.h"
#include "core/json.h"
#include "core/text.h"
#include "grove/core.h"
#include "kernels/isa.h"

static void append_usable_isas(grvi_text *out, grvi_json_writer *w)
{
    for (int isa = 0; isa < GRVI_ISA_COUNT; isa++) {
        if (!grvi_isa_usable((grvi_isa)isa)) continue;
        const char *const name = grvi_isa_name((grvi_isa)isa);
        if (w != NULL)
            grvi_json_string(w, name);
        else
            grvi_text_printf(out, "%s%s", out->n > 0 ? ", " : "", name);
    }
}

static grv_status print_text(void)
{
    grvi_text isas = {0};
    int n = 0;
    const grv_library *const libraries = grv_libraries(&n);
    append_usable_isas(&isas, NULL);
    (void)printf("grove %s (%s)\n", grv_version(), grv_git_hash());
    (void)printf("  compiler         %s, %s\n", grv_compiler(), grv_build_type());
    (void)printf("  libraries        ");
    for (int i = 0; i < n; i++)
        (void)printf("%s%s %s", i > 0 ? ", " : "", libraries[i].name, libraries[i].version);
    (void)printf("\n  instruction set  %s (usable: %s; GROVE_ISA chooses)\n",
                 grvi_isa_name(grvi_isa_chosen()), grvi_text_get(&isas));
    (void)printf("  threads          %d\n", grv_threads_available());
    const grv_status status = grvi_text_status(&isas);
    grvi_text_fini(&isas);
    return status;
}

static void write_member(grvi_json_writer *w, const char *key, const char *value)
{
    grvi_json_key(w, key);
    grvi_json_string(w, value);
}

static grv_status print_json(void)
{
    grvi_text out = {0};
    grvi_json_writer w = {.out = &out, .pretty = true};
    int n = 0;
    const grv_library *const libraries = grv_libraries(&n);
    grvi_json_begin_object(&w);
    write_member(&w, "version", grv_version());
    write_member(&w, "git_hash", grv_git_hash());
    write_member(&w, "compiler", grv_compiler());
    write_member(&w, "build_type", grv_build_type());
    grvi_json_key(&w, "libraries");
    grvi_json_begin_object(&w);
    for (int i = 0; i < n; i++) write_member(&w, libraries[i].name, libraries[i].version);
    grvi_json_end_object(&w);
    write_member(&w, "instruction_set", grvi_isa_name(grvi_isa_chosen()));
    grvi_json_key(&w, "usable_instruction_sets");
    grvi_json_begin_array(&w);
    append_usable_isas(NULL, &w);
    grvi_json_end_array(&w);
    grvi_json_key(&w, "threads");
    grvi_json_i64(&w, grv_threads_available());
    grvi_json_end_object(&w);
    (void)printf("%s\n", grvi_text_get(&out));
    const grv_status status = grvi_text_status(&out);
    grvi_text_fini(&out);
    return status;
}

int grvc_info(int argc, char **argv)
{
    grvc_session session = {.name = "grove info",
                            .about = "Prints version, build, libraries, the instruction set that "
                                     "kernels use, and the threads available."};
    const int code = grvc_begin(&session, argc, argv);
    if (code != GRVC_CONTINUE) return code;
    return grvc_end(&session, session.json ? print_json() : print_text());
}
