/* Reads what the fetch path needs of an HTML page in one pass over its bytes, without a tree.
 *
 * scan(html, agent, references, shortened) -> (title, base, canonical, language, robots, links), or a word: why a tree is needed.
 *
 * The tokenizer follows the WHATWG standard. Where tree construction could drop, move or rename one of the elements
 * that count, the scan stops and names the reason; content/document.py then reads the page. The reasons:
 *
 *   template, frameset, plaintext, select   their content follows rules of its own
 *   table        an element that counts stands directly in a table: the tree has it before the table
 *   foreign      unusual content of <svg> or <math>: HTML elements, integration points, CDATA, unmatched end tags
 *   script       an escaped script that contains another one
 *   refresh      <meta http-equiv="refresh">
 *   attribute    a compared attribute (rel, name, http-equiv) is not plain ASCII, or has character references
 *   limits       the page is beyond the limits of content/parser_limits.py
 *
 * Time is linear in the page: every loop moves forward, and the tables have fixed sizes. The GIL is held: a page of
 * 20 KB takes 20 to 40 microseconds.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef unsigned char byte;

/* ---- names ---- */

enum kind {
    OTHER, LINKED /* a, area */, LINK, BASE, META, TITLE, IFRAME, HTML, RAW, SCRIPT, FOREIGN_ROOT, OPTION, SELECT,
    TABLE, TABLE_PART, CELL, TEMPLATE, FRAMESET, PLAINTEXT, GROUP /* g, defs, symbol */
};

/* The sets of content/parser_limits.py; tests/content/test_page_scan.py compares them. */
#define NEVER_DEEP 0x100
#define FORMATTING 0x200
#define REBUILDS 0x400
/* May stand in <svg> or <math> without ending it. */
#define IN_FOREIGN 0x800
/* In <svg> or <math>: only text up to its own end tag. */
#define ONLY_TEXT 0x1000
#define KIND(flags) ((flags) & 0xff)

typedef struct { const char *name; unsigned flags; } Name;

