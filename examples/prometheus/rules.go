// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus has the rules of this folder for programs that adapt them.
package prometheus

import _ "embed"

// Rules is the text of rules.yaml.
//
//go:embed rules.yaml
var Rules string
