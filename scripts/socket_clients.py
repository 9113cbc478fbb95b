"""Connects an official client to a fake platform and answers every press. Run by the ignored tests `sdk_tests`."""

import sys
import threading


def slack(base_url, app_token):
    from slack_sdk import WebClient
    from slack_sdk.socket_mode import SocketModeClient
    from slack_sdk.socket_mode.response import SocketModeResponse

    client = SocketModeClient(app_token=app_token, web_client=WebClient(base_url=base_url))

    def acknowledge(client, request):
        assert request.type == "interactive" and request.payload["type"] == "block_actions"
        client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    client.socket_mode_request_listeners.append(acknowledge)
    client.connect()
    threading.Event().wait()


def feishu(base_url, app_id, app_secret):
    import lark_oapi as lark
    from lark_oapi.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse

    def press(event):
        said = f"{event.header.event_id} {event.event.action.value['decision']}"
        return P2CardActionTriggerResponse({"toast": {"type": "success", "content": said}})

    handler = lark.EventDispatcherHandler.builder("", "").register_p2_card_action_trigger(press).build()
    lark.ws.Client(app_id, app_secret, event_handler=handler, domain=base_url).start()


{"slack": slack, "feishu": feishu}[sys.argv[1]](*sys.argv[2:])
