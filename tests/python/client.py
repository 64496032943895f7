"""A client that knows nothing of this project but its socket: types come from the server's own reflection.

    client.py SOCKET

Lists services by reflection (v1 and v1alpha), checks health, and streams a greedy completion. Prints one JSON object
for the test that started it; anything unexpected is a non-zero exit with a traceback.
"""

import json
import sys

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICE = "tandem.v1.TandemService"
TIMEOUT_S = 60


def services_v1(channel):
    """Names of the services by reflection v1, whose messages are those of v1alpha under another service name."""
    call = channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    response = next(iter(call(iter([request]), timeout=TIMEOUT_S)))
    return sorted(service.name for service in response.list_services_response.service)


def health(channel, service):
    """The serving status of a service, by name."""
    response = health_pb2_grpc.HealthStub(channel).Check(
        health_pb2.HealthCheckRequest(service=service), timeout=TIMEOUT_S
    )
    return health_pb2.HealthCheckResponse.ServingStatus.Name(response.status)


def generate(channel, pool, prompt, max_tokens):
    """Streams one completion; returns its texts, its token ids and the final message."""
    method = pool.FindServiceByName(SERVICE).FindMethodByName("Generate")
    request_type = message_factory.GetMessageClass(method.input_type)
    response_type = message_factory.GetMessageClass(method.output_type)
    call = channel.unary_stream(
        f"/{SERVICE}/Generate",
        request_serializer=request_type.SerializeToString,
        response_deserializer=response_type.FromString,
    )
    request = request_type(text=prompt)
    request.sampling_params.max_tokens = max_tokens
    texts, token_ids, complete = [], [], None
    for response in call(request, timeout=TIMEOUT_S):
        assert complete is None, "a message followed the final one"
        if response.WhichOneof("response") == "chunk":
            texts.append(response.chunk.text)
            token_ids.extend(response.chunk.token_ids)
        else:
            complete = response.complete
    assert complete is not None, "the stream ended without its final message"
    return texts, token_ids, complete


def main(socket):
    # Without an authority of its own, gRPC sends the socket's path, which HTTP/2 servers refuse.
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix:{socket}", options=options) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        pool = descriptor_pool.DescriptorPool(database)
        texts, token_ids, complete = generate(channel, pool, "The capital of France is", 16)
        print(
            json.dumps(
                {
                    "services_v1": services_v1(channel),
                    "services_v1alpha": sorted(database.get_services()),
                    "health": health(channel, ""),
                    "service_health": health(channel, SERVICE),
                    "chunks": len(texts),
                    "text": "".join(texts),
                    "token_ids": token_ids,
                    "completion_tokens": complete.usage.completion_tokens,
                    "finish_reason": complete.finish_reason,
                    "pair": complete.pair,
                }
            )
        )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
