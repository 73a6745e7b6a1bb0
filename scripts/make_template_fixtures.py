#!/usr/bin/env python3
"""Makes tests/executor/templates/cases.json: chat templates and what transformers' apply_chat_template
(5.17) renders of messages with them, or the text of its error.

usage: .venv/bin/python3 scripts/make_template_fixtures.py [FILE]
The family templates are written with the constructs by which Qwen2, Qwen2.5, Qwen3, Llama 2, 3 and 3.1,
Mistral, Mixtral, DeepSeek-V2 and V3, gpt-oss, Nemotron and Gemma build theirs, for plain conversations.
"""
import json
import os
import sys

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
from tokenizers import Tokenizer, models  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

FAMILIES = {
    "qwen2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a "
             "helpful assistant.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
             "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "qwen2_5": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are a model. You help.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "qwen3": """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system") %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "llama2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] "
              "%}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
              "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate "
              "user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = "
              "'<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}"
              "{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif "
              "message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
    "llama3": "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] "
              "+ '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + "
              "content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant"
              "<|end_header_id|>\n\n' }}{% endif %}",
    "llama3_1": """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is not defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- This block extracts the system message, so we can slot it into the right place. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{#- System message + builtin tools #}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\\n\\n"}}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "mistral": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{#- This block checks for alternating user/assistant messages, skipping tool calling messages #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
        {{- "" if message == user_messages[-1] else "" }}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
""",
    "mixtral": "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception("
               "'Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}{{ "
               "'[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}"
               "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}",
    "deepseek_v2": "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{{ bos_token }}{% for message "
                   "in messages %}{% if message['role'] == 'user' %}{{ 'User: ' + message['content'] + '\n\n' }}{% elif message['role'] == "
                   "'assistant' %}{{ 'Assistant: ' + message['content'] + eos_token }}{% elif message['role'] == 'system' %}{{ "
                   "message['content'] + '\n\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}",
    "deepseek_v3": "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace("
                   "is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}{%- for message in messages %}"
                   "{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + "
                   "message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\n\n' + "
                   "message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages "
                   "%}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<\uff5cUser\uff5c>' + message['content']}}{%- endif %}"
                   "{%- if message['role'] == 'assistant' and message['content'] is not none %}{% set content = message['content'] %}{% if "
                   "'</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<\uff5cAssistant\uff5c>' + content + "
                   "'<\uff5cend\u2581of\u2581sentence\uff5c>'}}{%- endif %}{%- endfor -%}{% if add_generation_prompt and not ns.is_tool %}{{"
                   "'<\uff5cAssistant\uff5c>'}}{% endif %}",
    "gpt_oss": """{#- macros first #}
{%- macro build_system_message(identity="You are a model.", effort=none) -%}
    {{- identity + "\\n" }}
    {{- "Knowledge cutoff: 2024-06\\n" }}
    {%- if not effort %}
        {%- set effort = "medium" %}
    {%- endif %}
    {{- "Reasoning: " + effort + "\\n\\n" }}
    {{- "# Valid channels: " ~ ["analysis", "commentary", "final"] | join(", ") ~ "." }}
{%- endmacro -%}
{{- "<|start|>system<|message|>" }}
{{- build_system_message(effort=reasoning_effort | default("high")) }}
{{- "<|end|>" }}
{%- if messages[0].role == "developer" or messages[0].role == "system" %}
    {%- set developer_message = messages[0].content %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set developer_message = "" %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if developer_message or tools %}
    {{- "<|start|>developer<|message|># Instructions\\n\\n" }}{{ developer_message }}
    {{- "<|end|>" }}
{%- endif %}
{%- set last_tool_call = namespace(name=none) %}
{%- for message in loop_messages -%}
    {%- if message.role == 'assistant' -%}
        {%- if loop.last and not add_generation_prompt %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|return|>" }}
        {%- else %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|end|>" }}
            {%- set last_tool_call.name = none %}
        {%- endif %}
    {%- elif message.role == 'user' -%}
        {{- "<|start|>user<|message|>" + message.content + "<|end|>" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|start|>assistant
{%- endif -%}
""",
    "nemotron": "{{'<extra_id_0>System'}}{% for message in messages %}{% if message['role'] == 'system' %}{{'\n' + message['content'].strip()}}"
                "{% endif %}{% endfor %}{{'\n'}}\n{% for message in messages if message['role'] != 'system' %}{{ '<extra_id_1>' + "
                "message['role'] | capitalize + '\n' + message['content'].strip() + '\n' }}{% if not loop.last %}{{''}}{% endif %}{% endfor %}"
                "<extra_id_1>Assistant\n",
    "gemma": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message "
             "in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}"
             "{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}"
             "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}"
             "{{'<start_of_turn>model\n'}}{% endif %}",
}