static const Name NAMES[] = {
    {"a", LINKED | FORMATTING | IN_FOREIGN}, {"area", LINKED | NEVER_DEEP}, {"link", LINK | NEVER_DEEP},
    {"base", BASE | NEVER_DEEP}, {"meta", META | NEVER_DEEP}, {"title", TITLE | IN_FOREIGN | ONLY_TEXT},
    {"iframe", IFRAME}, {"html", HTML | NEVER_DEEP}, {"script", SCRIPT}, {"style", RAW | IN_FOREIGN},
    {"textarea", RAW}, {"xmp", RAW}, {"noembed", RAW}, {"noframes", RAW}, {"svg", FOREIGN_ROOT | IN_FOREIGN},
    {"math", FOREIGN_ROOT}, {"select", SELECT}, {"option", OPTION | NEVER_DEEP}, {"optgroup", OPTION | NEVER_DEEP},
    {"table", TABLE | REBUILDS}, {"tr", TABLE_PART | NEVER_DEEP | REBUILDS}, {"tbody", TABLE_PART | NEVER_DEEP},
    {"thead", TABLE_PART | NEVER_DEEP}, {"tfoot", TABLE_PART | NEVER_DEEP}, {"col", TABLE_PART | NEVER_DEEP},
    {"colgroup", TABLE_PART | NEVER_DEEP}, {"td", CELL | NEVER_DEEP | REBUILDS}, {"th", CELL | NEVER_DEEP | REBUILDS},
    {"caption", CELL | NEVER_DEEP}, {"template", TEMPLATE}, {"frameset", FRAMESET}, {"frame", FRAMESET | NEVER_DEEP},
    {"plaintext", PLAINTEXT},
    /* no part in what is read, but in the limits */
    {"br", NEVER_DEEP}, {"embed", NEVER_DEEP}, {"hr", NEVER_DEEP}, {"img", NEVER_DEEP}, {"input", NEVER_DEEP},
    {"param", NEVER_DEEP}, {"source", NEVER_DEEP}, {"track", NEVER_DEEP}, {"wbr", NEVER_DEEP}, {"rb", NEVER_DEEP},
    {"rt", NEVER_DEEP}, {"rtc", NEVER_DEEP}, {"rp", NEVER_DEEP}, {"head", NEVER_DEEP}, {"body", NEVER_DEEP},
    {"p", NEVER_DEEP | REBUILDS}, {"li", NEVER_DEEP | REBUILDS}, {"dd", NEVER_DEEP | REBUILDS},
    {"dt", NEVER_DEEP | REBUILDS}, {"b", FORMATTING}, {"big", FORMATTING}, {"code", FORMATTING}, {"em", FORMATTING},
    {"font", FORMATTING}, {"i", FORMATTING}, {"nobr", FORMATTING}, {"s", FORMATTING}, {"small", FORMATTING},
    {"strike", FORMATTING}, {"strong", FORMATTING}, {"tt", FORMATTING}, {"u", FORMATTING}, {"div", REBUILDS},
    {"h1", REBUILDS}, {"h2", REBUILDS}, {"h3", REBUILDS}, {"h4", REBUILDS}, {"h5", REBUILDS}, {"h6", REBUILDS},
    {"ul", REBUILDS}, {"ol", REBUILDS}, {"dl", REBUILDS}, {"section", REBUILDS}, {"article", REBUILDS},
    {"blockquote", REBUILDS}, {"span", 0},
    /* SVG */
    {"image", NEVER_DEEP | IN_FOREIGN}, {"path", NEVER_DEEP | IN_FOREIGN}, {"circle", NEVER_DEEP | IN_FOREIGN},
    {"rect", NEVER_DEEP | IN_FOREIGN}, {"use", NEVER_DEEP | IN_FOREIGN}, {"line", NEVER_DEEP | IN_FOREIGN},
    {"polygon", NEVER_DEEP | IN_FOREIGN}, {"polyline", NEVER_DEEP | IN_FOREIGN}, {"ellipse", NEVER_DEEP | IN_FOREIGN},
    {"stop", NEVER_DEEP | IN_FOREIGN}, {"g", GROUP | IN_FOREIGN}, {"defs", GROUP | IN_FOREIGN}, {"symbol", GROUP | IN_FOREIGN},
    {"lineargradient", IN_FOREIGN}, {"radialgradient", IN_FOREIGN}, {"clippath", IN_FOREIGN}, {"mask", IN_FOREIGN},
    {"pattern", IN_FOREIGN}, {"filter", IN_FOREIGN}, {"text", IN_FOREIGN}, {"tspan", IN_FOREIGN},
    {"textpath", IN_FOREIGN}, {"marker", IN_FOREIGN}, {"animate", IN_FOREIGN}, {"animatetransform", IN_FOREIGN},
    {"animatemotion", IN_FOREIGN}, {"set", IN_FOREIGN}, {"fegaussianblur", IN_FOREIGN}, {"feoffset", IN_FOREIGN},
    {"feblend", IN_FOREIGN}, {"feflood", IN_FOREIGN}, {"fecolormatrix", IN_FOREIGN}, {"fecomposite", IN_FOREIGN},
    {"femerge", IN_FOREIGN}, {"femergenode", IN_FOREIGN}, {"desc", IN_FOREIGN | ONLY_TEXT},
    /* MathML */
    {"mrow", IN_FOREIGN}, {"mi", IN_FOREIGN | ONLY_TEXT}, {"mo", IN_FOREIGN | ONLY_TEXT},
    {"mn", IN_FOREIGN | ONLY_TEXT}, {"mtext", IN_FOREIGN | ONLY_TEXT}, {"ms", IN_FOREIGN | ONLY_TEXT},
    {"mspace", IN_FOREIGN}, {"msup", IN_FOREIGN}, {"msub", IN_FOREIGN}, {"msubsup", IN_FOREIGN},
    {"mfrac", IN_FOREIGN}, {"msqrt", IN_FOREIGN}, {"mroot", IN_FOREIGN}, {"mover", IN_FOREIGN},
    {"munder", IN_FOREIGN}, {"munderover", IN_FOREIGN}, {"mtable", IN_FOREIGN}, {"mtr", IN_FOREIGN},
    {"mtd", IN_FOREIGN}, {"mstyle", IN_FOREIGN}, {"mpadded", IN_FOREIGN}, {"semantics", IN_FOREIGN},
    {"annotation", IN_FOREIGN},
};
#define NAME_COUNT ((int)(sizeof NAMES / sizeof NAMES[0]))
#define LONGEST_NAME 16
#define SLOTS 512 /* a power of two, more than twice the number of names */

