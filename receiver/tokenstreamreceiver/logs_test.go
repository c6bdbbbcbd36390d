// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/receiver/receivertest"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// requireBothWays requires that an error names both ways to report the tokens of a stream.
func requireBothWays(t *testing.T, message string) {
	t.Helper()
	require.Contains(t, message, "does not read OTLP logs")
	require.Contains(t, message, "post events to /v1/tokens or call tokenpulse.v1.TokenStreamService over gRPC")
	require.Contains(t, message, "docs/timeline-attributes.md")
	require.Contains(t, message, "otlp receiver")
}

func oneLog() plogotlp.ExportRequest {
	logs := plog.NewLogs()
	record := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("gen_ai.token.generated")
	return plogotlp.NewExportRequestFromLogs(logs)
}

// OTLP exporters read a Status in the encoding of their request.
func TestLogs_HTTPNamesTheOtherWays(t *testing.T) {
	b := start(t)
	url := "http://" + b.server.AddrHTTP.String() + "/v1/logs"

	body, err := oneLog().MarshalProto()
	require.NoError(t, err)
	resp, content := do(t, url, typeProtobuf, bytes.NewReader(body))
	require.Equal(t, 404, resp.StatusCode)
	require.Equal(t, typeProtobuf, resp.Header.Get("Content-Type"))
	var failed rpcstatus.Status
	require.NoError(t, proto.Unmarshal(content, &failed))
	requireBothWays(t, failed.GetMessage())

	body, err = oneLog().MarshalJSON()
	require.NoError(t, err)
	resp, content = do(t, url, typeJSON, bytes.NewReader(body))
	require.Equal(t, 404, resp.StatusCode)
	require.Equal(t, []string{typeJSON}, resp.Header["Content-Type"])
	var inJSON struct{ Message string }
	require.NoError(t, json.Unmarshal(content, &inJSON))
	requireBothWays(t, inJSON.Message)
}

func TestLogs_GRPCNamesTheOtherWays(t *testing.T) {
	b := start(t)
	_, err := plogotlp.NewGRPCClient(b.dialGRPC(t)).Export(t.Context(), oneLog())
	require.Equal(t, codes.Unimplemented, status.Code(err), "exporters do not retry it")
	requireBothWays(t, status.Convert(err).Message())
}

func TestLogs_PipelineNamesTheOtherWays(t *testing.T) {
	factory := NewFactory()
	_, err := factory.CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), factory.CreateDefaultConfig(), consumertest.NewNop())
	require.Error(t, err)
	requireBothWays(t, err.Error())
}
