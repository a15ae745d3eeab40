// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
)

// NewCommand returns "muster auth".
func NewCommand(o *terminal.Options) *cobra.Command {
	var way kinds.Access
	c := &authCommand{Options: o, cluster: way.AuthReader}
	cmd := c.command()
	way.AddFlags(cmd.PersistentFlags())
	return cmd
}

func (c *authCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Show which user and groups an IAM identity becomes in a cluster, the entries that are wrong, and the IAM identities of pods",
		Args: func(_ *cobra.Command, args []string) error {
			verbs := []string{"check", "pod"}
			if len(args) == 0 {
				return fmt.Errorf("muster auth needs a subcommand: %s", strings.Join(verbs, ", "))
			}
			return fmt.Errorf("there is no muster auth %q%s; there are: %s", args[0], terminal.DidYouMean(args[0], verbs), strings.Join(verbs, ", "))
		},
		RunE: terminal.NothingToDo,
	}
	cmd.AddCommand(c.check(), (&podCommand{Options: c.Options, ask: askService}).command())
	return cmd
}
