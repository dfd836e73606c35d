"""What schemathesis checks besides its own: which errors a request may have that is as the document demands, and
that Allow names the methods of the document, REPORT included."""
import json

import schemathesis

# What a string may hold is not all in a schema: conditions and meta-conditions, URIs, selectors, names, expressions;
# nor which members go together, and what is there.
BEYOND_SCHEMAS = {
    "AmbiguousMatch", "DataSourceFormat", "InvalidConditionOperator", "InvalidConditionSyntax",
    "InvalidConditionValueType", "InvalidEnumValue", "InvalidEventSelector", "InvalidMetaConditionSyntax",
    "InvalidMetaConditionValueType", "InvalidResourceEntity", "NoDataSource", "RequestTooCostly",
}
GET_WITH_BODY = ("/Svc.Aggregator", "/Svc.Echo")
METHODS = {"get", "put", "post", "delete", "patch", "head"}


def methods_of(case):
    """Of the resource whose path it is. OpenAPI knows no REPORT, and no GET with a body."""
    resource = "/" + case.operation.path.split("/")[1]
    item = case.operation.schema.raw_schema["paths"][resource]
    found = {method.upper() for method in item if method in METHODS}
    if "x-report" in item or resource in GET_WITH_BODY:
        found |= {"REPORT"}
    return found | {"GET", "HEAD"} if resource in GET_WITH_BODY else found


def code_of(response):
    try:
        return json.loads(response.content)["ErrorCode"]
    except (ValueError, KeyError, TypeError):
        return None


@schemathesis.check
def errors_of_good_requests(_, response, case):
    """A request that meets the document is refused only for what that cannot say."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.request.method == "HEAD":
        return
    beyond = BEYOND_SCHEMAS
    if "{Event}" in case.operation.path or case.operation.path == "/Svc.Event/_":
        beyond = beyond | {"UnknownProperty"}  # the payload of another event resource
    if response.status_code == 400:
        assert code_of(response) in beyond, f"400 {code_of(response)}"


@schemathesis.check
def errors_are_problems(_, response, case):
    """Each error has a Problem, whose status is that of the answer."""
    if response.status_code < 400 or response.request.method == "HEAD" or case.operation.path == "/Svc.Health":
        return
    problem = json.loads(response.content)
    assert problem["status"] == response.status_code, problem
    assert problem["detail"] and problem["ErrorCode"], problem


@schemathesis.check
def allow_is_described(_, response, case):
    """The methods of a resource are those of its path; but Aggregator and Echo are asked by POST alone there."""
    if response.request.method != "OPTIONS" or response.status_code != 200:
        return
    allowed = {method.strip() for method in ",".join(response.headers["allow"]).split(",")}
    assert allowed == methods_of(case), f"{allowed ^ methods_of(case)}"


@schemathesis.check
def other_methods_are_refused(_, response, case):
    """405 for what the resource does not have."""
    method = response.request.method
    if method in methods_of(case) | {"OPTIONS"}:
        return
    assert response.status_code == 405, f"{method}: {response.status_code}"
    assert response.headers["allow"]
