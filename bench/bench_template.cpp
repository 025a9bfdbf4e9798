// Layers: chat
// bench_template: how long it takes to parse a chat template and to render a conversation with it.
//   bench_template [--messages 100] [--ms 500]
// The templates are this file's own, built as those of Qwen 3 (tools, thinking kept for the last turn) and Llama 3.1
// (tools in the first user message, dates) are. Processor time of the thread, so that a busy machine disturbs less.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <time.h>

#include "chat/chat_template.h"

namespace {

using namespace minfer::chat;

constexpr const char* kQwenLike = R"({%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- "# Tools\n\nYou may call one or more functions:\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools>\n\nAnswer with the call inside <tool_call></tool_call>.<|im_end|>\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(searching=true, last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thoughts = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thoughts = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and (loop.last or thoughts) %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for call in message.tool_calls %}
                {%- if call.function %}{%- set call = call.function %}{%- endif %}
                {{- '<tool_call>\n{"name": "' ~ call.name ~ '", "arguments": ' ~ (call.arguments | tojson) ~ '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' + content + '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %})";

constexpr const char* kLlamaLike = R"({{- bos_token }}
{%- if not date_string is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- if tools is not none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("There is no first user message to put the tools in.") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\n\nAnswer with a call of one of these functions:\n\n' -}}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>" }}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time.") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
        {{- '{"name": "' + call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})";

Value text(const std::string& s) { return Value::string(s); }

// Turns of some 250 characters; every tenth is a call of a tool and its answer.
std::vector<Message> conversation(int n) {
  const std::string words =
      "The harbour was quiet in the early morning, and the boats lay still on the grey water. \"Shall we wait?\" she "
      "asked, and looked at the clock: 7:45, <no> wind & no waves. Nobody answered for a while; then the first engine "
      "started, größer als gedacht.\n";
  std::vector<Message> out = {Message::make("system", "You are a careful assistant. " + words)};
  while (static_cast<int>(out.size()) < n) {
    const size_t i = out.size();
    if (i % 10 == 4) {
      Message call = Message::make("assistant", "");
      const Value arguments = Value::object({{"city", text("Lyon")}, {"days", Value::integer(3)}});
      const Value function = Value::object({{"name", text("weather")}, {"arguments", arguments}});
      call.set("tool_calls", Value::list({Value::object({{"id", text("c1")}, {"function", function}})}));
      out.push_back(std::move(call));
      out.push_back(Message::make("tool", "{\"sky\": \"clear\", \"high\": 21}"));
      continue;
    }
    out.push_back(Message::make(i % 2 == 1 ? "user" : "assistant", words + std::to_string(i)));
  }
  return out;
}

Value tools() {
  const Value property = Value::object({{"type", text("string")}, {"description", text("The name of the city")}});
  const Value parameters = Value::object(
      {{"type", text("object")}, {"properties", Value::object({{"city", property}, {"days", property}})}});
  const Value function = Value::object(
      {{"name", text("weather")}, {"description", text("The weather of a place")}, {"parameters", parameters}});
  return Value::list({Value::object({{"type", text("function")}, {"function", function}})});
}

double now_us() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

// Prints the median and the least of the times of f over `ms` milliseconds.
template <typename F>
void measure(const char* name, const char* what, double ms, F&& f) {
  std::vector<double> times;
  for (const double begin = now_us(); times.size() < 5 || now_us() - begin < ms * 1e3;) {
    const double t = now_us();
    f();
    times.push_back(now_us() - t);
  }
  std::sort(times.begin(), times.end());
  std::printf("%-12s %-22s median %8.1f us  min %8.1f us  n %zu\n", name, what, times[times.size() / 2], times[0],
              times.size());
}

}  // namespace

int main(int argc, char** argv) {
  int n = 100, ms = 500;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--messages") n = std::atoi(argv[i + 1]);
    if (flag == "--ms") ms = std::atoi(argv[i + 1]);
  }
  const std::vector<Message> messages = conversation(n);
  const std::pair<const char*, const char*> templates[] = {{"qwen3-like", kQwenLike}, {"llama3-like", kLlamaLike}};
  for (const auto& [name, source] : templates) {
    measure(name, "parse", ms, [&] { (void)ChatTemplate::parse(source); });
    const auto parsed = ChatTemplate::parse(source);
    if (!parsed.ok()) return std::fprintf(stderr, "%s: %s\n", name, parsed.error().message.c_str()), 1;
    for (const bool with_tools : {false, true}) {
      RenderOptions options;
      options.bos_token = "<|begin_of_text|>";
      if (with_tools) options.tools = tools();
      const auto rendered = parsed->render(messages, options);
      if (!rendered.ok()) return std::fprintf(stderr, "%s: %s\n", name, rendered.error().message.c_str()), 1;
      const std::string what = std::to_string(messages.size()) + " messages" + (with_tools ? ", tools" : "");
      measure(name, what.c_str(), ms, [&] { (void)parsed->render(messages, options); });
      std::printf("%-12s %zu bytes, %zu segments\n", "", rendered->text().size(), rendered->segments.size());
    }
  }
  return 0;
}
