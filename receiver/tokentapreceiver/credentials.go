// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"slices"
	"strings"
)

// isCredentialHeader reports whether the values of a header are likely credentials, by its
// name. Gateways have their own names for keys and tokens, so the words of the name decide.
func isCredentialHeader(name string) bool {
	name = strings.ToLower(name)
	if slices.Contains(credentialHeaders, name) {
		return true
	}
	words := strings.FieldsFunc(name, func(c rune) bool { return c == '-' || c == '_' || c == '.' })
	if len(words) == 0 || slices.Contains(subjectWords, words[len(words)-1]) {
		return false
	}
	for i, word := range words {
		switch {
		case slices.Contains(harmlessWords, word):
		case strings.HasSuffix(word, "key"), strings.HasSuffix(word, "keys"):
			// The key of a cache entry, or the like, is no credential.
			if i == 0 || !slices.Contains(entryWords, words[i-1]) {
				return true
			}
		case strings.HasSuffix(word, "token"), strings.HasSuffix(word, "tokens"):
			// Numbers of tokens, such as those of x-max-tokens, are no credentials.
			if !slices.ContainsFunc(words, isCountWord) {
				return true
			}
		case slices.ContainsFunc(credentialParts, func(part string) bool { return strings.Contains(word, part) }), slices.Contains(credentialWords, word):
			return true
		}
	}
	return false
}

// credentialHeaders carry credentials, though no word of their names says so.
var credentialHeaders = []string{
	"sec-websocket-protocol", // browsers send the key for OpenAI in it
	"dpop", "x-bf-vk",
}

// credentialParts mark a credential anywhere in a word, credentialWords only as whole words.
var (
	credentialParts = []string{"auth", "bearer", "cookie", "credential", "jwt", "passphrase", "passwd", "password", "secret", "signature"}
	credentialWords = []string{"assertion", "cred", "creds", "hmac", "otp", "pass", "passcode", "pwd", "saml", "sig"}
)

// subjectWords end the names of headers that say whose a credential is, or of which kind,
// such as x-auth-request-email and x-api-key-id.
var subjectWords = []string{
	"alias", "email", "group", "groups", "id", "method", "name", "org", "owner", "project", "provider", "role", "roles",
	"scheme", "scope", "scopes", "status", "team", "tenant", "type", "user", "userid", "username",
}

var (
	harmlessWords = []string{"author", "authority", "authors"}
	entryWords    = []string{"cache", "dedup", "idempotency", "partition", "routing", "shard", "sort"}
	countWords    = []string{"budget", "completion", "count", "input", "limit", "max", "min", "num", "output", "prompt", "remaining", "total", "usage", "used"}
)

func isCountWord(word string) bool { return slices.Contains(countWords, word) }
