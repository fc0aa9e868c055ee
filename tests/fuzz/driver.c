/* Runs a fuzz target over the files of a corpus folder, where libFuzzer is not linked in. */
#include <gio/gio.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        g_autoptr(GDir) dir = g_dir_open(argv[i], 0, NULL);
        const char *name;
        while (dir && (name = g_dir_read_name(dir))) {
            g_autofree char *path = g_build_filename(argv[i], name, NULL);
            g_autofree char *text = NULL;
            gsize length = 0;
            if (g_file_get_contents(path, &text, &length, NULL)) {
                LLVMFuzzerTestOneInput((const uint8_t *)text, length);
                n++;
            }
        }
    }
    printf("%d inputs\n", n);
    return n == 0;
}
