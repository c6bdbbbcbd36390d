// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"strings"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// hostProviders has the gen_ai.provider.name of services by the end of their host names.
var hostProviders = []struct{ suffix, provider string }{
	{".openai.azure.com", "azure.ai.openai"},
	{".cognitiveservices.azure.com", "azure.ai.openai"},
	{".services.ai.azure.com", "azure.ai.inference"},
	{".models.ai.azure.com", "azure.ai.inference"},
	{"openai.com", "openai"},
	{"anthropic.com", "anthropic"},
	{"generativelanguage.googleapis.com", "gcp.gemini"},
	{"aiplatform.googleapis.com", "gcp.vertex_ai"},
	{"amazonaws.com", "aws.bedrock"},
	{"cohere.com", "cohere"},
	{"cohere.ai", "cohere"},
	{"mistral.ai", "mistral_ai"},
	{"groq.com", "groq"},
	{"deepseek.com", "deepseek"},
	{"perplexity.ai", "perplexity"},
	{"x.ai", "x_ai"},
	{"ml.cloud.ibm.com", "ibm.watsonx.ai"},
}

// providerOf returns the provider of an answer. Servers without a well-known name have
// that of their format.
func providerOf(host string, format llmstream.Format) string {
	host = strings.ToLower(host)
	for _, known := range hostProviders {
		if strings.HasSuffix(host, known.suffix) && (len(host) == len(known.suffix) || known.suffix[0] == '.' || host[len(host)-len(known.suffix)-1] == '.') {
			return known.provider
		}
	}
	return format.Provider()
}
