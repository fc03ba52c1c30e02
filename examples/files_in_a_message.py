"""A report in a user's message, and as text by a tool. `openai:gpt-5` is in place of the scripted model in earnest."""

from pathlib import Path
from tempfile import TemporaryDirectory

from agentkit import Agent, ConfigError, FilePart, ToolCall, model
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel
from agentkit_tools.pdf import Pdf

OBJECTS = (
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
    "<< /Length 39 >>\nstream\nBT /F1 12 Tf (Revenue: 4 million) Tj ET\nendstream",
)


def one_page() -> bytes:
    """A PDF file of one page with one line."""
    body, table = "%PDF-1.7\n", "0000000000 65535 f \n"
    for number, one in enumerate(OBJECTS, 1):
        table += f"{len(body):010} 00000 n \n"
        body += f"{number} 0 obj\n{one}\nendobj\n"
    end = f"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 6\n{table}{end}".encode()


with TemporaryDirectory() as folder:
    path = Path(folder) / "report.pdf"
    path.write_bytes(one_page())

    # 1. The model reads the file itself.
    report = FilePart.from_path(path)
    print(report.kind, report.media_type, report.name)
    agent = Agent(ScriptedModel(["4 million."]))
    print(agent.run_sync(["What was the revenue?", report]).text)

    # 2. The model reads its text with a tool: any model can, and only the pages that it needs.
    read = ToolCall("call_1", "read_pdf", {"file_path": "report.pdf", "first_page": 1})
    result = Agent(ScriptedModel([read, "4 million."]), [Pdf(folder)]).run_sync("Revenue in report.pdf?")
    for message in result.messages:
        if isinstance(message, ToolMessage):
            print(message.text)

# 3. A model whose API does not take a file says so before anything is sent.
talk = FilePart(b"ID3", media_type="audio/mpeg")
try:
    Agent(model("anthropic:claude-sonnet-5", api_key="unused")).run_sync(["What is said here?", talk])
except ConfigError as error:
    print(error)
