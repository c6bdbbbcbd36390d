// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Applications log, and exporters send logs to any OTLP port, so each way to send logs
// here is refused with the ways to report tokens.

// NoLogs is the refusal of logs.
const NoLogs = "token_stream does not read OTLP logs; to report the tokens of a stream, post events to " + TokensPath +
	" or call tokenpulse.v1.TokenStreamService over gRPC, or set attributes of the request's span (docs/timeline-attributes.md); send logs to an otlp receiver"

// LogsPath is where OTLP exporters post logs.
const LogsPath = "/v1/logs"

// refuseLogsHTTP answers as OTLP specifies, in the encoding of the request.
func refuseLogsHTTP(w http.ResponseWriter, httpReq *http.Request) {
	mediaType, body := TypeJSON, []byte(`{"message":"`+NoLogs+`"}`)
	if mediaTypeOf(httpReq) == TypeProtobuf {
		mediaType = TypeProtobuf
		body, _ = proto.Marshal(&rpcstatus.Status{Message: NoLogs})
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write(body) //nolint:gosec // JSON or protobuf, not HTML; a client that is gone needs no answer
}

// logsService is OTLP's LogsService.
var logsService = grpc.ServiceDesc{
	ServiceName: "opentelemetry.proto.collector.logs.v1.LogsService",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{StreamName: "Export", ClientStreams: true, Handler: func(any, grpc.ServerStream) error {
		return status.Error(codes.Unimplemented, NoLogs)
	}}},
	Metadata: "opentelemetry/proto/collector/logs/v1/logs_service.proto",
}
