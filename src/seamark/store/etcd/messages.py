"""The part of etcd's gRPC protocol that Seamark uses, field by field.

The numbers and types are those of etcd's published ``rpc.proto`` and ``kv.proto``; protobuf skips fields that are not
listed here.  The descriptors live in their own pool, so that they do not collide with another etcd client in the same
process.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "etcdserverpb"

_FieldType = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bytes": _FieldType.TYPE_BYTES,
    "string": _FieldType.TYPE_STRING,
    "int64": _FieldType.TYPE_INT64,
    # Enumerations are integers on the wire; the values that Seamark uses are constants below.
    "enum": _FieldType.TYPE_INT32,
    "bool": _FieldType.TYPE_BOOL,
}

EVENT_DELETE = 1
COMPARE_EQUAL = 0
COMPARE_MOD = 2

# message → field → "number type"; `*` marks a repeated field, `|name` a member of the oneof `name`.
_MESSAGES: dict[str, dict[str, str]] = {
    "ResponseHeader": {"revision": "3 int64"},
    "KeyValue": {"key": "1 bytes", "create_revision": "2 int64", "mod_revision": "3 int64", "value": "5 bytes"},
    "Event": {"type": "1 enum", "kv": "2 KeyValue", "prev_kv": "3 KeyValue"},
    "RangeRequest": {
        "key": "1 bytes",
        "range_end": "2 bytes",
        "limit": "3 int64",
        "revision": "4 int64",
        "keys_only": "8 bool",
    },
    "RangeResponse": {"header": "1 ResponseHeader", "kvs": "2 KeyValue*", "more": "3 bool"},
    "PutRequest": {"key": "1 bytes", "value": "2 bytes"},
    "PutResponse": {"header": "1 ResponseHeader"},
    "DeleteRangeRequest": {"key": "1 bytes"},
    "DeleteRangeResponse": {"header": "1 ResponseHeader", "deleted": "2 int64"},
    "Compare": {"result": "1 enum", "target": "2 enum", "key": "3 bytes", "mod_revision": "6 int64|target_union"},
    "RequestOp": {
        "request_range": "1 RangeRequest|request",
        "request_put": "2 PutRequest|request",
        "request_delete_range": "3 DeleteRangeRequest|request",
    },
    "ResponseOp": {
        "response_range": "1 RangeResponse|response",
        "response_put": "2 PutResponse|response",
        "response_delete_range": "3 DeleteRangeResponse|response",
    },
    "TxnRequest": {"compare": "1 Compare*", "success": "2 RequestOp*", "failure": "3 RequestOp*"},
    "TxnResponse": {"header": "1 ResponseHeader", "succeeded": "2 bool", "responses": "3 ResponseOp*"},
    "CompactionRequest": {"revision": "1 int64"},
    "CompactionResponse": {"header": "1 ResponseHeader"},
    "WatchCreateRequest": {
        "key": "1 bytes",
        "range_end": "2 bytes",
        "start_revision": "3 int64",
        "progress_notify": "4 bool",
        "prev_kv": "6 bool",
        "fragment": "8 bool",
    },
    "WatchRequest": {"create_request": "1 WatchCreateRequest|request_union"},
    "WatchResponse": {
        "header": "1 ResponseHeader",
        "created": "3 bool",
        "canceled": "4 bool",
        "compact_revision": "5 int64",
        "cancel_reason": "6 string",
        "fragment": "7 bool",
        "events": "11 Event*",
    },
    "AuthenticateRequest": {"name": "1 string", "password": "2 string"},
    "AuthenticateResponse": {"header": "1 ResponseHeader", "token": "2 string"},
}


def _describe(name: str, fields: dict[str, str]) -> descriptor_pb2.DescriptorProto:
    description = descriptor_pb2.DescriptorProto(name=name)
    for field_name, text in fields.items():
        text, _, union = text.partition("|")
        number, _, kind = text.partition(" ")
        repeated, kind = kind.endswith("*"), kind.rstrip("*")
        field = description.field.add(
            name=field_name,
            number=int(number),
            label=_FieldType.LABEL_REPEATED if repeated else _FieldType.LABEL_OPTIONAL,
            type=_SCALARS.get(kind, _FieldType.TYPE_MESSAGE),
        )
        if kind not in _SCALARS:
            field.type_name = f".{PACKAGE}.{kind}"
        if union:
            if union not in {declared.name for declared in description.oneof_decl}:
                description.oneof_decl.add(name=union)
            field.oneof_index = len(description.oneof_decl) - 1
    return description


def _build() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="seamark-etcd.proto", package=PACKAGE, syntax="proto3")
    file.message_type.extend(_describe(name, fields) for name, fields in _MESSAGES.items())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in _MESSAGES
    }


_CLASSES = _build()

RangeRequest: Any = _CLASSES["RangeRequest"]
RangeResponse: Any = _CLASSES["RangeResponse"]
PutRequest: Any = _CLASSES["PutRequest"]
DeleteRangeRequest: Any = _CLASSES["DeleteRangeRequest"]
Compare: Any = _CLASSES["Compare"]
RequestOp: Any = _CLASSES["RequestOp"]
TxnRequest: Any = _CLASSES["TxnRequest"]
TxnResponse: Any = _CLASSES["TxnResponse"]
CompactionRequest: Any = _CLASSES["CompactionRequest"]
CompactionResponse: Any = _CLASSES["CompactionResponse"]
WatchCreateRequest: Any = _CLASSES["WatchCreateRequest"]
WatchRequest: Any = _CLASSES["WatchRequest"]
WatchResponse: Any = _CLASSES["WatchResponse"]
AuthenticateRequest: Any = _CLASSES["AuthenticateRequest"]
AuthenticateResponse: Any = _CLASSES["AuthenticateResponse"]
