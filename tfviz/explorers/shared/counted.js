// @ts-nocheck
// Made by `python scripts/javascript.py` from tfviz/anatomy/*.py: change these, and make it again.
// prettier-ignore
const counted = (families, models) => {
// --- tfviz/anatomy/layers.py
const layers$MIXERS = new Map([["F", "full"], ["W", "window"], ["C", "chunk"], ["B", "both ways"], ["b", "both ways, window"], ["P", "full, positionless note"], ["w", "window, keys are values"], ["c", "window, and every few keys as one"], ["H", "window, and very many keys as one"], ["G", "gated delta rule"], ["K", "delta rule, a gate for each feature"], ["S", "Mamba-2"], ["M", "Mamba-1"], ["L", "lightning attention"], ["r", "RWKV-4"], ["v", "RWKV-7"], ["-", "none"]]);
const layers$STATES = "GKSMLrv";
const layers$FEEDS = new Map([["d", "dense"], ["e", "experts"], ["a", "dense, steered"], ["r", "RWKV-4 channel mix"], ["v", "RWKV-7 channel mix"], ["-", "none"]]);
const layers$POSITIONS = new Map([["R", "rope"], ["N", "none"], ["L", "learned table"], ["S", "sinusoids"], ["A", "ALiBi"], ["T", "T5 buckets"], ["-", "not an attention layer"]]);
function layers$expanded(short, blocks) {
let form, group, letters, runs;
if ((py.equal(py.len(short), 1))) {
return py.times(short, blocks);
} else {
}
letters = "";
for (group of py.iter(py.split(short, ","))) {
form = py.fullmatch("((?:[0-9]*[A-Za-z*-])+)(?: x ([0-9]+))?", py.strip(group));
if ((form === null)) {
throw new py.ValueError(["layers = ", py.repr(short), ": write runs as in \"5W1F x 10, 2W\""].join(''));
} else {
}
runs = py.findall("([0-9]*)([A-Za-z*-])", py.item(form, 1));
letters = py.plus(letters, py.times(py.join("", (function* () { for (const [n, x] of py.iter(runs)) { yield py.times(x, py.int(py.or(n, () => 1))); } })()), py.int(py.or(py.item(form, 2), () => 1))));
}
if ((!py.equal(py.len(letters), blocks))) {
throw new py.ValueError(["layers = ", py.repr(short), " are ", py.str(py.len(letters)), ", and blocks = ", py.str(blocks), "; correct one of them"].join(''));
} else {
}
return letters;
return null;
}
// --- tfviz/anatomy/keys.py
const keys$INSIDE = ["text_config", "llm_config", "language_config", "language_model", "thinker_config"];
const keys$TEXT_PART = new Map([["RefinedWeb", "falcon"], ["RefinedWebModel", "falcon"], ["clip", "clip_text_model"], ["gemma3", "gemma3_text"], ["gemma4", "gemma4_text"], ["kimi_k2", "deepseek_v3"], ["llama4", "llama4_text"], ["minimax_text_01", "minimax"], ["mistral_large4", "mistral_large4_text"], ["muse_spark", "muse_spark_text"], ["qwen3_5", "qwen3_5_text"], ["qwen3_5_moe", "qwen3_5_moe_text"]]);
const keys$OLD = py.set(["rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq", "partial_rotary_factor", "rotary_pct", "rotary_dim", "head_dim", "tie_word_embeddings", "mtp_num_hidden_layers", "num_nextn_predict_layers"]);
const keys$SAYS_NOTHING = py.compile("_?(architectures|auto_map|transformers_version|model_type|name_or_path|torch_dtype|dtype|\\w*token_id\\w*|\\w*dropout\\w*|\\w*(_|\\b)pdrop|initializer_\\w+|init_\\w+|use_cache|\\w*_eps(ilon)?|\\w*(router|aux)\\w*(coef|loss|logits|noise)|output_\\w+|return_dict|id2label|label2id|summary_\\w+|problem_type|pretraining_tp|chunk_size_feed_forward|is_encoder_decoder|gradient_checkpointing|attn_implementation|quantization_config|unsloth\\w*|\\w*jitter\\w*|use_mamba\\w*|use_associative_scan|time_step_\\w+|mamba_dt_\\w+|rescale_\\w+|residual_in_fp32|classifier_\\w+|vision_config|audio_config|mask_\\w+|suppress_tokens|begin_suppress_tokens|apply_spec_augment)", "ASCII");
const keys$MOST_LAYERS = 10000;
function keys$matches(pattern, key) {
return py.and(py.less(py.len(key), 100), () => py.fullmatch(pattern, key) !== null);
return null;
}
function keys$number_of_layers(value$) {
if (((py.is_bool(value$)) || !(py.is_int(value$)) || !(py.most(0, value$) && py.most(value$, keys$MOST_LAYERS)))) {
throw new py.ValueError(["config has ", py.slice(py.repr(value$), 0, 80), " layers; give a whole number, at most ", py.str(keys$MOST_LAYERS)].join(''));
} else {
}
return value$;
return null;
}
class keys$Keys {
constructor(written, family) {
const self = this;
let also, filled, name;
[self.known, family] = py.parts([family !== null, py.or(family, () => new Map([]))], 2);
[self.also, self.ignored] = py.parts([py.get(family, "also", new Map([])), py.get(family, "ignored", [])], 2);
also = self.also;
filled = new Map([...py.items(py.fromkeys(py.get(family, "unset", []))), ...py.items(py.get(family, "defaults", new Map([])))]);
self.filled = new Map((function* () { for (const [name, value$] of py.iter(py.items(filled))) { yield [py.get(also, name, name), value$]; } })());
self.names = new Map((function* () { for (const name of py.iter(written)) { yield [py.get(also, name, name), name]; } })());
self.written = new Map((function* () { for (const [name, value$] of py.iter(py.items(written))) { yield [py.get(also, name, name), value$]; } })());
for (name of py.iter(py.both(py.keys(written), py.values(also)))) {
py.set_item(self.written, name, py.item(written, name));
}
[self.read, self.assumed] = py.parts([new Set(), new Set()], 2);
}
knows(name) {
const self = this;
return py.and(!py.has(self.ignored, name), () => py.or(py.has(self.filled, py.get(self.also, name, name)), () => py.or(py.has(keys$OLD, name), () => !py.bool(self.known))));
return null;
}
__call__(names, default$ = null) {
const self = this;
let here, name;
names = py.tuple((function* () { for (const name of py.iter(names)) { if (py.bool(self.knows(name))) { yield py.get(self.also, name, name); } } })());
here = [...(function* () { for (const name of py.iter(names)) { if ((py.has(self.written, name))) { yield name; } } })()];
py.update(self.read, here);
for (name of py.iter(here)) {
if ((py.item(self.written, name) !== null)) {
return py.item(self.written, name);
} else {
}
}
if (!py.bool(here)) {
for (name of py.iter(names)) {
if ((py.get(self.filled, name) !== null)) {
py.add(self.assumed, name);
return py.item(self.filled, name);
} else {
}
}
} else {
}
return default$;
return null;
}
size(names) {
const self = this;
let value$;
value$ = self.__call__([...py.iter(names)]);
if (((py.is_bool(value$)) || !(py.is_int(value$)) || (py.less(value$, 0)))) {
throw new py.ValueError(["config has ", py.str(py.item(names, 0)), " = ", py.slice(py.repr(value$), 0, 80), "; give a whole number, as config.json has it"].join(''));
} else {
}
return value$;
return null;
}
get unread() {
const self = this;
let left, quiet;
left = (function* () { for (const x of py.iter(py.minus(py.keys(self.names), self.read))) { yield py.item(self.names, x); } })();
quiet = (py.bool(self.known) ? keys$SAYS_NOTHING : py.compile("model_type|transformers_version"));
return py.tuple(py.sorted((function* () { for (const x of py.iter(left)) { if (!py.bool(keys$matches(quiet, x))) { yield x; } } })(), null));
return null;
}
}
function keys$opened(config) {
let inner, kind, nested, outer, part;
if (!(py.is_Mapping(config))) {
throw new py.ValueError(["config is a list or a number, not an object; ", py.repr(py.slice(py.str(config), null, 40))].join(''));
} else {
}
[outer, inner] = py.parts([config, py.dict(config)], 2);
nested = false;
while (py.bool((part = py.next((function* () { for (const x of py.iter(keys$INSIDE)) { if ((py.is_Mapping(py.get(inner, x)))) { yield py.item(inner, x); } } })(), null)))) {
kind = py.or(py.get(part, "model_type"), () => py.get(inner, "model_type"));
[inner, nested] = py.parts([new Map([...py.items(part), ["model_type", kind]]), true], 2);
}
if ((py.bool(nested) && (py.get(outer, "tie_word_embeddings") !== null))) {
py.setdefault(inner, "tie_word_embeddings", py.item(outer, "tie_word_embeddings"));
} else {
}
return [inner, nested];
return null;
}
class keys$UnknownFamilyError extends py.KeyError {
}
function keys$nearest(name, names) {
let by_likeness, near;
by_likeness = py.sorted((function* () { for (const x of py.iter(names)) { yield [keys$likeness(name, x), x]; } })(), null, true);
near = [...(function* () { for (const [share, x] of py.iter(by_likeness)) { if ((py.most(0.4, share))) { yield x; } } })()];
return py.or(py.join(", ", py.slice(near, null, 3)), () => "see tfviz.anatomy.names()");
return null;
}
function keys$likeness(a, b) {
return py.over(py.times(2, keys$_common(a, b)), py.or(py.plus(py.len(a), py.len(b)), () => 1));
return null;
}
function keys$_common(a, b) {
let after, at, ends, i, j, letter, longest, now, other, run, to;
[longest, at, to] = py.parts([0, 0, 0], 3);
ends = new Map([]);
for ([i, letter] of py.iter(py.enumerate(a))) {
now = new Map([]);
for ([j, other] of py.iter(py.enumerate(b))) {
if ((py.equal(letter, other))) {
run = py.plus(py.get(ends, py.minus(j, 1), 0), 1);
py.set_item(now, j, run);
if ((py.less(longest, run))) {
[longest, at, to] = py.parts([run, py.plus(py.minus(i, run), 1), py.plus(py.minus(j, run), 1)], 3);
} else {
}
} else {
}
}
ends = now;
}
if (!py.bool(longest)) {
return 0;
} else {
}
after = keys$_common(py.slice(a, py.plus(at, longest), null), py.slice(b, py.plus(to, longest), null));
return py.plus(py.plus(longest, keys$_common(py.slice(a, null, at), py.slice(b, null, to))), after);
return null;
}
// --- tfviz/anatomy/ordinary.py
function ordinary$ordinary(k, style) {
let biases, blocks, d, f, h, key, state, which;
d = k.size(["n_embed", "hidden_size", "n_embd", "d_model", "dim"]);
h = k.__call__(["num_attention_heads", "n_head", "n_heads", "num_heads"]);
f = new Map([["vocabulary", k.__call__(["vocab_size"], 0)], ["width", d], ["context", k.__call__([...py.iter(ordinary$CONTEXT)])], ["tied", py.bool(py.get(style, "tied", k.__call__(["tie_word_embeddings"], false)))], ["activation", k.__call__([...py.iter(ordinary$ACTIVATION)])], ["feed_width", k.__call__([...py.iter(["intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_dim", "d_ff"]), ...py.iter(["ffn_hidden_size"])], py.times(4, d))], ...py.items(new Map((function* () { for (const x of py.iter(py.both(py.keys(style), ordinary$PLAIN))) { yield [x, py.item(style, x)]; } })()))]);
blocks = keys$number_of_layers(k.__call__(["num_hidden_layers", "n_layer", "n_layers", "num_layers"], 0));
py.set_item(f, "window", (py.bool(k.__call__(["use_sliding_window"], true)) ? k.__call__(["sliding_window", "local_attention"]) : null));
py.set_item(f, "chunk", k.__call__(["attention_chunk_size"]));
py.set_item(f, "layers", ordinary$_layers(k, style, blocks, f));
py.set_item(f, "blocks", py.len(py.item(f, "layers")));
py.set_item(f, "radius", ((py.has(py.item(f, "layers"), "b")) ? py.floored(py.item(f, "window"), 2) : null));
if (py.bool(h)) {
py.set_item(f, "attention", ordinary$_attention(k, style, d, h));
} else {
}
biases = new Map([["attention_bias", "qo"], ["mlp_bias", "f"], ...py.items(py.get(style, "biases", new Map([])))]);
for ([key, which] of py.iter(py.items(biases))) {
if ((py.bool(k.knows(key)) && py.bool(k.__call__([key])))) {
py.set_item(f, "feed_bias", py.or(py.get(f, "feed_bias", false), () => py.has(which, "f")));
py.set_item(f, "shared_bias", ((py.has(which, "s")) ? true : null));
if (py.bool(h)) {
py.set_item(f, "attention", py.joined(py.item(f, "attention"), new Map((function* () { for (const x of py.iter(which)) { if ((py.has("qo", x))) { yield [["bias_", py.str(x)].join(''), true]; } } })())));
} else {
}
} else {
}
}
if (py.bool(k.__call__(["kv_lora_rank"]))) {
{ const [v0, v1] = py.parts([ordinary$_latent(k, h, py.len(py.item(f, "layers"))), new Map([["F", new Map([])]])], 2); py.set_item(f, "latent", v0); py.set_item(f, "latent_in", v1); }
} else {
}
if (py.bool((state = ordinary$_state(k, style, d, h)))) {
py.set_item(f, "states", new Map([[py.get(style, "linear", "G"), state]]));
} else {
}
py.set_item(f, "positions", ordinary$positions_of(k, style, f));
py.set_item(f, "feeds", ordinary$_feeds(k, style, f));
py.set_item(f, "score_cap", py.or(k.__call__(["attn_logit_softcapping"]), () => null));
py.set_item(f, "logit_cap", py.or(k.__call__(["final_logit_softcapping"]), () => null));
py.set_item(f, "drafts", py.or(k.__call__(["num_nextn_predict_layers", "mtp_num_hidden_layers"]), () => null));
if ((py.has(py.item(f, "positions"), "R"))) {
py.set_item(f, "rope", ordinary$_rope(k, style, f));
} else {
}
return new Map((function* () { for (const [name, value$] of py.iter(py.items(f))) { if ((value$ !== null)) { yield [name, value$]; } } })());
return null;
}
const ordinary$CONTEXT = ["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length", "seq_length", "model_max_length", "context_length"];
const ordinary$ACTIVATION = ["hidden_act", "hidden_activation", "activation_function", "afn", "activation", "mlp_hidden_act"];
const ordinary$PLAIN = py.set(["gated", "norm", "norms", "norms_at_end", "place", "feed_bias", "head_bias", "position_rows", "segment_rows"]);
function ordinary$_attention(k, style, d, h) {
let a, key_heads, width;
width = k.__call__(["head_dim", "d_kv"]);
key_heads = k.__call__(["num_key_value_heads", "num_kv_heads"], h);
a = new Map([["heads", h], ["key_heads", key_heads], ["head_width", py.or(width, () => py.floored(d, h))]]);
if (((py.has(style, "qk_norm")) && py.bool(k.__call__([py.get(style, "qk_norm_if", "")], !py.has(style, "qk_norm_if"))))) {
py.set_item(a, "qk_norm", py.item(style, "qk_norm"));
a = py.joined(a, (py.bool(py.get(style, "qk_norm_bias")) ? new Map([["qk_norm_bias", true]]) : new Map([])));
} else {
}
a = py.joined(a, new Map((function* () { for (const x of py.iter(["gate", "sink", "bias_q", "bias_k", "bias_o"])) { if ((py.has(style, x))) { yield [x, py.item(style, x)]; } } })()));
return a;
return null;
}
function ordinary$_layers(k, style, blocks, f) {
let both, kinds, letters, unknown, words;
words = new Map([["full_attention", py.get(style, "layers", "F")], ["attention", "F"], ["indexed_attention", "F"], ["sliding_attention", "W"], ["chunked_attention", "C"], ["linear_attention", py.get(style, "linear", "G")], ["mamba", "S"], ...py.items(py.get(style, "words", new Map([])))]);
kinds = k.__call__(["layer_types", "layers_block_type"]);
if (!py.bool(kinds)) {
kinds = ordinary$_pattern(k, style, blocks);
} else {
}
unknown = py.sorted(py.set((function* () { for (const x of py.iter(kinds)) { if ((!py.has(words, x))) { yield x; } } })()), null);
if (py.bool(unknown)) {
throw new py.ValueError(["layer_types has ", py.str(py.join(", ", unknown)), ", which is not known; see unread"].join(''));
} else {
}
letters = py.join("", (function* () { for (const x of py.iter(py.slice(kinds, null, py.or(blocks, () => null)))) { yield py.item(words, x); } })());
if (((!py.equal(py.len(letters), blocks)) && !py.bool(py.get(style, "pattern_is_longer")))) {
throw new py.ValueError(["layer_types has ", py.str(py.len(letters)), " entries for ", py.str(blocks), " layers; correct one"].join(''));
} else {
}
if (!py.bool(py.item(f, "window"))) {
letters = py.replace(letters, "W", "F");
} else {
}
if (!py.bool(py.item(f, "chunk"))) {
letters = py.replace(letters, "C", "F");
} else {
}
both = k.__call__(["use_bidirectional_attention"]);
if ((py.bool(both) && (both !== "vision"))) {
return py.translate(letters, new Map([[py.ord("F"), "B"], [py.ord("W"), "b"]]));
} else {
}
return letters;
return null;
}
function ordinary$_pattern(k, style, blocks) {
let every, from_first, full, inside, kinds, longest, most, offset, other, period;
[full, other] = py.parts(["full_attention", py.get(style, "others", "sliding_attention")], 2);
if (((every = py.get(style, "every")) !== null)) {
every = py.or(k.__call__([...py.iter(py.get(style, "every_keys", []))], every), () => py.plus(blocks, 1));
from_first = py.get(style, "full_first");
kinds = [...(function* () { for (const i of py.iter(py.range(blocks))) { yield ((py.equal(py.modulo((py.bool(from_first) ? i : py.plus(i, 1)), every), 0)) ? full : other); } })()];
if ((py.bool(py.get(style, "some_full")) && (!py.has(kinds, full)))) {
py.put(kinds, py.minus(0, 1), null, [full]);
} else {
}
return kinds;
} else {
}
if ((py.bool(k.knows("attn_layer_period")) && py.bool((period = k.__call__(["attn_layer_period"]))))) {
offset = k.__call__(["attn_layer_offset"], 0);
return [...(function* () { for (const i of py.iter(py.range(blocks))) { yield ((py.equal(py.modulo(i, period), offset)) ? full : other); } })()];
} else {
}
if ((py.bool(k.knows("max_window_layers")) && py.bool(k.__call__(["use_sliding_window"])) && (k.__call__(["layer_types"]) === null))) {
most = k.__call__(["max_window_layers"], 0);
if (py.bool(py.get(style, "windows_below"))) {
return [...(function* () { for (const i of py.iter(py.range(blocks))) { yield ((py.bool(py.modulo(py.plus(i, 1), 2)) && (py.less(i, most))) ? other : full); } })()];
} else {
}
return [...(function* () { for (const i of py.iter(py.range(blocks))) { yield ((py.most(most, i)) ? other : full); } })()];
} else {
}
if (py.bool(py.get(style, "chunked"))) {
return [...(function* () { for (const x of py.iter(ordinary$_turned(k, blocks))) { yield (py.bool(x) ? "chunked_attention" : full); } })()];
} else {
}
if ((py.bool(py.get(style, "window_everywhere")) && py.bool(k.__call__(["sliding_window"])))) {
longest = k.__call__([...py.iter(ordinary$CONTEXT)], Infinity);
inside = py.or(!py.bool(py.get(style, "window_below_context")), () => py.less(k.__call__(["sliding_window"]), longest));
return py.times([(py.bool(inside) ? other : full)], blocks);
} else {
}
return py.times([py.get(style, "only", full)], blocks);
return null;
}
function ordinary$_turned(k, blocks) {
let every, listed, told;
listed = k.__call__(["no_rope_layers"]);
every = k.__call__(["no_rope_layer_interval"], 4);
told = py.list(py.or(listed, () => [...(function* () { for (const i of py.iter(py.range(blocks))) { yield py.int(!py.equal(py.modulo(py.plus(i, 1), every), 0)); } })()]));
if ((py.less(py.len(told), blocks))) {
throw new py.ValueError(["no_rope_layers has ", py.str(py.len(told)), " entries for ", py.str(blocks), " layers; correct one"].join(''));
} else {
}
return py.slice(told, null, blocks);
return null;
}
function ordinary$positions_of(k, style, f) {
let attends, base, each, letters, listed, rule, told;
[letters, rule] = py.parts([py.item(f, "layers"), py.get(style, "positions", "R")], 2);
attends = [...(function* () { for (const x of py.iter(letters)) { yield py.and(!py.has(layers$STATES, x), () => x !== "-"); } })()];
each = py.times([py.item(rule, 0)], py.len(letters));
if ((rule === "no_rope_layers")) {
each = [...(function* () { for (const x of py.iter(ordinary$_turned(k, py.len(letters)))) { yield (py.bool(x) ? "R" : "N"); } })()];
} else {
if ((rule === "windows")) {
each = [...(function* () { for (const x of py.iter(letters)) { yield (((x === "W") || (!py.has(letters, "W"))) ? "R" : "N"); } })()];
} else {
if ((rule === "layer_rope_theta")) {
listed = py.or(k.__call__(["layer_rope_theta"]), () => [...(function* () { for (const x of py.iter(letters)) { yield ((x === "F") ? 0 : 1); } })()]);
each = [...(function* () { for (const x of py.iter(listed)) { yield (py.bool(x) ? "R" : "N"); } })()];
if ((!py.equal(py.len(each), py.len(letters)))) {
throw new py.ValueError(["layer_rope_theta has ", py.str(py.len(each)), " entries for ", py.str(py.len(letters)), " layers; correct one"].join(''));
} else {
}
} else {
if ((rule === "position_embedding_type")) {
each = py.times([((k.__call__([rule]) === "rope") ? "R" : "N")], py.len(letters));
} else {
if ((rule === "rope_theta")) {
told = py.or(k.__call__(["rope_parameters", "rope_scaling"]), () => new Map([]));
base = py.get(told, "rope_theta", k.__call__(["rope_theta"], null));
each = py.times([((base !== null) ? "R" : "N")], py.len(letters));
} else {
if ((rule === "alibi")) {
each = py.times([(py.bool(k.__call__(["alibi"])) ? "A" : "R")], py.len(letters));
} else {
if ((rule === "attn_config")) {
each = py.times([(py.bool(py.get(py.or(k.__call__(["attn_config"]), () => new Map([])), "alibi", true)) ? "A" : "L")], py.len(letters));
} else {
}
}
}
}
}
}
}
return py.join("", (function* () { for (const [x, yes] of py.iter(py.zip(each, attends))) { yield (py.bool(yes) ? x : "-"); } })());
return null;
}
function ordinary$_feeds(k, style, f) {
let blocks, count, dense, each, first, kinds, none, number, offset, period, shared, some, step, wide, width;
[blocks, width] = py.parts([py.len(py.item(f, "layers")), py.item(f, "width")], 2);
count = k.__call__(["n_routed_experts", "num_local_experts", "num_experts"]);
if ((py.bool(py.get(style, "experts_if")) && !py.bool(k.__call__([py.item(style, "experts_if")])))) {
count = null;
} else {
}
none = py.and(!py.bool(count), () => py.or(count === null, () => py.or(!py.bool(k.known), () => py.has(style, "dense_up_to"))));
if ((py.bool(none) || (py.most(count, py.get(style, "dense_up_to", py.minus(0, 1)))))) {
if (py.bool((shared = k.__call__(["shared_intermediate_size"])))) {
py.set_item(f, "feed_width", shared);
} else {
}
return py.times(py.get(style, "feeds", "d"), blocks);
} else {
}
wide = py.or(k.__call__(["moe_intermediate_size"]), () => k.__call__(["intermediate_size"], py.times(4, width)));
number = k.__call__(["n_shared_experts", "num_shared_experts"], py.get(style, "shared_count", 0));
shared = k.__call__(["shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"], null);
py.set_item(f, "experts", new Map([["count", count], ["chosen", py.min([k.__call__(["num_experts_per_tok", "num_experts_per_token", "top_k_experts", "experts_per_token"], 1), count], null)], ["width", wide], ["shared", ((shared === null) ? py.times(number, wide) : shared)], ...py.items(py.get(style, "experts", new Map([])))]));
if (py.bool(number)) {
py.set_item(py.item(f, "experts"), "shared_count", number);
} else {
}
if (py.bool((kinds = k.__call__(["mlp_layer_types"])))) {
return py.ljust(py.slice(py.join("", (function* () { for (const x of py.iter(kinds)) { yield ((x === "dense") ? "d" : "e"); } })()), null, blocks), blocks, "e");
} else {
}
if ((py.bool(k.knows("mlp_only_layers")) && (k.__call__(["decoder_sparse_step"]) !== null))) {
[dense, step] = py.parts([py.or(k.__call__(["mlp_only_layers"]), () => []), k.__call__(["decoder_sparse_step"], 1)], 2);
each = [...(function* () { for (const i of py.iter(py.range(blocks))) { yield (((py.has(dense, i)) || py.bool(py.modulo(py.plus(i, 1), step))) ? "d" : "e"); } })()];
} else {
if ((py.bool(k.knows("interleave_moe_layer_step")) && py.bool((step = k.__call__(["interleave_moe_layer_step"]))))) {
some = k.__call__(["moe_layers"]);
some = ((some === null) ? py.range(py.minus(step, 1), blocks, step) : some);
each = [...(function* () { for (const i of py.iter(py.range(blocks))) { yield ((py.has(some, i)) ? "e" : "d"); } })()];
} else {
if ((py.bool(k.knows("expert_layer_period")) && py.bool((period = k.__call__(["expert_layer_period"]))))) {
offset = k.__call__(["expert_layer_offset"], 0);
each = [...(function* () { for (const i of py.iter(py.range(blocks))) { yield ((py.equal(py.modulo(i, period), offset)) ? "e" : "d"); } })()];
} else {
first = k.__call__(["first_k_dense_replace"], py.get(style, "dense_first", 0));
each = [...(function* () { for (const i of py.iter(py.range(blocks))) { yield ((py.less(i, first)) ? "d" : "e"); } })()];
}
}
}
return py.join("", each);
return null;
}
function ordinary$_latent(k, h, blocks) {
let latent, missing, query, shared, sizes;
sizes = new Map([["note", "kv_lora_rank"], ["unturned", "qk_nope_head_dim"], ["turned", "qk_rope_head_dim"], ["value", "v_head_dim"]]);
missing = [...(function* () { for (const key of py.iter(py.values(sizes))) { if (!(py.is_int(k.__call__([key])))) { yield key; } } })()];
if (py.bool(missing)) {
throw new py.ValueError(["config has kv_lora_rank and no ", py.str(py.join(", ", missing)), "; it needs all four"].join(''));
} else {
}
latent = new Map([["heads", h], ...py.items(new Map((function* () { for (const [name, key] of py.iter(py.items(sizes))) { yield [name, k.__call__([key])]; } })()))]);
if (py.bool((query = k.__call__(["q_lora_rank"])))) {
py.set_item(latent, "query_note", query);
} else {
}
if (py.bool(k.__call__(["attention_bias"]))) {
py.set_item(latent, "bias", true);
} else {
}
if (py.bool(k.__call__(["index_n_heads"]))) {
latent = py.joined(latent, new Map([["index_heads", k.__call__(["index_n_heads"])], ["index_width", k.__call__(["index_head_dim"])], ["index_keys", k.__call__(["index_topk"])]]));
if ((py.bool(k.knows("indexer_types")) && py.bool((shared = ordinary$_index_borrowers(k, blocks))))) {
py.set_item(latent, "index_borrowers", shared);
} else {
}
} else {
}
return latent;
return null;
}
function ordinary$_index_borrowers(k, blocks) {
let every, kinds, offset;
kinds = py.or(k.__call__(["indexer_types"]), () => k.__call__(["index_topk_pattern"]));
if (py.bool(kinds)) {
return [...(function* () { for (const [i, x] of py.iter(py.enumerate(kinds))) { if ((py.has(["shared", "S"], x))) { yield i; } } })()];
} else {
}
every = py.max([k.__call__(["index_topk_freq"], 1), 1], null);
offset = k.__call__(["index_skip_topk_offset"], 2);
return [...(function* () { for (const i of py.iter(py.range(blocks))) { if (py.bool(py.modulo(py.max([py.plus(py.minus(i, offset), 1), 0], null), every))) { yield i; } } })()];
return null;
}
function ordinary$_state(k, style, d, h) {
let heads, key, key_heads, said, step, width;
if (!py.bool(k.known)) {
return null;
} else {
}
if ((py.bool(k.knows("linear_num_value_heads")) && py.bool(k.__call__(["linear_num_value_heads"], h)))) {
key_heads = k.__call__(["linear_num_key_heads"], h);
key = py.or(k.__call__(["linear_key_head_dim"]), () => py.int(py.over(py.times(0.75, d), key_heads)));
return new Map([["kind", "gated delta rule"], ["key_heads", key_heads], ["key_width", key], ["value_heads", k.__call__(["linear_num_value_heads"], h)], ["value_width", k.__call__(["linear_value_head_dim"], py.times(2, key))], ["convolution", k.__call__(["linear_conv_kernel_dim"], 4)]]);
} else {
}
if ((py.get(style, "linear") === "K")) {
said = py.or(k.__call__(["linear_attn_config"]), () => new Map([]));
return new Map([["kind", "delta rule by feature"], ["heads", py.get(said, "num_heads", k.__call__(["linear_num_heads"]))], ["head_width", py.get(said, "head_dim", k.__call__(["linear_head_dim"]))], ["convolution", py.get(said, "short_conv_kernel_size", k.__call__(["linear_conv_kernel_dim"]))]]);
} else {
}
if ((py.get(style, "linear") === "L")) {
return new Map([["kind", "lightning attention"], ["heads", h], ["head_width", py.or(k.__call__(["head_dim"]), () => py.floored(d, py.or(h, () => 1)))]]);
} else {
}
if ((py.bool(k.knows("mamba_dt_rank")) && py.bool(k.__call__(["mamba_dt_rank"])))) {
step = k.__call__(["mamba_dt_rank"]);
return new Map([["kind", "Mamba-1"], ["channels", py.times(k.__call__(["mamba_expand"]), d)], ["state", k.__call__(["mamba_d_state"])], ["step_rank", ((step === "auto") ? py.minus(0, py.floored(py.minus(0, d), 16)) : step)], ["convolution", k.__call__(["mamba_d_conv"])], ["norms", true], ["convolution_bias", py.bool(k.__call__(["mamba_conv_bias"]))], ["map_bias", py.bool(k.__call__(["mamba_proj_bias"]))]]);
} else {
}
if ((py.get(style, "linear") !== "S")) {
return null;
} else {
}
heads = k.__call__(["mamba_n_heads", "mamba_num_heads", "num_heads"]);
width = k.__call__(["mamba_head_dim", "mamba_d_head", "head_dim"]);
return new Map([["kind", "Mamba-2"], ["heads", heads], ["head_width", ((py.has(["auto", null], width)) ? py.floored(py.times(k.__call__(["mamba_expand"]), d), heads) : width)], ["state", k.__call__(["mamba_d_state", "ssm_state_size", "state_size"])], ["groups", k.__call__(["mamba_n_groups", "n_groups"])], ["convolution", k.__call__(["mamba_d_conv", "conv_kernel"])], ["convolution_bias", py.bool(k.__call__(["mamba_conv_bias", "use_conv_bias"]))], ["map_bias", py.bool(k.__call__(["mamba_proj_bias", "use_bias"]))]]);
return null;
}
function ordinary$_rope(k, style, f) {
let by_kind, full, kinds, local, near, old, part, said, scaling, theta, width;
said = py.or(k.__call__(["rope_parameters"]), () => new Map([]));
old = new Map([...py.items(py.or(k.__call__(["rope_scaling"]), () => new Map([])))]);
width = py.get(py.get(f, "attention", new Map([])), "head_width", 1);
theta = k.__call__(["rope_theta"], py.get(style, "rope_base", 10000.0));
part = k.__call__(["partial_rotary_factor", "rotary_pct"], py.get(style, "rope_partial"));
part = (py.bool(k.__call__(["rotary_dim"])) ? py.over(k.__call__(["rotary_dim"]), width) : part);
kinds = new Map([["full_attention", "full"], ["sliding_attention", "window"], ["main", "window"]]);
kinds = py.joined(kinds, new Map([["compress", "compressed"], ["chunked_attention", "chunk"]]));
if ((py.bool(said) && py.all((function* () { for (const x of py.iter(py.values(said))) { yield py.or((py.is_Mapping(x)), () => x === null); } })()))) {
return new Map((function* () { for (const [x, y] of py.iter(py.items(said))) { if ((y !== null)) { yield [py.get(kinds, x, x), ordinary$_angles(y, theta, part)]; } } })());
} else {
}
by_kind = py.get(style, "rope_by_kind");
if ((py.bool(by_kind) && !py.bool(said))) {
[full, near] = py.parts([ordinary$_angles(new Map([...py.items(py.item(by_kind, "full")), ...py.items(old)]), theta, part), py.get(by_kind, "window", py.item(by_kind, "full"))], 2);
if ((py.has(k.written, "rope_theta"))) {
py.set_item(full, "base", theta);
} else {
}
if (py.bool((local = k.__call__(["rope_local_base_freq"])))) {
near = new Map([...py.items(near), ["rope_theta", local]]);
} else {
}
return new Map([["full", full], ["window", ordinary$_angles(near, theta, part)]]);
} else {
}
if (py.bool(by_kind)) {
return py.fromkeys(["full", "window"], ordinary$_angles(said, theta, part));
} else {
}
scaling = (!(py.bool(said) || (py.has(k.written, "rope_scaling"))) ? py.get(style, "rope_scaling", new Map([])) : new Map([]));
part = (py.bool(py.get(f, "latent")) ? null : part);
return new Map([["all", ordinary$_angles(new Map([...py.items(scaling), ...py.items(old), ...py.items(said)]), theta, part)]]);
return null;
}
function ordinary$_angles(given, base, part) {
let kind, made, share;
kind = py.or(py.get(given, "rope_type"), () => py.or(py.get(given, "type"), () => "default"));
made = new Map([["base", py.get(given, "rope_theta", base)]]);
made = py.joined(made, ((kind !== "default") ? new Map([["scaling", kind]]) : new Map([])));
made = py.joined(made, (py.bool(py.get(given, "factor")) ? new Map([["factor", py.item(given, "factor")]]) : new Map([])));
made = py.joined(made, (py.bool(py.get(given, "mrope_section")) ? new Map([["axes", 3]]) : new Map([])));
share = py.get(given, "partial_rotary_factor", part);
return py.either(made, ((!py.has([null, 1, 1.0], share)) ? new Map([["partial", share]]) : new Map([])));
return null;
}
// --- tfviz/anatomy/special.py
function special$_bert(f, k) {
{ const [v0, v1] = py.parts([py.item(f, "context"), k.__call__(["type_vocab_size"])], 2); py.set_item(f, "position_rows", v0); py.set_item(f, "segment_rows", v1); }
py.set_item(f, "extra", new Map([["pooler", py.plus(py.power(py.item(f, "width"), 2), py.item(f, "width"))]]));
if (py.bool(k.__call__(["is_decoder"]))) {
py.set_item(f, "layers", py.replace(py.item(f, "layers"), "B", "F"));
f = py.joined(f, (py.bool(k.__call__(["add_cross_attention"])) ? new Map([["cross", true]]) : new Map([])));
} else {
}
return null;
}
function special$_table(f, k) {
py.set_item(f, "position_rows", py.item(f, "context"));
if (py.bool(k.__call__(["add_cross_attention"]))) {
py.set_item(f, "cross", true);
} else {
}
return null;
}
function special$_opt(f, k) {
let d, narrow;
py.set_item(f, "position_rows", py.plus(py.item(f, "context"), 2));
py.set_item(f, "place", (py.bool(k.__call__(["do_layer_norm_before"])) ? "pre" : "post"));
py.set_item(f, "norms_at_end", py.int(py.and(py.bool(k.__call__(["do_layer_norm_before"])), () => !py.bool(k.__call__(["_remove_final_layer_norm"])))));
[narrow, d] = py.parts([k.__call__(["word_embed_proj_dim"], py.item(f, "width")), py.item(f, "width")], 2);
if ((!py.equal(narrow, d))) {
f = py.joined(f, new Map([["table_width", narrow], ["extra_maps", new Map([["into the width and out", py.times(py.times(2, d), narrow)]])]]));
} else {
}
if (!py.bool(k.__call__(["layer_norm_elementwise_affine"]))) {
py.set_item(f, "norm", "none");
} else {
}
return null;
}
function special$_vit(f, k) {
let d, labels, patch, side;
[d, patch] = py.parts([py.item(f, "width"), k.__call__(["patch_size"])], 2);
side = py.floored(k.__call__(["image_size"]), patch);
f = py.joined(f, new Map([["position_rows", py.plus(py.times(side, side), 1)], ["context", py.plus(py.times(side, side), 1)], ["tied", true]]));
labels = k.__call__(["num_labels"], 1000);
py.set_item(f, "extra", new Map([["patches", py.plus(py.times(py.times(py.times(k.__call__(["num_channels"]), patch), patch), d), d)], ["class token", d], [["head of ", py.str(labels), " classes"].join(''), py.plus(py.times(labels, d), labels)]]));
py.set_item(f, "vocabulary", 0);
return null;
}
function special$_bloom(f, k) {
f = py.joined(f, new Map([["feed_width", py.times(4, py.item(f, "width"))], ["extra", new Map([["norm of the embedding", py.times(2, py.item(f, "width"))]])]]));
return null;
}
function special$_falcon(f, k) {
let h, lists, many, new$, parallel;
[h, new$] = py.parts([py.item(py.item(f, "attention"), "heads"), k.__call__(["new_decoder_architecture"])], 2);
many = (py.bool(new$) ? k.__call__(["num_kv_heads"], h) : (py.bool(k.__call__(["multi_query"])) ? 1 : h));
py.set_item(py.item(f, "attention"), "key_heads", many);
parallel = py.or(new$, () => k.__call__(["parallel_attn"]));
lists = k.__call__(["num_ln_in_parallel_attn"], (py.bool(new$) ? 2 : 1));
py.set_item(f, "norms", ((!py.bool(k.__call__(["parallel_attn"])) || (py.equal(lists, 2))) ? 2 : 1));
py.set_item(f, "place", (py.bool(parallel) ? "pre, parallel" : "pre"));
return null;
}
function special$_mpt(f, k) {
py.set_item(f, "feed_width", py.times(4, py.item(f, "width")));
return null;
}
function special$_parallel(f, k) {
let together;
together = k.__call__(["use_parallel_residual"]);
py.set_item(f, "place", (py.bool(together) ? "pre, parallel" : "pre"));
if ((py.bool(together) && py.bool(k.knows("qk_layernorm")))) {
py.set_item(f, "norms", 1);
} else {
}
return null;
}
function special$_llama4(f, k) {
{ const value = k.__call__(["intermediate_size"]);
py.set_item(py.item(f, "experts"), "shared", value);
py.set_item(py.item(f, "experts"), "width", value);
}
if (py.bool(k.__call__(["use_qk_norm"]))) {
py.set_item(py.item(f, "attention"), "qk_norm", "without weights");
} else {
}
return null;
}
function special$_gemma4(f, k) {
let a, blocks, borrowers, d, far, inner, letters, names, near, over, own, rows, sets, strange;
[a, letters, d] = py.parts([py.item(f, "attention"), py.item(f, "layers"), py.item(f, "width")], 3);
{ const value = py.plus(py.slice(letters, null, py.minus(0, 1)), ((py.item(letters, py.minus(0, 1)) === "W") ? "F" : py.item(letters, py.minus(0, 1))));
py.set_item(f, "layers", value);
letters = value;
}
far = new Map([["head_width", k.__call__(["global_head_dim"], 512)]]);
if (py.bool(k.__call__(["attention_k_eq_v"]))) {
far = py.joined(far, new Map([["values_are_keys", true]]));
py.set_item(far, "key_heads", k.__call__(["num_global_key_value_heads"], py.item(a, "key_heads")));
} else {
}
over = py.or(k.__call__(["per_layer_config"]), () => new Map([]));
names = new Map([["head_dim", "head_width"], ["num_key_value_heads", "key_heads"]]);
sets = [...(function* () { for (const [i, said] of py.iter(py.items(over))) { if ((py.has("FB", py.item(letters, py.int(i))))) { yield new Map((function* () { for (const [x, y] of py.iter(py.items(said))) { if ((py.has(names, x))) { yield [py.item(names, x), y]; } } })()); } } })()];
strange = py.any((function* () { for (const said of py.iter(py.values(over))) { for (const x of py.iter(said)) { yield !py.has(names, x); } } })());
near = py.any((function* () { for (const i of py.iter(over)) { yield py.has("Wb", py.item(letters, py.int(i))); } })());
if ((py.bool(strange) || py.bool(near) || py.any((function* () { for (const x of py.iter(sets)) { yield !py.equal(x, py.item(sets, 0)); } })()) || (py.less(0, py.len(sets)) && py.less(py.len(sets), py.count(letters, "F"))))) {
throw new py.ValueError("per_layer_config changes layers one by one; that is not counted here");
} else {
}
if ((py.has(k.written, "per_layer_config"))) {
far = py.joined(far, new Map([["head_width", py.item(a, "head_width")], ...py.items((py.bool(sets) ? py.item(sets, 0) : new Map([])))]));
if ((!py.bool(sets) || (!py.has(py.item(sets, 0), "key_heads")))) {
py.pop(far, "key_heads", null);
} else {
}
} else {
}
py.set_item(f, "attention_in", new Map([[((py.has(letters, "B")) ? "B" : "F"), far]]));
borrowers = py.or(k.__call__(["num_kv_shared_layers"]), () => 0);
if (py.bool(borrowers)) {
py.set_item(f, "borrowers", borrowers);
if (py.bool(k.__call__(["use_double_wide_mlp"]))) {
blocks = py.len(letters);
own = py.minus(blocks, borrowers);
py.set_item(f, "feed_widths", py.plus(py.times([py.item(f, "feed_width")], own), py.times([py.times(2, py.item(f, "feed_width"))], borrowers)));
} else {
}
} else {
}
if (py.bool((inner = k.__call__(["hidden_size_per_layer_input"])))) {
[blocks, rows] = py.parts([py.len(letters), k.__call__(["vocab_size_per_layer_input"], py.item(f, "vocabulary"))], 2);
py.set_item(f, "extra", new Map([["per-layer embeddings", py.times(py.times(rows, blocks), inner)]]));
py.set_item(f, "extra_maps", new Map([["per-layer projections", py.plus(py.plus(py.times(py.times(d, blocks), inner), inner), py.times(blocks, py.plus(py.times(py.times(2, d), inner), d)))]]));
} else {
}
if ((py.has(f, "experts"))) {
py.set_item(f, "experts", py.joined(py.item(f, "experts"), new Map([["beside_dense", true], ["extra", py.plus(d, py.item(py.item(f, "experts"), "count"))]])));
py.set_item(f, "norms", 7);
} else {
}
return null;
}
function special$_phimoe(f, k) {
py.set_item(f, "head_bias", py.bool(k.__call__(["lm_head_bias"])));
return null;
}
function special$_kimi(f, k) {
let blocks, said;
[said, blocks] = py.parts([py.or(k.__call__(["linear_attn_config"]), () => new Map([])), py.len(py.item(f, "layers"))], 2);
if (((!py.has(k.written, "layer_types")) || (py.item(k.written, "layer_types") === null))) {
if ((py.has(said, "kda_layers"))) {
py.set_item(f, "layers", py.join("", (function* () { for (const i of py.iter(py.range(blocks))) { yield py.item("FK", py.has(py.item(said, "kda_layers"), py.plus(i, 1))); } })()));
} else {
py.set_item(f, "layers", py.join("", (function* () { for (const i of py.iter(py.range(blocks))) { yield py.item("FK", py.or(!py.bool(i), () => !py.equal(py.modulo(i, 4), 0))); } })()));
}
} else {
}
py.set_item(f, "positions", py.join("", (function* () { for (const x of py.iter(py.item(f, "layers"))) { yield ((x === "F") ? "N" : "-"); } })()));
return null;
}
function special$_minimax(f, k) {
let listed;
if (py.bool((listed = k.__call__(["attn_type_list"])))) {
py.set_item(f, "layers", py.join("", (function* () { for (const x of py.iter(listed)) { yield py.item("LF", x); } })()));
py.set_item(f, "positions", py.join("", (function* () { for (const x of py.iter(py.item(f, "layers"))) { yield ((x === "F") ? "R" : "-"); } })()));
} else {
}
if ((py.bool(py.get(f, "window")) && (py.has(py.item(f, "layers"), "F")))) {
py.set_item(f, "layers", py.replace(py.item(f, "layers"), "F", "W"));
} else {
}
return null;
}
function special$_mimo(f, k) {
let a, blocks, size;
a = py.item(f, "attention");
py.set_item(a, "value_width", k.__call__(["v_head_dim"], py.item(a, "head_width")));
py.set_item(f, "attention_in", new Map([["W", new Map([["key_heads", k.__call__(["swa_num_key_value_heads"], py.times(2, py.item(a, "key_heads")))], ["sink", true]])]]));
if (py.bool((size = k.__call__(["sliding_window_size"])))) {
py.set_item(f, "window", py.plus(size, 1));
} else {
}
if (((!py.has(k.written, "layer_types")) || (py.item(k.written, "layer_types") === null))) {
blocks = py.len(py.item(f, "layers"));
py.set_item(f, "layers", py.join("", (function* () { for (const i of py.iter(py.range(blocks))) { yield py.item("FW", py.and(!py.equal(i, 0), () => !py.equal(py.modulo(py.plus(i, 1), 6), 0))); } })()));
} else {
}
return null;
}
function special$_modernbert(f, k) {
py.set_item(f, "layers", py.translate(py.item(f, "layers"), new Map([[py.ord("F"), "B"], [py.ord("W"), "b"]])));
py.set_item(f, "radius", py.floored(py.pop(f, "window"), 2));
py.set_item(f, "norms", py.plus([1], py.times([2], py.minus(py.len(py.item(f, "layers")), 1))));
if (py.bool(k.__call__(["norm_bias"]))) {
py.set_item(f, "norm", "layer");
} else {
}
return null;
}
function special$_rwkv(f, k) {
py.set_item(f, "states", new Map([["r", new Map([["kind", "RWKV-4"], ["channels", py.or(k.__call__(["attention_hidden_size"]), () => py.item(f, "width"))]])]]));
py.set_item(f, "feeds", py.times("r", py.len(py.item(f, "layers"))));
return null;
}
function special$_mamba2(f, k) {
let name;
py.set_item(f, "feeds", py.times("-", py.len(py.item(f, "layers"))));
for (name of py.iter(["attention", "feed_width"])) {
py.pop(f, name, null);
}
return null;
}
const special$NEMOTRON = ["linear_attention", "moe", "full_attention", "mlp"];
function special$_nemotron(f, k) {
let d, e, inner, kinds, letters, named, part, used, words;
named = new Map([["M", "M"], ["*", "*"], ["E", "E"], ["-", "-"]]);
words = new Map([["linear_attention", "M"], ["mamba", "M"], ["moe", "E"], ["mlp", "-"]]);
words = py.joined(words, new Map([["full_attention", "*"], ["attention", "*"]]));
kinds = py.or(k.__call__(["hybrid_override_pattern"]), () => py.or(k.__call__(["layers_block_type"]), () => special$NEMOTRON));
letters = [...(function* () { for (const x of py.iter(kinds)) { yield py.or(py.get(words, x), () => py.item(named, x)); } })()];
py.set_item(f, "layers", py.join("", (function* () { for (const x of py.iter(letters)) { yield py.get(new Map([["M", "S"], ["*", "F"]]), x, "-"); } })()));
py.set_item(f, "feeds", py.join("", (function* () { for (const x of py.iter(letters)) { yield py.get(new Map([["E", "e"], ["-", "d"]]), x, "-"); } })()));
py.set_item(f, "positions", py.join("", (function* () { for (const x of py.iter(py.item(f, "layers"))) { yield ((x === "F") ? "N" : "-"); } })()));
if (py.bool(py.get(f, "window"))) {
py.set_item(f, "layers", py.replace(py.item(f, "layers"), "F", "W"));
} else {
}
[e, d] = py.parts([py.item(f, "experts"), py.item(f, "width")], 2);
if (py.bool((inner = k.__call__(["moe_latent_size"])))) {
e = py.joined(e, new Map([["latent", inner], ["extra", py.times(py.times(2, d), inner)]]));
} else {
}
for ([used, part] of py.iter([[py.has(py.item(f, "feeds"), "e"), "experts"], [py.has(py.item(f, "layers"), "S"), "states"]])) {
if (!py.bool(used)) {
py.pop(f, part);
} else {
}
}
return null;
}
function special$_mistral_large4(f, k) {
let a, d, h;
py.set_item(f, "layers", py.join("", (function* () { for (const x of py.iter(py.item(f, "positions"))) { yield ((x === "R") ? "F" : "P"); } })()));
[h, d, a] = py.parts([py.item(py.item(f, "attention"), "heads"), py.item(f, "width"), py.item(f, "latent")], 3);
a = py.joined(a, new Map([["extra", py.times(2, h)], ["index_extra", py.plus(py.times(2, d), py.times(2, py.item(a, "index_heads")))]]));
py.pop(a, "query_note", null);
py.set_item(f, "latent_in", new Map([["F", new Map([])], ["P", new Map([["unturned", py.plus(py.item(a, "unturned"), py.item(a, "turned"))], ["turned", 0]])]]));
return null;
}
function special$_muse(f, k) {
let blocks, d, inner;
[d, inner] = py.parts([py.item(f, "width"), k.__call__(["moe_hidden_size"])], 2);
py.set_item(f, "experts", py.joined(py.item(f, "experts"), new Map([["latent", inner], ["extra", py.plus(py.times(py.times(2, d), inner), py.times(2, inner))]])));
if ((!py.has(k.written, "layer_types"))) {
blocks = py.len(py.item(f, "layers"));
py.set_item(f, "layers", py.join("", (function* () { for (const i of py.iter(py.range(blocks))) { yield py.item("FW", !py.equal(py.modulo(py.minus(py.minus(blocks, 1), i), 4), 0)); } })()));
py.set_item(f, "positions", ordinary$positions_of(k, new Map([["positions", "layer_rope_theta"]]), f));
} else {
}
return null;
}
function special$_deepseek_v4(f, k) {
let blocks, d, far, h, near, rates, ratios, share, streams, turned;
[d, h, blocks] = py.parts([py.item(f, "width"), py.item(py.item(f, "attention"), "heads"), py.len(py.item(f, "layers"))], 3);
if (((!py.has(k.written, "layer_types")) && py.bool((ratios = k.__call__(["compress_ratios"]))))) {
py.set_item(f, "layers", py.join("", (function* () { for (const x of py.iter(py.slice(ratios, null, blocks))) { yield py.item(new Map([[0, "w"], [4, "c"], [128, "H"]]), x); } })()));
} else {
if ((!py.has(k.written, "layer_types"))) {
py.set_item(f, "layers", py.join("", (function* () { for (const i of py.iter(py.range(blocks))) { yield (((py.less(i, 2)) || (py.equal(py.modulo(i, 2), 0))) ? "H" : "c"); } })()));
} else {
}
}
[rates, streams] = py.parts([py.or(k.__call__(["compress_rates"]), () => new Map([])), k.__call__(["hc_mult"])], 2);
py.set_item(f, "attention", new Map([["heads", h], ["key_heads", 1], ["head_width", k.__call__(["head_dim"])]]));
py.set_item(f, "compressed", new Map([["heads", h], ["head_width", k.__call__(["head_dim"])], ["query_note", k.__call__(["q_lora_rank"])], ["output_groups", k.__call__(["o_groups"])], ["output_note", k.__call__(["o_lora_rank"])], ["index_width", k.__call__(["index_head_dim"])], ["index_heads", k.__call__(["index_n_heads"])], ["index_keys", k.__call__(["index_topk"])], ["far", py.or(k.__call__(["compress_rate_hca"]), () => py.get(rates, "heavily_compressed_attention", 128))], ["near", py.or(k.__call__(["compress_rate_csa"]), () => py.get(rates, "compressed_sparse_attention", 4))], ["streams", streams]]));
if ((py.has(py.item(f, "rope"), "all"))) {
turned = k.__call__(["qk_rope_head_dim"], py.over(k.__call__(["head_dim"]), 8));
share = k.__call__(["partial_rotary_factor"], py.over(turned, k.__call__(["head_dim"])));
far = new Map([...py.items(py.item(py.item(f, "rope"), "all")), ["base", k.__call__(["compress_rope_theta"])], ["partial", share]]);
near = new Map([["base", k.__call__(["rope_theta"], 10000.0)], ["partial", share]]);
py.set_item(f, "rope", new Map([["window", near], ["compressed", far]]));
} else {
}
py.set_item(f, "extra", new Map([["hyper-connection head", py.plus(py.plus(py.times(py.times(streams, streams), d), streams), 1)]]));
py.set_item(f, "experts", py.joined(py.item(f, "experts"), new Map([["shared", py.item(py.item(f, "experts"), "width")], ["shared_count", 1]])));
return null;
}
function special$_t5(f, k) {
let _d, bias, blocks, gated, h, n, proj;
[_d, h] = py.parts([py.item(f, "width"), py.item(py.item(f, "attention"), "heads")], 2);
proj = py.str(k.__call__(["feed_forward_proj"], "relu"));
gated = k.__call__(["is_gated_act"], py.startswith(proj, "gated"));
bias = new Map([["relative bias", py.times(k.__call__(["relative_attention_num_buckets"]), h)]]);
f = py.joined(f, new Map([["gated", gated], ["tied", true], ["extra", bias], ["cross", true]]));
blocks = py.len(py.item(f, "layers"));
py.set_item(f, "encoder", new Map([...py.items(f), ["vocabulary", 0], ["cross", false], ["layers", py.times("B", blocks)]]));
n = keys$number_of_layers(k.__call__(["num_decoder_layers"], blocks));
f = py.joined(f, new Map([["layers", py.times("F", n)], ["feeds", py.times("d", n)], ["positions", py.times("T", n)], ["blocks", n]]));
return null;
}
function special$_whisper(f, k) {
let d, h, letter, longest, mels, n, rows, side, sides, width;
[d, sides] = py.parts([py.item(f, "width"), new Map()], 2);
for ([side, letter] of py.iter([["encoder", "B"], ["decoder", "F"]])) {
[n, h] = py.parts([keys$number_of_layers(k.__call__([[py.str(side), "_layers"].join('')])), k.__call__([[py.str(side), "_attention_heads"].join('')])], 2);
width = py.floored(d, h);
py.set_item(sides, side, new Map([...py.items(new Map((function* () { for (const x of py.iter(["width", "norm", "gated", "feed_bias", "activation", "tied"])) { yield [x, py.item(f, x)]; } })())), ["vocabulary", ((side === "decoder") ? py.item(f, "vocabulary") : 0)], ["blocks", n], ["layers", py.times(letter, n)], ["feeds", py.times("d", n)], ["positions", py.times("L", n)], ["feed_width", k.__call__([[py.str(side), "_ffn_dim"].join('')])], ["attention", new Map([...py.items(py.item(f, "attention")), ["heads", h], ["key_heads", h], ["head_width", width]])]]));
}
[mels, rows] = py.parts([k.__call__(["num_mel_bins"]), k.__call__(["max_source_positions"])], 2);
py.set_item(sides, "encoder", py.joined(py.item(sides, "encoder"), new Map([["position_rows", rows], ["extra", new Map([["two convolutions", py.plus(py.plus(py.plus(py.times(py.times(3, mels), d), d), py.times(py.times(3, d), d)), d)]])]])));
longest = k.__call__(["max_target_positions"]);
py.clear(f);
f = py.joined(f, new Map([...py.items(py.item(sides, "decoder")), ["encoder", py.item(sides, "encoder")], ["cross", true]]));
f = py.joined(f, new Map([["position_rows", longest], ["context", longest]]));
return null;
}
const special$SPECIAL = new Map([["bert", special$_bert], ["bloom", special$_bloom], ["clip_text_model", special$_table], ["deepseek_v4", special$_deepseek_v4], ["falcon", special$_falcon], ["gemma4_text", special$_gemma4], ["gpt2", special$_table], ["gpt_neox", special$_parallel], ["kimi_linear", special$_kimi], ["llama4_text", special$_llama4], ["mamba2", special$_mamba2], ["mimo_v2_flash", special$_mimo], ["minimax", special$_minimax], ["mistral_large4_text", special$_mistral_large4], ["modernbert", special$_modernbert], ["mpt", special$_mpt], ["muse_spark_text", special$_muse], ["nemotron_h", special$_nemotron], ["openai-gpt", special$_table], ["opt", special$_opt], ["phimoe", special$_phimoe], ["roberta", special$_bert], ["rwkv", special$_rwkv], ["stablelm", special$_parallel], ["t5", special$_t5], ["vit", special$_vit], ["whisper", special$_whisper]]);
// --- tfviz/anatomy/counting.py
const counting$NORM = new Map([["rms", 1], ["layer", 2], ["layer without bias", 1], ["none", 0]]);
function counting$linear(inputs, outputs, bias = false) {
return py.plus(py.times(inputs, outputs), (py.bool(bias) ? outputs : 0));
return null;
}
function counting$heads_of(f, letter) {
let a;
a = new Map([...py.items(py.get(f, "attention", new Map([]))), ...py.items(py.get(py.get(f, "attention_in", new Map([])), letter, new Map([])))]);
if (py.bool(a)) {
py.setdefault(a, "value_width", py.item(a, "head_width"));
} else {
}
return a;
return null;
}
function counting$latent_of(f, letter) {
if ((!py.has(py.get(f, "latent_in", new Map([])), letter))) {
return null;
} else {
}
return new Map([...py.items(py.item(f, "latent")), ...py.items(py.item(py.item(f, "latent_in"), letter))]);
return null;
}
function counting$borrows(f, layer) {
return py.most(py.minus(py.len(py.item(f, "layers")), py.get(f, "borrowers", 0)), layer);
return null;
}
function counting$parameters(f) {
let active, d, each, encoder, feed, letter, n, norm, norms, parts, table, used;
[d, norm] = py.parts([py.item(f, "width"), py.item(counting$NORM, py.get(f, "norm", "rms"))], 2);
table = py.times(py.item(f, "vocabulary"), py.get(f, "table_width", d));
parts = py.fromkeys(["attention", "state", "feed", "norm"], 0);
py.set_item(parts, "embedding", table);
py.set_item(parts, "position", py.times(py.plus(py.get(f, "position_rows", 0), py.get(f, "segment_rows", 0)), d));
py.set_item(parts, "head", py.plus((py.bool(py.get(f, "tied")) ? 0 : table), (py.bool(py.get(f, "head_bias")) ? py.item(f, "vocabulary") : 0)));
py.set_item(parts, "other", py.sum(py.values(py.either(py.get(f, "extra", new Map([])), py.get(f, "extra_maps", new Map([]))))));
active = 0;
for ([n, letter] of py.iter(py.enumerate(py.item(f, "layers")))) {
if ((py.has(layers$STATES, letter))) {
py.set_item(parts, "state", py.plus(py.item(parts, "state"), counting$state_weights(f, letter)));
} else {
if ((letter !== "-")) {
py.set_item(parts, "attention", py.plus(py.item(parts, "attention"), counting$attention_weights(f, n)));
} else {
}
}
if (py.bool(py.get(f, "cross"))) {
py.set_item(parts, "attention", py.plus(py.item(parts, "attention"), counting$attention_weights(new Map([...py.items(f), ["borrowers", 0]]), n)));
py.set_item(parts, "norm", py.plus(py.item(parts, "norm"), py.times(norm, d)));
} else {
}
[feed, used] = py.parts(counting$feed_weights(f, n), 2);
py.set_item(parts, "feed", py.plus(py.item(parts, "feed"), feed));
active = py.plus(active, used);
}
norms = py.get(f, "norms", 2);
each = ((py.is_list(norms)) ? norms : py.times([norms], py.len(py.item(f, "layers"))));
py.set_item(parts, "norm", py.plus(py.item(parts, "norm"), py.times(py.times(py.plus(py.sum(each), py.get(f, "norms_at_end", 1)), norm), d)));
if ((py.has(f, "encoder"))) {
encoder = counting$parameters(py.item(f, "encoder"));
active = py.plus(active, py.pop(encoder, "feed_active"));
parts = new Map((function* () { for (const [part, n] of py.iter(py.items(parts))) { yield [part, py.plus(n, py.item(encoder, part))]; } })());
} else {
}
return new Map([...py.items(parts), ["feed_active", active]]);
return null;
}
function counting$attention_weights(f, layer) {
let a, d, d_h, d_v, h, h_kv, k, latent, learned, letter, normed, o, q, total, v;
[letter, d] = py.parts([py.item(py.item(f, "layers"), layer), py.item(f, "width")], 2);
if ((py.has(f, "compressed"))) {
return counting$_compressed_weights(f, letter);
} else {
}
latent = counting$latent_of(f, letter);
if ((latent !== null)) {
return counting$_latent_weights(latent, d, layer);
} else {
}
a = counting$heads_of(f, letter);
[h, h_kv, d_h, d_v] = py.parts((function* () { for (const x of py.iter(["heads", "key_heads", "head_width", "value_width"])) { yield py.item(a, x); } })(), 4);
q = py.get(a, "bias_q", false);
[k, v, o] = py.parts([py.get(a, "bias_k", q), py.get(a, "bias_v", q), py.get(a, "bias_o", false)], 3);
total = py.plus(counting$linear(d, py.times(py.times(h, d_h), ((py.get(a, "gate") === "query") ? 2 : 1)), q), counting$linear(py.times(h, d_v), d, o));
learned = (py.bool(py.get(a, "qk_norm_bias")) ? 2 : 1);
normed = py.get(new Map([["head", d_h], ["width", py.times(h, d_h)]]), py.get(a, "qk_norm", ""), 0);
if (!py.bool(counting$borrows(f, layer))) {
total = py.plus(total, counting$linear(d, py.times(h_kv, d_h), k));
total = py.plus(total, (py.bool(py.get(a, "values_are_keys")) ? 0 : counting$linear(d, py.times(h_kv, d_v), v)));
normed = py.plus(normed, py.get(new Map([["head", d_h], ["width", py.times(h_kv, d_h)]]), py.get(a, "qk_norm", ""), 0));
} else {
}
total = py.plus(total, py.plus(py.times(learned, normed), (py.bool(py.get(a, "sink")) ? h : 0)));
return py.int(py.plus(total, ((py.get(a, "gate") === "number") ? py.times(py.times(d, h), d_v) : 0)));
return null;
}
function counting$_latent_weights(a, d, layer) {
let bias, h, heads, key, note, query, total, turned, value$, width;
[h, note, bias] = py.parts([py.item(a, "heads"), py.item(a, "note"), py.get(a, "bias", false)], 3);
[key, turned, value$, query] = py.parts([py.item(a, "unturned"), py.item(a, "turned"), py.item(a, "value"), py.get(a, "query_note")], 4);
if (py.bool(query)) {
total = py.plus(py.plus(counting$linear(d, query, bias), query), py.times(py.times(query, h), py.plus(key, turned)));
} else {
total = py.times(py.times(d, h), py.plus(key, turned));
}
total = py.plus(total, py.plus(py.plus(counting$linear(d, py.plus(note, turned), bias), note), py.times(py.times(note, h), py.plus(key, value$))));
total = py.plus(total, py.plus(counting$linear(py.times(h, value$), d, bias), py.get(a, "extra", 0)));
if ((py.bool(py.get(a, "index_heads")) && (!py.has(py.get(a, "index_borrowers", []), layer)))) {
[heads, width] = py.parts([py.item(a, "index_heads"), py.item(a, "index_width")], 2);
total = py.plus(total, py.plus(py.plus(py.plus(py.times(py.times(py.or(query, () => d), heads), width), py.times(d, width)), py.times(2, width)), py.times(d, heads)));
total = py.plus(total, py.get(a, "index_extra", 0));
} else {
}
return py.int(total);
return null;
}
function counting$_compressed_weights(f, letter) {
let a, d, d_h, groups, h, heads, kept_width, m, note, query, total, width;
[a, d] = py.parts([py.item(f, "compressed"), py.item(f, "width")], 2);
[h, d_h, query, m] = py.parts([py.item(a, "heads"), py.item(a, "head_width"), py.item(a, "query_note"), py.item(a, "streams")], 4);
[groups, note] = py.parts([py.item(a, "output_groups"), py.item(a, "output_note")], 2);
total = py.plus(py.plus(py.plus(py.plus(py.plus(h, py.times(d, query)), query), py.times(py.times(query, h), d_h)), py.times(d, d_h)), d_h);
total = py.plus(total, py.plus(py.times(py.times(groups, note), py.floored(py.times(h, d_h), groups)), py.times(py.times(groups, note), d)));
if ((letter === "H")) {
total = py.plus(total, py.plus(py.plus(py.times(py.item(a, "far"), d_h), py.times(py.times(2, d), d_h)), d_h));
} else {
}
if ((letter === "c")) {
[width, heads] = py.parts([py.item(a, "index_width"), py.item(a, "index_heads")], 2);
for (kept_width of py.iter([d_h, width])) {
total = py.plus(total, py.plus(py.plus(py.times(py.times(py.item(a, "near"), 2), kept_width), py.times(py.times(py.times(2, d), 2), kept_width)), kept_width));
}
total = py.plus(total, py.plus(py.times(py.times(query, heads), width), py.times(d, heads)));
} else {
}
return py.int(py.plus(total, py.times(2, py.plus(py.plus(py.times(py.times(py.plus(py.times(m, m), py.times(2, m)), m), d), py.plus(py.times(m, m), py.times(2, m))), 3))));
return null;
}
function counting$state_weights(f, letter) {
let bias, channels, d, groups, h, inner, keys, kind, n, r, s, step, total, values, w;
[s, d] = py.parts([py.item(py.item(f, "states"), letter), py.item(f, "width")], 2);
[kind, w] = py.parts([py.item(s, "kind"), py.get(s, "convolution", 0)], 2);
if ((kind === "gated delta rule")) {
[keys, values] = py.parts([py.times(py.item(s, "key_heads"), py.item(s, "key_width")), py.times(py.item(s, "value_heads"), py.item(s, "value_width"))], 2);
total = py.plus(py.plus(py.times(py.times(2, d), py.plus(keys, values)), py.times(py.times(2, d), py.item(s, "value_heads"))), py.times(w, py.plus(py.times(2, keys), values)));
return py.int(py.plus(py.plus(py.plus(total, py.times(2, py.item(s, "value_heads"))), py.item(s, "value_width")), py.times(values, d)));
} else {
}
if ((kind === "delta rule by feature")) {
[h, r] = py.parts([py.item(s, "heads"), py.item(s, "head_width")], 2);
return py.int(py.plus(py.plus(py.plus(py.plus(py.plus(py.plus(py.times(py.times(py.times(4, d), h), r), py.times(py.times(py.times(3, w), h), r)), py.times(2, py.plus(py.times(d, r), py.times(py.times(r, h), r)))), py.times(d, h)), py.times(h, r)), h), r));
} else {
}
if ((kind === "Mamba-2")) {
[inner, groups] = py.parts([py.times(py.item(s, "heads"), py.item(s, "head_width")), py.times(py.item(s, "groups"), py.item(s, "state"))], 2);
[channels, bias] = py.parts([py.plus(inner, py.times(2, groups)), py.get(s, "map_bias", false)], 2);
total = py.plus(counting$linear(d, py.plus(py.plus(py.times(2, inner), py.times(2, groups)), py.item(s, "heads")), bias), counting$linear(inner, d, bias));
total = py.plus(total, py.times(channels, py.plus(w, (py.bool(py.get(s, "convolution_bias", true)) ? 1 : 0))));
return py.int(py.plus(py.plus(total, py.times(3, py.item(s, "heads"))), inner));
} else {
}
if ((kind === "Mamba-1")) {
[inner, n, step, bias] = py.parts([py.item(s, "channels"), py.item(s, "state"), py.item(s, "step_rank"), py.get(s, "map_bias", false)], 4);
total = py.plus(counting$linear(d, py.times(2, inner), bias), counting$linear(inner, d, bias));
total = py.plus(total, py.times(inner, py.plus(w, (py.bool(py.get(s, "convolution_bias", true)) ? 1 : 0))));
total = py.plus(total, py.plus(py.plus(py.plus(py.plus(py.times(inner, py.plus(step, py.times(2, n))), py.times(step, inner)), inner), py.times(inner, n)), inner));
return py.int(py.plus(total, (py.bool(py.get(s, "norms")) ? py.plus(step, py.times(2, n)) : 0)));
} else {
}
if ((kind === "lightning attention")) {
inner = py.times(py.item(s, "heads"), py.item(s, "head_width"));
return py.int(py.plus(py.times(py.times(5, d), inner), inner));
} else {
}
if ((kind === "RWKV-4")) {
channels = py.get(s, "channels", d);
return py.int(py.plus(py.plus(py.times(py.times(4, d), channels), py.times(2, channels)), py.times(3, d)));
} else {
}
if ((kind === "RWKV-7")) {
return py.int(py.plus(py.plus(py.times(py.times(4, d), d), py.times(15, d)), py.times(py.times(2, d), py.sum(py.item(s, "ranks")))));
} else {
}
throw new py.ValueError(["states.", py.str(letter), ".kind = ", py.repr(kind), " is not counted; see tfviz/anatomy/counting"].join(''));
return null;
}
function counting$feed_weights(f, layer) {
let alone, beside, bias, d, dense, e, inside, letter, matrices, one, wide;
[letter, d, matrices] = py.parts([py.item(py.item(f, "feeds"), layer), py.item(f, "width"), (py.bool(py.get(f, "gated", true)) ? 3 : 2)], 3);
wide = ((py.has(f, "feed_widths")) ? py.item(py.item(f, "feed_widths"), layer) : py.get(f, "feed_width", 0));
dense = py.times(py.times(matrices, d), wide);
dense = py.plus(dense, (py.bool(py.get(f, "feed_bias")) ? py.plus(py.times(py.minus(matrices, 1), wide), d) : 0));
alone = new Map([["-", 0], ["d", dense], ["a", py.plus(py.plus(py.plus(py.plus(py.times(py.times(2, d), wide), wide), d), py.times(py.times(6, d), d)), py.times(6, d))], ["r", py.plus(py.plus(py.times(py.times(2, d), wide), py.times(d, d)), py.times(2, d))], ["v", py.times(py.times(8, d), d)]]);
if ((letter !== "e")) {
return [py.item(alone, letter), py.item(alone, letter)];
} else {
}
e = py.item(f, "experts");
[inside, bias] = py.parts([py.or(py.get(e, "latent"), () => d), (py.bool(py.get(e, "bias")) ? py.plus(py.times(py.minus(matrices, 1), py.item(e, "width")), d) : 0)], 2);
one = py.plus(py.times(py.times(matrices, inside), py.item(e, "width")), bias);
beside = py.plus(counting$linear(d, py.item(e, "count"), false), (py.bool(py.get(e, "router_bias")) ? py.item(e, "count") : 0));
beside = py.plus(beside, py.plus(py.times(py.times(matrices, d), py.get(e, "shared", 0)), (py.bool(py.get(e, "shared_gate")) ? d : 0)));
if ((py.bool(py.get(e, "shared")) && py.bool(py.get(f, "shared_bias")))) {
beside = py.plus(beside, py.plus(py.times(py.minus(matrices, 1), py.item(e, "shared")), d));
} else {
}
beside = py.plus(beside, py.plus((py.bool(py.get(e, "beside_dense")) ? dense : 0), py.get(e, "extra", 0)));
return [py.plus(py.times(py.item(e, "count"), one), beside), py.plus(py.times(py.item(e, "chosen"), one), beside)];
return null;
}
function counting$multiplied(f) {
let parts, read_out, used;
parts = counting$parameters(f);
read_out = py.times(py.item(f, "vocabulary"), py.get(f, "table_width", py.item(f, "width")));
used = py.plus(py.plus(py.plus(py.item(parts, "attention"), py.item(parts, "state")), py.item(parts, "feed_active")), read_out);
return py.int(py.plus(used, py.sum(py.values(py.get(f, "extra_maps", new Map([]))))));
return null;
}
function counting$kept(f, L) {
let each;
each = [...(function* () { for (const n of py.iter(py.range(py.len(py.item(f, "layers"))))) { yield counting$kept_by(f, n, L); } })()];
return [py.sum((function* () { for (const [keys, _] of py.iter(each)) { yield keys; } })()), py.sum((function* () { for (const [_, state] of py.iter(each)) { yield state; } })())];
return null;
}
function counting$kept_by(f, layer, L) {
let letter, own;
letter = py.item(py.item(f, "layers"), layer);
if ((py.has(layers$STATES, letter))) {
return [0, counting$state_numbers(f, letter)];
} else {
}
own = py.and(!py.has("-Bb", letter), () => !py.bool(counting$borrows(f, layer)));
return [(py.bool(own) ? counting$keys_numbers(f, layer, L) : 0), 0];
return null;
}
function counting$keys_numbers(f, layer, L) {
let a, far, index, latent, letter, near, rows;
letter = py.item(py.item(f, "layers"), layer);
if ((py.has(f, "compressed"))) {
a = py.item(f, "compressed");
far = py.item(new Map([["H", py.times(py.floored(L, py.item(a, "far")), py.item(a, "head_width"))], ["c", 0], ["w", 0]]), letter);
near = ((letter === "c") ? py.times(py.floored(L, py.item(a, "near")), py.plus(py.item(a, "head_width"), py.item(a, "index_width"))) : 0);
return py.int(py.plus(py.plus(py.times(py.item(a, "head_width"), py.min([L, py.item(f, "window")], null)), far), near));
} else {
}
latent = counting$latent_of(f, letter);
if ((latent !== null)) {
index = (py.bool(py.get(latent, "index_heads")) ? py.get(latent, "index_width", 0) : 0);
if ((py.has(py.get(latent, "index_borrowers", []), layer))) {
index = 0;
} else {
}
return py.int(py.times(py.plus(py.plus(py.item(latent, "note"), py.item(latent, "turned")), index), L));
} else {
}
a = counting$heads_of(f, letter);
rows = py.get(new Map([["W", py.min([L, py.get(f, "window", L)], null)], ["C", py.min([L, py.get(f, "chunk", L)], null)]]), letter, L);
return py.int(py.times(py.times(py.item(a, "key_heads"), py.plus(py.item(a, "head_width"), py.item(a, "value_width"))), rows));
return null;
}
function counting$state_numbers(f, letter) {
let s, size, sizes, total;
s = py.item(py.item(f, "states"), letter);
sizes = new Map([["gated delta rule", ["value_heads", "key_width", "value_width"]], ["delta rule by feature", ["heads", "head_width", "head_width"]], ["Mamba-2", ["heads", "head_width", "state"]], ["Mamba-1", ["channels", "state"]], ["lightning attention", ["heads", "head_width", "head_width"]]]);
if ((py.item(s, "kind") === "RWKV-4")) {
return py.int(py.times(5, py.item(f, "width")));
} else {
}
if ((py.item(s, "kind") === "RWKV-7")) {
return py.int(py.times(66, py.item(f, "width")));
} else {
}
total = 1;
for (size of py.iter(py.item(sizes, py.item(s, "kind")))) {
total = py.times(total, py.item(s, size));
}
return total;
return null;
}
function counting$convolved(f) {
let channels, letter, s, total;
total = 0;
for (letter of py.iter(py.item(f, "layers"))) {
s = ((py.has(layers$STATES, letter)) ? py.item(py.item(f, "states"), letter) : new Map([]));
channels = py.get(new Map([["gated delta rule", ((s) => py.plus(py.times(py.times(2, py.item(s, "key_heads")), py.item(s, "key_width")), py.times(py.item(s, "value_heads"), py.item(s, "value_width"))))], ["delta rule by feature", ((s) => py.times(py.times(3, py.item(s, "heads")), py.item(s, "head_width")))], ["Mamba-2", ((s) => py.plus(py.times(py.item(s, "heads"), py.item(s, "head_width")), py.times(py.times(2, py.item(s, "groups")), py.item(s, "state"))))], ["Mamba-1", ((s) => py.item(s, "channels"))]]), py.get(s, "kind", ""), ((s) => 0))(s);
total = py.plus(total, py.times(py.get(s, "convolution", 0), channels));
}
return py.int(total);
return null;
}
function counting$pair_operations(f, letter, absorbed) {
let a, latent, note, turned, wide;
if ((py.has(f, "compressed"))) {
a = py.item(f, "compressed");
return [py.times(py.times(4, py.item(a, "heads")), py.item(a, "head_width")), py.times(py.times(2, py.item(a, "index_heads")), py.item(a, "index_width"))];
} else {
}
latent = counting$latent_of(f, letter);
if ((latent === null)) {
a = counting$heads_of(f, letter);
return [py.times(py.times(2, py.item(a, "heads")), py.plus(py.item(a, "head_width"), py.item(a, "value_width"))), 0];
} else {
}
[note, turned] = py.parts([py.item(latent, "note"), py.item(latent, "turned")], 2);
wide = (py.bool(absorbed) ? py.plus(py.times(2, note), turned) : py.plus(py.plus(py.item(latent, "unturned"), turned), py.item(latent, "value")));
return [py.times(py.times(2, py.item(latent, "heads")), wide), py.times(py.times(2, py.get(latent, "index_heads", 0)), py.get(latent, "index_width", 0))];
return null;
}
function counting$within(L, window) {
let n;
n = py.min([L, window], null);
return py.plus(py.floored(py.times(n, py.plus(n, 1)), 2), py.times(py.max([py.minus(L, window), 0], null), window));
return null;
}
function counting$_chosen(f, letter) {
let latent;
latent = py.or(counting$latent_of(f, letter), () => new Map([]));
return (py.bool(py.get(latent, "index_heads")) ? py.int(py.get(latent, "index_keys", 0)) : 0);
return null;
}
function counting$pairs(f, letter, L) {
let a, chosen, chunk, everything, full, near, rest, whole;
everything = py.floored(py.times(L, py.plus(L, 1)), 2);
if ((py.has(f, "compressed"))) {
[a, near] = py.parts([py.item(f, "compressed"), counting$within(L, py.item(f, "window"))], 2);
if ((letter === "c")) {
full = py.min([L, py.times(py.item(a, "index_keys"), py.item(a, "near"))], null);
chosen = py.plus(py.floored(py.times(full, full), py.times(2, py.item(a, "near"))), py.times(py.minus(L, full), py.item(a, "index_keys")));
return [py.plus(near, chosen), py.floored(py.times(L, L), py.times(2, py.item(a, "near")))];
} else {
}
return [py.plus(near, ((letter === "H") ? py.floored(py.times(L, L), py.times(2, py.item(a, "far"))) : 0)), 0];
} else {
}
if ((letter === "W")) {
return [counting$within(L, py.item(f, "window")), 0];
} else {
}
if ((letter === "C")) {
chunk = py.item(f, "chunk");
[whole, rest] = py.parts(py.divmod(L, chunk), 2);
return [py.plus(py.times(whole, py.floored(py.times(chunk, py.plus(chunk, 1)), 2)), py.floored(py.times(rest, py.plus(rest, 1)), 2)), 0];
} else {
}
if ((letter === "B")) {
return [py.times(L, L), 0];
} else {
}
if ((letter === "b")) {
near = py.min([py.item(f, "radius"), py.minus(L, 1)], null);
return [py.minus(py.times(L, py.plus(py.times(2, near), 1)), py.times(near, py.plus(near, 1))), 0];
} else {
}
if (py.bool((chosen = counting$_chosen(f, letter)))) {
return [counting$within(L, chosen), everything];
} else {
}
return [everything, 0];
return null;
}
function counting$seen(f, letter, L) {
let a, chosen, n, near;
n = py.plus(L, 1);
if ((py.has(f, "compressed"))) {
[a, near] = py.parts([py.item(f, "compressed"), py.min([n, py.item(f, "window")], null)], 2);
if ((letter === "c")) {
return [py.plus(near, py.min([py.floored(L, py.item(a, "near")), py.item(a, "index_keys")], null)), py.floored(L, py.item(a, "near"))];
} else {
}
return [py.plus(near, ((letter === "H") ? py.floored(L, py.item(a, "far")) : 0)), 0];
} else {
}
if ((letter === "W")) {
return [py.min([n, py.item(f, "window")], null), 0];
} else {
}
if ((letter === "C")) {
return [py.plus(py.modulo(L, py.item(f, "chunk")), 1), 0];
} else {
}
if (py.bool((chosen = counting$_chosen(f, letter)))) {
return [py.min([n, chosen], null), n];
} else {
}
return [n, 0];
return null;
}
function counting$state_operations(f, letter) {
let per_number;
per_number = new Map([["Mamba-2", 5], ["Mamba-1", 6], ["lightning attention", 5], ["RWKV-4", 8], ["RWKV-7", 8]]);
return py.times(py.get(per_number, py.item(py.item(py.item(f, "states"), letter), "kind"), 7), counting$state_numbers(f, letter));
return null;
}
function counting$decode_operations(f, L, absorbed = true) {
let index, keys, letter, own, scored, total;
total = new Map([["weights", py.times(2, counting$multiplied(f))], ["pairs", 0], ["states", 0]]);
for (letter of py.iter(py.item(f, "layers"))) {
if ((py.has(layers$STATES, letter))) {
py.set_item(total, "states", py.plus(py.item(total, "states"), counting$state_operations(f, letter)));
} else {
if ((letter !== "-")) {
[own, index] = py.parts(counting$pair_operations(f, letter, absorbed), 2);
[keys, scored] = py.parts(counting$seen(f, letter, L), 2);
py.set_item(total, "pairs", py.plus(py.item(total, "pairs"), py.plus(py.times(own, keys), py.times(index, scored))));
} else {
}
}
}
return total;
return null;
}
function counting$prefill_operations(f, L, absorbed = false, all_logits = false) {
let attended, head, index, letter, own, scored, total, weights;
head = py.times(py.item(f, "vocabulary"), py.get(f, "table_width", py.item(f, "width")));
weights = py.plus(py.times(py.times(2, L), py.minus(counting$multiplied(f), head)), py.times(py.times(2, head), (py.bool(all_logits) ? L : py.min([L, 1], null))));
total = new Map([["weights", weights], ["pairs", 0], ["states", 0]]);
for (letter of py.iter(py.item(f, "layers"))) {
if ((py.has(layers$STATES, letter))) {
py.set_item(total, "states", py.plus(py.item(total, "states"), py.times(L, counting$state_operations(f, letter))));
} else {
if ((letter !== "-")) {
[own, index] = py.parts(counting$pair_operations(f, letter, absorbed), 2);
[attended, scored] = py.parts(counting$pairs(f, letter, L), 2);
py.set_item(total, "pairs", py.plus(py.item(total, "pairs"), py.plus(py.times(own, attended), py.times(index, scored))));
} else {
}
}
}
return total;
return null;
}
function counting$experts_touched(f, tokens) {
let e;
e = py.item(f, "experts");
if (!py.bool(py.item(e, "count"))) {
return 0.0;
} else {
}
return py.float(py.times(py.item(e, "count"), py.minus(1, py.power(py.minus(1, py.over(py.item(e, "chosen"), py.item(e, "count"))), tokens))));
return null;
}
function counting$weights_read(f, tokens) {
let all_of_it, letter, n, one, parts, rest, total, used;
parts = counting$parameters(f);
total = py.plus(py.plus(py.item(parts, "attention"), py.item(parts, "state")), py.item(parts, "norm"));
total = py.plus(total, py.plus(py.times(py.item(f, "vocabulary"), py.item(f, "width")), py.sum(py.values(py.get(f, "extra_maps", new Map([]))))));
for ([n, letter] of py.iter(py.enumerate(py.item(f, "feeds")))) {
[all_of_it, used] = py.parts(counting$feed_weights(f, n), 2);
if (((letter === "e") && py.bool((rest = py.minus(py.item(py.item(f, "experts"), "count"), py.item(py.item(f, "experts"), "chosen")))))) {
one = py.over(py.minus(all_of_it, used), rest);
total = py.plus(total, py.plus(used, py.times(one, py.minus(counting$experts_touched(f, tokens), py.item(py.item(f, "experts"), "chosen")))));
} else {
total = py.plus(total, all_of_it);
}
}
return total;
return null;
}
function counting$bytes_at_decode(f, L, batch, bits, cache_bits, state_bits) {
let chosen, keys, latent, letter, n, note, rows, states;
[keys, states] = py.parts([0, 0], 2);
for ([n, letter] of py.iter(py.enumerate(py.item(f, "layers")))) {
if ((py.has(layers$STATES, letter))) {
states = py.plus(states, counting$state_numbers(f, letter));
} else {
if ((!py.has("-Bb", letter))) {
rows = counting$keys_numbers(new Map([...py.items(f), ["borrowers", 0]]), n, L);
if (py.bool((chosen = counting$_chosen(f, letter)))) {
latent = py.or(counting$latent_of(f, letter), () => new Map([]));
note = py.plus(py.item(latent, "note"), py.item(latent, "turned"));
rows = py.plus(rows, py.times(note, py.minus(py.min([L, chosen], null), L)));
} else {
}
keys = py.plus(keys, rows);
} else {
}
}
}
return new Map([["weights", py.over(py.times(counting$weights_read(f, batch), bits), 8)], ["keys and values", py.over(py.times(py.times(keys, batch), cache_bits), 8)], ["states", py.over(py.times(py.times(py.times(2, states), batch), state_bits), 8)]]);
return null;
}
// --- tfviz/anatomy/made_of.py
function made_of$_sides(f) {
return py.plus(py.join("", py.item(f, "positions")), py.join("", py.get(py.get(f, "encoder", new Map([])), "positions", "")));
return null;
}
function made_of$uses(f) {
let a, attends, causal, everywhere, feeds, grouped, heads, kinds, latent, layers, mixed, more, one, positions, rope, rules, scaled, shares, tokens, wide;
[layers, feeds, positions] = py.parts([py.set(py.item(f, "layers")), py.set(py.item(f, "feeds")), made_of$_sides(f)], 3);
[a, latent, rope] = py.parts([py.get(f, "attention", new Map([])), py.get(f, "latent"), py.get(f, "rope", new Map([]))], 3);
attends = py.bool(py.minus(py.minus(layers, py.set(layers$STATES)), py.set(["-"])));
causal = py.bool(py.minus(layers, py.set("Bb-")));
more = [...py.iter(py.values(py.get(f, "attention_in", new Map([]))))];
heads = [...(function* () { for (const x of py.iter(((py.bool(a) && py.bool(attends) && !py.bool(latent)) ? [new Map([]), ...py.iter(more)] : []))) { yield new Map([...py.items(a), ...py.items(x)]); } })()];
shares = [...(function* () { for (const x of py.iter(heads)) { yield py.over(py.item(x, "heads"), py.item(x, "key_heads")); } })()];
one = [...(function* () { for (const x of py.iter(heads)) { yield py.equal(py.item(x, "key_heads"), 1); } })()];
tokens = py.less(0, py.item(f, "vocabulary"));
grouped = py.any((function* () { for (const [n, single] of py.iter(py.zip(shares, one))) { yield py.and(py.less(1, n), () => !py.bool(single)); } })());
wide = [...(function* () { for (const x of py.iter(heads)) { yield !py.equal(py.times(py.item(x, "heads"), py.item(x, "head_width")), py.item(f, "width")); } })()];
mixed = py.and(py.bool(py.both(layers, py.set("WCb"))), () => py.bool(py.both(layers, py.set("FB"))));
everywhere = py.equal(layers, py.set(["W"]));
scaled = py.any((function* () { for (const x of py.iter(py.values(rope))) { yield !py.has([null, "proportional"], py.get(x, "scaling")); } })());
kinds = new Map([["gated_linear_attention", py.both(layers, py.set("SMLr"))], ["delta_rule", py.both(layers, py.set("GKv"))]]);
rules = new Map([["token_embedding", tokens], ["vit_patches", py.get(f, "input") === "patches"], ["tokenise_anything", py.get(f, "input") === "sound"], ["encoder_decoder", py.has(f, "encoder")], ["sinusoidal_pe", py.has(positions, "S")], ["learned_pe", py.has(positions, "L")], ["shaw_relative", py.has(positions, "T")], ["alibi", py.has(positions, "A")], ["rope", py.has(positions, "R")], ["rope_scaling", py.and(py.has(positions, "R"), () => scaled)], ["partial_rope", py.or(py.bool(latent), () => py.any((function* () { for (const x of py.iter(py.values(rope))) { yield py.has(x, "partial"); } })()))], ["multimodal_rope", py.any((function* () { for (const x of py.iter(py.values(rope))) { yield py.has(x, "axes"); } })())], ["nope_layers", py.has(positions, "N")], ["scaled_dot_product_attention", attends], ["multi_head_attention", attends], ["multi_query_attention", py.and(py.any(one), () => !py.bool(grouped))], ["grouped_query_attention", grouped], ["latent_attention", py.bool(latent)], ["decoupled_head_size", py.any(wide)], ["shared_layer_cache", py.get(f, "borrowers")], ["local_global_layers", mixed], ["atomic_patterns", py.or(everywhere, () => py.has(layers, "C"))], ["longformer", everywhere], ["sparse_transformer_strided", py.get(f, "every_other_layer") === "strided"], ["sparse_transformer_usage", py.get(f, "every_other_layer") === "strided"], ["lightning_indexer", py.get(py.or(latent, () => py.get(f, "compressed", new Map([]))), "index_heads")], ["memory_compressed_attention", py.has(f, "compressed")], ["attention_sink", py.or(py.any((function* () { for (const x of py.iter([a, ...py.iter(more)])) { yield py.get(x, "sink"); } })()), () => py.has(f, "compressed"))], ["gated_attention", py.has(a, "gate")], ["bounded_scores", py.or(py.has(a, "qk_norm"), () => py.or(py.get(f, "score_cap"), () => py.get(f, "logit_cap")))], ...py.items(kinds), ["hybrid_layers", py.and(attends, () => py.both(layers, py.set(layers$STATES)))], ["pointwise_mlp", py.bool(py.both(feeds, py.set("dea")))], ["mixture_of_experts", py.has(feeds, "e")], ["expert_balance", py.has(feeds, "e")], ["residual_connection", true], ["layer_norm_pre_post", true], ["hyper_connections", py.has(f, "compressed")], ["causal_masking", causal], ["lm_objectives", tokens], ["speculative_decoding", py.get(f, "drafts")], ["kv_cache", py.and(causal, () => attends)], ["decoding_strategies", causal]]);
return py.tuple((function* () { for (const [name, yes] of py.iter(py.items(rules))) { if (py.bool(yes)) { yield name; } } })());
return null;
}
function made_of$beyond(f) {
let feeds, layers, place, rules, states;
[layers, place] = py.parts([py.set(py.item(f, "layers")), py.get(f, "place", "pre")], 2);
feeds = py.set(py.item(f, "feeds"));
states = [...(function* () { for (const x of py.iter(py.values(py.get(f, "states", new Map([]))))) { if (py.bool(py.get(x, "convolution"))) { yield x; } } })()];
rules = new Map([["T5's bias by buckets", py.has(py.item(f, "positions"), "T")], ["RWKV-4: an average of each channel that fades, with a bonus for the newest", py.has(layers, "r")], ["Mamba-1: a decay for each channel and state", py.has(layers, "M")], ["a short causal convolution before the state", states], ["compressed sparse attention, with keys that are values", py.has(f, "compressed")], ["a feed-forward network with a gate (SwiGLU, GeGLU)", py.and(py.get(f, "gated", true), () => py.both(feeds, py.set("de")))], ["attention and feed-forward network side by side", py.has(place, "parallel")], ["a norm after the sublayer, inside the skip", py.or(py.has(place, "sandwich"), () => py.has(place, "inside"))], ["a table of embeddings for each layer", py.has(py.get(f, "extra", new Map([])), "per-layer embeddings")], ["adaLN-Zero: norms steered by time and class", py.has(feeds, "a")], ["experts that work in a narrower width", py.get(py.get(f, "experts", new Map([])), "latent")]]);
return py.tuple((function* () { for (const [words, yes] of py.iter(py.items(rules))) { if (py.bool(yes)) { yield words; } } })());
return null;
}
// --- tfviz/anatomy/ghosts.py
const ghosts$FAR = py.power(2, 40);
function ghosts$seeing_all(f) {
let attends, layers, letters;
layers = py.item(f, "layers");
attends = py.or(py.bool(py.get(f, "attention")), () => py.has(py.get(f, "latent_in", new Map([])), "F"));
if (((py.has(f, "compressed")) || !py.bool(attends))) {
return null;
} else {
}
letters = py.join("", (function* () { for (const letter of py.iter(layers)) { yield ((py.has(layers$STATES, letter)) ? "F" : letter); } })());
return new Map([["layers", letters], ["window", ghosts$FAR], ["chunk", ghosts$FAR]]);
return null;
}
function ghosts$with_every_head(f) {
let by_letter, changes, heads, latent, letter, other, plain;
changes = ghosts$seeing_all(f);
if ((changes === null)) {
return null;
} else {
}
plain = new Map([]);
if (py.bool(py.get(f, "attention"))) {
plain = new Map([...py.items(py.item(f, "attention")), ["key_heads", py.item(py.item(f, "attention"), "heads")]]);
} else {
}
by_letter = new Map([]);
for ([letter, other] of py.iter(py.items(py.get(f, "attention_in", new Map([]))))) {
py.set_item(by_letter, letter, new Map([...py.items(other), ["key_heads", py.get(other, "heads", py.get(plain, "heads"))]]));
}
for ([letter, other] of py.iter(py.items(py.get(f, "latent_in", new Map([]))))) {
latent = new Map([...py.items(py.item(f, "latent")), ...py.items(other)]);
py.set_item(by_letter, letter, new Map([["heads", py.item(latent, "heads")], ["key_heads", py.item(latent, "heads")], ["head_width", py.plus(py.item(latent, "unturned"), py.item(latent, "turned"))], ["value_width", py.item(latent, "value")]]));
}
heads = new Map([["attention", plain], ["attention_in", by_letter], ["latent_in", new Map([])], ["borrowers", 0]]);
return new Map([...py.items(changes), ...py.items(heads)]);
return null;
}
// --- tfviz/anatomy/configs.py
function configs$read_fields(config) {
let f, family, keys, name, nested, size, style, written;
[written, nested] = py.parts(keys$opened(config), 2);
name = py.str(py.or(py.get(written, "model_type"), () => ""));
name = py.get(keys$TEXT_PART, name, name);
if ((!py.has(families(), name))) {
throw new keys$UnknownFamilyError(name);
} else {
}
family = py.item(families(), name);
keys = new keys$Keys(written, family);
if (!py.bool(nested)) {
for (size of py.iter(["vocab_size", "hidden_size", "num_hidden_layers"])) {
size = py.get(py.get(family, "also", new Map([])), size, size);
if (((py.has(keys.filled, size)) && (!py.has(keys.written, size)) && (!py.has(["vit"], name)))) {
if (((size === "num_hidden_layers") && (name === "nemotron_h"))) {
continue;
} else {
}
if (((size === "hidden_size") && (py.has(keys.written, "n_embed")))) {
continue;
} else {
}
throw new py.ValueError(["config has no ", py.str(size), "; a config.json of ", py.str(name), " says it"].join(''));
} else {
}
}
} else {
}
style = py.get(family, "style", new Map([]));
f = ordinary$ordinary(keys, style);
if ((py.has(special$SPECIAL, name))) {
py.item(special$SPECIAL, name)(f, keys);
} else {
}
return [f, keys, name];
return null;
}
const configs$STATE_KEYS = py.compile("\\w*(mamba|ssm_|linear_(num|key|value|head|attn)|conv_kernel|state_size|rwkv|time_mix|kda|short_conv|conv_L_cache|lightning|recurrent|lru_)\\w*", "ASCII");
const configs$SIMPLE_WORDS = ["full_attention", "attention", "sliding_attention", "chunked_attention"];
function configs$guessed(config) {
let _, blocks, counts, doubts, f, k, kinds, letters, listed, missing, refusals, sizes, states, strange, style, written;
[written, _] = py.parts(keys$opened(config), 2);
k = new keys$Keys(written, null);
k.size(["hidden_size", "n_embd", "d_model", "dim"]);
listed = py.or(py.get(written, "layer_types"), () => py.or(py.get(written, "layers_block_type"), () => []));
counts = ["num_hidden_layers", "n_layer", "n_layers", "num_layers"];
blocks = keys$number_of_layers(((py.bool(listed) && (k.__call__([...py.iter(counts)]) === null)) ? py.len(listed) : k.size([...py.iter(counts)])));
k.size(["vocab_size"]);
doubts = ["whether its feed-forward networks have three matrices or two, biases, norms, sinks"];
refusals = [];
if (py.bool((states = py.sorted((function* () { for (const x of py.iter(written)) { if (py.bool(keys$matches(configs$STATE_KEYS, x))) { yield x; } } })(), null)))) {
py.append(refusals, [py.str(py.join(", ", states)), ": a state, whose size is not known"].join(''));
} else {
}
kinds = [...(function* () { for (const x of py.iter(listed)) { if ((py.is_str(x))) { yield x; } } })()];
if (py.bool((strange = py.sorted(py.minus(py.set([...py.iter(kinds)]), py.set([...py.iter(configs$SIMPLE_WORDS)])), null)))) {
py.append(refusals, ["layer_types has ", py.str(py.join(", ", strange)), ", which is not known"].join(''));
} else {
}
sizes = ["kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"];
if ((py.any((function* () { for (const x of py.iter(["kv_lora_rank", "q_lora_rank"])) { yield py.get(written, x); } })()) && py.bool((missing = [...(function* () { for (const x of py.iter(sizes)) { if (!(py.is_int(py.get(written, x)))) { yield x; } } })()])))) {
py.append(refusals, ["latent attention without ", py.str(py.join(", ", missing))].join(''));
} else {
}
if ((py.bool(py.get(written, "per_layer_config")) || py.bool(py.get(written, "block_configs")))) {
py.append(refusals, "per_layer_config changes layers one by one");
} else {
}
if (!py.bool(k.__call__(["num_attention_heads", "n_head", "n_heads", "num_heads"]))) {
py.append(refusals, "no attention heads are named");
} else {
}
if (py.bool(refusals)) {
k.__call__(["layer_types"]);
letters = py.ljust(py.slice(py.join("", (function* () { for (const x of py.iter(kinds)) { yield (((py.has(x, "full")) || (x === "attention")) ? "F" : ((py.has(x, "sliding")) ? "W" : "?")); } })()), null, blocks), blocks, "?");
f = new Map([["layers", letters], ["feeds", py.times("?", blocks)], ["positions", py.times("?", blocks)]]);
f = py.joined(f, new Map([["vocabulary", k.__call__(["vocab_size"])], ["width", k.size(["hidden_size", "n_embd", "d_model", "dim"])]]));
f = py.joined(f, new Map([["context", k.__call__([...py.iter(ordinary$CONTEXT)])], ["window", k.__call__(["sliding_window"])]]));
return [f, k, py.tuple(doubts), py.join("; ", refusals)];
} else {
}
style = ((py.has(written, "no_rope_layers")) ? new Map([["positions", "no_rope_layers"]]) : new Map([]));
if ((py.bool(kinds) && (py.get(written, "sliding_window") === null))) {
py.set_item(style, "words", new Map([["sliding_attention", "F"]]));
} else {
}
f = ordinary$ordinary(k, style);
if ((!py.has(written, "tie_word_embeddings"))) {
py.set_item(f, "tied_unknown", true);
py.append(doubts, "whether one table reads and writes (tie_word_embeddings is not there)");
} else {
}
if ((py.bool(py.get(written, "sliding_window")) && !py.bool(kinds))) {
py.append(doubts, "in which layers its window is: sliding_window is there, layer_types is not");
} else {
}
if (!py.any((function* () { for (const x of py.iter(["rope_theta", "rope_parameters", "rope_scaling"])) { yield py.has(written, x); } })())) {
py.append(doubts, "how it is told positions: no key of RoPE is there");
} else {
}
if ((py.has(f, "experts"))) {
py.append(doubts, "which layers have experts, unless first_k_dense_replace or a list says it");
} else {
}
return [f, k, py.tuple(doubts), ""];
return null;
}
// --- tfviz/anatomy/record.py
const record$PHASES = ["prefill", "decode"];
class record$Parameters {
constructor(total, by_part, active, active_without_input, active_without_tables, low, high) {
Object.assign(this, { total, by_part, active, active_without_input, active_without_tables, low, high }); }
}
class record$Heads {
constructor(queries, keys, key_width, value_width) {
Object.assign(this, { queries, keys, key_width, value_width }); }
}
class record$Layer {
constructor(n, mixer, positions, heads, feed, reach, borrows, parameters) {
Object.assign(this, { n, mixer, positions, heads, feed, reach, borrows, parameters }); }
get allowed() {
const self = this;
if ((py.has(["full", "latent", "full, positionless note"], self.mixer))) {
return [["causal", new Map([])]];
} else {
}
if ((self.mixer === "both ways")) {
return [["full", new Map([])]];
} else {
}
if ((self.reach === null)) {
return null;
} else {
}
if ((py.has(["window", "window, keys are values"], self.mixer))) {
return [["sliding_window", new Map([["lookback", py.minus(self.reach, 1)]])]];
} else {
}
if ((self.mixer === "chunk")) {
return [["causal", new Map([])], ["block_local", new Map([["block", self.reach]])]];
} else {
}
if ((self.mixer === "both ways, window")) {
return [["band", new Map([["radius", self.reach]])]];
} else {
}
return null;
return null;
}
}
class record$Card {
constructor(name, operations, bandwidth, memory) {
Object.assign(this, { name, operations, bandwidth, memory }); }
get ridge() {
const self = this;
return py.over(self.operations, self.bandwidth);
return null;
}
}
const record$CARDS = new Map((function* () { for (const card of py.iter([new record$Card("H100", 989000000000000.0, 3350000000000.0, 80000000000.0), new record$Card("A100", 312000000000000.0, 2040000000000.0, 80000000000.0), new record$Card("RTX 4090", 165000000000000.0, 1010000000000.0, py.times(24, py.power(2, 30)))])) { yield [card.name, card]; } })());
class record$Point {
constructor(operations, bytes, intensity, seconds, bound) {
Object.assign(this, { operations, bytes, intensity, seconds, bound }); }
}
class record$Roofline {
constructor(card, turning_batch, prefill, decode) {
Object.assign(this, { card, turning_batch, prefill, decode }); }
}
class record$Anatomy {
constructor(id, name, year, family, fields, facts = new Map(), guess = false, doubts = [], refused = "", unread = [], assumed = []) {
Object.assign(this, { id, name, year, family, fields, facts, guess, doubts, refused, unread, assumed }); }
get layers() { return py.once(this, "layers", () => this._layers()); }
_layers() {
const self = this;
return py.tuple((function* () { for (const n of py.iter(py.range(py.len(py.item(self.fields, "layers"))))) { yield self._layer(n); } })());
return null;
}
_layer(n) {
const self = this;
let f, feed, latent, lender, letter, own, place, reach, weights;
f = self.fields;
[letter, feed, place] = py.parts((function* () { for (const x of py.iter(["layers", "feeds", "positions"])) { yield py.item(py.item(f, x), n); } })(), 3);
latent = counting$latent_of(f, letter);
reach = new Map([["W", "window"], ["w", "window"], ["c", "window"], ["H", "window"], ["C", "chunk"]]);
reach = py.joined(reach, new Map([["b", "radius"]]));
own = py.minus(py.len(py.item(f, "layers")), py.get(f, "borrowers", 0));
lender = ((py.most(own, n)) ? py.rfind(py.item(f, "layers"), letter, 0, own) : null);
weights = 0;
if (!py.bool(self.refused)) {
weights = py.item(counting$feed_weights(f, n), 0);
if ((py.has(layers$STATES, letter))) {
weights = py.plus(weights, counting$state_weights(f, letter));
} else {
if ((letter !== "-")) {
weights = py.plus(weights, counting$attention_weights(f, n));
} else {
}
}
} else {
}
return new record$Layer(n, ((py.bool(latent) && (letter === "F")) ? "latent" : py.get(layers$MIXERS, letter, "not known")), py.get(layers$POSITIONS, place, "not known"), self._heads(letter), py.get(layers$FEEDS, feed, "not known"), py.get(f, py.get(reach, letter, "")), lender, weights);
return null;
}
_heads(letter) {
const self = this;
let a, h, latent, wide;
latent = counting$latent_of(self.fields, letter);
if (py.bool(latent)) {
[h, wide] = py.parts([py.item(latent, "heads"), py.plus(py.item(latent, "unturned"), py.item(latent, "turned"))], 2);
return new record$Heads(h, h, wide, py.item(latent, "value"));
} else {
}
a = ((py.has([py.str(layers$STATES), "-?"].join(''), letter)) ? new Map([]) : counting$heads_of(self.fields, letter));
if (!py.bool(a)) {
return null;
} else {
}
return new record$Heads(py.item(a, "heads"), py.item(a, "key_heads"), py.item(a, "head_width"), py.item(a, "value_width"));
return null;
}
get uses() { return py.once(this, "uses", () => this._uses()); }
_uses() {
const self = this;
return made_of$uses(self.fields);
return null;
}
get beyond() { return py.once(this, "beyond", () => this._beyond()); }
_beyond() {
const self = this;
return made_of$beyond(self.fields);
return null;
}
get parameters() { return py.once(this, "parameters", () => this._parameters()); }
_parameters() {
const self = this;
let active, high, low, parts, table, total, used;
self._counted();
parts = counting$parameters(self.fields);
active = py.pop(parts, "feed_active");
total = py.sum(py.values(parts));
used = py.plus(py.minus(total, py.item(parts, "feed")), active);
table = py.item(parts, "embedding");
[low, high] = py.parts(self._range(total), 2);
return new record$Parameters(total, parts, used, py.minus(used, (py.bool(py.get(self.fields, "tied")) ? 0 : table)), py.minus(used, py.times(table, (py.bool(py.get(self.fields, "tied")) ? 1 : 2))), low, high);
return null;
}
_range(total) {
const self = this;
let counts, gated, parts, tied, ties;
if (!py.bool(self.guess)) {
return [total, total];
} else {
}
counts = [];
ties = (py.bool(py.get(self.fields, "tied_unknown")) ? [true, false] : [py.get(self.fields, "tied")]);
for (gated of py.iter([true, false])) {
for (tied of py.iter(ties)) {
parts = counting$parameters(new Map([...py.items(self.fields), ["gated", gated], ["tied", tied]]));
py.append(counts, py.minus(py.sum(py.values(parts)), py.item(parts, "feed_active")));
}
}
return [py.min(counts, null), py.max(counts, null)];
return null;
}
cache(L, batch = 1, bits = 16, state_bits = 32, source = 0) {
const self = this;
let a, each, keys, states;
self._counted();
[L, batch] = py.parts([record$_whole("L", L, 0), record$_whole("batch", batch, 1)], 2);
[keys, states] = py.parts(counting$kept(self.fields, L), 2);
if (py.bool(py.get(self.fields, "cross"))) {
a = counting$heads_of(self.fields, "F");
each = py.times(py.item(a, "key_heads"), py.plus(py.item(a, "head_width"), py.item(a, "value_width")));
keys = py.plus(keys, py.times(py.times(py.len(py.item(self.fields, "layers")), each), record$_whole("source", source, 0)));
} else {
}
return new py.Total(new Map([["keys and values", py.over(py.times(py.times(keys, batch), record$_positive("bits", bits)), 8)], ["states", py.over(py.times(py.times(states, batch), record$_positive("state_bits", state_bits)), 8)]]));
return null;
}
convolutions(batch = 1, bits = 16) {
const self = this;
let numbers;
self._counted();
numbers = py.times(counting$convolved(self.fields), record$_whole("batch", batch, 1));
return py.round(py.over(py.times(numbers, record$_positive("bits", bits)), 8));
return null;
}
longest(memory, batch = 1, bits = 16, cache_bits = 16, state_bits = 32) {
const self = this;
let fits, high, low, middle, most, room;
room = py.minus(memory, py.over(py.times(self.parameters.total, record$_positive("bits", bits)), 8));
most = py.min([py.or(py.get(self.fields, "context"), () => py.power(2, 30)), py.power(2, 40)], null);
[low, high] = py.parts([0, ((py.most(0, room)) ? most : 0)], 2);
while ((py.less(low, high))) {
middle = py.floored(py.plus(py.plus(low, high), 1), 2);
fits = py.most(self.cache(middle, batch, cache_bits, state_bits), room);
[low, high] = py.parts((py.bool(fits) ? [middle, high] : [low, py.minus(middle, 1)]), 2);
}
return low;
return null;
}
flops(L, phase = "decode", batch = 1) {
const self = this;
let parts;
[L, batch] = py.parts(self._asked(L, phase, batch), 2);
if ((phase === "decode")) {
parts = counting$decode_operations(self.fields, L);
} else {
parts = counting$prefill_operations(self.fields, L);
}
return new py.Total(new Map((function* () { for (const [name, n] of py.iter(py.items(parts))) { yield [name, py.times(n, batch)]; } })()));
return null;
}
bytes_moved(L, phase = "decode", batch = 1, bits = 16, cache_bits = 16, state_bits = 32) {
const self = this;
let kept, read, weights;
[L, batch] = py.parts(self._asked(L, phase, batch, bits, cache_bits, state_bits), 2);
if ((phase === "decode")) {
read = counting$bytes_at_decode(self.fields, L, batch, bits, cache_bits, state_bits);
return new py.Total(read);
} else {
}
kept = self.cache(L, batch, cache_bits, state_bits).parts;
weights = py.over(py.times(counting$weights_read(self.fields, py.times(L, batch)), bits), 8);
return new py.Total(new Map([["weights", weights], ...py.items(kept)]));
return null;
}
intensity(L, phase = "decode", batch = 1, bits = 16, cache_bits = 16, state_bits = 32) {
const self = this;
let moved;
moved = self.bytes_moved(L, phase, batch, bits, cache_bits, state_bits);
return py.over(self.flops(L, phase, batch), moved);
return null;
}
point(phase, card = "H100", L = 8192, batch = 1, bits = 16, cache_bits = 16, state_bits = 32) {
const self = this;
let computing, moved, on, reading, work;
on = record$_card(card);
work = self.flops(L, phase, batch);
moved = self.bytes_moved(L, phase, batch, bits, cache_bits, state_bits);
[computing, reading] = py.parts([py.over(work, on.operations), py.over(moved, on.bandwidth)], 2);
return new record$Point(py.int(work), py.int(moved), py.over(work, moved), py.max([computing, reading], null), ((py.less(reading, computing)) ? "operations" : "bytes"));
return null;
}
roofline(card = "H100", L = 8192, batch = 1, bits = 16, cache_bits = 16, state_bits = 32) {
const self = this;
let decode, experts, on, prefill, share;
on = record$_card(card);
prefill = self.point("prefill", on, L, batch, bits, cache_bits, state_bits);
decode = self.point("decode", on, L, batch, bits, cache_bits, state_bits);
experts = py.get(self.fields, "experts");
share = ((py.bool(experts) && py.bool(py.item(experts, "chosen"))) ? py.over(py.item(experts, "count"), py.item(experts, "chosen")) : 1);
return new record$Roofline(on, py.times(py.over(py.times(on.ridge, bits), 16), share), prefill, decode);
return null;
}
but(changes) {
const self = this;
return new record$Anatomy(self.id, self.name, self.year, self.family, new Map([...py.items(self.fields), ...py.items(changes)]), self.facts, self.guess, self.doubts, self.refused, self.unread, self.assumed);
return null;
}
seeing_all() {
const self = this;
let changes;
changes = ghosts$seeing_all(self.fields);
return ((changes === null) ? null : self.but(changes));
return null;
}
with_every_head() {
const self = this;
let changes;
changes = ghosts$with_every_head(self.fields);
return ((changes === null) ? null : self.but(changes));
return null;
}
_counted() {
const self = this;
if (py.bool(self.refused)) {
throw new py.ValueError([py.str(self.family), " is not counted: ", py.str(self.refused)].join(''));
} else {
}
return null;
}
_asked(L, phase, batch, bits = 16, cache_bits = 16, state_bits = 32) {
const self = this;
self._counted();
[L, batch] = py.parts([record$_whole("L", L, 0), record$_whole("batch", batch, 1)], 2);
self._phase(phase);
record$_positive("bits", bits);
record$_positive("cache_bits", cache_bits);
record$_positive("state_bits", state_bits);
return [L, batch];
return null;
}
_phase(phase) {
const self = this;
if ((!py.has(record$PHASES, phase))) {
throw new py.ValueError(["phase = ", py.repr(phase), "; choose ", py.str(py.join(" or ", record$PHASES))].join(''));
} else {
}
if ((py.has(self.fields, "encoder"))) {
throw new py.ValueError([py.str(self.name), " reads a source: its work depends on two lengths, which is not counted"].join(''));
} else {
}
if (((phase === "decode") && (py.most(py.set(py.item(self.fields, "layers")), py.set("Bb"))))) {
throw new py.ValueError([py.str(self.name), " reads both ways and decodes nothing; phase='prefill'"].join(''));
} else {
}
return null;
}
}
function record$_card(card) {
if ((card instanceof record$Card)) {
return card;
} else {
}
if ((!py.has(record$CARDS, card))) {
throw new py.ValueError(["card = ", py.repr(card), "; choose ", py.str(py.join(", ", record$CARDS)), ", or make a Card"].join(''));
} else {
}
return py.item(record$CARDS, card);
return null;
}
function record$_whole(name, value$, least) {
if (((py.is_bool(value$)) || !(py.is_int(value$)) || (py.less(value$, least)))) {
throw new py.ValueError([py.str(name), " = ", py.repr(value$), "; give a whole number, at least ", py.str(least)].join(''));
} else {
}
return value$;
return null;
}
function record$_positive(name, value$) {
if (((py.is_bool(value$)) || !(py.is_int(value$) || py.is_float(value$)) || !(py.less(0, value$) && py.less(value$, Infinity)))) {
throw new py.ValueError([py.str(name), " = ", py.repr(value$), "; give a number of bits above 0, such as 16"].join(''));
} else {
}
return value$;
return null;
}
// --- tfviz/anatomy/reading.py
const reading$FACTS = [...py.iter(["id", "name", "year", "family", "listed", "published", "published_as", "published_active"]), ...py.iter(["source", "positions_source", "note", "why", "conflict", "beside"])];
function reading$names(listed = false) {
return py.tuple((function* () { for (const [id, entry] of py.iter(py.items(models()))) { if ((py.bool(py.get(entry, "listed")) || !py.bool(listed))) { yield id; } } })());
return null;
}
function reading$of(model) {
let by_name, entry, facts, fields, near;
if ((!py.has(models(), model))) {
by_name = new Map((function* () { for (const [id, entry] of py.iter(py.items(models()))) { yield [py.lower(py.item(entry, "name")), id]; } })());
if ((!py.has(by_name, py.lower(py.str(model))))) {
near = keys$nearest(py.lower(py.str(model)), models());
throw new py.KeyError(["model = ", py.slice(py.repr(model), 0, 80), " is not known; nearest: ", py.str(near)].join(''));
} else {
}
model = py.item(by_name, py.lower(py.str(model)));
} else {
}
entry = py.item(models(), model);
facts = new Map((function* () { for (const name of py.iter(reading$FACTS)) { if ((py.has(entry, name))) { yield [name, py.item(entry, name)]; } } })());
fields = reading$whole(new Map((function* () { for (const [name, value$] of py.iter(py.items(entry))) { if ((!py.has(reading$FACTS, name))) { yield [name, value$]; } } })()));
return new record$Anatomy(model, py.item(entry, "name"), py.item(entry, "year"), py.item(entry, "family"), py.dict(fields), py.dict(facts));
return null;
}
function reading$understood(config) {
let _, counted, error$, family, model, written;
[written, _] = py.parts(keys$opened(config), 2);
family = py.str(py.or(py.get(written, "model_type"), () => "a model without model_type"));
try {
model = reading$_read(config, written, family);
counted = [model.layers, model.uses, model.beyond];
if (!py.bool(model.refused)) {
counted = py.plus(counted, [model.parameters, model.cache(1), model.convolutions(), model.longest(1)]);
} else {
}
} catch (error) { if (!(error instanceof TypeError)) throw error;
throw new py.ValueError(["config holds a value that does not fit a model of the family ", py.slice(py.str(family), 0, 80), "; compare it with a config.json that is published"].join(''));
}
return model;
return null;
}
function reading$_read(config, written, family) {
let doubts, facts, fields, keys, refused, stored;
stored = ["dtype", "torch_dtype", "quantization_config"];
facts = py.dict(new Map((function* () { for (const name of py.iter(stored)) { if (py.bool(py.get(written, name))) { yield [name, py.item(written, name)]; } } })()));
try {
[fields, keys, family] = py.parts(configs$read_fields(config), 3);
} catch (error) { if (!(error instanceof keys$UnknownFamilyError)) throw error;
[fields, keys, doubts, refused] = py.parts(configs$guessed(config), 4);
return new record$Anatomy("", family, null, family, py.dict(fields), facts, true, doubts, refused, keys.unread);
}
return new record$Anatomy("", py.str(py.or(py.get(written, "_name_or_path"), () => family)), null, family, py.dict(fields), facts, undefined, undefined, undefined, keys.unread, py.tuple(py.sorted(keys.assumed, null)));
return null;
}
function reading$whole(entry) {
let blocks, f, name, plain, positions, rope;
[f, blocks] = py.parts([py.dict(entry), py.item(entry, "blocks")], 2);
py.set_item(f, "layers", layers$expanded(py.get(f, "layers", "F"), blocks));
py.set_item(f, "feeds", layers$expanded(py.get(f, "feeds", "d"), blocks));
positions = layers$expanded(py.get(f, "positions", "R"), blocks);
plain = [py.str(layers$STATES), "-"].join('');
py.set_item(f, "positions", py.join("", (function* () { for (const [x, p] of py.iter(py.zip(py.item(f, "layers"), positions))) { yield ((py.has(plain, x)) ? "-" : p); } })()));
for (name of py.iter(["norms", "feed_widths"])) {
if ((py.is_list(py.get(f, name)))) {
py.set_item(f, name, [...(function* () { for (const [times, value$] of py.iter(py.item(f, name))) { for (const _ of py.iter(py.range(times))) { yield value$; } } })()]);
if ((!py.equal(py.len(py.item(f, name)), blocks))) {
throw new py.ValueError([py.str(name), " are ", py.str(py.len(py.item(f, name))), ", and blocks = ", py.str(blocks), "; correct one"].join(''));
} else {
}
} else {
}
}
rope = py.get(f, "rope", new Map([]));
py.set_item(f, "rope", ((py.has(rope, "base")) ? new Map([["all", rope]]) : rope));
if ((py.has(f, "encoder"))) {
py.set_item(f, "encoder", reading$whole(py.item(f, "encoder")));
} else {
}
return f;
return null;
}
return { reading$names, reading$of, reading$understood, record$Anatomy, record$Card, record$CARDS, counting$kept_by };
};