CONSTRUCTS = [
    "  {% if true %}  \n  a\n  {% endif %}\n  b\n", "x {%- if true -%}  \n y {%- endif +%}\n z", "{%+ if true %}\n a{% endif %}", "  {# c #}\n x",
    "a{#- c -#} b", "\t{% set a = 1 %}\t{{ a }}\n\n", "{{ 1 }}\n{{ 2 }}\n", "{% raw_ %}", "a\n{%- for i in [1,2] %}\n  {{ i }}\n{%- endfor %}\nz",
    "{{ 'a' 'b' \"c\\\"d\" }}{{ 'x\\ty\\\\n' }}", "{{ 1 + 2 * 3 - 4 // 3 % 2 }}|{{ 7 / 2 }}|{{ -7 // 2 }}|{{ -7 % 3 }}|{{ 2 ** 3 }}|{{ 1.5 + 1 }}|{{ 1e3 }}",
    "{{ 1 ~ 'a' ~ none ~ true ~ 1.0 ~ [1, 'b', none] ~ {'k': 'v'} }}", "{{ 1 < 2 and not 2 < 1 or false }}|{{ '' or 'b' }}|{{ 0 and 1 }}",
    "{{ 'b' in 'abc' }}|{{ 'x' not in ['x'] }}|{{ 1 in [1.0] }}|{{ 'k' in {'k': 1} }}", "{{ 'y' if false }}|{{ 'y' if true else 'n' }}",
    "{{ missing }}|{{ missing is defined }}|{{ messages is defined }}|{{ missing | default('d') }}|{{ '' | default('d', true) }}", "{{ missing.x }}",
    "{{ missing + 'a' }}", "{{ messages[0].nothing }}|{{ messages[9] }}|{{ messages[-1].role }}", "{{ 'abc'[1:] ~ 'abc'[::-1] ~ 'abc'[-1] ~ 'abc'[0:2] ~ 'abc'[5:] }}",
    "{{ [1,2,3,4][1:3] }}{{ [1,2,3,4][::2] }}{{ [3,1,2] | sort }}{{ ['b','A'] | sort }}{{ [1,2] | reverse | list }}{{ [3, 1] | sort(reverse=true) }}",
    "{{ '  a b ' | trim ~ '|' ~ ' a'.strip() ~ '|' ~ 'xxaxx'.strip('x') ~ '|' ~ 'a '.rstrip() ~ '|' ~ '\\u00a0' }}", "{{ '\u00a0\u2003x\u3000'.strip() }}",
    "{{ 'a,b,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ ' a  b '.split() }}{{ 'a,b'.split(',')[-1] }}{{ 'abc'.split('b') | join('-') }}",
    "{{ 'aXbX'.replace('X', '-') }}{{ 'aXbX' | replace('X', '') }}{{ 'hello world' | title }}{{ 'HELLO x' | capitalize }}{{ '\u00e9A' | upper }}{{ 'ABC\u00c9' | lower }}",
    "{{ {'a': 1, 'b': [true, none, 1.5, '\u00e9\"\\n']} | tojson }}", "{{ {'a': {'b': [1, 2]}, 'c': []} | tojson(indent=2) }}", "{{ '<&>\\'' | tojson }}",
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}{% for k in {'a': 1} %}{{ k }}{% endfor %}{{ {'a': 1}.get('b', 'none') }}{{ {'a': 1}.keys() | list }}",
    "{% for i in range(3) %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for i in [] %}x{% else %}none{% endfor %}{% for i in [1,2,3] if i > 1 %}{{ loop.index }}:{{ i }} {% endfor %}", "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% endif %}{{ x }}",
    "{% set n = namespace(a=1) %}{% for i in [1,2] %}{% set n.a = n.a + i %}{% endfor %}{{ n.a }}", "{% set b %}in {{ 1 }}{% endset %}[{{ b }}]", "{% set a, b = 1, 2 %}{{ a }}{{ b }}{{ (1, 2)[0] }}",
    "{% macro m(a, b='z') %}<{{ a }}{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(a=3, b=4) }}{{ m() }}", "{% macro f(x) %}{{ x if x < 1 else f(x - 1) ~ x }}{% endmacro %}{{ f(3) }}",
    "{% set g = 'out' %}{% macro m() %}{{ g }}{% endmacro %}{% for i in [1] %}{% set g = 'in' %}{{ m() }}{% endfor %}",
    "{{ messages | map(attribute='role') | join(',') }}|{{ messages | selectattr('role', 'equalto', 'user') | list | length }}|{{ messages | rejectattr('role', 'in', ['user']) | list | length }}",
    "{{ [1, 'a', none, true] | select('string') | list }}{{ ['a', 'b'] | map('upper') | list }}{{ [0, 1] | select | list }}", "{{ [] | first }}|{{ [1, 2] | last }}|{{ 'ab' | first }}",
    "{{ 1 is number }}{{ '1' is string }}{{ {} is mapping }}{{ [] is iterable }}{{ none is none }}{{ true is boolean }}{{ 1 is integer }}{{ 3 is odd }}{{ 4 is divisibleby 2 }}{{ 1 is eq 1 }}{{ '' is sequence }}",
    "{{ '3' | int + 1 }}{{ 'x' | int }}{{ 2.9 | int }}{{ -2 | abs }}{{ 5 | string ~ '' }}{{ 'a\\nb\\n\\nc' | indent(2) }}{{ 'a\\nb' | indent(2, true) }}", "{{ {'b': 1} | items | list | length }}",
    "{{ raise_exception('my words') }}", "{{ 'a' + 1 }}", "{{ 1 < 'a' }}", "{{ messages.append(1) }}", "{% generation %}gen{% endgeneration %}!", "{{ true }} {{ none }} {{ 1.0 }} {{ 100000000000000000000.0 }} {{ 1e-7 }}",
    "{{ \"it's\" ~ ['it\\'s', 'q\"'] }}", "{% if not messages %}a{% elif messages | length > 9 %}b{% else %}c{% endif %}", "{{ 'ab' * 3 }}{{ [1] + [2] }}",
    "{{ 'a'.startswith(('b', 'a')) }}{{ 'abc'.endswith('bc') }}{{ 'abc'.find('c') }}{{ ', '.join(['x', 'y']) }}", "{{ none | selectattr('x', 'equalto', 1) | list }}{{ none | map('upper') | list }}{{ {'b': 1, 'A': 2} | dictsort | map('first') | join }}", "{{ (1 if false else none) is none }}", "{{ dict(a=1).a }}{{ {'items': 2}['items'] }}",
    "a\r\nb\r\n{% if true %}\r\nc{% endif %}", "{{ '{{' }}{{ \"%}\" }}{{ '#}' }}", "{{ {'a': {'b': 1}}.a.b }}{{ [[1, 2]][0][1] }}{{ [5].0 }}",
    "{{ \"it's a-b (c.d) [e\" | title }}|{{ \"it's a-b c.d\".title() }}|{{ 'stra\u00dfe \u00dfx' | upper }}|{{ '\u00dfx' | capitalize }}",
    "{{ messages | map(attribute='nothing', default='-') | join(',') }}|{{ dict({'a': 1}, b=2) }}|{% set n = namespace({'n': 3}, m=4) %}{{ n.n ~ n.m }}",
    "{{ (1, 2) }}{{ (1,) }}{{ () }}{{ [(1, 'a')] }}{{ {'a': 1}.items() | list }}", "{{ ['x\u200b\u00a0\u00e9\u4f60\u0007\U0001f642'] }}",
    "{{ 2 ** 62 }}|{{ (-2) ** 3 }}|{{ 0 ** 0 }}|{{ 9223372036854775806 + 1 }}",
    "{{ '\\u00e9\\x41\\U0001f642\\u4f60' }}", "{{ not true }}{{ not(true) and false }}{{ - 1 }}", "{{ 'x' is not none and 'x' is not undefined }}",
    "{% for a in [1] %}{% for b in [1, 2] %}{{ loop.index }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}{{ loop.depth }}{% endfor %}",
    "{{ ('a',) + ('b',) }}{{ (1, 2, 3)[1:] }}{{ (1,) == [1] }}{{ (1,) == (1.0,) }}{{ [1] + [2] }}", "{{ (1,) + [2] }}", "{{ [1] + {'a': 1}.items() }}",
    "{{ range(3) }}{{ range(1, 6, 2) }}{{ range(4) | list }}{{ range(3) | length }}{{ range(5)[2] }}", "{{ range(3) | tojson }}",
    "{{ lipsum is defined }}{{ cycler is defined }}{{ joiner is defined }}{{ cyclist is defined }}",
    "{{ {'a': 1}.items() }}{{ {'a': 1}.keys() }}{{ {'a': 1, 'b': none}.values() }}{{ {'a': 1}.items() is sequence }}{{ {}.keys() is iterable }}{{ {}.items() == [] }}",
    "{% if [] | select %}true{% endif %}{% if messages | selectattr('role', 'eq', 'nobody') %}true{% endif %}{{ [1] | map('string') is sequence }}",
    "{% set g = [1, 2, 3] | map('string') %}{{ g | first }}|{% for i in g %}{{ i }}{% endfor %}|{% for i in g %}{{ i }}{% endfor %}|{{ g | list }}", "{{ messages | map(attribute='role') | length }}",
    "{{ messages | map(attribute='role') | last }}", "{{ [1, 2] | reverse | reverse | list }}{% for i in [1, 2] | reverse %}{{ i }}{% endfor %}",
    "{{ '\u0391\u03a3' | lower }}{{ '\u0391\u03a3\u0392 \u03a3 \u0391\u03a3\\'\u0391 \u0391\u03a3.' | lower }}{{ '\u0391\u03a3 \u0391\u03a3\u0392'.title() }}{{ '\u01c6x'.title() }}{{ '\u01c6x' | title }}{{ '\u01c6X' | capitalize }}",
    "{{ '\u0130'.lower() | length }}{{ '\ufb01 \u0149 \u1fb3 \u1f80' | upper }}{{ '\ufb01x \u1f80x'.title() }}{{ '\ufb01X' | title }}{{ '\u4f60a 1a o\\'neil'.title() }}{{ '\u2170x \u24d0x'.title() }}",
    "{{ 'a\\r\\nb\\rc\\u2028d\\x0be\\x1cf\\x85g\\n' | indent(2) }}|{{ 'a\\r' | indent(1) }}|{{ '' | indent(3, true) }}|{{ '\\n\\na' | indent(1, blank=true) }}",
    "{{ '1.5' | int }}{{ '1e2' | int }}{{ ' 12 ' | int }}{{ '+3' | int }}{{ 'x' | int(7) }}{{ 'nan' | int }}{{ 'inf' | int(2) }}{{ '12abc' | int(default=4) }}",
]

