// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CheckUsage applies UsageArgs to a command and all its subcommands.
func CheckUsage(c *cobra.Command) {
	c.Args = UsageArgs(c.Args)
	for _, sub := range c.Commands() {
		CheckUsage(sub)
	}
}

// UsageArgs makes a wrong number of arguments a usage error that names them, with the usage line in it.
func UsageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		check = cobra.NoArgs
	}
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if _, told := errors.AsType[UsageError](err); err == nil || told {
			return err
		}
		return UsageError{Err: fmt.Errorf("%s; usage: %s", wrongArgs(cmd, check, args, err), strings.TrimSpace(cmd.UseLine()))}
	}
}

// wrongArgs returns what is wrong with arguments. Of a wrong number of them cobra says "accepts 1 arg(s), received 2",
// and that a command which takes none is one with an unknown command.
func wrongArgs(cmd *cobra.Command, check cobra.PositionalArgs, args []string, err error) string {
	unknown := strings.HasPrefix(err.Error(), "unknown command ")
	switch {
	case unknown && cmd.HasAvailableSubCommands():
		var names []string
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		return err.Error() + DidYouMean(args[0], names)
	case !unknown && !strings.Contains(err.Error(), " arg(s)"):
		return err.Error()
	}
	names := argumentNames(cmd.Use)
	takes := cmd.CommandPath() + " takes " + Or(strings.Join(names, " "), "none")
	for n, arg := range slices.Backward(args) {
		if check(cmd, args[:n]) == nil {
			return fmt.Sprintf("%q is one argument too many: %s", arg, takes)
		}
	}
	if len(args) < len(names) {
		return strings.TrimSuffix(names[len(args)], "...") + " is missing"
	}
	return takes
}

// argumentNames are the names of arguments in a usage line, without the command's name and flags.
func argumentNames(use string) []string {
	var names []string
	for _, word := range strings.Fields(use)[1:] {
		word = strings.Trim(word, "[]")
		if strings.HasPrefix(word, "-") {
			break
		}
		names = append(names, word)
	}
	return names
}

// NothingToDo is the RunE of a command that only has subcommands. Its Args function refuses every command line, and
// cobra calls that only for a command that can be run.
func NothingToDo(*cobra.Command, []string) error { return nil }
