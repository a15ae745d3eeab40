// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/internal/platform/cli"
)

// certificateControllerProgram is what the command becomes. It lies beside this program.
const certificateControllerProgram = "muster-certificate-controller"

// NewCertificateControllerCommand returns "muster certificate-controller", which becomes the program of that name.
func NewCertificateControllerCommand() *cobra.Command {
	return cli.NewCertificateController("muster certificate-controller", func(cmd *cobra.Command, _ cli.Part) error {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this program: %w", err)
		}
		return becomeCertificateController(filepath.Join(filepath.Dir(self), certificateControllerProgram), cmd)
	})
}

// becomeCertificateController hands the command line over to the program, which checks it, too.
func becomeCertificateController(program string, cmd *cobra.Command) error {
	args := []string{program}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	err := syscall.Exec(program, args, os.Environ())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s not found: this command runs it; install it beside muster (`make build` makes both)", program)
	}
	return fmt.Errorf("starting %s: %w", program, err)
}
