/* Any text as a file of a GPU's constants: it is refused with a message, or what is printed of it
 * is read back as the same. */
#include <stdint.h>

#include "models/prices/calibration.h"
#include "tests/unit/fixtures/interned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(ZpCalibration) calibration = zp_calibration_parse(text, &error);
    if (calibration == NULL) {
        g_assert_cmpint(error->domain, ==, ZP_CALIBRATION_ERROR);
        return 0;
    }
    g_assert_no_error(error);
    g_autofree char *printed = zp_calibration_print(calibration, "measured\nby nobody");
    g_autoptr(ZpCalibration) back = zp_calibration_parse(printed, &error);
    g_assert_no_error(error);
    g_autofree char *again = zp_calibration_print(back, "measured\nby nobody");
    g_assert_cmpstr(again, ==, printed);
    return 0;
}
