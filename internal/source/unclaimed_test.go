// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

func TestObserver_FindsUnclaimedModelCalls(t *testing.T) {
	unclaimed := map[string]bool{
		"usage without an operation": true, "operation of another type": true, "model attribute with a long name": true,
	}
	var observer Observer
	for name, span := range foreignSpans(t) {
		o, err := observer.Observe("", span)
		require.NoError(t, err)
		require.Nil(t, o)
		require.Equal(t, unclaimed[name], observer.Unclaimed(), name)
	}
}

func TestObserver_UnclaimedIsOfTheLastSpan(t *testing.T) {
	var observer Observer
	spans := foreignSpans(t)
	usage := spans["usage without an operation"]
	_, err := observer.Observe("", usage)
	require.NoError(t, err)
	require.True(t, observer.Unclaimed())
	_, err = observer.Observe("litellm", usage)
	require.NoError(t, err)
	require.False(t, observer.Unclaimed(), "a span of LiteLLM below a call")
	usage.Attributes().PutStr(names.Source, "vllm")
	_, err = observer.Observe("", usage)
	require.NoError(t, err)
	require.False(t, observer.Unclaimed(), "derived before")
	usage.Attributes().Remove(names.Source)
	usage.Attributes().PutStr(names.GenAIOperationName, "chat")
	o, err := observer.Observe("", usage)
	require.NoError(t, err)
	require.NotNil(t, o)
	require.False(t, observer.Unclaimed(), "claimed")
}
