// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/version"
)

func newVersionCommand(o *options) *cobra.Command {
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
			}{version.Version, version.Kubernetes, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if format != formatTable {
				return printData(o.out, format, v)
			}
			_, err := fmt.Fprintf(o.out, "muster      %s\nkubernetes  %s\ngo          %s (%s)\n", v.Muster, v.Kubernetes, v.Go, v.Platform)
			return err
		},
	}
	addOutputFlag(cmd, &format)
	return cmd
}
