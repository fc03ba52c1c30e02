"""S1 to S15: the tools, and calls written as text; with the same call given natively (NF) where there is one."""

from __future__ import annotations

import re

import jsonschema
import pytest
from scenario_kit import Ran, Res, T, arguments, native, registry_of, text

from agentkit.errors import SchemaError
from agentkit.messages import TextPart, ToolMessage, UserMessage
from agentkit.tool.declare import openapi_schema, xml_schema
from agentkit.tool.registry import ToolRegistry

FILE = '<create-file file_path="a.txt">hi</create-file>'


def only(ran: Ran) -> Res:
    [result] = ran.results
    return result


# ---------------------------------------------------------------- S1: dual registration


def test_s1_name_and_tag_lead_to_one_method_of_one_instance() -> None:
    tool = T()
    registry = registry_of(tool)
    assert registry.tools["create_file"] is registry.xml_tools["create-file"]
    assert registry.tools["create_file"].instance is tool


def test_s1_schemas_are_json_schema() -> None:
    for schema in registry_of(T()).get_openapi_schemas():
        jsonschema.Draft202012Validator.check_schema(schema["function"]["parameters"])


def test_s1_two_registries_hold_two_instances() -> None:
    one, other = ToolRegistry(), ToolRegistry()
    one.register_tool(T)
    other.register_tool(T)
    assert one.tools["ping"].instance is not other.tools["ping"].instance


def test_s1_short_and_full_forms_declare_the_same() -> None:
    class Short:
        @openapi_schema()
        @xml_schema(name="str_replace_editor", attributes=["command", "path"], elements=["old_str", "new_str"])
        def edit(self, command: str, path: str, old_str: str, new_str: str) -> str:
            """Edit a file."""
            return ""

    class Full:
        @openapi_schema(
            {
                "type": "function",
                "function": {
                    "name": "edit",
                    "description": "Edit a file.",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "command": {"type": "string"},
                            "path": {"type": "string"},
                            "old_str": {"type": "string"},
                            "new_str": {"type": "string"},
                        },
                        "required": ["command", "path", "old_str", "new_str"],
                    },
                },
            }
        )
        @xml_schema(
            tag_name="str_replace_editor",
            mappings=[
                {"param_name": "command", "node_type": "attribute", "path": "."},
                {"param_name": "path", "node_type": "attribute", "path": "path"},
                {"param_name": "old_str", "node_type": "element", "path": "old_str"},
                {"param_name": "new_str"},
            ],
        )
        def edit(self, command: str, path: str, old_str: str, new_str: str) -> str:
            return ""

    short, full = registry_of(Short()).tools["edit"].spec, registry_of(Full()).tools["edit"].spec
    assert short.element == full.element
    assert short.description == full.description
    for key in ("type", "properties", "required"):
        assert short.parameters[key] == full.parameters[key]


def test_s1_the_same_function_name_twice_is_refused() -> None:
    with pytest.raises(SchemaError, match="create_file"):
        ToolRegistry(T(), T())


# ---------------------------------------------------------------- S2: the same method both ways


def test_s2_xml_and_native_reach_the_same_method() -> None:
    assert text(FILE).made == native(("create_file", arguments(file_path="a.txt", file_contents="hi"))).made
    assert text(FILE).made == [("create_file", "a.txt", "hi")]


def test_s2_an_xml_result_goes_back_as_the_user_and_names_its_call_and_its_success() -> None:
    [reply] = text(FILE).turn.replies
    assert isinstance(reply, UserMessage)
    [part] = reply.content
    assert isinstance(part, TextPart)
    assert 'call_id="c0"' in part.text
    assert 'status="success"' in part.text
    assert "done" in part.text


def test_s2_a_native_result_goes_back_as_the_tool() -> None:
    [reply] = native(("create_file", arguments(file_path="a.txt", file_contents="hi"))).turn.replies
    assert reply == ToolMessage("call_0", "create_file", (TextPart("done"),))


# ---------------------------------------------------------------- S3 to S9: what the tag holds


def test_s3_attributes_go_by_their_names() -> None:
    ran = text('<web-search query="cats" summary="false" num_results="5"/>')
    assert ran.made == [("web_search", "cats", False, 5)]
    assert native(("web_search", arguments(query="cats", summary=False, num_results=5))).made == ran.made


def test_s4_elements_come_in_any_order() -> None:
    ran = text('<str-replace file_path="a"><new_str>B</new_str><old_str>A</old_str></str-replace>')
    assert ran.made == [("str_replace", "a", "A", "B")]
    assert native(("str_replace", arguments(new_str="B", file_path="a", old_str="A"))).made == ran.made


def test_s5_markup_in_the_body_is_content() -> None:
    body = "Use <ask>q?</ask> & </b>"
    ran = text(f'<create-file file_path="d.md">{body}</create-file>')
    assert ran.made == [("create_file", "d.md", body)]
    assert native(("create_file", arguments(file_path="d.md", file_contents=body))).made == ran.made


def test_s6_one_leading_newline_is_dropped_and_nothing_else() -> None:
    ran = text('<create-file file_path="a">\n    x = 1\n</create-file>')
    assert ran.made == [("create_file", "a", "    x = 1\n")]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"a>b.txt"', "a>b.txt"),
        ("'a \"b\".txt'", 'a "b".txt'),
        ('"a&amp;b"', "a&b"),
        ('"a\nb"', "a\nb"),
    ],
)
def test_s7_attribute_values_are_exact(written: str, value: str) -> None:
    assert text(f"<create-file file_path={written}>hi</create-file>").made == [("create_file", value, "hi")]