CONVERSATIONS = [
    [{"role": "user", "content": "What is 2+2?"}],
    [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "  H\u00e9llo \u4f60\u597d \n"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb "}, {"role": "user", "content": "c"}],
    [{"role": "system", "content": "s"}, {"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": "{{ 3 }}{% x %}"}],
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    [{"role": "user", "content": "q"}, {"role": "tool", "content": "t1"}, {"role": "tool", "content": "t2"}],
]


MEMBERS = [
    {"role": "user", "content": "q", "name": "n"},
    {"content": "", "role": "assistant", "thinking": "T", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"z": 1, "a": [1.5, True]}}}]},
    {"role": "tool", "content": "r", "tool_call_id": "7"},
]
OF_MEMBERS = [
    "{% for m in messages %}{{ m.role }}:{% if m.thinking is defined %}[{{ m.thinking }}]{% endif %}{{ m.content }}{{ m.name }}{{ m.tool_call_id }};{% endfor %}",
    "{% for m in messages if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}",
    "{{ messages }}{{ messages | tojson }}", "{% for m in messages %}{{ m.keys() | list }}{{ m | length }}{% endfor %}",
]


def main():
    file = sys.argv[1] if len(sys.argv) > 1 else "tests/executor/templates/cases.json"
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    cases = []

    def add(name, template, messages, options):
        case = {"name": name, "template": template, "messages": messages, "options": options}
        try:
            case["text"] = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False, add_generation_prompt=True, **options)
        except Exception as error:  # the template's own words, or what Jinja says
            case["error"] = str(error)
        cases.append(case)

    for name, template in FAMILIES.items():
        for messages in CONVERSATIONS:
            add(name, template, messages, {})
        add(name, template, CONVERSATIONS[0], {"enable_thinking": False, "reasoning_effort": "low", "date_string": "1 Jan 2025"})
    for template in OF_MEMBERS:
        add("members", template, MEMBERS, {})
    for template in CONSTRUCTS:
        add("construct", template, CONVERSATIONS[3], {})
    with open(file, "w") as out:
        out.write('{"source": "transformers 5.17 apply_chat_template; scripts/make_template_fixtures.py",\n"tokens": '
                  + json.dumps(tokens) + ',\n"cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}\n")
    print(f"{len(cases)} cases, {sum('error' in case for case in cases)} errors")
    for case in cases:
        if "error" in case:
            print("  ", case["name"], case["template"][:60].replace("\n", "/"), "|", case["error"][:90])


if __name__ == "__main__":
    main()