static int16_t name_slots[SLOTS]; /* index into NAMES, or -1 */
static byte name_length[sizeof NAMES / sizeof NAMES[0]];
static byte lower[256];
static byte char_class[256];
#define BLANK 1    /* tab, LF, FF, CR, space */
#define TAG_END 2  /* blank / > */
#define ATTR_END 4 /* blank / > = */
#define VALUE_END 8 /* blank > */
#define PLAIN_NAME 16 /* [A-Za-z0-9-] */
#define PY_SPACE 32 /* ASCII characters that str.split() separates at */
#define ODD_VALUE 64 /* & CR NUL */
#define IS(c, what) (char_class[c] & (what))
#define ALPHA(c) ((unsigned)(lower[c] - 'a') < 26)

static unsigned hash_of(const byte *name, Py_ssize_t n)
{
    uint32_t h = 2166136261u;
    for (Py_ssize_t i = 0; i < n; i++) h = (h ^ lower[name[i]]) * 16777619u;
    return h ^ (h >> 15);
}

static int same(const byte *text, const char *name, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (lower[text[i]] != (byte)name[i]) return 0;
    return 1;
}

static int find_name(const byte *name, Py_ssize_t n, unsigned h)
{
    if (n > LONGEST_NAME) return -1;
    for (unsigned at = h & (SLOTS - 1);; at = (at + 1) & (SLOTS - 1)) {
        int found = name_slots[at];
        if (found < 0 || (name_length[found] == n && same(name, NAMES[found].name, n))) return found;
    }
}

static void fill_tables(void)
{
    for (int c = 0; c < 256; c++) {
        lower[c] = (byte)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        int is_blank = c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == ' ';
        int is_alnum = (c >= '0' && c <= '9') || (lower[c] >= 'a' && lower[c] <= 'z');
        char_class[c] = (byte)((is_blank ? BLANK : 0) | (is_blank || c == '/' || c == '>' ? TAG_END : 0)
            | (is_blank || c == '/' || c == '>' || c == '=' ? ATTR_END : 0) | (is_blank || c == '>' ? VALUE_END : 0)
            | (is_alnum || c == '-' ? PLAIN_NAME : 0)
            | ((c >= 9 && c <= 13) || (c >= 28 && c <= 32) ? PY_SPACE : 0)
            | (c == '&' || c == '\r' || c == 0 ? ODD_VALUE : 0));
    }
    memset(name_slots, 0xff, sizeof name_slots);
    for (int i = 0; i < NAME_COUNT; i++) {
        Py_ssize_t n = (Py_ssize_t)strlen(NAMES[i].name);
        unsigned at = hash_of((const byte *)NAMES[i].name, n) & (SLOTS - 1);
        while (name_slots[at] >= 0) at = (at + 1) & (SLOTS - 1);
        name_slots[at] = (int16_t)i;
        name_length[i] = (byte)n;
    }
}

/* ---- the state of a scan ---- */

enum slot { HREF, SRC, REL, NAME, CONTENT, HTTP_EQUIV, LANG, SLOT_COUNT };
enum { ABSENT, NO_VALUE, VALUE };

typedef struct { const byte *at; Py_ssize_t n; int state; } Attribute;

typedef struct {
    const byte *name;
    Py_ssize_t name_n;
    const byte *end; /* after the ">" */
    int is_self_closing;
    Py_ssize_t own_n; /* length without the values of attributes */
    Attribute attributes[SLOT_COUNT];
} Tag;

/* The limits of content/parser_limits.py. */
#define MAX_DEPTH 1000
#define MAX_TAGS 300000
#define MAX_REBUILT 1000000
#define MAX_TAG_BYTES 8192

#define UNKNOWN_NAMES 64
#define MAX_TABLES 256
#define MAX_FOREIGN 128

typedef struct { const byte *name; Py_ssize_t n; unsigned h; int open; } Unknown;

typedef struct {
    const byte *at, *end;
    const byte *agent;
    Py_ssize_t agent_n;
    PyObject *references, *shortened; /* functions of content/page_scan.py */
    const char *reason; /* why a tree is needed */

    PyObject *title, *base, *canonical, *language, *robots, *links;
    int has_language;
    byte *scratch;
    Py_ssize_t scratch_n;

    /* open tables: whether the innermost part of each is a cell or caption, where content is ordinary */
    byte in_cell[MAX_TABLES];
    int tables;
    int in_select;
    /* open elements of <svg> or <math>, as indices into NAMES */
    int16_t foreign[MAX_FOREIGN];
    int foreign_n;

    /* counts for the limits */
    int opened[sizeof NAMES / sizeof NAMES[0]];
    Unknown unknown[UNKNOWN_NAMES];
    int unknown_n;
    long depth, formatting, rebuilt, starts;
} Scan;