def test_s8_cdata_holds_the_own_closing_tag() -> None:
    ran = text('<create-file file_path="a"><![CDATA[x </create-file> y]]></create-file>')
    assert ran.made == [("create_file", "a", "x </create-file> y")]


def test_s9_a_longer_tag_with_the_same_beginning_is_text() -> None:
    ran = text("<asking>no</asking> <ask>yes</ask>")
    assert ran.made == [("ask", "yes", None)]
    assert ran.text == "<asking>no</asking> "


def test_s9_an_element_with_the_same_beginning_is_content() -> None:
    ran = text(
        '<str-replace file_path="a"><old_str><old_string>1</old_string></old_str><new_str>2</new_str></str-replace>'
    )
    assert ran.made == [("str_replace", "a", "<old_string>1</old_string>", "2")]


# ---------------------------------------------------------------- S10 and S11: wrong arguments


def test_s10_a_missing_parameter_is_answered() -> None:
    ran = text("<create-file>hi</create-file>")
    assert ran.made == []
    result = only(ran)
    assert (result.name, result.error) == ("create_file", "invalid_arguments")
    assert "file_path" in result.text


def test_s10_natively_too() -> None:
    ran = native(("create_file", arguments(file_contents="hi")))
    assert ran.made == []
    assert only(ran).error == "invalid_arguments"
    assert "file_path" in only(ran).text


def test_s11_a_wrong_type_is_refused_by_its_path() -> None:
    ran = native(("add", arguments(a="x", b=2)))
    assert ran.made == []
    assert only(ran).error == "invalid_arguments"
    assert "/a" in only(ran).text
    assert "integer" in only(ran).text


def test_s11_native_json_is_strict_unless_relaxed() -> None:
    wanted = arguments(a="1", b=2)
    assert only(native(("add", wanted))).error == "invalid_arguments"
    assert native(("add", wanted), lenient_native=True).made == [("add", 1, 2)]


def test_s11_an_unknown_parameter_is_refused_with_the_allowed_names() -> None:
    ran = native(("add", arguments(a=1, b=2, c=3)))
    assert ran.made == []
    assert "/c" in only(ran).text
    assert '"a", "b"' in only(ran).text


def test_s11_in_text_as_well() -> None:
    wrong = '<invoke name="add"><parameter name="a">x</parameter><parameter name="b">2</parameter></invoke>'
    assert only(text(wrong)).error == "invalid_arguments"
    assert "/a" in only(text(wrong)).text


# ---------------------------------------------------------------- S12 to S15: function_calls


def invoke(name: str, **values: str) -> str:
    parameters = "".join(f'<parameter name="{key}">{value}</parameter>' for key, value in values.items())
    return f'<invoke name="{name}">{parameters}</invoke>'


@pytest.mark.parametrize("value", ["007", "true", "12345", '{"a": 1}', "null", " x "])
def test_s12_a_string_stays_what_was_written(value: str) -> None:
    ran = text(f"<function_calls>{invoke('note', text=value)}</function_calls>")
    assert ran.made == [("note", value)]
    assert native(("note", arguments(text=value))).made == ran.made


def test_s12_a_list_becomes_a_list() -> None:
    ran = text(f"<function_calls>{invoke('total', numbers='[1, 2]')}</function_calls>")
    assert ran.made == [("total", [1, 2])]
    assert native(("total", arguments(numbers=[1, 2]))).made == ran.made


def test_s13_several_invokes_in_one_block() -> None:
    block = invoke("note", text="q1") + "\n" + invoke("note", text="q2") + "\n" + invoke("nope", x="1")
    ran = text(f"<function_calls>\n{block}\n</function_calls>")
    assert ran.made == [("note", "q1"), ("note", "q2")]
    assert [(r.name, r.error) for r in ran.results] == [("note", None), ("note", None), ("nope", "unknown_tool")]
    assert "create_file, str_replace, web_search" in ran.results[2].text


def test_s13_natively_too() -> None:
    ran = native(("note", arguments(text="q1")), ("nope", "{}"), ("note", arguments(text="q2")))
    assert ran.made == [("note", "q1"), ("note", "q2")]
    assert [r.error for r in ran.results] == [None, "unknown_tool", None]


CALL = '<invoke name="note"><parameter name="text">x</parameter></invoke>'


@pytest.mark.parametrize(
    "written",
    [
        CALL,
        f"<function_calls>{CALL}",
        '<function_calls ><invoke name="note" ><parameter name="text" >x</parameter ></invoke ></function_calls >',
        f"<function_calls>{CALL}</function_calls>".replace('="text"', '="text" type="string"'),
        '<FUNCTION_CALLS><INVOKE name="note"><PARAMETER name="text">x</PARAMETER></INVOKE></FUNCTION_CALLS>',
        f"<function_calls>{CALL}</function_calls>".replace('"', "'"),
        re.sub("<(/?)", r"<\1ns:", f"<function_calls>{CALL}</function_calls>"),
    ],
    ids=["bare", "unclosed wrapper", "spaces", "extra attribute", "upper case", "single quotes", "namespace"],
)
def test_s14_wrappers_are_read_as_models_write_them(written: str) -> None:
    ran = text(written)
    assert ran.made == [("note", "x")]
    assert ran.text == ""


def test_s14_a_self_closing_invoke() -> None:
    assert text('<function_calls><invoke name="ping"/></function_calls>').made == [("ping",)]


def test_s15_the_own_closing_tags_inside_cdata_are_content() -> None:
    body = "a </parameter></invoke></function_calls> b"
    block = invoke("create_file", file_path="a", file_contents=f"<![CDATA[{body}]]>")
    assert text(f"<function_calls>{block}</function_calls>").made == [("create_file", "a", body)]
