// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/statedir"
)

// NewRegistryCommand returns the hidden command by which services of v0.2.0 and before start the image registry: one that
// has not been replaced yet goes on with the programs of a newer release beside it.
func NewRegistryCommand() *cobra.Command {
	var stateDir, in, certificate string
	var port uint16
	command := &cobra.Command{
		Use:   "registry",
		Short: "Serve the account's images by muster-registry",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := programs.Dir()
			if err != nil {
				return err
			}
			program := filepath.Join(dir, "muster-registry")
			args := []string{program, "-state-dir=" + stateDir, "-account=" + component.DefaultAccount, "-region=" + in, "-certificate=" + certificate, "-listen=" + portplan.OnLoopback(int(port)).Listen.String()}
			return fmt.Errorf("starting %s: %w", program, syscall.Exec(program, args, syscall.Environ()))
		},
	}
	flags := command.Flags()
	flags.StringVar(&stateDir, "state-dir", statedir.Default(), "directory of everything muster keeps")
	flags.StringVar(&in, "region", region.Default, "region of the account")
	flags.StringVar(&certificate, "certificate", "", "file with the certificate and key")
	flags.Uint16Var(&port, "port", 0, "loopback port for people")
	return command
}
