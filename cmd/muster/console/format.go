// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The forms in which only objects are printed.
const (
	FormatWide = "wide"
	FormatName = "name"
)

// AddFormatFlag gives a command -o with some of the formats.
func AddFormatFlag(cmd *cobra.Command, value *string, initial string, formats ...string) {
	cmd.Flags().StringVarP(value, "output", "o", initial, "how to print: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// CheckOutput refuses a format that is not among those.
func CheckOutput(format string, formats ...string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	return UsageError{Err: fmt.Errorf("unknown output format %q; there are: %s", format, strings.Join(formats, ", "))}
}
