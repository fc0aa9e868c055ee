#include "models/families/trees/expression.h"

#include <string.h>

typedef enum {
    OP_VALUE,
    OP_SYMBOL,
    OP_NOT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MODULO,
    OP_ADD,
    OP_SUBTRACT,
    OP_EQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_AND,
    OP_OR,
} Op;

typedef struct {
    Op op;
    gint64 value; /* OP_VALUE: the number; OP_SYMBOL: the index */
} Instr;

enum { MAX_STACK = 32 };

enum { STATE_ABSENT, STATE_SET, STATE_NULL };

ZpSymbols *
zp_symbols_new(void)
{
    ZpSymbols *symbols = g_new0(ZpSymbols, 1);
    symbols->index = g_hash_table_new(g_str_hash, g_str_equal);
    symbols->names = g_ptr_array_new_with_free_func(g_free);
    symbols->values = g_array_new(FALSE, TRUE, sizeof(gint64));
    symbols->state = g_byte_array_new();
    return symbols;
}

void
zp_symbols_free(ZpSymbols *symbols)
{
    if (symbols == NULL)
        return;
    g_hash_table_unref(symbols->index);
    g_ptr_array_unref(symbols->names);
    g_array_unref(symbols->values);
    g_byte_array_unref(symbols->state);
    g_free(symbols);
}

gint32
zp_symbols_index(ZpSymbols *symbols, const char *name)
{
    gint32 found = GPOINTER_TO_INT(g_hash_table_lookup(symbols->index, name));
    if (found > 0)
        return found - 1;
    char *copy = g_strdup(name);
    gint64 zero = 0;
    guint8 unset = STATE_ABSENT;
    g_ptr_array_add(symbols->names, copy);
    g_array_append_val(symbols->values, zero);
    g_byte_array_append(symbols->state, &unset, 1);
    g_hash_table_insert(symbols->index, copy, GINT_TO_POINTER((gint32)symbols->names->len));
    return (gint32)symbols->names->len - 1;
}

void
zp_symbols_set(ZpSymbols *symbols, const char *name, gint64 value)
{
    guint index = (guint)zp_symbols_index(symbols, name);
    g_array_index(symbols->values, gint64, index) = value;
    symbols->state->data[index] = STATE_SET;
}

gint64
zp_symbols_get(const ZpSymbols *symbols, const char *name)
{
    gint32 found = GPOINTER_TO_INT(g_hash_table_lookup(symbols->index, name));
    return found > 0 ? g_array_index(symbols->values, gint64, found - 1) : 0;
}

static guint8
state(const ZpSymbols *symbols, const char *name)
{
    gint32 found = GPOINTER_TO_INT(g_hash_table_lookup(symbols->index, name));
    return found > 0 ? symbols->state->data[found - 1] : STATE_ABSENT;
}

void
zp_symbols_set_null(ZpSymbols *symbols, const char *name)
{
    gint32 index = zp_symbols_index(symbols, name);
    symbols->state->data[index] = STATE_NULL;
}

gboolean
zp_symbols_is_absent(const ZpSymbols *symbols, const char *name)
{
    return state(symbols, name) == STATE_ABSENT;
}

gboolean
zp_symbols_is_set(const ZpSymbols *symbols, const char *name)
{
    return state(symbols, name) == STATE_SET;
}

ZpExpressions *
zp_expressions_new(ZpSymbols *symbols)
{
    ZpExpressions *expressions = g_new0(ZpExpressions, 1);
    expressions->symbols = symbols;
    expressions->code = g_array_new(FALSE, FALSE, sizeof(Instr));
    return expressions;
}

void
zp_expressions_free(ZpExpressions *expressions)
{
    if (expressions == NULL)
        return;
    g_array_unref(expressions->code);
    g_free(expressions);
}

static void
emit(ZpExpressions *expressions, Op op, gint64 value)
{
    Instr instr = {op, value};
    g_array_append_val(expressions->code, instr);
}

static gboolean compile_level(ZpExpressions *expressions, const char **text, int level, int depth);

static gboolean
compile_atom(ZpExpressions *expressions, const char **text, int depth)
{
    const char *p = *text;
    if (*p == '!') {
        *text = p + 1;
        if (!compile_atom(expressions, text, depth + 1))
            return FALSE;
        emit(expressions, OP_NOT, 0);
        return TRUE;
    }
    if (*p == '(') {
        *text = p + 1;
        if (!compile_level(expressions, text, 0, depth + 1) || **text != ')')
            return FALSE;
        (*text)++;
        return TRUE;
    }
    if (g_ascii_isdigit(*p)) {
        char *end = NULL;
        emit(expressions, OP_VALUE, g_ascii_strtoll(p, &end, 10));
        *text = end;
        return TRUE;
    }
    char name[64];
    gsize n = 0;
    while ((g_ascii_isalnum(p[n]) || p[n] == '_') && n < sizeof name - 1) {
        name[n] = p[n];
        n++;
    }
    if (n == 0)
        return FALSE;
    name[n] = '\0';
    *text = p + n;
    emit(expressions, OP_SYMBOL, zp_symbols_index(expressions->symbols, name));
    return TRUE;
}