static int needs_tree(Scan *s, const char *reason)
{
    s->reason = reason;
    return 0;
}

/* ---- the tokenizer ---- */

static void keep(Tag *tag, const byte *name, Py_ssize_t n, const byte *value, Py_ssize_t value_n, int state)
{
    int slot = -1;
    switch (n) {
    case 3: slot = same(name, "src", 3) ? SRC : same(name, "rel", 3) ? REL : -1; break;
    case 4: slot = same(name, "href", 4) ? HREF : same(name, "name", 4) ? NAME : same(name, "lang", 4) ? LANG : -1; break;
    case 7: slot = same(name, "content", 7) ? CONTENT : -1; break;
    case 10: slot = same(name, "http-equiv", 10) ? HTTP_EQUIV : -1; break;
    default: break;
    }
    if (slot >= 0 && tag->attributes[slot].state == ABSENT)
        tag->attributes[slot] = (Attribute){value, value_n, state};
}

/* Reads the tag whose name begins at `at`. Returns 0 if the page ends within it: then it is none. */
static int read_tag(const byte *at, const byte *end, Tag *tag, int keeps)
{
    const byte *start = at;
    Py_ssize_t values_n = 0;
    tag->name = at;
    while (at < end && !IS(*at, TAG_END)) at++;
    tag->name_n = at - tag->name;
    tag->is_self_closing = 0;
    if (keeps) memset(tag->attributes, 0, sizeof tag->attributes);
    for (;;) {
        byte last = 0;
        while (at < end && (IS(*at, BLANK) || *at == '/')) last = *at++;
        if (at == end) return 0;
        if (*at == '>') {
            tag->is_self_closing = last == '/';
            tag->end = at + 1;
            tag->own_n = tag->end - start - values_n;
            return 1;
        }
        const byte *name = at++; /* a "=" in the first place is part of the name */
        while (at < end && !IS(*at, ATTR_END)) at++;
        Py_ssize_t name_n = at - name;
        while (at < end && IS(*at, BLANK)) at++;
        if (at == end) return 0;
        if (*at != '=') {
            if (keeps) keep(tag, name, name_n, at, 0, NO_VALUE);
            continue;
        }
        at++;
        while (at < end && IS(*at, BLANK)) at++;
        if (at == end) return 0;
        const byte *value = at;
        if (*at == '"' || *at == '\'') {
            const byte *quote = memchr(at + 1, *at, (size_t)(end - at - 1));
            if (quote == NULL) return 0;
            if (keeps) keep(tag, name, name_n, at + 1, quote - at - 1, VALUE);
            at = quote + 1;
        } else {
            while (at < end && !IS(*at, VALUE_END)) at++;
            if (at == end) return 0;
            if (keeps) keep(tag, name, name_n, value, at - value, at > value ? VALUE : NO_VALUE);
        }
        values_n += at - value;
    }
}

/* After "<!": the end of the comment, DOCTYPE or bogus comment; NULL if the page ends within it. */
static const byte *after_declaration(const byte *at, const byte *end)
{
    if (end - at < 2 || at[0] != '-' || at[1] != '-') {
        const byte *close = memchr(at, '>', (size_t)(end - at));
        return close == NULL ? NULL : close + 1;
    }
    at += 2;
    if (at < end && *at == '>') return at + 1;
    if (end - at >= 2 && at[0] == '-' && at[1] == '>') return at + 2;
    for (const byte *close = at; (close = memchr(close, '>', (size_t)(end - close))) != NULL; close++) {
        if (close - at >= 2 && close[-1] == '-' && close[-2] == '-') return close + 1;
        if (close - at >= 3 && close[-1] == '!' && close[-2] == '-' && close[-3] == '-') return close + 1;
    }
    return NULL;
}

/* Where the end tag of a text element begins; the end of the page if there is none. */
static const byte *text_end(const byte *at, const byte *end, const char *name, Py_ssize_t n)
{
    while ((at = memchr(at, '<', (size_t)(end - at))) != NULL) {
        if (end - at > n + 2 && at[1] == '/' && same(at + 2, name, n) && IS(at[n + 2], TAG_END)) return at;
        at++;
    }
    return end;
}

