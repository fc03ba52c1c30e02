// The grammar engine of llama.cpp behind three C functions: load a grammar, ask it about a text, free it.
// Built with llama.cpp's llama-grammar.cpp and unicode.cpp only; nothing of a model is needed.
#include "llama-grammar.h"
#include "llama-impl.h"
#include "llama-vocab.h"
#include "unicode.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

void llama_log_internal(ggml_log_level, const char * format, ...) {
    va_list args;
    va_start(args, format);
    std::vfprintf(stderr, format, args);
    va_end(args);
}

// What only a grammar with tokens asks of a model's vocabulary.
const std::string & llama_vocab::token_to_piece(llama_token) const { std::abort(); }
bool llama_vocab::is_eog(llama_token) const { std::abort(); }
int32_t llama_vocab::tokenize(const char *, int32_t, llama_token *, int32_t, bool, bool) const { std::abort(); }

extern "C" {

void ggml_abort(const char * file, int line, const char *, ...) {
    std::fprintf(stderr, "%s:%d\n", file, line);
    std::abort();
}

void * load(const char * text) {
    return llama_grammar_init_impl(nullptr, text, "root", false, nullptr, 0, nullptr, 0);
}

// Whether the whole text, in UTF-8, is one that the grammar describes.
int accepts(void * grammar, const char * text) {
    llama_grammar * g = llama_grammar_clone_impl(*static_cast<llama_grammar *>(grammar));
    bool alive = true;
    for (const auto character : unicode_cpts_from_utf8(text)) {
        llama_grammar_accept(g, character);
        alive = !llama_grammar_get_stacks(g).empty();
        if (!alive) {
            break;
        }
    }
    bool done = false;
    for (const auto & stack : llama_grammar_get_stacks(g)) {
        done = done || stack.empty();
    }
    llama_grammar_free_impl(g);
    return alive && done;
}

void release(void * grammar) {
    llama_grammar_free_impl(static_cast<llama_grammar *>(grammar));
}
}
