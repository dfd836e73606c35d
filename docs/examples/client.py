#!/usr/bin/env python3
"""A client of svcd, on what openapi-python-client makes of /openapi.json: docs/guide/clients.md.

    SVC_URL=http://localhost:8080 HOOK_URL=http://localhost:8081/hook python3 client.py
"""
import os
import time

from shop_client import AuthenticatedClient, Client
from shop_client.api.shop_person import get_shop_person, post_shop_person
from shop_client.api.svc_admin_delivery import patch_svc_admin_delivery
from shop_client.api.svc_admin_resource import post_svc_admin_resource
from shop_client.api.svc_admin_webhook import post_svc_admin_webhook
from shop_client.api.svc_admin_webhook_log import get_svc_admin_webhook_log
from shop_client.api.svc_event import post_svc_event
from shop_client.models import (Problem, SvcInputShopPerson, SvcInputSvcAdminResource, SvcInputSvcAdminWebhook,
                               SvcInputSvcEvent, SvcPatchSvcAdminDelivery)

URL = os.environ.get("SVC_URL", "http://localhost:8080")
HOOK = os.environ.get("HOOK_URL", "http://localhost:8081/hook")
KEY = os.environ.get("SVC_KEY")

svc = AuthenticatedClient(URL, token=KEY, prefix="apikey") if KEY else Client(URL)


def good(answer):
    """What was answered; a Problem, which says what is wrong, is raised."""
    if isinstance(answer, Problem):
        raise RuntimeError(answer.detail)
    return answer or []


def pages(size):
    """All persons, page by page: each begins behind the last one."""
    last = 0
    while True:
        page = good(get_shop_person.sync(client=svc, where=[f"ObjectNo>{last}"], order_asc="ObjectNo", limit=size))
        if not page:
            return
        yield page
        last = page[-1].object_no


def attempts(webhook, count):
    """The entries of the webhook's log, as soon as there are so many."""
    while True:
        entries = good(get_svc_admin_webhook_log.sync(client=svc, where=[f"WebhookId={webhook}"],
                                                      order_asc="ObjectNo"))
        if len(entries) >= count:
            return entries
        time.sleep(0.05)


def names(persons):
    return ", ".join(person.name for person in persons)


declared = good(post_svc_admin_resource.sync(client=svc, body=SvcInputSvcAdminResource.from_dict({
    "Name": "Shop.Review", "Kind": "EventResource", "Description": "Somebody rated what they bought",
    "Properties": [{"Name": "Stars", "Type": "integer", "Required": True}, {"Name": "Text", "Type": "string"}]})))
print("declared", declared[0].name)

inserted = good(post_shop_person.sync(client=svc, body=[
    SvcInputShopPerson(name="Ada", email="ada@example.com"), SvcInputShopPerson(name="Grace", age=85),
    SvcInputShopPerson(name="Mary", born="1780-12-26")]))
print("inserted", names(inserted))

for page in pages(2):
    print("a page:", names(page))

webhook, = good(post_svc_admin_webhook.sync(client=svc, body=SvcInputSvcAdminWebhook(
    label="bad reviews", destination=HOOK, event_selector="/Shop.Review/Stars<3")))
print("subscribed:", webhook.label)

events = good(post_svc_event.sync(client=svc, body=[
    SvcInputSvcEvent.from_dict({"Resource": "Shop.Review", "Payload": {"Stars": 5, "Text": "Lovely"}}),
    SvcInputSvcEvent.from_dict({"Resource": "Shop.Review", "Payload": {"Stars": 1, "Text": "Late"},
                                "ClientId": "review-2"})]))
print("raised, for webhooks:", ", ".join(str(event.webhooks) for event in events))

for entry in attempts(webhook.id, 1):
    print(f"attempt {entry.attempt}: {entry.status_code}")

replayed = good(patch_svc_admin_delivery.sync(client=svc, where=[f"WebhookId={webhook.id}", "State=Delivered"],
                                              unsafe=True, body=SvcPatchSvcAdminDelivery.from_dict({"State": "Pending"})))
print("replayed", len(replayed))
for entry in attempts(webhook.id, 2):
    print(f"attempt {entry.attempt}: {entry.status_code}")

wrong = get_shop_person.sync(client=svc, where=["Nmae=Ada"])
print("refused:", wrong.error_code.value)
