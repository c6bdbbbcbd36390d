// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command sbom prints the bill of materials of a Go binary in CycloneDX JSON: the
// modules that the binary itself lists, with their checksums. Licences come from a file
// with a line "MODULE VERSION LICENCE" for each module, as `make suite-licenses` writes.
// The same binary always gives the same output.
//
//	sbom BINARY LICENCES
package main

import (
	"bufio"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY LICENCES")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(binary, licencesFile string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	licences, err := readLicences(licencesFile)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(content)
	components := []cdx.Component{component("std", strings.TrimPrefix(info.GoVersion, "go"), "", "BSD-3-Clause")}
	for _, module := range info.Deps {
		licence, ok := licences[module.Path]
		if !ok {
			return fmt.Errorf("%s has no line for the module %s; run make suite-licenses again", licencesFile, module.Path)
		}
		used := *module
		if replaced := module.Replace; replaced != nil && replaced.Sum != "" { // not by a folder
			used = *replaced
		}
		components = append(components, component(used.Path, used.Version, checksum(&used), licence))
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		Type: cdx.ComponentTypeApplication, Name: filepath.Base(binary), BOMRef: filepath.Base(binary),
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}},
	}}
	bom.Components = &components
	return cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// checksum returns the SHA-256 of a module in go.sum, in hexadecimal. It is empty for a
// module in a folder.
func checksum(module *debug.Module) string {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum)
}

func component(module, version, checksum, licence string) cdx.Component {
	url := "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: module, Version: version, PackageURL: url, BOMRef: url,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: licence}}},
	}
	if checksum != "" {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: checksum}}
	}
	return c
}

// readLicences returns the SPDX identifier of each module's licence.
func readLicences(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	licences := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 {
			licences[fields[0]] = fields[2]
		}
	}
	return licences, nil
}
