#include "tools/manual.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/imports/deepspeed/config.h"
#include "scenarios/imports/huggingface/config.h"
#include "scenarios/language/schema.h"
#include "tools/table.h"

char *
zp_manual_overview(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    gsize n = 0;
    const ZpCommand *const *commands = zp_table_commands(&n);
    g_string_append(out, "zeropeak simulates training steps under ZeRO: when, why and how high a "
                         "rank's memory\npeaks, how long the step takes, and which knob moves "
                         "it.\n\nUsage: zeropeak COMMAND [OPTION...] [ARGUMENT...]\n\nCommands:\n");
    for (gsize i = 0; i < n; i++)
        g_string_append_printf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    g_string_append(out, "\n'zeropeak COMMAND --help' tells more; 'zeropeak explain' lists the "
                         "keys of a scenario file.\n");
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *
zp_manual_command_text(const ZpCommand *command)
{
    g_autoptr(GString) out = g_string_new(command->description);
    g_string_append(out, "\n\nExamples:\n");
    for (gsize i = 0; command->examples[i] != NULL; i++)
        g_string_append_printf(out, "  %s\n", command->examples[i]);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* troff text: backslashes, hyphens and leading dots are special. */
static void
append_troff(GString *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\\')
            g_string_append(out, "\\e");
        else if (*c == '-')
            g_string_append(out, "\\-");
        else if ((*c == '.' || *c == '\'') && (c == text || c[-1] == '\n')) {
            g_string_append(out, "\\&");
            g_string_append_c(out, *c);
        } else
            g_string_append_c(out, *c);
    }
}

static void
append_command(GString *out, const ZpCommand *command)
{
    g_string_append(out, ".SS ");
    append_troff(out, command->name);
    g_string_append_c(out, ' ');
    append_troff(out, command->arguments);
    g_string_append_c(out, '\n');
    append_troff(out, command->description);
    g_string_append_c(out, '\n');
    for (const ZpCommandOption *option = command->options; option->name != NULL; option++) {
        g_string_append(out, ".TP\n\\fB");
        if (option->letter != 0)
            g_string_append_printf(out, "\\-%c\\fR, \\fB", option->letter);
        g_string_append(out, "\\-\\-");
        append_troff(out, option->name);
        g_string_append(out, "\\fR");
        if (option->argument != NULL) {
            g_string_append(out, "=\\fI");
            append_troff(out, option->argument);
            g_string_append(out, "\\fR");
        }
        g_string_append_c(out, '\n');
        append_troff(out, option->help);
        g_string_append_c(out, '\n');
    }
}

static void
append_keys(GString *out)
{
    const char *section = NULL;
    gsize n = 0;
    const ZpSchemaKey *keys = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        if (g_strcmp0(section, keys[i].section) != 0) {
            section = keys[i].section;
            g_string_append_printf(out, ".SS [%s]\n", section);
        }
        g_autofree char *text = zp_schema_explain(&keys[i]);
        g_string_append(out, ".TP\n\\fB");
        append_troff(out, keys[i].key);
        g_string_append(out, "\\fR\n");
        append_troff(out, text);
        g_string_append(out, "\n");
    }
}

static void
append_exits(GString *out)
{
    gsize n = 0;
    const ZpCommandExit *exits = zp_command_exits(&n);
    g_string_append(out, ".SH EXIT STATUS\n");
    for (gsize i = 0; i < n; i++) {
        g_string_append_printf(out, ".TP\n.B %d\n", (int)exits[i].code);
        append_troff(out, exits[i].meaning);
        g_string_append_c(out, '\n');
    }
}

char *
zp_manual_page(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    gsize n = 0;
    const ZpCommand *const *commands = zp_table_commands(&n);
    g_string_append_printf(out, ".TH ZEROPEAK 1 \"\" \"zeropeak %s\" \"User Commands\"\n",
                           ZP_VERSION);
    g_string_append(out,
                    ".SH NAME\nzeropeak \\- memory and time of a training step under ZeRO, "
                    "simulated event by event\n.SH SYNOPSIS\n.B zeropeak\n\\fICOMMAND\\fR "
                    "[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n.SH DESCRIPTION\n"
                    "zeropeak replays a training step layer by layer (all\\-gathers, "
                    "reduce\\-scatters, prefetches, allocations) against modelled devices "
                    "and links, and records memory and time of every instant.\n.SH COMMANDS\n");
    for (gsize i = 0; i < n; i++)
        append_command(out, commands[i]);
    g_string_append(out, ".SH SCENARIO KEYS\n");
    append_keys(out);
    append_exits(out);
    g_string_append(out, ".SH EXAMPLES\n");
    for (gsize i = 0; i < n; i++) {
        for (gsize e = 0; commands[i]->examples[e] != NULL; e++) {
            g_string_append(out, ".PP\n.nf\n");
            append_troff(out, commands[i]->examples[e]);
            g_string_append(out, "\n.fi\n");
        }
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *
zp_manual_completion(void)
{
    g_autoptr(GString) out = g_string_new("# bash completion for zeropeak\n_zeropeak()\n{\n"
                                          "    local word=${COMP_WORDS[COMP_CWORD]}\n"
                                          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                                          "        COMPREPLY=($(compgen -W \"");
    gsize n = 0;
    const ZpCommand *const *commands = zp_table_commands(&n);
    for (gsize i = 0; i < n; i++)
        g_string_append_printf(out, "%s ", commands[i]->name);
    g_string_append(out, "--help --version\" -- \"$word\"))\n        return\n    fi\n"
                         "    case ${COMP_WORDS[1]} in\n");
    for (gsize i = 0; i < n; i++) {
        g_string_append_printf(out, "    %s) local options=\"", commands[i]->name);
        for (const ZpCommandOption *option = commands[i]->options; option->name; option++)
            g_string_append_printf(out, "--%s ", option->name);
        if (strcmp(commands[i]->name, "explain") == 0) {
            gsize n_keys = 0;
            const ZpSchemaKey *keys = zp_schema_table(&n_keys);
            for (gsize k = 0; k < n_keys; k++)
                g_string_append_printf(out, "%s.%s ", keys[k].section, keys[k].key);
        }
        g_string_append(out, "--help\" ;;\n");
    }
    g_string_append(out, "    *) return ;;\n    esac\n"
                         "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\") "
                         "$(compgen -f -- \"$word\"))\n}\n"
                         "complete -o filenames -F _zeropeak zeropeak\n");
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *
zp_manual_imports(void)
{
    g_autofree char *families = zp_hf_families_markdown();
    g_autofree char *keys = zp_ds_config_markdown();
    return g_strconcat(
        "# Files that are read as they are\n\n"
        "Printed by `zeropeak --generate-imports` from the tables that the importers use; a test "
        "fails "
        "when this\npage is not what the program prints.\n\n## Model families (config.json)\n\n",
        families, "\n## DeepSpeed keys (ds_config.json)\n\n", keys, NULL);
}

gboolean
zp_manual_generate(const char *argument)
{
    g_autofree char *text = NULL;
    if (strcmp(argument, "--generate-man") == 0)
        text = zp_manual_page();
    else if (strcmp(argument, "--generate-completion") == 0)
        text = zp_manual_completion();
    else if (strcmp(argument, "--generate-imports") == 0)
        text = zp_manual_imports();
    if (text == NULL)
        return FALSE;
    fputs(text, stdout);
    return TRUE;
}