/* In an escaped script ("<!--") another "<script" hides the next end tag. */
static int may_be_double_escaped(const byte *at, const byte *end)
{
    int is_escaped = 0;
    while ((at = memchr(at, '<', (size_t)(end - at))) != NULL) {
        if (end - at >= 4 && at[1] == '!' && at[2] == '-' && at[3] == '-') is_escaped = 1;
        if (is_escaped && end - at >= 7 && same(at + 1, "script", 6)) return 1;
        at++;
    }
    return 0;
}

/* ---- values ---- */

static PyObject *text_of(Scan *s, const byte *at, Py_ssize_t n, int in_attribute)
{
    Py_ssize_t i = 0;
    while (i < n && !IS(at[i], ODD_VALUE)) i++;
    if (i == n) return PyUnicode_DecodeUTF8((const char *)at, n, "replace");
    /* at most 3 bytes for each: NUL becomes U+FFFD */
    if (s->scratch_n < n * 3) {
        byte *larger = PyMem_Realloc(s->scratch, (size_t)n * 3);
        if (larger == NULL) return PyErr_NoMemory();
        s->scratch = larger;
        s->scratch_n = n * 3;
    }
    byte *to = s->scratch;
    int has_references = 0;
    for (Py_ssize_t j = i; j < n && !has_references; j++)
        has_references = at[j] == '&' && (n - j < 5 || memcmp(at + j, "&amp;", 5) != 0);
    memcpy(to, at, (size_t)i);
    to += i;
    for (; i < n; i++) {
        if (at[i] == '\r') {
            if (i + 1 == n || at[i + 1] != '\n') *to++ = '\n';
        } else if (at[i] == 0) {
            memcpy(to, "\xef\xbf\xbd", 3);
            to += 3;
        } else {
            *to++ = at[i];
            if (at[i] == '&' && !has_references) i += 4;
        }
    }
    PyObject *text = PyUnicode_DecodeUTF8((const char *)s->scratch, to - s->scratch, "replace");
    if (text == NULL || !has_references) return text;
    PyObject *decoded = PyObject_CallFunction(s->references, "Oi", text, in_attribute);
    Py_DECREF(text);
    return decoded;
}

/* Whether a compared attribute can be compared as bytes. */
static int is_plain(const Attribute *a)
{
    for (Py_ssize_t i = 0; i < a->n; i++)
        if (a->at[i] >= 0x80 || a->at[i] == '&' || a->at[i] == 0) return 0;
    return 1;
}

/* Whether `word` is one of the words of the attribute, in any case. */
static int has_word(const Attribute *a, const char *word)
{
    Py_ssize_t n = (Py_ssize_t)strlen(word), at = 0;
    while (at < a->n) {
        while (at < a->n && IS(a->at[at], PY_SPACE)) at++;
        Py_ssize_t begin = at;
        while (at < a->n && !IS(a->at[at], PY_SPACE)) at++;
        if (at - begin == n && same(a->at + begin, word, n)) return 1;
    }
    return 0;
}

/* A link without blanks around it and without its fragment. White space before a fragment is not at the end of the
 * link, so the URL parser keeps it: such a link stays whole. */
static int add_link(Scan *s, const Attribute *a)
{
    if (a->state != VALUE || a->n == 0) return 1;
    PyObject *link;
    const byte *at = a->at;
    Py_ssize_t n = a->n, odd = 0, cut = -1;
    for (; odd < n && !IS(at[odd], ODD_VALUE); odd++)
        if (at[odd] == '#' && cut < 0) cut = odd;
    if (odd == n) {
        Py_ssize_t begin = 0;
        while (begin < n && IS(at[begin], BLANK)) begin++;
        while (n > begin && IS(at[n - 1], BLANK)) n--;
        if (begin == n) return 1;
        if (cut == begin || (cut > begin && at[cut - 1] > ' ')) n = cut;
        link = PyUnicode_DecodeUTF8((const char *)at + begin, n - begin, "replace");
    } else {
        PyObject *whole = text_of(s, at, n, 1);
        if (whole == NULL) return -1;
        link = PyObject_CallFunctionObjArgs(s->shortened, whole, NULL);
        Py_DECREF(whole);
        if (link == Py_None) {
            Py_DECREF(link);
            return 1;
        }
    }
    if (link == NULL) return -1;
    int failed = PyDict_SetItem(s->links, link, Py_None);
    Py_DECREF(link);
    return failed ? -1 : 1;
}

