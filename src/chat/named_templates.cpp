// The common prompt formats, each as its models were trained on it.
#include "chat/named_templates.h"

#include <string>

namespace minfer::chat {

namespace {

constexpr NamedTemplate kTemplates[] = {
    {"chatml",
     "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"},
    {"gemma",
     "{{ bos_token }}{% set ns = namespace(system='') %}"
     "{% for m in messages %}"
     "{% if m.role == 'system' %}{% set ns.system = ns.system + m.content | trim + '\\n\\n' %}"
     "{% else %}"
     "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' }}"
     "{% if m.role == 'user' %}{{ ns.system }}{% set ns.system = '' %}{% endif %}"
     "{{ m.content | trim + '<end_of_turn>\\n' }}"
     "{% endif %}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"},
    {"llama2",
     "{% set ns = namespace(system='') %}"
     "{% for m in messages %}"
     "{% if m.role == 'system' %}{% set ns.system = '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' %}"
     "{% elif m.role == 'user' %}{{ bos_token + '[INST] ' + ns.system + m.content + ' [/INST]' }}"
     "{% set ns.system = '' %}"
     "{% else %}{{ ' ' + m.content | trim + ' ' + eos_token }}{% endif %}"
     "{% endfor %}"},
    {"llama3",
     "{{ bos_token }}{% for m in messages %}"
     "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}"
     "{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"},
    {"mistral",
     "{{ bos_token }}{% set ns = namespace(system='') %}"
     "{% for m in messages %}"
     "{% if m.role == 'system' %}{% set ns.system = m.content + '\\n\\n' %}"
     "{% elif m.role == 'user' %}{{ '[INST] ' + ns.system + m.content + ' [/INST]' }}{% set ns.system = '' %}"
     "{% else %}{{ ' ' + m.content | trim + eos_token }}{% endif %}"
     "{% endfor %}"},
    {"phi3",
     "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"},
    {"vicuna",
     "{{ bos_token }}{% for m in messages %}"
     "{% if m.role == 'system' %}{{ m.content + ' ' }}"
     "{% elif m.role == 'user' %}{{ 'USER: ' + m.content + ' ' }}"
     "{% else %}{{ 'ASSISTANT: ' + m.content + eos_token }}{% endif %}"
     "{% endfor %}"
     "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"},
    {"zephyr",
     "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"},
};

}  // namespace

std::span<const NamedTemplate> named_templates() { return kTemplates; }

Result<std::string_view> named_template(std::string_view name) {
  std::string known;
  for (const NamedTemplate& t : kTemplates) {
    if (t.name == name) return t.source;
    known += (known.empty() ? "" : ", ") + std::string(t.name);
  }
  return make_error(ErrorCode::kNotFound, "[template] no template is named '{}', expected one of {}", name, known);
}

}  // namespace minfer::chat
