// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Output formats. Only objects have the last two.
const (
	FormatTable = "table"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	FormatWide  = "wide"
	FormatName  = "name"
)

// AddFormatFlag gives a command -o with some of the formats. CheckOutput refuses others when the command runs.
func AddFormatFlag(cmd *cobra.Command, value *string, initial string, formats ...string) {
	cmd.Flags().StringVarP(value, "output", "o", initial, "how to print: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// CheckOutput returns a usage error for a format that is not among formats.
func CheckOutput(format string, formats ...string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	return UsageError{Err: fmt.Errorf("unknown output format %q; there are: %s", format, strings.Join(formats, ", "))}
}

// AddOutputFlag gives a command -o for data that is not a Kubernetes object: table, json or yaml, and the formats that
// it has besides. A wrong format is refused while the command line is parsed.
func AddOutputFlag(cmd *cobra.Command, format *string, more ...string) {
	formats := slices.Concat([]string{FormatTable}, more, []string{FormatJSON, FormatYAML})
	*format = FormatTable
	cmd.Flags().VarP(&formatValue{format, formats}, "output", "o", "how to print: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// formatValue is the value of that flag.
type formatValue struct {
	to      *string
	formats []string
}

func (v *formatValue) String() string { return *v.to }

func (v *formatValue) Type() string { return "string" }

func (v *formatValue) Set(s string) error {
	if !slices.Contains(v.formats, s) {
		last := len(v.formats) - 1
		return fmt.Errorf("must be %s or %s", strings.Join(v.formats[:last], ", "), v.formats[last])
	}
	*v.to = s
	return nil
}