static int set_text(Scan *s, PyObject **to, const Attribute *a)
{
    *to = text_of(s, a->at, a->n, 1);
    return *to == NULL ? -1 : 1;
}

/* ---- elements: 1 to go on, 0 if a tree is needed, -1 with an exception set ---- */

static int read_meta(Scan *s, const Tag *tag)
{
    const Attribute *name = &tag->attributes[NAME], *equiv = &tag->attributes[HTTP_EQUIV];
    if (equiv->n == 7 && same(equiv->at, "refresh", 7)) return needs_tree(s, "refresh");
    if (!is_plain(name) || !is_plain(equiv)) return needs_tree(s, "attribute");
    const byte *at = name->at;
    Py_ssize_t n = name->n;
    while (n > 0 && IS(at[n - 1], PY_SPACE)) n--;
    while (n > 0 && IS(*at, PY_SPACE)) at++, n--;
    if (!(n == 6 && same(at, "robots", 6)) && !(n > 0 && n == s->agent_n && same(at, (const char *)s->agent, n))) return 1;
    PyObject *content = text_of(s, tag->attributes[CONTENT].at, tag->attributes[CONTENT].n, 1);
    if (content == NULL) return -1;
    int failed = PyList_Append(s->robots, content);
    Py_DECREF(content);
    return failed ? -1 : 1;
}

static int read_link(Scan *s, const Tag *tag)
{
    const Attribute *href = &tag->attributes[HREF], *rel = &tag->attributes[REL];
    if (href->state == ABSENT || rel->n == 0) return 1;
    if (!is_plain(rel)) return needs_tree(s, "attribute");
    int is_canonical = has_word(rel, "canonical");
    if (is_canonical && s->canonical == NULL && href->state == VALUE && set_text(s, &s->canonical, href) < 0) return -1;
    if (!is_canonical && !has_word(rel, "next") && !has_word(rel, "alternate")) return 1;
    if (has_word(rel, "nofollow") || has_word(rel, "stylesheet")) return 1;
    return add_link(s, href);
}

static int read_linked(Scan *s, const Tag *tag)
{
    const Attribute *rel = &tag->attributes[REL];
    if (tag->attributes[HREF].state == ABSENT) return 1;
    if (rel->n > 0) {
        if (!is_plain(rel)) return needs_tree(s, "attribute");
        if (has_word(rel, "nofollow")) return 1;
    }
    return add_link(s, &tag->attributes[HREF]);
}

static int read_html(Scan *s, const Tag *tag)
{
    const Attribute *language = &tag->attributes[LANG];
    if (s->has_language || language->state == ABSENT) return 1;
    s->has_language = 1;
    return language->state == VALUE ? set_text(s, &s->language, language) : 1;
}

/* The content of a text element, up to its end tag. */
static int read_text(Scan *s, int name)
{
    const byte *begin = s->at;
    s->at = text_end(begin, s->end, NAMES[name].name, name_length[name]);
    int kind = KIND(NAMES[name].flags);
    if (kind == SCRIPT && may_be_double_escaped(begin, s->at)) return needs_tree(s, "script");
    if (kind == TITLE && s->title == NULL) {
        s->title = text_of(s, begin, s->at - begin, 0);
        return s->title == NULL ? -1 : 1;
    }
    return 1;
}

/* The tag of an element in <svg> or <math>. `name` is -1 for one that the table lacks. */
static int read_foreign(Scan *s, const Tag *tag, int name, int is_end)
{
    unsigned flags = name < 0 ? 0 : NAMES[name].flags;
    int16_t top = s->foreign[s->foreign_n - 1];
    int in_text = (NAMES[top].flags & ONLY_TEXT) != 0;
    if (is_end) {
        int at = s->foreign_n - 1;
        while (at >= 0 && s->foreign[at] != name) at--;
        if (name < 0 || at < 0) return needs_tree(s, "foreign");
        s->foreign_n = at;
        return 1;
    }
    if (!(flags & IN_FOREIGN) || in_text || s->foreign_n == MAX_FOREIGN) return needs_tree(s, "foreign");
    /* The first <title> of a page may be that of a picture; the tree says whose it is. */
    if (KIND(flags) == TITLE && s->title == NULL) return needs_tree(s, "foreign");
    if (!tag->is_self_closing) s->foreign[s->foreign_n++] = (int16_t)name;
    return KIND(flags) == LINKED ? read_linked(s, tag) : 1;
}

