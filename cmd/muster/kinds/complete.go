// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
)

// CompletionTime is the timeout for the names that shell completion offers.
const CompletionTime = time.Second

// CompleteNames offers the names of a kind's objects. Whatever goes wrong, there is just nothing to offer.
func CompleteNames(o *terminal.Options, p Dialers, k Kind, limit int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return NamesOf(cmd.Context(), o, p, k, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// NamesOf lists the names of objects that are not among those typed already, each with its other names beside it.
func NamesOf(ctx context.Context, o *terminal.Options, p Dialers, k Kind, typed []string) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, CompletionTime)
	defer cancel()
	quiet := *o
	quiet.Err = io.Discard
	plane, err := p.Of(k)(&quiet)
	if err != nil {
		return nil
	}
	objects, _, err := plane.Objects(ctx, k)
	if err != nil {
		return nil
	}
	var names []cobra.Completion
	for _, object := range objects {
		other := ""
		if k.also != nil {
			other = terminal.Or(k.also(object)...)
		}
		for _, pair := range [][2]string{{NameOf(object), other}, {other, NameOf(object)}} {
			switch {
			case pair[0] == "" || slices.Contains(typed, pair[0]) || slices.Contains(typed, pair[1]):
			case pair[1] == "":
				names = append(names, pair[0])
			default:
				names = append(names, cobra.CompletionWithDesc(pair[0], pair[1]))
			}
		}
	}
	return names
}
