// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
)

// Names that Kubernetes allows for all kinds of objects and in labels (RFC 1123).
var (
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	notInName  = regexp.MustCompile(`[^a-z0-9]+`)
)

const maxObjectName = 63

func isObjectName(s string) bool { return len(s) <= maxObjectName && objectName.MatchString(s) }

// objectNames returns a name for the object of each budget, and says which differ from those of the SLOs.
func objectNames(e *Export, budgets []budget) []string {
	wanted, count := make([]string, len(budgets)), map[string]int{}
	for i := range budgets {
		wanted[i] = budgets[i].SLO
		if !isObjectName(wanted[i]) {
			wanted[i] = strings.Trim(notInName.ReplaceAllString(strings.ToLower(wanted[i]), "-"), "-")
		}
		count[wanted[i]]++
	}
	var renamed []string
	for i := range budgets {
		if isObjectName(budgets[i].SLO) {
			continue
		}
		if count[wanted[i]] > 1 || !isObjectName(wanted[i]) {
			wanted[i] = withHash(wanted[i], budgets[i].SLO)
		}
		renamed = append(renamed, fmt.Sprintf("%q is %s", budgets[i].SLO, wanted[i]))
	}
	if len(renamed) > 0 {
		e.notef("Kubernetes allows names of up to %d lower-case letters, digits and hyphens, so objects have others than their SLOs: %s", maxObjectName, strings.Join(renamed, ", "))
	}
	return wanted
}

// withHash shortens a name, and adds a hash that tells it apart from others.
func withHash(name, of string) string {
	hash := sha256.Sum256([]byte(of))
	suffix := fmt.Sprintf("-%x", hash[:4])
	if len(name) > maxObjectName-len(suffix) {
		name = name[:maxObjectName-len(suffix)]
	}
	return strings.TrimPrefix(strings.TrimRight(name, "-")+suffix, "-")
}
