// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/config"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/sloexport"
)

func newSLOsCommand() *cobra.Command {
	var format, output string
	command := &cobra.Command{
		Use:   "slos FILE --to FORMAT",
		Short: "Write SLOs as Prometheus rules, or as objects of Pyrra, Sloth or OpenSLO",
		Long: `Write the SLOs of a file as Prometheus rules, or as objects of Pyrra, Sloth or OpenSLO.

FILE is a configuration of the Collector, or has the lists slos of token_latency and objectives
of token_sli at its top level. If several sections of a configuration have such settings, add
# and the name of one: collector.yaml#chat.`,
		Example: `  tokenpulse slos collector.yaml --to prometheus -o rules.yaml
  tokenpulse slos collector.yaml#chat --to sloth -o sloth.yaml && sloth generate -i sloth.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			settings, err := config.Load(command.Context(), args[0])
			if err != nil {
				return usageError{err}
			}
			export, err := sloexport.To(format, settings)
			if err != nil {
				return usageError{err}
			}
			for _, note := range export.Notes {
				fmt.Fprintln(command.ErrOrStderr(), "tokenpulse: note:", note)
			}
			if output != "" {
				return os.WriteFile(output, export.Text, 0o644) //nolint:gosec // Prometheus, another user, reads it
			}
			_, err = command.OutOrStdout().Write(export.Text)
			return err
		},
	}
	command.Flags().StringVar(&format, "to", "", "format: "+strings.Join(sloexport.Formats(), ", "))
	command.Flags().StringVarP(&output, "output", "o", "", "file to write (default: standard output)")
	if err := command.MarkFlagRequired("to"); err != nil {
		panic(err) // cannot happen: the flag is defined above
	}
	return command
}