static int read_start(Scan *s, const Tag *tag, int name)
{
    unsigned kind = name < 0 ? OTHER : KIND(NAMES[name].flags);
    if (s->in_select && kind != OPTION) return needs_tree(s, "select");
    if (kind == OTHER || kind == OPTION) return 1;
    int in_structure = s->tables > 0 && !s->in_cell[s->tables - 1];
    switch (kind) {
    case TABLE:
        if (!in_structure) {
            if (s->tables == MAX_TABLES) return needs_tree(s, "limits");
            s->tables++;
        }
        s->in_cell[s->tables - 1] = 0;
        return 1;
    case TABLE_PART:
    case CELL:
        if (s->tables > 0) s->in_cell[s->tables - 1] = kind == CELL;
        return 1;
    case RAW:
    case SCRIPT: return read_text(s, name);
    case TEMPLATE: return needs_tree(s, "template");
    case FRAMESET: return needs_tree(s, "frameset");
    case PLAINTEXT: return needs_tree(s, "plaintext");
    /* Outside of <svg>: a <title> in it does not count either. */
    case GROUP: return s->title == NULL ? needs_tree(s, "foreign") : 1;
    default: break;
    }
    if (in_structure) return needs_tree(s, "table");
    switch (kind) {
    case LINKED: return read_linked(s, tag);
    case LINK: return read_link(s, tag);
    case META: return read_meta(s, tag);
    case HTML: return read_html(s, tag);
    case TITLE: return read_text(s, name);
    case SELECT: s->in_select = 1; return 1;
    case FOREIGN_ROOT:
        if (!tag->is_self_closing) s->foreign[s->foreign_n++] = (int16_t)name;
        return 1;
    case BASE: {
        const Attribute *href = &tag->attributes[HREF];
        return s->base != NULL || href->state == ABSENT ? 1 : set_text(s, &s->base, href);
    }
    case IFRAME: {
        int done = add_link(s, &tag->attributes[SRC]);
        return done == 1 ? read_text(s, name) : done;
    }
    default: return 1;
    }
}

static int read_end(Scan *s, int name)
{
    unsigned kind = name < 0 ? OTHER : KIND(NAMES[name].flags);
    if (s->in_select) {
        if (kind == SELECT) s->in_select = 0;
        else if (kind != OPTION) return needs_tree(s, "select");
    } else if (kind == TABLE) {
        if (s->tables > 0) s->tables--;
    } else if ((kind == CELL || kind == TABLE_PART) && s->tables > 0) {
        /* Perhaps it is ignored, and the cell goes on: then a tree may be asked for without need. */
        s->in_cell[s->tables - 1] = 0;
    }
    return 1;
}

/* ---- the limits ---- */

static int *open_count(Scan *s, const Tag *tag, int *name)
{
    /* parser_limits.py ends a name at the first character that is not [A-Za-z0-9-]. */
    Py_ssize_t n = 0;
    while (n < tag->name_n && IS(tag->name[n], PLAIN_NAME)) n++;
    unsigned h = hash_of(tag->name, n);
    if (n != tag->name_n) *name = find_name(tag->name, n, h);
    if (*name >= 0) return &s->opened[*name];
    for (int i = 0; i < s->unknown_n; i++) {
        Unknown *u = &s->unknown[i];
        if (u->h != h || u->n != n) continue;
        Py_ssize_t j = 0;
        while (j < n && lower[u->name[j]] == lower[tag->name[j]]) j++;
        if (j == n) return &u->open;
    }
    if (s->unknown_n == UNKNOWN_NAMES) return NULL;
    s->unknown[s->unknown_n] = (Unknown){tag->name, n, h, 0};
    return &s->unknown[s->unknown_n++].open;
}

static int count_tag(Scan *s, const Tag *tag, int name, int is_end)
{
    if (tag->own_n > MAX_TAG_BYTES || (!is_end && ++s->starts > MAX_TAGS)) return needs_tree(s, "limits");
    int *open = open_count(s, tag, &name);
    if (open == NULL) return needs_tree(s, "limits");
    unsigned flags = name < 0 ? 0 : NAMES[name].flags;
    int is_formatting = (flags & FORMATTING) != 0;
    if (is_end) {
        if (!(flags & NEVER_DEEP) && *open > 0) {
            --*open;
            s->depth--;
            s->formatting -= is_formatting;
        }
        return 1;
    }
    if (flags & REBUILDS) s->rebuilt += s->formatting;
    if (!(flags & NEVER_DEEP)) {
        ++*open;
        s->depth++;
        s->formatting += is_formatting;
    }
    return s->depth > MAX_DEPTH || s->rebuilt > MAX_REBUILT ? needs_tree(s, "limits") : 1;
}

