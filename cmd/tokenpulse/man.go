// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand returns the command by which packages get their man pages.
func newManCommand() *cobra.Command {
	var date string
	command := &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the man pages of all commands into a folder",
		Example: "tokenpulse man ~/.local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(command *cobra.Command, args []string) error {
			day, err := time.Parse(time.DateOnly, date)
			if err != nil {
				return usagef("--date is %q; give a day such as 2026-01-31", date)
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // man pages are for all users
				return err
			}
			root := command.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Title: "TOKENPULSE", Section: "1", Date: &day, Source: "tokenpulse", Manual: "User Commands"}, args[0])
		},
	}
	command.Flags().StringVar(&date, "date", time.Now().UTC().Format(time.DateOnly), "`day` in the pages; packages set it so that equal sources give equal files")
	return command
}
