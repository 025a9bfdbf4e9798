// The built-in formats.
#include "chat/named_templates.h"

#include <gtest/gtest.h>

#include "chat/chat_template.h"

namespace minfer::chat {
namespace {

std::string render(std::string_view name) {
  const auto source = named_template(name);
  EXPECT_TRUE(source.ok()) << source.error().message;
  const auto parsed = ChatTemplate::parse(std::string(*source));
  EXPECT_TRUE(parsed.ok()) << name << ": " << parsed.error().message;
  RenderOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  const auto r = parsed->render({Message::make("system", "S"), Message::make("user", "U1"),
                                 Message::make("assistant", "A"), Message::make("user", "U2")},
                                options);
  EXPECT_TRUE(r.ok()) << name << ": " << r.error().message;
  return r->text();
}

TEST(NamedTemplates, RenderTheirFormats) {
  EXPECT_EQ(render("chatml"),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
            "<|im_start|>user\nU2<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render("gemma"),
            "<s><start_of_turn>user\nS\n\nU1<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n"
            "<start_of_turn>user\nU2<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(render("llama2"), "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU1 [/INST] A </s><s>[INST] U2 [/INST]");
  EXPECT_EQ(render("llama3"),
            "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nU1"
            "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user"
            "<|end_header_id|>\n\nU2<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(render("mistral"), "<s>[INST] S\n\nU1 [/INST] A</s>[INST] U2 [/INST]");
  EXPECT_EQ(render("phi3"),
            "<|system|>\nS<|end|>\n<|user|>\nU1<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nU2<|end|>\n<|assistant|>\n");
  EXPECT_EQ(render("vicuna"), "<s>S USER: U1 ASSISTANT: A</s>USER: U2 ASSISTANT:");
  EXPECT_EQ(render("zephyr"),
            "<|system|>\nS</s>\n<|user|>\nU1</s>\n<|assistant|>\nA</s>\n<|user|>\nU2</s>\n<|assistant|>\n");
}

TEST(NamedTemplates, AnUnknownNameListsTheKnown) {
  EXPECT_EQ(
      named_template("nope").error().message,
      "[template] no template is named 'nope', expected one of chatml, gemma, llama2, llama3, mistral, phi3, vicuna, "
      "zephyr");
}

}  // namespace
}  // namespace minfer::chat