/* ---- the page ---- */

static int read_element(Scan *s, int is_end)
{
    Tag tag;
    const byte *name_end = s->at;
    while (name_end < s->end && !IS(*name_end, TAG_END)) name_end++;
    Py_ssize_t n = name_end - s->at;
    int name = find_name(s->at, n, hash_of(s->at, n));
    int keeps = !is_end && name >= 0 && KIND(NAMES[name].flags) >= LINKED && KIND(NAMES[name].flags) <= HTML;
    if (!read_tag(s->at, s->end, &tag, keeps)) {
        s->at = s->end;
        return 1;
    }
    s->at = tag.end;
    int done = count_tag(s, &tag, name, is_end);
    if (done != 1) return done;
    if (s->foreign_n > 0) return read_foreign(s, &tag, name, is_end);
    return is_end ? read_end(s, name) : read_start(s, &tag, name);
}

static int read_page(Scan *s)
{
    const byte *at;
    while ((at = memchr(s->at, '<', (size_t)(s->end - s->at))) != NULL) {
        s->at = ++at;
        if (at == s->end) break;
        if (ALPHA(*at)) {
            int done = read_element(s, 0);
            if (done != 1) return done;
        } else if (*at == '/' && s->end - at >= 2 && ALPHA(at[1])) {
            s->at++;
            int done = read_element(s, 1);
            if (done != 1) return done;
        } else if (*at == '!') {
            if (s->foreign_n > 0 && s->end - at > 1 && at[1] == '[') return needs_tree(s, "foreign");
            if ((s->at = after_declaration(at + 1, s->end)) == NULL) return 1;
        } else if (*at == '/' || *at == '?') {
            /* "</>" is nothing, other such marks are comments: all end with ">" */
            if ((at = memchr(at, '>', (size_t)(s->end - at))) == NULL) return 1;
            s->at = at + 1;
        }
    }
    return 1;
}

static PyObject *or_none(PyObject *value)
{
    return value == NULL ? Py_None : value;
}

static PyObject *scan(PyObject *module, PyObject *args)
{
    const char *html, *agent;
    Py_ssize_t html_n, agent_n;
    PyObject *references, *shortened, *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#y#OO", &html, &html_n, &agent, &agent_n, &references, &shortened)) return NULL;
    Scan *s = PyMem_Calloc(1, sizeof *s);
    if (s == NULL) return PyErr_NoMemory();
    s->at = (const byte *)html;
    s->end = s->at + html_n;
    s->agent = (const byte *)agent;
    s->agent_n = agent_n;
    s->references = references;
    s->shortened = shortened;
    s->robots = PyList_New(0);
    s->links = PyDict_New();
    if (s->robots != NULL && s->links != NULL) {
        int done = read_page(s);
        if (done == 1) {
            PyObject *links = PyDict_Keys(s->links);
            if (links != NULL) {
                result = PyTuple_Pack(6, or_none(s->title), or_none(s->base), or_none(s->canonical),
                                      or_none(s->language), s->robots, links);
                Py_DECREF(links);
            }
        } else if (done == 0) {
            result = PyUnicode_FromString(s->reason);
        }
    }
    Py_XDECREF(s->title);
    Py_XDECREF(s->base);
    Py_XDECREF(s->canonical);
    Py_XDECREF(s->language);
    Py_XDECREF(s->robots);
    Py_XDECREF(s->links);
    PyMem_Free(s->scratch);
    PyMem_Free(s);
    return result;
}

static PyObject *names(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *found = PyDict_New();
    for (int i = 0; found != NULL && i < NAME_COUNT; i++) {
        PyObject *flags = PyLong_FromUnsignedLong(NAMES[i].flags);
        if (flags == NULL || PyDict_SetItemString(found, NAMES[i].name, flags) < 0) Py_CLEAR(found);
        Py_XDECREF(flags);
    }
    return found;
}

static PyMethodDef METHODS[] = {
    {"scan", scan, METH_VARARGS, "scan(html, agent, references, shortened): see the top of page_scan.c"},
    {"names", names, METH_NOARGS, "The table of element names with their flags, for tests."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_page_scan", NULL, 0, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__page_scan(void)
{
    fill_tables();
    return PyModule_Create(&MODULE);
}
