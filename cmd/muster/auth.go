// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newAuthCommand(o *options) *cobra.Command {
	var way access
	c := &authCommand{options: o, cluster: way.authReader}
	cmd := c.command()
	way.addFlags(cmd.PersistentFlags())
	return cmd
}

func (c *authCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "See who of IAM becomes whom in a cluster, and what is wrong with the entries that say so",
		Args: func(_ *cobra.Command, args []string) error {
			verbs := []string{"check"}
			if len(args) == 0 {
				return fmt.Errorf("say what to do: %s", strings.Join(verbs, ", "))
			}
			return fmt.Errorf("there is no muster auth %q%s; there are: %s", args[0], didYouMean(args[0], verbs), strings.Join(verbs, ", "))
		},
		RunE: nothingToDo,
	}
	cmd.AddCommand(c.check())
	return cmd
}
