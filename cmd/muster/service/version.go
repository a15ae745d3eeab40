// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/version"
)

// NewVersionCommand returns "muster version".
func NewVersionCommand(o *terminal.Options) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of muster and of the Kubernetes that it runs",
		Example: `  muster version
  muster version -o json`,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Muster     string `json:"muster"`
				Kubernetes string `json:"kubernetes"`
				Go         string `json:"go"`
				Platform   string `json:"platform"`
			}{version.Version, release.Default().Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if format != terminal.FormatTable {
				return terminal.PrintData(o.Out, format, v)
			}
			_, err := fmt.Fprintf(o.Out, "muster      %s\nkubernetes  %s\ngo          %s (%s)\n", v.Muster, v.Kubernetes, v.Go, v.Platform)
			return err
		},
	}
	terminal.AddOutputFlag(cmd, &format)
	return cmd
}
