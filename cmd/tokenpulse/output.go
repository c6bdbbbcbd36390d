// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// output is where a command writes its result: to a file, or to standard output if the name is empty.
type output string

func (o *output) addFlag(command *cobra.Command, what string) {
	command.Flags().StringVarP((*string)(o), "output", "o", "", "write "+what+" to this `file` (default: standard output)")
}

func (o output) write(command *cobra.Command, write func(io.Writer) error) error {
	if o == "" {
		return write(command.OutOrStdout())
	}
	file, err := os.Create(string(o))
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// writeJSON writes a result for programs, in lines that people can read, too.
func writeJSON(out io.Writer, result any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(result)
}
