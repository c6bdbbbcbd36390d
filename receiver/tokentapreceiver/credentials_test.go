// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The names are those of services, gateways and identity proxies.
func TestIsCredentialHeader(t *testing.T) {
	for credential := range strings.FieldsSeq(`
		Authorization Proxy-Authorization Cookie Set-Cookie Signature Signature-Input WWW-Authenticate DPoP Sec-WebSocket-Protocol
		X-Api-Key Api-Key apikey X-ApiKey X-Goog-Api-Key Ocp-Apim-Subscription-Key X-Amz-Security-Token X-Amz-Signature
		X-Goog-Iap-Jwt-Assertion X-Vault-Token PRIVATE-TOKEN X-CSRF-Token X-XSRF-TOKEN X-Hub-Signature-256 X-Access-Key
		Helicone-Auth Helicone-OpenAI-Api-Key x-portkey-api-key x-portkey-virtual-key cf-aig-authorization cf-access-client-secret
		CF-Access-Jwt-Assertion x-litellm-api-key x-litellm-key x-bf-vk X-TFY-API-KEY kong-admin-token
		X-Auth-Request-Access-Token X-Forwarded-Access-Token X-Authentik-Jwt X-MS-TOKEN-AAD-ID-TOKEN X-Auth-Token X_Auth_Token
		X-Session-Token X-Session-Secret X-Session-Cookie X-User-Password x-passwd X-Client-Pwd X-OAuth X-Id-Token X-Tokens X-Secret.Key`) {
		assert.True(t, isCredentialHeader(credential), credential)
		assert.True(t, isCredentialHeader(strings.ToLower(credential)), credential)
	}
	for harmless := range strings.FieldsSeq(`
		X-Tenant-Id X-User-Id X-Request-Id X-Session-Id X-Team X-Org-Id X-Correlation-Id X-Client-Name User-Agent X-Environment
		X-Max-Tokens X-Token-Count X-Token-Budget X-Prompt-Tokens X-Tokenizer X-Keyword X-Author X-Authority X-Passenger
		Idempotency-Key X-Cache-Key X-Partition-Key X-Api-Key-Id X-Api-Key-Name X-Litellm-Key-Alias X-Auth-Type
		X-Auth-Request-User X-Auth-Request-Email X-Auth-Request-Groups X-Authenticated-Userid X-Authenticated-User X-Token-Owner
		OpenAI-Organization OpenAI-Project Anthropic-Version Helicone-User-Id Helicone-Property-Team X-Goog-User-Project X-Stainless-Lang
		x-portkey-trace-id Traceparent Baggage X-Forwarded-For X-Forwarded-Client-Cert Host Content-Type X-`) {
		assert.False(t, isCredentialHeader(harmless), harmless)
	}
}
