"""Talks to the fakes through slack_sdk and lark-oapi and checks that each believes the other. Run by prove-fakes."""

import json
import subprocess
import sys

import lark_oapi as lark
from lark_oapi.api.contact.v3 import BatchGetIdUserRequest, BatchGetIdUserRequestBody
from lark_oapi.api.im.v1 import (
    CreateMessageRequest,
    CreateMessageRequestBody,
    PatchMessageRequest,
    PatchMessageRequestBody,
    ReplyMessageRequest,
    ReplyMessageRequestBody,
)
from lark_oapi.core.model import RawRequest
from lark_oapi.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.models.blocks import ActionsBlock, ButtonElement, HeaderBlock, SectionBlock
from slack_sdk.signature import SignatureVerifier

CHECKS = 0


def check(what, holds):
    global CHECKS
    CHECKS += 1
    if not holds:
        sys.exit(f"prove-fakes: {what}: does not hold")
    print(f"  ok  {what}")


class Fakes:
    def __init__(self, binary):
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.places = json.loads(self.process.stdout.readline())

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=10)


def slack_refuses(call, error):
    try:
        call()
    except SlackApiError as refused:
        return refused.response["error"] == error
    return False


def prove_slack(fakes):
    place = fakes.places["slack"]
    client = WebClient(token=place["bot_token"], base_url=place["base_url"] + "/")
    check("Slack: auth.test", client.auth_test()["ok"])
    found = client.users_lookupByEmail(email="dana@example.com")
    check("Slack: users.lookupByEmail", found["user"]["id"] == place["user"])
    blocks = [
        HeaderBlock(text="Payment"),
        SectionBlock(text="amount: 5"),
        ActionsBlock(elements=[ButtonElement(text="Approve", action_id="approve", value="token/1 ä")]),
    ]
    posted = client.chat_postMessage(channel=place["channel"], text="fallback", blocks=blocks)
    check("Slack: chat.postMessage with the SDK's own blocks", posted["message"]["blocks"][2]["type"] == "actions")
    changed = client.chat_update(channel=posted["channel"], ts=posted["ts"], text="seen", blocks=blocks)
    check("Slack: chat.update", changed["text"] == "seen")
    long = [{"type": "section", "text": {"type": "plain_text", "text": "x" * 3001}}]
    post_long = lambda: client.chat_postMessage(channel=place["channel"], text="t", blocks=long)
    check("Slack: a long section is an SlackApiError", slack_refuses(post_long, "invalid_blocks"))
    stranger = WebClient(token="xoxb-other", base_url=place["base_url"] + "/")
    check("Slack: a wrong token is one too", slack_refuses(stranger.auth_test, "invalid_auth"))

    verifier = SignatureVerifier(place["signing_secret"])
    valid = lambda sent: verifier.is_valid_request(sent["body"], sent["headers"])
    click = dict(do="slack.click", action="approve", user=place["user"])
    check("Slack: the SDK accepts the signature of a click", valid(fakes.ask(**click)))
    check("Slack: and refuses a forged one", not valid(fakes.ask(**click, variant="forged")))
    check("Slack: and a stale one", not valid(fakes.ask(**click, variant="stale")))


CARD = {
    "schema": "2.0",
    "config": {"update_multi": True},
    "header": {"template": "orange", "title": {"tag": "plain_text", "content": "批准"}},
    "body": {
        "elements": [
            {"tag": "div", "text": {"tag": "plain_text", "content": "amount: 5"}},
            {
                "tag": "button",
                "text": {"tag": "plain_text", "content": "Approve"},
                "behaviors": [{"type": "callback", "value": {"decision": "approve", "t": "opaque"}}],
            },
        ]
    },
}


def prove_feishu(fakes):
    place = fakes.places["feishu"]
    client = (
        lark.Client.builder().app_id(place["app_id"]).app_secret(place["app_secret"]).domain(place["base_url"]).build()
    )
    messages = client.im.v1.message

    def send(card):
        body = CreateMessageRequestBody.builder().receive_id(place["chat_id"]).msg_type("interactive")
        body = body.content(json.dumps(card)).build()
        return messages.create(CreateMessageRequest.builder().receive_id_type("chat_id").request_body(body).build())

    sent = send(CARD)
    check("Feishu: token and send", sent.success() and sent.data.message_id.startswith("om_"))
    bad = json.loads(json.dumps(CARD))
    bad["body"]["elements"].append({"tag": "note", "elements": []})
    refused = send(bad)
    check("Feishu: a tag of 1.0 is 230099 with 200861", refused.code == 230099 and "200861" in refused.msg)
    # The SDK looks its name up in one spelling only; HTTP knows no case.
    named = {name.lower(): value for name, value in refused.raw.headers.items()}
    check("Feishu: a refusal carries its log id", bool(named.get("x-tt-logid")))
    body = PatchMessageRequestBody.builder().content(json.dumps(CARD)).build()
    patch = PatchMessageRequest.builder().message_id(sent.data.message_id).request_body(body).build()
    check("Feishu: patch", messages.patch(patch).success())
    body = BatchGetIdUserRequestBody.builder().emails(["dana@example.com"]).build()
    look_up = BatchGetIdUserRequest.builder().user_id_type("open_id").request_body(body).build()
    found = client.contact.v3.user.batch_get_id(look_up)
    check("Feishu: batch_get_id", found.data.user_list[0].user_id == place["user"])

    clicks = []
    answer = {"toast": {"type": "info", "content": "seen"}}

    def clicked(event):
        clicks.append(event)
        return P2CardActionTriggerResponse(answer)

    builder = lark.EventDispatcherHandler.builder(place["encrypt_key"], place["verification_token"])
    handler = builder.register_p2_card_action_trigger(clicked).build()

    def deliver(sent):
        request = RawRequest()
        request.uri, request.headers, request.body = "/", sent["headers"], sent["body"].encode()
        return handler.do(request)

    click = dict(do="feishu.click", decision="approve", user=place["user"])
    answered = deliver(fakes.ask(**click))
    check("Feishu: the SDK verifies and decrypts a click", answered.status_code == 200 and len(clicks) == 1)
    event = clicks[0].event
    check("Feishu: who clicked", event.operator.open_id == place["user"])
    check("Feishu: what the button says", event.action.value == {"decision": "approve", "t": "opaque"})
    check("Feishu: on which message", event.context.open_message_id == sent.data.message_id)
    check("Feishu: a forged click reaches nobody", deliver(fakes.ask(**click, variant="forged")).status_code != 200)
    check("Feishu: still one click", len(clicks) == 1)
    shaken = deliver(fakes.ask(do="feishu.challenge", challenge="c-1"))
    check("Feishu: the handshake", json.loads(shaken.content)["challenge"] == "c-1")
    body = ReplyMessageRequestBody.builder().msg_type("text").content('{"text": "note"}').build()
    reply = ReplyMessageRequest.builder().message_id(sent.data.message_id).request_body(body).build()
    check("Feishu: reply", messages.reply(reply).success())


if __name__ == "__main__":
    fakes = Fakes(sys.argv[1])
    prove_slack(fakes)
    prove_feishu(fakes)
    check("the fakes end with their input", fakes.close() == 0)
    print(f"{CHECKS} passed, 0 failed")
