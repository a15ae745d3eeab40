// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/platform/statedir"
)

// The ways in which data that is no Kubernetes object is printed.
const (
	FormatTable = "table"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
)

func AddOutputFlag(cmd *cobra.Command, format *string) {
	*format = FormatTable
	cmd.Flags().VarP(&formatValue{format}, "output", "o", "how to print: table, json, yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{FormatTable, FormatJSON, FormatYAML}, cobra.ShellCompDirectiveNoFileComp))
}

// formatValue refuses a format that does not exist before anything is done.
type formatValue struct{ to *string }

func (v *formatValue) String() string { return *v.to }

func (v *formatValue) Type() string { return "string" }

func (v *formatValue) Set(s string) error {
	switch s {
	case FormatTable, FormatJSON, FormatYAML:
		*v.to = s
		return nil
	}
	return errors.New("must be table, json or yaml")
}

// PrintData writes a value as JSON or YAML.
func PrintData(w io.Writer, format string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if format == FormatYAML {
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return err
		}
	} else {
		raw = append(raw, '\n')
	}
	_, err = w.Write(raw)
	return err
}

// Count is a number of things in words.
func Count[N int | int32](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// OpenExisting opens a state directory in which a cluster was set up.
func (o *Options) OpenExisting() (statedir.Dir, error) {
	dir, err := o.Open()
	if err != nil {
		return "", err
	}
	if !dir.Exists() {
		return "", fmt.Errorf("nothing is set up in %s: run `muster up` first, or name another directory with --state-dir", dir)
	}
	return dir, nil
}