/* Binary operators by level, the loosest first; longer spellings before their prefixes. */
static const struct {
    const char *text;
    int level;
    Op op;
} operators[] = {
    {"|", 0, OP_OR},          {"&", 1, OP_AND},    {"==", 2, OP_EQUAL},
    {"<=", 2, OP_LESS_EQUAL}, {"<", 2, OP_LESS},   {">=", 2, OP_GREATER_EQUAL},
    {">", 2, OP_GREATER},     {"+", 3, OP_ADD},    {"-", 3, OP_SUBTRACT},
    {"*", 4, OP_MULTIPLY},    {"/", 4, OP_DIVIDE}, {"%", 4, OP_MODULO},
};

static gboolean
compile_level(ZpExpressions *expressions, const char **text, int level, int depth)
{
    if (depth > MAX_STACK / 2)
        return FALSE;
    if (level > 4)
        return compile_atom(expressions, text, depth);
    if (!compile_level(expressions, text, level + 1, depth))
        return FALSE;
    for (;;) {
        gsize found = 0;
        while (found < G_N_ELEMENTS(operators) &&
               !(operators[found].level == level && g_str_has_prefix(*text, operators[found].text)))
            found++;
        if (found == G_N_ELEMENTS(operators))
            return TRUE;
        *text += strlen(operators[found].text);
        if (!compile_level(expressions, text, level + 1, depth))
            return FALSE;
        emit(expressions, operators[found].op, 0);
    }
}

gboolean
zp_expressions_compile(ZpExpressions *expressions, const char *text, const char **end,
                       ZpExpression *expression)
{
    expression->first = expressions->code->len;
    *end = text;
    if (!compile_level(expressions, end, 0, 0)) {
        g_array_set_size(expressions->code, expression->first);
        expression->length = 0;
        return FALSE;
    }
    expression->length = expressions->code->len - expression->first;
    return TRUE;
}

static gboolean
apply(Op op, gint64 a, gint64 b, gint64 *result)
{
    switch (op) {
    case OP_MULTIPLY:
        return !__builtin_mul_overflow(a, b, result);
    case OP_ADD:
        return !__builtin_add_overflow(a, b, result);
    case OP_SUBTRACT:
        return !__builtin_sub_overflow(a, b, result);
    case OP_DIVIDE:
    case OP_MODULO:
        if (b == 0 || (a == G_MININT64 && b == -1))
            return FALSE;
        *result = op == OP_DIVIDE ? a / b : a % b;
        return TRUE;
    case OP_EQUAL:
        *result = a == b;
        return TRUE;
    case OP_LESS:
        *result = a < b;
        return TRUE;
    case OP_LESS_EQUAL:
        *result = a <= b;
        return TRUE;
    case OP_GREATER:
        *result = a > b;
        return TRUE;
    case OP_GREATER_EQUAL:
        *result = a >= b;
        return TRUE;
    case OP_AND:
        *result = a != 0 && b != 0;
        return TRUE;
    case OP_OR:
        *result = a != 0 || b != 0;
        return TRUE;
    case OP_VALUE:
    case OP_SYMBOL:
    case OP_NOT:
        break;
    }
    g_assert_not_reached();
}

gboolean
zp_expressions_eval(const ZpExpressions *expressions, ZpExpression expression, gint64 *value)
{
    gint64 stack[MAX_STACK] = {0};
    gsize n = 0;
    const Instr *code = &g_array_index(expressions->code, Instr, 0);
    *value = 0;
    for (guint32 i = expression.first; i < expression.first + expression.length; i++) {
        if (code[i].op == OP_VALUE || code[i].op == OP_SYMBOL) {
            if (n == MAX_STACK)
                return FALSE;
            stack[n++] = code[i].op == OP_VALUE
                             ? code[i].value
                             : g_array_index(expressions->symbols->values, gint64, code[i].value);
        } else if (code[i].op == OP_NOT) {
            g_assert(n >= 1);
            stack[n - 1] = stack[n - 1] == 0;
        } else {
            g_assert(n >= 2);
            n--;
            if (!apply(code[i].op, stack[n - 1], stack[n], &stack[n - 1]))
                return FALSE;
        }
    }
    g_assert(n == 1);
    *value = stack[0];
    return TRUE;
}
